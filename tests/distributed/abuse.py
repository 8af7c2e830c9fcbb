"""Whatever one rank does in whichever collective, all end soon, with an error that has a name: ``python -m tests.distributed.abuse [SECONDS [SEED]]``.

Every case is a job of two or three ranks, forked from a process that has imported everything, which meet at a port. All have made each call before,
so that nothing is compared with others any more before it is sent.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import random
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from datetime import timedelta

import autograd_nb as torch
import autograd_nb.distributed as dist

LIMIT = 0.6  #: seconds that the group lets a call wait
PATIENCE = 300  #: seconds that a case may take on a machine that does much else
SIZE, OP = 64, "SUM"


def _parts(k, x):
    return [x.clone() for _ in range(k)]


#: name -> (what is called of (ranks, own rank, tensor, reduction, root), what its ranks must have alike)
CALLS = {
    "all_reduce": (lambda k, r, x, op, root: dist.all_reduce(x, op), "dtype size op"),
    "reduce": (lambda k, r, x, op, root: dist.reduce(x, root, op), "dtype size op root"),
    "broadcast": (lambda k, r, x, op, root: dist.broadcast(x, root), "dtype size root"),
    "all_gather": (lambda k, r, x, op, root: dist.all_gather(_parts(k, x), x), "dtype size"),
    "all_gather_into_tensor": (lambda k, r, x, op, root: dist.all_gather_into_tensor(x.repeat(k), x), "dtype size"),
    "gather": (lambda k, r, x, op, root: dist.gather(x, _parts(k, x) if r == root else None, root), "dtype size root"),
    "scatter": (lambda k, r, x, op, root: dist.scatter(x, _parts(k, x) if r == root else None, root), "dtype size root"),
    "reduce_scatter": (lambda k, r, x, op, root: dist.reduce_scatter(x, _parts(k, x), op), "dtype size op"),
    "reduce_scatter_tensor": (lambda k, r, x, op, root: dist.reduce_scatter_tensor(x, x.repeat(k), op), "dtype size op"),
    "all_to_all_single": (lambda k, r, x, op, root: dist.all_to_all_single(x.repeat(k), x.repeat(k)), "dtype size"),
    "all_to_all": (lambda k, r, x, op, root: dist.all_to_all(_parts(k, x), _parts(k, x)), "dtype size"),
    "barrier": (lambda k, r, x, op, root: dist.barrier(), ""),
    "monitored_barrier": (lambda k, r, x, op, root: dist.monitored_barrier(timeout=timedelta(seconds=LIMIT)), ""),
    "all_gather_object": (lambda k, r, x, op, root: dist.all_gather_object([None] * k, r), ""),
    "gather_object": (lambda k, r, x, op, root: dist.gather_object(r, [None] * k if r == root else None, root), "root"),
    "broadcast_object_list": (lambda k, r, x, op, root: dist.broadcast_object_list([r], root), "root"),
    "scatter_object_list": (lambda k, r, x, op, root: dist.scatter_object_list([None], list(range(k)) if r == root else None, root), "root"),
    "new_group": (lambda k, r, x, op, root: dist.new_group([0, 1]), ""),
}  # fmt: skip
#: what a rank does -> what some rank must say: any of these; killed ranks may end the others without a word
ABUSES = {
    "exception": ("KeyError: 'abuse'",),
    "exits": ("has ended its part", "failed to pass monitoredBarrier", "has ended all", "is gone"),
    "killed": (),
    "stopped": ("does not answer", "failed to pass monitoredBarrier"),
    "spinning": ("is in no collective", "failed to pass monitoredBarrier", "does not answer"),
    "misordered": ("Detected mismatch", "MPI error", "failed to pass monitoredBarrier", "waited"),
    "dtype": ("Detected mismatch",), "size": ("Detected mismatch",), "op": ("Detected mismatch",), "root": ("Detected mismatch",),
}  # fmt: skip


def cases():
    """Every (what is done, collective, the other one where two change places, ranks, whose turn it is)."""
    for what, name, size in itertools.product(ABUSES, CALLS, (2, 3)):
        if what in ("dtype", "size", "op", "root") and what not in CALLS[name][1].split():
            continue
        others = [n for n in CALLS if n != name and n not in ("monitored_barrier", "new_group")] if what == "misordered" else [""]
        yield from ((what, name, other, size, rank) for other in others for rank in range(size))


def _tensor(what):
    return torch.ones(SIZE + (3 if what == "size" else 0), dtype=torch.float64 if what == "dtype" else torch.float32)


def _abused(what, name, other, size, rank, own):
    """Make the calls of one rank; ``own``: whether it is the one that goes wrong."""

    def call(which, wrong=""):
        reduction = getattr(dist.ReduceOp, "MAX" if wrong == "op" else OP)
        CALLS[which][0](size, rank, _tensor(wrong), reduction, 1 if wrong == "root" else 0)

    for which, wrong in itertools.product(CALLS, ("", *(w for w in ("dtype", "size", "op", "root") if w == what))):
        if which != "monitored_barrier" and (not wrong or wrong in CALLS[which][1].split()):
            call(which, wrong)
    dist.group.WORLD.timeout = LIMIT
    if own and what == "exception":
        raise KeyError("abuse")
    if own and what == "exits":
        sys.exit(3)
    if own and what == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if own and what == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    while own and what == "spinning":
        pass
    if what == "misordered":
        for which in (other, name) if own else (name, other):
            call(which)
    else:
        call(name, what if own else "")
    dist.barrier()
    print("THROUGH", flush=True)
    time.sleep(1)


def _rank(case, rank, port, file):
    """Be one rank, in a process of its own, until it ends."""
    for number in (1, 2):
        os.dup2(file, number)
    for word in [w for w in os.environ if w.startswith(("PMI", "MPI"))]:
        del os.environ[word]
    what, name, other, size, own = case
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    sys.stdout = sys.stderr = os.fdopen(1, "w", buffering=1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=PATIENCE))
    _abused(what, name, other, size, rank, own == rank)


def _forked(case, rank, port, file):
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setpgid(0, 0)
        _rank(case, rank, port, file)
        code = 0
    except SystemExit as leave:
        code = leave.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(BaseException):
            atexit._run_exitfuncs()
        os._exit(code)


def _port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def outcome(case):
    """Run a case: what is wrong with how it ended, "" where nothing is, and all that its ranks have written."""
    what, _, _, size, own = case
    with tempfile.TemporaryFile() as file:
        port = _port()
        pids = [_forked(case, rank, port, file.fileno()) for rank in range(size)]
        begin, left = time.monotonic(), dict(enumerate(pids))
        hangs = []
        while left:
            for rank, pid in list(left.items()):
                if os.waitpid(pid, os.WNOHANG)[0]:
                    del left[rank]
            if what == "stopped" and list(left) == [own]:
                break  # which nothing but a signal ends
            if time.monotonic() - begin > PATIENCE:
                hangs = list(left)
                break
            time.sleep(0.005)
        for rank, pid in left.items():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        file.seek(0)
        said = file.read().decode(errors="replace")
    if hangs:
        return f"ranks {hangs} hang", said
    if "THROUGH" in said and "Detected mismatch" not in said:
        return "ranks went on, and nobody was told", said
    if ABUSES[what] and not any(text in said for text in ABUSES[what]):
        return "no error says why", said
    return "", said


def walk(seconds, seed):
    """Run cases in an order that the seed gives, until the time is up: (how many, what went wrong)."""
    every, wrong, end, done = list(cases()), [], time.monotonic() + seconds, 0
    random.Random(seed).shuffle(every)
    turns = Counter()
    every.sort(key=lambda case: (turns.update([case[0]]), turns[case[0]])[1])  # one of each kind after another
    for case in every:
        if time.monotonic() > end:
            break
        done += 1
        found, said = outcome(case)
        if found:
            wrong.append(f"{case}: {found}\n{said[-3000:]}")
            print(wrong[-1], flush=True)
    return done, wrong


if __name__ == "__main__":
    seconds, seed = (float(sys.argv[1]) if len(sys.argv) > 1 else 1e9), (int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    done, wrong = walk(seconds, seed)
    print(f"{done} of {len(list(cases()))} cases, {len(wrong)} wrong")
    sys.exit(bool(wrong))
