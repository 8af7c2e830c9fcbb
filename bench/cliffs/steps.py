"""Whole steps, written for this library alone: what a compiled function makes of them shall not be slower than they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Step = Callable[[], Any]


def parameters(lib: Any, count: int = 200, *shape: int) -> list[Any]:
    found = [lib.randn(*shape or (10, 10)).requires_grad_() for _ in range(count)]
    for p in found:
        p.grad = lib.randn_like(p)
    return found


def optimizers(lib: Any) -> Iterator[tuple[str, Step]]:
    options: dict[str, dict[str, float]] = {"SGD": {}, "SGD momentum": {"momentum": 0.9}, "Adam": {}, "AdamW": {}, "RMSprop": {}, "Adagrad": {}}
    for name, given in options.items():
        optimizer = getattr(lib.optim, name.split()[0])(parameters(lib), lr=1e-3, **given)
        yield f"{name}, 200 tensors of 10×10", lambda optimizer=optimizer: optimizer.step()
    clipped = parameters(lib)
    yield "clip_grad_norm_, 200 tensors of 10×10", lambda: lib.nn.utils.clip_grad_norm_(clipped, 1.0)


def accumulation(lib: Any) -> Iterator[tuple[str, Step]]:
    losses: dict[str, Callable[[Any], Any]] = {"tanh": lambda x: x.tanh().sum(), "σ·tanh + exp": lambda x: (x.sigmoid() * x.tanh() + x.exp()).sum()}
    for size in (1000, 100_000, 1_000_000):
        for name, loss in losses.items():
            x = lib.randn(size).requires_grad_()
            yield f"{name} of {size:,}, added to a gradient", lambda x=x, loss=loss: loss(x).backward()
    for name, shape, rows in (("bias", (1000,), (100, 1000)), ("column", (100, 1), (100, 1000)), ("number", (), (100, 1000))):
        x, ones = lib.randn(shape).requires_grad_(), lib.ones(rows)
        yield f"{name}, added to a gradient", lambda x=x, ones=ones: (ones * x).tanh().sum().backward()


def results(lib: Any) -> Iterator[tuple[str, Step]]:
    for size in (100, 10_000, 100_000, 1_000_000):
        a, b = lib.randn(size), lib.randn(size)
        yield f"a + b of {size:,}", lambda a=a, b=b: a + b
    for size in (2, 32):
        a, b = lib.randn(size, size), lib.randn(size, size)
        yield f"product {size}×{size}", lambda a=a, b=b: a @ b
    yield "rand(100)", lambda: lib.rand(100)


def in_place(lib: Any) -> Iterator[tuple[str, Step]]:
    a, b, F = lib.randn(700, 700), lib.randn(700, 700), lib.nn.functional
    changes = {
        "relu_": lambda: a.relu_(), "leaky_relu_": lambda: F.leaky_relu_(a), "elu_": lambda: F.elu_(a), "threshold_": lambda: F.threshold_(a, 0.1, 0.2),
        "clamp_": lambda: a.clamp_(-0.1, 0.1), "masked_fill_": lambda: a.masked_fill_(b > 0, 1.0), "add_": lambda: a.add_(b, alpha=0.001),
        "mul_": lambda: a.mul_(1.0), "lerp_": lambda: a.lerp_(b, 0.1), "copy_": lambda: a.copy_(b), "zero_": lambda: a.zero_(),
    }  # fmt: skip
    for name, change in changes.items():
        yield f"{name} of 490,000", change


FAMILIES = optimizers, accumulation, results, in_place


def steps(lib: Any) -> Iterator[tuple[str, Step]]:
    for family in FAMILIES:
        yield from family(lib)
