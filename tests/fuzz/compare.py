"""What differs between two runs of a program, by category."""

from __future__ import annotations

import builtins
import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import explained
from .explained import Case, explanation
from .program import UNREADABLE, Seen, Step

#: relative to the largest value: how far rounding may take a result
TOLERANCE = {"float32": 2e-3, "float64": 1e-6, "complex64": 2e-3, "complex128": 1e-6, "float16": 3e-2, "bfloat16": 1e-1}

#: a backward pass in a statement, or several
PASS = re.compile(r"\.backward\(|autograd\.grad\(|\bfor _[rp] in")
#: whether a gradient that depends on nothing (a second derivative of zeros) has a history
HISTORY = ("grad requires_grad", "grad history", "grad leaf")
#: what compiled calls refuse and eager ones do not, or the other way round (docs/compile.md)
COMPILED = ("create_graph=True through a compiled function that reads Python values which have changed since",)


@dataclass
class Difference:
    kind: str
    where: int  #: the statement or call
    what: str
    explained: str = ""  #: the name of what explains it (`explained`)

    def __str__(self) -> str:
        return f"{self.kind} after step {self.where}: {self.what}"


def family(error: BaseException) -> type:
    """The builtin type of exceptions that a program would catch it by."""
    return next(t for t in type(error).__mro__ if t.__module__ == "builtins" and hasattr(builtins, t.__name__))


def told(error: BaseException | None) -> str:
    return "nothing" if error is None else f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"


def short(values: np.ndarray) -> str:
    text = str(values.tolist())
    return text if len(text) < 120 else f"{text[:120]}…"


def close(a: np.ndarray, b: np.ndarray, tolerance: float | None, exact: bool = False) -> bool:
    """Whether values are equal, or for a tolerance nearly so. ``exact``: whether they have the same bits."""
    if a.tobytes() == b.tobytes():  # most are, and this is twenty times as quick
        return True
    if exact:
        return False
    if tolerance is None:
        return np.array_equal(a, b)
    scale = max(1.0, float(np.abs(b[np.isfinite(b)]).max(initial=0.0)))
    return np.allclose(a, b, rtol=tolerance, atol=tolerance * scale, equal_nan=True)


def differences(
    mine: Any, theirs: Any, name: str, strides: bool = True, coarse: float = 0.0, own: bool = False, exact: bool = False, marks: bool = True,
) -> tuple[str, str] | None:
    """(kind, what) in which two looks at a value differ. ``own``: both are this library's, so that versions are compared too.

    ``marks``: whether it is one if the one shows conjugates or negatives and the other has computed them.

    ``coarse``: the tolerance of the roughest numbers that have been met, as what is computed from them is as rough.
    """
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
    if marks and mine.marks[:2] != theirs.marks[:2] and ".grad" not in name:
        return "marks", f"{name}: shows conjugates, negatives (of its base) {mine.marks} instead of {theirs.marks}"
    tolerance = TOLERANCE.get(theirs.dtype)
    if not close(mine.values, theirs.values, None if tolerance is None else max(tolerance, coarse), exact):
        return "value", f"{name}: {short(mine.values)} instead of {short(theirs.values)}"
    if strides and theirs.values.size > 0:
        pairs = [(s, t) for s, t, n in zip(mine.strides, theirs.strides, mine.shape) if n > 1]
        expanded = any(0 in pair for pair in pairs)  # gradients have memory of their own here, in PyTorch they may be expanded
        if any(s != t for s, t in pairs) and not expanded:
            return "strides", f"{name}: strides {mine.strides} instead of {theirs.strides}"
    if theirs.grad is UNREADABLE:
        return None  # (a batch that left its vmap)
    if (mine.grad is None) != (theirs.grad is None):
        grads = ["None" if g is None else short(g.values) for g in (mine.grad, theirs.grad)]
        return "grad none", f"{name}.grad is {grads[0]} instead of {grads[1]}"
    if mine.grad is not None:
        found = differences(mine.grad, theirs.grad, f"{name}.grad", strides, coarse, exact, exact)  # (its version: as with `made` below)
        if found:
            return f"grad {found[0]}", found[1]
    return None


