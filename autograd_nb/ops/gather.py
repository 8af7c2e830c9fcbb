"""Reading and writing at given indices along a dim, and under masks.

Source: https://docs.pytorch.org/docs/stable/torch.html#indexing-slicing-joining-mutating-ops
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import dtypes, launch
from ..launch import Kernel
from ..shapes import Layout, broadcast_shapes, coalesce, layout, numel, wrap_dim
from ..tensor import Tensor, make
from .assignment import _plain_number
from .cast import cast, clone, dense
from .create import new_full, scalar_tensor
from .inplace import in_place, write_inplace
from .parts import _slice
from .picking import checked_index, index_put_op, pick, quick_pick, write_at, zero_at
from .recording import store
from .recording import tensor_type as _tensor_type
from .registry import OPS, public
from .shape import expand, reshape
from .structured import Structured, structured, tensor_argument

_gather_kernel = Kernel("index", "gather")
_scatter_kernel = Kernel("index", "scatter")

SET, ADD, MUL, MAX, MIN = range(5)


def _stored(out: Tensor | None, y: Tensor, name: str, reads: tuple[Tensor, ...] = ()) -> Tensor:
    if out is None:
        return y
    if isinstance(out, Tensor) and out.dtype is not y.dtype:
        raise RuntimeError(f"{name}(): Expected out tensor to have dtype {y.dtype}, but got {out.dtype} instead")
    return store(out, y, name, reads)


def _index_argument(index: Any, name: str) -> Tensor:
    tensor_argument(index, name, "index")
    if index.dtype not in (dtypes.int64, dtypes.int32) and not (name == "gather" and index.dtype is dtypes.uint8):
        raise RuntimeError(f"{name}(): Expected dtype int32 or int64 for index (index.dtype={index.dtype})")
    return index


# -------------------------------------------------------------------------------------------- gather, scatter


def _geometry(lay: Layout, shape: Sequence[int], d: int) -> tuple | None:
    """The nine numbers of the kernels' ``dims`` for walking ``lay`` over the index's ``shape``, or None for too many loops."""
    b, (bs,) = coalesce(shape[:d], [lay.strides[:d]])
    a, (as_,) = coalesce(shape[d + 1 :], [lay.strides[d + 1 :]])
    if len(b) > 2 or len(a) > 2:
        return None
    tail = [0] * (2 - len(a)) + as_ if as_ else [0, 1]
    return (*[1] * (2 - len(b)), *b, *[1] * (2 - len(a)), *a, *[0] * (2 - len(b)), *bs, lay.strides[d], *tail)


def _narrowed(x: Tensor, shape: Sequence[int], d: int) -> Tensor:
    """``x`` cut to ``shape`` in all dims but ``d``."""
    for k, n in enumerate(shape):
        if k != d and x._layout.shape[k] != n:
            x = _slice(x, k, 0, n, 1)
    return x


@structured(x=lambda g, x_shape, d, index: _gather_backward(g, tuple(x_shape), d, index), node="GatherBackward0")
def _gather(x, d, index):
    shape = index._layout.shape
    lay = layout(shape, None, x._layout.dtype)
    out = launch.empty(lay.size, lay.dtype.carrier)
    if lay.size:
        loops = _geometry(x._layout, shape, d)
        if loops is None:
            x = clone(_narrowed(x, shape, d))
            loops = _geometry(x._layout, shape, d)
        _gather_kernel(lay.dtype.carrier, loops, shape[d], x._data, dense(index), out)
    return make(out, lay, [0, 0])


@structured(x=lambda g, d, index: _gather(g, d, index))
def _gather_backward(x, shape, d, index):
    z = new_full(shape, 0, x.dtype)
    _scatter_into(z, d, index, x, ADD)
    return z


def _scatter_into(x: Tensor, d: int, index: Tensor, src: Tensor, mode: int) -> None:
    """x[…, index, …] (op)= src in memory, without history; ``src`` has the index's shape or one element."""
    shape = index._layout.shape
    if not numel(shape):
        return
    if x.dtype is dtypes.float16 and mode != SET:
        wide = cast(x, dtypes.float32)
        _scatter_into(wide, d, index, cast(src, dtypes.float32), mode)
        x.copy_(wide)
        return
    if mode >= MAX and x.dtype.is_complex:
        raise NotImplementedError("scatter(): the largest and smallest of complex numbers are not defined (reduce amax, amin)")
    loops = _geometry(x._layout, shape, d)
    if loops is None:
        part = _narrowed(x, shape, d)
        copy = clone(part)
        _scatter_into(copy, d, index, src, mode)
        part.copy_(copy)
        return
    if src._layout.size == 1:
        strides = (0, 0, 0, 0, 0)
    else:
        _, n1, m0, m1 = loops[:4]
        row = m0 * m1
        strides = (shape[d] * row * n1, shape[d] * row, row, m1, 1)
    _scatter_kernel(x.dtype.carrier, loops + strides, mode, shape[d], dense(src), dense(index), x._data)


