"""Reading and writing along a dim, each element at an index of its own.

Source: https://docs.pytorch.org/docs/stable/torch.html#indexing-slicing-joining-mutating-ops
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes, launch
from ...codegen import threads
from ...graph.node import tensor_lines
from ...shapes import Layout, is_expanded, layout_of, overlaps_itself, wrap_dim
from ...tensor import Tensor, make
from ..core.call_path import known, recorded_lines, unrecorded_lines
from ..core.history import check_inplace
from ..core.inplace import in_place, write_inplace
from ..core.numbers import number_as, plain_number, scalar_tensor, text_argument
from ..core.recording import exact_text, fresh, guarded, no_complex_derivative, not_for_limited, refuse_overlap, store
from ..core.registry import OPS, public
from ..core.structured import Structured, structured, tensor_argument
from ..creation.cast import cast, clone, contiguous
from ..creation.create import new_full
from ..shape.parts import _slice
from ..shape.shape import expand, reshape
from .along_index import (
    ADD,
    GATHER_WITHIN,
    MAX,
    MIN,
    MUL,
    SET,
    GatheredWithin,
    gather_into,
    geometry,
    index_steps,
    scatter_into,
)
from .picking import checked_index, once


def _stored(out: Tensor | None, y: Tensor, name: str, reads: tuple[Any, ...] = (), operands: tuple[Any, ...] = ()) -> Tensor:
    if out is None:
        return fresh(y)
    if isinstance(out, Tensor) and out.dtype is not y.dtype:
        raise RuntimeError(exact_text(name, out.dtype, y.dtype))
    return store(out, y, name, reads, operands)


def _index_argument(index: Any, name: str) -> Tensor:
    tensor_argument(index, name, "index")
    if index.dtype not in (dtypes.int64, dtypes.int32) and not (name == "gather" and index.dtype is dtypes.uint8):
        kind = IndexError if name.startswith("index_fill") else RuntimeError
        raise kind(f"{name}(): Expected dtype int32 or int64 for index (index.dtype={index.dtype})")
    return index


# -------------------------------------------------------------------------------------------- gather, scatter


@structured(
    x=lambda g, x_shape, d, index: _gather_backward(g, tuple(x_shape), d, index), node="GatherBackward0",
    linear="jointly", batch="shift",
    samples="x(3, 4).gather(0, index(3, 2, 4))",
)
def _gather(x, d, index):
    shape = index._layout.shape
    layout = layout_of(shape, None, x._layout.dtype)
    out = launch.empty(layout.size, layout.dtype.carrier)
    if layout.size:
        gather_into(out, x, d, index)
    return make(out, layout, [0, 0])


@structured(x=lambda g, d, index: _gather(g, d, index), linear="jointly", batch="shift")
def _gather_backward(x, shape, d, index):
    z = new_full(shape, 0, x.dtype)
    if index._layout.size:
        scatter_into(z, d, index, x, ADD)
    return z


def _check_gather(x: Tensor, d: int, index: Tensor, name: str, source: Tensor | None = None) -> Tensor:
    """Return the index of a gather or scatter, checked against ``x`` (and the source's shape)."""
    if max(index.ndim, 1) != max(x.ndim, 1):
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
            # PyTorch compares the sizes first, until one is too large or the source has no more dims
            short = 0 < source.ndim < index.ndim and all(n <= have for n, have in zip(index.shape, source.shape, strict=False))
            raise (IndexError if short else RuntimeError)(
                f"{f'Dimension out of range (expected to be in range of [-{source.ndim}, {source.ndim - 1}]). ' if short else ''}"
                f"Index tensor must have the same number of dimensions as src tensor ({name}: index {list(index.shape)}, src "
                f"{list(source.shape)})"
            )
        for k, n in enumerate(index.shape or (1,)):
            if n > (source.shape[k] if source.ndim else 1):
                raise RuntimeError(
                    f"Expected index {list(index.shape)} to be no larger than self {list(x.shape)} apart from dimension {d} "
                    f"and to be no larger size than src {list(source.shape)}"
                )
    return checked_index(index, x.shape[d] if x.ndim else 1, d, negative=False, error=RuntimeError)


class _GatherPlan:
    """A call of `gather` that one kernel checks and does."""

    __slots__ = ("carrier", "d", "entry", "indices", "layout", "numbers", "size")

    def __init__(self, entry: Any, numbers: tuple[Any, ...], layout: Layout, d: int, indices: int):
        self.entry, self.numbers, self.layout, self.d, self.indices = entry, numbers, layout, d, indices
        self.size, self.carrier = layout.size, layout.dtype.carrier


def _plan_gather(checked: bool, input: Any, dim: Any, index: Any) -> _GatherPlan | None:
    """Return the plan of calls like one that went through, with an index in C order that may be expanded."""
    layout, at = input._layout, index._layout
    single = once(at)
    if not checked or dim.__class__ is not int or at.dtype is not dtypes.int64 or not single.contiguous or not at.size:
        return None
    d, out = dim % max(layout.ndim, 1), layout_of(at.shape, None, layout.dtype)
    if not layout.ndim or not at.ndim or (loops := geometry(layout, at.shape, d)) is None or (steps := index_steps(at, d)) is None:
        return None
    n = layout.sizes[d]
    entry: Any = GATHER_WITHIN.entry(out.dtype.carrier, loops, (0, 0, 0), at.sizes[d], n, input._data, index._data, index._data, input._data)
    if entry is not None and not threads.alone(threads.PICKED * at.size):
        entry = GatheredWithin(entry)
    return _GatherPlan(entry, (loops, steps, at.sizes[d], n), out, d, single.size)


_GATHER = [
    "at = index._data",
    "if at.size != plan.indices:",  # memory may go on behind them
    "    at = at[: plan.indices]",
    "data = _allocate(plan.size, plan.carrier)",
    "try:",
    "    plan.entry(*plan.numbers, input._data, at, at, data)",
    "except IndexError:",
    "    return _long(input, dim, index)",
    *tensor_lines("plan.layout"),
    *unrecorded_lines(),
    *recorded_lines(["input"], "input, plan.d, index"),
    "    _guarded(t, input, index)",
    "return t",
]


def _refused(input: Tensor, dim: int, index: Tensor) -> Any:
    """Say which index is out of range."""
    return checked_index(index, input._layout.sizes[dim], dim % input.ndim, negative=False, error=RuntimeError)


@public()
@known(
    "input._layout, dim, dim.__class__, index._layout", _plan_gather, _GATHER, takes=("input", "dim", "index"), _op=_gather, _long=_refused,
    _guarded=guarded,
)  # fmt: skip
def gather(input, dim, index, *, sparse_grad=False, out=None):
    """y[i, j, k] = x[index[i, j, k], j, k] (for dim 0): one element for each index; the gradient is scattered back and added.

    ``index`` has as many dims as ``input`` and is nowhere larger, except along ``dim``.

    Errors: RuntimeError for other shapes and for indices out of range.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.gather.html

    >>> torch.gather(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, torch.tensor([[1], [0]]))
    tensor([[2.],
            [3.]])
    """
    x = tensor_argument(input, "gather")
    not_for_limited("scatter_gather_tensor_cpu", x.dtype)
    d = wrap_dim(dim, x.ndim)
    given = tensor_argument(index, "gather", "index")
    if given._layout.size:
        if given.dtype not in (dtypes.int64, dtypes.int32):
            raise RuntimeError(f"gather(): Expected dtype int32/int64 for index (index.dtype={given.dtype})")
        index = _index_argument(given, "gather")
    else:
        y = _gather(x, d, given.detach().to(dtypes.int64))
        return _stored(out, guarded(y, input, given), "gather")
    index = _check_gather(x, d, index, "gather")
    if not x.ndim:
        y = reshape(_gather(reshape(x, 1), 0, index if index.ndim else reshape(index, 1)), index.shape)
    elif not index.ndim:
        y = reshape(_gather(x, d, reshape(index, 1)), ())
    else:
        y = _gather(x, d, index)
    return _stored(out, guarded(y, input, given), "gather", (x,), (index,))


@structured(
    x=lambda g, d, index, mode: g if mode == ADD else _scatter(g, d, index, scalar_tensor(0, g.dtype), SET),
    src=lambda g, d, index, src_shape: _scatter_source(g, d, index, src_shape),
    node="ScatterBackward0",
    linear="no",
    samples="x(3, 4).scatter(0, mask(1, 4).long(), x(1, 4))",
)
def _scatter(x, d, index, src, mode):
    y = clone(x)
    scatter_into(y, d, index, src, mode)
    return y


@_scatter.batched
def _scatter_of_batch(op, args, batch):
    x, d, index, src, *rest = args
    if not x.ndim:
        return None
    if not src.ndim and batch.of(src)[1]:  # one number for each sample
        src = src.expand(index.shape)
    return op(batch.whole(x), d + 1, batch.whole(index), batch.whole(src) if src.ndim else src, *rest)


def _scatter_source(g: Tensor, d: int, index: Tensor, shape: Sequence[int]) -> Tensor:
    y = _gather(g, d, index)
    return y if tuple(y.shape) == tuple(shape) else y.sum().expand(shape)  # a number, or nothing


_scatter_add = _scatter.variant(
    "ScatterAddBackward0", x=lambda g: g, src=lambda g, d, index, src_shape: _scatter_source(g, d, index, src_shape)
)


def _scatter_args(input: Any, dim: Any, index: Any, src: Any, name: str) -> tuple[Tensor, int, Tensor, Any]:
    """Return (x, dim, index, src) of a scatter, with at least one dim and ``src`` cut to the index's shape."""
    x = tensor_argument(input, name)
    if name[-1] == "_":
        check_inplace(x, src)
    d = wrap_dim(dim, x.ndim)
    if name[-1] == "_":
        refuse_overlap(x, (index, src), True)
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
        number = plain_number(src)
        if number is None:
            raise TypeError(f"{name}(): argument 'src' must be Tensor or a number, not {type(src).__name__}")
        src = new_full((), number_as(number, x.dtype, name), x.dtype)
        if index._layout.size:
            index = _check_gather(x, d, index, name)
    return x, d, index, src


def _with_history(y: Tensor, src: Tensor) -> Tensor:
    """Return ``y``, into which nothing of ``src`` was written: it requires grad if ``src`` does, which then gets zeros."""
    return y + (src.sum() * 0).to(y.dtype) if src.requires_grad else y


def _plain_clone(x: Tensor) -> Tensor:
    """Return a copy in C order, which is that of what is scattered into."""
    return x.clone() if x._layout.contiguous else contiguous(x)


def _scattered(op: Structured, x: Tensor, d: int, index: Tensor, src: Tensor, mode: int) -> Tensor:
    if not index._layout.size:
        return _with_history(_plain_clone(x), src)
    if not x.ndim:
        return reshape(op(reshape(x, 1), 0, index if index.ndim else reshape(index, 1), src, mode), ())
    return op(x, d, index if index.ndim else reshape(index, 1), src, mode)


def _scattered_inplace(
    op: Structured, x: Tensor, d: int, index: Tensor, src: Tensor, mode: int, kept: Sequence[Any]
) -> Tensor:
    if not index._layout.size and index.ndim != x.ndim:  # writes nothing, and says so to what requires grad
        index = reshape(index, (0,) * max(x.ndim, 1))
    if not x.ndim:
        _scattered_inplace(op, reshape(x, 1), 0, index if index.ndim else reshape(index, 1), src, mode, kept)
        return x
    return write_inplace(op, scatter_into, x, d, index if index.ndim else reshape(index, 1), src, mode, kept=kept)


def is_windows(x: Tensor) -> bool:
    """Return whether elements share memory and may be written to all the same: each write must be seen by the next."""
    return overlaps_itself(x._layout) and not is_expanded(x._layout)


def memory_of(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the memory of windows, a vector that is a view of ``x``, and the place of each element in it."""
    layout = x._layout
    places = OPS["arange"].call(layout.extent)
    return OPS["as_strided"].call(x, (layout.extent,), (1,)), OPS["as_strided"].call(places, layout.shape, layout.strides)


def _reduced_windows(name: str, x: Tensor, d: int, index: Tensor, src: Tensor, reduce: str, include_self: bool) -> Tensor:
    """Return `_reduced` in place, of windows."""
    memory, places = memory_of(x)
    at = reshape(gather(places, d, index), -1)
    values = reshape(expand(src, index.shape) if not src.ndim else src[tuple(slice(n) for n in index.shape)], -1)
    in_place(name, _reduced, memory, 0, at, values.clone(), reduce, include_self)
    return x


def _source(src: Any, value: Any, name: str) -> Any:
    if src is None and value is None:
        raise TypeError(f"{name}() missing 1 required argument: 'src' or 'value'")
    return src if src is not None else value


def _scatter_reduce_mode(reduce: str) -> str:
    if text_argument(reduce, "scatter", "reduce") not in ("add", "multiply"):
        raise RuntimeError(f"reduce argument must be either add or multiply. (reduce={reduce!r})")
    return {"add": "sum", "multiply": "prod"}[reduce]


def _with_reduce(name: str, input: Any, dim: Any, index: Any, src: Any, reduce: str) -> Tensor:
    x, d, index, src = _scatter_args(input, dim, index, src, name)
    if src._layout.size == 1 and src._layout.ndim == 0:
        src = expand(src, index.shape)
    return _combined(x, d, index, src, _scatter_reduce_mode(reduce))


def _underived(g):
    raise RuntimeError("derivative for aten::scatter is not implemented (with reduce=; use scatter_reduce() or scatter_add())")


@structured(
    x=_underived, src=_underived, node="NotImplemented", linear="no",
    samples='x(3, 4).scatter(0, mask(1, 4).long(), x(1, 4), reduce="multiply")',
)
def _combined(x, d, index, src, reduce):
    return _reduced(x, d, index, src, reduce, True)


@_combined.batched
def _combined_of_batch(op, args, batch):
    x, d, index, src, reduce = args
    return op(batch.whole(x), d + 1, batch.whole(index), batch.whole(src), reduce) if x.ndim else None


@public()
def scatter(input, dim, index, src: Tensor | float | None = None, *, value=None, reduce: str | None = None, out=None):
    """y = x with y[index[i, j, k], j, k] = src[i, j, k] (for dim 0), ``src`` a tensor or a number; dsrc gathers, dx is 0 there.

    reduce: "add" or "multiply" to combine instead. Which of duplicate indices wins is the last.

    Errors: RuntimeError for shapes that do not fit, other dtypes, and indices out of range.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_.html

    >>> torch.scatter(torch.zeros(3), 0, torch.tensor([2, 0]), torch.tensor([5.0, 6.0]))
    tensor([6., 0., 5.])
    """
    src = _source(src, value, "scatter")
    if reduce is not None:
        return _stored(out, _with_reduce("scatter", input, dim, index, src, reduce), "scatter", (index, src), (input,))
    given = index
    args = _scatter_args(input, dim, index, src, "scatter")
    return _stored(out, guarded(_scattered(_scatter, *args, SET), given), "scatter", (index, src), (input,))


@public(kind="inplace", namespaces=())
def scatter_(input, dim, index, src: Tensor | float | None = None, *, value=None, reduce: str | None = None):
    """Compute `scatter` in place and return the tensor."""
    src = _source(src, value, "scatter_")
    if reduce is not None:
        if is_windows(tensor_argument(input, "scatter_")):
            return _reduced_windows("scatter_", *_scatter_args(input, dim, index, src, "scatter_"), _scatter_reduce_mode(reduce), True)
        refuse_overlap(input, (index, src), True)
        return in_place("scatter_", lambda x: _with_reduce("scatter_", x, dim, index, src, reduce), input)
    return _scattered_inplace(_scatter, *_scatter_args(input, dim, index, src, "scatter_"), SET, (index,))


@public()
def scatter_add(input, dim, index, src, *, out=None):
    """y = x with src[i, j, k] added to y[index[i, j, k], j, k] (for dim 0); duplicates add up; dsrc gathers.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_add_.html

    >>> torch.zeros(3).scatter_add(0, torch.tensor([0, 2, 0]), torch.ones(3))
    tensor([2., 0., 1.])
    """
    tensor_argument(src, "scatter_add", "src")
    y = _scattered(_scatter_add, *_scatter_args(input, dim, index, src, "scatter_add"), ADD)
    return _stored(out, guarded(y, index) if src.requires_grad else y, "scatter_add", (index, src), (input,))


@public(kind="inplace", namespaces=())
def scatter_add_(input, dim, index, src):
    """Compute `scatter_add` in place and return the tensor."""
    tensor_argument(src, "scatter_add_", "src")
    kept = (index,) if src.requires_grad else ()
    return _scattered_inplace(_scatter_add, *_scatter_args(input, dim, index, src, "scatter_add_"), ADD, kept)


# --------------------------------------------------------------------------------------------- scatter_reduce

_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def _lowest(d: dtypes.dtype, highest: bool) -> Any:
    if d is dtypes.bool_:
        return highest
    if d.category == 1:
        return dtypes.iinfo(d).max if highest else dtypes.iinfo(d).min
    return float("inf") if highest else float("-inf")


def _count(x: Tensor, d: int, index: Tensor, include_self: bool) -> Tensor:
    """Return how many numbers go to each place of ``x``; where an index says the same along a dim, as one line for all."""
    steps = index._layout.strides
    same = [k for k, n in enumerate(index.shape) if k != d and n > 1 and n == x.shape[k] and not steps[k]]
    if same:
        index = index[tuple([slice(0, 1) if k in same else slice(None) for k in range(index.ndim)])]
    count = new_full([1 if k in same else n for k, n in enumerate(x.shape)], 1, x.dtype)
    if not include_self:
        count = _scatter(count, d, index, scalar_tensor(0, x.dtype), SET)
    return _scatter_add(count, d, index, new_full((), 1, x.dtype), ADD)


def _reduced(x: Tensor, d: int, index: Tensor, src: Tensor, reduce: str, include_self: bool) -> Tensor:
    if not index._layout.size:
        return _with_history(_plain_clone(x), src)
    if not x.ndim:
        return reshape(_reduced(reshape(x, 1), 0, index, src, reduce, include_self), ())
    if not index.ndim:
        index, src = reshape(index, 1), reshape(src, 1)
    if reduce == "sum":
        if not include_self:
            x = _scatter(x, d, index, scalar_tensor(0, x.dtype), SET)
        return _scatter_add(x, d, index, src, ADD)
    if reduce == "mean":
        total = _reduced(x, d, index, src, "sum", include_self)
        count = _count(x, d, index, include_self)
        one = new_full((), 1, x.dtype)
        count = OPS["where"].call(count == 0, one, count) if x.dtype.is_complex else OPS["maximum"].call(count, one)
        return total / count if x.dtype.category > 1 else OPS["floor_divide"].call(total, count)
    return _fold(x, src, d, index, reduce, include_self)


def _factor_rule(g, x, src, d, index, out, include_self):
    """Return the gradient of the factors ``src`` of products: of each the product of the others.

    That is the whole divided by it, but for zeros: those are left out of the product, and of two in one place each is the other's
    factor, so that second derivatives are right as well.
    """
    where, one, none = OPS["where"].call, scalar_tensor(1, g.dtype), new_full(x.shape, 0, x.dtype)
    is_zero = src == 0
    count = _gather(_scatter_add(none, d, index, cast(is_zero, x.dtype), ADD), d, index)
    nonzero = where(is_zero, one, src)
    zeros = _scatter_add(none, d, index, where(is_zero, src, scalar_tensor(0, g.dtype)), ADD)
    rest = _gather(g * _fold(x, nonzero, d, index, "prod", include_self), d, index)
    of_two = where(is_zero & (count == 2), rest * (_gather(zeros, d, index) - src), _gather(g * out, d, index) / nonzero)
    return where(is_zero & (count == 1), rest, of_two)


def _fold_rule(g, x, src, d, index, out, reduce, include_self, needs):
    grads: dict[Any, Any] = {}
    zero = scalar_tensor(0, g.dtype)
    one = scalar_tensor(1, g.dtype)
    where = OPS["where"].call
    if reduce == "prod":
        if "x" in needs:
            safe = where(x == 0, one, x)
            grads["x"] = g * _fold(safe, src, d, index, reduce, include_self) / safe
        if "src" in needs:
            grads["src"] = _factor_rule(g, x, src, d, index, out, include_self)
    else:
        chosen = cast(x == out, g.dtype)
        hit = cast(src == _gather(out, d, index), g.dtype)
        share = chosen if include_self else _scatter(chosen, d, index, zero, SET)
        share = g / _scatter_add(share, d, index, hit, ADD)  # (by 0 where the values were exchanged since, as PyTorch's)
        if "x" in needs:
            grads["x"] = chosen * share
        if "src" in needs:
            grads["src"] = hit * _gather(share, d, index)
    if "x" in grads and not include_self:
        grads["x"] = _scatter(grads["x"], d, index, zero, SET)
    return grads


@structured(
    _fold_rule, node="ScatterReduceBackward0", linear="no", batch="shift",
    dtypes="half float integer bool", samples='x(3, 4).scatter_reduce(0, index(3, 2, 4), x(2, 4), "amax")',
)
def _fold(x, src, d, index, reduce, include_self):
    y = clone(x)
    if not include_self:
        start = 1 if reduce == "prod" else _lowest(x.dtype, reduce == "amin")
        scatter_into(y, d, index, scalar_tensor(start, x.dtype), SET)
    scatter_into(y, d, index, src, {"prod": MUL, "amax": MAX, "amin": MIN}[reduce])
    return y


@public()
def scatter_reduce(input, dim, index, src, reduce: str, *, include_self=True, out=None):
    """Return `scatter_add` with another way to combine: "sum", "prod", "mean", "amax" or "amin", whose ties share the gradient.

    include_self: whether the values of ``input`` take part where something is written.

    Errors: RuntimeError for an unknown reduction and as `scatter`.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.scatter_reduce.html

    >>> torch.scatter_reduce(torch.ones(2), 0, torch.tensor([0, 0, 1]), torch.tensor([2.0, 3.0, 4.0]), "prod")
    tensor([6., 4.])
    """
    if text_argument(reduce, "scatter_reduce", "reduce") not in _REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}.")
    tensor_argument(src, "scatter_reduce", "src")
    y = _scatter_reduce(input, dim, index, src, reduce, include_self)
    no_complex_derivative("scatter_reduce", input, src)
    return _stored(out, y, "scatter_reduce", (index, src), (input,))


def _scatter_reduce(input: Any, dim: Any, index: Any, src: Any, reduce: str, include_self: Any) -> Tensor:
    y = _reduced(*_scatter_args(input, dim, index, src, "scatter_reduce"), reduce, bool(include_self))
    return guarded(y, input, index, src, y)  # type: ignore[no-any-return]


@public(kind="inplace", namespaces=())
def scatter_reduce_(input, dim, index, src, reduce: str, *, include_self=True):
    """Compute `scatter_reduce` in place and return the tensor."""
    if reduce in _REDUCTIONS and reduce != "mean" and is_windows(tensor_argument(input, "scatter_reduce_")):
        tensor_argument(src, "scatter_reduce_", "src")
        return _reduced_windows("scatter_reduce_", *_scatter_args(input, dim, index, src, "scatter_reduce_"), reduce, bool(include_self))
    if text_argument(reduce, "scatter_reduce", "reduce") not in _REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}.")
    tensor_argument(src, "scatter_reduce_", "src")
    return in_place("scatter_reduce_", _scatter_reduce, input, dim, index, src, reduce, include_self)