def changed(before: Step, after: Step, name: str, gradient: bool = False) -> bool:
    """Whether two looks at a name, of one library, find something else (or another ``gradient``), or a gradient of what was named since."""
    if name not in before.state:
        return getattr(after.state[name], "grad", None) is not None
    if gradient:
        then, now = (getattr(step.state[name], "grad", None) for step in (before, after))
        return (then is None) != (now is None) or (then is not None and differences(then, now, name) is not None)
    return differences(before.state[name], after.state[name], name) is not None


def its_own(step: Step, name: str) -> bool:
    """Whether a leaf has its own values for its gradient, as after ``b.grad = b.detach()``."""
    seen = step.state[name]
    grad = getattr(seen, "grad", None)
    return grad is not None and grad.values.tobytes() == seen.values.tobytes()


def gained(before: Step, after: Step, name: str, there: Step) -> bool:
    """Whether a name's gradient is another than before, and than the one that is ``there`` in the other library, and not both of them are 0."""
    grad, then = getattr(after.state[name], "grad", None), getattr(before.state.get(name), "grad", None)
    theirs = getattr(there.state.get(name), "grad", None)
    if grad is None or not changed(before, after, name, True):
        return False
    if theirs is not None and theirs.shape == grad.shape and close(grad.values, theirs.values, TOLERANCE.get(theirs.dtype)):
        return False
    return bool(grad.values.any()) or (then is not None and bool(then.values.any()))


def marks_of(state: dict[str, Any], name: str) -> tuple:
    """Whether what has a name shows conjugates, and whether negatives."""
    return getattr(state.get(name), "marks", ())[:2]


def apart(here: dict[str, Any], known: dict[str, Any], name: str) -> bool:
    """Whether a name has stood for what shows conjugates or negatives in one library alone."""
    return name in here and name in known and marks_of(here, name) != marks_of(known, name)


def _why_named(hooked: bool, case: Case) -> str:
    """What explains a name that is there in one library only: a pass that fails before its ``hooked`` part, or a line that goes on here."""
    if hooked:
        return explained.ATOMIC
    if "its base or another view of its base has been modified" in case.theirs:
        return explained.UNREADABLE
    return explanation(case) if case.name in case.here else ""  # (refused there at a line before the one that is refused here)


