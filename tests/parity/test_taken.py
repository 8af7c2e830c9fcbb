"""What packages take from inside PyTorch's modules gives PyTorch's numbers."""

from __future__ import annotations

import numpy as np
import pytest

import autograd_nb

torch = pytest.importorskip("torch")


def drawn(lib, *shape, seed=0, grad=False):
    return lib.tensor(np.random.default_rng(seed).standard_normal(shape)).requires_grad_(grad)


def groups(lib, a_shape, b_shape, offsets):
    a, b = drawn(lib, *a_shape, grad=True), drawn(lib, *b_shape, seed=1, grad=True)
    out = lib._grouped_mm(a.bfloat16(), b.bfloat16(), offs=None if offsets is None else lib.tensor(offsets, dtype=lib.int32))
    out.float().square().sum().backward()
    return [out.float(), a.grad, b.grad]


PROGRAMS = {
    "softmax": lambda lib: [lib._softmax_backward_data(drawn(lib, 3, 4), drawn(lib, 3, 4, seed=1).softmax(1), 1, lib.float64)],
    "log_softmax": lambda lib: [lib._log_softmax_backward_data(drawn(lib, 3, 4), drawn(lib, 3, 4, seed=1).log_softmax(0), 0, lib.float64)],
    "rows to pointers": lambda lib: [lib._convert_indices_from_coo_to_csr(lib.tensor([0, 0, 2, 5]), 7),
                                     lib._convert_indices_from_coo_to_csr(lib.tensor([1, 1]), 2, out_int32=True)],
    "pointers to rows": lambda lib: [lib._convert_indices_from_csr_to_coo(lib.tensor([0, 2, 2, 3]), lib.tensor([0, 1, 1])),
                                     lib._convert_indices_from_csr_to_coo(lib.tensor([0, 2, 3]), lib.tensor([0, 1, 1]), transpose=True)],
    "casts": lambda lib: [lib._cast_Long(drawn(lib, 3) * 5), lib._cast_Float(drawn(lib, 3)), lib._cast_Half(drawn(lib, 3))],
    "clipped": lambda lib: [lib.distributions.transforms._clipped_sigmoid(lib.tensor([-1e4, 0.3, 1e4]))],
    "groups of rows": lambda lib: groups(lib, (16, 8), (3, 8, 16), [5, 5, 16]),
    "groups of sums": lambda lib: groups(lib, (8, 16), (16, 8), [5, 16]),
    "groups of columns": lambda lib: groups(lib, (2, 8, 16), (16, 24), [7, 24]),
    "groups of both": lambda lib: groups(lib, (2, 8, 16), (2, 16, 8), None),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same(name):
    for ours, theirs in zip(PROGRAMS[name](autograd_nb), PROGRAMS[name](torch), strict=True):
        assert str(ours.dtype) == str(theirs.dtype)
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-2 if "groups" in name else 1e-12)
