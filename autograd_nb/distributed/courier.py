"""The courier: a thread that makes the calls which compiled programs hand over, so that a program computes while its buckets travel.

It waits in a kernel, without the interpreter's lock, on a semaphore that programs post; calls and results are handed over in the group's ``order``
(see `kernels.order`). Where the system has no such semaphores, programs make their calls themselves.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
import time
from typing import Any

import numpy as np

from .. import launch
from ..kernels.order import CALL, CLOSED, GIVEN_UP, HANDED, LANDED, LANDING
from .mpi import NATIVE, address

_SERVE = launch.Kernel("collectives", "serve", outputs=1)


@functools.cache
def possible() -> bool:
    """Return whether there are semaphores in a program's own memory: on Linux (macOS has their names only)."""
    return NATIVE and sys.platform.startswith("linux") and hasattr(ctypes.CDLL(None), "sem_init")


class Courier:
    """The thread of one group, whose ``words`` it shares with programs."""

    def __init__(self, words: np.ndarray):
        self.words = words
        for sign in (CALL, LANDING):
            ctypes.CDLL(None).sem_init(ctypes.c_void_p(self._at(sign)), 0, 0)
        args = [address(name) for name in ("sem_wait", "sem_post", "MPI_Test", "sched_yield", "usleep")]
        with launch.unobserved():
            entry: Any = _SERVE.entry("serve", *args, words)
        threading.Thread(target=entry, args=(*args, words), name="autograd_nb-courier", daemon=True).start()

    def _at(self, word: int) -> int:
        return int(self.words.ctypes.data) + 8 * word

    def settle(self) -> None:
        """Wait until all that was handed over has landed, or is given up."""
        while self.words[LANDED] < self.words[HANDED] and not self.words[GIVEN_UP]:
            time.sleep(1e-5)

    def close(self) -> None:
        """Let the thread end, once it is through."""
        self.words[CLOSED] = 1
        for sign in (CALL, LANDING):
            ctypes.CDLL(None).sem_post(ctypes.c_void_p(self._at(sign)))
