"""Extremes, variance, norms and other reductions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import dtypes, launch, return_types
from ...codegen.formula.namespace import m
from ...codegen.templates.loops import ALL, ANY, FIRST, MAX, MIN, SUM
from ...codegen.templates.row import Each, Row
from ...errors import warn_user
from ...graph.modes import unrecorded
from ...overriding import overridable
from ...shapes import Layout, layout_of, numel, wrap_dim
from ...tensor import Tensor, make
from ..core.call_path import planned
from ..core.numbers import bool_argument, number_argument
from ..core.pointwise import pointwise
from ..core.recording import exact_text, guarded, store, store_each
from ..core.reduction import REQUIRED, Reduction, ReductionOp, all_dims, check_not_empty, count_of, reduced_shape, reduction
from ..core.registry import OPS, public, register
from ..core.row_kernel import RowKernel, as_rows, row_sizes
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, dense
from ..creation.create import new_full
from ..elementwise.arithmetic import maximum, minimum
from ..indexing.take_along import put_along
from .sums import mean

# ------------------------------------------------------------------------------------------------- extremes

_FIND = launch.Kernel("indexing.along", "find_first", recipe=as_rows(
    {"x": "full", "best": "row"}, {"index": "row"},
    Each(folds={"index": (FIRST, lambda x, best, i, n: m.where((x == best) | (x != x), i, n))}),
))  # fmt: skip
_SHORT = launch.Kernel("indexing.along", "short_extremes", outputs=2)


def _share(g: Tensor, x: Tensor, y: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Return the gradient of an extreme, divided evenly among the elements that attain it."""
    hit, count = _attained(g, x, y, dims)
    return g * hit / count  # (0/0 where none is equal to the extreme, as nan is to nothing: PyTorch's)


def _share_of_all(g: Tensor, x: Tensor, y: Tensor, dims: tuple[int, ...]) -> Tensor:
    hit, count = _attained(g, x, y, dims, True)
    return OPS["where"].call(hit, g / count, 0.0)


def _attained(g: Tensor, x: Tensor, y: Tensor, dims: tuple[int, ...], nan: bool = False) -> tuple[Tensor, Tensor]:
    """Return (where ``x`` is the extreme ``y``; how often, in g's dtype). ``nan``: whether it is where it is nan."""
    with unrecorded():
        hit = x.detach() == y.detach()
        if nan:
            hit = hit.logical_or(x.detach().isnan())
        return hit, cast(hit.sum(dims, True) if dims else hit, g.dtype)


@reduction(MAX, grad=_share, empty=False, dim=())
def amax(x):
    """Return the maximum over ``dim`` (an int or several); ties share the gradient; nan wins; amax([[1., 5.], [3., 2.]], 1) = [5., 3.]."""
    return x


@reduction(MIN, grad=_share, empty=False, dim=())
def amin(x):
    """Return the minimum over ``dim`` (an int or several); ties share the gradient; nan wins; amin([[1., 5.], [3., 2.]], 1) = [1., 2.]."""
    return x


# the extremes of everything: `max` and `min` without a dim
_max_all = reduction(MAX, grad=_share_of_all, node="MaxBackward1", name="max", public=False)(lambda x: x)
_min_all = reduction(MIN, grad=_share_of_all, node="MinBackward1", name="min", public=False)(lambda x: x)


@overridable
def _where_extreme(x: Tensor, d: int, values: Tensor) -> Tensor:
    """Return the first place along ``d`` where x has the extreme ``values``."""
    sizes = row_sizes(x.shape, d)
    layout = layout_of(values.shape, None, dtypes.int64)
    data = launch.empty(layout.size, layout.dtype.carrier)
    if x.dtype.is_half:
        x, values = cast(x, dtypes.float32), cast(values, dtypes.float32)
    if layout.size:
        _FIND(x.dtype, *sizes, dense(x), dense(values), data)
    return make(data, layout, [0, 0])


SHORT = 12  #: elements of a row up to which its extreme and where that is are found in one go


