"""All ops of the table and a layer of every kind, as calls on given arrays; ``python -m tests.ops.walk FILE`` keeps their results.

What other tests run under other conditions: without a compiler, with arrays beside memory that may not be touched.
"""

from __future__ import annotations

import pickle
import sys
import warnings
from collections.abc import Callable, Iterator

import numpy as np

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb import nn
from autograd_nb.ops.core.registry import OPS

from .table import dtype_of, sample
from .test_observed import OTHERS, POINTWISE

Case = tuple[str, Callable, list[np.ndarray]]


def square(a):
    return a[:, :3] @ a[:, :3].mT + torch.eye(3)


LINALG = {
    "svd": lambda a: torch.linalg.svd(a, full_matrices=False)[1],
    "svdvals": torch.linalg.svdvals,
    "eigh": lambda a: torch.linalg.eigh(square(a))[0],
    "eigvals": lambda a: torch.linalg.eigvals(square(a)).abs().sort()[0],
    "cholesky": lambda a: torch.linalg.cholesky(square(a)),
    "cholesky of 30": lambda a: torch.linalg.cholesky(a.repeat(10, 1) @ a.repeat(10, 1).mT + torch.eye(30)),
    "inv": lambda a: torch.linalg.inv(square(a)),
    "solve": lambda a: torch.linalg.solve(square(a), a[:, :2]),
    "solve of 30": lambda a: torch.linalg.solve(a.repeat(10, 1) @ a.repeat(10, 1).mT + torch.eye(30), a.repeat(10, 1)),
    "det": lambda a: torch.linalg.det(square(a)),
    "slogdet": lambda a: torch.linalg.slogdet(square(a))[1],
    "qr": lambda a: torch.linalg.qr(a.mT)[1].abs(),
    "geqrf": lambda a: torch.geqrf(a.detach())[0],
    "lstsq": lambda a: torch.linalg.lstsq(a.mT, a.mT[:, :1]).solution,
    "lstsq, any rank": lambda a: torch.linalg.lstsq(a.mT.detach(), a.mT[:, :1].detach(), driver="gelsd").solution,
    "pinv": torch.linalg.pinv,
    "matrix_exp": lambda a: torch.linalg.matrix_exp(square(a)),
    "complex product": lambda a: torch.view_as_real((a * (1 + 2j)) @ (a.mT * 1j)),
    "fft": lambda a: torch.view_as_real(torch.fft.rfft(a)),
    "lu": lambda a: torch.linalg.lu(square(a))[2],
}
RANDOM = {
    "rand": lambda a: torch.rand_like(a),
    "randn": lambda a: torch.randn(37, dtype=a.dtype),
    "randint": lambda a: torch.randint(0, 1 << 40, (9,)),
    "bernoulli": lambda a: torch.bernoulli(a.detach().sigmoid()),
    "exponential": lambda a: torch.empty(9).exponential_(),
    "poisson": lambda a: torch.poisson(a.detach().exp() * 20),
    "gamma": lambda a: torch._standard_gamma(a.detach().exp()) if hasattr(torch, "_standard_gamma") else a,
    "randperm": lambda a: torch.randperm(20),
    "multinomial": lambda a: torch.multinomial(a.detach().exp(), 3),
}


def layer(make: Callable, *shape: int) -> tuple[Callable, tuple]:
    def run(x):
        torch.manual_seed(1)
        module = make().to(x.dtype)
        y = module(x)
        return y if isinstance(y, torch.Tensor) else y[0]

    return run, shape


