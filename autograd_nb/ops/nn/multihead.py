"""Multi-head attention: projections around `scaled_dot_product_attention`.

Source: Vaswani et al., Attention is all you need (2017);
https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html
"""

from __future__ import annotations

import math
from typing import Any

from ... import dtypes
from ...errors import warn_user
from ...tensor import Tensor
from ..core.numbers import int_argument
from ..core.recording import scalar_type
from ..core.registry import OPS, public
from ..core.structured import optional_tensor, tensor_argument
from ..products.matmul import linear
from .attention import attention_weights, need_floating, scaled_dot_product_attention


def _shape_check(q: Tensor, k: Tensor, v: Tensor, padding: Any, mask: Any, heads: int) -> bool:
    """Return whether there is a batch dim; AssertionError when the numbers of dims do not fit together."""
    if q.ndim not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {q.ndim}-D query tensor")
    batched, n = q.ndim == 3, q.ndim
    kind = f"For {'batched' if batched else 'unbatched'} ({n}-D) `query`, expected"
    if k.ndim != n or v.ndim != n:
        raise AssertionError(f"{kind} `key` and `value` to be {n}-D but found {k.ndim}-D and {v.ndim}-D tensors respectively")
    if padding is not None and padding.ndim != n - 1:
        raise AssertionError(f"{kind} `key_padding_mask` to be `None` or {n - 1}-D but found {padding.ndim}-D tensor instead")
    if mask is not None and mask.ndim not in (2, 3):
        raise AssertionError(f"{kind} `attn_mask` to be `None`, 2-D or 3-D but found {mask.ndim}-D tensor instead")
    if not batched and mask is not None and mask.ndim == 3 and tuple(mask.shape) != (heads, q.shape[0], k.shape[0]):
        raise AssertionError(f"Expected `attn_mask` shape to be {(heads, q.shape[0], k.shape[0])} but got {mask.shape}")
    return batched


def _added(mask: Any, name: str, d: dtypes.dtype, other: Any = None) -> Any:
    """Return a mask as floats to add to scores: −∞ where a bool mask is True."""
    if mask is None:
        return None
    if mask.dtype is not dtypes.bool_ and mask.dtype.category != 2:
        raise AssertionError(f"only bool and floating types of {name} are supported (got {mask.dtype})")
    if other is not None and other.dtype is not mask.dtype:
        warn_user(
            "Support for mismatched key_padding_mask and attn_mask is deprecated. Use same type for both instead."
        )
    if mask.dtype is dtypes.bool_:
        return OPS["zeros_like"].call(mask, dtype=d).masked_fill_(mask, -math.inf)
    return mask


def _projected(q: Tensor, k: Tensor, v: Tensor, packed: Any, separate: tuple[Any, ...] | None, bias: Any) -> list[Tensor]:
    """Return queries, keys and values, each through its linear map; operands that are the same tensor share one product."""
    if separate is None:
        e = q.shape[-1]
        if q is k and k is v:
            return list(linear(q, packed, bias).split(e, -1))
        if k is v:
            first, rest = packed.split([e, 2 * e])
            b = (None, None) if bias is None else bias.split([e, 2 * e])
            return [linear(q, first, b[0]), *linear(k, rest, b[1]).split(e, -1)]
        weights = packed.chunk(3)
    else:
        weights = separate
    biases = (None, None, None) if bias is None else bias.chunk(3)
    return [linear(t, w, b) for t, w, b in zip((q, k, v), weights, biases, strict=True)]


def _cut(projected: Tensor, n: int, heads: int, width: int) -> Tensor:
    """Return (N, heads, S, head_dim): the projection (S, N, E) by heads."""
    return projected.reshape(projected.shape[0], n, heads, width).permute(1, 2, 0, 3)


def _given(static: Any, projected: Tensor, name: str, n: int, heads: int, width: int) -> Tensor:
    """Return (N, heads, S, head_dim): the static tensor (N · heads, S, head_dim) where one is given, else the projection."""
    if static is None:
        return _cut(projected, n, heads, width)
    if static.shape[0] != n * heads:
        raise AssertionError(f"expecting {name}.size(0) of {n * heads}, but got {static.shape[0]}")
    if static.shape[2] != width:
        raise AssertionError(f"expecting {name}.size(2) of {width}, but got {static.shape[2]}")
    return static.reshape(n, heads, static.shape[1], width)


