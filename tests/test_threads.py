"""Kernels on several threads: the same bits for any number of them, and no harm from threads, forks, errors and signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb import launch
from autograd_nb.codegen import threads
from autograd_nb.codegen.build import compilation, pool
from autograd_nb.graph import noted, recurring

from .ops.samples import SAMPLES, Sample, tensors

BIG = 400_037  #: elements: enough to be split, and not a multiple of anything


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The number of threads as it was; and launches are split that are too small for it, so that tests are quick."""
    before = torch.get_num_threads()
    monkeypatch.setattr(threads, "WORTH", 3 << 17)
    monkeypatch.setattr(threads, "MANY", 1 << 22)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of pieces of every launch that was split, or that are wanted of it."""
    seen: list[int] = []
    run, cut = pool.Pool.run, pool.Pool.cut

    def counted(self: pool.Pool, entry: Callable, parts: list[tuple], number: int) -> None:
        seen.append(len(parts))
        run(self, entry, parts, number)

    def counted_cut(self: pool.Pool, entry: Callable, args: tuple, length: int, step: int, wanted: int, *rest: int) -> None:
        seen.append(wanted)
        cut(self, entry, args, length, step, wanted, *rest)

    monkeypatch.setattr(pool.Pool, "run", counted)
    monkeypatch.setattr(pool.Pool, "cut", counted_cut)
    return seen


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    """Normal numbers that do not depend on this library."""
    return torch.tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def with_gradients(f: Callable, *tensors: torch.Tensor) -> list[bytes]:
    """The bytes of f's value and of its gradients."""
    leaves = [t.clone().requires_grad_() for t in tensors]
    y = f(*leaves)
    g = random(*y.shape, seed=9)
    return [t.detach().numpy().tobytes() for t in (y, *torch.autograd.grad(y, leaves, g))]


def flat(x, y):
    return (x * y).tanh() + x.exp() / 3


def wide(x, y):
    return F.softplus(x) * y


F = torch.nn.functional


def conv(**how):
    return lambda x, w, b: F.conv2d(x, w, b, **how)


def attend(x, y, z, m):
    return F.scaled_dot_product_attention(x, y, z, m.detach()) + m.sum() * 0