def _check_gather(x: Tensor, d: int, index: Tensor, name: str, source: Tensor | None = None) -> Tensor:
    """The index of a gather or scatter, checked against ``x`` (and the source's shape)."""
    if index.ndim != max(x.ndim, 1) and not (x.ndim == 0 and index.ndim == 0):
        raise RuntimeError(
            f"Index tensor must have the same number of dimensions as {'input' if name == 'gather' else 'self'} tensor "
            f"({name}: index {list(index.shape)}, input {list(x.shape)})"
        )
    for k, n in enumerate(index.shape):
        have = x.shape[k] if x.ndim else 1
        if n > have and k != d:
            if name == "gather":
                raise RuntimeError(
                    f"Size does not match at dimension {k} expected index {list(index.shape)} to be no larger than self "
                    f"{list(x.shape)} apart from dimension {d}"
                )
            raise RuntimeError(
                f"Expected index {list(index.shape)} to be no larger than self {list(x.shape)} apart from dimension {d}"
                + ("" if source is None else f" and to be no larger size than src {list(source.shape)}")
            )
    if source is not None:
        if source.ndim != index.ndim and not (source.ndim <= 1 and index.ndim <= 1):
            raise RuntimeError(
                f"Index tensor must have the same number of dimensions as src tensor ({name}: index {list(index.shape)}, src "
                f"{list(source.shape)})"
            )
        for k, n in enumerate(index.shape):
            if n > (source.shape[k] if source.ndim else 1):
                raise RuntimeError(
                    f"Expected index {list(index.shape)} to be no larger than self {list(x.shape)} apart from dimension {d} "
                    f"and to be no larger size than src {list(source.shape)}"
                )
    return checked_index(index, x.shape[d] if x.ndim else 1, d, negative=False, error=RuntimeError)


@public()
def gather(input, dim, index, *, sparse_grad=False, out=None):
    """y[i, j, k] = x[index[i, j, k], j, k] (for dim 0): one element for each index; the gradient is scattered back and added.

    ``index`` has as many dims as ``input`` and is nowhere larger, except along ``dim``.

    Errors: RuntimeError for other shapes and for indices out of range.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.gather.html
    """
    x = tensor_argument(input, "gather")
    d = wrap_dim(dim, x.ndim)
    index = _index_argument(index, "gather")
    if not index._layout.size:
        return _stored(out, (x.sum() * 0).expand(index.shape) if x._rg else new_full(index.shape, 0, x.dtype), "gather")
    index = _check_gather(x, d, index, "gather")
    if not x.ndim:
        y = reshape(_gather(reshape(x, 1), 0, reshape(index, 1)), index.shape)
    elif not index.ndim:
        y = reshape(_gather(x, d, reshape(index, 1)), ())
    else:
        y = _gather(x, d, index)
    return _stored(out, y, "gather", (x, index))


@structured(
    x=lambda g, d, index, mode: g if mode == ADD else _scatter(g, d, index, scalar_tensor(0, g.dtype), SET),
    src=lambda g, d, index, src_shape: _scatter_source(g, d, index, src_shape),
    node="ScatterBackward0",
)
def _scatter(x, d, index, src, mode):
    y = clone(x)
    _scatter_into(y, d, index, src, mode)
    return y


