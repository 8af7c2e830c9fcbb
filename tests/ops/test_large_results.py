"""Large results and gradients lie in memory that was used before (`launch.memory`): new memory costs a fault of the processor for each page."""

from __future__ import annotations

import pytest

import autograd_nb as torch
from autograd_nb.nn import functional as F

SIDE = 512  #: of square operands, of a megabyte

z = torch.ones(SIDE, SIDE)
images = torch.ones(4, 16, 64, 64)
first = torch.zeros(SIDE, dtype=torch.int64)

RESULTS = {
    "cat": lambda: torch.cat([z, z], 1),
    "cat of many": lambda: torch.cat([z] * 40),
    "stack": lambda: torch.stack([z, z]),
    "product of matrices": lambda: z @ z,
    "pointwise": lambda: z + z[0],
    "where": lambda: torch.where(z > 0, z, 0.0),
    "softmax": lambda: z.softmax(1),
    "running sums": lambda: z.cumsum(1),
    "sort": lambda: z.sort(1).values,
    "pad": lambda: F.pad(z, (1, 1)),
    "convolution": lambda: F.conv2d(images, torch.ones(16, 16, 3, 3), padding=1),
    "convolution by pixels": lambda: F.conv2d(images, torch.ones(32, 16, 1, 1)),
    "resizing": lambda: F.interpolate(images, scale_factor=2),
    "batch norm": lambda: F.batch_norm(images, None, None, training=True),
    "dropout": lambda: F.dropout(z, 0.5),
    "draws": lambda: torch.rand(SIDE, SIDE),
    "zeros": lambda: torch.zeros(SIDE, SIDE),
    "cast": lambda: z.double(),
    "layer norm": lambda: F.layer_norm(z, (SIDE,)),
    "rows picked": lambda: z[first],
    "gathered": lambda: z.gather(1, first.expand(SIDE, SIDE)),
    "turned": lambda: z.t().contiguous(),
    "flip": lambda: z.flip(0),
    "roll": lambda: z.roll(3, 1),
    "distances": lambda: torch.cdist(z, z),
    "repeat": lambda: z.repeat(2, 1),
    "triangle": lambda: z.tril(),
    "block_diag": lambda: torch.block_diag(z, z),
}
GRADIENTS = {
    "product": lambda a, b: a * b,
    "chain": lambda a, b: (a * b).tanh() * b,
    "quotient": lambda a, b: a / (b + 1),
    "matrices": lambda a, b: a @ b,
    "cat": lambda a, b: torch.cat([a, b], 1),
    "part": lambda a, b: a[:, ::2] * b[:, 1::2],
    "layer norm": lambda a, b: F.layer_norm(a, (SIDE,)) * b,
    "loss": lambda a, b: F.mse_loss(a, b),
}


def in_pool(t: torch.Tensor) -> bool:
    return hasattr(t._data.base, "block")


@pytest.mark.parametrize("name", RESULTS)
def test_result(name):
    for _ in range(3):  # as it is first computed, and as it is repeated
        assert in_pool(RESULTS[name]())


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    a, b = (torch.ones(SIDE, SIDE, requires_grad=True) for _ in range(2))
    for _ in range(4):
        y = GRADIENTS[name](a, b)
        for g in torch.autograd.grad(y, [a, b], torch.ones_like(y)):
            assert in_pool(g)
