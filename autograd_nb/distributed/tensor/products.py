"""Products of matrices in parts: along which dims each rank multiplies, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ...ops.core.registry import OPS
from ...tensor import Tensor
from ..group import get_rank, get_world_size
from .layout import Sharding, moved, shared, summand
from .mesh import Partial, Replicate, Shard


def _layout(t: Tensor, beside: Sharding) -> tuple[Sharding, Tensor]:
    """Return an operand with its layout; summands are added up first."""
    own: Sharding | None = t.__dict__.get("_sharding")
    if own is None:
        return beside.like(tuple(t._layout.shape), Replicate()), t
    if isinstance(own.placement, Partial):
        return own.like(own.whole, Replicate()), moved(own, Replicate(), t)
    return own, t


def _is(own: Sharding, dim: int) -> bool:
    """Return whether a tensor is shared out along a dim, counted from the end."""
    return isinstance(own.placement, Shard) and len(own.shape) >= -dim and own.dim == len(own.shape) + dim


def multiplied(call: Any, a: tuple[Sharding, Tensor], b: tuple[Sharding, Tensor]) -> tuple[Tensor, Sharding] | None:
    """Return the product of two matrices, or stacks of them, with its layout; None where no rank can do a part of it with what it has."""
    (la, x), (lb, y) = a, b
    if la.scalar or lb.scalar or len(la.shape) < 2 or len(lb.shape) < 2:
        return None
    product = partial(call.compute, OPS["matmul"].call)
    stacks = tuple(la.shape[:-2]) if len(la.shape) >= len(lb.shape) else tuple(lb.shape[:-2])
    out = (*stacks, la.shape[-2], lb.shape[-1])
    if len(lb.shape) > 2 and la.shape[:-2] != lb.shape[:-2]:
        return None
    if _is(la, -1) or _is(lb, -2):  # the inner dim: each rank has a summand
        x, y = moved(la, Shard(len(la.shape) - 1), x), moved(lb, Shard(len(lb.shape) - 2), y)
        return product(x, y), la.like(out, Partial())
    if isinstance(la.placement, Shard) and lb.placement == Replicate():  # rows of the first, or its matrices
        if len(lb.shape) > 2 and la.dim < len(la.shape) - 2:
            y = moved(lb, Shard(la.dim), y)
        else:
            y = shared(lb, y)
        return product(x, y), la.like(out, Shard(la.dim))
    if _is(lb, -1) and la.placement == Replicate():  # columns of the second
        return product(shared(la, x), y), la.like(out, Shard(len(out) - 1))
    if isinstance(la.placement, Shard) and len(la.shape) == len(lb.shape) and la.placement == lb.placement and la.dim < len(la.shape) - 2:
        return product(x, y), la.like(out, Shard(la.dim))
    return None


def _matmul(call: Any) -> Any:
    if len(call.args) != 2 or call.kwargs:
        return None
    first, second = call.args if call.name != "__rmatmul__" else call.args[::-1]
    found = multiplied(call, _layout(first, call.first), _layout(second, call.first))
    return None if found is None else call.marked(found[0], lambda t: found[1])


def _linear(call: Any) -> Any:
    names = dict(zip(("input", "weight", "bias"), call.args, strict=False)) | call.kwargs
    x, w, bias = names["input"], names["weight"], names.get("bias")
    lw, w = _layout(w, call.first)
    if len(lw.shape) != 2 or lw.scalar:
        return None
    turned = lw.like(lw.shape[::-1], Shard(1 - lw.dim) if isinstance(lw.placement, Shard) else Replicate())
    found = multiplied(call, _layout(x, call.first), (turned, call.compute(OPS["transpose"].call, w, 0, 1)))
    if found is None:
        return None
    y, out = found
    if bias is not None:
        lb, b = _layout(bias, call.first)
        if isinstance(out.placement, Partial):
            b = summand(lb.like(lb.whole, Replicate()), moved(lb, Replicate(), b))
        elif _is(out, -1):
            b = moved(lb, Shard(0), b)
        else:
            whole = moved(lb, Replicate(), b)
            b = shared(lb.like(lb.whole, Replicate()), whole) if isinstance(out.placement, Shard) else whole
        y = call.compute(OPS["add"].call, y, b)
    return call.marked(y, lambda t: out)


def _attention(call: Any) -> Any:
    """Compute attention of this rank's heads, or of its part of a batch."""
    shapes = [(own.placement, len(own.shape)) for t in call.tensors if (own := t.__dict__.get("_sharding")) is not None]
    own = call.first
    if len(shapes) < 3 or len(call.tensors) != 3 or len(set(shapes)) > 1 or not isinstance(own.placement, Shard) or own.dim >= len(own.shape) - 2:
        return None
    if call.kwargs.get("dropout_p", call.args[4] if len(call.args) > 4 else 0.0) or call.kwargs.get("enable_gqa"):
        return None
    sizes = {t.__dict__["_sharding"].shape[:-2] for t in call.tensors}
    if len(sizes) > 1:
        return None
    return call.marked(call.run(), lambda t: own.like((*own.shape[:-1], call.part(t)[-1]), own.placement))