MODULES = {
    "Linear": layer(lambda: nn.Linear(5, 3), 4, 5),
    "Conv1d": layer(lambda: nn.Conv1d(3, 4, 3, padding=1), 2, 3, 9),
    "Conv2d": layer(lambda: nn.Conv2d(3, 9, 3, padding=1), 5, 3, 4, 4),
    "Conv2d, strides": layer(lambda: nn.Conv2d(2, 3, 3, stride=2, padding=1), 3, 2, 7, 5),
    "Conv2d, groups": layer(lambda: nn.Conv2d(4, 6, (3, 2), groups=2, stride=3), 2, 4, 8, 7),
    "Conv2d, by planes": layer(lambda: nn.Conv2d(4, 8, 3, groups=4, padding=1, stride=2), 2, 4, 7, 7),
    "Conv3d": layer(lambda: nn.Conv3d(2, 3, 2), 1, 2, 3, 4, 3),
    "ConvTranspose2d": layer(lambda: nn.ConvTranspose2d(3, 2, 3, stride=2), 2, 3, 4, 4),
    "MaxPool1d": layer(lambda: nn.MaxPool1d(2), 2, 3, 8),
    "MaxPool2d": layer(lambda: nn.MaxPool2d(3, 2, 1), 2, 3, 8, 7),
    "AvgPool2d": layer(lambda: nn.AvgPool2d(2), 2, 3, 8, 7),
    "AdaptiveAvgPool2d": layer(lambda: nn.AdaptiveAvgPool2d(3), 2, 3, 8, 7),
    "AdaptiveMaxPool1d": layer(lambda: nn.AdaptiveMaxPool1d(3), 2, 3, 8),
    "LPPool2d": layer(lambda: nn.LPPool2d(2, 2), 2, 3, 8, 6),
    "BatchNorm2d": layer(lambda: nn.BatchNorm2d(3), 2, 3, 4, 5),
    "LayerNorm": layer(lambda: nn.LayerNorm(6), 4, 6),
    "GroupNorm": layer(lambda: nn.GroupNorm(2, 4), 2, 4, 5),
    "InstanceNorm1d": layer(lambda: nn.InstanceNorm1d(3), 2, 3, 6),
    "RMSNorm": layer(lambda: nn.RMSNorm(6), 4, 6),
    "LocalResponseNorm": layer(lambda: nn.LocalResponseNorm(2), 2, 4, 5),
    "CrossMapLRN2d": layer(lambda: nn.CrossMapLRN2d(3), 2, 4, 5, 2),
    "LSTM": layer(lambda: nn.LSTM(3, 5, 2, bidirectional=True), 4, 2, 3),
    "GRU": layer(lambda: nn.GRU(3, 5), 4, 2, 3),
    "RNN": layer(lambda: nn.RNN(3, 5), 4, 2, 3),
    "LSTMCell": layer(lambda: nn.LSTMCell(3, 5), 2, 3),
    "Attention": layer(lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 2, 5, 8),
    "Attention, 40 positions": layer(lambda: Heads(), 2, 3, 40, 9),
    "Dropout": layer(lambda: nn.Dropout(0.5), 4, 6),
    "PReLU": layer(lambda: nn.PReLU(3), 2, 3, 4),
    "Softmax": layer(lambda: nn.Softmax(-1), 3, 5),
    "Upsample, bilinear": layer(lambda: nn.Upsample(scale_factor=2, mode="bilinear"), 2, 3, 4, 4),
    "Upsample, bicubic": layer(lambda: nn.Upsample(size=(5, 7), mode="bicubic"), 1, 2, 4, 4),
    "PixelShuffle": layer(lambda: nn.PixelShuffle(2), 1, 4, 3, 3),
    "Unfold": layer(lambda: nn.Unfold(2), 1, 2, 4, 4),
    "ReflectionPad2d": layer(lambda: nn.ReflectionPad2d(1), 1, 2, 4, 4),
    "Bilinear": layer(lambda: Pair(), 4, 3),
}
LOSSES = {
    "ctc_loss": lambda a: F.ctc_loss(
        a.reshape(6, 1, 2).log_softmax(-1), torch.ones(1, 2, dtype=torch.int64), torch.tensor([6]), torch.tensor([2])
    ),
    "grid_sample": lambda a: F.grid_sample(a.reshape(1, 1, 3, 4), torch.linspace(-1, 1, 18, dtype=a.dtype).reshape(1, 3, 3, 2), align_corners=False),
    "cdist": lambda a: torch.cdist(a, a * 2),
    "cumprod": lambda a: a.cumprod(1),
    "logcumsumexp": lambda a: a.logcumsumexp(0),
    "embedding_bag": lambda a: F.embedding_bag(torch.tensor([[0, 2], [1, 1]]), a),
    "histc": lambda a: torch.histc(a.detach(), 5),
    "bincount": lambda a: torch.bincount(torch.tensor([0, 2, 2])),
    "unique": lambda a: torch.unique(a.detach().round()),
    "median": lambda a: a.median(1)[0],
    "kthvalue": lambda a: a.kthvalue(2, 1)[0],
    "nll_loss": lambda a: F.nll_loss(a, torch.tensor([1, 0, 3])),
    "huge exponent": lambda a: (a * 1000).exp() + (a - 5).log(),
    "integers overflow": lambda a: torch.tensor([2**62, 5]) * 3 + torch.tensor([(1 << 31) - 1, 7], dtype=torch.int32).sum(),
    "division by zero": lambda a: torch.tensor([1.0, 0.0, -1.0]) / 0,
    "nan": lambda a: (a * float("nan")).max(0)[0],
}  # fmt: skip


class Heads(nn.Module):
    def forward(self, x):
        return F.scaled_dot_product_attention(x, x * 2, x + 1, is_causal=True)


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Bilinear(3, 3, 2)

    def forward(self, x):
        return self.inner(x, x + 1)


def cases() -> Iterator[Case]:
    """(name, function of tensors, arrays) of each call."""
    for name in POINTWISE:
        count = min(len(OPS[name].rule.params), 3)
        yield f"op {name}", OPS[name].call, [sample(name, i, (3, 4), dtype_of(name)) for i in range(count)]
    for name, function in OTHERS.items():
        yield f"other {name}", function, [sample("add", i, (3, 4), "float32", ord(name[-1])) for i in range(2)]
    for kind in (LINALG, RANDOM, LOSSES):
        for name, function in kind.items():
            yield name, function, [sample("add", 0, (3, 4), "float64", len(name))]
    for name, (function, shape) in MODULES.items():
        yield f"module {name}", function, [sample("add", 0, shape, "float32", len(name))]


def results(function: Callable, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The value, and the gradients of the sum of its squares."""
    torch.manual_seed(0)
    given = [torch.from_numpy(a.copy()).requires_grad_(a.dtype.kind == "f") for a in arrays]
    value = function(*given)
    found = [value]
    wanted = [t for t in given if t.requires_grad]
    if value.requires_grad and value.dtype.is_floating_point:
        found += [g for g in torch.autograd.grad(value.square().sum(), wanted, allow_unused=True) if g is not None]
    return [t.detach().numpy() for t in found]


def main(path: str) -> None:
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # a compiled kernel gives none
        for name, function, arrays in cases():
            try:
                for _ in range(3):  # what has been called before goes a shorter way
                    found[name] = results(function, arrays)
            except Exception as error:
                found[name] = f"{type(error).__name__}: {error}"
    with open(path, "wb") as file:
        pickle.dump(found, file)


if __name__ == "__main__":
    main(sys.argv[1])
