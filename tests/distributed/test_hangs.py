"""Nothing hangs: whatever one rank does, all end soon, with a message that names who waits for whom."""

from __future__ import annotations

import re

import pytest

from .jobs import job, needs_mpi

pytestmark = needs_mpi

HEAD = """
import os, signal, sys, time
from datetime import timedelta
import autograd_nb as torch
import autograd_nb.distributed as dist
dist.init_process_group(timeout=timedelta(seconds=100))
rank = dist.get_rank()
x, y = torch.ones(1000, dtype=torch.float64), torch.ones(10, dtype=torch.float64)
for _ in range(3):
    dist.all_reduce(x); dist.broadcast(y, 0)
dist.group.WORLD.timeout = LIMIT
"""

#: seconds from what goes wrong to the end of all, beyond the limit of 2 s: asking, printing, ending, on a machine that does much else
SLACK = 120
AHEAD = "rank 0: all_reduce #7 float64[1000] SUM waited "


#: a limit that is not reached where something else ends the job at once
LONG = 100


def run(program, ranks=3, limit=2, **more):
    ended = job(ranks, "-c", (HEAD + program).replace("LIMIT", str(limit)), **more)
    assert ended.code != 0, ended.out
    assert ended.seconds < 2 + SLACK
    return ended.out


def test_an_exception_ends_all_ranks_with_its_traceback():
    out = run("if rank == 1: raise KeyError('in the middle')\ndist.all_reduce(x)", limit=LONG)
    assert "rank 1 ends all ranks by this exception" in out
    assert "KeyError: 'in the middle'" in out
    assert "waited" not in out  # long before the limit


def test_a_rank_that_exits_is_not_waited_for():
    out = run("if rank == 1: sys.exit(3)\ndist.all_reduce(x)", limit=LONG)
    assert "all_reduce #7 float64[1000] SUM cannot end: rank 1 has ended its part after #6" in out
    assert "waited" not in out


def test_a_rank_that_destroys_its_group_is_not_waited_for():
    out = run("if rank == 1: dist.destroy_process_group(); time.sleep(600)\ndist.all_reduce(x)")
    assert "rank 1 has ended its part after #6" in out


def test_a_message_from_a_rank_that_has_exited_is_not_waited_for():
    out = run("if rank == 1: sys.exit(3)\nif rank == 0: dist.recv(y, 1)\nelse: dist.all_reduce(x)")
    assert "recv float64[10] from 1 cannot end: rank 1 has ended its part" in out


def test_a_killed_rank_ends_all():
    assert "waited" not in run("if rank == 1: os.kill(os.getpid(), signal.SIGKILL)\ndist.all_reduce(x)", limit=LONG)


def test_a_stopped_rank_is_named():
    out = run("if rank == 2: os.kill(os.getpid(), signal.SIGSTOP)\nif rank == 1: time.sleep(600)\ndist.all_reduce(x)")
    assert AHEAD in out
    assert "rank 1 is in no collective (its last was broadcast #6 float64[10] from 0); rank 2 does not answer" in out


def test_a_spinning_rank_is_named():
    out = run("if rank == 1:\n  while True: pass\ndist.all_reduce(x)", ranks=2)
    assert AHEAD in out
    assert "rank 1 is in no collective (its last was broadcast #6 float64[10] from 0)" in out


def test_known_and_new_calls_in_one_place_are_named_where_both_wait():
    """A reduction that was compared before, and a broadcast that waits to be compared."""
    out = run("dist.barrier()\nif rank == 1: time.sleep(600)\ndist.all_reduce(x) if rank == 0 else dist.broadcast(torch.ones(99), 0)", limit=LONG)
    assert "Detected mismatch between collectives on ranks" in out
    assert "all_reduce #8 float64[1000] SUM" in out
    assert "broadcast #8 float32[99] from 0" in out


ORDERS = """
dist.broadcast(x, 0)
first, second = lambda: dist.all_reduce(x), lambda: dist.broadcast(x, 0)
if rank == WHO: first, second = second, first
first(); second()
"""


