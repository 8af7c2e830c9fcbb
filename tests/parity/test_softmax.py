"""softmax and log_softmax against PyTorch."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from autograd_nb.ops.core.registry import functions  # noqa: E402

from .compare import compare  # noqa: E402

TORCH = functions("torch")


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize(
    ("shape", "dim"), [((7,), 0), ((4, 5), 1), ((4, 5), 0), ((2, 3, 4), 1), ((2, 1100), 1), ((3, 2, 300), 1), ((), 0)]
)
def test_softmax(name, shape, dim):
    x = np.asarray(np.random.default_rng(0).normal(size=shape) * 3)
    compare(lambda t: TORCH[name](t, dim), lambda t: getattr(torch, name)(t, dim), [x])
    compare(lambda t: TORCH[name](t, dim), lambda t: getattr(torch, name)(t, dim), [x.astype(np.float32)], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_strided_half_and_special_values(name):
    x = np.random.default_rng(0).normal(size=(3, 4, 5))
    compare(lambda t: TORCH[name](t.transpose(0, 2), 1), lambda t: getattr(torch, name)(t.transpose(0, 2), 1), [x])
    compare(
        lambda t: TORCH[name](t, 1),
        lambda t: getattr(torch, name)(t, 1),
        [x.astype(np.float16)],
        second=False,
        rtol=5e-3,
        atol=5e-3,
    )
    inf = np.inf
    rows = np.array([[0.0, inf, 1], [-inf, -inf, -inf], [1, -inf, 2], [np.nan, 0, 1], [1e30, -1e30, 0]])
    compare(lambda t: TORCH[name](t, 1), lambda t: getattr(torch, name)(t, 1), [rows], second=False)
    compare(lambda t: TORCH[name](t.t(), 0), lambda t: getattr(torch, name)(t.t(), 0), [rows], second=False)
