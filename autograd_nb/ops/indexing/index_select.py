"""`index_select` and what writes slices by an index: `index_add`, `index_copy`, `index_fill`, `index_reduce`; `take` and `put`."""

from __future__ import annotations

import itertools
from typing import Any

from ... import dtypes, strides
from ...shapes import as_int, broadcast_shapes, wrap_dim
from ...tensor import Tensor
from ..core.history import check_inplace
from ..core.inplace import in_place, write_inplace
from ..core.numbers import number_argument, text_argument
from ..core.recording import (
    check_written,
    fresh,
    guarded,
    no_complex_derivative,
    not_for_limited,
    refuse_overlap,
    scalar_type,
    warn_of_expanded,
)
from ..core.recording import tensor_type as _tensor_type
from ..core.registry import OPS, public
from ..core.structured import Structured, tensor_argument
from ..creation.cast import cast, contiguous, relaid
from ..creation.create import new_empty, new_full
from ..creation.data import as_tensor
from ..shape.shape import expand, reshape
from .along_index import ADD, SET
from .gather import _index_argument, _reduced, _stored, gather, is_windows, memory_of
from .picking import (
    checked_index,
    checked_rows,
    filling,
    index_backward,
    index_put_op,
    memoized_pick,
    pick,
    picked,
    write_at,
    zero_at,
)


def _added_at(g, x_shape, index, dims, pos):
    """Return the gradient of a pick that PyTorch adds to zeros: what is added may not be changed before a second derivative."""
    return guarded(index_backward(g, index, tuple(x_shape), dims, pos), g)


_index_select = pick.variant("IndexSelectBackward0", forward=picked, x=_added_at, samples="x(3, 4).index_select(0, index(3, 5))")
_index_add = index_put_op.variant(
    "IndexAddBackward0", x=lambda g: g, value=index_put_op.rules["value"][0],
    samples="x(3, 4).index_add(0, index(3, 2), x(2, 4))",
)
_index_copy = index_put_op.variant("IndexCopyBackward0", samples="x(3, 4).index_copy(0, index(3, 2), x(2, 4))")
_index_fill = index_put_op.variant(
    "IndexFillBackward0",
    x=lambda g, index, dims, pos: zero_at(g, index, dims, pos),
    # each place counts once, however often it was named
    value=lambda g, index, dims, pos, value_shape: (g - zero_at(g, index, dims, pos)).sum_to_size(value_shape),
    samples="x(3, 4).index_fill(0, index(3, 2), x())",
)


@_index_fill.batched
def _index_fill_of_batch(op, args, batch):
    x, index, value, dims, pos, accumulate = args
    (iv, in_i), (v, in_v) = batch.of(index), batch.of(value)
    if in_i:
        return None
    if in_v:
        v = v.reshape(batch.size, *[1] * (x.ndim - value.ndim), *value.shape)
    return op(batch.whole(x), iv, v, tuple([d + 1 for d in dims]), pos + 1, accumulate)


_take = pick.variant("TakeBackward0", x=_added_at, samples="x(3, 4).take(index(12, 5))")
_put = index_put_op.variant("PutBackward0", samples="x(3, 4).put(index(12, 5), x(5))")


def _write_slices(x: Tensor, index: Tensor, value: Tensor, dims: tuple[int, ...], pos: int, accumulate: bool) -> None:
    write_at(x, value, index, dims, pos, ADD if accumulate else SET)


def _check_vector(index: Tensor, name: str) -> None:
    if index._layout.ndim < 2:
        return
    if "fill" in name:
        raise RuntimeError(f"Index has to be a vector/scalar ({name}(): index.shape={list(index.shape)})")
    raise IndexError(f"{name}(): Index is supposed to be a vector (index.shape={list(index.shape)})")


def _vector(index: Any, x: Tensor, d: int, name: str, negative: bool = False, idle: bool = False) -> Tensor:
    """Return an index of slices; ``negative``: as of `checked_rows`; ``idle``: nothing will be written, so that it may be out of range."""
    index = _index_argument(index, name)
    _check_vector(index, name)
    index = index if idle else checked_rows(index, x, d, name, negative)
    return index if index.ndim else reshape(index, 1)


