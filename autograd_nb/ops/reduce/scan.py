"""Running sums, products and extremes along a dim, and products; differences and areas.

The gradients of running products are linear recurrences (`_linear_scan`), which makes them right where elements are 0, and
closed under differentiation.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from ... import dtypes, launch, return_types
from ...codegen import threads
from ...codegen.templates.loops import PROD
from ...dtypes import dtype as _dtype
from ...graph.modes import state
from ...shapes import as_int, layout_of, wrap_dim
from ...tensor import Tensor, make
from ..core.call_path import known, result_lines, unsaved_lines
from ..core.numbers import number_argument
from ..core.recording import computed_in, exact_text, no_complex_derivative, not_for_bool, store, store_each
from ..core.reduction import KnownPlan, reduction
from ..core.registry import OPS, public
from ..core.row_kernel import row_sizes
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, dense
from ..creation.create import new_full
from ..indexing.take_along import put_along

_CUMSUM = launch.Kernel("reduce.scan", "cumsum")
_CUMPROD = launch.Kernel("reduce.scan", "cumprod")
_CUMPROD_BACKWARD = launch.Kernel("reduce.scan", "cumprod_backward")
_PROD_BACKWARD = launch.Kernel("reduce.scan", "prod_backward")
_LINEAR = launch.Kernel("reduce.scan", "linear_scan")
_CUMMAX = launch.Kernel("reduce.scan", "cummax", outputs=2)
_LOGCUMSUMEXP = launch.Kernel("reduce.scan", "logcumsumexp")
_COMPLEX_LOGCUMSUMEXP = launch.Kernel("reduce.scan", "complex_logcumsumexp")

#: whose lines do not depend on one another, not even by the way in which they are computed
_APART = (_CUMSUM, _CUMPROD, _CUMPROD_BACKWARD, _LINEAR)
_EFFORT = 8  #: what an element costs, which waits for the one before it, see `threads.WORTH`


def _accumulator(d: _dtype, inner: int) -> np.ndarray:
    return launch.empty(max(inner, 1), (dtypes.int64, dtypes.float64, dtypes.complex128)[max(d.category - 1, 0)].carrier)


def _of_lines(kernel: launch.Kernel, x: Tensor, d: int, flags: Sequence[Any], operands: Sequence[Tensor], buffers: int, *results: np.ndarray) -> None:
    """Run a scan of lines, on several threads where they are many; each has ``buffers`` for its sums of its own."""
    outer, n, inner = row_sizes(x.shape, d)
    work = _EFFORT * x._layout.size
    wide = inner if threads.alone(work) else outer * inner
    sums = [_accumulator(x.dtype, wide) for _ in range(buffers)]
    lines = n * inner
    strides = (0, 0, *[0] * len(flags), *[lines] * len(operands), *[inner] * buffers, *[lines] * len(results))
    kernel.rows(x.dtype, strides, work, outer, n, inner, *flags, *[dense(o) for o in operands], *sums, *results)


def _scanned(kernel: launch.Kernel, d: int, flags: tuple[Any, ...], *operands: Tensor) -> Tensor:
    x = operands[0]
    if x.dtype.is_half:
        return cast(_scanned(kernel, d, flags, *[cast(o, dtypes.float32) for o in operands]), x.dtype)
    sizes = row_sizes(x.shape, d)
    layout = x._layout.dense
    data = launch.empty(layout.size, layout.dtype.carrier)
    if layout.size and kernel in _APART:
        _of_lines(kernel, x, d, flags, operands, 1, data)
    elif layout.size:
        kernel(x.dtype, *sizes, *flags, *[dense(o) for o in operands], _accumulator(x.dtype, sizes[2]), data)
    return make(data, layout, [0, 0])


@structured(x=lambda g, d, reverse: _cumsum(g, d, not reverse), linear="jointly", batch="shift", samples="x(3, 4).cumsum(1)")
def _cumsum(x, d, reverse):
    return _scanned(_CUMSUM, d, (reverse,), x)


def _along(name: str, input: Any, dim: Any, dtype: Any) -> tuple[Tensor, int]:
    x = tensor_argument(input, name)
    d = wrap_dim(dim, x.ndim)
    if dtype is not None:
        wanted = dtypes.as_dtype(dtype)
        not_for_bool(name, wanted, x)
        x = cast(x, wanted)
    elif x.dtype.category < 2:
        x = cast(x, dtypes.int64)
    return x, d


def _plan_cumsum(checked: bool, input: Any, dim: Any) -> KnownPlan | None:
    layout = input._layout
    n, kind = layout.ndim, layout.dtype
    plain = kind.category == 2 and not kind.is_half and layout.contiguous and 0 < layout.size * kind.itemsize < launch.BIG
    if dim.__class__ is not int or not -n <= dim < n or not plain:
        return None
    entry = _CUMSUM.entry(kind)
    return entry and KnownPlan(_cumsum, (entry, (*row_sizes(layout.shape, dim % n), False), layout), (), (dim % n, False), layout)


@public()
@known(
    "input._layout, dim, dim.__class__", _plan_cumsum,
    result_lines("plan.entry(*plan.dims, input._data, _empty(plan.dims[2], _wide), data)", unsaved_lines("input")), takes=("input", "dim"), _op=_cumsum,
    _wide=np.dtype(np.float64),
)  # fmt: skip
def cumsum(input, dim, *, dtype=None, out=None):
    """yₖ = x₀ + … + xₖ along ``dim``; integers give int64; dL/dx is the running sum of g from the end; cumsum([1, 2, 3], 0) = [1, 3, 6]."""
    x, d = _along("cumsum", input, dim, computed_in(out, dtype))
    y = _cumsum(x, d, False)
    return y if out is None else store(out, y, "cumsum", (), (input,))


# ------------------------------------------------------------------------------------------------- products


def _shift(x: Tensor, d: int, back: bool, fill: float) -> Tensor:
    """yₖ = xₖ₋₁ (or xₖ₊₁ when ``back``), the place left empty filled."""
    if x.ndim == 0:
        return new_full((), fill, x.dtype)
    n = x.shape[d]
    if not n:
        return x
    edge = new_full([1 if i == d else s for i, s in enumerate(x.shape)], fill, x.dtype)
    parts = [x.narrow(d, 1, n - 1), edge] if back else [edge, x.narrow(d, 0, n - 1)]
    return OPS["cat"].call(parts, d)


def _linear_rule(g, a, out, d, reverse, needs):
    t = _linear_scan(_shift(a, d, not reverse, 0.0), g, d, not reverse)
    grads = {"b": t}
    if "a" in needs:
        grads["a"] = t * _shift(out, d, reverse, 0.0)
    return grads


@structured(_linear_rule, linear="no", batch="shift")
def _linear_scan(a, b, d, reverse):
    """sₖ = bₖ + aₖ·sₖ₋₁ (or sₖ₊₁ when ``reverse``)."""
    return _scanned(_LINEAR, d, (reverse,), a, b)


def _apart(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return whether any element is 0, and what of ``x`` each of both ways to divide a product takes: ones go the other's."""
    where = OPS["where"].call
    zero = (x.detach() == 0).any()
    return zero, where(zero, x, 1.0), where(zero, 1.0, x)