def _scatter_source(g: Tensor, d: int, index: Tensor, shape: Sequence[int]) -> Tensor:
    y = _gather(g, d, index)
    return y if tuple(y.shape) == tuple(shape) else y.sum().reshape(shape)


_scatter_add = structured(
    x=lambda g: g, src=lambda g, d, index, src_shape: _scatter_source(g, d, index, src_shape), node="ScatterAddBackward0"
)(_scatter.forward)


def _scatter_args(input: Any, dim: Any, index: Any, src: Any, name: str) -> tuple:
    """(x, dim, index, src) of a scatter, with at least one dim and ``src`` cut to the index's shape."""
    x = tensor_argument(input, name)
    d = wrap_dim(dim, x.ndim)
    index = _index_argument(index, name)
    if isinstance(src, Tensor):
        if src.dtype is not x.dtype:
            raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype (self {x.dtype}, src {src.dtype})")
        if index._layout.size:
            index = _check_gather(x, d, index, name, src)
            if not src.ndim:
                src = reshape(src, 1)
            if src.ndim != index.ndim:
                index = reshape(index, 1) if not index.ndim else index
            for k, n in enumerate(index.shape):
                if src.shape[k] != n:
                    src = _slice(src, k, 0, n, 1)
    else:
        number = _plain_number(src)
        if number is None:
            raise TypeError(f"{name}(): argument 'src' must be Tensor or a number, not {type(src).__name__}")
        src = new_full((), number, x.dtype)
        if index._layout.size:
            index = _check_gather(x, d, index, name)
    return x, d, index, src


def _scattered(op: Structured, x: Tensor, d: int, index: Tensor, src: Tensor, mode: int) -> Tensor:
    if not index._layout.size:
        return x.clone()
    if not x.ndim:
        return reshape(op(reshape(x, 1), 0, reshape(index, 1), src, mode), ())
    return op(x, d, index if index.ndim else reshape(index, 1), src, mode)


def _scattered_inplace(op: Structured, x: Tensor, d: int, index: Tensor, src: Tensor, mode: int) -> Tensor:
    if not index._layout.size:
        return x
    if not x.ndim:
        _scattered_inplace(op, reshape(x, 1), 0, reshape(index, 1), src, mode)
        return x
    return write_inplace(op, _scatter_into, x, d, index if index.ndim else reshape(index, 1), src, mode)


def _source(src: Any, value: Any, name: str) -> Any:
    if src is None and value is None:
        raise TypeError(f"{name}() missing 1 required argument: 'src' or 'value'")
    return src if src is not None else value


def _scatter_reduce_mode(reduce: str) -> str:
    if reduce not in ("add", "multiply"):
        raise RuntimeError(f"reduce argument must be either add or multiply. (reduce={reduce!r})")
    return {"add": "sum", "multiply": "prod"}[reduce]


def _with_reduce(name: str, input: Any, dim: Any, index: Any, src: Any, reduce: str) -> Tensor:
    x, d, index, src = _scatter_args(input, dim, index, src, name)
    if src._layout.size == 1 and src._layout.ndim == 0:
        src = expand(src, index.shape)
    return _reduced(x, d, index, src, _scatter_reduce_mode(reduce), True)


@public()
def scatter(input, dim, index, src=None, *, value=None, reduce=None, out=None):
    """y = x with y[index[i, j, k], j, k] = src[i, j, k] (for dim 0), ``src`` a tensor or a number; dsrc gathers, dx is 0 there.

    reduce: "add" or "multiply" to combine instead. Which of duplicate indices wins is the last.

    Errors: RuntimeError for shapes that do not fit, other dtypes, and indices out of range.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_.html
    """
    src = _source(src, value, "scatter")
    if reduce is not None:
        return _stored(out, _with_reduce("scatter", input, dim, index, src, reduce), "scatter")
    x, d, index, src = _scatter_args(input, dim, index, src, "scatter")
    return _stored(out, _scattered(_scatter, x, d, index, src, SET), "scatter")


