"""Repeating and joining: triangles, diagonals, grids, stacks, and views written into copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...errors import warn_user
from ...launch import Kernel
from ...shapes import as_int, is_expanded, wrap_dim
from ...strides import packed
from ...tensor import Tensor
from ..core.inplace import in_place
from ..core.numbers import text_argument
from ..core.recording import (
    fresh,
    kind_among,
    made_here,
    need_numbers,
    no_complex_derivative,
    not_for_barebone,
    not_for_lost,
    store,
)
from ..core.registry import OPS, public
from ..core.structured import none_given, structured, tensor_argument, tensors_argument
from ..core.views import memoized_view
from ..creation.cast import cast, clone, contiguous, copied, dense, placed
from ..creation.create import new_empty, new_full, repeated
from ..creation.data import as_tensor
from .cat import cat, check_joined, stack
from .parts import _diagonal, _diagonal_backward, _select, _slice, slices
from .shape import expand, reshape, unsqueeze
from .strided import copied_with_gaps

_triangle = Kernel("indexing.index", "triangle")
_triangle_places = Kernel("indexing.index", "triangle_places")
_repeats = Kernel("indexing.index", "repeats")


# -------------------------------------------------------------------------------------------- triangles, diagonals


def _tri(name: str, upper: bool) -> Any:
    @structured(x=lambda g, k: tri(g, k), node=f"{name.capitalize()}Backward0", linear="no", batch="shift", samples=f"x(3, 4).{name}(1)")
    def tri(x, k):
        out = new_empty(x.shape, x.dtype)
        if out._layout.size:
            r, c = x.shape[-2:]
            k = max(-r, min(k, c))  # further out there is nothing, and ends of int64 are not passed
            _triangle(x.dtype.carrier, out._layout.size // (r * c), r, c, k, upper, dense(x), out._data)
        return out

    def call(input, diagonal=0, *, out=None):
        x = tensor_argument(input, name)
        if x.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions (input.shape={list(x.shape)})")
        y = tri(x, as_int(diagonal, "diagonal"))
        if out is None:
            return y

        return store(out, y, name)

    call.__name__ = call.__qualname__ = name
    shown = "[[1, 2], [0, 4]]" if upper else "[[1, 0], [3, 4]]"
    example = f"{name}([[1, 2], [3, 4]]) = {shown}"
    call.__doc__ = f"Return the matrices with zeros {'below' if upper else 'above'} the diagonal number ``diagonal``; the gradient too; {example}."
    public()(call)

    def inplace(input, diagonal=0):
        x = tensor_argument(input, name + "_")
        if x.ndim < 2 or not is_expanded(x._layout):
            return in_place(name + "_", call, x, diagonal)
        gone = call(new_full(x.shape, 1, dtypes.int64), diagonal) == 0  # zeros are written one by one, as they are by an index
        return OPS["index_put_"].call(x, (gone,), new_full((), 0, x.dtype))

    inplace.__name__ = inplace.__qualname__ = name + "_"
    inplace.__doc__ = f"Compute `{name}` in place and return the tensor."
    public(kind="inplace", namespaces=())(inplace)
    return call


tril: Any = _tri("tril", False)
triu: Any = _tri("triu", True)


def _tri_indices(name: str, upper: bool) -> Any:
    def call(row, col, offset=0, *, dtype=dtypes.int64, layout=None, device=None, requires_grad=False, pin_memory=False):
        r, c, k = as_int(row, "row"), as_int(col, "col"), as_int(offset, "offset")
        if r < 0 or c < 0:
            raise RuntimeError(f"{'row' if r < 0 else 'col'} must be non-negative, got {min(r, c)}")
        d = dtypes.int64 if dtype is None else dtypes.as_dtype(dtype)
        n = sum(max(c - max(i + k, 0), 0) if upper else min(max(i + k + 1, 0), c) for i in range(r))
        not_for_barebone(name, d)
        out = new_empty((2, n), dtypes.int64)
        if n:
            _triangle_places(0, r, c, k, upper, out._data)
        return made_here(cast(out, d)).requires_grad_(requires_grad)

    call.__name__ = call.__qualname__ = name
    shown = "[[0, 0, 1], [0, 1, 1]]" if upper else "[[0, 1, 1], [0, 0, 1]]"
    call.__doc__ = f"Return rows and columns of the {'upper' if upper else 'lower'} triangle of a ``row`` × ``col`` matrix, [2, n]; {name}(2, 2) = {shown}."
    return public(method=False)(repeated(placed(call)))


tril_indices: Any = _tri_indices("tril_indices", False)
triu_indices: Any = _tri_indices("triu_indices", True)


@public()
def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Return matrices with the last dim on diagonal ``offset`` and zeros elsewhere; diag_embed([1, 2]) = [[1, 0], [0, 2]].

    Derivative: the diagonal of the gradient.
    """
    x = tensor_argument(input, "diag_embed")
    k = as_int(offset, "offset")
    a, b = wrap_dim(dim1, x.ndim + 1, "dim1"), wrap_dim(dim2, x.ndim + 1, "dim2")
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    n = x.shape[-1] + abs(k)
    rest = iter(x.shape[:-1])
    shape = tuple(n if d in (a, b) else next(rest) for d in range(x.ndim + 1))
    return _diagonal_backward(x, shape, k, a, b)


