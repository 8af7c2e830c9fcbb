"""Every kernel of a call is told of, also when eager calls of the same layouts have left quick ways behind.

What an observer was told is run again on other values: a launch that it missed would leave the values of before in place.
"""

from __future__ import annotations

import pytest

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb import launch
from autograd_nb.ops.core.registry import OPS

from .table import dtype_of, sample

pytestmark = pytest.mark.slow  # many kernels

POINTWISE = sorted(n for n, o in OPS.items() if n == o.name and o.kind == "pointwise" and hasattr(o.rule, "params"))
INDEX = torch.tensor([2, 0, 2])
WEIGHT = torch.linspace(0.5, 1.5, 12).reshape(3, 4)


def changed(change):
    """The function of (a, b) that changes a copy of a."""

    def function(a, b):
        y = a * 1
        change(y, b)
        return y

    return function


OTHERS = {
    "sum": lambda a, b: a.sum(0),
    "mean": lambda a, b: a.mean(),
    "std": lambda a, b: a.std(-1),
    "amax": lambda a, b: a.amax(1),
    "norm": lambda a, b: a.norm(),
    "sum of a product": lambda a, b: (a * b).sum(),
    "logsumexp": lambda a, b: a.logsumexp(0),
    "cumsum": lambda a, b: a.cumsum(1),
    "sort": lambda a, b: a.sort()[0],
    "where": lambda a, b: torch.where(a > b, a, b),
    "clamp": lambda a, b: a.clamp(b - 0.5, b),
    "lerp": lambda a, b: a.lerp(b, 0.3),
    "numbers": lambda a, b: 2 - a / 3,
    "cat": lambda a, b: torch.cat([a, b], 1),
    "stack": lambda a, b: torch.stack([a, b, a]),
    "linear": lambda a, b: F.linear(a, b),
    "matmul": lambda a, b: a @ b.t(),
    "turned": lambda a, b: a.t() @ b,
    "addmm": lambda a, b: F.linear(a, b, b[:, 0]),
    "matvec": lambda a, b: a @ b[0],
    "bmm": lambda a, b: a.expand(2, 3, 4) @ b.t(),
    "softmax": lambda a, b: a.softmax(-1) * b.log_softmax(0),
    "layer_norm": lambda a, b: F.layer_norm(a, (4,), b[0], b[1]),
    "batch_norm": lambda a, b: F.batch_norm(a, None, None, b[0], b[1], training=True),
    "cross_entropy": lambda a, b: F.cross_entropy(a, INDEX),
    "mse_loss": lambda a, b: F.mse_loss(a, b),
    "embedding": lambda a, b: F.embedding(INDEX, a),
    "index": lambda a, b: a[INDEX],
    "select": lambda a, b: a[1] * b[2],
    "gather": lambda a, b: a.gather(0, INDEX.expand(4, 3).t()),
    "index_select": lambda a, b: a.index_select(0, INDEX),
    "masked_fill": lambda a, b: a.masked_fill(b > 0, 2),
    "index_add": lambda a, b: a.index_add(0, INDEX, b),
    "windows": lambda a, b: a.unfold(1, 2, 1),
    "strided": lambda a, b: a.clone().as_strided((2, 3), (1, 2)),
    "pad": lambda a, b: F.pad(a, (1, 1)),
    "roll": lambda a, b: a.roll(1, 0),
    "flip": lambda a, b: a.flip(1),
    "conv1d": lambda a, b: F.conv1d(a[None], b[:, :3, None]),
    "max_pool1d": lambda a, b: F.max_pool1d(a[None], 2),
    "dropout": lambda a, b: F.dropout(a, 0.5),
    "randn": lambda a, b: a * torch.randn(3, 4),
    "thrice": lambda a, b: a.sin() + a.exp() * b + a * b,
    "double": lambda a, b: a.double(),
    "arange": lambda a, b: a * torch.arange(4),
    "einsum": lambda a, b: torch.einsum("ij,kj->ik", a, b),
    "attention": lambda a, b: F.scaled_dot_product_attention(a, b, b),
    "add_": changed(lambda y, b: y.add_(b)),
    "mul_": changed(lambda y, b: y.mul_(b)),
    "row -=": changed(lambda y, b: y[1].sub_(b[0] * b[1])),
    "y[0] = b": changed(lambda y, b: y.__setitem__(0, b[0])),
    "y[index] = 2": changed(lambda y, b: y.detach().__setitem__(INDEX, 2.0)),
    "y[..., ::2] = b": changed(lambda y, b: y[..., ::2].copy_(b[:, :2])),
    "y.t() *= b": changed(lambda y, b: y.t().mul_(b.t())),
    "fill_": changed(lambda y, b: y[0].fill_(3)),
}


def results(function, arguments):
    """What it gives, and the gradients of first and second order; the first ones also by the pass that records nothing."""
    value = function(*arguments)
    found, wanted = [value], [a for a in arguments if a.requires_grad]
    for _ in range(2):
        if not wanted or not value.requires_grad:
            break
        seed = torch.ones_like(value) if value.shape != WEIGHT.shape else WEIGHT.to(value.dtype)
        for recorded in (False, True):
            gradients = torch.autograd.grad(value, wanted, seed, True, recorded, allow_unused=True)
            found += (gradients := [g for g in gradients if g is not None])
        value = sum(g.sum() for g in gradients)
    return [t.detach() for t in found]


def assert_told(function, arrays, others):
    def arguments():
        return [torch.from_numpy(a.copy()).requires_grad_(a.dtype.kind == "f") for a in arrays]

    launches = []

    def observer(call, args):
        launches.append((call, args))
        call.entry(*args)

    for _ in range(2):
        results(function, arguments())
    mine, theirs = arguments(), arguments()
    torch.manual_seed(0)
    with launch.observe(observer):
        found = results(function, mine)
    for place, other in zip((*mine, *theirs), others * 2, strict=True):
        place.detach().numpy()[...] = other
    for call, args in launches:
        call.entry(*args)
    torch.manual_seed(0)
    for value, wanted in zip(found, results(function, theirs), strict=True):
        torch.testing.assert_close(value, wanted, rtol=1e-5, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("name", POINTWISE)
def test_pointwise_ops_tell_all_that_they_launch(name):
    count = min(len(OPS[name].rule.params), 3)
    first, second = ([sample(name, i, (3, 4), dtype_of(name), seed) for i in range(count)] for seed in (0, 1))
    assert_told(lambda *args: OPS[name].call(*args), first, second)


@pytest.mark.parametrize("name", OTHERS)
def test_other_ops_tell_all_that_they_launch(name):
    first, second = ([sample(name, i, (3, 4), "float32", seed) for i in range(2)] for seed in (0, 1))
    assert_told(OTHERS[name], first, second)