@public(kind="inplace", namespaces=())
def scatter_(input, dim, index, src=None, *, value=None, reduce=None):
    """In-place version of `scatter`."""
    src = _source(src, value, "scatter_")
    if reduce is not None:
        return in_place("scatter_", lambda x: _with_reduce("scatter_", x, dim, index, src, reduce), input)
    return _scattered_inplace(_scatter, *_scatter_args(input, dim, index, src, "scatter_"), SET)


@public()
def scatter_add(input, dim, index, src, *, out=None):
    """y = x with src[i, j, k] added to y[index[i, j, k], j, k] (for dim 0); duplicates add up; dsrc gathers.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_add_.html
    """
    tensor_argument(src, "scatter_add", "src")
    return _stored(out, _scattered(_scatter_add, *_scatter_args(input, dim, index, src, "scatter_add"), ADD), "scatter_add")


@public(kind="inplace", namespaces=())
def scatter_add_(input, dim, index, src):
    """In-place version of `scatter_add`."""
    tensor_argument(src, "scatter_add_", "src")
    return _scattered_inplace(_scatter_add, *_scatter_args(input, dim, index, src, "scatter_add_"), ADD)


# --------------------------------------------------------------------------------------------- scatter_reduce

_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def _lowest(d: dtypes.dtype, highest: bool) -> Any:
    if d is dtypes.bool_:
        return highest
    if d.category == 1:
        return dtypes.iinfo(d).max if highest else dtypes.iinfo(d).min
    return float("inf") if highest else float("-inf")


def _reduced(x: Tensor, d: int, index: Tensor, src: Tensor, reduce: str, include_self: bool) -> Tensor:
    if not index._layout.size:
        return x.clone()
    if not x.ndim:
        return reshape(_reduced(reshape(x, 1), 0, reshape(index, 1), reshape(src, 1), reduce, include_self), ())
    if not index.ndim:
        index = reshape(index, 1)
    if reduce == "sum":
        if not include_self:
            x = _scatter(x, d, index, scalar_tensor(0, x.dtype), SET)
        return _scatter_add(x, d, index, src, ADD)
    if reduce == "mean":
        total = _reduced(x, d, index, src, "sum", include_self)
        count = new_full(x.shape, 1, x.dtype)
        if not include_self:
            count = _scatter(count, d, index, scalar_tensor(0, x.dtype), SET)
        count = _scatter_add(count, d, index, new_full((), 1, x.dtype), ADD)
        count = OPS["maximum"].call(count, new_full((), 1, x.dtype))
        return total / count if x.dtype.category > 1 else OPS["floor_divide"].call(total, count)
    return _fold(x, src, d, index, reduce, include_self)


def _fold_rule(g, x, src, d, index, out, reduce, include_self, needs):
    grads: dict = {}
    zero = scalar_tensor(0, g.dtype)
    one = scalar_tensor(1, g.dtype)
    where = OPS["where"].call
    if reduce == "prod":
        if "x" in needs:
            safe = where(x == 0, one, x)
            grads["x"] = g * _fold(safe, src, d, index, reduce, include_self) / safe
        if "src" in needs:
            is_zero = src == 0
            count = _scatter_add(new_full(x.shape, 0, x.dtype), d, index, cast(is_zero, x.dtype), ADD)
            single = is_zero & (_gather(count, d, index) == 1)
            rest = _fold(x, where(single, one, src), d, index, reduce, include_self)
            # apart from a zero of its own, an element's derivative is the product of the others
            others = _gather(g * out, d, index) / where(is_zero, one, src)
            grads["src"] = where(single, _gather(g * rest, d, index), others)
    else:
        chosen = cast(x == out, g.dtype)
        hit = cast(src == _gather(out, d, index), g.dtype)
        share = chosen if include_self else _scatter(chosen, d, index, zero, SET)
        share = g / OPS["maximum"].call(_scatter_add(share, d, index, hit, ADD), one)
        if "x" in needs:
            grads["x"] = chosen * share
        if "src" in needs:
            grads["src"] = hit * _gather(share, d, index)
    if "x" in grads and not include_self:
        grads["x"] = _scatter(grads["x"], d, index, zero, SET)
    return grads