@public()
def index_select(input, dim, index, *, out=None):
    """Return the slices of ``input`` along ``dim`` at the 1-d ``index``, copied; the gradient is added back slice by slice.

    Errors: IndexError for indices out of range. Source: https://docs.pytorch.org/docs/stable/generated/torch.index_select.html

    >>> torch.index_select(torch.tensor([5, 6, 7]), 0, torch.tensor([2, 0]))
    tensor([7, 5])
    """
    x = tensor_argument(input, "index_select")
    layout = x._layout
    d = wrap_dim(dim, layout.ndim)
    if out is None and layout.ndim and isinstance(index, Tensor) and index._layout.ndim == 1:
        y = memoized_pick(_index_select, (x, index, (d,), d), d)
        if y is not None:
            return y
    _check_vector(tensor_argument(index, "index_select", "index"), "index_select")
    if not x.ndim and index._layout.size != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index._layout.size} value(s)")
    index = _vector(index, x, d, "index_select")
    y = _index_select(x, index, (d,), d) if x.ndim else reshape(_index_select(reshape(x, 1), index, (0,), 0), ())
    return _stored(out, y, "index_select", (x, index))


def _slices_args(input: Any, dim: Any, index: Any, source: Any, name: str) -> tuple[Tensor, int, Tensor, Tensor]:
    """Return (x, dim, index, source) of index_add and index_copy, checked."""
    x = tensor_argument(input, name)
    copies = "copy" in name
    if name[-1] == "_":
        check_inplace(x, source)
    layout = x._layout
    d = wrap_dim(dim, layout.ndim)
    given = tensor_argument(source, name, "source")._layout
    if name == "index_copy_":  # PyTorch's looks at the memory before all else
        check_written(x, (index, source))
    elif name[-1] == "_":
        refuse_overlap(x, (index, source), True)
    if copies and given.ndim != layout.ndim and given.ndim and layout.ndim:
        raise IndexError(
            f"{name}(): When source and destination are not scalars, their dimensionality must match. Source dimensionality "
            f"({given.ndim}), destination dimensionality ({layout.ndim})"
        )
    if given.dtype is not layout.dtype:
        raise RuntimeError(f"{name}(): self ({x.dtype}) and source ({source.dtype}) expected to have the same dtype")
    n = tensor_argument(index, name, "index")._layout.size
    _check_vector(index, name)
    if not given.ndim and n != 1 and not copies:
        if d:
            raise RuntimeError(f"{name}(): Indexing dim {d} is out of bounds of the source tensor with dim 0")
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions ({name}(): source)")
    if given.ndim != layout.ndim and not copies:
        raise _unlike(name, x, source)
    if given.ndim == 0 and layout.ndim <= 1:
        source = reshape(source, 1)
        given = source._layout
    sizes, wanted = layout.sizes or (1,), given.sizes
    if copies and (given.ndim or n == 1) and _without(layout.sizes, d) != _without(wanted, d):
        raise RuntimeError(
            f"{name}(): Source/destination tensor must have same slice shapes. Destination slice shape: {_without(layout.sizes, d)} at "
            f"dimension {d} and source slice shape: {_without(wanted, d)} at dimension {d}"
        )
    if (wanted[d] if given.ndim > d else 1) != n:
        raise (IndexError if copies else RuntimeError)(
            f"{name}(): Number of indices ({n}) should be equal to source.size(dim) ({list(wanted)}, dim={d})"
        )
    if wanted != (*sizes[:d], n, *sizes[d + 1 :]):
        raise _unlike(name, x, source)
    idle = not given.size and "reduce" not in name
    if not idle and not layout.size and "reduce" not in name:
        if copies or layout.ndim < 2:
            raise (RuntimeError if copies else IndexError)(f"{name}(): index out of range in self (its shape is {list(x.shape)})")
        index, source = index.reshape(-1)[:0], OPS["narrow"].call(source, d, 0, 0)  # of several dims PyTorch's index_add looks at no index
    return x, d, _vector(index, x, d, name, idle=idle), source


def _without(sizes: tuple[int, ...], d: int) -> list[int]:
    """Return the sizes of a slice along dim ``d``."""
    return [n for k, n in enumerate(sizes) if k != d]