def _zeros(x: Tensor) -> int | None:
    """Return 0 where no element is 0, 1 where some are and all are finite, 2 where some are and others are not; None where that may change.

    A quotient by 0, or a product of 0 with what takes no part, is nan where elements are not finite: then it is of account which way was gone.
    """
    x = x.detach()
    zero, sum_of = x == 0, OPS["sum"].call
    if zero.__class__ is not Tensor or not zero._data.size:
        return None
    kind = sum_of(zero.any(), dtype=dtypes.int64) * (1 + (~OPS["isfinite"].call(x)).any())
    return next((k for k in range(3) if launch.holds(kind._data, 0, k, k)), None)


def _omitted(x: Tensor, d: int, k: int) -> Tensor:
    """Return the products from the first to each element from the k-th on, without the k-th."""
    n = x.shape[d] if x.ndim else 1
    before = OPS["prod"].call(x.narrow(d, 0, k), d, True) if k else new_full([1 if i == d else s for i, s in enumerate(x.shape)], 1.0, x.dtype)
    if k == n - 1:
        return before
    behind = _cumprod(x.narrow(d, k + 1, n - k - 1), d, False, False)
    return OPS["cat"].call([before, before * behind if k else behind], d)


def _products_apart(g: Tensor, x: Tensor, d: int) -> Tensor:
    """Return the derivative of a running product as the sums of what is left of each product without an element, one element after the other.

    That is n² steps, in which nothing is multiplied that does not belong together (as in PyTorch).
    """
    n = x.shape[d]
    return OPS["stack"].call([OPS["sum"].call(g.narrow(d, k, n - k) * _omitted(x, d, k), d) for k in range(n)], d)


