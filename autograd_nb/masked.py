"""``torch.masked``: reductions and normalisations over the elements that a boolean mask keeps.

Every function takes ``mask`` (True keeps an element; broadcast to the input). What is masked out counts as the identity of the
operation, so a slice without a kept element gives that: 0 for a sum, −inf for a maximum, nan for a mean. ``dim=None`` stands for
all dims. Gradients of masked elements are 0.

Source: https://docs.pytorch.org/docs/stable/masked.html
"""

from __future__ import annotations

import math
from typing import Any

from . import dtypes
from .ops.core.registry import OPS
from .ops.core.structured import tensor_argument
from .ops.creation.cast import cast
from .shapes import wrap_dims
from .tensor import Tensor

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median", "norm",
    "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip


def _op(name: str, *args: Any, **kw: Any) -> Any:
    return OPS[name].call(*args, **kw)


def _kind(x: Tensor, dtype: Any, widen: bool = False) -> dtypes.dtype:
    """Return the dtype of the result: as asked for, else the input's; ``widen``: int64 for integers and booleans."""
    if dtype is not None:
        return dtypes.as_dtype(dtype)
    return dtypes.int64 if widen and x.dtype.category < 2 else x.dtype


def _mask_of(x: Tensor, mask: Any, name: str) -> Tensor | None:
    """Return the mask as booleans of the input's shape."""
    if mask is None:
        return None
    tensor_argument(mask, f"masked.{name}", "mask")
    if mask.ndim > x.ndim:
        raise IndexError(
            f"_input_mask expected broadcastable mask (got mask dimensionality higher than of the input: {mask.ndim} > {x.ndim})"
        )
    if mask.shape != x.shape:
        mask = mask.clone()  # what is stretched is a copy in PyTorch: it may be changed before the backward pass
    return cast(mask, dtypes.bool_).expand(x.shape)


def _refuse_unordered(x: Tensor, mask: Any, identity: Any) -> None:
    """Raise TypeError for masked complex numbers in an operation whose identity is the lowest or greatest number, as in PyTorch."""
    if mask is not None and x.dtype.is_complex and isinstance(identity, float) and math.isinf(identity):
        raise TypeError(f"torch.iinfo() requires an integer input type: there is no lowest or greatest {x.dtype.name}")


def _filled(x: Any, mask: Any, identity: float, name: str) -> Tensor:
    """Return the input with the operation's identity where it is masked out."""
    tensor_argument(x, f"masked.{name}")
    keep = _mask_of(x, mask, name)
    _refuse_unordered(x, mask, identity)
    return x if keep is None else _op("where", keep, x, cast(_op("full", (), identity, dtype=dtypes.float64), x.dtype))


def _dims(dim: Any, x: Tensor) -> tuple[int, ...]:
    return tuple(sorted(wrap_dims(dim, x.ndim)))


def _count(x: Tensor, dim: Any, keepdim: bool, mask: Any, name: str) -> Tensor:
    """Return how many elements are kept along ``dim``."""
    keep = _mask_of(x, mask, name)
    return _op("sum", _op("ones_like", x, dtype=dtypes.int64) if keep is None else keep, dim=_dims(dim, x), keepdim=bool(keepdim))


def _lowest(x: Any, greatest: bool) -> Any:
    """Return the identity of a maximum: the lowest value of a dtype (or the greatest, of a minimum)."""
    d = x.dtype if isinstance(x, Tensor) else dtypes.float32
    if d.category > 1:
        return math.inf if greatest else -math.inf
    if d is dtypes.bool_:
        return greatest
    return dtypes.iinfo(d).max if greatest else dtypes.iinfo(d).min


def _reduction_identity(op_name: str, input: Tensor, *args: Any) -> Tensor | None:
    """Return what a reduction's result does not change by, as a tensor of no dims and the input's dtype; None of a mean and a variance.

    >>> torch.masked._reduction_identity("amax", torch.ones(2))
    tensor(-inf)
    """
    name, d = op_name.rpartition(".")[2], input.dtype
    value: Any
    if name in ("mean", "std", "var"):
        return None
    if name in ("sum", "cumsum", "norm"):
        value = math.inf if name == "norm" and args and args[0] == -math.inf else 0
    elif name in ("prod", "cumprod"):
        value = 1
    elif name == "median":
        value, d = math.nan, d if d.category == 2 else dtypes.float32
    elif name in ("amax", "argmax", "amin", "argmin", "logaddexp", "logsumexp") and d is not dtypes.bool_ and (
        not d.is_complex or name == "logsumexp"
    ):
        value = _lowest(input, name.endswith("min"))
    else:
        raise NotImplementedError(f"identity of {name} on {d} input")
    return _op("full", (), value, dtype=d)


