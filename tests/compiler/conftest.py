"""Every program that a test of this folder compiles is verified after every pass, and what runs eagerly comes with what to change."""

from __future__ import annotations

import pytest

from autograd_nb.compiler import dispatch, ir


@pytest.fixture(autouse=True)
def _verified(monkeypatch):
    monkeypatch.setattr(ir.settings, "verifies", True)


@pytest.fixture(autouse=True)
def _remedied(monkeypatch):
    told = []

    def remedy(reason, known=dispatch.remedy):
        change = known(reason)
        told.append(reason + change)
        return change

    monkeypatch.setattr(dispatch, "remedy", remedy)
    yield
    assert [text for text in told if "; " not in text] == []
