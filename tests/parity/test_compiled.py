"""Compiled calls agree with eager ones and share no memory: a part of the walk over PyTorch's op database, see `tests.parity.compiled`."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from torch.testing._internal.common_methods_invocations import op_db

from . import compiled
from .opdb import outside, title

EVERY = 14
#: those that pass gradients or operands on, and every fourteenth of the others
ALWAYS = (
    "add",
    "sub",
    "clone",
    "view",
    "expand",
    "where",
    "cat",
    "unbind",
    "t",
    "expand_as",
    "to",
    "positive",
    "stack",
    "exp",
    "nn.functional.linear",
)
ENTRIES = [op for k, op in enumerate(op_db) if not outside(title(op)) and (op.name in ALWAYS or k % EVERY == 0)]


@pytest.mark.parity
@pytest.mark.parametrize("op", ENTRIES, ids=title)
def test_compiled_calls_of_an_op(op):
    table = compiled.check(op, 1)
    assert not table.differences
