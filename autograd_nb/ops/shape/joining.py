"""Joining tensors along a dim: a handful of parts in one launch, found by their layouts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate
from operator import attrgetter
from typing import Any

import numpy as np

from ... import launch
from ...codegen import threads
from ...codegen.templates.loops import HEADER, storage
from ...graph.node import finish, tensor_lines
from ...graph.noted import Notes
from ...shapes import Dims, Layout, Size, layout_of, numel
from ...tensor import Tensor
from ..core.call_path import shortcut, unrecorded_lines
from ..core.memo import Memo
from ..core.recording import gather

ARITIES = (2, 4, 8)  #: how many parts the kernels take; what is missing has no elements


@cache
def _source(parts: int) -> str:
    """Return ``kernel(dims, a0, a1, …, o)``: in every row of ``o`` the rows of the parts one behind the other.

    ``dims``: the number of rows, the length of a row of ``o``, and that of each part's rows.
    """
    each = range(parts)
    lines = ["def kernel(dims, " + "".join(f"a{k}, " for k in each) + "o):"]
    lines += [f"    n{k} = dims[{k + 2}]" for k in each]
    lines += ["    for j in range(dims[0]):", "        at = j * dims[1]"]
    for k in each:
        lines += [
            f"        copy(row(o, at, n{k}, 1), row(a{k}, j * n{k}, n{k}, 1), n{k})",
            f"        at += n{k}",
        ]
    return HEADER + "from autograd_nb.codegen.runtime import copy, row\n\n\n" + "\n".join(lines) + "\n"


class _Rows(threads.Split):
    """Rows that are joined, in pieces; the first argument holds how many there are, and the elements of a row of the result and of each part."""

    __slots__ = ()

    def parts(self, args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        dims, *parts, out = args
        rows, width, *widths = dims.tolist()
        found, work = [], threads.COPIED * out.size
        if rows == 1:  # which is cut itself
            for i, j in threads.pieces(width, work, threads.ALIGN):
                ends = [*accumulate(widths)]
                taken = [a[min(max(i - e + w, 0), w) : min(max(j - e + w, 0), w)] for a, w, e in zip(parts, widths, ends, strict=True)]
                found.append((np.array([1, j - i, *[a.size for a in taken]]), *taken, out[i:j]))
            return found
        for i, j in threads.pieces(rows, work):
            own = dims.copy()
            own[0] = j - i
            found.append((own, *[a[i * w : j * w] for a, w in zip(parts, widths, strict=True)], out[i * width :]))
        return found


class Join:
    """The way in which parts of given layouts are joined at dim ``d``.

    ``launches``: (kernel, dims, the parts that it takes, how many it lacks, where the first goes); ``entry`` and ``dims`` are those
    of the only one, where it lacks none.
    """

    d: int
    dims: np.ndarray
    out: Layout
    size: Any

    __slots__ = ("carrier", "d", "dims", "entry", "launches", "out", "shapes", "size")
    carrier: np.dtype[Any]
    shapes: tuple[Size, ...]

    def __init__(self, layouts: Sequence[Layout], d: int, out: Layout, shared: bool):
        self.d, self.out, self.size, self.carrier = d, out, out.size, out.dtype.carrier
        self.shapes = tuple([layout.shape for layout in layouts])
        rows = numel(out.sizes[:d])
        sizes = [layout.size // rows for layout in layouts]
        self.launches: list[tuple[Callable[..., Any], np.ndarray, slice, int, int]] = []
        kind = f"{storage(out.dtype.name)}[:]"
        for first in range(0, len(sizes), ARITIES[-1]):
            taken = sizes[first : first + ARITIES[-1]]
            arity = ARITIES[bisect_left(ARITIES, len(taken))]
            entry: Callable[..., Any] = launch.entry(_source(arity), "kernel", ("int64[:]", *[kind] * (arity + 1)), "cat")
            if shared:
                entry = _Rows(entry)
            missing = arity - len(taken)
            dims = np.frombuffer(Dims("q", [rows, out.size // rows, *taken, *[0] * missing]), np.int64)
            self.launches.append((entry, dims, slice(first, first + len(taken)), missing, sum(sizes[:first])))
        self.entry: Callable[..., Any] | None
        self.entry, self.dims, _, missing, _ = self.launches[0]
        if missing or len(self.launches) > 1:
            self.entry = None

    def run(self, parts: Sequence[Tensor], out: np.ndarray) -> None:
        for entry, dims, which, missing, start in self.launches:
            arrays = [t._data for t in parts[which]]
            entry(dims, *arrays, *arrays[:1] * missing, out[start:] if start else out)


def join(parts: Sequence[Tensor], d: int, shape: Sequence[int]) -> Join | None:
    """Return how parts like these are joined to ``shape``, side by side from dim ``d`` on, where one launch pays.

    Not where a compiler watches, which can do without copies that it sees one by one.
    """
    kind = parts[0]._layout.dtype
    out = layout_of(shape, None, kind)
    alone = threads.alone(threads.COPIED * out.size)
    if not out.size or (launch.observing() and not (alone and isinstance(launch.observer(), Notes))):
        return None
    layouts = [t._layout for t in parts]
    for layout in layouts:
        if not layout.contiguous or layout.dtype is not kind or layout.__class__ is not Layout:
            return None
    return Join(layouts, d, out, not alone)


_layout_of, _data_of = attrgetter("_layout"), attrgetter("_data")


_NO_PARTS = ["if dim.__class__ is not int or (parts.__class__ is not list and parts.__class__ is not tuple):", "    return None"]
_PARTS = [
    "pair = len(parts) == 2",
    "if pair:",
    "    a, b = parts",
    "    key = dim, a._layout, b._layout",
    "else:",
    "    key = dim, *map(_layout_of, parts)",
]
_JOIN = [
    "data = _allocate(plan.size, plan.carrier)",
    "if pair:",
    "    plan.entry(plan.dims, a._data, b._data, data)",
    "elif plan.entry is not None:",
    "    plan.entry(plan.dims, *map(_data_of, parts), data)",
    "else:",
    "    plan.run(parts, data)",
    *tensor_lines("plan.out"),
    *unrecorded_lines(),
    "for x in parts:",
    "    if x._rg or x._view is not None:",
    "        _record(plan, parts, t)",
    "        break",
    "return t",
]


class Joins:
    """The plans of an op that joins: by the dim as the user wrote it and the parts' layouts."""

    op: Any
    memo: Memo

    def __init__(self, op: Any):
        self.op, self.memo = op, Memo()
        #: find(dim, parts): the parts joined and recorded, or None where there is no plan for them
        self.find: Callable[[Any, Any], Tensor | None] = shortcut(
            "dim, parts", "key", _JOIN, ["return None"], memo=self.memo, first=_NO_PARTS, before=_PARTS, _layout_of=_layout_of,
            _data_of=_data_of, _record=self._record,
        )  # fmt: skip

    def first(self, dim: Any, parts: Sequence[Tensor], d: int, shape: Sequence[int]) -> Tensor | None:
        """Remember how parts like these are joined to ``shape``, and join them, where one launch pays."""
        plan = join(parts, d, shape) if dim.__class__ is int else None
        if plan is None:
            return None
        self.memo.keep((dim, *map(_layout_of, parts)), plan)
        return self.find(dim, parts)

    def _record(self, plan: Join, parts: Sequence[Tensor], y: Tensor) -> None:
        """Do what `Structured.record` does, of which here all but the edges is known."""
        mask, edge_kind, edges = gather(parts)
        if mask and plan.out.dtype.category >= 2:
            node = self.op.node()
            node.edges, node.edge_kind = edges, edge_kind
            node.recording = self.op.recording(mask, 1, (0, len(edges)))
            node.values, node.out_layout = {"tensors_shape": plan.shapes, "d": plan.d}, plan.out
            node.saved, node.versions, node.stamp = None, (), 0
            finish(node, 4)
            y._edge, y._rg = node, True