@public()
def diag(input, diagonal=0, *, out=None):
    """Return a matrix with a 1-d tensor on its diagonal, or the diagonal of a matrix. RuntimeError for other ranks; diag([1, 2]) = [[1, 0], [0, 2]]."""
    x = tensor_argument(input, "diag")
    if x.ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {x.ndim}D")
    y = diag_embed(x, diagonal) if x.ndim == 1 else clone(_diagonal(x, as_int(diagonal, "diagonal"), 0, 1))
    if out is None:
        return y

    return store(out, y, "diag")


@public()
def diagflat(input, offset=0):
    """Return a matrix with all elements on its diagonal; diagflat([1, 2]) = [[1, 0], [0, 2]]."""
    return diag_embed(reshape(tensor_argument(input, "diagflat"), -1), offset)


#: dtypes in which the few numbers of a diagonal are added
_WIDER = {dtypes.float32: dtypes.float64, dtypes.complex64: dtypes.complex128}


@structured(
    x=lambda g, x_shape: _diagonal_backward(expand(g, (min(x_shape),)), x_shape, 0, 0, 1), node="TraceBackward0",
    linear="jointly", batch="samples", dtypes="half float complex integer",
    samples="x(3, 4).trace()",
)
def _trace(x):
    return _diagonal_sum(x)


def _diagonal_sum(x: Tensor) -> Tensor:
    diagonal, wide = _diagonal(x, 0, 0, 1), _WIDER.get(x.dtype)
    return diagonal.sum() if wide is None else cast(diagonal.sum(dtype=wide), x.dtype)


@public()
def trace(input):
    """Return the sum of the diagonal of a matrix. RuntimeError unless 2-d; trace([[1., 2.], [3., 4.]]) = tensor(5.).

    Derivative: g on the diagonal, zeros elsewhere.
    """
    x = tensor_argument(input, "trace")
    if x.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {x.ndim}")
    if getattr(x, "batched", False):  # (whose vmap sums the diagonals)
        return _diagonal_sum(x)
    need_numbers("trace", (x,))
    not_for_barebone("trace", x.dtype)
    return _trace(x)


# --------------------------------------------------------------------------------------------- views into copies


@structured(
    x=lambda g, look, args: _hole(g, look, args),
    src=lambda g, look, args: look(g, *args),
    node="ScatterIntoViewBackward0",
    linear="no", batch="samples",
    samples="x(3, 4).select_scatter(x(3), 1, 2)",
)
def _write_view(x, src, look, args):
    y = copied(x) if packed(x._layout) or is_expanded(x._layout) else copied_with_gaps(x)
    look(y, *args).copy_(src)
    return y


@structured(x=lambda g, look, args: _hole(g, look, args), linear="no", batch="samples")
def _hole(x, look, args):
    """Return ``x`` with zeros where the view looks."""
    y = copied(x)
    look(y, *args).zero_()
    return y


