"""What `autocast` has switched on in a thread: whether products are computed in a lower precision, and in which.

What is cast is said in `autograd.autocasting`; here is only the state, which compiled functions and checkpoints look at as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..config import note_unusual
from ..dtypes import bfloat16, dtype, float16
from .modes import PerThread

__all__ = ["LOWER", "afresh", "as_it_was", "state", "surroundings"]

#: PyTorch's devices -> the dtype that autocast computes in there, if nobody says another
LOWER: Mapping[str, dtype] = {
    "cpu": bfloat16, "cuda": float16, "mps": float16, "xpu": float16, "hpu": bfloat16, "mtia": float16, "xla": bfloat16, "ipu": float16,
    "maia": bfloat16, "privateuseone": float16,
}  # fmt: skip


class _Casting(PerThread):
    to: dtype | None = None  # the dtype of products on the CPU; None: nothing is cast
    enabled: frozenset[str] = frozenset()  # devices for which autocast is on
    lower: Mapping[str, dtype] = LOWER
    cache = True  # whether what was made of a parameter is kept
    nesting = 0  # regions that the thread is in
    kept: dict[int, tuple[Any, ...]] | None = None  # id of a parameter -> (itself, its version, what it was cast to)


state: _Casting = _Casting()
used = False  #: until autocast is first switched on for the CPU, nobody need ask whether his thread has it


def begun() -> None:
    """Take note that there are threads from now on that have switched it on."""
    global used
    used = True
    note_unusual("autocast", True)


def _nothing(device: str, enabled: bool, lower: dtype) -> None:
    """Stand for what is not there yet: nothing has been switched on."""


switched: Callable[[str, bool, dtype], None] = _nothing  #: switches it on or off for a device in this thread; handed in by `autograd.autocasting`


@contextmanager
def afresh() -> Iterator[None]:
    """Have parameters cast anew for the length of a ``with`` block, and forget what they were cast to at its end."""
    kept, state.kept = state.kept, None
    try:
        yield
    finally:
        state.kept = kept


@contextmanager
def as_it_was(then: Any) -> Iterator[None]:
    """Have what `surroundings` gave before in force for the length of a ``with`` block, with parameters cast anew."""
    before = surroundings()
    for_cpu, after = ((None, bfloat16, True) if s is None else s for s in (then, before))
    with afresh():
        if before != then:
            _set(*for_cpu)
        try:
            yield
        finally:
            if before != then:
                _set(*after)


def _set(to: dtype | None, lower: dtype, cache: bool) -> None:
    switched("cpu", to is not None, lower)
    state.cache = cache


def surroundings() -> Any:
    """Return what a compiled function may depend on: the dtypes of products within, and of regions that begin within. None if nothing was set."""
    if not used:
        return None
    lower = state.lower.get("cpu")
    return None if state.to is None and lower is bfloat16 and state.cache else (state.to, lower, state.cache)
