"""Values moved along one dim by index; the gradients of everything that picks elements (max, min, cummax, nll_loss, …)."""

from __future__ import annotations

from collections.abc import Sequence

from ... import dtypes, launch
from ...codegen import threads
from ...codegen.formula.namespace import m
from ...codegen.templates.row import Each
from ...shapes import layout_of
from ...tensor import Tensor, make
from ..core.row_kernel import as_rows, row_sizes
from ..core.structured import structured
from ..creation.cast import cast, dense

TAKE = launch.Kernel("indexing.along", "take_along")
_PUT_ONE = as_rows(
    {"k": "number", "g": "row", "index": "row"},
    {"out": "full"},
    Each(stores={"out": lambda g, index, i: m.where(i == index, g, 0)}),
)
_PUT = launch.Kernel("indexing.along", "put_along", recipe=lambda args: _PUT_ONE(args) if args[3] == 1 else None)


def _k(index: Tensor, outer: int, inner: int) -> int:
    return index._layout.size // (outer * inner) if outer * inner else 0


@structured(
    x=lambda g, index, x_shape, d: put_along(g, index, x_shape, d), linear="no", batch="shift",
    samples="x(3, 4).take_along_dim(index(4, 3, 1), 1)",
)
def take_along(x, index, d):
    """Return x at ``index`` along dim ``d``; the index has x's shape but for that dim (which may be missing for one index)."""
    outer, n, inner = row_sizes(x.shape, d)
    layout = layout_of(index.shape, None, x.dtype)
    data = launch.empty(layout.size, layout.dtype.carrier)
    if layout.size:
        k = _k(index, outer, inner)
        given = (0, 0, 0, n * inner, k * inner, k * inner)
        TAKE.rows(x.dtype.carrier, given, threads.PICKED * layout.size, outer, n, inner, k, dense(x), dense(index), data)
    return make(data, layout, [0, 0])


@structured(g0=lambda g, index, g0_shape, d: take_along(g, index, d).reshape(g0_shape), linear="no", batch="shift")
def put_along(g0, index, shape: Sequence[int], d: int):
    """Return zeros of ``shape`` with ``g0`` added at ``index`` along dim ``d``."""
    if g0.dtype.is_half:
        return cast(put_along(cast(g0, dtypes.float32), index, shape, d), g0.dtype)
    outer, n, inner = row_sizes(shape, d)
    layout = layout_of(shape, None, g0.dtype)
    data = launch.empty(layout.size, layout.dtype.carrier)
    _PUT(g0.dtype, outer, n, inner, _k(index, outer, inner), dense(g0), dense(index), data)
    return make(data, layout, [0, 0])