def sum(input: Any, dim: Any = None, *, keepdim: Any = False, dtype: Any = None, mask: Any = None) -> Tensor:  # noqa: A001
    """Return the sum of the kept elements along ``dim``."""
    x = _filled(input, mask, 0, "sum")
    return _op("sum", x, _dims(dim, x), bool(keepdim), dtype=_kind(x, dtype, True))


def prod(input: Any, dim: Any = None, *, keepdim: Any = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """Return the product of the kept elements along ``dim``."""
    x = _filled(input, mask, 1, "prod")
    x = cast(x, _kind(x, dtype, True))  # (of integers the product has 64 bits whatever is asked for, as in PyTorch)
    dims = _dims(dim, x)
    if not dims and dim != []:  # (of no dims in a list, unlike in a tuple, it is taken along none)
        dims = _dims(None, x)
    for k in reversed(dims) if x.ndim or dim is None else (0,):
        x = _op("prod", x, k, bool(keepdim))
    return x


def _numbers(x: Tensor, dtype: Any, name: str) -> dtypes.dtype:
    """Return `_kind` for what has no sum or product as bool, unless there is nothing to add."""
    d = _kind(x, dtype)
    if d is dtypes.bool_ and x.numel():
        raise NotImplementedError(f"\"{name}_out_cpu\" not implemented for 'Bool'")
    return d


def cumsum(input: Any, dim: Any, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Return the running sum of the kept elements along ``dim``."""
    x = _filled(input, mask, 0, "cumsum")
    return _op("cumsum", x, dim, dtype=_numbers(x, dtype, "cumsum"))


def cumprod(input: Any, dim: Any, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Return the running product of the kept elements along ``dim``."""
    x = _filled(input, mask, 1, "cumprod")
    return _op("cumprod", x, dim, dtype=_numbers(x, dtype, "cumprod"))


def _extreme(name: str, x: Tensor, dim: Any, keepdim: bool, dtype: Any, mask: Any) -> Tensor:
    filled = _whole(x, mask, _lowest(x, name == "amin"), name)
    return cast(_op(name, filled, _dims(dim, x), bool(keepdim)), _kind(x, dtype))


def _whole(x: Any, mask: Any, identity: Any, name: str) -> Tensor:
    """Return `_filled` for identities that are integers of 64 bits."""
    tensor_argument(x, f"masked.{name}")
    keep = _mask_of(x, mask, name)
    if name != "logsumexp":  # minus infinity is the logarithm of 0 there, not the lowest number
        _refuse_unordered(x, mask, identity)
    if keep is not None and x.dtype is dtypes.bool_:
        raise NotImplementedError(f"identity of {name} on torch.bool input")
    return x if keep is None else _op("where", keep, x, _op("full", (), identity, dtype=x.dtype))


def amax(input: Any, dim: Any = None, *, keepdim: Any = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """Return the maximum of the kept elements along ``dim``."""
    return _extreme("amax", input, dim, keepdim, dtype, mask)


def amin(input: Any, dim: Any = None, *, keepdim: Any = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """Return the minimum of the kept elements along ``dim``."""
    return _extreme("amin", input, dim, keepdim, dtype, mask)


def argmax(input: Any, dim: Any = None, *, keepdim: Any = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """Return the index of the maximum of the kept elements along ``dim``, or in the flattened tensor; of the input's dtype, as PyTorch."""
    x = _whole(input, mask, _lowest(input, False), "argmax")
    return cast(_op("argmax", x, dim, bool(keepdim)), _kind(x, dtype))


def argmin(input: Any, dim: Any = None, *, keepdim: Any = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """Return the index of the minimum of the kept elements along ``dim``, or in the flattened tensor."""
    x = _whole(input, mask, _lowest(input, True), "argmin")
    return cast(_op("argmin", x, dim, bool(keepdim)), _kind(x, dtype))


def mean(input: Any, dim: Any = None, *, keepdim: Any = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """Return the mean of the kept elements along ``dim``; nan where there is none."""
    x = tensor_argument(input, "masked.mean")
    if _kind(x, dtype).category < 2:
        raise ValueError(
            f"mean(): Could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {x.dtype}"
        )
    return sum(x, dim, keepdim=keepdim, dtype=_kind(x, dtype), mask=mask) / _count(x, dim, keepdim, mask, "mean")


def median(input: Any, dim: Any = -1, *, keepdim: Any = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """Return the median (the lower one) of the kept elements along ``dim``, nan ignored unless there is no mask."""
    x = tensor_argument(input, "masked.median")
    if mask is None and bool(x.detach().isnan().any()):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point or the input holds nan")
    wide = x if x.dtype.category == 2 else cast(x, dtypes.get_default_dtype())
    filled = _filled(wide, mask, math.nan, "median")
    y = _op("nanmedian", filled, dim, bool(keepdim)).values
    if wide is not x and bool(y.isnan().any()):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return cast(y, x.dtype if dtype is None else dtype)


def logsumexp(input: Any, dim: Any = None, *, keepdim: Any = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """log Σ eˣ over the kept elements along ``dim``."""
    x = tensor_argument(input, "masked.logsumexp")
    if x.dtype.category < 2:
        x = cast(x, _kind(x, dtype))
    filled = _whole(x, mask, _lowest(x, False), "logsumexp")
    return cast(_op("logsumexp", filled, _dims(dim, x), bool(keepdim)), _kind(x, dtype))


def logaddexp(input: Any, other: Any, *, dtype: Any = None, input_mask: Any = None, other_mask: Any = None) -> Tensor:
    """log(eˣ + eʸ), masked out elements counting as −inf."""
    x, y = tensor_argument(input, "masked.logaddexp"), tensor_argument(other, "masked.logaddexp", "other")
    for t, mask in ((x, input_mask), (y, other_mask)):
        if mask is not None and t.dtype is dtypes.bool_:
            raise NotImplementedError("identity of logaddexp on torch.bool input: it has none")
    x, y = _filled(x, input_mask, _lowest(x, False), "logaddexp"), _filled(y, other_mask, _lowest(y, False), "logaddexp")
    return cast(_op("logaddexp", x, y), _kind(x, dtype))


def norm(input: Any, ord: Any = 2.0, dim: Any = None, *, keepdim: Any = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """Return the vector norm of the kept elements along ``dim``."""
    x = _filled(input, mask, math.inf if ord == -math.inf else 0, "norm")
    return _op("linalg.vector_norm", x, ord, _dims(dim, x), bool(keepdim), dtype=dtype)


def _variance(x: Any, dim: Any, unbiased: Any, correction: Any, keepdim: bool, dtype: Any, mask: Any, name: str) -> Tensor:
    tensor_argument(x, f"masked.{name}")
    if x.dtype is dtypes.bool_:
        raise RuntimeError(f"masked.{name}(): Subtraction, the `-` operator, with a bool tensor is not supported")
    d = _kind(x, dtype)
    if d.category < 2:
        d = dtypes.float32
    x = cast(x, d)
    count = _count(x, dim, True, mask, name)
    away = x - sum(x, dim, keepdim=True, mask=mask) / count
    total = sum(away * away.conj(), dim, keepdim=keepdim, mask=mask)
    if not keepdim:
        count = count.reshape(total.shape)
    if unbiased is not None and correction is not None:
        raise ValueError(f"masked.{name}(): give unbiased or correction, not both")
    less = correction if correction is not None else 1 if unbiased is None else int(unbiased)
    return cast(total / (count - less).clamp(min=0), d)


def var(
    input: Any, dim: Any = None, unbiased: Any = None, *, correction: Any = None, keepdim: Any = False, dtype: Any = None,
    mask: Any = None,
) -> Tensor:  # fmt: skip
    """Return the variance of the kept elements along ``dim``; divided by n − ``correction`` (1; 0 when ``unbiased=False``)."""
    return _variance(input, dim, unbiased, correction, bool(keepdim), dtype, mask, "var")


def std(
    input: Any, dim: Any = None, unbiased: Any = None, *, correction: Any = None, keepdim: Any = False, dtype: Any = None,
    mask: Any = None,
) -> Tensor:  # fmt: skip
    """Return the standard deviation of the kept elements along ``dim``."""
    return _variance(input, dim, unbiased, correction, bool(keepdim), dtype, mask, "std").sqrt()


def softmax(input: Any, dim: Any, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Softmax over the kept elements along ``dim``; 0 for the others."""
    return _op("nn.functional.softmax", _filled(input, mask, -math.inf, "softmax"), dim, dtype=dtype)


def log_softmax(input: Any, dim: Any, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Return the logarithm of `softmax`."""
    return _op("nn.functional.log_softmax", _filled(input, mask, -math.inf, "log_softmax"), dim, dtype=dtype)


def softmin(input: Any, dim: Any, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Softmax of the negated kept elements along ``dim``."""
    if tensor_argument(input, "masked.softmin").dtype is dtypes.bool_:
        raise NotImplementedError("identity of amin on torch.bool input")
    return _op("nn.functional.softmax", -_filled(input, mask, math.inf, "softmin"), dim, dtype=dtype)


def normalize(input: Any, ord: Any, dim: Any, *, eps: Any = 1e-12, dtype: Any = None, mask: Any = None) -> Tensor:
    """Return the kept elements over their norm along ``dim`` (at least ``eps``); 0 for the others."""
    x = _filled(input, mask, 0, "normalize")
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return x / size.clamp(min=eps)
