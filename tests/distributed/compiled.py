"""Collectives inside of compiled functions, checked on every rank of one MPI job beside the same functions run eagerly."""

from __future__ import annotations

import threading
import time
import warnings

import numpy as np
import pytest

import autograd_nb as torch
import autograd_nb.distributed as dist
import autograd_nb.nn.functional as F
from autograd_nb import nn
from autograd_nb.distributed.algorithms.ddp_comm_hooks import default_hooks as hooks
from autograd_nb.distributed.courier import possible
from autograd_nb.distributed.group import world
from autograd_nb.distributed.thread import communication
from autograd_nb.kernels.order import HANDED, LANDED, LANDING
from autograd_nb.nn.parallel import DistributedDataParallel as DDP


def me():
    return dist.get_rank(), dist.get_world_size()


def native():
    """How many collectives compiled programs have run."""
    return int(dist.group.WORLD.words[0])


def check_collectives_in_a_program_are_those_outside():
    rank, size = me()

    def calls(x):
        y = x * 2 + rank
        dist.all_reduce(y)
        work = dist.all_reduce(top := x + rank, dist.ReduceOp.MAX, async_op=True)
        work.wait()
        dist.broadcast(y, size - 1)
        every = x.new_zeros(size * 4)
        dist.all_gather_into_tensor(every, y + rank)
        mine = x.new_zeros(4)
        dist.reduce_scatter_tensor(mine, every * (rank + 1), dist.ReduceOp.AVG)
        return y * 3, top, every, mine

    for dtype in (torch.float32, torch.float64):
        compiled = torch.compile(calls, fullgraph=True)
        for i in range(4):
            x = torch.arange(4, dtype=dtype) * i
            before = native()
            for found, wanted in zip(compiled(x), calls(x), strict=True):
                assert torch.equal(found, wanted)
            assert native() == before + 5


def check_equal_calls_in_a_program_all_happen():
    @torch.compile(fullgraph=True)
    def calls(x):
        for _ in range(3):
            dist.all_reduce(x.clone())  # whose result nobody reads
        return x + 1

    for _ in range(3):
        before = native()
        calls(torch.ones(3))
        assert native() == before + 3


def check_calls_begun_before_end_first():
    size = dist.get_world_size()

    @torch.compile(fullgraph=True)
    def total(x):
        y = x.clone()
        dist.all_reduce(y)
        return y

    for i in range(6):
        many = [torch.full((1000,), float(k)) for k in range(5)]
        works = [dist.all_reduce(t, async_op=True) for t in many]
        assert total(torch.ones(2) * i).tolist() == [i * size] * 2
        for k, work in enumerate(works):
            work.wait()
            assert many[k][0].item() == k * size


def check_a_program_is_captured_while_calls_of_other_kinds_wait():
    """Both kinds are new: they are compared in the order in which the program makes them, however late Python's calls begin."""
    rank, size = me()
    for i in range(5):
        if i % size == rank:
            communication().in_order(lambda: time.sleep(0.1))
        t, x = torch.ones(20 + i), torch.ones(30 + i)
        work = dist.all_reduce(t, async_op=True)
        total = torch.compile(lambda x: (y := x * 2, dist.all_reduce(y))[0], fullgraph=True)
        assert total(x)[0].item() == 2 * size
        work.wait()
        assert t[0].item() == size


def check_what_a_program_cannot_call_runs_eagerly():
    rank, size = me()

    def calls(x):
        every = [torch.zeros(2) for _ in range(size)]
        dist.all_gather(every, x)
        return sum(every)

    compiled = torch.compile(calls)
    with pytest.warns(UserWarning, match="runs eagerly"):
        found = compiled(torch.ones(2) * rank)
    assert found.tolist() == [size * (size - 1) / 2] * 2
    assert compiled(torch.ones(2)).tolist() == [size] * 2


def train(compiled, norm=False, optimizer=torch.optim.Adam, prints=False, bias=True, **options):
    rank, _ = me()
    torch.manual_seed(0)
    layers = [nn.Linear(5, 16, bias=bias), *([nn.BatchNorm1d(16)] if norm else []), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3)]
    model = DDP(nn.Sequential(*layers).double(), **options)
    moves = optimizer(model.parameters(), lr=0.01)
    made = np.random.default_rng(rank)
    batches = [(torch.from_numpy(made.standard_normal((6, 5))), torch.from_numpy(made.standard_normal((6, 3)))) for _ in range(7)]

    def step(x, y):
        moves.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        moves.step()
        if prints:
            print(end="")
        return loss

    run = torch.compile(step, fullgraph=compiled == "whole") if compiled else step
    before = native()
    losses = [run(x, y).item() for x, y in batches]
    return losses, [p.grad for p in model.parameters()], [*model.parameters(), *model.buffers()], native() - before


