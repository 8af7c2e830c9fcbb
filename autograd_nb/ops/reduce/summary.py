"""Covariance, correlation and histograms."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes, launch
from ...codegen.formula.namespace import m
from ...errors import warn_user
from ...graph.modes import unrecorded
from ...shapes import as_int, layout_of
from ...tensor import make
from ..core.numbers import int_argument, real_argument
from ..core.recording import made_here, scalar_type, store
from ..core.registry import OPS, public
from ..core.structured import tensor_argument
from ..creation.cast import cast, dense

_HISTOGRAM = launch.Kernel("reduce.scan", "histogram")


def _check_weights(w, name, n):
    """Raise RuntimeError where ``w`` cannot be the weights ``name`` of ``n`` observations."""
    tensor_argument(w, "cov", name)
    if w.ndim > 1:
        raise RuntimeError(f"cov(): expected {name} to have one or fewer dimensions but got {name} with {w.ndim} dimensions")
    if w.dtype.category != (1 if name == "fweights" else 2):
        kind = "integral" if name == "fweights" else "floating point"
        raise RuntimeError(f"cov(): expected {name} to have {kind} dtype but got {name} with {scalar_type(w.dtype)} dtype")
    if w._layout.size != n:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got {w._layout.size} != {n}"
        )
    if n and w.detach().min().item() < 0:
        raise RuntimeError(f"cov(): {name} cannot be negative")


@public()
def cov(input, *, correction: int = 1, fweights=None, aweights=None):
    """Return the covariance matrix of the rows (variables) over the columns (observations).

    fweights: integers, how often each observation counts; aweights: its weight.

    Errors: RuntimeError for more than 2 dims, weights that do not fit or are negative.

    >>> torch.cov(torch.tensor([[0., 1., 2.], [2., 1., 0.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    x = tensor_argument(input, "cov")
    if x.ndim > 2:
        raise RuntimeError(f"cov(): expected input to have two or fewer dimensions but got an input with {x.ndim} dimensions")
    if x.dtype is dtypes.bool_:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows, correction = x.reshape(1, -1) if x.ndim < 2 else x, as_int(correction, "correction")
    n = rows.shape[1]
    weights = None
    for name, w in (("fweights", fweights), ("aweights", aweights)):
        if w is not None:
            _check_weights(w, name, n)
            weights = w if weights is None else weights * w
    if rows.dtype.category < 2:
        rows = cast(rows, dtypes.get_default_dtype())
    if weights is None:
        total = n
        mean = rows.mean(1, True)
        free: Any = n - correction
    else:
        total = weights.sum()
        if n == 0 or total.item() == 0:
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        mean = (rows * weights).sum(1, True) / total
        if correction == 0:
            free = total
        elif aweights is None:
            free = total - correction
        else:
            free = total - correction * (weights * aweights).sum() / total
    if (free if isinstance(free, (int, float)) else free.item()) <= 0:
        warn_user(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
        )
        free = 0.0
    centered = rows - mean
    other = centered if weights is None else centered * weights
    y = OPS["matmul"].call(centered, m.conj(other.mT)) / free
    return y.squeeze()


@public()
def corrcoef(input):
    """Return the matrix of Pearson's correlation coefficients of the rows, kept within [−1, 1].

    >>> torch.corrcoef(torch.tensor([[0., 1., 2.], [2., 1., 0.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    x = tensor_argument(input, "corrcoef")
    if x.ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {x.ndim} dimensions"
        )
    c = cov(x)
    if c.ndim == 0:
        return c / c
    deviation = OPS["real"].call(c.diagonal()).sqrt()
    y = c / deviation.unsqueeze(1) / deviation.unsqueeze(0)
    return OPS["complex"].call(y.real.clamp(-1, 1), y.imag.clamp(-1, 1)) if y.dtype.is_complex else y.clamp(-1, 1)


@public()
def histc(input, bins=100, min: float = 0, max: float = 0, *, out=None):
    """Return how many elements fall into each of ``bins`` equal bins from min to max (from the data where both are 0).

    >>> torch.histc(torch.tensor([1., 2., 2., 4.]), bins=4)
    tensor([1., 2., 0., 1.])
    """
    x = tensor_argument(input, "histc")
    if not x.dtype.is_floating_point:
        raise NotImplementedError(f'"histogram_cpu" not implemented for {x.dtype} (histc(); use .float(), or bincount)')
    bins = int_argument(bins, "histc", "bins")
    if bins <= 0:
        raise RuntimeError(f"torch.histc(): bins must be > 0, but got {bins}")
    low, high = (real_argument(v, "histc", n) for v, n in ((min, "min"), (max, "max")))
    with unrecorded():
        if low == high and x._layout.size:
            low, high = float(x.detach().min().item()), float(x.detach().max().item())
        if low == high:
            low, high = low - 1, high + 1
        if not (np.isfinite(low) and np.isfinite(high)):
            raise RuntimeError(f"torch.histc: range of [{low}, {high}] is not finite")
        if low > high:
            raise RuntimeError(f"torch.histc(): max must be larger than min (min={min}, max={max})")
        wide = cast(x.detach(), dtypes.float32) if x.dtype.is_half else x.detach()
        layout = layout_of((bins,), None, wide.dtype)
        data = launch.empty(bins, layout.dtype.carrier)
        _HISTOGRAM(wide.dtype, low, high, dense(wide), data)
        y = made_here(cast(make(data, layout, [0, 0]), x.dtype))
    return y if out is None else store(out, y, "histc", unseen=True)
