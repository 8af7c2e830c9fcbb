"""Shapes, strides and layouts: pure integer work that touches no data.

A `Layout` is the interned triple (shape, strides in elements, dtype). Two tensors of one layout share the object, so one
dict lookup on layouts settles dtype promotion, broadcasting and the choice of kernel (see `autograd_nb.launch`).
"""

from __future__ import annotations

import math
import operator
from _weakref import _remove_dead_weakref as _remove_dead  # type: ignore[attr-defined]
from array import array
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, SupportsIndex, overload
from weakref import ref

import numpy as np

from .dtypes import DType, dtype

_INT64 = np.dtype(np.int64)


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple of ints with ``numel()``.

    >>> torch.Size((2, 3)).numel()
    6
    """

    __slots__ = ()

    def __new__(cls, sizes: Iterable[Any] = ()) -> Size:
        """Return the sizes as a shape; TypeError unless all are ints, or stand for one as a tensor of one integer does."""
        self = tuple.__new__(cls, sizes)
        for n in self:
            if n.__class__ is not int:
                return tuple.__new__(cls, [_size(n, i) for i, n in enumerate(self)])
        return self

    def numel(self) -> int:
        """Return the product of the sizes."""
        return numel(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __add__(self, other: Iterable[int]) -> Size:  # type: ignore[override]
        if not isinstance(other, tuple):
            if hasattr(type(other), "__radd__"):
                return NotImplemented
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size")
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other: Iterable[int]) -> Size:
        return Size(other + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, n: SupportsIndex) -> Size:
        return Size(tuple.__mul__(self, n))

    def __rmul__(self, n: SupportsIndex) -> Size:
        return Size(tuple.__mul__(self, n))

    @overload
    def __getitem__(self, key: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, key: slice) -> Size: ...
    def __getitem__(self, key: Any) -> Any:
        return Size(_item(self, key)) if key.__class__ is slice else _item(self, key)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Size, (tuple(self),))


_item = tuple.__getitem__


def _size(n: Any, place: int) -> Any:
    """Return a size as an int; those that stand for a number while a function is captured stay what they are."""
    if isinstance(n, int):
        return int(n) if n.__class__ is bool else n
    try:
        return operator.index(n)
    except TypeError:
        raise TypeError(f"torch.Size() takes an iterable of 'int' (item {place} is '{type(n).__name__}')") from None


class Layout:
    """Shape, strides (in elements) and dtype of a tensor; interned, compare with ``is``.

    ``contiguous``: elements stand in C order without gaps. ``size``: number of elements. ``extent``: how many elements of
    storage it spans. ``sizes``: the shape as a plain tuple, which is quicker to take numbers from. ``usual``: the strides are those
    of C order, also along dims of size 1, where they say nothing.
    """

    shape: Size
    contiguous: bool
    extent: int
    size: int
    dtype: DType
    ndim: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    usual: bool

    __slots__ = ("__weakref__", "_dense", "contiguous", "dtype", "extent", "ndim", "shape", "size", "sizes", "strides", "usual")

    def __init__(self, shape: Size, strides: tuple[int, ...] | None, d: DType):
        self.sizes = sizes = tuple(shape)
        self.shape, self.dtype, self.ndim = shape, d, len(sizes)
        self.size = size = math.prod(sizes)
        steps = contiguous_strides(sizes)
        self.usual = usual = strides is None or strides == steps
        self.strides = steps if strides is None else strides
        if usual:
            self.contiguous, self.extent = True, size
        else:
            self._walk()
        self._dense: Layout | None = None

    def _walk(self) -> None:
        """Set ``contiguous`` and ``extent`` of strides that are not those of C order."""
        step, extent, contiguous = 1, 1, True
        for n, s in zip(self.sizes[::-1], self.strides[::-1]):  # noqa: B905  (strict costs time; a layout is made for each new shape)
            if n != 1:
                if s != step:
                    contiguous = False
                step *= n or 1
                extent += (n - 1) * s
        self.contiguous = contiguous or not self.size
        self.extent = self.size if self.contiguous else extent

    @property
    def dense(self) -> Layout:
        """Return the contiguous layout of the same shape and dtype."""
        if self.contiguous:
            return self  # not kept: a layout that refers to itself would not go when the last that uses it goes
        found = self._dense
        if found is None:
            found = self._dense = layout_of(self.shape, None, self.dtype)
        return found

    def __repr__(self) -> str:
        return f"Layout({tuple(self.shape)}, strides={self.strides}, {self.dtype.name})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (layout_of, (tuple(self.shape), self.strides, self.dtype))


class _Interned(ref):
    """The table's reference to a layout, which lives as long as tensors and plans use it."""

    __slots__ = ("keys",)
    keys: tuple[tuple[Any, ...], ...]