@structured(_fold_rule, node="ScatterReduceBackward0")
def _fold(x, src, d, index, reduce, include_self):
    y = clone(x)
    if not include_self:
        start = 1 if reduce == "prod" else _lowest(x.dtype, reduce == "amin")
        _scatter_into(y, d, index, scalar_tensor(start, x.dtype), SET)
    _scatter_into(y, d, index, src, {"prod": MUL, "amax": MAX, "amin": MIN}[reduce])
    return y


@public()
def scatter_reduce(input, dim, index, src, reduce, *, include_self=True, out=None):
    """`scatter_add` with another way to combine: "sum", "prod", "mean", "amax" or "amin", whose ties share the gradient.

    include_self: whether the values of ``input`` take part where something is written.

    Errors: RuntimeError for an unknown reduction and as `scatter`.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.scatter_reduce.html
    """
    if reduce not in _REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}.")
    tensor_argument(src, "scatter_reduce", "src")
    y = _reduced(*_scatter_args(input, dim, index, src, "scatter_reduce"), reduce, bool(include_self))
    return _stored(out, y, "scatter_reduce")


@public(kind="inplace", namespaces=())
def scatter_reduce_(input, dim, index, src, reduce, *, include_self=True):
    """In-place version of `scatter_reduce`."""
    return in_place("scatter_reduce_", scatter_reduce, input, dim, index, src, reduce, include_self=include_self)


# ------------------------------------------------------------------------------------------- slices along a dim


def named(op: Structured, node: str) -> Structured:
    """The same op under another grad_fn."""
    twin = Structured(op.forward, {p: r for p, (r, _) in op.rules.items()}, None, False, node)
    return twin


_index_select = named(pick, "IndexSelectBackward0")
_index_add = named(index_put_op, "IndexAddBackward0")
_index_copy = named(index_put_op, "IndexCopyBackward0")
_index_fill = structured(
    x=lambda g, index, dims, pos: zero_at(g, index, dims, pos),
    # each place counts once, however often it was named
    value=lambda g, index, dims, pos: (g - zero_at(g, index, dims, pos)).sum(),
    node="IndexFillBackward0",
)(index_put_op.forward)
_take = named(pick, "TakeBackward0")
_put = named(index_put_op, "PutBackward0")


def _write_slices(x: Tensor, index: Tensor, value: Tensor, dims: tuple[int, ...], pos: int, accumulate: bool) -> None:
    write_at(x, value, index, dims, pos, ADD if accumulate else SET)


def _vector(index: Any, x: Tensor, d: int, name: str) -> Tensor:
    index = _index_argument(index, name)
    if index.ndim > 1:
        raise IndexError(f"{name}(): Index is supposed to be a vector (index.shape={list(index.shape)})")
    try:
        index = checked_index(index, x.shape[d] if x.ndim else 1, d, negative=False)
    except IndexError as e:
        raise IndexError(f"index out of range in self ({name}(): {e})") from None
    return index if index.ndim else reshape(index, 1)


@public()
def index_select(input, dim, index, *, out=None):
    """The slices of ``input`` along ``dim`` at the 1-d ``index``, copied; the gradient is added back slice by slice.

    Errors: IndexError for indices out of range. Source: https://docs.pytorch.org/docs/stable/generated/torch.index_select.html
    """
    x = tensor_argument(input, "index_select")
    lay = x._layout
    d = wrap_dim(dim, lay.ndim)
    if out is None and lay.ndim and isinstance(index, Tensor) and index._layout.ndim == 1:
        y = quick_pick(_index_select, (x, index, (d,), d), d)
        if y is not None:
            return y
    index = _vector(index, x, d, "index_select")
    y = _index_select(x, index, (d,), d) if x.ndim else reshape(_index_select(reshape(x, 1), index, (0,), 0), ())
    return _stored(out, y, "index_select", (x, index))


