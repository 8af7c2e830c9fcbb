"""Sorting, selecting and searching. NaN counts as the greatest value, as in PyTorch; sorts are stable.

Every op finds places (indices) by a kernel on keys, and takes the values from there, so gradients are gathers and scatters.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes, launch, return_types
from ...codegen import threads
from ...codegen.build import compilation
from ...graph.modes import state
from ...launch import Kernel
from ...overriding import overridable
from ...shapes import Layout, as_int, layout_of, numel, wrap_dim
from ...tensor import Tensor, make
from ..core.call_path import known
from ..core.numbers import bool_argument
from ..core.recording import (
    fresh,
    guarded,
    mark_inference,
    no_complex_derivative,
    not_for_barebone,
    not_for_complex,
    scalar_type,
    store,
    store_each,
    underived,
)
from ..core.registry import OPS, public
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, clone, dense, in_memory_order, in_order_again
from ..creation.create import new_empty, new_full
from ..shape.shape import _transpose, reshape
from .gather import _gather, _gather_backward
from .take_along import TAKE, take_along

_keys = Kernel("indexing.sort", "keys")
_argsort = Kernel("indexing.sort", "argsort")
_argsort_together = Kernel("indexing.sort", "argsort_together")
_kth = Kernel("indexing.sort", "kth")
_top = Kernel("indexing.select", "topk")
_middle = Kernel("indexing.select", "median")
_runs = Kernel("indexing.sort", "runs", outputs=4)
_sort_rows = Kernel("indexing.sort", "sort_rows", outputs=2)

_INT = np.dtype(np.int64)
_KEY = np.dtype(np.uint64)
_BOUNDS = 3 * 128  #: scratch for the parts of rows that are still to be sorted
_SHORT = 200  #: rows up to this long are sorted side by side, eight of them
_INFINITY = {"float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F800000, "float64": 0x7FF0000000000000}


def _bits(d: dtypes.dtype) -> int:
    return d.itemsize * 8


def _bits_of_nan(d: dtypes.dtype) -> int:
    """Return how many ones the keys of nan have; 0 where there is none."""
    return _bits(d) if d.is_floating_point else 0


def _ordered(d: dtypes.dtype, name: str) -> None:
    """Refuse complex numbers, which have no order."""
    if d.is_complex:
        kind = scalar_type(d)
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{kind}': {name} does not support complex dtypes, which have no order")


def _no_bools(d: dtypes.dtype, name: str) -> None:
    """Refuse bool, as PyTorch does where one of the values is chosen."""
    if d is dtypes.bool_:
        if name == "topk":
            raise RuntimeError("topk does not support bool dtypes on CPU")
        raise NotImplementedError(f"\"{name}\" not implemented for 'Bool'")


def _sort_keys(flat: np.ndarray, d: dtypes.dtype, flip: bool) -> np.ndarray:
    """Return uint64 keys that sort as the elements do, or the other way round."""
    _ordered(d, "sorting")
    out = launch.empty(flat.size, _KEY)
    args = (flat.view(f"u{d.itemsize}"), *_key_numbers(d), flip, out)
    if threads.alone(threads.COPIED * flat.size):
        _keys(d.itemsize, *args)
    else:
        _keys.split(d.itemsize, args, _key_parts)
    return out


def _key_parts(args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    bits, *numbers, out = args
    return [(bits[i:j], *numbers, out[i:j]) for i, j in threads.pieces(out.size, threads.COPIED * out.size, threads.ALIGN)]


def _key_numbers(d: dtypes.dtype) -> tuple[int, int, int]:
    return 2 if d.is_floating_point else int(d.is_signed), _bits(d), _INFINITY.get(d.name, 0)


def _find(kernel: Kernel, key: np.ndarray, n: int, *more: Any) -> None:
    """Run a kernel that writes places in each row of ``n`` keys into its last argument."""
    if threads.alone(FOUND * key.size) or key.size == n:
        kernel(0, key, n, *more)
    else:
        kernel.split(0, (key, n, *more), _find_parts)


def _find_parts(args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    key, n, *numbers, out = args
    rows = key.size // n
    k = out.size // rows
    # eight rows may be sorted side by side
    return [(key[i * n : j * n], n, *numbers, out[i * k : j * k]) for i, j in threads.pieces(rows, FOUND * key.size, 8)]


FOUND = 16  #: what the place of an element costs, see `threads.WORTH`


def _rows(x: Tensor, d: int) -> tuple[Tensor, int]:
    """Return ``x`` with dim ``d`` last, and its size."""
    last = x.ndim - 1
    return (x if d == last else clone(_transpose(x, d, last))), x.shape[d]


def _back(t: Tensor, d: int) -> Tensor:
    """Return a result whose last dim belongs at ``d``."""
    last = t.ndim - 1
    return t if d == last else clone(_transpose(t, d, last))


def _ordering(layout: Layout) -> tuple[Kernel, tuple[int, ...]]:
    """Return the kernel that orders the rows of a layout, and its numbers."""
    n, bits = layout.shape[-1], _bits(layout.dtype)
    rows = layout.size // n
    if bits <= 32 and n <= _SHORT and (rows >= 24 or not rows % 8):  # what is computed for nothing is a fourth at most
        return _argsort_together, (n,)
    return _argsort, (n, bits)


@overridable
def order_of(x: Tensor, d: int, descending: bool) -> Tensor:
    """Return the stable order of the elements along ``d``, int64."""
    x, order = in_memory_order(x)
    d = d if order is None else order.index(d)
    rows, _ = _rows(x, d)
    out = new_empty(rows.shape, dtypes.int64)
    if out._layout.size:
        find, numbers = _ordering(rows._layout)
        _find(find, _sort_keys(dense(rows), x.dtype, descending), *numbers, out._data)
    return in_order_again(_back(out, d), order)


def _picked_rule(g: Any, x_shape: Any, d: int, out1: Any) -> Any:
    return None if g[0] is None else _gather_backward(g[0], tuple(x_shape), d, out1)


@structured(
    x=_picked_rule, node="SortBackward0", linear="no", batch="shift",
    dtypes="half float integer bool", samples="x(3, 4).sort(1).values",
)
def _sort(x, d, descending):
    y, order = in_memory_order(x)
    along = d if order is None else order.index(d)
    index = order_of(y, along, descending)
    return [in_order_again(take_along(y, index, along), order), in_order_again(index, order)]


@structured(
    x=_picked_rule, node="TopkBackward0", linear="no", batch="shift",
    dtypes="half float integer", samples="x(3, 4).topk(2, 1).values",
)
def _topk(x, d, k, largest, ordered):
    rows, n = _rows(x, d)
    index = new_empty([*rows.shape[:-1], k], dtypes.int64)
    if index._layout.size:
        args = (dense(rows).view(f"u{x.dtype.itemsize}"), *_key_numbers(x.dtype), largest, n, k, ordered, index._data)
        if threads.alone(FOUND * rows._layout.size) or rows._layout.size == n:
            _top(x.dtype.itemsize, *args)
        else:
            _top.split(x.dtype.itemsize, args, _top_parts)
    return [_back(take_along(rows, index, x.ndim - 1), d), _back(index, d)]


def _top_parts(args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    bits, *numbers, n, k, ordered, out = args
    rows = threads.pieces(out.size // k, FOUND * bits.size)
    return [(bits[i * n : j * n], *numbers, n, k, ordered, out[i * k : j * k]) for i, j in rows]


class _Chosen:
    """A call that finds places along the last dim, by a kernel that reads the elements' bits or their ``keys``, and takes the values there."""

    __slots__ = ("args", "bits", "carrier", "count", "find", "index", "keys", "numbers", "of_keys", "op", "size", "sizes", "take", "values")
    keys: Any
    take: Any

    def __init__(self, op: Any, args: tuple[Any, ...], layout: Layout, k: int, find: Any, numbers: tuple[Any, ...], keys: Any = None, flip: bool = False):
        self.op, self.args, self.find, self.numbers, self.keys = op, args, find, numbers, keys
        n, d = layout.shape[-1], layout.dtype
        shape = (*layout.shape[:-1], k)
        self.values, self.index = layout_of(shape, None, d), layout_of(shape, None, dtypes.int64)
        self.count, self.size, self.carrier, self.of_keys = layout.size, self.values.size, d.carrier, (*_key_numbers(d), flip)
        self.sizes, self.take = (layout.size // n, n, 1, k), TAKE.entry(d.carrier)
        self.bits = f"u{d.itemsize}" if compilation.disabled() else ""  # (kernels read them, whatever they are said to be)

    def __call__(self, x: Tensor, maker: Any) -> Any:
        data = x._data
        places, chosen = launch.empty(self.size, _INT), launch.empty(self.size, self.carrier)
        read = data.view(self.bits) if self.bits else data
        if self.keys is not None:
            key = launch.empty(self.count, _KEY)
            self.keys(read, *self.of_keys, key)
            read = key
        self.find(read, *self.numbers, places)
        self.take(*self.sizes, data, places, chosen)
        values, index = make(chosen, self.values, [0, 0]), make(places, self.index, [0, 0])
        if state.grad:
            if x._rg or x._view is not None:
                self.op.record((x, *self.args), (values, index), 3)
        elif state.inference:
            mark_inference(values)
            mark_inference(index)
        return maker(values, index)


def _last(layout: Layout, dim: Any) -> bool:
    """Return whether elements are chosen along the last dim, where they lie one after the other."""
    return bool(dim.__class__ is int and layout.ndim and dim in (-1, layout.ndim - 1) and layout.contiguous and layout.size)


def _ready(plan: _Chosen) -> _Chosen | None:
    """Return the plan, if the kernel that takes values is there."""
    return None if plan.take is None else plan


def _plan_sort(checked: bool, input: Any, dim: Any, descending: Any) -> _Chosen | None:
    layout = input._layout
    if not checked or not _last(layout, dim) or not threads.alone(FOUND * layout.size):
        return None
    kernel, numbers = _ordering(layout)
    keys, find = _keys.entry(layout.dtype.itemsize), kernel.entry(0)
    if keys is None or find is None:
        return None
    return _ready(_Chosen(_sort, (layout.ndim - 1, descending), layout, layout.shape[-1], find, numbers, keys, descending))


def _plan_topk(checked: bool, input: Any, k: Any, dim: Any, largest: Any, sorted: Any) -> _Chosen | None:
    layout = input._layout
    if not checked or not _last(layout, dim) or k.__class__ is not int or not k or not threads.alone(FOUND * layout.size):
        return None
    d, find = layout.dtype, _top.entry(layout.dtype.itemsize)
    if find is None:
        return None
    numbers = (*_key_numbers(d), largest, layout.shape[-1], k, sorted)
    return _ready(_Chosen(_topk, (layout.ndim - 1, k, largest, sorted), layout, k, find, numbers))


def _pair(maker: Any, values: Tensor, indices: Tensor, out: Any, name: str, reads: tuple[Tensor, ...] = ()) -> Any:
    if out is None:
        return maker(fresh(values), fresh(indices))
    return maker(*store_each(out, (values, indices), name, reads, name == "sort"))


def _only_one(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return (value, index) of a tensor without dims."""
    index = new_full((), 0, dtypes.int64)
    return guarded(clone(x), index), index


@public()
@known(
    "input._layout, dim, dim.__class__, descending", _plan_sort, ["return plan(input, _maker)"], takes=("input", "dim", "descending"),
    _maker=return_types.sort,
)  # fmt: skip
def sort(input, dim=-1, descending=False, *, stable: bool | None = None, out=None):
    """Return (values, indices) sorted along ``dim``; equal elements keep their order, NaN is greatest. dvalues scatters back.

    Errors: IndexError for a dim out of range. Source: https://docs.pytorch.org/docs/stable/generated/torch.sort.html

    >>> torch.sort(torch.tensor([3, 1, 2])).indices
    tensor([1, 2, 0])
    """
    x = tensor_argument(input, "sort")
    _ordered(x._layout.dtype, "sort")
    if stable is not None:
        bool_argument(stable, "sort", "stable")
    d = wrap_dim(dim, x.ndim)
    if not x.ndim:
        return _pair(return_types.sort, *_only_one(x), out, "sort")
    values, indices = _sort(x, d, bool(descending))
    return _pair(return_types.sort, values, indices, out, "sort", (x,))


@public()
def argsort(input, dim=-1, descending=False, *, stable=False):
    """Return the indices that sort along ``dim``; argsort([3., 1., 2.]) = [1, 2, 0]."""
    x = tensor_argument(input, "argsort")
    _ordered(x._layout.dtype, "argsort")
    d = wrap_dim(dim, x.ndim)
    return order_of(x, d, bool(descending)) if x.ndim else new_full((), 0, dtypes.int64)


@public()
def msort(input, *, out=None):
    """Return the values sorted along the first dim; msort([3, 1, 2]) = [1, 2, 3]."""
    y = sort(input, 0).values
    return y if out is None else store(out, y, "msort")


@public()
@known(
    "input._layout, k, k.__class__, dim, dim.__class__, largest, sorted", _plan_topk, ["return plan(input, _maker)"],
    takes=("input", "k", "dim", "largest", "sorted"), _maker=return_types.topk,
)  # fmt: skip
def topk(input, k, dim=-1, largest=True, sorted=True, *, out=None):
    """Return (values, indices) of the ``k`` largest (or smallest) along ``dim``, in order; NaN is greatest.

    Derivative: g goes to the places in ``indices``, zeros elsewhere.
    Errors: RuntimeError when ``k`` does not fit. Source: https://docs.pytorch.org/docs/stable/generated/torch.topk.html

    >>> torch.topk(torch.tensor([3, 1, 2]), 2).values
    tensor([3, 2])
    """
    x = tensor_argument(input, "topk")
    _ordered(x._layout.dtype, "topk")
    d = wrap_dim(dim, x.ndim)
    _no_bools(x._layout.dtype, "topk")
    k = as_int(k, "k")
    n = x.shape[d] if x.ndim else 1
    if not 0 <= k <= n:
        raise RuntimeError(f"selected index k out of range (k={k}, size of dim {dim} is {n})")
    if not x.ndim:
        return _pair(return_types.topk, *_only_one(x), out, "topk")  # also for none, as in PyTorch
    values, indices = _topk(x, d, k, bool(largest), bool(sorted))
    return _pair(return_types.topk, values, indices, out, "topk")


# ------------------------------------------------------------------------------------------------- order statistics


MEDIAN, NANMEDIAN = -2, -1


def _place(x: Tensor, d: int, k: int) -> Tensor:
    """Return the index along ``d`` (kept with size 1) of the k-th smallest, or of the `MEDIAN` or `NANMEDIAN`."""
    rows, n = _rows(x, d)
    index = new_empty([*rows.shape[:-1], 1], dtypes.int64)
    if index._layout.size:
        key = _sort_keys(dense(rows), x.dtype, False)
        if k >= 0:
            _find(_kth, key, n, k, index._data)
        else:
            _find(_middle, key, n, k == NANMEDIAN, _bits_of_nan(x.dtype), index._data)
    return _back(index, d)


@structured(
    x=_picked_rule, node="KthvalueBackward0", linear="no", batch="shift",
    dtypes="half float integer", samples="x(3, 4).kthvalue(2, 1).values",
)
def _kth_value(x, d, k):
    index = _place(x, d, k)
    return [_gather(x, d, index), index]


_median_dim = _kth_value.variant("MedianBackward1", samples="x(3, 4).median(1).values")
_nanmedian_dim = _kth_value.variant("NanmedianBackward1", samples="x(3, 4).nanmedian(1).values")


def _selected(op: Any, maker: Any, x: Tensor, d: int, k: int, keepdim: bool, out: Any, name: str) -> Any:
    if not x.ndim:
        return _pair(maker, *_only_one(x), out, name)
    values, indices = op(x, d, k)
    if not keepdim:
        values, indices = values.squeeze(d), indices.squeeze(d)
    return _pair(maker, values, indices, out, name, (x,))


@public()
def kthvalue(input, k, dim: int = -1, keepdim=False, *, out=None):
    """Return (values, indices) of the k-th smallest element (from 1) along ``dim``. RuntimeError when ``k`` does not fit.

    Derivative: g goes to the place in ``indices``, zeros elsewhere.

    >>> torch.kthvalue(torch.tensor([3, 1, 2]), 2)
    torch.return_types.kthvalue(
    values=tensor(2),
    indices=tensor(2))
    """
    x = tensor_argument(input, "kthvalue")
    d = wrap_dim(dim, x.ndim)
    k = as_int(k, "k")
    n = x.shape[d] if x.ndim else 1
    if x.ndim and not n:
        raise IndexError(f"kthvalue(): Expected reduction dim {dim} to have non-zero size.")
    if not 1 <= k <= n:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {d} (k={k}, size {n})")
    if x.ndim:
        _ordered(x._layout.dtype, "kthvalue")
        _no_bools(x._layout.dtype, "kthvalue_cpu")
    else:
        no_complex_derivative("kthvalue", x)
    return _selected(_kth_value, return_types.kthvalue, x, d, k - 1, keepdim, out, "kthvalue")


def _even(g: Tensor, x: Tensor, out: Tensor) -> Tensor:
    same = OPS["where"].call(out == out, x == out, x != x)
    return OPS["where"].call(same, g / cast(same.sum(), g.dtype), 0.0)


@structured(
    x=lambda g, x, out: _even(g, x, out), node="MedianBackward0", linear="no", batch="samples",
    dtypes="half float integer", samples="x(3, 4).median()",
)
def _median_all(x, k):
    flat = reshape(x, -1)
    return reshape(_gather(flat, 0, _place(flat, 0, k)), ())


_nanmedian_all = _median_all.variant("NanmedianBackward0", samples="x(3, 4).nanmedian()")


def _median(name: str, k: int, whole: Any, along: Any, maker: Any) -> Any:
    def call(input, dim=None, keepdim=False, *, out=None):
        x = tensor_argument(input, name)
        _ordered(x._layout.dtype, "median")
        if dim is None:
            if not x._layout.size and x.dtype is dtypes.bool_:
                y = new_full((), True, x.dtype)
            elif not x._layout.size:
                y = new_full((), float("nan"), x.dtype) + x.sum() if x.dtype.category > 1 else new_full((), dtypes.iinfo(x.dtype).min, x.dtype)
            else:
                _no_bools(x._layout.dtype, "median_cpu")
                y = whole(x, k)
            return y if out is None else store(out, y, name)
        d = wrap_dim(dim, x.ndim)
        if x.ndim and not x.shape[d]:
            raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
        _no_bools(x._layout.dtype, "median_out")
        not_for_barebone("median_out", x.dtype)
        return _selected(along, maker, x, d, k, keepdim, out, name)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = (
        f"Return the {'median' if k == MEDIAN else 'median of what is not nan'} (the lower one of an even count): of all elements, or "
        "(values, indices) along ``dim``. The gradient goes to the element chosen, over all elements evenly to the equal ones; "
        f"{name}([1, 3, 2]) = 2."
    )
    return public()(call)


median: Any = _median("median", MEDIAN, _median_all, _median_dim, return_types.median)
nanmedian: Any = _median("nanmedian", NANMEDIAN, _nanmedian_all, _nanmedian_dim, return_types.nanmedian)


# --------------------------------------------------------------------------------------------------------- unique


def _groups(flat: np.ndarray, d: dtypes.dtype, order: Tensor, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return (inverse, counts, first) of the runs of equal rows in ``order``."""
    n = order._layout.size
    inverse, counts, first = (new_empty((n,), dtypes.int64) for _ in range(3))
    found = np.zeros(1, _INT)
    if n:
        _runs(d.carrier, flat, order._data, width, inverse._data, counts._data, first._data, found)
    launch.escapes("unique(), whose size depends on them")
    g = int(found[0])
    short = layout_of((g,), None, dtypes.int64)
    return inverse, make(counts._data[:g].copy(), short, [0, 0]), make(first._data[:g].copy(), short, [0, 0])


def _half_wide(x: Tensor) -> Tensor:
    return cast(x, dtypes.float32) if x.dtype.is_half else x


def _unique(input: Tensor, dim: Any, ordered: bool, return_inverse: bool, return_counts: bool, name: str) -> Any:
    original = input.dtype
    x = _half_wide(input.detach())
    if dim is None:
        flat = reshape(x, -1)
        order = order_of(flat, 0, False) if ordered else OPS["arange"].call(flat._layout.size)
        inverse, counts, first = _groups(dense(flat), x.dtype, order, 1)
        values = OPS["index_select"].call(flat, 0, first)
        inverse = fresh(reshape(inverse, x.shape))
    else:
        d = wrap_dim(dim, x.ndim)
        n = x.shape[d]
        if x.shape.count(0) > (n == 0):
            raise RuntimeError(
                f"{name}: there are {x.shape.count(0)} zero-sized dimensions and they aren't selected, so unique cannot be "
                "applied"
            )
        rows = clone(OPS["movedim"].call(x, d, 0))
        width = numel(rows.shape[1:])
        order = OPS["arange"].call(n)
        if ordered and n > 1:
            _ordered(x.dtype, "sorting")
            _sort_rows(x.dtype.carrier, dense(rows), width, n, launch.empty(_BOUNDS, _INT), order._data)
        inverse, counts, first = _groups(dense(rows), x.dtype, order, width)
        moved = OPS["movedim"].call(OPS["index_select"].call(rows, 0, first), 0, d)
        values = make(moved._data, moved._layout, [0, 0])  # (which lies as rows, and is nobody's view)
    values = cast(values, original)
    underived(name, (values,), input)
    if return_inverse and return_counts:
        return values, inverse, counts
    if return_inverse:
        return values, inverse
    return (values, counts) if return_counts else values


def _plan_runs(layout: Layout, data: np.ndarray) -> tuple[Any, ...]:
    """Return the kernels that find the groups of equal neighbours in some order, and that take an element of each."""
    n, d = layout.size, layout.dtype
    return _runs.entry(d.carrier), TAKE.entry(d.carrier, 1, n, 1, 1, data, np.zeros(1, _INT), np.empty(1, d.carrier))


def _is_plain(checked: bool, input: Any, dim: Any) -> bool:
    """Return whether the groups of a tensor's elements are found by kernels on this thread alone, and nothing else is to be done."""
    layout, d = input._layout, input._layout.dtype
    plain = checked and dim is None and not (input.requires_grad or d.is_half or d.is_complex) and layout.contiguous
    return bool(plain and layout.size and threads.alone(FOUND * layout.size))


def _plan_unique(checked: bool, input: Any, sorted: Any, return_inverse: Any, return_counts: Any, dim: Any) -> tuple[Any, ...] | None:
    if not _is_plain(checked, input, dim):
        return None
    layout = input._layout
    n, d = layout.size, layout.dtype
    find, numbers = _ordering(layout_of((n,), None, d))
    kernels = _keys.entry(d.itemsize), find.entry(0), *_plan_runs(layout, input._data)
    return None if None in kernels else (*kernels, _key_numbers(d), (n, *numbers[1:]), layout, f"u{d.itemsize}" if compilation.disabled() else "")


def _run_unique(plan: tuple[Any, ...], input: Any, sorted: Any, return_inverse: Any, return_counts: Any, dim: Any) -> Any:
    """Do what `unique` does by its four kernels: keys of the elements, their order, groups of equal ones, the values of those."""
    keys, find, runs, take, key_numbers, numbers, layout, bits = plan
    data, n = input._data, layout.size
    if data.size != n:
        data = data[:n]
    key, order = launch.empty(n, _KEY), launch.empty(n, _INT)
    keys(data.view(bits) if bits else data, *key_numbers, False, key)
    find(key, *numbers, order)
    return _grouped(data, layout, order, runs, take, return_inverse, return_counts)


def _plan_consecutive(checked: bool, input: Any, return_inverse: Any, return_counts: Any, dim: Any) -> tuple[Any, ...] | None:
    if not _is_plain(checked, input, dim):
        return None
    kernels = _plan_runs(input._layout, input._data)
    return None if None in kernels else (*kernels, input._layout, OPS["arange"].call(input._layout.size)._data)


def _run_consecutive(plan: tuple[Any, ...], input: Any, return_inverse: Any, return_counts: Any, dim: Any) -> Any:
    runs, take, layout, order = plan
    return _grouped(input._data[: layout.size], layout, order, runs, take, return_inverse, return_counts)


def _grouped(data: np.ndarray, layout: Layout, order: np.ndarray, runs: Any, take: Any, return_inverse: Any, return_counts: Any) -> Any:
    """Return what `unique` does of elements in some order, which brings equal ones together."""
    n = layout.size
    inverse, counts, first = (launch.empty(n, _INT) for _ in range(3))
    found = np.empty(1, _INT)
    runs(data, order, 1, inverse, counts, first, found)
    g = found.item()
    chosen = launch.empty(g, layout.dtype.carrier)
    take(1, n, 1, g, data, first, chosen)
    values = make(chosen, layout_of((g,), None, layout.dtype), [0, 0])
    results = [values]
    if return_inverse:
        results.append(make(inverse, layout_of(layout.shape, None, dtypes.int64), [0, 0]))
    if return_counts:
        results.append(make(counts[:g].copy(), layout_of((g,), None, dtypes.int64), [0, 0]))
    if state.inference:
        for t in results:
            mark_inference(t)
    return tuple(results) if len(results) > 1 else values


@public()
@known("input._layout, input._rg, sorted, return_inverse, return_counts, dim", _plan_unique, _run_unique)
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim: int | None = None):
    """Return the distinct elements (or slices along ``dim``) in order; if asked, where each element went and how often each occurs.

    >>> torch.unique(torch.tensor([3, 1, 3]))
    tensor([1, 3])
    """
    return _unique(tensor_argument(input, "unique"), dim, True, return_inverse, return_counts, "unique")


@public()
@known("input._layout, input._rg, return_inverse, return_counts, dim", _plan_consecutive, _run_consecutive)
def unique_consecutive(input, return_inverse=False, return_counts=False, dim: int | None = None):
    """Return `unique` of neighbours only, in the order of the input; unique_consecutive([1, 1, 3, 1]) = [1, 3, 1]."""
    x = tensor_argument(input, "unique_consecutive")
    if x.dtype.is_complex:
        raise not_for_complex("unique")
    return _unique(x, dim, False, return_inverse, return_counts, "unique_consecutive")