class _Extremes:
    """The way in which the extremes along a dim, and their first places, are found in operands of one layout."""

    __slots__ = ("carrier", "d", "dims", "dtype", "fold", "index", "keepdim", "least", "sizes", "values")

    def __init__(self, layout: Layout, d: int, keepdim: bool, least: bool):
        shape = reduced_shape(layout.shape, (d,), keepdim)
        self.values, self.index = layout_of(shape, None, layout.dtype), layout_of(shape, None, dtypes.int64)
        self.d, self.keepdim, self.least = d, keepdim, least
        self.sizes, self.dtype, self.carrier = row_sizes(layout.shape, d), layout.dtype, layout.dtype.carrier
        self.fold: Any = None
        if d != layout.ndim - 1 or self.sizes[1] > SHORT:
            (self.fold, self.dims, _), _ = (amin if least else amax).op.plan(layout, (d,), keepdim)

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        size, data = self.values.size, x._data
        values, index = launch.empty(size, self.carrier), launch.empty(size, self.index.dtype.carrier)
        if self.fold is None:
            n = self.sizes[1]
            _SHORT.rows(self.dtype, (0, 0, n, 1, 1), size * n, size, n, self.least, data, values, index)
        else:
            self.fold(self.dims, data, values)
            _FIND(self.dtype, *self.sizes, data, values, index)
        return make(values, self.values, [0, 0]), make(index, self.index, [0, 0])


@planned
def _plan_extremes(layout: Layout, d: int, keepdim: bool, least: bool) -> _Extremes | None:
    """Return how extremes are found, in long rows while nobody observes; None where that takes a copy or a cast, or there are none."""
    fits = layout.size and layout.contiguous and not (layout.dtype.is_half or layout.dtype.is_barebone) and not layout.dtype.is_complex
    return _Extremes(layout, d, keepdim, least) if fits and layout.ndim else None


def _extremes(x: Tensor, d: int, keepdim: bool, extreme: ReductionOp) -> tuple[Tensor, Tensor]:
    """Return the extremes along ``d`` and the first places where x has them."""
    plan = _plan_extremes(x._layout, d, keepdim, extreme is amin.op) if x._layout.__class__ is Layout else None
    if plan is not None and (plan.fold is None or not launch.observing()):
        return plan(x)  # type: ignore[no-any-return]
    values = extreme(x, (d,) if x.ndim else (), keepdim)
    return values, _where_extreme(x, d, values)


@structured(
    x=lambda g, out1, x_shape, d: put_along(g[0], out1, x_shape, d), node="MaxBackward0", linear="no", batch="shift",
    dtypes="half float integer bool", samples="x(3, 4).max(1).values",
)
def _max_dim(x, d, keepdim):
    return _extremes(x, d, keepdim, amax.op)


@structured(
    x=lambda g, out1, x_shape, d: put_along(g[0], out1, x_shape, d), node="MinBackward0", linear="no", batch="shift",
    dtypes="half float integer bool", samples="x(3, 4).min(1).values",
)
def _min_dim(x, d, keepdim):
    return _extremes(x, d, keepdim, amin.op)


def _extreme_function(name: str, of_all: Any, of_dim: Any, binary: Any, result: Any) -> Any:
    def call(input, dim=None, keepdim=False, *, other=None, out=None):
        x = tensor_argument(input, name)
        if isinstance(dim, Tensor):
            dim, other = None, dim
        if other is not None:
            return binary(x, other, out=out)
        if dim is None:
            check_not_empty(x, dim, (), name)
            y = of_all(x, all_dims(None, x.ndim), False)
            return y if out is None else store(out, y, name)
        d = wrap_dim(dim, x.ndim)
        check_not_empty(x, d, (d,), name)
        y = result(*of_dim(x, d, bool(keepdim)))
        return y if out is None else result(*store_each(out, (y[0], y[1]), f"{name}.dim"))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = (
        f"Return the {name}imum: of all elements, ``{name}(x)`` (ties share the gradient); (values, indices) along a dim, "
        f"``{name}(x, dim, keepdim)``, the first index where several attain it (it alone gets the gradient); of two tensors, "
        f"``{name}(x, other)``: `{name}imum`. nan wins; {name}([1, 3, 2]) = {'3' if name == 'max' else '1'}."
        "\n\nErrors: RuntimeError or IndexError for a reduction over nothing."
    )

    return register(name, call, "reduction")


max: Any = _extreme_function("max", _max_all, _max_dim, maximum, return_types.max)  # noqa: A001
min: Any = _extreme_function("min", _min_all, _min_dim, minimum, return_types.min)  # noqa: A001


