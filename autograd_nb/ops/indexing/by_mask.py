"""Boolean masks as integers: the places of what is true, and the elements picked there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes, launch
from ...codegen import threads
from ...graph.modes import state
from ...graph.node import tensor_lines
from ...launch import Kernel
from ...shapes import Dims, as_int, layout_of
from ...tensor import Tensor, make
from ..core.call_path import known, shortcut
from ..core.memo import Memo, ordinary
from ..core.recording import guarded, mark_inference, store
from ..core.registry import OPS, public
from ..core.structured import Structured, structured, tensor_argument
from ..creation.cast import dense
from ..creation.create import new_empty
from ..shape.shape import reshape
from .picking import _pick, places

_count_true = Kernel("indexing.index", "count_true")
_true_places = Kernel("indexing.index", "true_places")
_unravel = Kernel("indexing.index", "unravel")
_first_true = Kernel("indexing.index", "first_true")

_INT = np.dtype(np.int64)
_masks, _picked = Memo(), Memo()


def _changed() -> RuntimeError:
    return RuntimeError("a mask was changed by another thread while its true elements were looked up")


def _places_of(mask: Tensor) -> Tensor:
    """Return `true_indices` of a mask whose like was not seen."""
    flat = dense(mask)
    found = np.empty(1, _INT)
    _count_true(0, flat, found)
    launch.escapes("nonzero() or a boolean mask, whose size depends on them")
    out = new_empty((int(found[0]),), dtypes.int64)
    if out._layout.size:
        _true_places(0, flat, out._data, found)
        if found[0] != out._layout.size:
            raise _changed()
    layout = mask._layout
    if ordinary(layout) and layout.contiguous and layout.size:
        _masks.keep((layout,), (_count_true.entry(0, flat, found), _true_places.entry(0, flat, out._data, found), layout.size))
    return out


#: set ``data`` to the flat indices, and ``n`` to their number, of what is true in the memory ``at``, of which ``size`` elements count
_PLACES = [
    "if at.size != size:",
    "    at = at[:size]",
    "found = _empty(1, _INT)",
    "count(at, found)",
    "n = found.item()",
    "data = _allocate(n, _INT)",
    "if n:",
    "    places(at, data, found)",
    "    if found.item() != n:",
    "        raise _changed()",
]
_PLACED: dict[str, Any] = {"_INT": _INT, "_layout_of": layout_of, "_int64": dtypes.int64, "_changed": _changed}

#: true_indices(mask): the flat indices (C order) of the true elements, a 1-d int64 tensor
true_indices: Callable[[Tensor], Tensor] = shortcut(
    "mask", "mask._layout,",
    [
        "count, places, size = plan",
        "at = mask._data",
        *_PLACES,
        *tensor_lines("_layout_of((n,), None, _int64)"),
        "return t",
    ],
    ["return _slow(mask)"], memo=_masks, _slow=_places_of, **_PLACED,
)  # fmt: skip


def _plan(x: Tensor, mask: Tensor) -> tuple[Any, ...] | None:
    """Return what `picked_by_mask` does, or None where there is more to it: transforms, observers, other orders in memory, threads."""
    layout, over = x._layout, mask._layout
    k = over.ndim
    if not ordinary(layout, over) or over.dtype is not dtypes.bool_ or not k or not layout.size or over.shape != layout.shape[:k]:
        return None
    if not (layout.usual or layout.ndim - k < 2) or not threads.alone(threads.PICKED * layout.size):
        return None
    dims = tuple(range(k))
    p = places(layout, dims, 0)
    if not p.direct:
        return None
    kind = layout.dtype
    pick = _pick.entry(kind.carrier, p.loops, x._data, np.empty(0, _INT), np.empty(0, kind.carrier))
    return _picked.keep((layout, over), (pick, p.loops, dims, layout.shape[k:], kind))  # type: ignore[no-any-return]


#: picked_by_mask(op, x, mask, kept): ``op(x, index, dims, 0)`` at the places where a mask over the first dims holds, or None where there is
#: more to it; changing one of ``kept`` is refused before a backward pass
picked_by_mask: Callable[[Structured, Tensor, Tensor, tuple[Tensor, ...]], Tensor | None] = shortcut(
    "op, x, mask, kept", "x._layout, mask._layout",
    [
        "pick, loops, dims, rest, kind = plan",
        "index = _true_indices(mask)",
        "layout = _layout_of((index._layout.size, *rest), None, kind)",
        "data = _allocate(layout.size, kind.carrier)",
        "if layout.size:",
        "    pick(loops, x._data, index._data, data)",
        *tensor_lines("layout"),
        "if _state.grad:",
        "    if x._rg or x._view is not None:",
        "        op.record((x, index, dims, 0), t)",
        "        _guarded(t, *kept)",
        "elif _state.inference:",
        "    _mark_inference(t)",
        "return t",
    ],
    ["plan = _plan(x, mask)", "if plan is None:", "    return None"],
    memo=_picked, _plan=_plan, _true_indices=true_indices, _layout_of=layout_of, _guarded=guarded,
)  # fmt: skip


def _sizes(x: Tensor) -> np.ndarray:
    return np.array(x._layout.shape, _INT)


def _coordinates(flat: Tensor, sizes: np.ndarray) -> Tensor:
    """Return a row for each flat index into a tensor of these sizes; columns lie in one piece, as PyTorch has them."""
    n, k = flat._layout.size, sizes.size
    if not (n and k):
        return make(launch.empty(0, _INT), layout_of((n, k), (1, n), dtypes.int64), [0, 0])
    if k == 1:
        return make(flat._data, layout_of((n, 1), (1, n), dtypes.int64), flat._version_)
    out = make(launch.empty(n * k, _INT), layout_of((n, k), (1, n), dtypes.int64), [0, 0])
    args = (flat._data, 0, n, sizes, out._data)
    if n * k < threads.WORTH // threads.COPIED or threads.alone(threads.COPIED * n * k):
        _unravel(0, *args)
    else:
        _unravel.split(0, args, _coordinate_parts)
    return out


def _coordinate_parts(args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    flat, _, n, sizes, out = args
    return [(flat, i, j, sizes, out) for i, j in threads.pieces(n, threads.COPIED * out.size)]


def _places_in(x: Tensor) -> Tensor:
    """Return the flat indices of the elements that are not zero."""
    return true_indices(x if x._layout.dtype is dtypes.bool_ else OPS["ne"].call(x, 0))


@structured(linear="no", batch="samples", samples="mask(3, 4).nonzero()")
def _nonzero(x):
    return _coordinates(_places_in(x), _sizes(x))


def _run(sizes: np.ndarray, input: Tensor) -> Tensor:
    y = _coordinates(_places_in(input), sizes)
    if state.inference:
        mark_inference(y)
    return y


def _plan_coordinates(checked: bool, input: Any) -> Any:
    """Return the sizes of an operand, and of one in C order what else its coordinates are made with."""
    layout = input._layout
    if not checked:
        return None
    sizes = _sizes(input)
    if not layout.contiguous or not layout.size or not layout.ndim:
        return (sizes,)
    mask, ints = np.empty(1, np.bool_), np.empty(1, _INT)
    count, places_of = _count_true.entry(0, mask, ints), _true_places.entry(0, mask, ints, ints)
    unravel = _unravel.entry(0, ints, 0, 1, sizes, ints) if layout.ndim > 1 else None
    return sizes, layout.ndim, layout.size, layout.dtype is not dtypes.bool_, count, places_of, unravel


def _plan_by_dim(checked: bool, input: Any) -> Any:
    """Return the same, where there are dims."""
    return _plan_coordinates(checked, input) if input._layout.ndim else None


def _coordinate_lines(result: str) -> list[str]:
    """Return the lines that run a plan of coordinates, a tensor ``t``, and return ``result``."""
    return [
        "if len(plan) == 1:",
        "    t = _coordinates_of(plan[0], input)",
        f"    return {result}",
        "sizes, k, size, number, count, places, unravel = plan",
        "at = _ne(input, 0)._data if number else input._data",
        *_PLACES,
        "if n and k > 1:",
        "    if not _alone(_COPIED * n * k):",
        "        t = _coordinates_of(sizes, input)",
        f"        return {result}",
        "    flat, data = data, _allocate(n * k, _INT)",
        "    unravel(flat, 0, n, sizes, data)",
        *tensor_lines("_layout_of((n, k), (1, n), _int64)"),
        "if _state.inference:",
        "    _mark_inference(t)",
        f"return {result}",
    ]


_COORDINATES: dict[str, Any] = {"_coordinates_of": _run, "_ne": OPS["ne"].call, "_alone": threads.alone, "_COPIED": threads.COPIED, **_PLACED}


@known("input._layout", _plan_by_dim, _coordinate_lines("_columns(t, 1)"), _columns=OPS["unbind"].call, **_COORDINATES)
def _by_dim(input):
    """Return a 1-d tensor for each dim: the coordinates there of the elements that are not zero."""
    x = tensor_argument(input, "nonzero")
    return tuple(OPS["unbind"].call(OPS["nonzero"].call(x if x.ndim else reshape(x, 1)), 1))


@public()
@known("input._layout", _plan_coordinates, _coordinate_lines("t"), takes=("input",), **_COORDINATES)
def nonzero(input, *, out=None, as_tuple=False):
    """Return the indices of the elements that are not zero: one row each, or with ``as_tuple`` one 1-d tensor per dim.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nonzero.html

    >>> torch.nonzero(torch.tensor([0, 4, 0, 5]))
    tensor([[1],
            [3]])
    """
    x = tensor_argument(input, "nonzero")
    if as_tuple:
        if out is not None:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        return _by_dim(x)
    y = _nonzero(x)
    if out is None:
        return y
    return store(out, y, "nonzero", (x,))


nonzero.by_dim = _by_dim  # type: ignore[attr-defined]


@structured(linear="no", batch="samples", samples="torch.nonzero_static(mask(3, 4), size=5)")
def _nonzero_static(x, n, fill_value):
    layout = layout_of((n, x.ndim), None, dtypes.int64)
    data = launch.empty(layout.size, _INT)
    if layout.size:
        mask = x if x.dtype is dtypes.bool_ else OPS["ne"].call(x, 0)
        _first_true(0, dense(mask), n, fill_value, np.frombuffer(Dims("q", x.shape), _INT), data)
    return make(data, layout, [0, 0])


@public()
def nonzero_static(input, *, size, fill_value=-1):
    """Return `nonzero` with ``size`` rows: further ones are cut off, missing ones are ``fill_value``.

    Errors: RuntimeError for a negative size.

    >>> torch.nonzero_static(torch.tensor([0, 1, 1]), size=2)
    tensor([[1],
            [2]])
    """
    x = tensor_argument(input, "nonzero_static")
    n = as_int(size, "size")
    if n < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer (size={size})")
    return _nonzero_static(x, n, as_int(fill_value, "fill_value"))


@public()
def argwhere(input):
    """Return `nonzero`, one row per element that is not zero; argwhere([0, 1, 1]) = [[1], [2]]."""
    return nonzero(tensor_argument(input, "argwhere"))
