"""Whether the program waits for what the communication thread does.

While it does not it computes, and needs the core: the thread then rests between its looks at MPI, which otherwise follow at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ..kernels.order import WANTED, WORDS

#: what the communication thread's kernel reads and writes, see `kernels.order`
words: np.ndarray = np.zeros(WORDS, np.int64)


@contextmanager
def awaited() -> Iterator[None]:
    """Wait inside. Where two threads do, the first to end lets the other wait a little longer."""
    words[WANTED] = 1
    try:
        yield
    finally:
        words[WANTED] = 0