def _without_quotients(x: Tensor, g: Tensor, d: int, reverse: bool) -> Tensor:
    """Return the derivative of a running product by products alone, which is right at zeros too."""
    return _cumprod(x, d, reverse, True) * _linear_scan(_shift(x, d, not reverse, 0.0), g, d, not reverse)


def _cumprod_rule(g, x, y, d, reverse, exclusive):
    if not x._layout.size or (not exclusive and (not x.ndim or x.shape[d] == 1)):
        return g
    if exclusive:
        return _cumprod(x, d, reverse, True) * _shift(_linear_scan(x, g, d, not reverse), d, not reverse, 0.0)
    if not state.grad:
        return _scanned(_CUMPROD_BACKWARD, d, (reverse,), x, g, y)
    if x.dtype.is_half:  # (see `_prod_rule`)
        return _without_quotients(x, g, d, reverse)
    zeros = _zeros(x)
    if zeros == 0:
        return _cumsum(g * y, d, not reverse) / x
    if zeros == 2 and not reverse:
        return _products_apart(g, x, d)
    zero, factors, divisors = _apart(x)
    sums = _without_quotients(factors, g, d, reverse)
    return OPS["where"].call(zero, sums, _cumsum(g * y, d, not reverse) / divisors)


# (PyTorch keeps the result too, and so refuses to have it changed)
@structured(
    x=lambda g, x, out, d, reverse, exclusive: _cumprod_rule(g, x, out, d, reverse, exclusive), linear="no", batch="shift",
    samples="pos(3, 4).cumprod(1)",
)
def _cumprod(x, d, reverse, exclusive):
    return _scanned(_CUMPROD, d, (reverse, exclusive), x)


@public()
def cumprod(input, dim, *, dtype=None, out=None):
    """yₖ = x₀ · … · xₖ along ``dim``; integers give int64. The gradient is right where elements are 0; cumprod([1, 2, 3], 0) = [1, 2, 6]."""
    x, d = _along("cumprod", input, dim, computed_in(out, dtype))
    y = _cumprod(x, d, False, False)
    return y if out is None else store(out, y, "cumprod", (), (input,))


def _prod_rule(g, x, y, dims):
    if not x._layout.size or not dims:
        return g
    last = tuple(range(x.ndim - len(dims), x.ndim))
    d = dims[0] if len(dims) == 1 else last[0]

    def line(t: Tensor) -> Tensor:
        return t if len(dims) == 1 else t.movedim(dims, last).flatten(d)

    def as_lines(t: Tensor) -> Tensor:
        return t if len(dims) == 1 else t.reshape([*[x.shape[i] for i in range(x.ndim) if i not in dims], *[x.shape[i] for i in dims]]).movedim(last, dims)

    if not state.grad:
        return as_lines(_scanned(_PROD_BACKWARD, d, (len(dims) == x.ndim,), line(x), line(g), line(y)))
    def others(factors: Tensor) -> Tensor:
        t = line(factors)
        return as_lines(_cumprod(_shift(t, d, False, 1.0), d, False, False) * _cumprod(_shift(t, d, True, 1.0), d, True, False))

    if x.dtype.is_half:  # whose products are soon 0, and quotients infinite
        return g * others(x)
    zeros = _zeros(x)
    if zeros is not None:
        return g * (others(x) if zeros else y / x)
    zero, factors, divisors = _apart(x)
    return g * OPS["where"].call(zero, others(factors), y / divisors)


@reduction(PROD, grad=_prod_rule, result="sum", several=False, typed=True)
def prod(x):
    """Return the product of all elements, or over ``dim``; integers give int64. dy/dxᵢ = Π of the others, also of zeros; prod([2., 3., 4.]) = tensor(24.)."""
    return x


# ------------------------------------------------------------------------------------------------- extremes


def _cumulative_extreme(x: Tensor, d: int, largest: bool) -> tuple[Tensor, Tensor]:
    values: Any
    index: Any
    if x.dtype.is_half:
        values, index = _cumulative_extreme(cast(x, dtypes.float32), d, largest)
        return cast(values, x.dtype), index
    if x.dtype.is_complex and not x.ndim:  # (one number, which needs no order)
        return x.clone(), new_full((), 0, dtypes.int64)
    layout = x._layout.dense
    places = layout_of(layout.shape, None, dtypes.int64)
    values, index = launch.empty(layout.size, layout.dtype.carrier), launch.empty(layout.size, places.dtype.carrier)
    if layout.size:
        _of_lines(_CUMMAX, x, d, (largest,), (x,), 0, values, index)
    return make(values, layout, [0, 0]), make(index, places, [0, 0])