def _with_batch(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the three with a batch of one in dim 1; what is one tensor stays one."""
    one = q.unsqueeze(1)
    key = one if k is q else k.unsqueeze(1)
    return one, key, key if v is k else v.unsqueeze(1)


def _check_biases(bias_k: Any, bias_v: Any, static_k: Any, static_v: Any) -> None:
    """Raise AssertionError for a bias of keys without one of values, and for biases of what is given as it is."""
    if (bias_k is None) != (bias_v is None):
        raise AssertionError("bias_k is set but bias_v is None" if bias_v is None else "bias_v is set but bias_k is None")
    if bias_k is not None and (static_k is not None or static_v is not None):
        raise AssertionError(f"bias cannot be added to static {'key' if static_k is not None else 'value'}.")


def _check_hint(is_causal: bool, mask: Any) -> None:
    if is_causal and mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )


def _width(e: int, embed_dim_to_check: int, num_heads: int) -> int:
    """Return the width of a head."""
    if e != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {e}")
    width = e // num_heads
    if width * num_heads != e:
        raise AssertionError(f"embed_dim {e} not divisible by num_heads {num_heads}")
    return width


@public(method=False, namespaces=("nn.functional",))
def multi_head_attention_forward(
    query, key, value: Tensor, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v,
    add_zero_attn, dropout_p, out_proj_weight, out_proj_bias: Tensor | None, training=True, key_padding_mask=None, need_weights=True, attn_mask=None,
    use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None, static_k=None, static_v=None,
    average_attn_weights=True, is_causal=False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Return attention in ``num_heads`` subspaces: (L, N, E), (S, N, Eₖ), (S, N, Eᵥ) → ((L, N, E), weights (N, L, S) or None).

    The batch dim N may be left out. Masks: bools, True where nothing may be seen, or floats that are added; attn_mask is (L, S)
    or (N·heads, L, S), key_padding_mask (N, S). bias_k, bias_v: one more key and value. is_causal: a hint that attn_mask is
    causal. average_attn_weights: weights averaged over heads, else (N, heads, L, S).

    Errors: AssertionError or RuntimeError naming what does not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html

    >>> x, w, b = torch.ones(3, 1, 4), torch.zeros(12, 4), torch.zeros(12)
    >>> F = torch.nn.functional
    >>> F.multi_head_attention_forward(x, x, x, 4, 2, w, b, None, None, False, 0.0, torch.eye(4), None)[0].shape
    torch.Size([3, 1, 4])
    """
    op = "multi_head_attention_forward"
    q, k, v = tensor_argument(query, op, "query"), tensor_argument(key, op, "key"), tensor_argument(value, op, "value")
    padding, mask, d, num_heads = key_padding_mask, attn_mask, q.dtype, int_argument(num_heads, op, "num_heads")
    _check_given(op, key_padding_mask=padding, attn_mask=mask, in_proj_weight=in_proj_weight, in_proj_bias=in_proj_bias, bias_k=bias_k, bias_v=bias_v)
    batched = _shape_check(q, k, v, padding, mask, num_heads)
    if not batched:
        q, k, v = _with_batch(q, k, v)
        padding = None if padding is None else padding.unsqueeze(0)
    (length, n, e), source = q.shape, k.shape[0]
    padding = _added(padding, "key_padding_mask", d, mask)
    _check_hint(is_causal, mask)
    causal = bool(is_causal and padding is None and not need_weights)  # else the mask itself is used
    mask = None if causal else _added(mask, "attn_mask", d)
    width = _width(e, embed_dim_to_check, num_heads)
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    _check_projections(k, v, in_proj_weight, separate)
    q, k, v = _projected(q, k, v, None if separate else in_proj_weight, separate, in_proj_bias)
    mask = _three_dims(mask, n * num_heads, length, source)
    cat, pad = OPS["cat"].call, OPS["nn.functional.pad"].call
    _check_biases(bias_k, bias_v, static_k, static_v)
    if bias_k is not None:
        k, v = cat([k, bias_k.repeat(1, n, 1)]), cat([v, bias_v.repeat(1, n, 1)])
        mask, padding = (t if t is None else pad(t, (0, 1)) for t in (mask, padding))
    q = _cut(q, n, num_heads, width)
    _check_alike(q, k, v, op)
    k, v = (_given(s, t, name, n, num_heads, width) for s, t, name in ((static_k, k, "static_k"), (static_v, v, "static_v")))
    if add_zero_attn:
        zero = OPS["zeros"].call(n, num_heads, 1, width, dtype=d)
        k, v = cat([k, zero], 2), cat([v, zero], 2)
        mask, padding = (t if t is None else pad(t, (0, 1)) for t in (mask, padding))
    mask = _joined(mask, padding, n, num_heads, length, k.shape[2])
    p = dropout_p if training else 0.0
    if need_weights:
        _check_scores(q, mask, op)
        # as PyTorch, where nothing may be seen this path gives nan
        y, weights = attention_weights(q, k, v, mask, p, False, None, math.nan)
    else:
        y, weights = scaled_dot_product_attention(q, k, v, mask, p, causal), None
    y = linear(y.permute(2, 0, 1, 3).reshape(length * n, e), out_proj_weight, out_proj_bias)
    return _finished(y.reshape(length, n, y.shape[1]), weights, average_attn_weights, batched)


def _finished(y: Tensor, weights: Tensor | None, average: bool, batched: bool) -> tuple[Tensor, Tensor | None]:
    """Return the output and its weights, averaged over heads, without the batch dim if the inputs had none."""
    if weights is not None and average:
        weights = weights.mean(dim=1)
    if batched:
        return y, weights
    return y.squeeze(1), None if weights is None else weights.squeeze(0)


def _check_given(op: str, **operands: Any) -> None:
    """Refuse operands that are neither tensors nor None."""
    for name, value in operands.items():
        optional_tensor(value, op, name)


def _check_alike(q: Tensor, k: Tensor, v: Tensor, op: str) -> None:
    """Refuse keys and values that a bias of another dtype has changed."""
    for t in (k, v):
        if t.dtype is not q.dtype:
            raise RuntimeError(f"expected scalar type {scalar_type(q.dtype)} but found {scalar_type(t.dtype)} (bias_k, bias_v of {op}())")


def _check_scores(q: Tensor, mask: Tensor | None, op: str) -> None:
    """Refuse queries and masks of which there is no softmax, where it is an op of its own."""
    if mask is not None and mask.dtype is not q.dtype:
        raise RuntimeError(f"Input dtypes must be the same, got: a mask of {mask.dtype} and a query of {q.dtype} ({op}())")
    need_floating(q, op)


def _check_projections(k: Tensor, v: Tensor, weight: Any, separate: tuple[Any, ...] | None) -> None:
    """Raise AssertionError where key, value and the weights of their projections do not go together."""
    if separate is None:
        if k.shape != v.shape:
            raise AssertionError(f"key shape {k.shape} does not match value shape {v.shape}")
        if weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        return
    if k.shape[:2] != v.shape[:2]:
        raise AssertionError(f"key's sequence and batch dims {k.shape[:2]} do not match value's {v.shape[:2]}")
    for name, w in zip("qkv", separate, strict=True):
        if w is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")


def _three_dims(mask: Tensor | None, batch: int, length: int, source: int) -> Tensor | None:
    """Return the mask (1 or N · heads, L, S); RuntimeError for another shape."""
    if mask is None:
        return None
    if mask.ndim == 2:
        if tuple(mask.shape) != (length, source):
            raise RuntimeError(f"The shape of the 2D attn_mask is {mask.shape}, but should be {(length, source)}.")
        return mask.unsqueeze(0)
    if tuple(mask.shape) != (batch, length, source):
        raise RuntimeError(f"The shape of the 3D attn_mask is {mask.shape}, but should be {(batch, length, source)}.")
    return mask


def _joined(mask: Tensor | None, padding: Tensor | None, n: int, heads: int, length: int, source: int) -> Tensor | None:
    """Return one mask that broadcasts to (N, heads, L, S) of a mask (1 or N · heads, L, S) and a padding (N, S); None where there is neither."""
    if mask is not None:
        mask = mask.reshape(-1, heads, length, source) if mask.shape[0] > 1 else mask.reshape(1, 1, length, source)
    if padding is None:
        return mask
    if tuple(padding.shape) != (n, source):
        raise AssertionError(f"Expected key_padded_mask.shape[0] to be {n} and [1] to be {source}, but got {tuple(padding.shape)}")
    seen = padding.reshape(n, 1, 1, source)
    return seen if mask is None else mask + seen
