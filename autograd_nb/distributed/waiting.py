"""How ranks wait: whether the program waits for what the communication thread does, and how its looks at MPI follow one another.

While the program does not wait it computes, and needs the core: the thread then rests between its looks, which otherwise follow at once. Where a
machine has more ranks than cores, those that wait rest soon, as the core is another's: whoever only yields it is given it again and again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ..kernels.order import PATIENT, REST, SPIN, WANTED, WORDS

#: what the communication thread's kernel reads and writes, see `kernels.order`
words: np.ndarray = np.zeros(WORDS, np.int64)


def set_patience(words: np.ndarray, crowded: bool) -> None:
    """Say in an ``order`` how many looks follow at once, after how many there is a rest between two, and its microseconds.

    (Linux makes a rest about 50 µs longer. Without that, measured, rests of a few microseconds cost milliseconds, but not those of 20.)
    """
    words[SPIN], words[PATIENT], words[REST] = (2, 20, 20) if crowded else (500, 20_000, 50)


set_patience(words, crowded=False)


@contextmanager
def awaited() -> Iterator[None]:
    """Wait inside. Where two threads do, the first to end lets the other wait a little longer."""
    words[WANTED] = 1
    try:
        yield
    finally:
        words[WANTED] = 0