def _normed(call: Any) -> Any:
    """Compute a norm layer of a rank's part along the last dims, which are not shared out, with weights that all ranks have."""
    names = dict(zip(("input", "normalized_shape", "weight", "bias", "eps") if call.name == "layer_norm" else ("input", "normalized_shape", "weight", "eps"),
                     call.args, strict=False)) | call.kwargs  # fmt: skip
    own: Sharding | None = names["input"].__dict__.get("_sharding")
    last = names["normalized_shape"]
    count = 1 if isinstance(last, int) else len(last)
    if own is None or not isinstance(own.placement, Shard) or own.scalar or own.dim >= len(own.shape) - count:
        return None
    for name in ("weight", "bias"):
        if isinstance(names.get(name), Tensor):
            lw, w = _layout(names[name], call.first)
            names[name] = shared(lw.like(lw.whole, Replicate()), moved(lw, Replicate(), w))
    found = call.compute(call.func, **names)
    return call.marked(found, lambda t: own)


def _embedded(call: Any) -> Any:
    """Look up what this rank has of a table: some columns, or zeros for rows that others have."""
    names = dict(zip(("input", "weight", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse"), call.args, strict=False)) | call.kwargs
    if any(names.get(n) for n in ("max_norm", "scale_grad_by_freq", "sparse")) or names.get("padding_idx") is not None:
        return None
    (li, index), (lw, table) = _layout(names["input"], call.first), _layout(names["weight"], call.first)
    look = OPS["nn.functional.embedding"].call
    if isinstance(li.placement, Shard) and lw.placement == Replicate() and not li.scalar:
        found = call.compute(look, index, shared(lw, table))
        return call.marked(found, lambda t: lw.like((*li.whole, lw.shape[1]), Shard(li.dim)))
    if li.placement != Replicate() or not isinstance(lw.placement, Shard):
        return None
    if lw.dim:
        return call.marked(call.compute(look, index, table), lambda t: lw.like((*li.whole, lw.shape[1]), Shard(len(li.whole))))
    if lw.below is not None:
        return None
    begin, rows = get_rank(lw.group) * lw.rows, lw.sizes()[0]
    if lw.rows * (get_world_size(lw.group) - 1) >= lw.shape[0]:
        return None  # a rank has no rows
    if bool(((index < 0) | (index >= lw.shape[0])).any()):
        return None  # which refuses it
    others = (index < begin) | (index >= begin + rows)
    found = look((index - begin).masked_fill(others, 0), table).masked_fill(others.unsqueeze(-1), 0)
    return lw.like((*li.whole, lw.shape[1]), Partial()).mark(found)


RULES: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("mm", "matmul", "bmm", "__matmul__", "__rmatmul__"), _matmul), "linear": _linear, "scaled_dot_product_attention": _attention,
    "layer_norm": _normed, "rms_norm": _normed, "embedding": _embedded,
}  # fmt: skip
