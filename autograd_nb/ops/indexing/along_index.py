"""Launches of what reads or writes along one dim by an index of all dims: from layouts to the kernels' numbers, and in pieces for threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...codegen import threads
from ...launch import Kernel
from ...shapes import Layout, coalesce, numel
from ...tensor import Tensor
from ..core.call_path import planned
from ..creation.cast import cast, clone, dense
from ..shape.parts import _slice

_gather_kernel = Kernel("indexing.index", "gather")
GATHER_WITHIN = Kernel("indexing.index", "gather_within")
_scatter_kernel = Kernel("indexing.index", "scatter")

SET, ADD, MUL, MAX, MIN = range(5)
NARROW = 8  #: elements at each place, from which on each thread may look at all indices for those that are its


@planned
def geometry(layout: Layout, shape: Sequence[int], d: int) -> tuple[Any, ...] | None:
    """Return the nine numbers of the kernels' ``dims`` for walking ``layout`` over the index's ``shape``, or None for too many loops."""
    b, (bs,) = coalesce(shape[:d], [layout.strides[:d]])
    a, (as_,) = coalesce(shape[d + 1 :], [layout.strides[d + 1 :]])
    if len(b) > 2 or len(a) > 2:
        return None
    tail = [0] * (2 - len(a)) + as_ if as_ else [0, 1]
    return (*[1] * (2 - len(b)), *b, *[1] * (2 - len(a)), *a, *[0] * (2 - len(b)), *bs, layout.strides[d], *tail)


@planned
def index_steps(layout: Layout, d: int) -> tuple[int, int, int] | None:
    """Return the strides of an index by all dims before ``d``, by that, and by all behind it (0 or 1); None where there is no such."""
    _, (before,) = coalesce(layout.shape[:d], [layout.strides[:d]])
    _, (behind,) = coalesce(layout.shape[d + 1 :], [layout.strides[d + 1 :]])
    if len(before) > 1 or len(behind) > 1 or (behind and behind[0] not in (0, 1)):
        return None
    return before[0] if before else 0, layout.strides[d], behind[0] if behind else 1


def _narrowed(x: Tensor, shape: Sequence[int], d: int) -> Tensor:
    """Return ``x`` cut to ``shape`` in all dims but ``d``."""
    for k, n in enumerate(shape):
        if k != d and x._layout.shape[k] != n:
            x = _slice(x, k, 0, n, 1)
    return x


def gather_into(out: np.ndarray, x: Tensor, d: int, index: Tensor) -> None:
    """Write the elements of ``x`` that an index names along ``d``."""
    shape, kind = index._layout.shape, x._layout.dtype.carrier
    loops = geometry(x._layout, shape, d)
    if loops is None:
        x = clone(_narrowed(x, shape, d))
        loops = geometry(x._layout, shape, d)
    steps = index_steps(index._layout, d)
    if steps is None:
        index = clone(index)
        steps = index_steps(index._layout, d)
    args = (loops, steps, shape[d], x._data, index._data, out)
    if threads.alone(threads.PICKED * out.size):
        _gather_kernel(kind, *args)
    else:
        _gather_kernel.split(kind, args, _gather_parts)


def _gather_parts(args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return the pieces of a gather, of the outermost dim before the indexed one."""
    dims, steps, count, x, index, out = args
    n0, n1, m0, m1, s0, s1 = dims[:6]
    by, one, work = steps[0], count * m0 * m1, threads.PICKED * out.size
    if n0 * n1 == 1 and count > 1:
        by, one = steps[1], m0 * m1
        return [(dims, steps, j - i, x, index[i * by :], out[i * one : j * one]) for i, j in threads.pieces(count, work)]
    if n0 == 1:
        return [
            ((1, j - i, *dims[2:]), steps, count, x[i * s1 :], index[i * by :], out[i * one : j * one]) for i, j in threads.pieces(n1, work)
        ]
    by, one = by * n1, one * n1
    return [((j - i, *dims[1:]), steps, count, x[i * s0 :], index[i * by :], out[i * one : j * one]) for i, j in threads.pieces(n0, work)]


def scatter_into(x: Tensor, d: int, index: Tensor, src: Tensor, mode: int) -> None:
    """x[…, index, …] (op)= src in memory, without history; ``src`` has the index's shape or one element."""
    shape = index._layout.shape
    if not numel(shape):
        return
    if x.dtype.is_half and mode != SET:
        wide = cast(x, dtypes.float32)
        scatter_into(wide, d, index, cast(src, dtypes.float32), mode)
        x.copy_(wide)
        return
    if mode >= MAX and x.dtype.is_complex:
        raise NotImplementedError("scatter(): the largest and smallest of complex numbers are not defined (reduce amax, amin)")
    loops = geometry(x._layout, shape, d)
    if loops is None:
        part = _narrowed(x, shape, d)
        copy = clone(part)
        scatter_into(copy, d, index, src, mode)
        part.copy_(copy)
        return
    if src._layout.size == 1:
        strides = (0, 0, 0, 0, 0)
    else:
        _, n1, m0, m1 = loops[:4]
        row = m0 * m1
        strides = (shape[d] * row * n1, shape[d] * row, row, m1, 1)
    steps = index_steps(index._layout, d)
    if steps is None:
        index = clone(index)
        steps = index_steps(index._layout, d)
    args = ((*loops, *strides, 0, 1), steps, mode, shape[d], dense(src), index._data, x._data)
    if threads.alone(threads.PICKED * numel(shape)):
        _scatter_kernel(x.dtype.carrier, *args)
    else:
        _scatter_kernel.split(x.dtype.carrier, args, _scatter_parts)


def _scatter_parts(args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return the pieces of a scatter: of the outermost dim before the indexed one, of the places where an index holds for all behind it, or of
    the last dim. No two of them write to one place, and what meets in one meets in the same order."""
    dims, steps, mode, count, value, index, out = args
    n0, n1, m0, m1, s0, s1, _, _, t1, v0, v1, _, _, w1, *_ = dims
    by, number = steps[0], threads.settings.threads
    if n0 * n1 < 2 * number:
        if steps[2] == 0 and m0 * m1 >= NARROW:
            return [((*dims[:14], turn, number), *args[1:]) for turn in range(number)]
        if n0 * n1 * m0 == 1:
            cuts = threads.cut(m1, number, threads.aligned([out]))
            return [
                ((1, 1, 1, j - i, *dims[4:]), steps, mode, count, value[i * w1 :], index[i * steps[2] :], out[i * t1 :]) for i, j in cuts
            ]
    if n0 == 1:
        cuts = threads.cut(n1, number)
        return [((1, j - i, *dims[2:]), steps, mode, count, value[i * v1 :], index[i * by :], out[i * s1 :]) for i, j in cuts]
    cuts = threads.cut(n0, number)
    return [((j - i, *dims[1:]), steps, mode, count, value[i * v0 :], index[i * by * n1 :], out[i * s0 :]) for i, j in cuts]


class GatheredWithin(threads.Split):
    """A gather that looks whether the indices are in range, in pieces."""

    __slots__ = ()

    def parts(self, args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        dims, steps, count, n, x, index, _, out = args
        found = []
        for own, _, few, x_part, part, out_part in _gather_parts((dims, steps, count, x, index, out)):
            read = few * steps[1] if few < count else own[0] * own[1] * steps[0]  # of an expanded index all read the same
            found.append((own, steps, few, n, x_part, part, part[:read] if read else part, out_part))
        return found
