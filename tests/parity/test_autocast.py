"""`autocast` beside PyTorch's: every op of its database in a region, with operands of every precision; modules, gradients, nesting, switches."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

import autograd_nb as ag

from .opdb import OUTSIDE, Unsupported, find, leaves, ours

FEW = 3  #: samples of an op
LOWER = ("bfloat16", "float16")
#: which operands, in the order in which they are given, have which precision; None: the lower one
KINDS = {
    "float32": lambda k: torch.float32, "lower": lambda k: None, "first lower": lambda k: None if k == 0 else torch.float32,
    "others lower": lambda k: torch.float32 if k == 0 else None, "first float64": lambda k: torch.float64 if k == 0 else torch.float32,
}  # fmt: skip
PICKED = [op for op in op_db if not any(op.name.startswith(names) for names in OUTSIDE.values()) and "linear_cross_entropy" not in op.name]


def with_kinds(sample: Any, kind: str, lower: str) -> Any:
    """The sample with its floats in other precisions."""
    count = iter(range(1 << 30))

    def cast(t: Any) -> Any:
        if not isinstance(t, torch.Tensor) or t.dtype is not torch.float32 or t.layout is not torch.strided:
            return t
        return t.detach().to(KINDS[kind](next(count)) or getattr(torch, lower))

    return sample.transform(cast)


def outcome(library: Any, function: Any, args: Any, kwargs: Any, lower: str | None) -> Any:
    """The dtypes of what a call in a region gives (None: in no region), or the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with nullcontext() if lower is None else library.autocast("cpu", dtype=getattr(library, lower)):
                return [repr(t.dtype) for t in leaves(function(*args, **kwargs))]
        except Exception as error:
            return error


@pytest.mark.slow
@pytest.mark.parametrize("op", PICKED, ids=lambda op: f"{op.name}-{op.variant_test_name}".rstrip("-"))
def test_results_have_pytorchs_precision(op):
    """Where PyTorch computes at all (what it has no kernels for may be computed here), and regions make a difference, here or there."""
    function = find(op)
    if function is None or torch.float32 not in op.dtypes:
        pytest.skip("not here, or not of floats")
    torch.manual_seed(0)
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # (what makes samples may be deprecated, which is said once in a process)
        samples = list(op.sample_inputs("cpu", torch.float32))[:FEW]
    for sample in samples:
        for kind, lower in [*((kind, "bfloat16") for kind in KINDS), ("float32", "float16"), ("lower", "float16")]:
            given = with_kinds(sample, kind, lower)
            theirs = outcome(torch, op, (given.input, *given.args), given.kwargs, lower)
            if isinstance(theirs, Exception):
                continue
            try:
                args, kwargs = ours(((given.input, *given.args), given.kwargs))
            except Unsupported:
                continue
            mine = outcome(ag, function, args, kwargs, lower)
            if mine == theirs:
                continue
            outside = outcome(torch, op, (given.input, *given.args), given.kwargs, None), outcome(ag, function, args, kwargs, None)
            if outside[0] != theirs or (type(outside[1]), str(outside[1])) != (type(mine), str(mine)):
                wrong.append(f"{kind} {lower}: {mine!r:.200} instead of {theirs}, {given.args!r:.80} {given.kwargs!r:.80}")
    assert not wrong, "\n".join(wrong[:4])


# ------------------------------------------------------------------------------------------------------ modules


def mlp(nn: Any) -> Any:
    return nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 6), nn.PReLU())


def cnn(nn: Any) -> Any:
    return nn.Sequential(
        nn.Unflatten(1, (1, 6)), nn.Conv1d(1, 4, 3, padding=1, bias=False), nn.BatchNorm1d(4), nn.ReLU(), nn.ConvTranspose1d(4, 2, 3), nn.Flatten(),
        nn.Linear(16, 6),
    )  # fmt: skip


class Steps:
    """Layers that are given sequences, as functions of rows."""

    def __init__(self, make: Any):
        self.make = make

    def __call__(self, nn: Any) -> Any:
        class Wrapped(nn.Module):
            def __init__(self, inner: Any):
                super().__init__()
                self.inner = inner

            def forward(self, x: Any) -> Any:
                steps = x.unsqueeze(0).expand(3, *x.shape) * 0.5
                out = self.inner(steps, steps, steps) if type(self.inner).__name__ == "MultiheadAttention" else self.inner(steps)
                return out[0] if isinstance(out, tuple) else out

        return Wrapped(self.make(nn))