def _into_view(name: str, x: Tensor, src: Any, look: Any, *args: Any) -> Tensor:
    tensor_argument(src, name, "src")
    shape = look.forward(x.detach(), *args).shape
    if src.shape != shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = {list(shape)} "
            f"({name})"
        )
    not_for_lost(name, x, src)
    return _write_view(x, cast(src, x.dtype), look, args)


@public()
def select_scatter(input, src, dim, index: int):
    """Return a copy of ``input`` with ``src`` in place of ``select(dim, index)``; select_scatter([[1, 2], [3, 4]], [8, 9], 0, 0) = [[8, 9], [3, 4]].

    Derivative: dsrc = the slice of g; dinput = g with zeros there.
    """
    x = tensor_argument(input, "select_scatter")
    d = wrap_dim(dim, x.ndim)
    n, i = x.shape[d] if x.ndim else 0, as_int(index, "index")
    if not -n <= i < n:
        raise IndexError(f"select(): index {i} out of range for tensor of size {list(x.shape)} at dimension {d}")
    y = _into_view("select_scatter", x, src, _select, d, i % n)
    no_complex_derivative("select_scatter", y)
    return y


@public()
def slice_scatter(input, src, dim=0, start: int | None = None, end: int | None = None, step=1, *, out=None):
    """Return a copy of ``input`` with ``src`` in place of the slice start:end:step of ``dim``; slice_scatter([1, 2, 3], [8, 9], 0, 1) = [1, 8, 9].

    Derivative: dsrc = the slice of g; dinput = g with zeros there.
    """
    x = tensor_argument(input, "slice_scatter")
    d = wrap_dim(dim, x.ndim)
    step = as_int(step, "step")
    if step < 1:
        raise RuntimeError(f"slice step must be positive (step={step})")
    a, b, _ = slice(start, end, step).indices(x.shape[d])
    y = _into_view("slice_scatter", x, src, _slice, d, a, max(0, -(-(b - a) // step)), step)
    return y if out is None else store(out, y, "slice_scatter")


@public()
def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """Return a copy of ``input`` with ``src`` in place of ``diagonal(offset, dim1, dim2)``; diagonal_scatter([[1, 2], [3, 4]], [8, 9]) = [[8, 2], [3, 9]].

    Derivative: dsrc = the diagonal of g; dinput = g with zeros there.
    """
    x = tensor_argument(input, "diagonal_scatter")
    a, b = wrap_dim(dim1, x.ndim, "dim1"), wrap_dim(dim2, x.ndim, "dim2")
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return _into_view("diagonal_scatter", x, src, _diagonal, as_int(offset, "offset"), a, b)


# ------------------------------------------------------------------------------------------------ repeats and grids


@public()
def repeat_interleave(input, repeats: int | Tensor | None = None, dim: int | None = None, *, output_size: int | None = None):
    """Return each element (or slice along ``dim``) repeated; ``repeats`` is one number or one for each.

    With a single argument: index i ``input[i]`` times. Errors: RuntimeError for negative or unmatched repeats.

    >>> torch.repeat_interleave(torch.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    if repeats is None:
        counts = tensor_argument(input, "repeat_interleave", "repeats")
        return _repeat_index(counts, output_size)
    x = tensor_argument(input, "repeat_interleave")
    if dim is None:
        x, dim = reshape(x, -1), 0
    d = wrap_dim(dim, x.ndim)
    if not x.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions: Dimension out of range (repeat_interleave())")
    n = x.shape[d]
    if isinstance(repeats, Tensor):
        if repeats.ndim > 1:
            raise RuntimeError(f"repeats must be 0-dim or 1-dim tensor (repeats.shape={list(repeats.shape)})")
        counts = repeats if repeats.ndim else reshape(repeats, 1)
        if counts._layout.size == 1 and n != 1:
            counts = expand(counts, n)
    elif isinstance(repeats, (list, tuple)):
        counts = as_tensor(repeats)
    else:
        return _repeated(x, d, as_int(repeats, "repeats"), output_size)
    if counts._layout.size != n:
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {counts._layout.size} and "
            f"input.size({d}) = {n}"
        )
    return fresh(OPS["index_select"].call(x, d, _repeat_index(counts, output_size)))


def _repeated(x: Tensor, d: int, times: int, size: Any) -> Tensor:
    """Return each slice along ``d`` as often as all others: a copy of a view, whose size is known without a look at values."""
    if times < 0:
        raise RuntimeError("Repeats must be non-negative")
    before, n, after = x.shape[:d], x.shape[d], x.shape[d + 1 :]
    if size is not None and size != times * n:
        raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {times * n} but got {size}")
    spread = expand(unsqueeze(x, d + 1), *before, n, times, *after)
    return fresh(reshape(clone(spread), *before, times * n, *after))


def _repeat_index(counts: Tensor, size: Any) -> Tensor:
    if counts.ndim != 1:
        raise RuntimeError(f"repeat_interleave only accept 1D vector as repeat (repeats.shape={list(counts.shape)})")
    if counts.dtype not in (dtypes.int64, dtypes.int32):
        raise NotImplementedError(f"repeats has to be Long or Int tensor (repeats.dtype={counts.dtype})")
    counts = cast(contiguous(counts), dtypes.int64)
    n = counts._layout.size
    if n and int(counts.min().item()) < 0:
        raise RuntimeError("repeats can not be negative")
    total = int(counts.sum().item())
    if size is not None and size != total:
        raise RuntimeError(f"allocated size does not match required size (output_size={size}, sum of repeats={total})")
    out = new_empty((total,), dtypes.int64)
    if total:
        _repeats(0, dense(counts), out._data)
    return out


def _sequence(tensors: tuple[Any, ...], name: str) -> tuple[Tensor, ...]:
    """Return tensors given one by one or as one list."""
    return tensors_argument(tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors, name)


@public(method=False)
def meshgrid(*tensors, indexing=None) -> tuple[Tensor, ...]:
    """Return for 1-d tensors the coordinates of their grid, views; ``indexing`` "ij" (matrix) or "xy" (first two dims swapped).

    >>> torch.meshgrid(torch.tensor([1, 2]), torch.tensor([3, 4]), indexing="ij")
    (tensor([[1, 1],
            [2, 2]]), tensor([[3, 4],
            [3, 4]]))
    """
    if none_given(tensors):
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    ts = list(_sequence(tensors, "meshgrid"))
    if indexing is None:
        warn_user(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument ('ij' here).",
        )
        indexing = "ij"
    if text_argument(indexing, "meshgrid", "indexing") not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    for t in ts:
        if t.ndim > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {list(t.shape)}")
        if t.dtype is not ts[0].dtype:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same dtype")
    swap = indexing == "xy" and len(ts) > 1
    if swap:
        ts[0], ts[1] = ts[1], ts[0]
    shape = tuple([t._layout.size for t in ts])
    ones = (1,) * (len(ts) - 1)
    grids = [expand(reshape(t, (*ones[:i], -1, *ones[i:])), shape) for i, t in enumerate(ts)]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@public(method=False)
def cartesian_prod(*tensors):
    """Return all combinations of the elements of 1-d tensors as rows. Gradients add up; cartesian_prod([1, 2], [3, 4]) = [[1, 3], [1, 4], [2, 3], [2, 4]]."""
    ts = _sequence(tensors, "cartesian_prod")
    for t in ts:
        if t.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t.shape)}")
    if len(ts) == 1:
        return ts[0]
    return stack([reshape(g, -1) for g in meshgrid(*ts, indexing="ij")], 1)


@public(method=False)
def block_diag(*tensors):
    """Return a matrix with the given ones (at most 2-d) on its diagonal and zeros elsewhere; block_diag([[1, 2]], [3]) = [[1, 2, 0], [0, 0, 3]]."""
    if not tensors:
        return new_empty((1, 0), dtypes.get_default_dtype())
    ts = _sequence(tensors, "block_diag")
    for i, t in enumerate(ts):
        if t.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {t.ndim} dimensions"
            )
    kind = kind_among(ts)  # (one of 0 dims counts less, which `cat` does not know)
    ts = [cast(atleast_2d(t), kind) for t in ts]
    width = sum(t.shape[1] for t in ts)
    rows, start = [], 0
    for t in ts:
        n, k = t.shape
        parts = [new_full((n, start), 0, kind), t, new_full((n, width - start - k), 0, kind)]
        rows.append(cat([p for p in parts if p is t or p.shape[1]], 1) if width else t)
        start += k
    return cat(rows, 0)


# ------------------------------------------------------------------------------------------------- stacks and splits


def _atleast(name: str, grow: Any, rank: int) -> Any:
    def call(*tensors):
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return grow(tensors[0])
        return tuple(grow(t) for t in _sequence(tensors, name)) if not none_given(tensors) else ()

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Return views with at least {rank} dim{'s' if rank > 1 else ''}; of several tensors a tuple; {name}([5.]) = {'[' * rank}5.{']' * rank}."
    return public(method=False)(call)


atleast_1d: Any = _atleast("atleast_1d", lambda t: reshape(t, 1) if not t.ndim else t, 1)
atleast_2d: Any = _atleast("atleast_2d", lambda t: t if t.ndim > 1 else reshape(t, 1, -1), 2)
atleast_3d: Any = _atleast("atleast_3d", lambda t: t if t.ndim > 2 else unsqueeze(t if t.ndim == 2 else reshape(t, 1, -1), -1), 3)


def _joined(name: str, join: Any, doc: str, *aliases: str) -> Any:
    def call(tensors, *, out=None):
        ts = tensors_argument(tensors, name)
        if out is not None:
            check_joined(out, ts, name)
        y = join(ts)
        return y if out is None else store(out, y, name)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return public(*aliases, method=False)(call)


def _columns(ts: Sequence[Tensor]) -> Tensor:
    return cat([reshape(t, -1, 1) if t.ndim < 2 else t for t in ts], 1)


def _beside(ts: Sequence[Tensor]) -> Tensor:
    grown = [atleast_1d(t) for t in ts]
    return cat(grown, 0 if grown[0].ndim == 1 else 1)


hstack: Any = _joined("hstack", _beside, "Join along dim 1 (1-d tensors along dim 0); hstack(([1, 2], [3])) = [1, 2, 3].")
vstack: Any = _joined(
    "vstack", lambda ts: cat([atleast_2d(t) for t in ts], 0), "Join as rows, along dim 0; vstack(([1, 2], [3, 4])) = [[1, 2], [3, 4]].",
    "row_stack",
)  # fmt: skip
dstack: Any = _joined(
    "dstack", lambda ts: cat([atleast_3d(t) for t in ts], 2), "Join along dim 2; dstack(([1, 2], [3, 4])) = [[[1, 3], [2, 4]]]."
)
column_stack: Any = _joined("column_stack", _columns, "Join as columns, 1-d tensors as one each; column_stack(([1, 2], [3, 4])) = [[1, 3], [2, 4]].")


def _split_along(name: str, rank: int, dim: int) -> Any:
    def call(input, indices_or_sections: int | Sequence[int] | Tensor) -> tuple[Tensor, ...]:
        x = tensor_argument(input, name)
        if x.ndim < rank:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {rank} dimension, but got a tensor with {x.ndim} dimensions!"
            )
        d = dim if x.ndim > 1 else 0
        parts = indices_or_sections
        if isinstance(parts, int) and (parts <= 0 or x.shape[d] % parts):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {d}, but the size of the dimension {x.shape[d]} is not "
                f"divisible by the split_size {parts}!"
            )
        return slices(x, d, parts)  # type: ignore[return-value]

    call.__name__ = call.__qualname__ = name
    one = "[" * rank + "1" + "]" * rank
    call.__doc__ = f"Return the `tensor_split` along dim {dim} into equal parts or at indices. RuntimeError if uneven; {name}({one}, 1) = ({one},)."
    return public()(memoized_view(call))


hsplit: Any = _split_along("hsplit", 1, 1)
vsplit: Any = _split_along("vsplit", 2, 0)
dsplit: Any = _split_along("dsplit", 3, 2)