def same(a, b):
    np.testing.assert_allclose(a[0], b[0], rtol=1e-14)
    for x, y in zip([*a[1], *a[2]], [*b[1], *b[2]], strict=True):
        np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=1e-14, atol=2e-16)


def check_a_compiled_training_step_is_the_eager_one():
    """The bias before a batch norm has no effect, and so gradients of 1e-17: SGD leaves them as small, but Adam divides by their size."""
    for options in (
        {}, {"norm": True, "bias": False}, {"norm": True, "optimizer": torch.optim.SGD}, {"gradient_as_bucket_view": True}, {"bucket_cap_mb": 0.0005},
    ):  # fmt: skip
        eager, whole = train(False, **options), train("whole", **options)
        same(eager, whole)
        assert whole[3] > 0


def check_a_rank_that_runs_eagerly_works_with_compiled_ones():
    rank, _ = me()
    eager = train(False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(eager, train(True, prints=rank == 0))


def check_a_forward_pass_alone_is_not_captured():
    """Its gradients are reduced outside, which no program would begin."""
    rank, size = me()
    torch.manual_seed(0)
    model = DDP(nn.Linear(3, 2).double())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forward = torch.compile(lambda x: model(x).sum())
        for i in range(6):
            model.zero_grad()
            forward(torch.full((1, 3), float(rank + i)).double()).backward()
            mean = i + (size - 1) / 2
            np.testing.assert_allclose(model.module.weight.grad.numpy(), np.full((2, 3), mean))


def check_a_hook_lets_the_step_run_eagerly():
    torch.manual_seed(0)
    model = DDP(nn.Linear(3, 2))
    model.register_comm_hook(None, hooks.allreduce_hook)

    def step(x):
        model.zero_grad()
        model(x).sum().backward()

    compiled = torch.compile(step)
    with pytest.warns(UserWarning, match="by itself"):
        [compiled(torch.ones(1, 3)) for _ in range(4)]


def steps(model, compiled):
    """Losses and parameters of some steps, and how many calls their programs handed over."""
    moves = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    made = np.random.default_rng(me()[0])

    def step(x):
        moves.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        moves.step()
        return loss

    run, words = torch.compile(step, fullgraph=True) if compiled else step, dist.group.WORLD.words
    before = int(words[HANDED])
    losses = [run(torch.from_numpy(made.standard_normal((8, 150))).to(next(model.parameters()).dtype)).item() for _ in range(12)]
    assert words[HANDED] == words[LANDED]
    return losses, [p.detach() for p in model.parameters()], int(words[HANDED]) - before


def deep(dtype):
    torch.manual_seed(0)
    layers = [layer for _ in range(4) for layer in (nn.Linear(150, 150), nn.Tanh())]
    return DDP(nn.Sequential(*layers).to(dtype), bucket_cap_mb=0.08)


def check_buckets_travel_while_a_program_computes(monkeypatch):
    """They are the bits of a program that waits for each, as programs of more ranks than cores do; all but the last of a step are handed over."""
    rank, size = me()
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        monkeypatch.setattr(world, "crowded", False)
        model = deep(dtype)
        found = steps(model, True)
        monkeypatch.setattr(world, "crowded", True)
        waiting = steps(deep(dtype), True)
        buckets = len(model.reducer.buckets)
        assert buckets > 2
        assert found[2] >= (buckets - 1) * 9 * possible()  # the first steps have another order of buckets
        assert waiting[2] == 0
        assert found[0] == waiting[0]
        for a, b in zip(found[1], waiting[1], strict=True):
            assert torch.equal(a, b)
            every = [torch.empty_like(a) for _ in range(size)]
            dist.all_gather(every, a)
            assert torch.equal(every[rank - 1], a)


def check_calls_outside_keep_their_place_among_those_handed_over(monkeypatch):
    rank, size = me()
    monkeypatch.setattr(world, "crowded", False)
    model = deep(torch.float64)
    moves = torch.optim.SGD(model.parameters(), lr=0.1)

    @torch.compile(fullgraph=True)
    def step(x):
        moves.zero_grad()
        model(x).square().mean().backward()
        moves.step()

    for i in range(8):
        x, y = torch.full((5,), float(i)), torch.full((7,), float(rank))
        before = dist.all_reduce(x, async_op=True)
        step(torch.ones(4, 150, dtype=torch.float64) * (rank + 1))
        after = dist.all_reduce(y, async_op=True)
        dist.broadcast(z := torch.full((3,), float(rank)), size - 1)
        before.wait(), after.wait()
        assert x[0].item() == i * size
        assert y[0].item() == size * (size - 1) / 2
        assert z[0].item() == size - 1


def check_calls_travel_until_they_are_waited_for(monkeypatch):
    """In any order, or by nobody; a second wait, a future and what it is followed by find what has come."""
    rank, size = me()
    monkeypatch.setattr(world, "crowded", False)
    n, words, kept = 30_000 * size, dist.group.WORLD.words, []

    def calls(x):
        a, b, c, part = x * 2 + rank, x + rank, x - rank, torch.empty(n // size)
        first = dist.all_reduce(a, async_op=True)
        second = dist.all_reduce(b, dist.ReduceOp.AVG, async_op=True)
        third = dist.reduce_scatter_tensor(part, c, async_op=True)
        dist.all_reduce(d := x.clone(), async_op=True)
        y = (x * x).sum()
        assert second.wait()
        assert third.wait()
        assert first.is_completed()
        assert first.wait()
        assert first.exception() is None
        tens = second.get_future().then(lambda f: f.value()[0] * 10).wait()
        return a + 1, b, part, d, y, tens

    compiled = torch.compile(calls, fullgraph=True)
    for i in range(5):
        x = torch.arange(float(n)) * i
        handed = int(words[HANDED])
        found = compiled(x)
        assert words[HANDED] == words[LANDED] == handed + 4 * possible()
        for a, b in zip(found, calls(x), strict=True):
            assert torch.equal(a, b)

    @torch.compile(fullgraph=True)
    def left(x):
        kept[:] = [dist.all_reduce(y := x * 2, async_op=True)]
        return y

    for i in range(3):
        assert left(torch.full((n,), float(i)))[-1].item() == 2 * i * size
        assert kept[0].wait()


def check_an_error_behind_a_call_ends_a_program_there(monkeypatch):
    """What was sent is not sent a second time, and what travels is not waited for in vain: other ranks see nothing of it."""
    rank, size = me()
    monkeypatch.setattr(world, "crowded", False)
    table, words = torch.arange(50.0 if rank == 0 else 10.0), dist.group.WORLD.words

    def pick(x, i):
        y, i = x * 2, i.clone()
        work = dist.all_reduce(y, async_op=True)
        dist.all_reduce(i, dist.ReduceOp.MAX)
        z = table[i].sum()
        work.wait()
        return y, z

    compiled = torch.compile(pick, fullgraph=True)
    for i in range(6):
        before, x = dist.all_reduce(torch.ones(3), async_op=True), torch.full((30_000,), float(i))
        done, beyond = int(words[0]), i in (2, 3)
        for run in (compiled, pick):
            if beyond and rank:
                with pytest.raises(IndexError, match="index 20 is out of bounds for dimension 0 with size 10"):
                    run(x, torch.tensor([1, 20]))
            else:
                y, z = run(x, torch.tensor([1, 20 if beyond else 2]))
                assert y[7].item() == 2 * i * size
                assert z.item() == (21 if beyond else 3)
        before.wait()
        assert words[0] == done + 2
    dist.barrier()


def check_threads_share_a_group():
    """Programs of several threads hand calls over and take them as they land: each wakes who waits for it, and no sign is left."""
    failed, signs = [], int(dist.group.WORLD.words[LANDING]) & 0xFFFFFFFF

    def work():
        @torch.compile
        def step(x):
            a, b = x * 2, x + 1
            first, second = (dist.all_reduce(t, async_op=True) for t in (a, b))
            second.wait()
            first.wait()
            return a + x, b

        x = torch.ones(20_000)
        ready.wait()  # captured by one thread after another, so that ranks agree
        with lock:
            for _ in range(4):
                step(x)
        ready.wait()
        try:
            for _ in range(150):
                a, b = step(x)
                assert torch.all(a == 2 * dist.get_world_size() + 1)
                assert torch.all(b == 2 * dist.get_world_size())
        except Exception as error:
            failed.append(error)

    ready, lock = threading.Barrier(4), threading.Lock()
    threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(100)
    assert not any(t.is_alive() for t in threads)
    assert not failed
    assert int(dist.group.WORLD.words[LANDING]) & 0xFFFFFFFF == signs