_layouts: dict[tuple[Any, ...], _Interned] = {}
_are_ints = frozenset((int,)).issuperset
_recent: deque[Layout] = deque(maxlen=1000)  #: keeps those alive that only a passing tensor uses, call after call


def layout_of(shape: Sequence[int], strides: Sequence[int] | None, d: dtype) -> Layout:
    """Return the interned layout; ``strides=None`` for the contiguous one."""
    key = (tuple(shape), None if strides is None else tuple(strides), d)
    known = _layouts.get(key)
    if known is not None:
        found = known()
        if found is not None:
            return found
    return _intern(*key)


def _intern(shape: tuple[int, ...], strides: tuple[int, ...] | None, d: dtype) -> Layout:
    """Return the layout that no tensor and no plan uses yet; the contiguous one is found with its strides and without."""
    if not _are_ints(map(type, shape)) or not (strides is None or _are_ints(map(type, strides))):
        shape, strides = _ints(shape), None if strides is None else _ints(strides)
    if strides is not None and len(strides) != len(shape):  # would be found for the shape alone ever after
        lengths = f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(strides)})"
        raise RuntimeError(f"{lengths} (size={list(shape)}, stride={list(strides)})")
    made = Layout(tuple.__new__(Size, shape), strides, d)
    key = (shape, made.strides, d)
    while True:
        known = _Interned(made, _forget)
        known.keys = ((shape, None, d), key) if made.usual else (key,)
        kept = _layouts.setdefault(key, known)  # another thread may have been quicker
        found = made if kept is known else kept()
        if found is None:  # on its way out
            _forget(kept)
            continue
        if made.usual:
            _layouts[kept.keys[0]] = kept
        _recent.append(found)
        return found


def _ints(values: tuple[int, ...]) -> tuple[int, ...]:
    """Return the same with ints only: True, 1.0 and NumPy's 1 are found under the same key as 1, ever after."""
    return tuple([int(n) if n.__class__ is bool else as_int(n, "size") for n in values])


def _forget(gone: _Interned) -> None:
    for key in gone.keys:
        _remove_dead(_layouts, key)  # in one step: another thread may just have interned it anew


def numel(shape: Iterable[int]) -> int:
    n = 1
    for s in shape:
        n *= s
    return n


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    if len(shape) < 3:
        return (shape[1] or 1, 1) if len(shape) == 2 else (1,) * len(shape)
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n or 1
    strides.reverse()
    return tuple(strides)


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    expected = 1
    for n, s in zip(reversed(shape), reversed(strides), strict=True):
        if n != 1:
            if s != expected:
                return 0 in shape
            expected *= n
    return True


def as_int(value: Any, name: str) -> int:
    """Return ``value`` as an int (Python or NumPy integer, or a one-element integer tensor), else TypeError."""
    if type(value) is int:
        if -(1 << 63) <= value < 1 << 63:
            return value
        raise ValueError(f"Overflow when unpacking long long: {name} must fit in 64 bits ({name}={value})")
    if isinstance(value, (bool, float, str)) or value is None:
        raise TypeError(f"{name} must be an int, not {type(value).__name__} ({name}={value!r})")
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int, not {type(value).__name__}") from None


def as_ints(values: Iterable[Any], name: str, op: str) -> tuple[int, ...]:
    """Return several ints of an op. TypeError for what is none and for what does not fit 64 bits (a bool counts as one behind the first)."""
    out = []
    for k, v in enumerate(values):
        try:
            out.append(int(v) if v.__class__ is bool and k else as_int(v, name))
        except (TypeError, ValueError) as error:
            raise TypeError(f"{op}(): argument '{name}' must be tuple of ints: failed to unpack the object at pos {k + 1}: {error}") from None
    return tuple(out)


def as_shape(args: Sequence[Any], name: str = "size", op: str = "") -> tuple[int, ...]:
    """Return the sizes that are given as ``f(2, 3)``, ``f((2, 3))``, ``f([2, 3])`` or ``f(Size)``.

    op: what has been called; TypeError then where it was given nothing, as no dims are asked for as ``f(())``.
    """
    if op and not args:
        raise TypeError(f'{op}() missing 1 required positional arguments: "{name}"')
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        args = args[0]
    elif len(args) == 1 and hasattr(args[0], "__iter__") and not hasattr(args[0], "_layout"):
        args = tuple(args[0])
    for a in args:
        if a.__class__ is not int:
            return tuple([int(a) if a.__class__ is bool and i else as_int(a, name) for i, a in enumerate(args)])
    return tuple(args)


