"""Tiny tensors, where the arithmetic costs nothing: what calling, recording, the engine and optimizers cost."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from bench.case import Case, Program
from bench.cases import functional

OPS = 20  #: calls in one round, so that the round's own loop does not count
CASES: list[Case] = []


def add(name: str, group: str, build: Callable[[Any], Program], per: int = OPS, **more: Any) -> None:
    CASES.append(Case(name, "overhead", group, build, per=per, **more))


def values(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape).astype(np.float32)


# ------------------------------------------------------------------------------------------------------- one op


@cache
def classes(lib: Any) -> Any:
    return lib.tensor([2, 0, 1, 3])


#: name -> (lib, x, w) -> y; x and y are 4×4 unless the op itself changes that, w is a second operand
SINGLE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda lib, x, w: x + w,
    "mul": lambda lib, x, w: x * w,
    "add number": lambda lib, x, w: x + 0.5,
    "mul broadcast": lambda lib, x, w: x * w[0],
    "tanh": lambda lib, x, w: lib.tanh(x),
    "relu": lambda lib, x, w: lib.relu(x),
    "sum": lambda lib, x, w: x.sum(),
    "sum of rows": lambda lib, x, w: x.sum(1),
    "mean": lambda lib, x, w: x.mean(),
    "max of rows": lambda lib, x, w: x.amax(1),
    "matmul": lambda lib, x, w: x @ w,
    "linear": lambda lib, x, w: lib.nn.functional.linear(x, w),
    "softmax": lambda lib, x, w: lib.softmax(x, -1),
    "log_softmax": lambda lib, x, w: lib.log_softmax(x, -1),
    "cross_entropy": lambda lib, x, w: lib.nn.functional.cross_entropy(x, classes(lib)),
    "layer_norm": lambda lib, x, w: lib.nn.functional.layer_norm(x, (4,), w[0], w[1]),
    "batch_norm": lambda lib, x, w: lib.nn.functional.batch_norm(x, None, None, w[0], w[1], True),
    "embedding": lambda lib, x, w: lib.nn.functional.embedding(classes(lib), x),
    "dropout": lambda lib, x, w: lib.dropout(x, 0.5, True),
    "cat": lambda lib, x, w: lib.cat([x, w]),
    "stack": lambda lib, x, w: lib.stack([x, w]),
    "where": lambda lib, x, w: lib.where(x > w, x, w),
    "clone": lambda lib, x, w: x.clone(),
    "index int": lambda lib, x, w: x[1],
    "index slice": lambda lib, x, w: x[1:3],
    "index tuple": lambda lib, x, w: x[..., 1:, None],
    "view": lambda lib, x, w: x.view(2, 8),
    "reshape": lambda lib, x, w: x.reshape(-1),
    "transpose": lambda lib, x, w: x.t(),
    "permute": lambda lib, x, w: x.permute(1, 0),
    "unsqueeze": lambda lib, x, w: x.unsqueeze(0),
    "expand": lambda lib, x, w: x.expand(3, 4, 4),
    "index column": lambda lib, x, w: x[:, 1],
    "index element": lambda lib, x, w: x[1, 2],
    "flatten": lambda lib, x, w: x.flatten(),
    "squeeze": lambda lib, x, w: x.squeeze(),
    "T": lambda lib, x, w: x.T,
    "narrow": lambda lib, x, w: x.narrow(0, 1, 2),
    "select": lambda lib, x, w: x.select(1, 2),
    "diagonal": lambda lib, x, w: x.diagonal(),
    "view_as": lambda lib, x, w: x.view_as(w),
    "chunk": lambda lib, x, w: x.chunk(2)[1],
    "split": lambda lib, x, w: x.split(2)[1],
    "unbind": lambda lib, x, w: x.unbind()[1],
    "iteration": lambda lib, x, w: list(x)[1],
}
RANDOM = {"dropout"}  #: run, and not compared
VIEWS = {
    "index int", "index slice", "index tuple", "index column", "index element", "view", "reshape", "transpose", "permute", "unsqueeze", "expand",
    "flatten", "squeeze", "T", "narrow", "select", "diagonal", "view_as", "chunk", "split", "unbind", "iteration",
}  # fmt: skip


def forward(fn: Callable, recorded: bool, seen: bool = True) -> Callable[[Any], Program]:
    """The op called again and again on the same operands; the graph, if there is one, is dropped each time."""

    def build(lib: Any) -> Program:
        x, w = (lib.from_numpy(values(i, 4, 4)) for i in range(2))
        x.requires_grad_(recorded)
        rounds = range(OPS)

        def step() -> Any:
            for _ in rounds:
                y = fn(lib, x, w)
            return y if seen else x

        def unrecorded() -> Any:
            with lib.no_grad():
                return step()

        return Program(step if recorded else unrecorded)

    return build


def both(fn: Callable, seen: bool = True) -> Callable[[Any], Program]:
    """The op recorded, and the engine run over its node."""

    def build(lib: Any) -> Program:
        x, w = (lib.from_numpy(values(i, 4, 4)) for i in range(2))
        x.requires_grad_()
        g = lib.from_numpy(np.ones(tuple(fn(lib, x, w).shape), np.float32))
        rounds = range(OPS)

        def step() -> Any:
            for _ in rounds:
                x.grad = None
                fn(lib, x, w).backward(g)
            return x.grad if seen else x

        return Program(step)

    return build


for _name, _fn in SINGLE.items():
    _kind = "view" if _name in VIEWS else "op"
    add(f"{_name} | no_grad", f"{_kind}, not recorded", forward(_fn, False, _name not in RANDOM))
    add(
        f"{_name} | recorded",
        f"{_kind}, recorded",
        forward(_fn, True, _name not in RANDOM),
        quick=_name in ("add", "sum", "softmax", "layer_norm", "index int"),
    )
    add(f"{_name} | backward", f"{_kind}, backward", both(_fn, _name not in RANDOM), quick=_name in ("mul", "matmul", "view"))


def assigned(x: Any, index: Any, value: Any) -> Any:
    x[index] = value
    return x


#: name -> what is done to x, which returns x
IN_PLACE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add_": lambda lib, x, w: x.add_(w),
    "x += w": lambda lib, x, w: operator.iadd(x, w),
    "add_ alpha": lambda lib, x, w: x.add_(w, alpha=0.01),
    "mul_ number": lambda lib, x, w: x.mul_(0.99),
    "sigmoid_": lambda lib, x, w: x.sigmoid_(),
    "clamp_": lambda lib, x, w: x.clamp_(0.1, 0.9),
    "zero_": lambda lib, x, w: x.zero_(),
    "fill_": lambda lib, x, w: x.fill_(0.5),
    "copy_": lambda lib, x, w: x.copy_(w),
    "masked_fill_": lambda lib, x, w: x.masked_fill_(mask(lib), 0.5),
    "x[1] = number": lambda lib, x, w: assigned(x, 1, 0.5),
    "x[1] = tensor": lambda lib, x, w: assigned(x, 1, w[0]),
    "x[1:3] = tensor": lambda lib, x, w: assigned(x, slice(1, 3), w[1:3]),
    "x[1, 2] = number": lambda lib, x, w: assigned(x, (1, 2), 0.5),
    "x[mask] = number": lambda lib, x, w: assigned(x, mask(lib), 0.5),
    "x[index] = number": lambda lib, x, w: assigned(x, classes(lib), 0.5),
}


@cache
def mask(lib: Any) -> Any:
    return lib.from_numpy(values(0, 4, 4)) > 1


def in_place(fn: Callable) -> Callable[[Any], Program]:
    """On a tensor that no graph knows."""

    def build(lib: Any) -> Program:
        x, w = (lib.from_numpy(values(i, 4, 4)) for i in range(2))
        rounds = range(OPS)

        def step() -> Any:
            for _ in rounds:
                fn(lib, x, w)
            return x.sum()

        return Program(step)

    return build


def in_place_recorded(fn: Callable, backward: bool) -> Callable[[Any], Program]:
    """On the result of a product, which is part of what is timed."""

    def build(lib: Any) -> Program:
        x, w = (lib.from_numpy(values(i, 4, 4)) for i in range(2))
        x.requires_grad_()
        g = lib.from_numpy(np.ones((4, 4), np.float32))
        rounds = range(OPS)

        def step() -> Any:
            for _ in rounds:
                y = fn(lib, x * w, w)
            return y

        def whole() -> Any:
            for _ in rounds:
                x.grad = None
                fn(lib, x * w, w).backward(g)
            return x.grad

        return Program(whole if backward else step)

    return build


NO_GRADIENT = {"copy_"}

for _name, _fn in IN_PLACE.items():
    add(_name, "in place", in_place(_fn))
    add(
        f"{_name} | recorded",
        "in place, recorded",
        in_place_recorded(_fn, False),
        quick=_name in ("add_", "zero_", "x[1] = tensor"),
    )
    if _name not in NO_GRADIENT:
        add(f"{_name} | backward", "in place, backward", in_place_recorded(_fn, True), quick=_name in ("add_", "x[1] = tensor"))


def detaching(lib: Any) -> Program:
    x = lib.from_numpy(values(0, 4, 4))
    rounds = range(OPS)

    def step() -> Any:
        for _ in rounds:
            x.detach_()
        return x

    return Program(step)


add("detach_", "in place", detaching)


MAKING: dict[str, Callable[[Any, Any], Any]] = {
    "tensor([1., 2., 3.])": lambda lib, x: lib.tensor([1.0, 2.0, 3.0]),
    "tensor([[1, 2], [3, 4]])": lambda lib, x: lib.tensor([[1, 2], [3, 4]]),
    "tensor(1.5)": lambda lib, x: lib.tensor(1.5),
    "zeros(4, 4)": lambda lib, x: lib.zeros(4, 4),
    "ones(4, 4)": lambda lib, x: lib.ones(4, 4),
    "full((4, 4), 0.5)": lambda lib, x: lib.full((4, 4), 0.5),
    "arange(8)": lambda lib, x: lib.arange(8),
    "eye(4)": lambda lib, x: lib.eye(4),
    "linspace(0, 1, 5)": lambda lib, x: lib.linspace(0, 1, 5),
    "zeros_like": lambda lib, x: lib.zeros_like(x),
    "detach()": lambda lib, x: x.detach(),
    "detach().requires_grad_()": lambda lib, x: x.detach().requires_grad_(),
    "from_numpy(x.numpy())": lambda lib, x: lib.from_numpy(x.numpy()),
}

#: what gives something else than a tensor, or something that cannot be compared
ASKING: dict[str, Callable[[Any, Any, Any], Any]] = {
    "empty(4, 4)": lambda lib, x, one: lib.empty(4, 4),
    "randn(4, 4)": lambda lib, x, one: lib.randn(4, 4),
    "rand(4, 4)": lambda lib, x, one: lib.rand(4, 4),
    "item()": lambda lib, x, one: one.item(),
    "float(t)": lambda lib, x, one: float(one),
    "bool(t)": lambda lib, x, one: bool(one),
    "tolist()": lambda lib, x, one: x.tolist(),
    "numpy()": lambda lib, x, one: x.numpy(),
    "shape": lambda lib, x, one: x.shape,
    "size()": lambda lib, x, one: x.size(),
    "size(0)": lambda lib, x, one: x.size(0),
    "numel()": lambda lib, x, one: x.numel(),
    "dim()": lambda lib, x, one: x.dim(),
    "len(t)": lambda lib, x, one: len(x),
    "is_contiguous()": lambda lib, x, one: x.is_contiguous(),
}


def making(fn: Callable) -> Callable[[Any], Program]:
    def build(lib: Any) -> Program:
        x = lib.from_numpy(values(0, 4, 4))
        rounds = range(OPS)

        def step() -> Any:
            for _ in rounds:
                y = fn(lib, x)
            return y

        return Program(step)

    return build


def asking(fn: Callable) -> Callable[[Any], Program]:
    def build(lib: Any) -> Program:
        x, one = lib.from_numpy(values(0, 4, 4)), lib.tensor(1.5)
        rounds = range(OPS)

        def step() -> Any:
            for _ in rounds:
                fn(lib, x, one)
            return one

        return Program(step)

    return build


def linear_module(lib: Any) -> Program:
    model = lib.nn.Linear(4, 4)
    functional.fill(lib, model)
    x = lib.from_numpy(values(0, 4, 4))
    rounds = range(OPS)

    def step() -> Any:
        for _ in rounds:
            y = model(x)
        return y

    return Program(step)


for _name, _fn in MAKING.items():
    add(_name, "making", making(_fn))
for _name, _asked in ASKING.items():
    add(_name, "asking", asking(_asked))
add("Linear(4, 4)(x)", "op, recorded", linear_module)


# ------------------------------------------------------------------------------------------------------ graphs


def mixed(lib: Any, x: Any, w: Any) -> Any:
    y = x
    for _ in range(5):
        y = lib.tanh(y)
        y = y * w
        y = lib.sigmoid(y)
        y = y + 0.5
    return y


def only_tanh(lib: Any, x: Any, w: Any) -> Any:
    y = x
    for _ in range(20):
        y = lib.tanh(y)
    return y


def chain(fn: Callable, recorded: bool) -> Callable[[Any], Program]:
    def build(lib: Any) -> Program:
        x, w = (lib.from_numpy(values(i, 8)).requires_grad_(recorded) for i in range(2))
        g = lib.from_numpy(np.ones(8, np.float32))

        def step() -> Any:
            x.grad = w.grad = None
            y = fn(lib, x, w)
            y.backward(g)
            return y, x.grad, w.grad

        def unrecorded() -> Any:
            with lib.no_grad():
                return fn(lib, x, w)

        return Program(step if recorded else unrecorded)

    return build


_data = [values(0, 8), values(1, 8)]
add("20 mixed ops, 8 numbers, backward", "chain", chain(mixed, True), compiled=True,
    others=functional.gradients_of(lambda np, x, w: mixed(functional.Named(np), x, w), _data))  # fmt: skip
add("20 tanh, 8 numbers, backward", "chain", chain(only_tanh, True), compiled=True)
add("20 mixed ops, 8 numbers, no_grad", "chain", chain(mixed, False), compiled=True)


def build_and_free(lib: Any) -> Program:
    """1,000 nodes are recorded and dropped again, with no backward pass."""
    x = lib.from_numpy(values(0, 8)).requires_grad_()

    def step() -> Any:
        y = x
        for _ in range(1000):
            y = y * 1.0001
        return y

    return Program(step)


add("graph of 1,000 nodes, made and freed", "graph", build_and_free, per=1000)


def deep(length: int) -> Callable[[Any], Program]:
    def build(lib: Any) -> Program:
        x = lib.from_numpy(values(0, 8)).requires_grad_()
        g = lib.from_numpy(np.ones(8, np.float32))
        factor = 1 + 1 / length

        def step() -> Any:
            x.grad = None
            y = x
            for _ in range(length):
                y = y * factor
            y.backward(g)
            return y, x.grad

        return Program(step)

    return build


for _length in (1_000, 10_000, 100_000, 1_000_000):
    add(f"chain of {_length:,} nodes, each", "graph", deep(_length), per=_length, size=_length, smallest=_length == 1_000,
        quick=_length <= 10_000, tolerance=0.02, rounds=1)  # fmt: skip


def fan(lib: Any) -> Program:
    """One leaf is used 100 times: gradients are added up."""
    x = lib.from_numpy(values(0, 8)).requires_grad_()
    g = lib.from_numpy(np.ones(8, np.float32))

    def step() -> Any:
        x.grad = None
        y = x * 0.01
        for _ in range(100):
            y = y + x
        y.backward(g)
        return x.grad

    return Program(step)


add("100 uses of one leaf", "graph", fan, per=100)


# --------------------------------------------------------------------------------------------------- optimizers


def optimizer_step(make: Callable[[Any, Any], Any]) -> Callable[[Any], Program]:
    """``step()`` on ten parameters of 16 numbers that have gradients."""

    def build(lib: Any) -> Program:
        parameters = [lib.from_numpy(values(i, 16)).requires_grad_() for i in range(10)]
        optimizer = make(lib, parameters)
        for i, p in enumerate(parameters):
            p.grad = lib.from_numpy(values(100 + i, 16))

        def step() -> Any:
            optimizer.step()
            return parameters[0]

        return Program(step, lambda: parameters)

    return build


def clipping(lib: Any) -> Program:
    """Of the gradients of ten parameters."""
    parameters = [lib.from_numpy(values(i, 16)).requires_grad_() for i in range(10)]
    for i, p in enumerate(parameters):
        p.grad = lib.from_numpy(values(100 + i, 16))

    def step() -> Any:
        return lib.nn.utils.clip_grad_norm_(parameters, 1.0)

    return Program(step, lambda: [p.grad for p in parameters])


def zeroing(to_none: bool) -> Callable[[Any], Program]:
    def build(lib: Any) -> Program:
        parameters = [lib.from_numpy(values(i, 16)).requires_grad_() for i in range(10)]
        optimizer = lib.optim.SGD(parameters, lr=0.1)
        for i, p in enumerate(parameters):
            p.grad = lib.from_numpy(values(100 + i, 16))

        def step() -> Any:
            optimizer.zero_grad(to_none)
            return parameters

        return Program(step)

    return build


add("clip_grad_norm_, 10 parameters", "optimizer", clipping, per=1)
add("zero_grad, 10 parameters", "optimizer", zeroing(True), per=1)
add("zero_grad to zeros, 10 parameters", "optimizer", zeroing(False), per=1)

OPTIMIZERS: dict[str, Callable[[Any, Any], Any]] = {
    "SGD": lambda lib, p: lib.optim.SGD(p, lr=1e-6),
    "SGD momentum": lambda lib, p: lib.optim.SGD(p, lr=1e-6, momentum=0.9),
    "Adam": lambda lib, p: lib.optim.Adam(p, lr=1e-6),
    "AdamW": lambda lib, p: lib.optim.AdamW(p, lr=1e-6),
    "RMSprop": lambda lib, p: lib.optim.RMSprop(p, lr=1e-6),
}
for _name, _make in OPTIMIZERS.items():
    add(f"{_name}, 10 parameters", "optimizer", optimizer_step(_make), per=1)
