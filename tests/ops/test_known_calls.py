"""Calls of forward functions that recur are replayed: with the same bits, only where nothing differs. All samples are verified so."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb.graph import noted, recurring
from autograd_nb.ops.core.known_calls import CALLS, LAYOUTS, Known
from autograd_nb.ops.core.registry import OPS

from ..recurring import verified_calls
from .samples import Sample, structured_ops

N = recurring.FIRST
TEXTS = sorted({text for op in structured_ops() for text in op.samples})


@pytest.fixture
def answered(monkeypatch):
    """What every replay answered."""
    found = []
    keep = Known.keep

    def kept(self, replay):
        def asked(args, options):
            out = replay(args, options)
            found.append(out is not None)
            return out

        keep(self, asked)

    monkeypatch.setattr(Known, "keep", kept)
    recurring.forget()
    return found


#: what reads memory that might be a tensor's: to know, all objects of the program are looked through, which takes 0.1 s where there are many
SEARCHED = ("cumprod", "cumsum", "logcumsumexp", "segment_reduce")


@pytest.mark.parametrize("text", TEXTS)
def test_samples(text, monkeypatch):
    searched, living = [], noted.living
    monkeypatch.setattr(noted, "living", lambda kind: searched.append(kind) or living(kind))
    sample = Sample(text)
    with verified_calls():
        for grad in (False, False, False, True):  # what is public is noted from the third time on
            leaves = [torch.from_numpy(a) for a in sample.operands()]
            sample(*[t.requires_grad_(grad and t.is_floating_point()) for t in leaves])
    assert not searched or any(name in text for name in SEARCHED)


def test_only_calls_that_are_alike_are_replayed(answered):
    x = torch.randn(5, 7)
    y, wide = torch.randn(5, 7), torch.randn(5, 9)[:, :7]
    calls = [
        lambda: x.topk(2, 1), lambda: x.topk(3, 1), lambda: x.topk(3, 0), lambda: x.topk(3, 1, False), lambda: y.topk(3, 1),
        lambda: wide.topk(3, 1), lambda: x.double().topk(3, 1), lambda: x.t().topk(3, 1),
    ]  # fmt: skip
    with torch.no_grad():
        wanted = [call() for call in calls]
        for _ in range(3 * N):
            for call, want in zip(calls, wanted, strict=True):
                found = call()
                assert torch.equal(found.values, want.values) and torch.equal(found.indices, want.indices)
    assert any(answered)


def test_calls_that_never_recur_are_not_compared_with_what_is_kept(answered):
    x = torch.randn(5, 7)
    for i in range(200 * N):
        F.group_norm(x[None], 1, eps=1e-5 * (i + 1))
    assert answered and not any(answered)
    assert len(answered) < 200 * N / 4  # of the function and of its op


def test_results_are_nobody_elses(answered):
    x = torch.randn(4, 6)
    kept = [F.pad(x, (1, 2)) for _ in range(2 * N)]
    assert answered[-1]
    for k, t in enumerate(kept):
        t.fill_(k)
    assert [t.unique().tolist() for t in kept] == [[float(k)] for k in range(2 * N)]


def test_what_has_changed_is_read():
    p = torch.nn.Parameter(torch.randn(4, 6))
    for k in range(2 * N):
        with torch.no_grad():
            p.fill_(float(k))
        y = p.sort(1).values
        assert y.grad_fn.name() == "SortBackward0" and y.tolist() == [[float(k)] * 6] * 4
    with torch.inference_mode():
        assert p.sort(1).values.is_inference()


@pytest.mark.parametrize("call", ["x.mvlgamma(1)", "torch.bucketize(1.5, x)", "torch.fft.fft(x)"])
def test_another_default_dtype_is_heeded(call):
    """What is noted of calls with integers and numbers is of the default dtype that they had."""
    x = torch.arange(2, 8)

    def result(default):
        torch.set_default_dtype(default)
        try:
            out = eval(call, {"torch": torch, "x": x})
            return out.dtype, out.tolist()
        finally:
            torch.set_default_dtype(torch.float32)

    wanted = {d: result(d) for d in (torch.float32, torch.float64)}
    for _ in range(3):
        for default, want in wanted.items():
            assert [result(default) for _ in range(2 * N)] == [want] * 2 * N


def test_users_ops_are_run_each_time():
    calls = []

    def shape(x):
        calls.append(1)
        return x

    @torch.custom_op(shape=shape, backward_ops=lambda g, x, out: g)
    def counted(x, out):
        out[:] = x

    for _ in range(3 * N):
        counted(torch.ones(3))
    assert len(calls) == 3 * N


def test_bounds():
    op = next(op for op in structured_ops() if op.name == "topk")
    for n in range(3, 2 * LAYOUTS):
        torch.ones(n).topk(2)
    assert len(op._known) <= LAYOUTS
    x = torch.randn(40)
    for k in range(1, 30):
        for _ in range(2 * N):
            x.topk(k)
    assert len(op._known[x._layout].replays) <= CALLS


def test_capture_sees_what_a_replay_would_do():
    x = np.random.default_rng(0).normal(size=(3, 4))

    def function(t):
        return torch.sort(t * 2, 1).values

    t = torch.from_numpy(x)
    for _ in range(2 * N):
        want = function(t)
    compiled = torch.compile(function)
    for k in range(3):
        assert torch.equal(compiled(t + k), function(t + k))
    assert torch.equal(compiled(t), want)


@pytest.mark.parametrize("number", [np.int64, np.int32, int, torch.tensor], ids=["int64", "int32", "int", "tensor"])
@pytest.mark.parametrize("sequence", [tuple, list])
def test_paddings_of_all_kinds_of_numbers_are_told_apart(number, sequence):
    """Calls are known by what they ask for: two with numbers of NumPy, which no key holds, were taken for one."""
    x = torch.arange(1.0, 10.0).reshape(1, 3, 3)
    for _ in range(2):
        for before in (0, 2, 4, 1):
            y = F.pad(x, sequence(number(n) for n in (before, 5 - before, 5 - before, before)))
            assert tuple(y.shape) == (1, 8, 8) and torch.equal(y[0, 5 - before : 8 - before, before : before + 3], x[0]) and y.sum() == x.sum()


def _takes_dim_alone(op):
    try:
        parameters = list(inspect.signature(op.call).parameters.values())
    except (TypeError, ValueError):
        return False
    needed = [p.name for p in parameters[1:] if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "dim"]
    names = [p.name for p in parameters]
    return "dim" in names[1:] and not {"axis", "dims"} & set(names) and names[0] in ("input", "self") and not needed


@pytest.mark.parametrize("name", [n for n, op in OPS.items() if not n.startswith("nn.") and _takes_dim_alone(op)])
def test_every_dim_may_be_called_axis(name):
    """As NumPy calls it: with the same outcome, and refused as missing only where it is."""

    def outcome(**given):
        try:
            OPS[name].call(torch.ones(3, 3), **given)
        except Exception as error:
            return type(error)
        return None

    assert outcome(axis=0) is outcome(dim=0)
