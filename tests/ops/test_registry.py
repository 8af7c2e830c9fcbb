"""What every op gets by being registered."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb.ops.core.registry import _PYTHONS, OPS, flags_of


def test_numpys_names_of_dim_and_keepdim():
    x = torch.arange(6.0).view(2, 3)
    assert x.sum(axis=1, keepdims=True).tolist() == [[3], [12]]
    assert torch.mean(x, axis=0).tolist() == [1.5, 2.5, 3.5]
    assert x.max(axis=1).indices.tolist() == [2, 2]
    assert torch.stack([x, x], axis=1).shape == (2, 2, 3)
    assert torch.linalg.norm(x, axis=1).shape == (2,)
    with pytest.raises(TypeError, match="sum"):
        x.sum(axes=1)
    with pytest.raises(TypeError):
        x.sum(dim=0, axis=0)


def test_signatures_tell_numpys_names():
    """Whoever inspects a function that has dims finds ``axis`` too, as the array API's tests look for it; a call with it is read as one with ``dim``."""

    def said(call, **options):
        with pytest.raises((TypeError, ValueError, RuntimeError)) as caught:
            call(**options)
        return type(caught.value), str(caught.value)

    found = 0
    for op in OPS.values():
        names = inspect.signature(op.call).parameters
        for own, other in (("dim", "axis"), ("keepdim", "keepdims")):
            if own in inspect.signature(inspect.unwrap(op.call)).parameters:
                assert other in names, op.name
                found += 1
                kind, text = said(op.call, **{other: 0})
                assert (kind, text.replace(other, own)) == said(op.call, **{own: 0}), op.name
    assert found > 150
    told = inspect.signature(torch.sum)
    assert str(told) == "(input, dim=None, keepdim=False, *, dtype=None, out=None, axis=None, keepdims=None)"
    assert told == pickle.loads(pickle.dumps(told)) == told.replace() and told.bind(1, axis=0).arguments == {"input": 1, "axis": 0}


def test_sizes_and_dims_by_keyword():
    x = torch.arange(6.0).view(2, 3)
    assert x.view(size=(3, 2)).shape == x.reshape(shape=(3, 2)).shape == x.permute(dims=(1, 0)).shape == (3, 2)
    assert x.expand(size=(4, 2, 3)).shape == (4, 2, 3)
    assert torch.tile(x, dims=(2, 1)).shape == x.repeat(repeats=(2, 1)).shape == (4, 3)


def test_numpys_scalars_are_numbers():
    half, one, x = np.float32(0.5), np.int64(1), torch.ones(2, 3)
    F = torch.nn.functional
    assert torch.full((2,), half).tolist() == [0.5, 0.5]
    assert F.leaky_relu(-x, half).sum() == -3
    assert x.norm(one) == 6
    assert x.quantile(half) == 1
    assert F.dropout(x, half, training=False) is not None
    assert torch.nn.Conv2d(one, 2, one)(torch.ones(1, 1, 2, 2)).shape == (1, 2, 2, 2)


def test_flags_are_bools():
    """Every function of the table refuses a flag that is none, whatever else it is given; the flags are those of its signature."""
    found, taken = 0, []
    for name, op in OPS.items():
        function = inspect.unwrap(op.call)
        required = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
        for flag in () if name in _PYTHONS else flags_of(function):
            found += 1
            try:
                op.call(*[None] * len(required), **{flag: 1.0})
            except TypeError as error:
                taken += [f"{name}: {flag}"] * (f"argument '{flag}' must be bool" not in str(error))
            except Exception:
                taken.append(f"{name}: {flag}")
    assert found > 150 and not taken