def _unlike(name: str, x: Tensor, source: Tensor) -> RuntimeError:
    return RuntimeError(
        f"{name}(): source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
        f"{list(x.shape)} source.shape = {list(source.shape)}"
    )


def _slices(op: Structured, x: Tensor, d: int, index: Tensor, source: Tensor, accumulate: bool) -> Tensor:
    if not x.ndim:
        return reshape(op(reshape(x, 1), index, source, (0,), 0, accumulate), ())
    return op(x, index, source, (d,), d, accumulate)


def _slices_inplace(op: Structured, x: Tensor, d: int, index: Tensor, source: Tensor, accumulate: bool, kept: Any = None) -> Tensor:
    if not x.ndim:
        _slices_inplace(op, reshape(x, 1), 0, index, source, accumulate, kept)
        return x
    # (a fill writes one value everywhere, also into expanded tensors)
    guards = (kept,) if _is_kept(kept) else ()
    return write_inplace(op, _write_slices, x, index, source, (d,), d, accumulate, repeats=op is _index_fill, kept=guards)


def _scaled(source: Any, alpha: Any, name: str) -> Any:
    if alpha.__class__ is not int:
        alpha = number_argument(alpha, name, "alpha")
    if alpha == 1 or not isinstance(source, Tensor):
        return source
    return source * filling(alpha, source.dtype, name)


def _is_kept(source: Any) -> bool:
    """Return whether a derivative by ``source`` keeps it in PyTorch, as it was before what is written in place."""
    return isinstance(source, Tensor) and source.requires_grad


def _with_source(y: Tensor, source: Any) -> Tensor:
    return guarded(y, source) if _is_kept(source) else y


@public()
def index_add(input, dim, index, source, *, alpha=1, out=None):
    """y = x with alpha·source[i] added to the slice y[index[i]] along ``dim``; duplicates add up; dsource = alpha·g[index].

    >>> torch.zeros(3).index_add(0, torch.tensor([0, 2, 0]), torch.ones(3))
    tensor([2., 0., 1.])
    """
    args = _slices_args(input, dim, index, _scaled(source, alpha, "index_add"), "index_add")
    return _stored(out, _with_source(_slices(_index_add, contiguous(args[0]), *args[1:], True), source), "index_add", (index, source), (input,))


@public(kind="inplace", namespaces=())
def index_add_(input, dim, index, source, *, alpha=1):
    """Compute `index_add` in place and return the tensor."""
    refuse_overlap(tensor_argument(input, "index_add_"), (source,), True)
    args = _slices_args(input, dim, index, _scaled(source, alpha, "index_add_"), "index_add_")
    return _slices_inplace(_index_add, *args, True, source)


@public()
def index_copy(input, dim, index, source, *, out=None):
    """y = x with the slices y[index[i]] along ``dim`` replaced by source[i]; index_copy([1, 2, 3], 0, [0], [9]) = [9, 2, 3].

    Derivative: dsource = g[index]; dx = g with zeros in these slices.
    """
    x, *rest = _slices_args(input, dim, index, source, "index_copy")
    return _stored(out, _with_source(_slices(_index_copy, contiguous(x), *rest, False), source), "index_copy", (index, source), (input,))


@public(kind="inplace", namespaces=())
def index_copy_(input, dim, index, source):
    """Compute `index_copy` in place and return the tensor."""
    args = _slices_args(input, dim, index, source, "index_copy_")
    return _slices_inplace(_index_copy, *args, False, source)


def _fill_args(input: Any, dim: Any, index: Any, value: Any, name: str) -> tuple[Tensor, int, Tensor, Tensor]:
    x = tensor_argument(input, name)
    if isinstance(value, Tensor) and value.ndim:  # which PyTorch sees first
        filling(value, x.dtype, name)
    if name[-1] == "_":
        check_inplace(x, value)
    d = wrap_dim(dim, x.ndim)
    kind = value.dtype if isinstance(value, Tensor) else None
    if not x.dtype.is_complex and (isinstance(value, complex) if kind is None else kind.is_complex):
        raise RuntimeError(f"{name}(): Converting complex Scalar to non-complex type is not supported (value={value!r})")
    value = filling(value, x.dtype, name)
    if not x._layout.size and 0 in (*x.shape[:d], *x.shape[d + 1 :]) and isinstance(index, Tensor):
        index = (index.detach() if index.ndim else index.detach().reshape(1))[:0]  # slices of nothing are there at any index
    return x, d, _vector(index, x, d, name, True), value if isinstance(value, Tensor) else new_full((), value, x.dtype)


