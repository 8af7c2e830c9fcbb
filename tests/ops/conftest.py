"""What tests of ops share."""

from __future__ import annotations

import pytest

from autograd_nb.graph import recurring
from autograd_nb.ops.core import repeated


@pytest.fixture
def kept(monkeypatch):
    """The results of the calls of which a repetition was made."""
    found = []
    make = repeated._repeat

    def made(*given):
        out = make(*given)
        found.append(given[-1])
        return out

    monkeypatch.setattr(repeated, "_repeat", made)
    recurring.forget()
    return found