def check_sizes(shape: Sequence[int]) -> None:
    for n in shape:
        if n < 0:
            as_ints(shape, "size", "empty")
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(shape)}")
    count = math.prod(shape)
    if not count and math.prod([n or 1 for n in shape[1:]]) >= 1 << 63:
        raise RuntimeError(f"Stride calculation overflowed with sizes={list(shape)}")
    if count >= 1 << 60:
        as_ints(shape, "size", "empty")
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")


def wrap_dim(dim: Any, ndim: int, name: str = "dim") -> int:
    """Return ``dim`` counted from the front. IndexError when out of range."""
    d = dim if type(dim) is int else as_int(dim, name)
    n = max(ndim, 1)
    if not -n <= d < n:
        as_int(d, name)
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {d}) ({name}={dim})")
    return d + n if d < 0 else d


def wrap_dims(dims: Any, ndim: int, name: str = "dim") -> tuple[int, ...]:
    """Return one dim, several, or None for all, counted from the front and without repeats."""
    if dims is None:
        return tuple(range(ndim))
    if not isinstance(dims, (tuple, list)):
        return (wrap_dim(dims, ndim, name),) if ndim else (wrap_dim(dims, ndim, name),)[:0]
    try:
        out = [wrap_dim(d, ndim, name) for d in dims]
    except ValueError as error:
        raise TypeError(f"argument '{name}' must be tuple of ints: {error}") from None
    if len(set(out)) != len(out):
        raise RuntimeError(f"dim {next(d for d in out if out.count(d) > 1)} appears multiple times in the list of dims")
    return tuple(out) if ndim else ()


def broadcast_shapes(*shapes: Sequence[int]) -> Size:
    """Return the shape to which all ``shapes`` broadcast (NumPy's rule: sizes align from the right, 1 stretches)."""
    if not shapes:
        return Size(())
    first = shapes[0]
    for other in shapes:
        if other is not first and other != first:
            break
    else:
        return first if first.__class__ is Size else Size(first)
    rank = max(map(len, shapes))
    out = [1] * rank
    for shape in shapes:
        sizes = tuple(shape)  # plain ones are quicker to take numbers from
        for i in range(1, len(sizes) + 1):
            n, have = sizes[-i], out[-i]
            if n == have or n == 1:
                continue
            if have != 1:
                raise RuntimeError(
                    f"The size of tensor a ({have}) must match the size of tensor b ({n}) at non-singleton dimension "
                    f"{rank - i} (shapes {', '.join(str(list(s)) for s in shapes)})"
                )
            out[-i] = n
    return Size(out)


def broadcast_strides(layout: Layout, shape: Sequence[int]) -> tuple[int, ...]:
    """Return element strides that read ``layout`` as if it had ``shape`` (0 along stretched dims)."""
    sizes = layout.sizes
    if sizes == shape:
        return layout.strides
    lead = len(shape) - len(sizes)
    if not sizes:
        return (0,) * lead
    own = [0 if n == 1 and shape[i] != 1 else s for i, (n, s) in enumerate(zip(sizes, layout.strides), lead)]  # noqa: B905
    return (*[0] * lead, *own)