@public()
def index_fill(input, dim, index, value: Tensor | float):
    """y = x with the slices y[index] along ``dim`` filled with a number or 0-d tensor; index_fill([1, 2, 3], 0, [0], 9) = [9, 2, 3].

    Derivative: dx = g with zeros in these slices; dvalue = the sum of g over them.
    """
    return fresh(_slices(_index_fill, *_fill_args(input, dim, index, value, "index_fill"), False))


@public(kind="inplace", namespaces=())
def index_fill_(input, dim, index, value: Tensor | float):
    """Compute `index_fill` in place and return the tensor."""
    refuse_overlap(tensor_argument(input, "index_fill_"), (index,), True)
    warn_of_expanded(input, "index_fill_")
    return _slices_inplace(_index_fill, *_fill_args(input, dim, index, value, "index_fill_"), False)


@public()
def index_reduce(input, dim, index, source, reduce: str, *, include_self=True, out=None):
    """Return `index_add` with another way to combine: "prod", "mean", "amax" or "amin"; index_reduce([1., 2.], 0, [0, 0], [3., 4.], "prod") = [12., 2.]."""
    y = _index_reduce(input, dim, index, source, reduce, include_self)
    return _stored(out, y, "index_reduce", (index, source), (input,))


def _check_reduced(x: Tensor, values: Tensor, reduce: str, include_self: Any) -> None:
    """Refuse of booleans and complex numbers what PyTorch has no kernel for: it has one for vectors, and others for slices."""
    kernel = ""
    if x.dtype is dtypes.bool_ or x.dtype.is_complex:
        if not include_self:
            kernel = "index_reduce_func_exclude_input_init"
        elif x.ndim <= 1:
            kernel = "index_func_"
        elif x.dtype.is_complex:
            kernel = {"amax": "maximum_cpu", "amin": "minimum_cpu"}.get(reduce, "")
        elif reduce == "mean":
            kernel = "div_floor_cpu"
    if kernel:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_type(x.dtype)}' (index_reduce(), reduce={reduce!r})")
    no_complex_derivative("index_reduce", x, values)


def _index_reduce(input: Any, dim: Any, index: Any, source: Any, reduce: str, include_self: Any) -> Tensor:
    if text_argument(reduce, "index_reduce", "reduce") not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    x, d, places, values = _slices_args(input, dim, index, source, "index_reduce")
    _check_reduced(x, values, reduce, include_self)
    if not x.ndim:
        y = reshape(_reduced(reshape(x, 1), 0, places, values, reduce, bool(include_self)), ())
    else:
        places = expand(reshape(places, [-1 if k == d else 1 for k in range(x.ndim)]), values.shape)
        y = _reduced(x, d, places, values, reduce, bool(include_self))
    return guarded(y, input, index, source, y)  # type: ignore[no-any-return]


@public(kind="inplace", namespaces=())
def index_reduce_(input, dim, index, source, reduce: str, *, include_self=True):
    """Compute `index_reduce` in place and return the tensor."""
    if reduce in ("prod", "amax", "amin") and is_windows(tensor_argument(input, "index_reduce_")):
        x, d, places, values = _slices_args(input, dim, index, source, "index_reduce_")
        memory, at = memory_of(x)
        at = reshape(_index_select(at, places, (d,), d), -1)
        in_place("index_reduce_", _reduced, memory, 0, at, reshape(values, -1).clone(), reduce, bool(include_self))
        return x
    return in_place("index_reduce_", _index_reduce, input, dim, index, source, reduce, include_self)


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
    """Return the elements at flat (C order) indices; y has the shape of ``index``. IndexError when out of range; take([4, 5, 6], [0, 2]) = [4, 6].

    Derivative: g is added at the indices; those that are given twice add up.
    """
    x = tensor_argument(input, "take")
    not_for_limited("take_cpu", x.dtype)
    places = _flat_index(x, index, "take")
    return _stored(out, guarded(_take(reshape(x, -1), contiguous(places), (0,), 0), x, index), "take", (x, index))


