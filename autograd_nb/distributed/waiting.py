"""How ranks wait: whether the program waits for what the communication thread does, and how its looks at MPI follow one another.

While the program does not wait it computes, and needs the core: the thread then rests between its looks, which otherwise follow at once. Where a
machine has more ranks than cores, those that wait rest soon, as the core is another's: whoever only yields it is given it again and again.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ..kernels.order import PATIENT, REST, SPIN, WANTED, WORDS

_SET_TIMER_SLACK = 29  #: of prctl

#: what the communication thread's kernel reads and writes, see `kernels.order`
words: np.ndarray = np.zeros(WORDS, np.int64)


def rest_exactly() -> bool:
    """Let rests of this thread, and of those that it starts from now on, end when they are to; whether they do.

    Linux lets a thread sleep some 50 µs longer unless it asks not to: see prctl(2), PR_SET_TIMERSLACK.
    """
    return sys.platform == "linux" and ctypes.CDLL(None).prctl(_SET_TIMER_SLACK, *map(ctypes.c_ulong, (1, 0, 0, 0))) == 0


def set_patience(words: np.ndarray, crowded: bool) -> None:
    """Say in an ``order`` how many looks follow at once, after how many there is a rest between two, and its microseconds.

    Measured with 3 ranks on 2 cores: rests of 20 µs, exact ones, give the shortest steps, those of 5 take milliseconds as the core is hardly given
    away. Where rests are longer than they are to be, they begin sooner.
    """
    if crowded:
        words[SPIN], words[PATIENT], words[REST] = 2, 80 if rest_exactly() else 20, 20
    else:
        words[SPIN], words[PATIENT], words[REST] = 500, 20_000, 50


set_patience(words, crowded=False)


@contextmanager
def awaited() -> Iterator[None]:
    """Wait inside. Where two threads do, the first to end lets the other wait a little longer."""
    words[WANTED] = 1
    try:
        yield
    finally:
        words[WANTED] = 0
