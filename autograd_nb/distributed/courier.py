"""The courier: a thread that makes the calls which compiled programs hand over, so that a program computes while its buckets travel.

It waits in a kernel, without the interpreter's lock, on a semaphore that programs post; calls and results are handed over in the group's ``order``
(see `kernels.order`). Where the system has no such semaphores, programs make their calls themselves.
"""

from __future__ import annotations

import ctypes
import functools
import math
import sys
import threading
import time
from typing import Any

import numpy as np

from .. import launch
from ..kernels.order import CALL, CLOSED, GIVEN_UP, HANDED, LANDED, LANDING
from .failures import DistBackendError
from .mpi import NATIVE, address
from .thread import communication

PATIENCE = 1.0  #: seconds that the calls of a program may take that has ended early
_SERVE = launch.Kernel("collectives", "serve", outputs=1)


@functools.cache
def possible() -> bool:
    """Return whether there are semaphores in a program's own memory: on Linux (macOS has their names only)."""
    return NATIVE and sys.platform.startswith("linux") and hasattr(ctypes.CDLL(None), "sem_init")


class Courier:
    """The thread of one group, whose ``words`` it shares with programs."""

    def __init__(self, words: np.ndarray):
        self.words = words
        launch.interrupted.append(self.interrupted)
        self.travelling: list[tuple[np.ndarray, ...]] = []  # tickets and arrays of calls in functions that are being captured
        for sign in (CALL, LANDING):
            ctypes.CDLL(None).sem_init(ctypes.c_void_p(self._at(sign)), 0, 0)
        args = [address(name) for name in ("sem_wait", "sem_post", "MPI_Test", "sched_yield", "usleep")]
        with launch.unobserved():
            entry: Any = _SERVE.entry("serve", *args, words)
        threading.Thread(target=entry, args=(*args, words), name="autograd_nb-courier", daemon=True).start()

    def _at(self, word: int) -> int:
        return int(self.words.ctypes.data) + 8 * word

    def settle(self, limit: float = math.inf) -> bool:
        """Wait until all that was handed over has landed, or is given up; return whether it has after ``limit`` seconds."""
        end = time.monotonic() + limit
        while self.words[LANDED] < self.words[HANDED] and not self.words[GIVEN_UP] and time.monotonic() < end:
            time.sleep(1e-5)
        return bool(self.words[LANDED] >= self.words[HANDED])

    def interrupted(self) -> None:
        """Let the calls of a program land that has ended early; where they do not, as the others are elsewhere, no more calls are made here."""
        if not self.settle(PATIENCE) and not self.words[GIVEN_UP]:
            communication().broken = DistBackendError("a compiled function ended by an error while its calls were under way")
            self.words[GIVEN_UP] = 1

    def keep(self, ticket: np.ndarray, *arrays: np.ndarray) -> None:
        """Keep the arrays of a call while it travels: the function that is being captured may end by an exception."""
        self.travelling = [kept for kept in self.travelling if kept[0][0] > self.words[LANDED]]
        self.travelling.append((ticket, *arrays))

    def close(self) -> None:
        """Let the thread end, once it is through; what MPI may still write into stays."""
        communication().abandoned += [kept for kept in self.travelling if kept[0][0] > self.words[LANDED]]
        self.words[CLOSED] = 1
        launch.interrupted.remove(self.interrupted)
        for sign in (CALL, LANDING):
            ctypes.CDLL(None).sem_post(ctypes.c_void_p(self._at(sign)))
