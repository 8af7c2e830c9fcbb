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
