"""Sums and means."""

from __future__ import annotations

from ...codegen.formula.namespace import m
from ...codegen.formula.symbols import COMPONENT
from ...codegen.templates.loops import SUM
from ...shapes import as_shape
from ...tensor import Tensor
from ..core.recording import computed_in, store
from ..core.reduction import reduction
from ..core.registry import public
from ..core.structured import tensor_argument


@reduction(SUM, grad=1, linear="jointly", result="sum", typed=True)
def sum(x):
    """Sum over ``dim`` (an int, a tuple, or None for all): y = Σ x, dy/dx = 1.

    Integers and booleans sum to int64, unless ``dtype`` says otherwise, to which the elements are cast first. Chunks of 1,024
    elements are added in a fixed order, those of float32 in float64.

    Example:
        >>> torch.tensor([[1., 2.], [3., 4.]]).sum(0)
        tensor([4., 6.])

    Errors: IndexError for a dim out of range. Source: https://docs.pytorch.org/docs/stable/generated/torch.sum.html
    """
    return x


def _mean(total, count):
    """Return a share of the total: of a complex one by the rule of complex quotients, as in PyTorch (infinities make nan of the other part)."""
    return total / m.complex(count, 0.0) if getattr(total, "dtype", "") in COMPONENT else total / count


@reduction(
    SUM, finish=_mean, grad=lambda g, count: g * (1.0 / count), linear="jointly", accepts="float",
    typed=True,
)  # fmt: skip
def mean(x):
    """Mean over ``dim``: y = Σ x / n, dy/dx = 1/n.

    Errors: RuntimeError for integers unless ``dtype`` is a floating one.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.mean.html

    >>> torch.mean(torch.tensor([1., 2., 6.]))
    tensor(3.)
    """
    return x


@reduction(SUM, grad=lambda g, x: g * x.isnan().logical_not(), result="sum", accepts="real", typed=True)
def nansum(x):
    """Return the sum of the elements that are not nan; nansum([1., float("nan"), 2.]) = tensor(3.).

    Derivative: dx = g where x is no nan, 0 elsewhere.
    """
    return m.where(x != x, 0, x)


@public()
def nanmean(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """Return the mean of the elements that are not nan. RuntimeError for integers; nanmean([1., float("nan"), 2.]) = 1.5000."""
    x = tensor_argument(input, "nanmean")
    if x.dtype.category < 2:
        raise RuntimeError(f"nanmean(): expected input to have floating point or complex dtype but got {x.dtype}")
    count = x.detach().isnan().logical_not().sum(dim, keepdim)
    y = nansum(x, dim, keepdim, dtype=computed_in(out, dtype)) / count
    if out is None:
        return y
    store(out, y, "nanmean")
    out._version_[0] += 1  # (PyTorch writes the sum into it, and divides that)
    return out


@public(namespaces=())
def sum_to_size(input, *sizes, size=None):
    """Sum over the dims that were broadcast so that the result has ``size``; [[1, 2], [3, 4]].sum_to_size(1, 2) = [[4, 6]]."""
    shape = as_shape(sizes if size is None else (size,), op="sum_to_size")
    x: Tensor = tensor_argument(input, "sum_to_size")
    if tuple(x.shape) == tuple(shape) and shape:
        return x
    lead = x.ndim - len(shape)
    if lead < 0 or any(n not in (1, x.shape[lead + d]) for d, n in enumerate(shape)):
        raise RuntimeError(f"size {list(shape)} is not expandable to size {list(x.shape)}.")
    dims = tuple(d for d in range(x.ndim) if d < lead or (shape[d - lead] == 1 and x.shape[d] != 1))
    y = sum.op(x, dims, True) if dims or not shape else x
    return y.reshape(shape) if lead else y
