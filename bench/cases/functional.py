"""Cases written once more as functions of arrays, for the peers that have NumPy's API: JAX, HIPS autograd and MyGrad."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.case import Program


def fill(lib: Any, model: Any, seed: int = 0) -> None:
    """The same parameters in every library: normal, of the scale that keeps magnitudes from layer to layer."""
    with lib.no_grad():
        for p, values in zip(model.parameters(), initial([tuple(p.shape) for p in model.parameters()], seed), strict=True):
            p.copy_(lib.from_numpy(values))


def initial(shapes: list[tuple[int, ...]], seed: int = 0) -> list[np.ndarray]:
    """Parameters of those shapes; `fill` puts the same ones into a module."""
    rng = np.random.default_rng(seed)
    return [(rng.standard_normal(s) / np.sqrt(max(int(np.prod(s[1:])), 4))).astype(np.float32) for s in shapes]


class Named:
    """PyTorch's names for the functions of a NumPy-like module."""

    def __init__(self, np: Any):
        self.np = np

    def __getattr__(self, name: str) -> Any:
        return getattr(self.np, name)

    def sigmoid(self, x: Any) -> Any:
        return 1 / (1 + self.np.exp(-x))

    def relu(self, x: Any) -> Any:
        return self.np.maximum(x, np.float32(0))


def cross_entropy(np: Any, logits: Any, target: np.ndarray) -> Any:
    """Mean negative log-likelihood; for logits so small that exp does not overflow."""
    rows = range(len(target))
    return np.mean(np.log(np.sum(np.exp(logits), axis=1)) - logits[list(rows), target])


Loss = Callable[..., Any]  # (np, parameters, *data) -> scalar


def training(loss: Loss, parameters: list[np.ndarray], data: list[np.ndarray], lr: float) -> dict[str, Callable[[], Program]]:
    """Peers that run a step of plain gradient descent on ``loss(np, parameters, *data)``, each in its usual way."""

    def jax_program() -> Program:
        import jax

        value_and_grad = jax.value_and_grad(lambda p, *d: loss(jax.numpy, p, *d))
        held = [jax.numpy.asarray(p) for p in parameters]
        fixed = [jax.numpy.asarray(d) for d in data]
        gradients = jax.jit(value_and_grad)(held, *fixed)[1]

        @jax.jit
        def update(p: list, *d: Any) -> tuple:
            value, g = value_and_grad(p, *d)
            return value, [a - lr * b for a, b in zip(p, g, strict=True)]

        def step() -> Any:
            nonlocal held
            value, held = update(held, *fixed)
            return jax.block_until_ready(value)

        return Program(step, lambda: gradients)

    def autograd_program() -> Program:
        import autograd
        import autograd.numpy

        value_and_grad = autograd.value_and_grad(lambda p: loss(autograd.numpy, p, *data))
        held, latest = list(parameters), []

        def step() -> Any:
            nonlocal held, latest
            value, latest = value_and_grad(held)
            held = [a - np.float32(lr) * b for a, b in zip(held, latest, strict=True)]
            return value

        return Program(step, lambda: latest)

    def mygrad_program() -> Program:
        import mygrad

        held = [mygrad.tensor(p) for p in parameters]

        def step() -> Any:
            nonlocal held
            value = loss(mygrad, held, *data)
            value.backward()
            gradients[:] = [p.grad for p in held]
            held = [mygrad.tensor(p.data - np.float32(lr) * p.grad, copy=False) for p in held]
            return value

        gradients: list = []
        return Program(step, lambda: gradients)

    return {"JAX": jax_program, "autograd": autograd_program, "MyGrad": mygrad_program}


def gradients_of(fn: Callable[..., Any], data: list[np.ndarray]) -> dict[str, Callable[[], Program]]:
    """Peers that compute ``y = fn(np, *data)`` and the gradients of its sum, and return them as (y, gradients…)."""

    def jax_program() -> Program:
        import jax

        fixed = [jax.numpy.asarray(d) for d in data]

        @jax.jit
        def run(*x: Any) -> tuple:
            y, back = jax.vjp(lambda *a: fn(jax.numpy, *a), *x)
            return y, back(jax.numpy.ones_like(y))

        return Program(lambda: jax.block_until_ready(run(*fixed)))

    def autograd_program() -> Program:
        import autograd
        import autograd.numpy

        run = autograd.make_vjp(lambda x: fn(autograd.numpy, *x))

        def step() -> Any:
            back, y = run(tuple(data))
            return y, back(np.ones_like(y))

        return Program(step)

    def mygrad_program() -> Program:
        import mygrad

        def step() -> Any:
            x = [mygrad.tensor(d, copy=False) for d in data]
            y = fn(mygrad, *x)
            y.backward(np.ones_like(y.data))
            return y, [v.grad for v in x]

        return Program(step)

    return {"JAX": jax_program, "autograd": autograd_program, "MyGrad": mygrad_program}
