"""A compiled function that changes a part of an argument leaves the rest alone."""

from __future__ import annotations

import numpy as np
import pytest

import autograd_nb as torch

PARTS = {
    "narrow": lambda z: z.narrow(0, 0, 1), "first rows": lambda z: z[:2], "a row": lambda z: z[1], "middle": lambda z: z[1:2],
    "flat": lambda z: z.view(-1)[:5], "columns": lambda z: z[:, :2], "all": lambda z: z,
}  # fmt: skip
CHANGES = {
    "copy": lambda v: v.copy_(v * 2), "add": lambda v: v.add_(v * 1), "lerp": lambda v: v.lerp_(v * 2, 0.5),
    "mask": lambda v: v.masked_fill_(v > 0, 2.0), "twice": lambda v: v.mul_(2).exp_(), "sums": lambda v: v.sub_(v.sum(-1, keepdim=True)),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("part", PARTS)
def test_fused_steps_write_no_further(part, change):
    cut, write = PARTS[part], CHANGES[change]

    def function(z):
        write(cut(z))
        return z.sum()

    step = torch.compile(function)
    for k in range(3):
        z = torch.from_numpy(np.random.default_rng(k).standard_normal((3, 4)))
        w = z.clone()
        function(w)
        step(z)
        np.testing.assert_allclose(z.numpy(), w.numpy(), rtol=1e-12)


LOOKS = {
    "the real parts": ("complex128", lambda x: x.real), "the imaginary parts": ("complex128", lambda x: x.imag),
    "pairs": ("complex128", torch.view_as_real), "complex numbers": ("float64", lambda x: torch.view_as_complex(x.view(-1, 2))),
    "bits": ("float64", lambda x: x.view(torch.int64)), "bytes": ("float64", lambda x: x.view(torch.uint8)[:, 3:]),
    "halves": ("bfloat16", lambda x: x.view(torch.int16)), "truth": ("bool", lambda x: x.view(torch.uint8)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("look", LOOKS)
def test_a_result_looks_at_an_argument_in_another_dtype(look):
    dtype, function = LOOKS[look]
    compiled = torch.compile(function)
    for k in range(3):
        x = (torch.arange(6).view(3, 2) + k).to(getattr(torch, dtype))
        found, expected = compiled(x), function(x)
        assert found.dtype is expected.dtype and found.stride() == expected.stride() and found.tolist() == expected.tolist()
        found.mul_(0)
        assert expected.ne(0).sum() == 0


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("look", [lambda x: x._base, lambda x: x._base[1:], lambda x: x._base[:5], lambda x: x._base.view(3, 3)])
def test_a_result_looks_further_than_an_argument(look):
    compiled = torch.compile(look)
    for k in range(3):
        base = torch.arange(9.0) + k
        found = compiled(base[3:6])
        assert found.tolist() == look(base[3:6]).tolist()
        found.add_(10)
        assert found.tolist() == look(base[3:6]).tolist()
