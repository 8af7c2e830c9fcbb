"""What packages take from the inside of `autograd.functional`, beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ag  # noqa: E402

PARTS = [
    "_as_tuple", "_as_tuple_nocheck", "_autograd_grad", "_construct_standard_basis_for", "_fill_in_zeros", "_grad_postprocess", "_grad_preprocess",
    "_tuple_postprocess", "_validate_v",
]  # fmt: skip


def pushed(library):
    """Jx and all rows of J by these parts, as packages write it."""
    of = {name: getattr(library.autograd.functional, name) for name in PARTS}
    several, inputs = of["_as_tuple"](library.tensor([0.5, 2.0]), "inputs", "pushed")
    inputs = of["_grad_preprocess"](inputs, create_graph=False, need_graph=True)
    y = of["_as_tuple_nocheck"](inputs[0] ** 2 * inputs[0].sum())
    v = (library.tensor([1.0, 3.0]),)
    of["_validate_v"](v, inputs, several)
    with pytest.raises(RuntimeError, match="invalid size"):
        of["_validate_v"]((library.ones(3),), inputs, several)
    row = of["_autograd_grad"](y, inputs, v, retain_graph=True)
    basis = of["_construct_standard_basis_for"](y, [2])
    every = of["_autograd_grad"](y, inputs, basis, create_graph=True, is_grads_batched=True)
    none = of["_autograd_grad"]((library.ones(2),), inputs)
    row, every, none = (of["_grad_postprocess"](of["_fill_in_zeros"](g, inputs, False, False, "back"), False) for g in (row, every, none))
    assert not every[0].requires_grad
    return [of["_tuple_postprocess"](g, several).tolist() for g in (row, every, none)]


def test_parts():
    for x, y in zip(pushed(ag), pushed(torch), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)


def test_bases_of_several_tensors():
    parts = [[part.tolist() for part in lib.autograd.functional._construct_standard_basis_for((lib.ones(1), lib.ones(2)), (1, 2))] for lib in (ag, torch)]
    assert parts[0] == parts[1]
