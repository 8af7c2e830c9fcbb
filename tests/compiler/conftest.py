"""Every program that a test of this folder compiles is verified after every pass."""

from __future__ import annotations

import pytest

from autograd_nb.compiler import ir


@pytest.fixture(autouse=True)
def _verified(monkeypatch):
    monkeypatch.setattr(ir.settings, "verifies", True)