@public()
def aminmax(input, *, dim=None, keepdim=False, out=None):
    """Return (min, max) over a dim, or over everything; aminmax([1, 3, 2]) = torch.return_types.aminmax( min=tensor(1), max=tensor(3))."""
    x = tensor_argument(input, "aminmax")
    dims = all_dims(dim, x.ndim)
    check_not_empty(x, dim, dims, "aminmax")
    for t in out or ():
        if t.dtype is not x.dtype:
            raise RuntimeError(exact_text("aminmax", t.dtype, x.dtype))
    y = return_types.aminmax(amin.op(x, dims, bool(keepdim)), amax.op(x, dims, bool(keepdim)))
    return y if out is None else return_types.aminmax(*store_each(out, (y[0], y[1]), "aminmax"))


def _arg(input: Any, dim: Any, keepdim: bool, extreme: ReductionOp, name: str) -> Tensor:
    x = tensor_argument(input, name).detach()
    if x._layout.dtype is dtypes.bool_ or x._layout.dtype.is_complex:
        raise RuntimeError(f"{name}(): does not support {'complex' if x._layout.dtype.is_complex else 'bool'} input")
    if dim is None:
        if not x._layout.size:
            raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
        y = _where_extreme(x.reshape(-1), 0, extreme(x, all_dims(None, x.ndim), False))
        return y.reshape([1] * x.ndim) if keepdim else y
    d = wrap_dim(dim, x.ndim)
    check_not_empty(x, d, (d,), name)
    shape = reduced_shape(x.shape, (d,), keepdim)
    if x.ndim and (x.shape[d] == 1 or not numel(shape)):  # nothing is to be compared, for which PyTorch has no kernel either
        return new_full(shape, 0, dtypes.int64)
    return _extremes(x, d, bool(keepdim), extreme)[1]


@public()
def argmax(input, dim: int | None = None, keepdim=False, *, out=None):
    """Return the index of the maximum along ``dim`` (the first of several; nan wins), or in the flattened tensor; argmax([1., 5., 3.]) = 1."""
    y = _arg(input, dim, keepdim, amax.op, "argmax")
    return y if out is None else store(out, y, "argmax")


@public()
def argmin(input, dim: int | None = None, keepdim=False, *, out=None):
    """Return the index of the minimum along ``dim`` (the first of several; nan wins), or in the flattened tensor; argmin([4., 1., 3.]) = 1."""
    y = _arg(input, dim, keepdim, amin.op, "argmin")
    return y if out is None else store(out, y, "argmin")


# ------------------------------------------------------------------------------------- truth and counting


@reduction(ANY, result="truth")
def any(x):  # noqa: A001
    """Return whether any element is not 0, over ``dim`` or all; any([[0, 1], [0, 0]], 1) = [ True, False]."""
    return x != 0


@reduction(ALL, result="truth")
def all(x):  # noqa: A001
    """Return whether every element is not 0, over ``dim`` or all; all([[0, 1], [1, 1]], 1) = [False, True]."""
    return x != 0


@reduction(SUM, result="count", keepdim=False, reference=lambda a, axis: np.count_nonzero(a, axis))
def count_nonzero(x):
    """Return how many elements are not 0, over ``dim`` or all; count_nonzero([0, 1, 2]) = 2."""
    return m.where(x != 0, 1, 0).cast("int64")


# ------------------------------------------------------------------------------------ variance and deviation


@pointwise(
    lambda g, u, scale: g * (u * scale), lambda g, u, scale: -(g * (u * scale)), lambda x, mean, scale: (x - mean) * scale, None,
    name="deviation", public=False, inplace=False,
)  # fmt: skip
def _deviation(x, mean, u, scale):
    return ((x - mean) * u) * scale


def _square(x, mean, divisor):
    return (x - mean) * (x - mean)


_SQUARES = Reduction("var", SUM, _square, lambda total, divisor: total / divisor)
_ROOT_SQUARES = Reduction("std", SUM, _square, lambda total, divisor: m.sqrt(total / divisor))
_WIDE_MEAN = Reduction("mean", SUM, lambda x, count: x, lambda total, count: total / count)


