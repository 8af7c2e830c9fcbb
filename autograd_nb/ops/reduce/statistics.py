"""Extremes, variance, norms and other reductions."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ... import dtypes, launch, return_types
from ...codegen.formula.namespace import m
from ...codegen.templates import loops
from ...codegen.templates.row import Each, Row
from ...graph.modes import no_grad
from ...overriding import overridable
from ...shapes import Layout, layout, numel, wrap_dim
from ...tensor import Tensor, make
from ..core.numbers import number_argument
from ..core.pointwise import pointwise
from ..core.recording import store
from ..core.registry import OPS, public, register
from ..core.row_kernel import RowKernel, as_rows, row_sizes
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, dense
from ..creation.create import new_full
from ..elementwise.arithmetic import maximum, minimum
from ..indexing.take_along import put_along
from .fused_reduction import FoldOf
from .reduction import Reduction, _all_dims, _mean, count_of, expand_reduced, fold, quick, reduced_shape

# ------------------------------------------------------------------------------------------------- extremes

_MAX = Reduction("amax", loops.MAX, m.order_key, m.from_order_key)
_MIN = Reduction("amin", loops.MIN, m.order_key_min, m.from_order_key)
_MAX_INT = Reduction("amax", loops.MAX)
_MIN_INT = Reduction("amin", loops.MIN)
_FIND = launch.Kernel("reduce", "find_first", recipe=as_rows(
    {"x": "full", "best": "row"}, {"index": "row"},
    Each(folds={"index": (loops.MIN, lambda x, best, i, n: m.where((x == best) | (x != x), i, n))}),
))  # fmt: skip


def _extreme_of(lay: Layout, largest: bool) -> tuple:
    d = lay.dtype
    if d is dtypes.bool_:
        return _ANY if largest else _ALL, d, "bool", ()
    reduction = (_MAX if largest else _MIN) if d.category == 2 else (_MAX_INT if largest else _MIN_INT)
    return reduction, d, d.compute, ()


def _extreme(x: Tensor, dims: tuple[int, ...], keepdim: bool, largest: bool) -> Tensor:
    return fold(_extreme_of(x._layout, largest), x, dims, keepdim)


def _share(
    g: Tensor, x: Tensor, out: Tensor, dims: tuple[int, ...], keepdim: bool, dims_given: bool = True
) -> Tensor:
    """The gradient of an extreme, divided evenly among the elements that attain it."""
    with no_grad():
        y = expand_reduced(out.detach(), x.shape, dims, keepdim)
        hit = (x.detach() == y).logical_or(x.detach().isnan())
        count = cast(hit.sum(dims, True) if dims else hit, g.dtype)
    g = expand_reduced(g, x.shape, dims, keepdim)
    # (0/0 where the values were exchanged behind the graph's back and none attains the extreme, as PyTorch's)
    return OPS["where"].call(hit, g, 0.0) / count if dims_given else OPS["where"].call(hit, g / count, 0.0)


@structured(x=lambda g, x, out, dims, keepdim: _share(g, x, out, dims, keepdim), linear="no", batch="shift")
def _amax(x, dims, keepdim):
    return _extreme(x, dims, keepdim, True)


@structured(x=lambda g, x, out, dims, keepdim: _share(g, x, out, dims, keepdim), linear="no", batch="shift")
def _amin(x, dims, keepdim):
    return _extreme(x, dims, keepdim, False)


@structured(x=lambda g, x, out: _share(g, x, out, tuple(range(x.ndim)), False, False), node="MaxBackward1", linear="no")
def _max_all(x):
    return _extreme(x, tuple(range(x.ndim)), False, True)


@structured(x=lambda g, x, out: _share(g, x, out, tuple(range(x.ndim)), False, False), node="MinBackward1", linear="no")
def _min_all(x):
    return _extreme(x, tuple(range(x.ndim)), False, False)


@_max_all.batched
def _max_of_each(op, args, batch):
    return _amax(batch.whole(args[0]).reshape(batch.size, -1), (1,), False)


@_min_all.batched
def _min_of_each(op, args, batch):
    return _amin(batch.whole(args[0]).reshape(batch.size, -1), (1,), False)


@overridable
def _where_extreme(x: Tensor, d: int, values: Tensor) -> Tensor:
    """The first place along ``d`` where x has the extreme ``values``."""
    sizes = row_sizes(x.shape, d)
    lay = layout(values.shape, None, dtypes.int64)
    data = launch.empty(lay.size, lay.dtype.carrier)
    if x.dtype is dtypes.float16:
        x, values = cast(x, dtypes.float32), cast(values, dtypes.float32)
    if lay.size:
        _FIND(x.dtype, *sizes, dense(x), dense(values), data)
    return make(data, lay, [0, 0])


@structured(x=lambda g, out1, x_shape, d: put_along(g[0], out1, x_shape, d), node="MaxBackward0", linear="no", batch="shift")
def _max_dim(x, d, keepdim):
    values = _extreme(x, (d,) if x.ndim else (), keepdim, True)
    return values, _where_extreme(x, d, values)


@structured(x=lambda g, out1, x_shape, d: put_along(g[0], out1, x_shape, d), node="MinBackward0", linear="no", batch="shift")
def _min_dim(x, d, keepdim):
    values = _extreme(x, (d,) if x.ndim else (), keepdim, False)
    return values, _where_extreme(x, d, values)


def _no_empty(x: Tensor, dims: tuple[int, ...], name: str) -> None:
    """Refuse a reduction without identity over nothing."""
    for d in dims:
        if x.ndim and x.shape[d] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")


def _extreme_function(name: str, of_all: Any, of_dim: Any, binary: Any, result: Any) -> Any:
    def call(input, dim=None, keepdim=False, *, other=None, out=None):
        x = tensor_argument(input, name)
        if isinstance(dim, Tensor):
            dim, other = None, dim
        if other is not None:
            return binary(x, other, out=out)
        if dim is None:
            if not x._layout.size:
                raise RuntimeError(
                    f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
                    "with the 'dim' argument."
                )
            y = of_all(x)
            return y if out is None else store(out, y, name)
        d = wrap_dim(dim, x.ndim)
        _no_empty(x, (d,), name)
        y = result(*of_dim(x, d, bool(keepdim)))
        return y if out is None else result(store(out[0], y[0], name), store(out[1], y[1], name))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = (
        f"``{name}(x)``: the {name}imum of all elements (ties share the gradient); ``{name}(x, dim, keepdim)``: (values, "
        f"indices) along a dim, the first index where several attain it (it alone gets the gradient); ``{name}(x, other)``: "
        f"`{name}imum`. nan wins.\n\nErrors: RuntimeError or IndexError for a reduction over nothing."
    )
    register(name, call, "reduction")
    return call


max = _extreme_function("max", _max_all, _max_dim, maximum, return_types.max)  # noqa: A001
min = _extreme_function("min", _min_all, _min_dim, minimum, return_types.min)  # noqa: A001


def _checked_extreme(input: Any, dim: Any, name: str) -> tuple[Tensor, tuple[int, ...]]:
    x = tensor_argument(input, name)
    dims = _all_dims(dim, x.ndim)
    if not x._layout.size and (dim is None or dim == ()):
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
            "the 'dim' argument."
        )
    _no_empty(x, dims, name)
    return x, dims


@public()
@quick(_amax, lambda lay, dims: _extreme_of(lay, True))
def amax(input, dim=(), keepdim=False, *, out=None):
    """The maximum over ``dim`` (an int or several); ties share the gradient; nan wins."""
    x, dims = _checked_extreme(input, dim, "amax")
    y = _amax(x, dims, bool(keepdim))
    return y if out is None else store(out, y, "amax")


@public()
@quick(_amin, lambda lay, dims: _extreme_of(lay, False))
def amin(input, dim=(), keepdim=False, *, out=None):
    """The minimum over ``dim`` (an int or several); ties share the gradient; nan wins."""
    x, dims = _checked_extreme(input, dim, "amin")
    y = _amin(x, dims, bool(keepdim))
    return y if out is None else store(out, y, "amin")


@public()
def aminmax(input, *, dim=None, keepdim=False, out=None):
    """(min, max) over a dim, or over everything."""
    x, dims = _checked_extreme(input, dim, "aminmax")
    for t in out or ():
        if t.dtype is not x.dtype:
            raise RuntimeError(f"aminmax(): Expected out tensor to have dtype {x.dtype}, but got {t.dtype} instead")
    y = return_types.aminmax(_amin(x, dims, bool(keepdim)), _amax(x, dims, bool(keepdim)))
    return y if out is None else return_types.aminmax(store(out[0], y[0], "aminmax"), store(out[1], y[1], "aminmax"))


def _arg(input: Any, dim: Any, keepdim: bool, largest: bool, name: str) -> Tensor:
    x = tensor_argument(input, name).detach()
    if dim is None:
        if not x._layout.size:
            raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
        y = _where_extreme(x.reshape(-1), 0, _extreme(x, tuple(range(x.ndim)), False, largest))
        return y.reshape([1] * x.ndim) if keepdim else y
    d = wrap_dim(dim, x.ndim)
    _no_empty(x, (d,), name)
    return _where_extreme(x, d, _extreme(x, (d,) if x.ndim else (), bool(keepdim), largest))


@public()
def argmax(input, dim: int | None = None, keepdim=False, *, out=None):
    """The index of the maximum along ``dim`` (the first of several; nan wins), or in the flattened tensor."""
    y = _arg(input, dim, keepdim, True, "argmax")
    return y if out is None else store(out, y, "argmax")


@public()
def argmin(input, dim: int | None = None, keepdim=False, *, out=None):
    """The index of the minimum along ``dim`` (the first of several; nan wins), or in the flattened tensor."""
    y = _arg(input, dim, keepdim, False, "argmin")
    return y if out is None else store(out, y, "argmin")


# ------------------------------------------------------------------------------------- truth and counting

_ANY = Reduction("any", loops.ANY, lambda x: x != 0)
_ALL = Reduction("all", loops.ALL, lambda x: x != 0)
_COUNT = Reduction("count_nonzero", loops.SUM, lambda x: m.where(x != 0, 1, 0).cast("int64"))


def _truth(input: Any, dim: Any, keepdim: bool, fold: Reduction, name: str) -> Tensor:
    x = tensor_argument(input, name)
    out = dtypes.uint8 if x.dtype is dtypes.uint8 else dtypes.bool_
    return fold(x, _all_dims(dim, x.ndim), bool(keepdim), out, x.dtype.compute)


@public()
def any(input, dim=None, keepdim=False, *, out=None):  # noqa: A001
    """Whether any element is not 0, over ``dim`` or all."""
    y = _truth(input, dim, keepdim, _ANY, "any")
    return y if out is None else store(out, y, "any")


@public()
def all(input, dim=None, keepdim=False, *, out=None):  # noqa: A001
    """Whether every element is not 0, over ``dim`` or all."""
    y = _truth(input, dim, keepdim, _ALL, "all")
    return y if out is None else store(out, y, "all")


@public()
def count_nonzero(input, dim=None):
    """How many elements are not 0, over ``dim`` or all."""
    x = tensor_argument(input, "count_nonzero")
    return _COUNT(x, _all_dims(dim, x.ndim), False, dtypes.int64, x.dtype.compute)


# ------------------------------------------------------------------------------------ variance and deviation


@pointwise(
    lambda g, u, scale: g * (u * scale), lambda g, u, scale: -(g * (u * scale)), lambda x, mean, scale: (x - mean) * scale,
    name="deviation", public=False, inplace=False,
)  # fmt: skip
def _deviation(x, mean, u, scale):
    return ((x - mean) * u) * scale


_SQUARES = FoldOf("var", loops.SUM, lambda x, mean, divisor: (x - mean) * (x - mean), lambda total, divisor: total / divisor)
_ROOT_SQUARES = FoldOf(
    "std", loops.SUM, lambda x, mean, divisor: (x - mean) * (x - mean), lambda total, divisor: m.sqrt(total / divisor)
)
_WIDE_MEAN = Reduction("mean", loops.SUM, lambda x, inverse: x, lambda total, inverse: total * inverse, extra=1)


def _spread(x: Tensor, dims: tuple[int, ...], keepdim: bool, correction: float, fold: FoldOf) -> Tensor:
    n = count_of(x.shape, dims)
    # the mean in float64, so that a large mean does not swamp a small variance
    center = _WIDE_MEAN(x, dims, True, dtypes.float64, x.dtype.compute, 1.0 / n if n else math.nan)
    return fold((x, center, float(n - correction if n > correction else 0.0)), dims, keepdim, x.dtype, "float64")


def _var_rule(g: Tensor, x: Tensor, dims: tuple[int, ...], keepdim: bool, correction: float) -> Tensor:
    n = count_of(x.shape, dims)
    if not keepdim and dims:
        g = g.reshape(reduced_shape(x.shape, dims, True))
    free = n - correction
    return _deviation(x, _mean(x, dims, True), g, 2.0 / free if free > 0 else math.inf if free == 0 else 2.0 / free)


@structured(x=_var_rule, linear="no", batch="shift")
def _var(x, dims, keepdim, correction):
    return _spread(x, dims, keepdim, correction, _SQUARES)


@structured(
    x=lambda g, x, out, dims, keepdim, correction: _var_rule(
        OPS["where"].call(out == 0, 0.0, g / (2 * out)), x, dims, keepdim, correction
    ),
    linear="no", batch="shift",
)
def _std(x, dims, keepdim, correction):
    return _spread(x, dims, keepdim, correction, _ROOT_SQUARES)


def _of_parts(x: Tensor) -> tuple[Tensor, Tensor]:
    return OPS["real"].call(x), OPS["imag"].call(x)


def _variance(x: Tensor, *options: Any) -> Tensor:
    """The variance; of complex numbers the sum of those of both parts."""
    if not x.dtype.is_complex:
        return _var(x, *options)
    re, im = _of_parts(x)
    return _var(re, *options) + _var(im, *options)


def _standard(x: Tensor, *options: Any) -> Tensor:
    return _variance(x, *options).sqrt() if x.dtype.is_complex else _std(x, *options)


def _moments_arguments(
    name: str, input: Any, dim: Any, unbiased: Any, correction: Any
) -> tuple[Tensor, tuple[int, ...], float]:
    x = tensor_argument(input, name)
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise TypeError(f"{name}(): give unbiased or correction, not both (unbiased={unbiased}, correction={correction})")
    if x.dtype.category < 2:
        raise RuntimeError(f"{name} and its kin only support floating point and complex dtypes, got {x.dtype} (use x.float())")
    if correction is None:
        correction = 1.0 if unbiased is None or unbiased else 0.0
    correction = number_argument(correction, name, "correction")
    dims = _all_dims(dim, x.ndim)
    n = count_of(x.shape, dims)
    if n - correction <= 0:
        warnings.warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel "
            f"divided by output numel): {n} elements, correction {correction}.",
            UserWarning,
            stacklevel=3,
        )
    return x, dims, float(correction)


@public()
def var(input, dim=None, unbiased=None, keepdim=False, *, correction: float | None = None, out=None):
    """Variance over ``dim``: Σ(x − mean)²/(n − correction); correction 1 unless ``unbiased=False`` or given.

    Two passes, the mean in float64. Errors: RuntimeError for integers.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.var.html
    """
    x, dims, c = _moments_arguments("var", input, dim, unbiased, correction)
    y = _variance(x, dims, bool(keepdim), c)
    return y if out is None else store(out, y, "var")


@public()
def std(input, dim=None, unbiased=None, keepdim=False, *, correction: float | None = None, out=None):
    """Standard deviation over ``dim``: √`var`; the gradient is 0 where it is 0."""
    x, dims, c = _moments_arguments("std", input, dim, unbiased, correction)
    y = _standard(x, dims, bool(keepdim), c)
    return y if out is None else store(out, y, "std")


@public(method=False)
def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction: float | None = None, out=None) -> tuple[Tensor, Tensor]:
    """(variance, mean) over ``dim``; see `var`."""
    x, dims, c = _moments_arguments("var_mean", input, dim, unbiased, correction)
    return _variance(x, dims, bool(keepdim), c), _mean(x, dims, bool(keepdim))


@public(method=False)
def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction: float | None = None, out=None) -> tuple[Tensor, Tensor]:
    """(standard deviation, mean) over ``dim``; see `std`."""
    x, dims, c = _moments_arguments("std_mean", input, dim, unbiased, correction)
    return _standard(x, dims, bool(keepdim), c), _mean(x, dims, bool(keepdim))


# --------------------------------------------------------------------------------------- without nan; in logs

_NANSUM = Reduction("nansum", loops.SUM, lambda x: m.where(x != x, 0, x))


@structured(
    x=lambda g, x, dims, keepdim: OPS["where"].call(x.isnan(), 0.0, expand_reduced(g, x.shape, dims, keepdim)),
    linear="no", batch="shift",
)
def _nansum(x, dims, keepdim):
    return _NANSUM(x, dims, keepdim, x.dtype, x.dtype.compute)


@public()
def nansum(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """The sum of the elements that are not nan."""
    x = tensor_argument(input, "nansum")
    if x.dtype.is_complex:
        raise RuntimeError("nansum does not support complex inputs")
    if dtype is not None:
        x = cast(x, dtypes.as_dtype(dtype))
    y = x.sum(dim, keepdim, dtype=dtype) if x.dtype.category < 2 else _nansum(x, _all_dims(dim, x.ndim), bool(keepdim))
    return y if out is None else store(out, y, "nansum")


@public()
def nanmean(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """The mean of the elements that are not nan. RuntimeError for integers."""
    x = tensor_argument(input, "nanmean")
    if x.dtype.category < 2:
        raise RuntimeError(f"nanmean(): expected input to have floating point or complex dtype but got {x.dtype}")
    with no_grad():
        count = x.detach().isnan().logical_not().sum(dim, keepdim)
    y = nansum(x, dim, keepdim, dtype=dtype) / count
    return y if out is None else store(out, y, "nanmean")


_LOGSUMEXP = RowKernel("logsumexp", {"x": "full"}, {"y": "row"}, [
    Each(folds={"most": (loops.MAX, lambda x: x)}),
    Row({"top": lambda most: m.where(m.abs(most) == math.inf, 0.0, most)}),
    Each(folds={"s": (loops.SUM, lambda x, top: m.exp(x - top))}),
    Row({"y": lambda s, top: m.log(s) + top}),
])  # fmt: skip


@pointwise(
    lambda result: result, lambda g, x, y0: m.where(y0 == -math.inf, 0.0, g * m.exp(x - y0)), lambda result: -result,
    name="logsumexp_backward", public=False, inplace=False,
)  # fmt: skip
def _logsumexp_backward(x, g0, y0):
    return m.where(y0 == -math.inf, 0.0, g0 * m.exp(x - y0))


@structured(
    x=lambda g, x, out, dims, keepdim: _logsumexp_backward(x, _kept(g, x, dims, keepdim), _kept(out, x, dims, keepdim)),
    linear="no", batch="shift",
)
def _logsumexp(x, dims, keepdim):
    lay = layout(reduced_shape(x.shape, dims, keepdim), None, x.dtype)
    if x.dtype.is_complex:
        return _complex_logsumexp(x, dims, keepdim)
    if x.dtype is dtypes.float16:
        return cast(_logsumexp(cast(x, dtypes.float32), dims, keepdim), dtypes.float16)
    dims = tuple(sorted(dims))
    if dims and dims[-1] - dims[0] + 1 != len(dims):
        rest = [d for d in range(x.ndim) if d not in dims]
        x, dims = x.permute([*rest, *dims]), tuple(range(len(rest), x.ndim))
    first, last = (dims[0], dims[-1] + 1) if dims else (x.ndim, x.ndim)
    sizes = (numel(x.shape[:first]), numel(x.shape[first:last]), numel(x.shape[last:]))
    if not sizes[1]:
        return new_full(lay.shape, -math.inf, x.dtype)
    data = launch.empty(lay.size, lay.dtype.carrier)
    if lay.size:
        _LOGSUMEXP(x.dtype.name, sizes, [dense(x)], [data])
    return make(data, lay, [0, 0])


def _kept(t: Tensor, x: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    return t if keepdim or not dims else t.reshape(reduced_shape(x.shape, dims, True))


def _complex_logsumexp(x: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    if not count_of(x.shape, dims):
        return new_full(reduced_shape(x.shape, dims, keepdim), -math.inf, x.dtype)
    top = _amax(x.detach().real, dims, True)
    top = OPS["where"].call(top.isinf(), 0.0, top)
    y = (x - top).exp()
    y = (y.sum(dims, True) if dims else y).log() + top
    return y if keepdim or not dims else y.reshape(reduced_shape(x.shape, dims, False))


@public()
def logsumexp(input, dim, keepdim=False, *, out=None):
    """ln Σ eˣ over ``dim`` (an int or several), without overflow; dL/dx = g·e^(x − y)."""
    x = tensor_argument(input, "logsumexp")
    if x.dtype.category < 2:
        x = cast(x, dtypes.get_default_dtype())
    y = _logsumexp(x, _all_dims(dim, x.ndim), bool(keepdim))
    return y if out is None else store(out, y, "logsumexp")


register("special.logsumexp", logsumexp, "reduction", method=False, namespaces=("special",))
