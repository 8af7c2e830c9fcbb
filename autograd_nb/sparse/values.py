"""Between a sparse tensor and its values: the two steps that gradients of sparse tensors consist of, and how the engine adds them.

An op on sparse tensors takes the values out (`values_of`), computes with them as with any dense tensor, and puts them in again (`with_values`).
So each op is differentiated by the ops that it consists of, as often as one likes; a sparse operand's gradient is sparse, at the operand's places.
"""

from __future__ import annotations

from typing import Any

from ..dtypes import promote_types
from ..graph import engine, ownership
from ..graph.modes import no_grad, state
from ..graph.ownership import handed
from ..ops.core.foreign import asked
from ..ops.core.registry import OPS
from ..tensor import Tensor
from .tensor import (
    SparseTensor,
    bare,
    become,
    csr_starts,
    grouped,
    index_of,
    keys_of,
    made,
    places,
    recorded,
    segment_sum,
    sparse_dims,
)


def with_values(kind: str, size: Any, index: tuple[Tensor, ...], values: Tensor, coalesced: bool = True) -> SparseTensor:
    """Return the sparse tensor of ``values`` at these places; the gradient of the values is read there."""
    s = made(kind, size, index, values, coalesced)
    plain = bare(s)
    return recorded(s, values, lambda g: read_at(g, plain))  # type: ignore[no-any-return]


def like(s: SparseTensor, values: Tensor) -> SparseTensor:
    """Return a sparse tensor of the places of ``s`` and other values, recorded."""
    return with_values(s._kind, s.shape, s._index, values, s._coalesced)


def values_of(s: SparseTensor) -> Tensor:
    """Return the values, of which each place has one where a gradient is wanted; it is sparse, at the same places."""
    if not (state.grad and s.requires_grad):
        return s._val.detach()
    kind, size, index, coalesced = s._kind, s.shape, s._index, s._coalesced
    return recorded(s._val.detach(), s, lambda g: with_values(kind, size, index, handed(g, state.grad), coalesced))  # type: ignore[no-any-return]


def read_at(g: Tensor, s: SparseTensor) -> Tensor:
    """Return the elements of ``g``, dense or sparse, at the places of ``s``; 0 where a sparse one has none."""
    if not isinstance(g, SparseTensor):
        return g[tuple(places(s).unbind(0))] if sparse_dims(s) else g.unsqueeze(0)
    if len(g._index) == len(s._index) and all(a is b for a, b in zip(g._index, s._index, strict=True)):
        return values_of(g)
    g = coalesced(as_coo(g))
    have, wanted = keys_of(g._index[0], g.shape), keys_of(places(s), s.shape)
    values = values_of(g)
    if not have.shape[0]:
        return values.new_zeros((wanted.shape[0], *values.shape[1:]))
    at = OPS["searchsorted"].call(have, wanted).clamp(max=have.shape[0] - 1)
    found = (have[at] == wanted).to(values.dtype)
    return values.index_select(0, at) * found.reshape(-1, *[1] * (values.ndim - 1))


def coalesced(s: SparseTensor) -> SparseTensor:
    """Return the tensor with its places in order, each once, with the sum of what stood there; dy/dx = 1."""
    if s._coalesced or s._kind != "coo":
        return s
    with no_grad():
        size = s.shape[: sparse_dims(s)]
        keys, ids = grouped(keys_of(s._index[0], size))
        y = made("coo", s.shape, (index_of(keys, size),), segment_sum(s._val, ids, keys.shape[0]), True)
    return recorded(y, s, lambda g: g)  # type: ignore[no-any-return]


def parts(s: SparseTensor) -> SparseTensor:
    """Return the tensor as ops take it: with each place once where its gradient is wanted."""
    return coalesced(s) if state.grad and s.requires_grad else s


def as_coo(s: SparseTensor) -> SparseTensor:
    """Return the tensor by coordinates."""
    return s if s._kind == "coo" else with_values("coo", s.shape, (places(s),), values_of(s), True)


def as_csr(s: SparseTensor) -> SparseTensor:
    """Return the matrix by rows. RuntimeError for other than two dims."""
    if s._kind == "csr":
        return s
    if sparse_dims(s) != 2:
        raise RuntimeError(f"Only tensors with two sparse dimensions can be converted to the SparseCsr layout, got self with {sparse_dims(s)} of them")
    s = coalesced(s)
    rows, columns = s._index[0].unbind(0)
    return with_values("csr", s.shape, (csr_starts(rows, s.shape[0]), columns.contiguous()), values_of(s), True)