def wide_mean(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Return the mean over ``dims``, kept, in float64, so that a large mean does not swamp a small variance."""
    return _WIDE_MEAN((x, float(count_of(x.shape, dims))), dims, True, dtypes.float64, (x.dtype.compute, "float64"))


def mean_square(x: Tensor, center: Tensor, divisor: float, dims: tuple[int, ...], keepdim: bool, root: bool = False) -> Tensor:
    """Return Σ(x − center)² / divisor over ``dims``, or its root."""
    return (_ROOT_SQUARES if root else _SQUARES)((x, center, float(divisor)), dims, keepdim, x.dtype, "float64")


def _spread(x: Tensor, dims: tuple[int, ...], keepdim: bool, correction: float, root: bool) -> Tensor:
    n = count_of(x.shape, dims)
    return mean_square(x, wide_mean(x, dims), n - correction if n and n > correction else 0.0, dims, keepdim, root)


def _var_rule(g: Tensor, x: Tensor, dims: tuple[int, ...], correction: float, every: bool) -> Tensor:
    free = count_of(x.shape, dims) - correction
    if every and free <= 0:  # PyTorch's has a rule of its own where all elements are too few
        plain = x.detach()
        return g * OPS["where"].call(plain == mean.op(plain, dims, True), math.nan, math.inf).to(x.dtype)
    return _deviation(x, mean.op(x, dims, True), g, 2.0 / free if free > 0 else math.inf if free == 0 else 2.0 / free)


@reduction(grad=_var_rule, public=False)
def _var(x, dims, keepdim, correction, every):
    return _spread(x, dims, keepdim, correction, False)


def _std_rule(g: Tensor, x: Tensor, y: Tensor, dims: tuple[int, ...], correction: float, every: bool) -> Tensor:
    # a factor, by which tangents are 0 at 0 too, and of numbers that have a derivative
    flat = y == 0
    return _var_rule(g * OPS["where"].call(flat, 0.0, 0.5 / OPS["where"].call(flat, 1.0, y)), x, dims, correction, every)


@reduction(grad=_std_rule, public=False)
def _std(x, dims, keepdim, correction, every):
    return _spread(x, dims, keepdim, correction, True)


def _of_parts(x: Tensor) -> tuple[Tensor, Tensor]:
    return OPS["real"].call(x), OPS["imag"].call(x)


def _variance(x: Tensor, *options: Any) -> Tensor:
    """Return the variance; of complex numbers the sum of those of both parts."""
    if not x.dtype.is_complex:
        return _var(x, *options)
    re, im = _of_parts(x)
    return _var(re, *options) + _var(im, *options)


@pointwise(lambda g, y: m.where(y == 0, m.zero_like(g), g / (2 * y)), node="StdBackward0", public=False, inplace=False)
def _root(x):  # of a variance: where all are equal the gradient is 0
    return m.sqrt(x)


def _standard(x: Tensor, *options: Any) -> Tensor:
    return _root(_variance(x, *options)) if x.dtype.is_complex else _std(x, *options)


def _moments_arguments(
    name: str, input: Any, dim: Any, unbiased: Any, correction: Any
) -> tuple[Tensor, tuple[int, ...], float, bool]:
    """Return the tensor, the dims, the correction and whether all elements are wanted."""
    x = tensor_argument(input, name)
    if isinstance(dim, bool) and unbiased is None:  # var(x, unbiased)
        dim, unbiased = None, dim
    elif unbiased is not None:
        bool_argument(unbiased, name, "unbiased")
    if unbiased is not None and correction is not None:
        raise TypeError(f"{name}(): give unbiased or correction, not both (unbiased={unbiased}, correction={correction})")
    if x.dtype.category < 2:
        raise RuntimeError(f"{name} and its kin only support floating point and complex dtypes, got {x.dtype} (use x.float())")
    if correction is None:
        correction = 1.0 if unbiased is None or unbiased else 0.0
    correction = number_argument(correction, name, "correction")
    dims = all_dims(dim, x.ndim)
    n = count_of(x.shape, dims)
    if n - correction <= 0:
        warn_user(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel "
            f"divided by output numel): {n} elements, correction {correction}.",
        )
    return x, dims, float(correction), dim is None or not x.ndim


@public()
def var(input, dim=None, unbiased=None, keepdim=False, *, correction: float | None = None, out=None):
    """Return the variance over ``dim``: Σ(x − mean)²/(n − correction); correction 1 unless ``unbiased=False`` or given.

    Derivative: dx = 2·g·(x − mean)/(n − correction).

    Two passes, the mean in float64. Errors: RuntimeError for integers.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.var.html

    >>> torch.var(torch.tensor([1.0, 2.0, 4.0, 5.0]))
    tensor(3.3333)
    """
    x, dims, c, every = _moments_arguments("var", input, dim, unbiased, correction)
    y = _variance(x, dims, bool(keepdim), c, every)
    return y if out is None else store(out, y, "var")


@public()
def std(input, dim=None, unbiased=None, keepdim=False, *, correction: float | None = None, out=None):
    """Return the standard deviation over ``dim``: √`var`; the gradient is 0 where it is 0; std([1., 2., 3.]) = tensor(1.)."""
    x, dims, c, every = _moments_arguments("std", input, dim, unbiased, correction)
    y = _standard(x, dims, bool(keepdim), c, every)
    return y if out is None else store(out, y, "std")


@public(method=False)
def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction: float | None = None, out=None) -> tuple[Tensor, Tensor]:
    """Return (variance, mean) over ``dim``; see `var`; var_mean([1., 2., 3.]) = (tensor(1.), tensor(2.))."""
    x, dims, c, every = _moments_arguments("var_mean", input, dim, unbiased, correction)
    return _variance(x, dims, bool(keepdim), c, every), guarded(_mean(x, dims, bool(keepdim)), x)


def _mean(x: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """Return the mean beside a variance, which also complex32 has."""
    return cast(mean.op(cast(x, dtypes.complex64), dims, keepdim), x.dtype) if x.dtype is dtypes.complex32 else mean.op(x, dims, keepdim)  # type: ignore[no-any-return]


@public(method=False)
def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction: float | None = None, out=None) -> tuple[Tensor, Tensor]:
    """Return (standard deviation, mean) over ``dim``; see `std`; std_mean([1., 2., 3.]) = (tensor(1.), tensor(2.))."""
    x, dims, c, every = _moments_arguments("std_mean", input, dim, unbiased, correction)
    deviation = _standard(x, dims, bool(keepdim), c, every)
    return deviation, guarded(_mean(x, dims, bool(keepdim)), x, deviation)


# ------------------------------------------------------------------------------------------------------- in logs

_LOGSUMEXP = RowKernel("logsumexp", {"x": "full"}, {"y": "row"}, [
    Each(folds={"most": (MAX, lambda x: x)}),
    Row({"top": lambda most: m.where(m.abs(most) == math.inf, 0.0, most)}),
    Each(folds={"s": (SUM, lambda x, top: m.exp(x - top))}),
    Row({"y": lambda s, top: m.log(s) + top}),
])  # fmt: skip


@pointwise(
    lambda result: result, lambda g, x, y0: g * m.exp(x - y0), lambda result: -result,
    name="logsumexp_backward", public=False, inplace=False,
)  # fmt: skip
def _logsumexp_backward(x, g0, y0):
    return g0 * m.exp(x - y0)


@reduction(grad=lambda g, x, y: _logsumexp_backward(x, g, y), result="float", dim=REQUIRED, reference=np.logaddexp.reduce)
def logsumexp(x, dims, keepdim):
    """Return ln Σ eˣ over ``dim`` (an int or several), without overflow; dL/dx = g·e^(x − y); logsumexp([0., 1.], 0) = 1.3133."""
    layout = layout_of(reduced_shape(x.shape, dims, keepdim), None, x.dtype)
    if x.dtype.is_complex:
        return _complex_logsumexp(x, dims, keepdim)
    if x.dtype.is_half:
        return cast(logsumexp.op(cast(x, dtypes.float32), dims, keepdim), x.dtype)
    dims = tuple(sorted(dims))
    if dims and dims[-1] - dims[0] + 1 != len(dims):
        rest = [d for d in range(x.ndim) if d not in dims]
        x, dims = x.permute([*rest, *dims]), tuple(range(len(rest), x.ndim))
    first, last = (dims[0], dims[-1] + 1) if dims else (x.ndim, x.ndim)
    sizes = (numel(x.shape[:first]), numel(x.shape[first:last]), numel(x.shape[last:]))
    if not sizes[1]:
        return new_full(layout.shape, -math.inf, x.dtype)
    data = launch.empty(layout.size, layout.dtype.carrier)
    if layout.size:
        _LOGSUMEXP(x.dtype.name, sizes, [dense(x)], [data])
    return make(data, layout, [0, 0])


def _complex_logsumexp(x: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    if not count_of(x.shape, dims):
        return new_full(reduced_shape(x.shape, dims, keepdim), -math.inf, x.dtype)
    top = amax.op(x.detach().real, dims, True)
    top = OPS["where"].call(top.isinf(), 0.0, top)
    y = (x - top).exp()
    y = (y.sum(dims, True) if dims else y).log() + top
    return y if keepdim or not dims else y.reshape(reduced_shape(x.shape, dims, False))


register("special.logsumexp", logsumexp, "reduction", method=False, namespaces=("special",))