@structured(
    x=lambda g, x, out1, x_shape, d: put_along(g[0], out1, x_shape, d), linear="no", batch="shift",
    dtypes="half float integer bool", samples="x(3, 4).cummax(1).values",
)
def _cummax(x, d):
    return _cumulative_extreme(x, d, True)


@structured(
    x=lambda g, x, out1, x_shape, d: put_along(g[0], out1, x_shape, d), linear="no", batch="shift",
    dtypes="half float integer bool", samples="x(3, 4).cummin(1).values",
)
def _cummin(x, d):
    return _cumulative_extreme(x, d, False)


def _cumulative(op: Any, name: str, input: Any, dim: Any, out: Any) -> Any:
    """Return the values and indices that an op gives along ``dim``, named as PyTorch names them."""
    x, result = tensor_argument(input, name), getattr(return_types, name)
    if x._layout.dtype.is_complex and x.ndim and x._layout.size:
        raise NotImplementedError(f'"{name}_cpu" not implemented for complex tensors, which have no order')
    no_complex_derivative(name, x)
    y = result(*op(x, wrap_dim(dim, x.ndim)))
    return y if out is None else result(*store_each(out, (y[0], y[1]), name))


@public()
def cummax(input, dim, *, out=None):
    """Return (values, indices) of the maximum so far along ``dim``; the last index of several; nan wins.

    Derivative: g added up at the places in ``indices``, which are where the maxima stood.

    >>> torch.cummax(torch.tensor([1, 3, 2]), 0)
    torch.return_types.cummax(
    values=tensor([1, 3, 3]),
    indices=tensor([0, 1, 1]))
    """
    return _cumulative(_cummax, "cummax", input, dim, out)


@public()
def cummin(input, dim, *, out=None):
    """Return (values, indices) of the minimum so far along ``dim``; the last index of several; nan wins.

    Derivative: g added up at the places in ``indices``, which are where the minima stood.

    >>> torch.cummin(torch.tensor([3, 1, 2]), 0)
    torch.return_types.cummin(
    values=tensor([3, 1, 1]),
    indices=tensor([0, 1, 1]))
    """
    return _cumulative(_cummin, "cummin", input, dim, out)


# --------------------------------------------------------------------------------------------- logcumsumexp


def _logcumsumexp_rule(g, x, out, d):
    # r_k = g_k + e^(y_k − y_k+1)·r_k+1, every factor ≤ 1
    if not x.ndim:
        return g
    if x.dtype.is_half:  # what is kept of y is too coarse for differences of it
        g, x = cast(g, dtypes.float32), cast(x, dtypes.float32)
        return cast(_logcumsumexp_rule(g, x, _logcumsumexp(x, d), d), out.dtype)
    n = x.shape[d]
    following = OPS["cat"].call([out.narrow(d, 1, n - 1), out.narrow(d, n - 1, 1)], d) if n > 1 else out
    gaps = out - following
    if not x.dtype.is_complex:  # nothing comes from behind an infinite sum, not even nan
        gaps = gaps.masked_fill(following == inf, -inf)
    r = _linear_scan(gaps.exp(), g, d, True)
    return (x - out).exp() * r


@structured(x=_logcumsumexp_rule, linear="no", batch="shift", dtypes="half float complex", samples="x(3, 4).logcumsumexp(1)")
def _logcumsumexp(x, d):
    if x.dtype.is_half:
        return cast(_logcumsumexp(cast(x, dtypes.float32), d), x.dtype)
    layout = x._layout.dense
    data = launch.empty(layout.size, layout.dtype.carrier)
    if layout.size:
        kernel, buffers = (_COMPLEX_LOGCUMSUMEXP, 1) if x.dtype.is_complex else (_LOGCUMSUMEXP, 2)
        _of_lines(kernel, x, d, (), (x,), buffers, data)
    return make(data, layout, [0, 0])


@public()
def logcumsumexp(input, dim, *, out=None):
    """yₖ = ln(e^x₀ + … + e^xₖ) along ``dim``, without overflow; logcumsumexp([0., 0., 0.], 0) = [0.0000, 0.6931, 1.0986].

    Derivative: dxⱼ = Σₖ gₖ·e^(xⱼ − yₖ) over k ≥ j.
    """
    x = tensor_argument(input, "logcumsumexp")
    if x.dtype.category < 2:
        raise NotImplementedError(f'"logcumsumexp" not implemented for {x.dtype}: it takes floating point tensors')
    y = _logcumsumexp(x, wrap_dim(dim, x.ndim))
    return y if out is None else store(out, y, "logcumsumexp", (), (input,))


