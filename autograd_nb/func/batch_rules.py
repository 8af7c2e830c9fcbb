"""What structured ops do with a batch: rules by family, and for the rest one sample after the other.

Most ops take their dims as arguments, and only need them shifted by the batch's: `SHIFT` names the ops for which that is all
(any dims may stand in front of those that they work on), and `_ARGUMENTS` how each argument is shifted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd.wrapped import place_of
from ..ops.registry import OPS
from ..tensor import Tensor
from .batched import batch, materialize, value_of

__all__ = ["structured"]

_EACH = frozenset(("dims", "wdims"))
_ONE = frozenset(("d", "a", "b"))
_SHAPE = frozenset(("shape", "base_shape", "x_shape"))


def _shifted(name: str, value: Any, size: int) -> Any:
    """An argument of the op on samples, as the op on the whole batch takes it."""
    if name in _ONE:
        return value + 1
    if name in _EACH:
        return tuple(d + 1 for d in value)
    if name in _SHAPE:
        return (size, *value)
    if name == "order":
        return (0, *[d + 1 for d in value])
    if name == "places":
        return (0, *value)
    if name == "recipe":
        return ((0, size, 1), *value)
    return value


#: module.function of the ops that work on a batch when their dims are shifted
SHIFT = frozenset(
    """
    along.put_along along.take_along complex._view_as_real complex._view_as_complex
    fft._c2c fft._r2c fft._c2r gather._gather gather._gather_backward gather._fold
    indexing._basic_backward indexing.basic_slice indexing.basic_unsqueeze indexing.basic_select
    norms._norm pad._pad pad._unpad pool._max_pool pool._scatter pool._gather pool._average pool._average_back pool._adaptive pool._adaptive_back
    pool._adaptive_max pool._unpool quantile._mode rearrange.tri rearrange._flip rearrange._roll reduction._sum reduction._mean
    scan._cumsum scan._linear_scan scan._cumprod scan._prod scan._cummax scan._cummin scan._logcumsumexp
    shape._view shape._copied_view shape._alias shape._permute shape._transpose shape._squeeze shape._unsqueeze
    parts._select parts._select_backward parts._slice parts._slice_backward parts._split parts._unbind parts._diagonal
    parts._diagonal_backward cat._cat cat._stack
    softmax._softmax_backward softmax._softmax softmax._log_softmax_backward softmax._log_softmax
    decompose._qr lu._lu_factor lu._inv determinant._det determinant._slogdet spectral._svd spectral._eigh spectral._eig
    spectral._pinv triangular._cholesky triangular._cholesky_solve
    sorting._sort sorting._topk sorting._kth_value sorting._median_dim
    statistics._amax statistics._amin statistics._max_dim statistics._min_dim statistics._var statistics._std statistics._nansum
    statistics._logsumexp
    """.split()  # noqa: SIM905  (a list of seventy strings reads worse)
)

RULES: dict[str, Callable] = {}


def _rule(*names: str) -> Callable[[Callable], Callable]:
    """Register ``rule(op, args, level, size)``; it returns tensors with the batch in dim 0, or None to leave it to the loop."""

    def enter(function: Callable) -> Callable:
        RULES.update(dict.fromkeys(names, function))
        return function

    return enter


def structured(op: Any, args: tuple, level: int) -> Any:
    """A structured op on batches of ``level``."""
    size = _size(args, level)
    name = place_of(op)
    out = None
    if name in SHIFT:
        out = _shift(op, args, level, size)
    elif name in RULES:
        out = RULES[name](op, args, level, size)
    if out is None:
        out = one_by_one(op, args, level, size)
    if isinstance(out, (tuple, list)):
        return type(out)([batch(o, level) if isinstance(o, Tensor) else o for o in out])
    return batch(out, level)


def _size(args: Any, level: int) -> int:
    for a in args:
        if isinstance(a, (tuple, list)):
            n = _size(a, level)
            if n >= 0:
                return n
        elif isinstance(a, Tensor):
            value, batched = value_of(a, level)
            if batched:
                return value.shape[0]
    return -1


def _shift(op: Any, args: tuple, level: int, size: int) -> Any:
    if isinstance(args[0], Tensor) and not args[0].ndim:
        if not _ONE.isdisjoint(op.params) or any(a for name, a in zip(op.params, args, strict=True) if name in _EACH):
            return None  # a number has no dims, but answers to dim 0
    shifted: list = []
    for name, a in zip(op.params, args, strict=True):
        if isinstance(a, Tensor):
            shifted.append(materialize(a, level, size))
        elif isinstance(a, (tuple, list)) and a and isinstance(a[0], Tensor):
            shifted.append(tuple(materialize(t, level, size) for t in a))
        else:
            shifted.append(_shifted(name, a, size))
    return op(*shifted)


def one_by_one(op: Callable, args: tuple, level: int, size: int) -> Any:
    """The op on each sample, and the results stacked."""
    found = [op(*[_sample(a, level, i) for a in args]) for i in range(size)]
    first = found[0]
    if isinstance(first, (tuple, list)):
        parts = [OPS["stack"].call([f[k] for f in found]) if isinstance(t, Tensor) else t for k, t in enumerate(first)]
        return type(first)(parts) if type(first) in (tuple, list) else tuple(parts)
    return OPS["stack"].call(found)


def _sample(a: Any, level: int, i: int) -> Any:
    if isinstance(a, (tuple, list)) and a and isinstance(a[0], Tensor):
        return type(a)([_sample(t, level, i) for t in a])
    value, batched = value_of(a, level)
    return value.select(0, i) if batched else a


# ------------------------------------------------------------------------------------------------------ shape


@_rule("shape._expand")
def _expand(op: Any, args: tuple, level: int, size: int) -> Any:
    x, shape = args
    value = x.value
    for _ in range(len(shape) - x.ndim):
        value = value.unsqueeze(1)
    return op(value, (size, *shape))


@_rule("shape._t")
def _t(op: Any, args: tuple, level: int, size: int) -> Any:
    x = args[0].value
    return x.transpose(1, 2) if x.ndim == 3 else x.view(x.shape)


@_rule("strided._as_strided")
def _as_strided(op: Any, args: tuple, level: int, size: int) -> Any:
    x, _, _, shape, strides, offset = args
    if offset:
        return None
    v = x.value
    return v.as_strided((size, *shape), (v._layout.strides[0], *strides))


@_rule("statistics._max_all", "statistics._min_all")
def _of_all(op: Any, args: tuple, level: int, size: int) -> Any:
    return OPS["amax" if place_of(op).endswith("_max_all") else "amin"].call(args[0].value.reshape(size, -1), 1)


# ---------------------------------------------------------------------------------------------------- matmul


def _mm_batched(a: Tensor, b: Tensor) -> Tensor:
    return OPS["bmm"].call(a, b)


@_rule("product._mm")
def _mm(op: Any, args: tuple, level: int, size: int) -> Any:
    (a, in_a), (b, in_b) = (value_of(x, level) for x in args)
    if not in_b:  # the batch is more rows
        return op(a.reshape(-1, a.shape[2]) if a._layout.size else a.reshape(size * a.shape[1], a.shape[2]), b).reshape(
            size, a.shape[1], b.shape[1]
        )
    if not in_a:
        a = a.unsqueeze(0).expand(size, *a.shape)
    return _mm_batched(a, b)


@_rule("product._mm_nt")
def _mm_nt(op: Any, args: tuple, level: int, size: int) -> Any:
    return OPS["mm"].call(args[0], args[1].t()).value


@_rule("product._mm_tn")
def _mm_tn(op: Any, args: tuple, level: int, size: int) -> Any:
    return OPS["mm"].call(args[0].t(), args[1]).value


@_rule("product._bmm")
def _bmm(op: Any, args: tuple, level: int, size: int) -> Any:
    a, b = (materialize(x, level, size) for x in args)
    n = a.shape[1]
    y = op(a.reshape(size * n, *a.shape[2:]), b.reshape(size * n, *b.shape[2:]))
    return y.reshape(size, n, *y.shape[1:])


@_rule("matmul._mv")
def _mv(op: Any, args: tuple, level: int, size: int) -> Any:
    (a, in_a), (v, in_v) = (value_of(x, level) for x in args)
    if not in_a:
        return OPS["mm"].call(v, a.t())
    v = v if in_v else v.unsqueeze(0).expand(size, *v.shape)
    return _mm_batched(a, v.unsqueeze(2)).squeeze(2)


@_rule("matmul._dot")
def _dot(op: Any, args: tuple, level: int, size: int) -> Any:
    a, b = (materialize(x, level, size) for x in args)
    return _mm_batched(a.unsqueeze(1), b.unsqueeze(2)).reshape(size)


@_rule("matmul._linear")
def _linear(op: Any, args: tuple, level: int, size: int) -> Any:
    (x, in_x), (w, in_w), (b, in_b) = (value_of(a, level) for a in args)
    if in_x and not in_w and not in_b:
        return op(x.reshape(size * x.shape[1], x.shape[2]), w, b).reshape(size, x.shape[1], w.shape[0])
    x, w, b = (materialize(a, level, size) for a in args)
    return _mm_batched(x, w.transpose(1, 2)) + b.unsqueeze(1)


@_rule("lu._solve")
def _solve(op: Any, args: tuple, level: int, size: int) -> Any:
    a, b = (materialize(x, level, size) for x in args)
    if a.ndim < b.ndim:  # one matrix for all of a sample's right-hand sides
        a = a.reshape(size, *[1] * (b.ndim - a.ndim), *a.shape[1:]).expand(*b.shape[:-2], *a.shape[-2:])
    return op(a, b)


# ----------------------------------------------------------------------------------------------- convolution


@_rule("conv._conv")
def _conv(op: Any, args: tuple, level: int, size: int) -> Any:
    x, w, bias, how, spatial = args
    (xv, in_x), (wv, in_w) = value_of(x, level), value_of(w, level)
    bv, in_b = value_of(bias, level) if bias is not None else (None, False)
    if in_x and not in_w and not in_b:
        y = op(xv.reshape(size * xv.shape[1], *xv.shape[2:]), wv, bv, how, spatial)
        return y.reshape(size, xv.shape[1], *y.shape[1:])
    y = _grouped(x, w, how, level, size, lambda a, b, h: op(a, b, None, h, spatial))
    if bias is not None:
        b = materialize(bias, level, size)
        y = y + b.reshape(size, 1, -1, *[1] * (y.ndim - 3))
    return y


def _grouped(x: Any, w: Any, how: Any, level: int, size: int, call: Callable) -> Tensor:
    """Samples as groups of channels: x (B·N·C → N·BC), w (B·O·I → BO·I)."""
    a, b = materialize(x, level, size), materialize(w, level, size)
    n = a.shape[1]
    merged = a.transpose(0, 1).reshape(n, size * a.shape[2], *a.shape[3:])
    y = call(merged, b.reshape(size * b.shape[1], *b.shape[2:]), _with_groups(how, size))
    return y.reshape(n, size, y.shape[1] // size, *y.shape[2:]).transpose(0, 1)


def _with_groups(how: Any, size: int) -> Any:
    return (*how[:-1], how[-1] * size)


@_rule("conv._conv_by_input")
def _conv_by_input(op: Any, args: tuple, level: int, size: int) -> Any:
    y, w, x_shape, how = args
    (yv, in_y), (wv, in_w) = value_of(y, level), value_of(w, level)
    if in_y and not in_w:
        n = yv.shape[1]
        x = op(yv.reshape(size * n, *yv.shape[2:]), wv, (size * n, *x_shape[1:]), how)
        return x.reshape(size, n, *x.shape[1:])
    n, c, *spatial = x_shape
    return _grouped(y, w, how, level, size, lambda a, b, h: op(a, b, (n, size * c, *spatial), h))


@_rule("conv._conv_by_weight")
def _conv_by_weight(op: Any, args: tuple, level: int, size: int) -> Any:
    y, x, w_shape, how = args
    a, b = materialize(y, level, size), materialize(x, level, size)
    n = a.shape[1]
    a = a.transpose(0, 1).reshape(n, size * a.shape[2], *a.shape[3:])
    b = b.transpose(0, 1).reshape(n, size * b.shape[2], *b.shape[3:])
    w = op(a, b, (size * w_shape[0], *w_shape[1:]), _with_groups(how, size))
    return w.reshape(size, *w_shape)


# ---------------------------------------------------------------------------------------------- normalisation


@_rule("normalization.normalize")
def _channel_norm(op: Any, args: tuple, level: int, size: int) -> Any:
    # the statistics are recomputed, for their part in the gradient
    x, w, b, _, _, dims, _, eps = args
    return _normalised(materialize(x, level, size), [d + 1 for d in dims], eps, True, *(_aligned(t, x, level) for t in (w, b)))


def _aligned(t: Any, x: Tensor, level: int) -> Any:
    if t is None:
        return None
    value, batched = value_of(t, level)
    return value.reshape(value.shape[0], *[1] * (x.ndim - t.ndim), *t.shape) if batched else value


def _normalised(x: Tensor, dims: Any, eps: float, centered: bool, w: Any, b: Any) -> Tensor:
    gap = x - x.mean(dims, True) if centered else x
    y = gap * ((gap * gap).mean(dims, True) + eps).rsqrt()
    if w is not None:
        y = y * w
    return y if b is None else y + b


# -------------------------------------------------------------------------------------------------- indexing

# An index counts in C order through the dims that it indexes. Where each sample has its own, the batch is one more of them.


def _with_batch(index: Tensor, x_shape: Any, dims: tuple[int, ...], size: int) -> Tensor:
    count = 1
    for d in dims:
        count *= x_shape[d]
    return index + (OPS["arange"].call(size) * count).reshape(size, *[1] * (index.ndim - 1))


def _later(dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(d + 1 for d in dims)


@_rule("gather._scatter")
def _scatter(op: Any, args: tuple, level: int, size: int) -> Any:
    x, d, index, src, *rest = args
    if not x.ndim:
        return None
    if not src.ndim and value_of(src, level)[1]:  # one number for each sample
        src = src.expand(index.shape)
    values = [materialize(t, level, size) for t in (x, index)]
    return op(values[0], d + 1, values[1], materialize(src, level, size) if src.ndim else src, *rest)


@_rule("picking.pick")
def _pick(op: Any, args: tuple, level: int, size: int) -> Any:
    x, index, dims, pos = args
    (xv, in_x), (iv, in_i) = value_of(x, level), value_of(index, level)
    if not in_i:
        return op(xv, iv, _later(dims), pos + 1)
    if not in_x:
        return op(xv, iv, dims, pos).movedim(pos, 0)
    return op(xv, _with_batch(iv, x.shape, dims, size), (0, *_later(dims)), pos).movedim(pos, 0)


@_rule("picking.zero_at")
def _zero_at(op: Any, args: tuple, level: int, size: int) -> Any:
    x, index, dims, pos = args
    iv, in_i = value_of(index, level)
    xv = materialize(x, level, size)
    if not in_i:
        return op(xv, iv, _later(dims), pos + 1)
    return op(xv, _with_batch(iv, x.shape, dims, size), (0, *_later(dims)), pos)


@_rule("picking.index_backward")
def _index_backward(op: Any, args: tuple, level: int, size: int) -> Any:
    g, index, shape, dims, pos = args
    iv, in_i = value_of(index, level)
    gv = materialize(g, level, size)
    if not in_i:
        return op(gv, iv, (size, *shape), _later(dims), pos + 1)
    return op(gv.movedim(0, pos), _with_batch(iv, shape, dims, size), (size, *shape), (0, *_later(dims)), pos)


@_rule("picking.index_put_op")
def _index_put(op: Any, args: tuple, level: int, size: int) -> Any:
    x, index, value, dims, pos, accumulate = args
    iv, in_i = value_of(index, level)
    xv = materialize(x, level, size)
    rest = [n for d, n in enumerate(x.shape) if d not in dims]
    wanted = [*rest[:pos], *index.shape, *rest[pos:]]
    v, in_v = value_of(value, level)
    if in_v:
        v = v.reshape(size, *[1] * (len(wanted) - value.ndim), *value.shape)
    v = v.expand(size, *wanted)
    if not in_i:
        return op(xv, iv, v, _later(dims), pos + 1, accumulate)
    return op(xv, _with_batch(iv, x.shape, dims, size), v.movedim(0, pos), (0, *_later(dims)), pos, accumulate)


@_rule("embedding._embedding")
def _embedding(op: Any, args: tuple, level: int, size: int) -> Any:
    weight, index, padding, by_frequency = args
    (w, in_w), (i, in_i) = value_of(weight, level), value_of(index, level)
    if by_frequency:
        return None
    if not in_w:
        return op(w, i, padding, by_frequency)
    if padding >= 0:
        return None
    i = i if in_i else i.unsqueeze(0).expand(size, *i.shape)
    return op(w.reshape(size * w.shape[1], w.shape[2]), _with_batch(i, weight.shape, (0,), size), padding, by_frequency)
