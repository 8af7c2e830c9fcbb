"""Attention: a fused op of three kinds of operands, and what PyTorch builds on it.

Source: Vaswani et al., Attention is all you need (2017);
https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

from ... import dtypes, launch
from ...codegen import threads
from ...graph.modes import state
from ...launch import Kernel
from ...overriding import overridable
from ...shapes import Layout, broadcast_shapes, contiguous_strides, layout_of, numel, overlaps_itself, view_strides
from ...tensor import Tensor, make
from ..core.call_path import known, planned
from ..core.numbers import float_argument
from ..core.recording import fresh, guarded, mark_inference, scalar_type
from ..core.registry import OPS, public
from ..core.repeated import repeated
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, dense
from ..creation.create import new_empty
from .softmax import _softmax_backward

_FORWARD = Kernel("nn.attention", "forward", outputs=2)
_BACKWARD = Kernel("nn.attention", "backward", outputs=3)
_BLOCK = 64  #: queries at a time, so that their scores stay in cache


def _attention_rule(g, q, k, v, out1, scale, causal, mask_sizes, needs):
    gy, gp = g
    p = out1
    if q.dtype.is_half:  # as the forward pass: computed in float32, rounded once
        gy, wq, wk, wv = (None if t is None else cast(t, dtypes.float32) for t in (gy, q, k, v))
        found = _attention_rule((gy, gp), wq, wk, wv, p, scale, causal, mask_sizes, needs)
        return {name: None if t is None else cast(t, q.dtype) for name, t in found.items()}
    # one fused kernel, where nothing is to be differentiated again
    if not state.grad and gp is None and "mask" not in needs:
        return dict(zip("qkv", _fused_backward(gy, q, k, v, p, scale, causal), strict=True))
    if gy is not None:
        slope = gy @ v.mT
        gp = slope if gp is None else gp + slope
    ds = _softmax_backward(gp, p, p.ndim - 1)
    found = {"v": None if gy is None else p.mT @ gy, "q": ds @ k * scale, "k": ds.mT @ q * scale}
    if "mask" in needs:
        found["mask"] = OPS["sum_to_size"].call(ds, mask_sizes)
    return found


def _fused_backward(g: Tensor, q: Tensor, k: Tensor, v: Tensor, p: Tensor, scale: float, causal: bool) -> list[Tensor]:
    outs = [_room(t, t.shape[-1]) for t in (q, k, v)]
    (length, source), width, value_width = p.shape[-2:], q.shape[-1], v.shape[-1]
    if p._layout.size and width and value_width:
        arrays, steps = zip(*map(_rows, (q, k, v, g)), strict=True)
        _launch(
            _BACKWARD, q.dtype, p.shape[:-2], (length, source, width, value_width, scale, causal, _BLOCK),
            *steps, *[_walk(o._layout)[:3] for o in outs], *arrays, dense(p), *[o._data for o in outs],
        )  # fmt: skip
    else:
        for o in outs:
            o.zero_()
    return outs


def _launch(kernel: Kernel, key: Any, batch: Sequence[int], sizes: tuple[Any, ...], *args: Any) -> None:
    """Run a kernel on the matrices of all batches and heads, on several threads where that pays."""
    count, heads = numel(batch), batch[-1] if batch else 1
    length, source, width, value_width = sizes[:4]
    work = count * length * source * (width + value_width)
    whole = (0, count, heads, *sizes, *args)
    if count == 1 or threads.alone(work):
        kernel(key, *whole)
    else:
        kernel.split(key, whole, lambda args: [(begin, end, *args[2:]) for begin, end in threads.pieces(count, work)])


@planned
def _walk(layout: Layout) -> Any:
    """Return how many elements lie from one batch, head, row and column to the next, heads being the last batch dim; None where no strides tell."""
    *batch, length, width = layout.shape
    if len(batch) == 2:
        return layout.strides
    return view_strides(layout, (numel(batch[:-1]), batch[-1] if batch else 1, length, width))


def _rows(t: Tensor) -> tuple[Any, tuple[int, int, int]]:
    """Return (memory, elements from one batch, head and row to the next); a copy where elements of a row are not neighbours."""
    strides = _walk(t._layout)
    if strides is None or (strides[3] != 1 and t.shape[-1] > 1):
        t = t.contiguous()
        strides = _walk(t._layout)
    return t._data[: t._layout.extent], strides[:3]


@planned
def _beside(layout: Layout, width: int) -> Layout:
    """Return the layout without gaps of rows of ``width`` elements, whose dims lie in memory in the order of those of ``layout``."""
    shape = (*layout.shape[:-1], width)
    order = sorted(range(layout.ndim), key=lambda d: -layout.strides[d])
    if not overlaps_itself(layout) and order[-1] == layout.ndim - 1:
        steps = dict(zip(order, contiguous_strides([shape[d] for d in order]), strict=True))
        found = layout_of(shape, [steps[d] for d in range(layout.ndim)], layout.dtype)
        if _walk(found) is not None:
            return found
    return layout_of(shape, None, layout.dtype)


def _room(t: Tensor, width: int) -> Tensor:
    """Return memory for rows of ``width`` elements beside those of ``t``: what is a view of one is mostly a view of the other."""
    layout = _beside(t._layout, width)
    return make(launch.empty(layout.size, layout.dtype.carrier), layout, [0, 0])


@structured(
    every=_attention_rule, node="ScaledDotProductAttentionBackward0", linear="no", batch="samples",
    dtypes="half float", samples="F.scaled_dot_product_attention(x(2, 3, 4), x(2, 5, 4), x(2, 5, 3))",
)
def _attention(q, k, v, mask, scale, causal, mask_sizes, blank, want_y):
    """Return (p v, p) for p = softmax(scale · q kᵀ + mask); operands of the same batch dims, ``mask`` of ``mask_sizes`` broadcast.

    Of operands of half precision p is of float32.
    """
    return _attend(q, k, v, mask, scale, causal, blank, want_y, True)


def _attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Any, scale: float, causal: bool, blank: float, want_y: bool, keep: bool
) -> Any:
    d = q.dtype
    if d.is_half:  # weights stay wide: their gradients are differences that rounded ones would lose
        wq, wk, wv, wm = (cast(t, dtypes.float32) if isinstance(t, Tensor) and t.dtype.is_half else t for t in (q, k, v, mask))
        y, p = _attend(wq, wk, wv, wm, scale, causal, blank, want_y, keep)
        return cast(y, d), p
    (*batch, length, width), (source, value_width) = q.shape, v.shape[-2:]
    p = new_empty((*batch, length, source) if keep else (0,), d)
    if not want_y:
        y = new_empty((0,), d)
    elif len(batch) == 2 and width == value_width:  # as PyTorch's
        y = _room(q, value_width)
    else:
        y = new_empty((*batch, length, value_width), d)
    if not numel(batch) * length * source:
        return y.zero_(), p
    kind, mask_steps, given = 0, (0, 0, 0, 0), _nothing(d)
    if mask is not None:
        kind = 2 if mask.dtype is dtypes.bool_ else 1
        seen = mask.expand(*batch, length, source)
        if _walk(seen._layout) is None:
            seen = seen.contiguous()
        given, mask_steps = seen._data, _walk(seen._layout)
    arrays, steps = zip(*map(_rows, (q, k, v)), strict=True)
    _launch(
        _FORWARD, (d, given.dtype), batch, (length, source, width, value_width, scale, causal, kind, blank, keep, _BLOCK),
        *steps, mask_steps, _walk(y._layout)[:3] if want_y else (0, 0, 0), *arrays, given, p._data, y._data,
    )  # fmt: skip
    return y, p


@cache
def _nothing(d: dtypes.dtype) -> Any:
    return new_empty((0,), d)._data


@overridable
def attention_weights(
    q: Tensor, k: Tensor, v: Tensor, mask: Any, dropout_p: float, causal: bool, scale: Any, blank: float = 0.0, weights: bool = True
) -> tuple[Tensor, Any]:
    """Return (result, weights after dropout or None); operands of one dtype whose batch dims broadcast."""
    if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        batch = broadcast_shapes(broadcast_shapes(q.shape[:-2], k.shape[:-2]), v.shape[:-2])
        q, k, v = (t.expand(*batch, *t.shape[-2:]) for t in (q, k, v))
    scale = 1.0 / math.sqrt(q.shape[-1]) if scale is None and q.shape[-1] else 1.0 if scale is None else float(scale)
    if not weights and not dropout_p and not (state.grad and any(t is not None and t.requires_grad for t in (q, k, v, mask))):
        return _attend(q, k, v, mask, scale, causal, blank, True, False)[0], None
    y, p = _attention(q, k, v, mask, scale, causal, None if mask is None else tuple(mask.shape), blank, not dropout_p)
    if dropout_p or weights:
        p = cast(p, q.dtype)
    if dropout_p:
        p = OPS["nn.functional.dropout"].call(p, dropout_p)
        y = p @ v
    return y, p


@attention_weights.decomposed
def _attention_by_ops(
    q: Tensor, k: Tensor, v: Tensor, mask: Any, dropout_p: float, causal: bool, scale: Any, blank: float = 0.0, weights: bool = True
) -> tuple[Tensor, Tensor]:
    factor = 1.0 / max(q.shape[-1], 1) ** 0.5 if scale is None else float(scale)
    scores = q @ k.transpose(-2, -1) * factor
    hidden = None
    if causal:
        hidden = OPS["ones"].call(q.shape[-2], k.shape[-2], dtype=dtypes.bool_).triu(1)
    if mask is not None:
        if mask.dtype is dtypes.bool_:
            hidden = mask.logical_not() if hidden is None else mask.logical_not().logical_or(hidden)
        else:
            scores = scores + mask
    if hidden is not None:
        scores = scores.masked_fill(hidden, float("-inf"))
    p = OPS["softmax"].call(scores, -1)
    if hidden is not None:
        p = p.masked_fill(hidden.all(-1, keepdim=True), blank)
    if dropout_p:
        p = OPS["nn.functional.dropout"].call(p, dropout_p)
    return p @ v, p


_KINDS = {"float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "int64": "long int", "int32": "int", "bool": "bool"}


def need_floating(q: Tensor, op: str) -> None:
    """Raise NotImplementedError for complex queries, which have no softmax, RuntimeError for integers, as PyTorch has it."""
    if q.dtype.is_complex:
        raise NotImplementedError(f"\"softmax_lastdim_kernel_impl\" not implemented for '{scalar_type(q.dtype)}' (query of {op}())")
    if q.dtype.category != 2:
        raise RuntimeError(f"expected scalar type Float but found {scalar_type(q.dtype)} (query of {op}(): cast it with .to())")


def _kind(t: Tensor) -> str:
    return _KINDS.get(t.dtype.name, t.dtype.name)


def _check_operands(q: Tensor, k: Tensor, v: Tensor, dropout_p: float, op: str) -> None:
    """Raise RuntimeError for shapes and dtypes that do not go together."""
    if q.ndim < 2 or k.ndim < 2 or v.ndim < 2:
        raise RuntimeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {q.ndim} key.dim: {k.ndim} and "
            f"value.dim: {v.ndim} instead."
        )
    if not q.dtype is k.dtype is v.dtype:
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {_kind(q)} key.dtype: {_kind(k)} and "
            f"value.dtype: {_kind(v)} instead."
        )
    need_floating(q, op)
    if not 0.0 <= float_argument(dropout_p, op, "dropout_p") <= 1.0:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p}")
    if q.shape[-1] != k.shape[-1]:
        raise RuntimeError(
            f"Expected query and key to have the same last dim, but got query of size {list(q.shape)} and key of {list(k.shape)}"
        )
    if k.shape[-2] != v.shape[-2]:
        raise RuntimeError(
            f"Expected key and value to have the same length (dim -2), but got key of size {list(k.shape)} and value of {list(v.shape)}"
        )


class _KnownPlan:
    """A call without mask and dropout, of which nothing is recorded: one launch."""

    __slots__ = ("carrier", "entry", "layout", "nothing", "numbers", "size")

    def __init__(self, entry: Any, numbers: tuple[Any, ...], layout: Layout):
        self.entry, self.numbers, self.layout = entry, numbers, layout
        self.size, self.carrier, self.nothing = layout.size, layout.dtype.carrier, _nothing(layout.dtype)


def _plan_known(checked: bool, q: Any, k: Any, v: Any, mask: Any, dropout_p: Any, causal: Any, scale: Any) -> _KnownPlan | None:
    """Return the plan of calls like one that went through, on few elements."""
    if not checked or mask is not None or dropout_p or not (scale is None or scale.__class__ is float):
        return None
    layouts, d = (q._layout, k._layout, v._layout), q._layout.dtype
    (*batch, length, width), (source, value_width) = q._layout.shape, v._layout.shape[-2:]
    if any(list(at.shape[:-2]) != batch for at in layouts) or d.is_half or not numel(batch) * length * source * width:
        return None
    steps = [_walk(at) for at in layouts]
    count, entry = numel(batch), _FORWARD.entry((d, d.carrier))
    few = count == 1 or threads.alone(count * length * source * (width + value_width))
    if any(at is None or at[3] != 1 for at in steps) or entry is None or not few:
        return None
    shape = (*batch, length, value_width)
    layout = _beside(q._layout, value_width) if len(batch) == 2 and width == value_width else layout_of(shape, None, d)
    sizes = (length, source, width, value_width, 1.0 / math.sqrt(width) if scale is None else scale, causal, 0, 0.0, False, _BLOCK)
    numbers = (0, count, batch[-1] if batch else 1, *sizes, *[at[:3] for at in steps], (0, 0, 0, 0), _walk(layout)[:3])
    return _KnownPlan(entry, numbers, layout)


def _run_known(plan: _KnownPlan, q: Tensor, k: Tensor, v: Tensor, mask: Any, dropout_p: Any, causal: bool, scale: Any) -> Tensor:
    if state.grad and (q.requires_grad or k.requires_grad or v.requires_grad):
        return _attention_of(q, k, v, mask, dropout_p, causal, scale, False)
    data = launch.empty(plan.size, plan.carrier)
    plan.entry(*plan.numbers, q._data, k._data, v._data, plan.nothing, plan.nothing, data)
    y = make(data, plan.layout, [0, 0])
    if state.inference:
        mark_inference(y)
    return y


@public(method=False, namespaces=("nn.functional",))
@known(
    "query._layout, key._layout, value._layout, attn_mask is None, dropout_p, is_causal, scale, scale.__class__", _plan_known, _run_known,
    takes=("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale"),
)  # fmt: skip
def scaled_dot_product_attention(
    query, key, value: Tensor, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """Return softmax(scale · Q·Kᵀ + mask)·V over the last two dims: (…, L, E), (…, S, E), (…, S, Eᵥ) → (…, L, Eᵥ).

    Derivative: for P = softmax(scale · Q·Kᵀ + mask): dV = Pᵀ·g, dS = P∘(g·Vᵀ − rowsum(P∘(g·Vᵀ))), dQ = scale·dS·K, dK = scale·dSᵀ·Q; dmask = dS.

    attn_mask: broadcasts to (…, L, S); floats are added to the scores, bools say what may be seen. dropout_p: applied to the
    weights, always (pass 0 when not training). is_causal: position i sees positions ≤ i. scale: 1/√E by default. enable_gqa: key
    and value may have fewer heads (dim −3) than query, each then shared. A row of which all is masked gives zeros.

    Errors: RuntimeError for shapes or dtypes that do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html

    >>> torch.nn.functional.scaled_dot_product_attention(torch.zeros(1, 2), torch.ones(2, 2), torch.tensor([[1.0], [3.0]]))
    tensor([[2.]])
    """
    return _attention_of(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)


@repeated
def _attention_of(query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: Any, is_causal: Any, scale: Any, enable_gqa: Any) -> Tensor:
    """Return `scaled_dot_product_attention`."""
    op = "scaled_dot_product_attention"
    q, k, v = tensor_argument(query, op, "query"), tensor_argument(key, op, "key"), tensor_argument(value, op, "value")
    _check_operands(q, k, v, dropout_p, op)
    mask = attn_mask
    if mask is not None:
        tensor_argument(mask, op, "attn_mask")
        if mask.dtype is not dtypes.bool_ and mask.dtype is not q.dtype and mask.dtype is not dtypes.float32:
            raise RuntimeError(
                "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
                f"{_kind(mask)} and  query.dtype: {_kind(q)} instead."
            )
        if mask.dtype is not dtypes.bool_:
            mask = cast(mask, q.dtype)
    if enable_gqa:
        k, v = _shared(q, k, "key"), _shared(q, v, "value")
    if mask is not None:
        batch = broadcast_shapes(broadcast_shapes(q.shape[:-2], k.shape[:-2]), v.shape[:-2])
        full = (*batch, q.shape[-2], k.shape[-2])
        if tuple(broadcast_shapes(full, mask.shape)) != full:
            if mask.ndim <= len(full):
                raise RuntimeError(f"attn_mask of size {list(mask.shape)} does not broadcast to the scores' size {list(full)}")
            q = q.reshape(*(1,) * (mask.ndim - q.ndim), *q.shape)  # the mask has more batch dims
            q = q.expand(*mask.shape[: mask.ndim - 2], *q.shape[-2:])
    options = (float(dropout_p), bool(is_causal), scale)
    if not (state.grad and any(t is not None and t.requires_grad for t in (q, k, v, mask))):
        return attention_weights(q, k, v, mask, *options, weights=False)[0]
    if _is_flash(q, k, v, mask, dropout_p):
        y = attention_weights(q, k, v, mask, *options, weights=False)[0]
        return guarded(y, q, k, v, y, *[mask] * (mask is not None and mask.dtype is not dtypes.bool_))
    if not any(t is not None and t.requires_grad for t in (q, k, mask)):
        v = v.clone()
    return fresh(attention_weights(q.clone(), k.clone(), v, mask, *options, weights=False)[0])


def _is_flash(q: Tensor, k: Tensor, v: Tensor, mask: Any, dropout_p: float) -> bool:
    """Return whether PyTorch takes the one op that keeps its operands and its result, and not several, which keep scaled copies."""
    return (
        q.ndim == k.ndim == v.ndim == 4
        and q.shape[:2] == k.shape[:2] == v.shape[:2]
        and q.shape[-1] == v.shape[-1]
        and not dropout_p
        and all(t.stride(-1) == 1 and 0 not in t.shape for t in (q, k, v))
        and (mask is None or (mask.ndim in (2, 4) and not mask.requires_grad))
    )


def _shared(q: Tensor, t: Tensor, name: str) -> Tensor:
    """Return the heads of key or value, each repeated for the queries that share it."""
    if q.ndim < 3 or t.ndim < 3 or t.shape[-3] == 0 or q.shape[-3] % t.shape[-3]:
        raise RuntimeError(
            f"Number of heads in key and value must divide the number of heads in query (query {list(q.shape)}, {name} {list(t.shape)})"
        )
    return OPS["repeat_interleave"].call(t, q.shape[-3] // t.shape[-3], dim=t.ndim - 3)