def _slices_args(input: Any, dim: Any, index: Any, source: Any, name: str) -> tuple[Tensor, int, Tensor, Tensor]:
    """(x, dim, index, source) of index_add and index_copy, checked."""
    x = tensor_argument(input, name)
    d = wrap_dim(dim, x.ndim)
    tensor_argument(source, name, "source")
    if source.dtype is not x.dtype:
        raise RuntimeError(f"{name}(): self ({x.dtype}) and source ({source.dtype}) expected to have the same dtype")
    index = _vector(index, x, d, name)
    n = index._layout.size
    if source.ndim == 0 and x.ndim <= 1:
        source = reshape(source, 1)
    if (source.shape[d] if source.ndim > d else 1) != n:
        raise (IndexError if "copy" in name else RuntimeError)(
            f"{name}(): Number of indices ({n}) should be equal to source.size(dim) ({list(source.shape)}, dim={d})"
        )
    wanted = [n if k == d else s for k, s in enumerate(x.shape or (1,))]
    if list(source.shape) != wanted:
        raise RuntimeError(
            f"{name}(): source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{list(x.shape)} source.shape = {list(source.shape)}"
        )
    return x, d, index, source


def _slices(op: Structured, x: Tensor, d: int, index: Tensor, source: Tensor, accumulate: bool) -> Tensor:
    if not x.ndim:
        return reshape(op(reshape(x, 1), index, source, (0,), 0, accumulate), ())
    return op(x, index, source, (d,), d, accumulate)


def _slices_inplace(op: Structured, x: Tensor, d: int, index: Tensor, source: Tensor, accumulate: bool) -> Tensor:
    if not x.ndim:
        _slices_inplace(op, reshape(x, 1), 0, index, source, accumulate)
        return x
    return write_inplace(op, _write_slices, x, index, source, (d,), d, accumulate)


def _scaled(source: Any, alpha: Any) -> Any:
    return source if alpha == 1 else source * alpha


@public()
def index_add(input, dim, index, source, *, alpha=1, out=None):
    """y = x with alpha·source[i] added to the slice y[index[i]] along ``dim``; duplicates add up; dsource = alpha·g[index]."""
    args = _slices_args(input, dim, index, _scaled(source, alpha), "index_add")
    return _stored(out, _slices(_index_add, *args, True), "index_add")


@public(kind="inplace", namespaces=())
def index_add_(input, dim, index, source, *, alpha=1):
    """In-place version of `index_add`."""
    return _slices_inplace(_index_add, *_slices_args(input, dim, index, _scaled(source, alpha), "index_add_"), True)


@public()
def index_copy(input, dim, index, source, *, out=None):
    """y = x with the slices y[index[i]] along ``dim`` replaced by source[i]."""
    return _stored(out, _slices(_index_copy, *_slices_args(input, dim, index, source, "index_copy"), False), "index_copy")


@public(kind="inplace", namespaces=())
def index_copy_(input, dim, index, source):
    """In-place version of `index_copy`."""
    return _slices_inplace(_index_copy, *_slices_args(input, dim, index, source, "index_copy_"), False)


def _fill_args(input: Any, dim: Any, index: Any, value: Any, name: str) -> tuple:
    x = tensor_argument(input, name)
    d = wrap_dim(dim, x.ndim)
    return x, d, _vector(index, x, d, name), _fill_value(x, value, name)


def _fill_value(x: Tensor, value: Any, name: str) -> Tensor:
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(
                f"{name}() only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
            )
        return cast(value, x.dtype)
    number = _plain_number(value)
    if number is None:
        raise TypeError(f"{name}(): argument 'value' must be Tensor or a number, not {type(value).__name__}")
    if isinstance(number, float) and x.dtype.category < 2 and not number.is_integer():
        number = int(number)
    return new_full((), number, x.dtype)


@public()
def index_fill(input, dim, index, value):
    """y = x with the slices y[index] along ``dim`` filled with a number or 0-d tensor."""
    return _slices(_index_fill, *_fill_args(input, dim, index, value, "index_fill"), False)


@public(kind="inplace", namespaces=())
def index_fill_(input, dim, index, value):
    """In-place version of `index_fill`."""
    return _slices_inplace(_index_fill, *_fill_args(input, dim, index, value, "index_fill_"), False)


