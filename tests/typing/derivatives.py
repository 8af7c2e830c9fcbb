"""Gradients, functions of one's own, transforms, compiled functions."""
# pyright: strict

from __future__ import annotations

from typing import Any, assert_type

import autograd_nb as torch
from autograd_nb import Tensor
from autograd_nb.autograd import Function, forward_ad, gradcheck
from autograd_nb.autograd.function import FunctionCtx
from autograd_nb.func import grad, hessian, jacrev, jvp, vjp, vmap


class Cube(Function):
    """x³ with a derivative of one's own."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: FunctionCtx, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g


def energy(x: Tensor) -> Tensor:
    return (x.sin() ** 2).sum()


def gradients() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = energy(x)
    y.backward(retain_graph=True)
    if x.grad is not None:
        assert_type(x.grad, Tensor)
    (dx,) = torch.autograd.grad(y, x, create_graph=True)
    assert_type(dx, Tensor)
    assert_type(gradcheck(energy, (x.double(),)), bool)
    handle = x.register_hook(lambda g: g * 2)
    handle.remove()
    cube = Cube.apply(x)
    assert isinstance(cube, Tensor)
    print(cube.grad_fn, y.grad_fn)
    with torch.enable_grad(), torch.set_grad_enabled(True), torch.autograd.detect_anomaly():
        energy(x).backward()
    with forward_ad.dual_level():
        d = forward_ad.make_dual(x, torch.ones_like(x))
        print(forward_ad.unpack_dual(d).tangent)


@torch.no_grad()
def untracked(x: Tensor) -> Tensor:
    return x * 2


@torch.inference_mode()
def served(x: Tensor) -> Tensor:
    return x * 2


def transforms(x: Tensor) -> None:
    assert_type(untracked(x), Tensor)
    assert_type(served(x), Tensor)
    slope: Tensor = grad(energy)(x)
    curvature: Tensor = hessian(energy)(x)
    rows: Tensor = vmap(energy)(x)
    jacobian: Tensor = jacrev(torch.sin)(x)
    value, tangent = jvp(energy, (x,), (torch.ones_like(x),))
    pulled: Any = vjp(energy, x)
    print(slope, curvature, rows, jacobian, value, tangent, pulled)


@torch.compile
def step(x: Tensor, rate: float) -> Tensor:
    return x - rate * x.cos()


@torch.compile(dynamic=True)
def scaled(x: Tensor, factor: float = 2.0) -> Tensor:
    return x * factor


def compiled(x: Tensor) -> Tensor:
    assert_type(step(x, 0.1), Tensor)
    assert_type(scaled(x, factor=3.0), Tensor)
    fast = torch.compile(energy)
    assert_type(fast(x), Tensor)
    print(step.programs, step)
    return fast(x)
