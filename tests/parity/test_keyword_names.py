"""Arguments by name: by PyTorch's names of them, and by NumPy's where PyTorch takes those, over its own op database."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

import autograd_nb as ag
from autograd_nb.autograd.torch_function import INTERCEPTION

from .opdb import Unsupported, find, op_db, ours, outside, samples_of

#: PyTorch's names -> NumPy's
NAMES = {"input": ("x", "a", "x1"), "other": ("x2",), "dim": ("axis",), "keepdim": ("keepdims",)}
ABSENT: set[str] = set()
OF_NUMPY = {word for words in NAMES.values() for word in words}


def in_words(op: Any, names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The samples of an op with all arguments by the names of the schemas of ``names`` that fit."""
    found = (torch._C._jit_get_schemas_for_operator(f"aten::{n}") for n in dict.fromkeys(names))
    schemas = [s for some in found for s in some]
    for sample in (samples_of(op, torch.float32, False) or samples_of(op, torch.int64, False))[:6]:
        values = (sample.input, *sample.args)
        for schema in schemas:
            names = ["input" if a.name == "self" else a.name for a in schema.arguments if not a.kwarg_only]
            if len(values) <= len(names):
                yield dict(zip(names, values, strict=False), **sample.kwargs)


def taken(function: Any, given: dict[str, Any]) -> bool | None:
    """Whether a function takes arguments of these names; None where it refuses the values."""
    try:
        function(**given)
    except TypeError:
        return False
    except Exception:
        return None
    return True


OPS = {f"{op.name} {op.variant_test_name}".strip(): op for op in op_db if isinstance(op.op, types.BuiltinFunctionType) and find(op) is not None}


def direct(function: Any) -> bool:
    """Whether Python itself refuses keywords that the function, which was called before, does not have: each call would pay for a look at others."""
    code, *_ = INTERCEPTION._originals.get(function, (function.__code__,))  # an earlier test's class may stand in its place
    return function is ag.trace or not code.co_flags & inspect.CO_VARKEYWORDS


@pytest.mark.parametrize("name", [name for name, op in OPS.items() if op.name not in ABSENT])
def test_names(name):
    op = OPS[name]
    seen: set[str] = set()
    for given in in_words(op, (op.aten_name, op.name.replace(".", "_"))):
        if not taken(op.op, given):
            continue
        with suppress(Unsupported):
            taken(find(op), ours(given))  # the text of a call is written at the first one
        for own, others in NAMES.items():
            if own not in given:
                continue
            every = others if own in ("dim", "keepdim") or not direct(find(op)) else ()
            for word in (own, *every):
                renamed = {word if key == own else key: value for key, value in given.items()}
                if word in seen or taken(op.op, renamed) is not True:
                    continue
                try:
                    mine = ours(renamed)
                except Unsupported:
                    continue
                seen.add(word)
                assert taken(find(op), mine) is not False, f"{name}({', '.join(renamed)}) is PyTorch's, and refused here"


def places(library: Any, name: str) -> Iterator[Any]:
    """The function and the method of a name; None where there is none."""
    space = library
    for part in name.split("."):
        space = getattr(space, part, None)
    yield from (space, getattr(library.Tensor, name.rpartition(".")[2], None))


@pytest.mark.parametrize("name", [name for name, op in OPS.items() if not outside(op.name)])
def test_own_names_of_functions_methods_and_aliases(name):
    """Where PyTorch calls an operand otherwise than `NAMES` do, as `swapaxes` does its dims."""
    op = OPS[name]
    for spelling in (op.name, *(alias.name for alias in op.aliases)):
        for theirs, mine in zip(places(torch, spelling), places(ag, spelling), strict=True):
            if not isinstance(theirs, (types.BuiltinFunctionType, types.MethodDescriptorType)):
                continue
            for given in in_words(op, (spelling.replace(".", "_"), spelling.rpartition(".")[2])):
                first = [given.pop("input", None)] if isinstance(theirs, types.MethodDescriptorType) else []
                if given.keys() & OF_NUMPY or (first and not isinstance(first[0], torch.Tensor)) or not taken(partial(theirs, *first), given):
                    continue
                try:
                    here = ours((first, given))
                except Unsupported:
                    continue
                assert taken(partial(mine, *here[0]), here[1]) is not False, f"{spelling}({', '.join(given)}) is PyTorch's, and refused here"


def along(library: Any, function: Any, word: str, value: Any) -> Any:
    """What an op gives along a dim of a matrix: all its numbers, or None where it refuses."""
    x = library.arange(6.0).view(2, 3) + 1
    try:
        found = function(x, **{word: library.tensor(value)})
    except (TypeError, RuntimeError, IndexError, ValueError):
        return None
    return [np.array(t.tolist()) for t in (found if isinstance(found, (tuple, list)) else [found])]


@pytest.mark.parametrize("name", [name for name, op in OPS.items() if not outside(op.name)])
def test_a_dim_by_name_may_be_a_tensor(name):
    """One without dims stands for a number, also where a tensor by place is another operand, as that of `max` is."""
    for theirs, mine in zip(places(torch, name), places(ag, name), strict=True):
        for word in ("dim", "axis"):
            for value in (1, 1.5, [0, 1]):
                expected = None if theirs is None else along(torch, theirs, word, value)
                if expected is not None and mine is not None:
                    given = along(ag, mine, word, value)
                    assert given is not None, (word, value)
                    for a, b in zip(given, expected, strict=True):
                        np.testing.assert_allclose(a, b, rtol=1e-5, err_msg=f"{word}={value}")
                elif value != 1 and name in ("max", "min"):
                    assert along(ag, mine, word, value) is None