def first_difference(
    mine: list[Step], theirs: list[Step], strides: bool = True, statements: Sequence[str] = (), trifles: list[str] | None = None,
    own: bool = False, exact: bool = False,
) -> Difference | None:
    """The first one of two runs; None where they agree. ``own``: both are this library's, and nothing is explained then; ``exact``: to the bit.

    What is explained and changes nothing is added to ``trifles``.
    """
    trifles = [] if trifles is None else trifles
    coarse = 0.0
    for k, (a, b) in enumerate(zip(mine, theirs)):
        statement = statements[k] if k < len(statements) else ""
        before = "\n".join(statements[:k])
        known, here = (theirs[k - 1].state, mine[k - 1].state) if k else ({}, {})
        if (a.error is None) != (b.error is None):
            if own and any(text in str(a.error or b.error) for text in COMPILED):
                return Difference("limit", k, told(a.error or b.error), explained.LIMIT)
            kind = "raised" if a.error else "not refused"
            failed = "\n".join(step.text or s for step, s in zip(theirs[:k], statements) if step.error is not None)
            nothing = k and not any(gained(mine[k - 1], a, name, b) for name in a.state)
            case = Case(kind, statement, told(a.error), told(b.error), "", before, known, failed=failed, gained=not nothing, here=here)
            why = explanation(case) or b.loose * explained.LOOSE
            return Difference(kind, k, f"{told(a.error)} instead of {told(b.error)}", why)
        coarse = max(coarse, *(TOLERANCE.get(s.dtype, 0.0) for s in b.state.values() if isinstance(s, Seen)), 0.0)
        if own and a.error is not None and any(text in str(a.error) for text in COMPILED):
            return Difference("limit", k, told(a.error), explained.LIMIT)
        if a.error is not None and b.error is not None and not issubclass(type(a.error), family(b.error)):
            case = Case("error type", statement, told(a.error), told(b.error), "", before, known, here=here)
            return Difference("error type", k, f"{told(a.error)} instead of {told(b.error)}", explanation(case))
        if exact and told(a.error) != told(b.error):
            return Difference("error", k, f"{told(a.error)} instead of {told(b.error)}")
        for name in [*b.state, *(n for n in a.state if n not in b.state)]:
            if name not in a.state or name not in b.state:
                hooked = a.error is not None and name not in a.state and (not k or name not in theirs[k - 1].state)
                case = Case("not refused", statement, "", told(b.error), name, before, known, here=a.state)
                return Difference("named", k, f"{name} is there in one case only", "" if own else _why_named(hooked, case))
            if b.state[name] is UNREADABLE and a.state[name] is not UNREADABLE:
                trifles.append(explained.UNREADABLE)
                continue
            made = not exact and name.startswith(("found", "kept", "held", "gs", "_h"))  # (new tensors may be written once or twice)
            found = differences(a.state[name], b.state[name], name, strides, coarse, own and not made, exact, bool(statements) and not apart(here, known, name))
            if found and found[0] == "marks" and not own:
                marks = marks_of(a.state, name), marks_of(b.state, name)
                why = explanation(Case("marks", statement, "", "", name, before, known, found[1], here=here, marks=marks))
                if why:
                    trifles.append(why)
                    found = differences(a.state[name], b.state[name], name, strides, coarse, own and not made, exact, False)
            anew = k == 0 or name in ("x", "y", "z") or (not own and name not in theirs[k - 1].state)  # made by what has failed
            # (a call's values may have been changed before it; what is its own gradient is accumulated into)
            gradient = found is not None and (found[0].startswith("grad ") or (found[0] == "value" and its_own(a, name) and its_own(b, name)))
            several = gradient and len(PASS.findall(b.text or statement)) > 1  # the last of which fails, and a part of it had been done there
            partly = a.error is not None and (
                anew or ((several or not changed(mine[k - 1], a, name, gradient)) and changed(theirs[k - 1], b, name, gradient))
            )
            if found and found[0] in HISTORY and not own and not partly:
                trifles.append(explained.TRIFLES)
            elif found:
                raised = told(b.error) if b.error is not None else ""
                failed = "\n".join(step.text or s for step, s in zip(theirs[:k], statements) if step.error is not None)
                marks = marks_of(a.state, name), marks_of(b.state, name)
                shared = (*(theirs[k - 1].shared if k else ()), *b.shared)  # (before the step, as what is between two calls belongs to the second)
                case = Case(found[0], statement, "", "", name, before, known, found[1], error=raised, shared=shared, failed=failed, here=here, marks=marks)
                loose = b.loose and found[0].removeprefix("grad ") in ("none", "requires_grad", "leaf", "history") and explained.LOOSE
                why = explained.ATOMIC if partly else loose or explanation(case)
                if not why and raised and a.error is not None and told(a.error) != raised:  # what it refused first may be explained, and was done here
                    why = explanation(dataclasses.replace(case, kind="not refused", theirs=raised))
                return Difference(found[0], k, found[1], why)
        if own and a.shared != b.shared:
            return Difference("shared memory", k, f"{', '.join(a.shared)} instead of {', '.join(b.shared)}")
    if len(mine) != len(theirs):
        return Difference("raised", min(len(mine), len(theirs)), f"{len(mine)} steps instead of {len(theirs)}")
    return None