def to_dense(s: SparseTensor) -> Tensor:
    """Return the tensor with all its zeros, recorded."""
    s = coalesced(s) if s.dtype.category == 0 else parts(s)
    values = values_of(s)
    zeros = OPS["zeros"].call(tuple(s.shape), dtype=s.dtype)
    if not sparse_dims(s):
        return zeros + values.sum(0)
    at = tuple(places(s).unbind(0))
    return zeros.index_put(at, values, accumulate=s.dtype.category != 0)


def from_dense(x: Tensor, dims: int | None = None) -> SparseTensor:
    """Return a dense tensor's elements, or slices of its last dims, that are not 0, recorded."""
    n = x.ndim if dims is None else dims
    kept = x.detach() != 0
    while kept.ndim > n:
        kept = kept.any(-1)
    index = kept.nonzero().t().contiguous()
    if not n:  # one place, or none
        index = index.new_zeros((0, int(kept.item())))
    values = x[tuple(index.unbind(0))] if n else x.unsqueeze(0).narrow(0, 0, index.shape[1])
    return with_values("coo", x.shape, (index,), values, True)


def add_sparse(a: SparseTensor, b: SparseTensor, alpha: Any = 1) -> SparseTensor:
    """Return a + alpha · b, whose places are those of both."""
    if a.shape != b.shape:
        raise RuntimeError(f"add: expected sizes of 'self' and 'other' to match, but {list(a.shape)} != {list(b.shape)}")
    if sparse_dims(a) != sparse_dims(b):
        return _with_nothing(a, b, alpha)
    kind, both = a._kind, a._coalesced and b._coalesced
    x, y = parts(as_coo(a)), parts(as_coo(b))
    second = values_of(y)
    if alpha.__class__ is not int or alpha != 1:  # in the dtype of the sum: the product of small integers goes round elsewhere
        second = second.to(promote_types(a.dtype, b.dtype)) * alpha
    values = OPS["cat"].call([values_of(x), second])
    index = OPS["cat"].call([x._index[0], y._index[0]], 1)
    if both:
        size = x.shape[: sparse_dims(x)]
        keys, ids = grouped(keys_of(index, size))
        out = with_values("coo", x.shape, (index_of(keys, size),), segment_sum(values, ids, keys.shape[0]))
    else:
        out = with_values("coo", x.shape, (index,), values, False)
    return out if kind == "coo" else as_csr(out)


def _with_nothing(a: SparseTensor, b: SparseTensor, alpha: Any) -> SparseTensor:
    """Return a + alpha · b of which one has no values: it need not have as many dims with coordinates."""
    d = promote_types(a.dtype, b.dtype)
    if not b._val.shape[0]:
        return like(parts(a), values_of(parts(a)).to(d).clone())
    if not a._val.shape[0]:
        return like(parts(b), values_of(parts(b)).to(d) * alpha)
    dims = f"'self' has {sparse_dims(a)} sparse dimensions while 'other' has {sparse_dims(b)} sparse dimensions"
    raise RuntimeError(f"add: expected 'self' and 'other' to have same density, but {dims}")


def add_any(a: Tensor, b: Tensor) -> Tensor:
    """Return the sum of two gradients, dense unless both are sparse."""
    if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        return add_sparse(a, b)
    return (to_dense(a) if isinstance(a, SparseTensor) else a) + (to_dense(b) if isinstance(b, SparseTensor) else b)


def copied(s: SparseTensor) -> SparseTensor:
    """Return a copy of the values at the same places, recorded."""
    return like(parts(s), values_of(parts(s)).clone())


def _stand_in_the_engine() -> None:
    """Let the engine add, keep and copy sparse gradients; those of programs without any go as before."""
    add, add_in_place, merge, own, copy = engine.add, engine.add_in_place, engine.merge, engine.own, ownership.copy
    accumulated = engine.accumulated

    def either(a: Any, b: Any) -> bool:
        return a.__class__ is SparseTensor or b.__class__ is SparseTensor

    def add_to(have: Any, g: Any) -> None:
        if either(have, g):
            with no_grad():
                become(have, add_any(have, g)) if have.__class__ is SparseTensor else have.add_(to_dense(g))
        else:
            add_in_place(have, g)

    engine.add = lambda have, g: add_any(have, g) if either(have, g) else add(have, g)
    engine.accumulated = lambda grad, g: add_any(grad, g) if either(grad, g) else accumulated(grad, g)
    engine.merge = lambda have, g: add_any(have, g) if either(have, g) else merge(have, g)
    engine.add_in_place = add_to
    engine.own = lambda g, leaf, recording: copied(g) if g.__class__ is SparseTensor else own(g, leaf, recording)
    ownership.copy = lambda g: copied(g) if g.__class__ is SparseTensor else copy(g)


def begin() -> None:
    """Make room for sparse tensors, when there is the first."""
    if not asked.sparse:
        asked.sparse = True
        _stand_in_the_engine()


asked.begin_sparse = begin