MODULES = {
    "MLP": mlp, "CNN": cnn,
    "LSTM": Steps(lambda nn: nn.LSTM(6, 5, 2)), "GRU": Steps(lambda nn: nn.GRU(6, 5, 2, bidirectional=True)), "RNN": Steps(lambda nn: nn.RNN(6, 5)),
    "attention": Steps(lambda nn: nn.MultiheadAttention(6, 2)),
    "encoder layer": Steps(lambda nn: nn.TransformerEncoderLayer(6, 2, 12, dropout=0.0)),
    "cells": lambda nn: nn.Sequential(nn.GRUCell(6, 5), nn.RNNCell(5, 5)),
}  # fmt: skip
CRITERIA = {"mse_loss": lambda F, y, library: F.mse_loss(y, library.ones_like(y)), "smooth_l1_loss": lambda F, y, library: F.smooth_l1_loss(y, y * 0),
            "mean": lambda F, y, library: y.mean()}  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_modules_and_their_gradients(name, criterion):
    """Outputs, losses and gradients have PyTorch's dtypes and nearly its values; the region ends before the backward pass."""
    torch.manual_seed(1)
    theirs, mine = MODULES[name](torch.nn), MODULES[name](ag.nn)
    mine.load_state_dict({k: ag.from_numpy(v.detach().numpy().copy()) for k, v in theirs.state_dict().items()})
    found = []
    rows = torch.randn(8, 6)
    for library, module in ((torch, theirs), (ag, mine)):
        x = (rows.clone() if library is torch else ag.from_numpy(rows.numpy().copy())).requires_grad_()
        with library.autocast("cpu"):
            try:
                y = module(x)
            except RuntimeError as error:
                if library is torch and "could not create a primitive" in str(error):
                    pytest.skip("PyTorch has no such layer in bfloat16 on this processor")
                raise
            loss = CRITERIA[criterion](library.nn.functional, y, library)
        loss.backward()
        found.append([y.detach(), loss.detach(), x.grad, *(p.grad for p in module.parameters())])
    for a, b in zip(found[1], found[0], strict=True):
        assert repr(a.dtype) == repr(b.dtype)
        scale = max(1e-3, float(b.float().abs().max()))
        np.testing.assert_allclose(a.float().numpy() / scale, b.float().numpy() / scale, rtol=0, atol=0.05)


# ------------------------------------------------------------------------------------------------------ programs


def in_both(program: Any) -> None:
    """What a program gives is the same in both: texts, dtypes, numbers, or an error's class."""
    found = []
    for library in (torch, ag):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                result = program(library)
            except Exception as error:
                result = type(error).__name__
        found.append((repr(result), [str(w.message)[:70] for w in said]))
    assert found[1] == found[0]


def regions(t: Any) -> Any:
    x = t.ones(2, 2)

    @t.autocast("cpu", dtype=t.float16)
    def decorated(n):
        return (x @ x).dtype

    seen = [decorated(2), (x @ x).dtype]
    with t.autocast("cpu"):
        seen += [t.is_autocast_enabled("cpu"), t.get_autocast_dtype("cpu"), (x @ x).dtype, (x.double() @ x.double()).dtype, (x * x).dtype]
        with t.autocast("cpu", enabled=False):
            seen += [t.is_autocast_enabled("cpu"), (x @ x).dtype]
            with t.autocast("cpu", dtype=t.float16, cache_enabled=False):
                seen += [t.get_autocast_dtype("cpu"), t.is_autocast_cache_enabled(), (x @ x).dtype, t.nn.functional.mse_loss(x.half(), x.half()).dtype]
        seen += [(x @ x).dtype, t.is_autocast_cache_enabled()]
        try:
            with t.autocast("cpu", dtype=t.float16):
                raise ValueError
        except ValueError:
            seen.append((x @ x).dtype)
    return [*seen, (x @ x).dtype, t.is_autocast_enabled("cpu"), t.get_autocast_dtype("cpu")]


def functions_of_users(t: Any) -> Any:
    seen = []

    class Product(t.autograd.Function):
        @staticmethod
        @t.amp.custom_fwd(device_type="cpu")
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            seen.append((a @ b).dtype)
            return a @ b

        @staticmethod
        @t.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            seen.extend([g.dtype, (a @ b).dtype])
            return g @ b.t().to(g.dtype), a.t().to(g.dtype) @ g

    class Exact(Product):
        @staticmethod
        @t.amp.custom_fwd(device_type="cpu", cast_inputs=t.float32)
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            seen.extend([a.dtype, (a @ b).dtype])
            return a @ b

    x = t.ones(2, 2, requires_grad=True)
    for function in (Product, Exact):
        with t.autocast("cpu"):
            y = function.apply(x, x.bfloat16() if function is Exact else x)
        y.float().sum().backward()
        seen += [y.dtype, x.grad.dtype]
        seen.append(function.apply(x.detach(), x.detach()).dtype)
    return seen