@public()
def index_reduce(input, dim, index, source, reduce, *, include_self=True, out=None):
    """`index_add` with another way to combine: "prod", "mean", "amax" or "amin"."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    x, d, index, source = _slices_args(input, dim, index, source, "index_reduce")
    if not x.ndim:
        return _stored(out, reshape(_reduced(reshape(x, 1), 0, index, source, reduce, bool(include_self)), ()), "index_reduce")
    index = expand(reshape(index, [-1 if k == d else 1 for k in range(x.ndim)]), source.shape)
    return _stored(out, _reduced(x, d, index, source, reduce, bool(include_self)), "index_reduce")


@public(kind="inplace", namespaces=())
def index_reduce_(input, dim, index, source, reduce, *, include_self=True):
    """In-place version of `index_reduce`."""
    return in_place("index_reduce_", index_reduce, input, dim, index, source, reduce, include_self=include_self)


# ------------------------------------------------------------------------------------------- flat indices


def _flat_index(x: Tensor, index: Any, name: str) -> Tensor:
    tensor_argument(index, name, "index")
    if index.dtype is not dtypes.int64:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {_tensor_type(index.dtype)}")
    n = x._layout.size
    if not n and index._layout.size:
        raise IndexError(f"{name}(): tried to take from an empty tensor")
    try:
        return checked_index(index, n, 0)
    except IndexError as e:
        raise IndexError(f"{name}(): {str(e).replace('is out of bounds', 'out of range: out of bounds')}") from None


@public()
def take(input, index, *, out=None):
    """The elements at flat (C order) indices; y has the shape of ``index``. IndexError when out of range."""
    x = tensor_argument(input, "take")
    index = _flat_index(x, index, "take")
    return _stored(out, _take(reshape(x, -1), index, (0,), 0), "take", (x, index))


def _put_args(input: Any, index: Any, source: Any, name: str) -> tuple[Tensor, Tensor, Tensor]:
    x = tensor_argument(input, name)
    tensor_argument(source, name, "source")
    if source.dtype is not x.dtype:
        raise RuntimeError(
            f"{name}(): self and source expected to have the same dtype, but got self.dtype = {x.dtype} and source.dtype = "
            f"{source.dtype}"
        )
    index = _flat_index(x, index, name)
    if index._layout.size != source._layout.size:
        raise RuntimeError(
            f"{name}(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source._layout.size}, index.numel() = {index._layout.size}"
        )
    return x, reshape(index, -1), reshape(source, -1)


@public()
def put(input, index, source, accumulate=False):
    """y = x with the elements at flat indices replaced by (or with ``accumulate`` added to) ``source``."""
    x, index, source = _put_args(input, index, source, "put")
    return reshape(_put(reshape(x, -1), index, source, (0,), 0, bool(accumulate)), x.shape)


@public(kind="inplace", namespaces=())
def put_(input, index, source, accumulate=False):
    """In-place version of `put`."""
    x, index, source = _put_args(input, index, source, "put_")
    if not x._layout.contiguous:
        return in_place("put_", put, x, index, source, accumulate)
    write_inplace(_put, _write_slices, x.view(-1), index, source, (0,), 0, bool(accumulate))
    return x


@public()
def take_along_dim(input, indices, dim=None, *, out=None):
    """`gather` that broadcasts input and indices over the other dims; without ``dim``, on the flattened tensors."""
    x = tensor_argument(input, "take_along_dim")
    tensor_argument(indices, "take_along_dim", "indices")
    if indices.dtype is not dtypes.int64:
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {_tensor_type(indices.dtype)}")
    if dim is None:
        return gather(reshape(x, -1), 0, reshape(indices, -1), out=out)
    if x.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{x.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    d = wrap_dim(dim, x.ndim)
    a = [1 if k == d else n for k, n in enumerate(x.shape)]
    b = [1 if k == d else n for k, n in enumerate(indices.shape)]
    common = list(broadcast_shapes(a, b))
    if x.ndim:
        x = expand(x, [x.shape[d] if k == d else n for k, n in enumerate(common)])
        indices = expand(indices, [indices.shape[d] if k == d else n for k, n in enumerate(common)])
    return gather(x, d, checked_index(indices, x.shape[d] if x.ndim else 1, d, error=RuntimeError), out=out)