def test_known_calls_in_another_order_are_named_long_before_the_limit():
    """Both were compared before, and have one size: two ranks wait for each other, or all go on with garbage, and end or call more."""
    for who, rest in ((0, ""), (1, "dist.destroy_process_group()"), (1, "while True: dist.all_reduce(x)")):
        out = run(ORDERS.replace("WHO", str(who)) + rest, ranks=2, limit=LONG)
        assert "waited" not in out
        assert "DifferentCallsError" in out or "ends all ranks, as a call failed" in out
        assert "Detected mismatch between collectives on ranks" in out
        assert "all_reduce #8 float64[1000] SUM" in out
        assert "broadcast #8 float64[1000] from 0" in out


def test_sizes_that_were_both_compared_are_named_where_they_meet():
    out = run("z = torch.ones(4)\nfor n in (4, 2): dist.all_reduce(z[:n])\ndist.all_reduce(z[:4 - rank])", ranks=2, limit=LONG)
    assert "Detected mismatch between collectives on ranks" in out


@pytest.mark.parametrize("detail", [False, True])
@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("dist.all_gather([x] * 3, x) if rank == 1 else dist.broadcast(x, 0)", "rank 1: all_gather #7 float64[1000]"),
        ("dist.all_reduce(x[:5 + rank])", "rank 2: all_reduce #7 float64[7] SUM"),
        ("dist.reduce(x, 0 if rank == 0 else 1)", "ranks 1, 2: reduce #7 float64[1000] SUM to 1"),
    ],
)
def test_different_calls_are_refused_at_once(program, text, detail):
    out = run(program, **({"TORCH_DISTRIBUTED_DEBUG": "DETAIL"} if detail else {}))
    assert "Detected mismatch between collectives on ranks" in out
    assert text in out


def test_detail_compares_known_calls_too():
    out = run("dist.all_reduce(x) if rank else dist.broadcast(y, 0)", TORCH_DISTRIBUTED_DEBUG="DETAIL")
    assert "Detected mismatch between collectives on ranks" in out
    assert "rank 0: broadcast #7 float64[10] from 0; ranks 1, 2: all_reduce #7 float64[1000] SUM" in out


def test_an_error_that_is_caught_ends_all_at_the_end():
    program = """
if rank == 1:
    time.sleep(8)
else:
    for _ in range(2):
        try:
            dist.all_reduce(x)
        except dist.DistBackendError as error:
            print("caught", error, flush=True)
"""
    out = run(program, ranks=2)
    assert "caught Timed out after 2.0 s: " + AHEAD in out
    assert "caught all_reduce #8 float64[1000] SUM cannot run, as an earlier call failed" in out


def test_a_message_that_never_comes_hurts_nothing_else():
    program = """
if rank == 0:
    try:
        dist.recv(y, 1)
    except dist.DistBackendError as error:
        print("caught", error, flush=True)
    dist.send(torch.ones(1), 1)
else:
    dist.recv(torch.zeros(1), 0) if rank == 1 else None
time.sleep(0.5 * rank)
"""
    ended = job(2, "-c", HEAD.replace("LIMIT", "2 + 98 * rank") + program)
    assert ended.code == 0, ended.out
    assert "caught Timed out after 2.0 s: rank 0: recv float64[10] from 1 waited " in ended.out
    assert "rank 1 is in recv float32[1] from 0" in ended.out


@pytest.mark.parametrize(("every", "named"), [(False, "Rank 1"), (True, "Ranks 1, 2")])
def test_a_monitored_barrier_names_who_is_missing(every, named):
    program = f"""
if rank in (1, 2):
    time.sleep(600)
dist.monitored_barrier(timeout=timedelta(seconds=1), wait_all_ranks={every})
"""
    out = run(program, ranks=4)
    assert f"[Rank 0]: {named} failed to pass monitoredBarrier in 1000 ms" in out


def test_a_group_that_not_all_ranks_make_is_named():
    out = run("if rank == 2: time.sleep(600)\ndist.new_group([0, 1])")
    assert "new_group #7 [0, 1] waited " in out
    assert "rank 2 is in no collective" in out


def test_what_was_begun_ends_before_the_program():
    ended = job(2, "-c", HEAD.replace("LIMIT", "100") + "dist.all_reduce(x, async_op=True)\nprint('end', rank, flush=True)")
    assert ended.code == 0, ended.out
    assert ended.out.count("end") == 2