def _put_args(input: Any, index: Any, source: Any, name: str) -> tuple[Tensor, Tensor, Tensor]:
    x = tensor_argument(input, name)
    not_for_limited("take_put_cpu", x.dtype)
    tensor_argument(source, name, "source")
    if name[-1] == "_":
        check_inplace(x, source)
    if source.dtype is not x.dtype:
        raise RuntimeError(
            f"{name}(): self and source expected to have the same dtype, but got self.dtype = {x.dtype} and source.dtype = "
            f"{source.dtype}"
        )
    if name[-1] == "_" and isinstance(index, Tensor) and index._layout.size == source._layout.size:
        refuse_overlap(x, (index, source), True)
    index = _flat_index(x, index, name)
    if index._layout.size != source._layout.size:
        raise IndexError(
            f"{name}(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source._layout.size}, index.numel() = {index._layout.size}"
        )
    return x, reshape(index, -1), reshape(source, -1)


@public()
def put(input, index, source, accumulate=False):
    """y = x with the elements at flat indices replaced by (or with ``accumulate`` added to) ``source``; put([1, 2, 3], [1], [9]) = [1, 9, 3].

    Derivative: dsource = g at the indices; dx = g, with zeros there unless ``accumulate``.
    """
    x, places, values = _put_args(input, index, source, "put")
    y = fresh(reshape(_put(reshape(x, -1), places, values, (0,), 0, bool(accumulate)), x.shape))
    layout = strides.like(x._layout)
    if not layout.contiguous:
        y = relaid(y, layout)
    return _with_source(guarded(y, index), source)


@public(kind="inplace", namespaces=())
def put_(input, index, source, accumulate=False):
    """Compute `put` in place and return the tensor."""
    x, places, values = _put_args(input, index, source, "put_")
    if is_windows(x):
        memory, at = memory_of(x)
        put_(memory, take(at, places), values.clone(), accumulate)
        return _with_source(guarded(x, index), source)
    if not x._layout.contiguous:
        return in_place("put_", put, x, index, source, accumulate)
    write_inplace(_put, _write_slices, x.view(-1), places, values, (0,), 0, bool(accumulate))
    return _with_source(guarded(x, index), source)


@public()
def take_along_dim(input, indices, dim: int | None = None, *, out=None):
    """Return `gather` that broadcasts input and indices over the other dims; without ``dim``, on the flattened tensors.

    Along ``dim`` an index counts modulo the size, as PyTorch's does.

    >>> torch.take_along_dim(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[1], [0]]), 1)
    tensor([[2],
            [3]])
    """
    x = tensor_argument(input, "take_along_dim")
    tensor_argument(indices, "take_along_dim", "indices")
    if indices.dtype is not dtypes.int64 and (dim is not None or indices.dtype is not dtypes.int32):
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {_tensor_type(indices.dtype)}")
    if dim is None:
        return gather(reshape(x, -1), 0, cast(reshape(indices, -1), dtypes.int64), out=out)
    if x.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{x.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    if not x.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions (take_along_dim())")
    d = wrap_dim(dim, x.ndim)
    a = [1 if k == d else n for k, n in enumerate(x.shape)]
    b = [1 if k == d else n for k, n in enumerate(indices.shape)]
    common = list(broadcast_shapes(a, b))
    x = expand(x, [x.shape[d] if k == d else n for k, n in enumerate(common)])
    indices = expand(indices, [indices.shape[d] if k == d else n for k, n in enumerate(common)])
    return gather(x, d, OPS["remainder"].call(indices, x.shape[d]) if indices._layout.size else indices, out=out)


@public(method=False)
def combinations(input, r=2, with_replacement=False):
    """Return all ways to choose ``r`` elements of a 1-d tensor, one a row, in order. Gradients add up; combinations([1, 2, 3]) = [[1, 2], [1, 3], [2, 3]]."""
    x = tensor_argument(input, "combinations")
    if x.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(x.shape)}")
    r = as_int(r, "r")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return new_empty((0,), x.dtype)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    flat = [i for row in choose(range(x.shape[0]), r) for i in row]
    index = as_tensor(flat, dtype=dtypes.int64)
    return fresh(reshape(guarded(pick(x, index, (0,), 0), x), -1 if flat else 0, r))
