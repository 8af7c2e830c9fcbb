"""What two libraries came to on one call, and the report of walks that compare them: a category first, the worst of them wrong results."""

from __future__ import annotations

import builtins
import contextlib
import re
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from .children import Group, outcomes, say

#: of differences, the worst first: both give results that differ; the process ends; an error that names nothing; refused here only; accepted
#: here only; both refuse, with exceptions that other handlers catch
CATEGORIES = ("wrong", "crash", "raw", "refused", "accepted", "kind")
SECONDS = 3.0  #: of computing that a call may take
WORDS = 400  #: characters of an error at most
EXCEPTIONS = (
    NotImplementedError, IndexError, KeyError, ValueError, TypeError, ZeroDivisionError, OverflowError, AttributeError, AssertionError, MemoryError,
    RuntimeError, Exception,
)  # fmt: skip
#: texts of Python, NumPy and Numba that name neither the argument nor the remedy
RAW = re.compile(
    r"object is not (iterable|subscriptable|callable)|(tuple|list) index out of range|object has no attribute|unsupported operand type"
    r"|not supported between instances|(int|float)\(\) argument must be|could not convert string|an integer is required|invalid literal"
    r"|^cannot convert float|too large to convert|truth value of an|division by zero|bounds for axis|object cannot be interpreted|numba"
    r"|cannot reshape array|could not be broadcast|values to unpack|has no len|needs an argument|must be real number|takes a float operand"
    r"|positional argument|Maximum allowed dimension|NoneType: None$|Unable to allocate|ufunc|math domain|unhashable|can only concatenate|object of type",
    re.IGNORECASE,
)

Done = tuple[str, Any]  #: ("made", the value), ("refused", the exception) or ("late", None)


class Late(BaseException):
    """A call that takes too long."""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Ends what takes longer than `SECONDS`."""

    def end(*_: Any) -> None:
        raise Late

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def run(who: str, call: Callable[[], Any]) -> Done:
    """What a call of ``who``, "PyTorch" or "ours", came to."""
    say("who", who)
    try:
        with limited():
            return "made", call()
    except Late:
        return "late", None
    except builtins.Exception as error:
        return "refused", error
    finally:
        say("who", "both")


def kind(error: Any) -> type[BaseException]:
    """The built-in exception that an exception is."""
    return next(e for e in EXCEPTIONS if isinstance(error, e))


def said(error: Any) -> str:
    return f"{kind(error).__name__}: {' '.join(str(error).split())[:120]}"


def verdict(theirs: Done, mine: Done) -> str | None:
    """How the libraries differ on what a call came to; "" where both refuse it alike, None where both accept it."""
    (how, expected), (own, got) = theirs, mine
    if how == "late":
        return ""
    if own == "late":
        return "crash: ours takes too long"
    if own == "refused":
        alike = how == "refused" and isinstance(got, kind(expected))
        if how == "refused" and RAW.search(str(expected)) and (alike or not RAW.search(str(got))):  # PyTorch stumbles: of whatever kind
            return ""
        if (len(str(got)) > WORDS or RAW.search(str(got))) and str(got).split("(")[0] not in str(expected):
            return f"raw: ours {said(got)}; PyTorch {said(expected) if how == 'refused' else 'accepts it'}"
        if how != own:
            return f"refused: ours {said(got)}"
        return "" if alike else f"kind: ours {said(got)}; PyTorch {said(expected)}"
    return f"accepted: PyTorch {said(expected)}" if how == "refused" else None


def pattern(text: str) -> re.Pattern:
    """A pattern in which only ``*`` is special, for a whole line."""
    return re.compile(re.escape(text).replace(r"\*", ".*"), re.DOTALL)


def report(groups: list[Group], known: Iterable[tuple[str, Iterable[str]]], every: int, whole: bool) -> int:
    """Print what differs, worst first, and the figures; how the process ends.

    known: (reason, patterns of lines) of differences that stay. Of a ``whole`` walk each pattern has to be found.
    """
    patterns = [(reason, text, pattern(text)) for reason, texts in known for text in texts]
    calls, found, used, reasons = 0, [], set(), Counter[str]()
    for group, what, text in outcomes(groups, every):
        calls += 1
        if not text:
            continue
        line = f"{group} {what}: {text}"
        match = next(((reason, name) for reason, name, p in patterns if p.fullmatch(line)), None)
        if match is None:
            found.append((CATEGORIES.index(text.split(":")[0]), line))
        else:
            reasons[match[0]] += 1
            used.add(match[1])
    for _, line in sorted(found):
        print(line[:400])
    for reason, n in reasons.most_common():
        print(f"known, {n}: {reason}")
    stale = [name for _, name, _ in patterns if name not in used] if whole else []
    for name in stale:
        print(f"known, but not found: {name}")
    counts = Counter(CATEGORIES[c] for c, _ in found)
    print(f"{calls} calls; {len(found)} differ ({', '.join(f'{c} {counts[c]}' for c in CATEGORIES)}), {reasons.total()} are known to.")
    return 1 if found or stale else 0


def arguments(given: list[str]) -> tuple[str, int, list[str]]:
    """``WALK [--every N] [name…]``"""
    walk, *names = given
    if names[:1] == ["--every"]:
        return walk, int(names[1]), names[2:]
    return walk, 1, names