CASES: dict[str, tuple[Callable, list[tuple[int, ...]]]] = {
    "flat": (flat, [(BIG,), (BIG,)]),
    "overwritten gradient": (lambda x: x.exp().sin().tanh(), [(BIG,)]),
    "transposed": (lambda x, y: x.t() * y, [(601, 700), (700, 601)]),
    "broadcast": (wide, [(700, 601), (601,)]),
    "broadcast column": (wide, [(700, 601), (700, 1)]),
    "long inner loop": (lambda x: x[:, 1::2] * 3, [(3, 400_001)]),
    "sum over rows": (lambda x: x.sum(0), [(700, 601)]),
    "sum along rows": (lambda x: x.sum(1), [(700, 601)]),
    "sum in the middle": (lambda x: x.sum(1), [(20, 200, 101)]),
    "sum of everything": (lambda x: x.sum(), [(3_000_037,)]),
    "sum of long columns": (lambda x: x.sum(0), [(16_001, 130)]),
    "sum of a few long rows": (lambda x: x.exp().mean((0, 2)), [(5, 3, 200_003)]),
    "mean of a transposed formula": (lambda x, y: F.mse_loss(x.t(), y), [(1201, 1300), (1300, 1201)]),
    "largest of everything": (lambda x: x.amax(), [(3_000_037,)]),
    "softmax": (lambda x: x.softmax(1), [(700, 601)]),
    "softmax in the middle": (lambda x: x.log_softmax(1), [(20, 200, 101)]),
    "softmax of columns": (lambda x: x.log_softmax(0), [(300, 1301)]),
    "layer norm": (lambda x, w, b: F.layer_norm(x, (601,), w, b), [(700, 601), (601,), (601,)]),
    "batch norm": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), [(20, 30, 25, 31), (30,), (30,)],
    ),
    "product": (torch.mm, [(515, 130), (130, 201)]),
    "product of few rows": (lambda x, y: x @ y.t(), [(70, 130), (777, 130)]),
    "product of long and narrow matrices": (lambda x, y: x.t() @ y, [(3001, 60), (3001, 70)]),
    "product of pairs": (torch.mm, [(700, 2), (2, 601)]),
    "products of three": (torch.bmm, [(3, 150, 90), (3, 90, 80)]),
    "products": (torch.bmm, [(11, 70, 90), (11, 90, 80)]),
    "large products": (torch.bmm, [(2, 300, 90), (2, 90, 280)]),
    "linear": (F.linear, [(900, 130), (201, 130), (201,)]),
    "products of four": (torch.bmm, [(4, 150, 90), (4, 90, 80)]),
    "matrix and vector": (lambda x, v: x @ v, [(3000, 1501), (1501,)]),
    "vector and matrix": (lambda v, x: v @ x, [(701,), (701, 1300)]),
    "turned matrix and vector": (lambda x, v: x.t() @ v, [(701, 1030), (701,)]),
    "running sums of rows": (lambda x: x.cumsum(1), [(703, 601)]),
    "running sums of matrices": (lambda x: x.cumsum(1), [(20, 200, 101)]),
    "running products": (lambda x: (x / 9 + 1).cumprod(1), [(703, 601)]),
    "running extremes": (lambda x: x.cummax(1).values, [(703, 601)]),
    "running sums of exponentials": (lambda x: x.logcumsumexp(1), [(703, 601)]),
    "convolution of small images": (conv(padding=1), [(71, 6, 8, 8), (10, 6, 3, 3), (10,)]),
    "convolution of large images": (conv(padding=1), [(6, 8, 60, 61), (12, 8, 3, 3), (12,)]),
    "convolution of many channels": (conv(padding=1), [(3, 60, 6, 7), (130, 60, 3, 3), (130,)]),
    "convolution in groups": (conv(stride=2, groups=2), [(9, 8, 60, 61), (12, 4, 3, 3), (12,)]),
    "1 x 1 convolution": (conv(), [(6, 16, 40, 41), (20, 16, 1, 1), (20,)]),
    "transposed convolution": (lambda x, w: F.conv_transpose2d(x, w, stride=2), [(20, 8, 21, 20), (8, 12, 3, 3)]),
    "pooling of pairs": (lambda x: F.max_pool2d(x, 2), [(7, 9, 80, 90)]),
    "max pooling": (lambda x: F.max_pool2d(x, 3, 2, 1), [(7, 9, 80, 90)]),
    "average pooling": (lambda x: F.avg_pool2d(x, 3, 2, 1), [(7, 9, 80, 90)]),
    "cross entropy": (lambda x: F.cross_entropy(x, torch.arange(700) % 601), [(700, 601)]),
    "weighted cross entropy of columns": (
        lambda x, w: F.cross_entropy(x, torch.arange(2000).reshape(20, 100) % 201, w.detach().abs(), ignore_index=7) + w.sum() * 0,
        [(20, 201, 100), (201,)],
    ),
    "embedding": (lambda w: F.embedding(torch.arange(5000).reshape(50, 100) * 7 % 301, w), [(301, 96)]),
    "picked columns": (lambda x: x[:, torch.arange(900) * 11 % 601], [(700, 601)]),
    "picked rows of matrices": (lambda x: x[:, :, torch.arange(90) * 11 % 61], [(7, 20, 61, 70)]),
    "gathered along rows": (lambda x: x.gather(1, torch.arange(500) * 7 % 601 + torch.zeros(700, 1, dtype=torch.int64)), [(700, 601)]),
    "gathered by an expanded index": (lambda x: x.gather(1, (torch.arange(500) * 7 % 601).expand(700, 500)), [(700, 601)]),
    "gathered from matrices": (lambda x: x.gather(2, (torch.arange(90) * 7 % 61)[:, None].expand(7, 20, 90, 70) % 60 * 0), [(7, 20, 61, 70)]),
    "gathered along columns": (lambda x: x.gather(0, (torch.arange(900) * 11 % 700)[:, None].expand(900, 601)), [(700, 601)]),
    "added by an index": (lambda x, y: x.scatter_add(1, (torch.arange(500) * 7 % 300).expand(700, 500), y), [(700, 601), (700, 500)]),
    "rows added by an index": (lambda x, y: x.scatter_add(0, (torch.arange(500) * 7 % 300).view(-1, 1).expand(500, 700), y), [(601, 700), (500, 700)]),
    "rows added at places": (lambda x, y: x.index_add(0, torch.arange(500) * 7 % 301, y), [(601, 700), (500, 700)]),
    "greatest of rows": (
        lambda x, y: x.scatter_reduce(0, (torch.arange(500) * 7 % 300).view(-1, 1).expand(500, 700), y, "amax"), [(601, 700), (500, 700)],
    ),
    "columns added by an index": (lambda x, y: x.scatter_add(0, torch.arange(350_000).reshape(500, 700) * 7 % 300, y), [(601, 700), (500, 700)]),
    "rows gathered": (lambda x: x.gather(0, (torch.arange(500) * 7 % 300).view(-1, 1).expand(500, 700)), [(601, 700)]),
    "norm of an odd number": (lambda x: x.reshape(-1)[:333_331].norm(), [(601, 700)]),
    "picked rows": (lambda x: x.index_select(0, torch.arange(900) * 11 % 700), [(700, 601)]),
    "joined rows": (lambda x, y: torch.cat([x, y], 1), [(700, 601), (700, 200)]),
    "joined ends": (lambda x, y, z: torch.cat([x, y, z]), [(700, 601), (3, 601), (200, 601)]),
    "stacked": (lambda x, y: torch.stack([x, y]), [(700, 601), (700, 601)]),
    "reversed": (lambda x: x.flip(1).flip(0), [(700, 601)]),
    "rolled": (lambda x: x.roll((3, 5), (0, 1)), [(700, 601)]),
    "reflected": (lambda x: F.pad(x, (2, 3, 1, 2), mode="reflect"), [(20, 30, 25, 31)]),
    "the largest of rows": (lambda x: x.topk(3, 1).values, [(700, 601)]),
    "sorted rows": (lambda x: x.sort(1).values, [(700, 601)]),
    "short sorted rows": (lambda x: x.sort(1).values, [(9000, 60)]),
    "medians": (lambda x: x.median(1).values, [(700, 601)]),
    "searched": (lambda x: x * torch.searchsorted(x[0].detach().sort().values, x.detach()), [(700, 601)]),
    "searched row by row": (lambda x: x * torch.searchsorted(x.detach().sort(1).values, x.detach(), right=True), [(700, 601)]),
    "attention": (attend, [(3, 4, 100, 16), (3, 4, 90, 16), (3, 4, 90, 24), (3, 4, 100, 90)]),
    "attention, one mask for all": (attend, [(3, 4, 100, 16), (3, 4, 90, 16), (3, 4, 90, 24), (100, 90)]),
    "attention of one sample": (attend, [(1, 6, 100, 16), (1, 6, 90, 16), (1, 6, 90, 24), (6, 100, 90)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_same_bits_for_any_number_of_threads(name: str, runs: list[int]) -> None:
    f, shapes = CASES[name]
    tensors = [random(*s, seed=i) for i, s in enumerate(shapes)]
    torch.set_num_threads(1)
    expected = with_gradients(f, *tensors)
    runs.clear()
    for count in (2, 3):
        torch.set_num_threads(count)
        for _ in range(2):
            assert with_gradients(f, *tensors) == expected
    assert runs
    assert max(runs) > 1


def test_results_are_those_of_small_pieces() -> None:
    """A convolution or an attention in pieces is the one of each piece."""
    torch.set_num_threads(3)
    x, w, b = random(71, 6, 8, 8), random(10, 6, 3, 3, seed=1), random(10, seed=2)
    whole = F.conv2d(x, w, b, padding=1)
    for i in range(0, 71, 10):
        assert torch.allclose(whole[i : i + 1], F.conv2d(x[i : i + 1], w, b, padding=1), atol=1e-5)
    q, k, v, m = (random(3, 4, 100, n, seed=i) for i, n in enumerate((16, 16, 24, 100)))
    with torch.no_grad():
        whole = F.scaled_dot_product_attention(q, k, v, m)
        for i in range(3):
            for j in range(4):
                part = F.scaled_dot_product_attention(q[i, j], k[i, j], v[i, j], m[i, j])
                assert torch.allclose(whole[i, j], part, atol=1e-5)
    a, c = random(515, 130), random(130, 201, seed=1)
    assert torch.allclose((a @ c)[260:270], a[260:270] @ c, atol=1e-3)


OPTIMIZERS = [
    ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9}), ("Adam", {"amsgrad": True}), ("AdamW", {}), ("NAdam", {}), ("RAdam", {}),
    ("Adamax", {}), ("RMSprop", {"momentum": 0.5, "centered": True}), ("Adagrad", {}), ("Adadelta", {}), ("Rprop", {}), ("ASGD", {}),
    ("Adafactor", {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_optimizers_give_the_same_bits(name: str, options: dict) -> None:
    results = []
    for count in (1, 3):
        torch.set_num_threads(count)
        p = torch.nn.Parameter(random(BIG))
        optimizer = getattr(torch.optim, name)([p], **options)
        for i in range(3):
            p.grad = random(BIG, seed=i)
            optimizer.step()
        results.append(
            [p.detach().numpy().tobytes(), *[v.numpy().tobytes() for v in optimizer.state[p].values() if torch.is_tensor(v)]]
        )
    assert results[0] == results[1]


def test_random_numbers_do_not_depend_on_the_threads(runs: list[int]) -> None:
    def draw() -> list[bytes]:
        torch.manual_seed(3)
        x = torch.ones(BIG, requires_grad=True)
        y = F.dropout(x, 0.3)
        drawn = [
            y,
            *torch.autograd.grad(y.sum(), x),
            torch.randn(BIG),
            torch.rand(BIG, dtype=torch.float64),
            torch.randint(0, 9, (BIG,)),
        ]
        return [t.detach().numpy().tobytes() for t in (*drawn, torch.empty(BIG).bernoulli_(0.2), torch.normal(x.detach(), 2.0))]

    torch.set_num_threads(1)
    expected = draw()
    for count in (2, 3):
        torch.set_num_threads(count)
        runs.clear()
        assert draw() == expected
        assert len(runs) >= 7


def test_in_place_and_overlapping_memory() -> None:
    results = []
    for count in (1, 3):
        torch.set_num_threads(count)
        x = random(700, 601)
        x[:, 5:500].mul_(2).add_(x[:, 6:501].clone())
        base = random(1000)
        # a gradient of an expanded tensor comes back through views whose elements share memory
        w = base.clone().requires_grad_()
        (g,) = torch.autograd.grad((w.as_strided((999, 800), (1, 0)) * 3).sum(), w)
        results.append([x.numpy().tobytes(), g.numpy().tobytes()])
    assert results[0] == results[1]


def test_small_tensors_are_never_split(runs: list[int]) -> None:
    torch.set_num_threads(2)
    with_gradients(flat, random(1000), random(1000))
    assert not runs


def test_calls_and_passes_that_recur_are_shared_too(runs: list[int]) -> None:
    x = random(300, 800).requires_grad_()

    def step() -> bytes:
        x.grad = None
        F.layer_norm(x, (800,)).square().mean(0).sum().backward()
        return x.grad.numpy().tobytes()  # type: ignore[union-attr]

    torch.set_num_threads(1)
    expected = step()
    for count in (2, 1, 2):
        torch.set_num_threads(count)
        for _ in range(3 * recurring.FIRST):
            assert step() == expected
        runs.clear()
        assert step() == expected
        assert bool(runs) == (count > 1)


def test_a_split_launch_is_observed_as_one() -> None:
    torch.set_num_threads(2)
    x = random(BIG)
    seen = []

    def observer(call, args):
        seen.append((call.name, args[0].size))
        call.entry(*args)

    with launch.observe(observer):
        y = x.tanh()
    assert seen == [("tanh", BIG)]
    assert y.numpy().tobytes() == x.tanh().numpy().tobytes()


def test_a_compiled_function_gives_what_is_computed_eagerly() -> None:
    torch.set_num_threads(2)
    weight = torch.nn.Parameter(random(601, 300))
    x, y = random(700, 601, seed=1), random(3_000_037, seed=2)

    def step(x, y):
        loss = F.cross_entropy(x @ weight, torch.zeros(700, dtype=torch.int64)) + y.tanh().mean()
        loss.backward()
        return loss.detach()

    expected = step(x, y)
    g, weight.grad = weight.grad, None
    compiled = torch.compile(step, fullgraph=True)
    for _ in range(2):
        weight.grad = None
        assert torch.allclose(compiled(x, y), expected)
        assert torch.allclose(weight.grad, g, atol=1e-7)
    assert compiled.programs[0].program.shared >= 3  # the product, its gradient, the pointwise ops
    weight.grad = None
    torch.set_num_threads(1)
    assert torch.equal(compiled(x, y), compiled(x, y))


def test_several_python_threads_at_once() -> None:
    torch.set_num_threads(3)
    tensors = [random(BIG, seed=i) for i in range(4)]
    expected = [with_gradients(flat, t, t) for t in tensors]
    found: list = [None] * 4

    def work(i: int) -> None:
        for _ in range(5):
            found[i] = with_gradients(flat, tensors[i], tensors[i])

    callers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in callers:
        t.start()
    for t in callers:
        t.join()
    assert found == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own() -> None:
    torch.set_num_threads(2)
    x = random(BIG)
    expected = with_gradients(flat, x, x)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if with_gradients(flat, x, x) == expected and threads._pool.begun == 1 else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert with_gradients(flat, x, x) == expected


KERNEL = """
def piece(out, steps, bad):
    total = 0.0
    for i in range(steps):
        total = total * 0.5 + i
    if bad:
        raise ValueError("a bad piece")
    for i in range(out.size):
        out[i] += 1.0 + 0.0 * total
"""


def entry() -> Callable:
    """A kernel that takes its time, and may raise."""
    return compilation.build(KERNEL, "piece", ("float32[:]", "int64", "bool"))


def pool_works() -> None:
    """Pieces on three threads are each done once, more of them than fit one job too, and the pool is free again."""
    torch.set_num_threads(3)
    for count in (10, 2 * pool.PARTS + 1):
        outs = [np.zeros(300, np.float32) for _ in range(count)]
        threads.run(entry(), [(o, 10, False) for o in outs])
        assert all((o == 1).all() for o in outs)
    if threads._pool is not None:  # not without machine code
        assert not threads._pool.words[pool._BUSY]


@pytest.mark.parametrize(("count", "ends"), [(10, [3, 6, 10]), (3, [1, 2, 3]), (2, [1, 2]), (1, [1])])
def test_each_thread_has_pieces_of_its_own(count: int, ends: list[int]) -> None:
    """The same ones of every launch that is cut alike; the ticket of each says which, and that all were taken."""
    pool_works()
    if threads._pool is None:
        return
    outs = [np.zeros(300, np.float32) for _ in range(count)]
    threads._pool.spread(entry(), [(o, 10, False) for o in outs], 3)
    tickets = threads._pool.words[pool._CALLER + pool._TICKET :: pool._LINE][: len(ends)]
    assert (tickets >> 32 == threads._pool.words[0]).all()
    assert (tickets >> 16 & 0xFFFF).tolist() == (tickets & 0xFFFF).tolist() == ends


def test_an_exception_of_a_piece_reaches_the_caller_when_all_are_through() -> None:
    torch.set_num_threads(3)
    for bad in range(10):
        outs = [np.zeros(300, np.float32) for _ in range(10)]
        with pytest.raises(ValueError, match="a bad piece"):
            threads.run(entry(), [(o, 1000, i == bad) for i, o in enumerate(outs)])
        before = [o.copy() for o in outs]
        pool_works()
        assert all((a == b).all() for a, b in zip(outs, before, strict=True))


def test_arguments_of_another_type_are_refused_before_anything_is_done() -> None:
    torch.set_num_threads(3)
    outs = [np.zeros(300, np.float32) for _ in range(4)]
    for bad in ((outs[0], 1), (outs[0].tolist(), 1, False), (outs[0].reshape(3, 100), 1, False)):
        with pytest.raises((TypeError, ValueError)):
            threads.run(entry(), [*[(o, 1, False) for o in outs], bad])
        if threads._pool is not None:
            assert not any(o.any() for o in outs)
    pool_works()


def test_a_pool_that_is_busy_leaves_its_caller_to_itself() -> None:
    torch.set_num_threads(3)
    pool_works()
    if threads._pool is None:
        return
    threads._pool.words[pool._BUSY] = 1
    try:
        outs = [np.zeros(300, np.float32) for _ in range(10)]
        threads.run(entry(), [(o, 10, False) for o in outs])
        assert all((o == 1).all() for o in outs)
        with pytest.raises(ValueError, match="a bad piece"):
            threads.run(entry(), [(o, 10, True) for o in outs])
    finally:
        threads._pool.words[pool._BUSY] = 0


def test_threads_that_sleep_are_woken() -> None:
    torch.set_num_threads(3)
    pool_works()
    if threads._pool is None:
        return
    lines, woken = (threads._pool.words[pool._WORKERS + k :: pool._LINE] for k in (0, pool._WOKEN))
    for _ in range(20):
        for _ in range(100):
            if lines[0] and lines[1]:
                break
            threading.Event().wait(0.01)
        assert lines[0] and lines[1]
        outs = [np.zeros(300, np.float32) for _ in range(8)]
        before = woken.copy()
        threads.run(entry(), [(o, 2_000_000, False) for o in outs])
        assert all((o == 1).all() for o in outs)
        assert (woken[:2] == before[:2] + 1).all()


def test_more_threads_than_the_pool_has_room_for() -> None:
    x = random(BIG)
    torch.set_num_threads(1)
    expected = with_gradients(flat, x, x)
    pool_works()
    if threads._pool is not None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(threads._pool, "begun", 10 * pool.MOST)  # of which there are two
            torch.set_num_threads(10 * pool.MOST)
            assert with_gradients(flat, x, x) == expected
            torch.set_num_threads(2)


def test_many_jobs_from_many_threads_are_each_done_once() -> None:
    torch.set_num_threads(4)
    wrong = []

    def call() -> None:
        kernel = entry()
        outs = [np.zeros(50, np.float32) for _ in range(7)]
        for _ in range(2000):
            threads.run(kernel, [(o, 3, False) for o in outs])
        if not all((o == 2000).all() for o in outs):
            wrong.append(outs)

    callers = [threading.Thread(target=call) for _ in range(4)]
    for t in callers:
        t.start()
    for t in callers:
        t.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
@pytest.mark.parametrize("delay", [0.0001, 0.001, 0.02, 0.06])
def test_ctrl_c_waits_for_the_workers(delay: float) -> None:
    torch.set_num_threads(3)
    pool_works()
    kernel, outs = entry(), [np.zeros(300, np.float32) for _ in range(6)]

    def interrupted() -> None:
        signal.setitimer(signal.ITIMER_REAL, delay)
        threads.run(kernel, [(o, 20_000_000, False) for o in outs])
        threading.Event().wait(1)

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    done = [o.copy() for o in outs]
    threading.Event().wait(0.05)
    assert all((o == d).all() for o, d in zip(outs, done, strict=True))  # nobody is at work any more
    pool_works()


def test_the_interpreter_ends_with_the_pool_alive() -> None:
    program = (
        "import threading, autograd_nb as torch\n"
        "torch.set_num_threads(3)\n"
        "x = torch.ones(500_000)\n"
        "def forever():\n"
        "    while True: x.tanh()\n"
        "x.tanh()\n"
        "threading.Thread(target=forever, daemon=True).start()\n"
        "print(float(x.tanh().sum()))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(500_000 * np.tanh(1.0))


# ------------------------------------------------------------------------------------------------- how many


# ------------------------------------------------------------------------------------------------ a walk over all ops


@pytest.fixture
def cut_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever can be cut is cut, down to single elements and rows."""
    monkeypatch.setattr(threads, "WORTH", 1)
    monkeypatch.setattr(threads, "ALIGN", 1)
    monkeypatch.setattr(threads, "EVEN", 1)
    monkeypatch.setattr(threads, "MANY", 1 << 62)


def bits_of(sample: Sample, dtype: str) -> list[bytes]:
    """The bytes of an op's results and gradients."""
    torch.manual_seed(0)
    leaves = [torch.from_numpy(a.copy()).requires_grad_(a.dtype.kind in "fc") for a in sample.operands(dtype)]
    found = tensors(sample.function(torch)(*leaves))
    wanted = [t for t in found if t.requires_grad]
    if wanted:
        seeds = [torch.ones_like(t) * (1.0 + 0.5 * k) for k, t in enumerate(wanted)]
        with suppress(RuntimeError):  # a few have no derivative
            torch.autograd.backward(wanted, seeds)
    return [t.detach().resolve_conj().numpy().tobytes() for t in [*found, *[x.grad for x in leaves if x.grad is not None]]]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", SAMPLES)
def test_an_op_in_pieces_is_the_op(text: str, cut_everywhere: None, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = Sample(text)
    for dtype in ("float32", "float64"):
        torch.set_num_threads(1)
        expected = bits_of(sample, dtype)
        after = noted.place()
        torch.manual_seed(0)
        if after != noted.place():
            monkeypatch.setattr(threads, "ALIGN", 256)  # several numbers are drawn at once
        torch.set_num_threads(3)
        for _ in range(2):
            assert bits_of(sample, dtype) == expected, dtype