def scaled(t: Any) -> Any:
    w, x = t.nn.Parameter(t.full((3, 2), 0.25)), t.arange(8.0).view(4, 2) / 8
    optimizer, scaler, seen = t.optim.SGD([w], lr=0.5), t.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2), []
    for k in range(5):
        optimizer.zero_grad()
        with t.autocast("cpu", dtype=t.float16):
            loss = (t.nn.functional.linear(x, w) * (1e4 if k == 3 else 1)).float().pow(2).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        seen += [w.grad.dtype, scaler.get_scale(), round(w.sum().item(), 2)]
    return seen


class Scaling:
    """A step that scales and leaves out itself, and says what it is told."""

    _step_supports_amp_scaling = True

    def __init__(self, p: Any):
        self.param_groups = [{"params": [p]}]

    def step(self) -> Any:
        return self.grad_scale.item(), self.found_inf.item()


class Asking(Scaling):
    def step(self, grad_scaler: Any = None) -> Any:
        return grad_scaler.get_scale(), hasattr(self, "grad_scale")


def left_to_optimizers(t: Any, cls: Any, factor: float, first: bool) -> Any:
    w = t.nn.Parameter(t.ones(2))
    optimizer, scaler = cls(w), t.cpu.amp.GradScaler(init_scale=8.0)
    scaler.scale((w * factor).sum()).backward()
    if first:
        scaler.unscale_(optimizer)
    result = scaler.step(optimizer)
    if cls is Scaling:
        scaler.update()
    return result, w.grad, scaler.get_scale(), hasattr(optimizer, "grad_scale")


SWITCHES = {
    **{f"{cls.__name__} {factor} {first}": lambda t, a=(cls, factor, first): left_to_optimizers(t, *a)
       for cls in (Scaling, Asking) for factor in (2.0, float("inf")) for first in (False, True)},
    "threads": lambda t: t.set_num_threads(1 << 65), "threads of ops": lambda t: t.set_num_interop_threads(1 << 65),
    "no threads of ops": lambda t: t.set_num_interop_threads(0),
    **{f"{name}{args}": lambda t, name=name, args=args: getattr(t, name)(*args) for name in ("is_autocast_enabled", "get_autocast_dtype")
       for args in ((), ("cpu",), ("cuda",), ("nowhere",), ("meta",), (3,))},
    **{f"autocast{args}": lambda t, args=args: (a := t.autocast(*args), a.device, a.fast_dtype)[1:]
       for args in (("cpu",), ("cuda",), ("xpu",), ("hpu",), ("nowhere",), (3,), ("cpu:0",))},
    **{f"dtype {name}": lambda t, name=name: t.autocast("cpu", dtype=getattr(t, name)).fast_dtype for name in ("float32", "float64", "int64", "float16")},
    "dtype, nothing is cast": lambda t: both_dtypes(t, t.float32),
    "set_autocast_dtype": lambda t: (t.set_autocast_dtype("cpu", t.float16), both_dtypes(t, None), t.set_autocast_dtype("cpu", t.bfloat16)),
    "set_autocast_dtype wrong": lambda t: t.set_autocast_dtype("cpu", 3),
    "set_autocast_enabled": lambda t: (t.set_autocast_enabled("cpu", True), (t.ones(1, 1) @ t.ones(1, 1)).dtype, t.set_autocast_enabled("cpu", False)),
    "set_autocast_enabled wrong": lambda t: t.set_autocast_enabled("cpu", 1),
    "set_autocast_cache_enabled wrong": lambda t: t.set_autocast_cache_enabled(1),
    "nesting": lambda t: (t.autocast_increment_nesting(), t.autocast_increment_nesting(), t.autocast_decrement_nesting(), t.autocast_decrement_nesting()),
    "clear": lambda t: t.clear_autocast_cache(),
    "older": lambda t: (t.is_autocast_cpu_enabled(), t.get_autocast_cpu_dtype(), t.get_autocast_gpu_dtype(), t.set_autocast_cpu_enabled(False)),
    "not callable": lambda t: t.autocast("cpu")(3),
    "available": lambda t: (t.amp.is_autocast_available("cpu"), t.amp.is_autocast_available("cuda")),
    "custom_fwd": lambda t: t.amp.custom_fwd(lambda c: c, device_type=3),
    "cpu.amp": lambda t: t.cpu.amp.autocast(True, t.float16).fast_dtype,
}  # fmt: skip