def test_ranks_end_at_their_own_time():
    ended = job(2, "-c", HEAD.replace("LIMIT", "100") + "time.sleep(4 * rank)\nprint('end', rank, flush=True)")
    assert ended.code == 0, ended.out
    assert ended.out.count("end") == 2


COMPILED = """
total = torch.compile(lambda x: (y := x * 2, dist.all_reduce(y))[0], fullgraph=True)
dist.group.WORLD.timeout = 100
for _ in range(3): total(x)
dist.group.WORLD.timeout = LIMIT
"""


def test_a_compiled_call_names_a_stopped_rank():
    out = run(COMPILED + "if rank == 1: os.kill(os.getpid(), signal.SIGSTOP)\ntotal(x)", ranks=2)
    assert "rank 0: all_reduce #10 float64[1000] SUM waited " in out
    assert "rank 1 does not answer" in out


def test_a_killed_rank_ends_compiled_calls_of_others():
    assert "waited" not in run(COMPILED + "if rank == 1: os.kill(os.getpid(), signal.SIGKILL)\ntotal(x)", ranks=2, limit=LONG)


def test_a_compiled_call_names_a_spinning_rank():
    out = run(COMPILED + "if rank == 1:\n  while True: pass\ntotal(x)", ranks=2)
    assert "rank 0: all_reduce #10 float64[1000] SUM waited " in out
    assert "rank 1 is in no collective (its last was all_reduce #9 float64[1000] SUM" in out


STEPS = """
dist.group.WORLD.timeout = 100  # kernels are compiled
from autograd_nb.distributed.group import world
world.crowded = False  # more ranks than cores would wait for each bucket
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*[torch.nn.Linear(150, 150) for _ in range(4)]), bucket_cap_mb=0.08)
@torch.compile(fullgraph=True)
def step(x):
    model.zero_grad()
    model(x).sum().backward()
for _ in range(6): step(torch.ones(4, 150))
assert dist.group.WORLD.words[32] > 0
dist.group.WORLD.timeout = LIMIT
"""


def test_a_bucket_that_travels_names_a_stopped_rank():
    out = run(STEPS + "if rank == 2: os.kill(os.getpid(), signal.SIGSTOP)\nstep(torch.ones(4, 150))")
    assert re.search(r"rank 0: all_reduce #\d+ float32\[\d+\] AVG waited .*rank 2 does not answer", out)


def test_a_killed_rank_ends_others_whose_buckets_travel():
    out = run(STEPS + "if rank == 2: os.kill(os.getpid(), signal.SIGKILL)\nstep(torch.ones(4, 150))", limit=LONG)
    assert "waited" not in out


def test_an_exception_while_calls_travel_ends_all_at_once():
    """In a function that is being captured, whose memory MPI still writes into, and in a program that refuses a value."""
    capture = "torch.compile(lambda x: (dist.all_reduce(x * 2, async_op=True), 1 // (rank - 1))[0])(x)"
    known = "dist.all_reduce(x)\ntable = torch.ones(1 + rank); run = torch.compile(lambda x, i: (dist.all_reduce(x * 2, async_op=True), table[i] * 2)[1])"
    for program, error in (
        (f"dist.all_reduce(x)\nif rank != 1: time.sleep(90)\n{capture}", "ZeroDivisionError"),
        (
            f"{known}\nfor _ in range(3): run(x, i := torch.zeros(1, dtype=torch.int64))\nif rank: time.sleep(90)\nrun(x, i + 1)",
            "IndexError: index 1 is out of bounds",
        ),
    ):
        out = run("from autograd_nb.distributed.group import world\nworld.crowded = False; x = torch.ones(100_000)\n" + program, limit=LONG)
        assert "rank 0 ends all ranks by this exception" in out or "rank 1 ends all ranks by this exception" in out
        assert error in out
        assert "waited" not in out


def test_a_group_is_destroyed_while_calls_travel():
    """They end first, where the others make them too; where these have left, the call is given up."""
    program = """
from autograd_nb.distributed.group import world
world.crowded = False
def fails(x):
    dist.all_reduce(y := x * 2, async_op=True)
    raise KeyError
def begun():
    try: torch.compile(fails)(torch.ones(100_000))
    except KeyError: pass
begun()
words = dist.group.WORLD.words
dist.destroy_process_group()
landed = int(words[32]) == int(words[33]) == 1 and words[3] == 1 and words[0] == 1
dist.init_process_group(timeout=timedelta(seconds=100))
begun()
dist.barrier()
if rank == 0: begun()  # alone
words = dist.group.WORLD.words
dist.destroy_process_group()
print("landed", landed, int(words[0]), flush=True)
"""
    ended = job(2, "-c", HEAD.replace("LIMIT", "100") + program)
    assert ended.out.count("landed True 1") == 2, ended.out


