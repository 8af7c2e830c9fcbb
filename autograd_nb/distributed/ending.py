"""How one rank's end reaches the others: an exception ends all of them, and nobody waits for a rank that has gone.

An exception that nobody catches is printed and ends the job at once (MPI_Abort). A rank that ends otherwise says so to the others before it
waits for them, as MPI makes it wait at the end: a call that would need it fails there.
"""

from __future__ import annotations

import atexit
import inspect
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from ..ops.core.guesses import guess_keyword
from . import rendezvous
from .thread import communication
from .watch import holder

PARTING = 0.3  #: seconds for what was written to arrive, and for other ranks that fail as well to say why


def end_together(MPI: Any, leave: Callable[[], None]) -> None:
    """Set what happens at the end of this process, what `sys.excepthook` and `atexit` do then."""
    if MPI.COMM_WORLD.Get_size() > 1:
        shown = inspect.unwrap(sys.excepthook)

        def hook(kind: Any, error: Any, trace: Any) -> None:
            head = f"rank {holder.watch.rank if holder.watch else 0} ends all ranks by this exception:\n"
            guess_keyword(error, trace)
            if shown is sys.__excepthook__:  # in one piece, as other ranks write too
                sys.stderr.write(head + "".join(traceback.format_exception(kind, error, trace)))
            else:
                sys.stderr.write(head)
                shown(kind, error, trace)
            _abort(MPI)

        sys.excepthook = hook
    atexit.register(_at_exit, MPI, leave)
    processes = sys.modules.get("multiprocessing.util")
    if processes is not None and sys.modules["multiprocessing"].parent_process() is not None:  # forked ones end without `atexit`
        processes.Finalize(None, _at_process_exit, (MPI, leave), exitpriority=100)


def _at_process_exit(MPI: Any, leave: Callable[[], None]) -> None:
    _at_exit(MPI, leave)
    if not MPI.Is_finalized():
        MPI.Finalize()


def _abort(MPI: Any) -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # it is closed, or is none
            pass
    time.sleep(PARTING)
    MPI.COMM_WORLD.Abort(1)


def _at_exit(MPI: Any, leave: Callable[[], None]) -> None:
    thread, watch = communication(), holder.watch
    if watch is None or MPI.Is_finalized():
        return
    rest = threading.Event()
    while thread.broken is None and not thread.idle():  # what was begun ends first, or is given up by the watch
        rest.wait(0.001)
    if thread.broken is not None:  # it is inside of MPI, which therefore cannot end
        print(f"rank {watch.rank} ends all ranks, as a call failed: {thread.broken}", file=sys.stderr)
        _abort(MPI)
    leave()
    watch.goodbye()
    if communication().broken is not None:  # other calls were made here than elsewhere, which came out last
        print(f"rank {watch.rank} ends all ranks, as a call failed: {communication().broken}", file=sys.stderr)
        _abort(MPI)
    holder.watch = None
    rendezvous.leave()