def broadcast_columns(layouts: Iterable[Layout], shape: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the `broadcast_strides` of several layouts, by dim."""
    sizes = tuple(shape)
    still = (0,) * len(sizes)
    rows = [
        layout.strides if layout.sizes == sizes else still if layout.size == 1 else broadcast_strides(layout, sizes) for layout in layouts
    ]
    return list(zip(*rows))  # noqa: B905  (strict costs time, and this is done for each new shape)


def expanded_strides(layout: Layout, shape: Sequence[int]) -> tuple[int, ...]:
    """Return `broadcast_strides` as `expand` writes them: a new dim of size 1 steps over the dims behind it, as in PyTorch."""
    strides = list(broadcast_strides(layout, shape))
    for d in range(len(shape) - layout.ndim - 1, -1, -1):
        if shape[d] == 1 and layout.ndim:
            strides[d] = shape[d + 1] * strides[d + 1]
    return tuple(strides)


def coalesce(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Drop dims of size 1 and merge neighbours that every operand walks in one stride."""
    return merged(shape, zip(*strides), len(strides))  # noqa: B905  (strict costs time, and this is done for each new shape)


def merged(shape: Sequence[int], columns: Iterable[tuple[int, ...]], count: int) -> tuple[list[int], list[list[int]]]:
    """Return `coalesce` of ``count`` operands' strides given by dim."""
    sizes: list[int] = []
    steps: list[tuple[int, ...]] = []  # by dim
    last: tuple[int, ...] | None = None
    for n, here in zip(shape, columns):  # noqa: B905
        if n == 1:
            continue
        if last is not None:
            for s, before in zip(here, last):  # noqa: B905
                if s * n != before:
                    break
            else:
                sizes[-1] *= n
                steps[-1] = last = here
                continue
        sizes.append(n)
        steps.append(here)
        last = here
    return sizes, list(map(list, zip(*steps))) if steps else [[] for _ in range(count)]  # noqa: B905


def sort_dims(columns: Sequence[Sequence[int]]) -> list[int]:
    """Return an order of the dims that puts the widest strides outermost, judged by the last operand (the output), then the rest.

    ``columns``: the operands' strides by dim.
    """
    keys = [[-abs(here[-1]), *[-abs(s) for s in here[:-1]]] for here in columns]
    return sorted(range(len(keys)), key=keys.__getitem__)


def dims_array(sizes: Sequence[int], strides: Sequence[Sequence[int]]) -> np.ndarray:
    """Return the ``dims`` argument of strided kernels: sizes, then the strides operand by operand."""
    return np.frombuffer(Dims("q", [*sizes, *chain.from_iterable(strides)]), _INT64)


class Dims(array):
    """The memory of a ``dims`` argument, which belongs to a plan and to no tensor: what it holds never changes."""

    @classmethod
    def holds(cls, argument: np.ndarray) -> bool:
        """Return whether an array lies in such memory."""
        base: Any = argument.base
        return base.__class__ is memoryview and base.obj.__class__ is cls


def view_strides(layout: Layout, shape: Sequence[int]) -> tuple[int, ...] | None:
    """Return the strides under which the same storage reads as ``shape`` (of the same size), or None where only a copy can.

    Both shapes are walked from the right, in runs that the layout walks in one stride; dims of one element have PyTorch's strides.
    """
    if layout.usual or layout.size == 0:
        return contiguous_strides(shape)
    sizes, steps = layout.sizes, layout.strides
    out = [0] * len(shape)
    d = len(shape) - 1
    base, run, taken = steps[-1], 1, 1
    for i in range(layout.ndim - 1, -1, -1):
        run *= sizes[i]
        if i and (sizes[i - 1] == 1 or steps[i - 1] == run * base):
            continue
        while d >= 0 and (taken < run or shape[d] == 1):
            out[d] = taken * base
            taken *= shape[d]
            d -= 1
        if taken != run:
            return None
        if i:
            base, run, taken = steps[i - 1], 1, 1
    return tuple(out)


def infer_shape(shape: Sequence[int], size: int) -> tuple[int, ...]:
    """Return ``shape`` with its one -1 filled in so that it has ``size`` elements."""
    rest, hole, holes = 1, -1, 0
    for i, n in enumerate(shape):
        if n >= 0:
            rest *= n
        elif n == -1:
            hole = i
            holes += 1
        else:
            raise RuntimeError(f"invalid shape dimension {min(shape)} in shape {list(shape)}")
    if holes > 1:
        raise RuntimeError(f"only one dimension can be inferred (shape {list(shape)})")
    if holes:
        if rest == 0:
            raise RuntimeError(
                f"cannot reshape tensor of {size} elements into shape {list(shape)} because the unspecified dimension size -1 "
                "can be any value and is ambiguous"
            )
        if size % rest == 0:
            return (*shape[:hole], size // rest, *shape[hole + 1 :])
    elif rest == size:
        return tuple(shape)
    raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {size}")


def is_expanded(layout: Layout) -> bool:
    """Return whether a dim of more than one element has stride 0: what PyTorch knows to overlap itself, and refuses to write into.

    Other overlaps (`unfold`, `as_strided`) it leaves to the user, and so do we.
    """
    strides = layout.strides
    return 0 in strides and layout.size > 0 and any(not s and n > 1 for s, n in zip(strides, layout.shape, strict=True))


def overlaps_itself(layout: Layout) -> bool:
    """Return whether two indices may refer to one element (an expanded tensor), judged as PyTorch does: dims sorted by stride."""
    if layout.contiguous or layout.size <= 1:
        return False
    dims = sorted((s, n) for n, s in zip(layout.shape, layout.strides, strict=True) if n > 1)
    reach = 0
    for s, n in dims:
        if s <= reach:
            return True
        reach += (n - 1) * s
    return False