def both_dtypes(t: Any, lower: Any) -> Any:
    with t.autocast("cpu", dtype=lower):
        return (t.ones(1, 1) @ t.ones(1, 1)).dtype, t.get_autocast_dtype("cpu")


@pytest.mark.parametrize("name", SWITCHES)
def test_switches_answer_as_in_pytorch(name):
    in_both(SWITCHES[name])


@pytest.mark.parametrize("program", [regions, functions_of_users, scaled], ids=lambda p: p.__name__)
def test_programs(program):
    in_both(program)


#: functions of one operand, which stands in several places
SQUARES = {
    "matmul": lambda t, x: x @ x, "bmm": lambda t, x: t.bmm(x, x), "addmm": lambda t, x: t.addmm(x[0], x[1], x[1]),
    "baddbmm": lambda t, x: t.baddbmm(x, x, x), "linear": lambda t, x: t.nn.functional.linear(x[0], *[x[1]] * 2),
    "einsum": lambda t, x: t.einsum("bij,bjk->bik", x, x),
    "vmap": lambda t, x: t.vmap(lambda q: q @ q)(x), "conv1d": lambda t, x: t.nn.functional.conv1d(x, x), "cat": lambda t, x: t.cat([x, x, x.bfloat16()]) ** 2,
    "multi_dot": lambda t, x: (y := x[0], t.linalg.multi_dot([y, y, y]))[1], "float32": lambda t, x: (y := x.bfloat16(), t.nn.functional.mse_loss(y, y * y))[1],
    "linear of a batch": lambda t, x: (y := x[1], t.nn.functional.linear(y, y, y[0]))[1],
}  # fmt: skip


@pytest.mark.parametrize("name", SQUARES)
@pytest.mark.parametrize("leaf", [False, True])
def test_an_operand_that_stands_twice_is_cast_twice(name, leaf):
    """So its gradients are added in its own precision; those of a parameter, whose cast is kept, in the lower one."""
    found = []
    values, weights = (np.random.default_rng(k).standard_normal((3, 3, 3)).astype("float32") for k in (1, 2))
    for t in (torch, ag):
        x = t.from_numpy(values.copy()).requires_grad_()
        with t.autocast("cpu"):
            y = SQUARES[name](t, x if leaf else x * 1)
        (y.float() * t.from_numpy(np.resize(weights, tuple(y.shape)))).sum().backward()
        found.append(x.grad.numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6, atol=0)


WIDEST = {
    "cat": lambda t, *ts: t.cat(ts), "stack": lambda t, *ts: t.stack(ts), "vstack": lambda t, *ts: t.vstack(ts),
    "index_copy": lambda t, a, b: t.index_copy(a, 0, t.tensor([0, 1]), b),
}  # fmt: skip


@pytest.mark.parametrize("name", WIDEST)
def test_what_takes_the_widest(name):
    kinds = ("float64", "float32", "bfloat16", "float16", "int64")

    def program(t):
        seen = []
        for a in kinds:
            for b in kinds:
                with t.autocast("cpu"):
                    try:
                        seen.append(WIDEST[name](t, t.ones(2, 2, dtype=getattr(t, a)), t.ones(2, 2, dtype=getattr(t, b))).dtype)
                    except RuntimeError:
                        seen.append("refused")
        return seen

    in_both(program)


EQUATIONS = (  # (of three operands those whose order of contraction, which depends on what is installed, is of no account)
    "i,j->ij", "ij,ij->ij", "ij,ij->i", "ij,k->k", "ij,jk,kl->il", "i,j,k->ijk", "ii->i", "...j,j->...", "i,i,i->i", "bij,bjk->bik",
)  # fmt: skip


@pytest.mark.parametrize("equation", EQUATIONS)
def test_equations(equation):
    """Only the products of matrices are cast."""
    for kind in ("float32", "bfloat16"):

        def program(t, kind=kind):
            made = [t.ones([3] * max(1, len(term.replace("...", "z"))), dtype=getattr(t, kind if k else "float32"))
                    for k, term in enumerate(equation.partition("->")[0].split(","))]  # fmt: skip
            with t.autocast("cpu"):
                return t.einsum(equation, *made).dtype

        in_both(program)
