"""Differences from PyTorch that are meant, each with its reason and a test that is as narrow as the reason.

A statement with such a difference is taken out of its program, and the rest is compared (`check.compared`), but for what only makes
a name unreadable: the name is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Case:
    """A difference at a statement: what was raised here and there (texts, empty where nothing was)."""

    kind: str
    statement: str
    mine: str
    theirs: str
    name: str = ""  #: of what differs
    before: str = ""  #: the statements before it


@dataclass(frozen=True)
class Explained:
    name: str
    reason: str
    holds: Callable[[Case], Any]


_ORDERS = ("fft", "_scatter(", ".put(", "histogram", "conv_transpose3d", "max_pool1d", "rrelu", "einsum", "lu_solve")


def _names(statement: str, parts: tuple[str, ...]) -> bool:
    return any(part in statement for part in parts)


EXPLAINED = (
    Explained(
        "order of other results",
        "PyTorch's order depends on which of its kernels runs, or on gaps that it copies (tests/parity/strides.py).",
        lambda c: c.kind == "strides" and _names(c.statement, _ORDERS),
    ),
    Explained(
        "derivatives that PyTorch lacks",
        "Bessel functions of integer order and some in-place forms have derivatives here; where PyTorch has none it may only fail in backward.",
        lambda c: (c.kind == "requires_grad" and re.search(r"special\.\w*bessel", c.statement))
        or (c.kind == "not refused" and re.search(r"derivative for .* is not implemented", c.theirs)),
    ),
    Explained(
        "as_strided_scatter's gradient",
        "PyTorch's is known to be wrong: it lets through what is overwritten (tests/parity/opdb.py, WRONG_THERE).",
        lambda c: "as_strided_scatter" in c.before + c.statement and (c.kind == "grad value" or "INTERNAL ASSERT" in c.theirs),
    ),
    Explained(
        "faults of PyTorch",
        "It refuses what works but for a view that it makes inside, an empty list of gradients or a shape that it forgets.",
        lambda c: c.kind == "not refused"
        and (
            ("view size is not compatible" in c.theirs and "view" not in c.statement)
            or "nested_tensorlist" in c.theirs
            or "PixelShuffleBackward0 returned an invalid gradient" in c.theirs
            or "INTERNAL ASSERT FAILED" in c.theirs
        ),
    ),
    Explained(
        "medians of expanded dims",
        "PyTorch reads memory that nothing was written to.",
        lambda c: c.kind == "value" and "median" in c.statement and "expand" in c.before,
    ),
    Explained(
        "results of transforms",
        "Those of jacrev and hessian are several views of one tensor in PyTorch, which then refuses to change them.",
        lambda c: c.kind == "not refused" and "function that returns multiple views" in c.theirs and re.search(r"jac|hess", c.before),
    ),
    Explained(
        "the operand of polygamma",
        "polygamma takes its tensor first or second, as the method is the same function.",
        lambda c: c.kind == "not refused" and "polygamma(): argument 'n' (position 1) must be int" in c.theirs,
    ),
    Explained(
        "order of gradients on their way",
        "PyTorch's gradients of what is no leaf may be expanded or lie as their operands did; those of leaves agree.",
        lambda c: (c.kind == "strides" and "grad" in c.statement and re.search(r"(autograd\.grad|vjp|func\.grad|register_)", c.statement))
        or (c.kind == "grad strides" and "retain_grad" in c.statement)
        or (c.kind == "strides" and "[" in c.name and "backward" in c.statement),
    ),
    Explained(
        "logical_not_ of numbers",
        "PyTorch forgets that it changes a tensor with a history: it is not refused, and the history stays.",
        lambda c: "logical_not_()" in c.statement and (c.kind == "requires_grad" or "in-place operation" in c.mine),
    ),
    Explained(
        "exchanged data",
        "Where x.data = … comes between the forward and the backward pass, gradients are here those of the values that the forward pass "
        "read; PyTorch reads the new ones, which is no derivative of anything.",
        lambda c: "value" in c.kind and re.search(r"\.data = |vector_to_parameters", c.before) and "grad" in c.statement + c.kind,
    ),
    Explained(
        "no arguments for no dims",
        "x.expand(*shape) and x.permute(*order) work for 0 dims too, where that passes no argument.",
        lambda c: c.kind == "not refused" and re.search(r"(expand|permute)\(\) missing 1 required positional arguments", c.theirs),
    ),
    Explained(
        "dtypes of a triangular system",
        "PyTorch does not look at the dtypes of linalg.solve_triangular's operands, and reads the one's memory as the other's.",
        lambda c: c.kind == "raised" and "solve_triangular: Expected A and B to have the same dtype" in c.mine,
    ),
    Explained(
        "tensors detached in place",
        "PyTorch reads what a node saved by way of the tensor's own place in the graph, so that it refuses a pass after detach_(); "
        "here the pass runs.",
        lambda c: c.kind == "not refused" and "has been detached in-place" in c.theirs,
    ),
    Explained(
        "dtypes of nothing",
        "Where there is nothing to compute PyTorch does not look at dtypes that it refuses otherwise.",
        lambda c: c.kind == "raised" and re.search(r"same dtype|should be the same", c.mine) and re.search(r"\(0,|, 0[,)]", c.statement),
    ),
    Explained(
        "offset of nothing",
        "A view without elements does not remember where in the storage it would begin.",
        lambda c: c.kind == "value" and "storage_offset" in c.statement and "numel" in c.statement,
    ),
    Explained(
        "gradients can be written to",
        "What autograd.grad returns has memory of its own here; PyTorch may hand out an expanded view, which it refuses to change.",
        lambda c: c.kind == "not refused" and "more than one element of the written-to tensor" in c.theirs and "grad" in c.statement,
    ),
    Explained(
        "strict single use",
        "A second backward pass through a graph is an error here also where its nodes saved nothing (docs/design.md).",
        lambda c: c.kind in ("raised", "error type") and "second time" in c.mine,
    ),
    Explained(
        "writes are computed before they land",
        "PyTorch refuses to read and write overlapping memory in one op; reads come before writes here.",
        lambda c: c.kind == "not refused" and "some elements of the input tensor and the written-to tensor refer" in c.theirs,
    ),
    Explained(
        "memory can be resized",
        "Memory that came from NumPy can be exchanged for larger memory here.",
        lambda c: c.kind == "not refused" and "storage that is not resizable" in c.theirs,
    ),
    Explained(
        "arrays as operands",
        "PyTorch leaves tensor * array to NumPy, which cannot read a tensor that requires grad; here the array is taken as a tensor.",
        lambda c: (c.kind == "not refused" and "Can't call numpy()" in c.theirs and not re.search(r"numpy\(|np\.", c.statement))
        or (c.kind == "strides" and re.search(r"numpy\(|np\.", c.before) and re.search(r"v\d+ \* v\d+$", c.statement)),
    ),
)
#: found without a statement to test
ATOMIC = "atomic errors"  # a backward pass that fails has changed no gradient here, in PyTorch it may have done a part
ROUNDING = "rounding decides"  # PyTorch's own run differs as much if the numbers made are moved by a few units in the last place
UNREADABLE = "unreadable views"  # PyTorch does not look at one of several views whose base was changed since; here it has values
LIMIT = "limits of compiled calls"  # docs/compile.md
LOOSE = "loose views"  # a function called a few times has views that say that they require grad, but lead nowhere
TRIFLES = "trifles"  # whether a gradient that depends on nothing (a second derivative of zeros) has a history


def explanation(case: Case) -> str:
    """The name of what explains a difference, or nothing."""
    return next((e.name for e in EXPLAINED if e.holds(case)), "")