def test_a_forked_process_is_told_that_it_has_no_group():
    program = """
def say(line): os.write(1, f"{line}\\n".encode())  # whole, beside the other rank's
total = torch.compile(lambda x: (y := x * 2, dist.all_reduce(y))[0], fullgraph=True)
for _ in range(3): total(x)
sys.stdout.flush()
child = os.fork()
if child == 0:
    for call in (total, dist.all_reduce):
        try: call(x)
        except dist.DistBackendError as error: say(f"child {dist.get_rank()} {error}")
    os._exit(0)  # as multiprocessing's workers do
os.waitpid(child, 0)
say(f"parent {total(x)[0].item()}")
"""
    ended = job(2, "-c", HEAD.replace("LIMIT", "100") + program)
    assert ended.code == 0, ended.out
    for rank in range(2):
        assert ended.out.count(f"child {rank} a forked process makes no collective calls") == 1
        assert f"child {rank} all_reduce #10 float64[1000] SUM cannot run, as an earlier call failed: a forked process" in ended.out
    assert ended.out.count("parent ") == 2


def test_compiled_calls_of_other_sizes_are_refused_at_once():
    out = run(COMPILED.replace("LIMIT", "100") + "total(x[:5 + rank])", ranks=2, limit=LONG)
    assert "waited" not in out
    assert "all_reduce #10 float64[5] SUM" in out
    assert "all_reduce #10 float64[6] SUM" in out


def test_a_compiled_call_and_another_one_are_named():
    out = run(COMPILED.replace("LIMIT", "2") + "total(x) if rank == 0 else dist.broadcast(y, 0)", ranks=2)
    assert "rank 0: all_reduce #10 float64[1000] SUM waited " in out or "rank 1: broadcast #10 float64[10] from 0 waited " in out


def test_a_compiled_call_does_not_wait_for_a_rank_that_exits():
    out = run(COMPILED.replace("LIMIT", "100") + "if rank == 1: sys.exit(3)\ntotal(x)", ranks=2, limit=LONG)
    assert "all_reduce #10 float64[1000] SUM cannot end: rank 1 has ended its part after #9" in out


def test_ranks_that_capture_known_calls_in_another_order_are_named():
    """Both kinds are known, so that nothing is compared before they are sent; they have one size, and end well by themselves."""
    program = """
def one(x):
    y = x * 2
    dist.all_reduce(y)
    dist.broadcast(y, 0)
    return y
def other(x):
    y = x * 2
    dist.broadcast(y, 0)
    dist.all_reduce(y)
    return y
dist.broadcast(x, 0)
torch.compile(other if rank == 1 else one)(x)
time.sleep(1)
for _ in range(10): dist.barrier(); time.sleep(0.1)
"""
    out = run(program, ranks=2, limit=LONG)
    assert "waited" not in out
    assert "DifferentCallsError" in out
    first, second = re.search(r"SUM at <string>:(\d+) in one; rank 1: broadcast #8 float64\[1000\] from 0 at <string>:(\d+) in other\.", out).groups()
    assert "Ranks captured different calls. rank 0: all_reduce #8 float64[1000] SUM at " in out
    assert int(second) == int(first) + 5


def test_ranks_that_capture_programs_of_other_lengths_are_named():
    """The call that only one of them has meets one of the other's next run, of the same kind, which is compared no more."""
    program = """
@torch.compile
def step(x):
    y = x * 2
    for _ in range(2 + (rank == 1)):
        dist.all_reduce(y)
    return y
for _ in range(10): step(x); time.sleep(0.2)
"""
    out = run(program, ranks=2, limit=LONG)
    assert "waited" not in out
    assert "Ranks captured different programs of step. rank 0: 2 calls, the last all_reduce #8 float64[1000] SUM at <string>:" in out
    assert "; rank 1: 3 calls, the last all_reduce #9 float64[1000] SUM at <string>:" in out
