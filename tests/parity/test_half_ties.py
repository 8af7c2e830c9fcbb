"""Where an element of half precision is what a bound becomes in it, gradients and recorded gradients are PyTorch's."""

import pytest
import torch

import autograd_nb

CALLS = {
    "clamp": lambda lib, x: x.clamp(-0.3, 0.7),
    "clamp of tensors": lambda lib, x: x.clamp(lib.tensor(-0.3), lib.tensor(0.7)),
    "clamp_min": lambda lib, x: x.clamp(min=0.7),
    "clamp_max": lambda lib, x: x.clamp(max=0.7),
    "hardtanh": lambda lib, x: lib.nn.functional.hardtanh(x, -0.3, 0.7),
    "threshold": lambda lib, x: lib.nn.functional.threshold(x, 0.7, 0.1),
    "hardshrink": lambda lib, x: lib.nn.functional.hardshrink(x, 0.7),
    "softshrink": lambda lib, x: lib.nn.functional.softshrink(x, 0.7),
    "softshrink by 0.3": lambda lib, x: lib.nn.functional.softshrink(x, 0.3),
    "maximum": lambda lib, x: lib.maximum(x, lib.tensor(0.7)),
    "where": lambda lib, x: lib.where(x <= 0.7, x, x * 2),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("recorded", [False, True])
def test_gradients(name, kind, recorded):
    found = []
    for lib in (torch, autograd_nb):
        x = lib.tensor([0.7, 0.6, 0.8, -0.3, -0.7]).to(getattr(lib, kind)).requires_grad_()
        y = CALLS[name](lib, x)
        (g,) = lib.autograd.grad(y.sum(), x, create_graph=recorded)
        found.append((y.tolist(), g.tolist()))
    assert found[0] == found[1]