# --------------------------------------------------------------------------------------- differences and areas


def _check_joined(t: Any, x: Tensor, dim: int) -> None:
    if tensor_argument(t, "diff", "prepend").ndim != x.ndim:
        raise RuntimeError(f"diff expects prepend or append to be the same dimension as input ({t.ndim} and {x.ndim} dims)")
    for d, (got, size) in enumerate(zip(t.shape, x.shape, strict=True)):
        if d != dim and got != size:
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that of input except along the differencing dimension; "
                f"input.size({d}) = {size}, but got tensor.size({d}) = {got}"
            )


@public()
def diff(input, n: int = 1, dim=-1, prepend=None, append=None, *, out=None):
    """Return the n-th difference along ``dim``: yₖ = xₖ₊₁ − xₖ, with ``prepend`` and ``append`` joined on first.

    Errors: RuntimeError for 0-d input and a negative ``n``.

    >>> torch.diff(torch.tensor([1, 4, 9]))
    tensor([3, 5])
    """
    x = tensor_argument(input, "diff")
    if x.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    dim = as_int(dim, "dim")
    if as_int(n, "n") < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    joined = [t for t in (prepend, x, append) if t is not None]
    if len(joined) > 1:
        for t in joined:
            _check_joined(t, x, wrap_dim(dim, x.ndim))
    if n == 0:
        y = x.clone()
        if isinstance(out, Tensor) and out.dtype is not y.dtype:  # (that of differences may be another)
            raise RuntimeError(exact_text("diff", out.dtype, y.dtype))
        return y if out is None else store(out, y, "diff", (), (input,))
    d = wrap_dim(dim, x.ndim)
    if len(joined) > 1:
        x = OPS["cat"].call(joined, d)
    for _ in range(n if x.shape[d] > n else x.shape[d]):
        size = x.shape[d]
        if size == 0:
            break
        after, before = x.narrow(d, 1, size - 1), x.narrow(d, 0, size - 1)
        x = after.logical_xor(before) if x.dtype is dtypes.bool_ else after - before
    return x if out is None else store(out, x, "diff")


def _pieces(y: Any, x: Any, dx: Any, dim: int, name: str) -> tuple[Tensor, int]:
    """Return the areas of the trapezoids between neighbours."""
    t = tensor_argument(y, name, "y")
    if not t.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions ({name}: y)")
    if dtypes.bool_ in (t.dtype, x.dtype if isinstance(x, Tensor) else None):
        which = "`y`" if x is None else "`x` or `y`"
        raise RuntimeError(f"{name}: received a bool input for {which}, but bool is not supported")
    d = wrap_dim(dim, t.ndim)
    n = t.shape[d]
    sides = t.narrow(d, 1, n - 1) + t.narrow(d, 0, n - 1) if n else t
    if x is None:
        return sides * (number_argument(dx, name, "dx") / 2.0), d
    if tensor_argument(x, name, "x").ndim == 1:
        if x.shape[0] != n:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point ({x.shape[0]} for {n})")
        x = x.reshape([-1] + [1] * (t.ndim - d - 1))
    if x.ndim < t.ndim:
        x = x.reshape((1,) * (t.ndim - x.ndim) + tuple(x.shape))
    return sides * diff(x, dim=d), d


@public("trapz", method=False)
def trapezoid(y, x=None, *, dx=1, dim=-1):
    """Return the area under ``y`` along ``dim`` by trapezoids, over places ``x`` or of width ``dx``; trapezoid([1., 2., 3.]) = tensor(4.)."""
    t = tensor_argument(y, "trapezoid", "y")
    if t.ndim and not t.shape[d := wrap_dim(dim, t.ndim)]:
        return t.new_zeros((*t.shape[:d], *t.shape[d + 1 :]))
    pieces, d = _pieces(t, x, dx, dim, "trapezoid")
    if x is None:  # as PyTorch has it, also where something is infinite
        return (t.sum(d) - (t.select(d, 0) + t.select(d, -1)) * 0.5) * number_argument(dx, "trapezoid", "dx")
    return pieces.sum(d) / 2.0


@public(method=False)
def cumulative_trapezoid(y, x=None, *, dx=1, dim=-1):
    """Return the running area under ``y`` along ``dim`` by trapezoids; cumulative_trapezoid([1., 2., 3.]) = [1.5000, 4.0000]."""
    pieces, d = _pieces(y, x, dx, dim, "cumulative_trapezoid")
    return cumsum(pieces if x is None else pieces * 0.5, d)
