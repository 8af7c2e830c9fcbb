"""What differs between two runs of a program, by category; and the differences that are deliberate."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import Any

import numpy as np

from .program import UNREADABLE, Seen, Step

#: relative to the largest value: how far rounding may take a result
TOLERANCE = {"float32": 2e-3, "float64": 1e-6, "complex64": 2e-3, "complex128": 1e-6, "float16": 3e-2}

#: deliberate differences (docs/design.md): what they are called, and how one is told
STRICT = "strict single use"  # a second backward pass through a graph that saved nothing is an error here
ATOMIC = "atomic errors"  # what fails has changed nothing here, a backward pass no gradient; PyTorch may have done a part
#: whether a gradient that depends on nothing (a second derivative of zeros) has a history
TRIFLES = ("grad requires_grad", "grad history", "grad leaf")
#: what PyTorch refuses and this library does: reads come before writes, so memory may be both; any memory can be resized
WIDER = ("some elements of the input tensor and the written-to tensor refer", "storage that is not resizable")
#: what compiled calls refuse and eager ones do not, or the other way round (docs/compile.md)
COMPILED = (
    "create_graph=True through a compiled function",  # what it reads has changed since
    "Can't detach views in-place",  # results of compiled functions are no views of what was made within
)


@dataclass
class Difference:
    kind: str
    where: int  #: the statement or call
    what: str
    deliberate: bool = False

    def __str__(self) -> str:
        return f"{self.kind} after step {self.where}: {self.what}"


def family(error: BaseException) -> type:
    """The builtin type of exceptions that a program would catch it by."""
    return next(t for t in type(error).__mro__ if t.__module__ == "builtins" and hasattr(builtins, t.__name__))


def told(error: BaseException | None) -> str:
    return "nothing" if error is None else f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def short(values: np.ndarray) -> str:
    text = str(values.tolist())
    return text if len(text) < 120 else f"{text[:120]}…"


def differences(mine: Any, theirs: Any, name: str, strides: bool = True, own: bool = False) -> tuple[str, str] | None:
    """(kind, what) in which two looks at a value differ. ``own``: both are this library's, so that versions are compared too."""
    if not isinstance(mine, Seen) or not isinstance(theirs, Seen):
        if isinstance(mine, Seen) != isinstance(theirs, Seen):
            return "none", f"{name} is {'a tensor' if isinstance(mine, Seen) else mine} instead of {type(theirs).__name__}"
        if isinstance(mine, float) and isinstance(theirs, float):
            return (
                None
                if np.isclose(mine, theirs, rtol=1e-3, atol=1e-3, equal_nan=True)
                else ("value", f"{name}: {mine} instead of {theirs}")
            )
        return None if mine == theirs or mine is theirs else ("value", f"{name}: {mine} instead of {theirs}")
    for kind in ("dtype", "shape", "requires_grad", "leaf", "history", *(("version",) if own else ())):
        a, b = getattr(mine, kind), getattr(theirs, kind)
        if a != b:
            return kind, f"{name}: {kind} {a} instead of {b}"
    a, b = mine.values, theirs.values
    tolerance = TOLERANCE.get(theirs.dtype)
    if tolerance is None:
        if not np.array_equal(a, b):
            return "value", f"{name}: {short(a)} instead of {short(b)}"
    else:
        scale = max(1.0, float(np.abs(b[np.isfinite(b)]).max(initial=0.0)))
        if not np.allclose(a, b, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
            return "value", f"{name}: {short(a)} instead of {short(b)}"
    if strides and theirs.values.size > 0:
        pairs = [(s, t) for s, t, n in zip(mine.strides, theirs.strides, mine.shape) if n > 1]
        expanded = any(0 in pair for pair in pairs)  # gradients have memory of their own here, in PyTorch they may be expanded
        if any(s != t for s, t in pairs) and not expanded:
            return "strides", f"{name}: strides {mine.strides} instead of {theirs.strides}"
    if (mine.grad is None) != (theirs.grad is None):
        return "grad none", f"{name}.grad is {'None' if mine.grad is None else 'a tensor'}"
    if mine.grad is not None:
        found = differences(mine.grad, theirs.grad, f"{name}.grad", strides, own)
        if found:
            return f"grad {found[0]}", found[1]
    return None


def first_difference(mine: list[Step], theirs: list[Step], strides: bool = True, own: bool = False) -> Difference | None:
    """The first one of two runs; None where they agree. ``own``: both are this library's: nothing is deliberate then."""
    failed = False
    for k, (a, b) in enumerate(zip(mine, theirs)):
        if (a.error is None) != (b.error is None):
            if own and any(text in str(a.error or b.error) for text in COMPILED):
                return Difference("limit", k, told(a.error or b.error), True)
            strict = a.error is not None and "second time" in str(a.error)
            wider = b.error is not None and any(text in str(b.error) for text in WIDER)
            kind = "raised" if a.error else "not refused"
            return Difference(kind, k, f"{told(a.error)} instead of {told(b.error)}", strict or wider or b.loose)
        if a.error is not None and b.error is not None:
            failed = True
            if own and any(text in str(a.error) for text in COMPILED):
                return Difference("limit", k, told(a.error), True)
            if not issubclass(type(a.error), family(b.error)):
                return Difference("error type", k, f"{told(a.error)} instead of {told(b.error)}")
        for name in [*b.state, *(n for n in a.state if n not in b.state)]:
            if name not in a.state or name not in b.state:
                return Difference("named", k, f"{name} is there in one case only")
            if b.state[name] is UNREADABLE and a.state[name] is not UNREADABLE:
                return Difference("not refused", k, f"{name} cannot be looked at in PyTorch", True)
            made = name.startswith(("found", "kept", "held", "gs", "_h"))  # (new tensors may be written once or twice)
            found = differences(a.state[name], b.state[name], name, strides, own and not made)
            if found:
                partly = b.loose or (failed and ("grad" in found[0] or a.error is not None)) or found[0] in TRIFLES
                return Difference(found[0], k, found[1], partly)
        if own and a.shared != b.shared:
            return Difference("shared memory", k, f"{', '.join(a.shared)} instead of {', '.join(b.shared)}")
    if len(mine) != len(theirs):
        return Difference("raised", min(len(mine), len(theirs)), f"{len(mine)} steps instead of {len(theirs)}")
    return None
