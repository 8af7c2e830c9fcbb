"""The package functorch, which comes with `as_torch` and the shim."""

from __future__ import annotations

import subprocess
import sys

import pytest

import autograd_nb as torch
from autograd_nb.compat import functorch


def test_is_imported_beside_torch():
    code = "import autograd_nb; autograd_nb.as_torch(); from functorch import make_functional, vmap; import torch; assert vmap is torch.func.vmap"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_gradients_of_samples():
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh(), torch.nn.Linear(2, 1))
    f, parameters = functorch.make_functional(model)
    x = torch.randn(5, 3)
    each = functorch.vmap(functorch.grad(lambda p, one: f(p, one).sum()), (None, 0))(parameters, x)
    model(x).sum().backward()
    for own, p in zip(each, model.parameters(), strict=True):
        torch.testing.assert_close(own.sum(0), p.grad)


def test_ensembles_and_what_is_refused():
    models = [torch.nn.BatchNorm1d(3).eval() for _ in range(2)]
    f, parameters, buffers = functorch.combine_state_for_ensemble(models)
    x = torch.randn(4, 3)
    torch.testing.assert_close(functorch.vmap(f, (0, 0, None))(parameters, buffers, x)[1], models[1](x))
    assert not any(p.requires_grad for p in parameters)
    assert not any(p.requires_grad for p in functorch.make_functional_with_buffers(models[0], disable_autograd_tracking=True)[1])
    with pytest.raises(RuntimeError, match="has buffers"):
        functorch.make_functional(models[0])
    with pytest.raises(RuntimeError, match="at least one"):
        functorch.combine_state_for_ensemble([])
