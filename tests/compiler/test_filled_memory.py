"""Memory that a function makes and fills, and gradients that are views of what comes in, are captured like any other."""

from __future__ import annotations

import numpy as np
import pytest

import autograd_nb as torch

INDEX = torch.tensor([1])


def written(x):
    y = torch.zeros(3)
    y[1] = (x * 2).sum()
    return y.sum()


@pytest.mark.parametrize("make", [
    lambda x: torch.zeros(3), lambda x: torch.full((3,), 2.0), lambda x: torch.empty(3).fill_(x.sum()), lambda x: torch.ones_like(x) + x,
])  # fmt: skip
def test_filled_results(make):
    compiled = torch.compile(make, fullgraph=True)
    for x in (torch.ones(3), torch.arange(3.0)):
        first = compiled(x)
        assert torch.equal(first, make(x))
        assert compiled(x) is not first
        assert torch.equal(first, make(x))


@pytest.mark.parametrize("function", [
    lambda x: x.sum(), lambda x: x[:2].sum(), lambda x: x[INDEX].sum(), lambda x: x[0] * 2, lambda x: x.mean(), written,
    lambda x: x.expand(2, 3).sum() + x.max(),
])  # fmt: skip
def test_gradients(function):
    x = torch.tensor([1.0, 4.0, 2.0], requires_grad=True)
    (expected,) = torch.autograd.grad(function(x), x)
    compiled = torch.compile(function, fullgraph=True)
    for factor in (1.0, 3.0):
        (found,) = torch.autograd.grad(compiled(x) * factor, x)
        assert torch.allclose(found, expected * factor)


@pytest.mark.parametrize("function, value, gradient", [
    (lambda x: x.sum(), 6, [1, 1, 1]),
    (lambda x: x[:2].sum(), 3, [1, 1, 0]),
    (lambda x: x[INDEX].square().sum(), 4, [0, 4, 0]),
    (lambda x: x[1], 2, [0, 1, 0]),
    (lambda x: x.reshape(1, 3).sum(), 6, [1, 1, 1]),
])  # fmt: skip
def test_numba_callable(function, value, gradient):
    f = torch.numba_callable(function, np.zeros(3))
    g = np.empty(3)
    for _ in range(2):
        assert f(np.array([1.0, 2.0, 3.0]), g) == value
        assert g.tolist() == gradient
