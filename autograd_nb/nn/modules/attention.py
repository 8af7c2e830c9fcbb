"""Multi-head attention.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html
"""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...errors import warn_user
from ...ops.creation.create import new_full
from ...tensor import Tensor
from .. import functional as F
from .. import init
from .linear import NonDynamicallyQuantizableLinear
from .module import Module
from .options import parameter


def float_mask(mask: Tensor | None, name: str, other: Tensor | None, other_name: str, d: dtypes.dtype) -> Tensor | None:
    """Return a mask that is added to scores: −∞ where a bool mask is True. AssertionError unless it is bool or floating."""
    if mask is None:
        return None
    floating = mask.dtype.category >= 2
    if not floating and mask.dtype is not dtypes.bool_:
        raise AssertionError(f"only bool and floating types of {name} are supported (got {mask.dtype})")
    if other is not None and other.dtype is not mask.dtype:
        warn_user(
            f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead."
        )
    return mask if floating else new_full(mask.shape, 0.0, d).masked_fill_(mask, float("-inf"))


class MultiheadAttention(Module):
    """softmax(Q Kᵀ/√d) V for several heads, with Q, K and V linear in query, key and value, and a last linear map.

    Shapes: query (L, N, embed_dim), key (S, N, kdim), value (S, N, vdim), with the batch first if ``batch_first``, or without
    it; → output like query, weights (N, L, S) or None. ``add_bias_kv``: one learned key and value more; ``add_zero_attn``: one of
    zeros. Masks: True or −∞ where a key is not seen.

    Example:
        >>> x = torch.randn(2, 5, 8)
        >>> y, w = torch.nn.MultiheadAttention(8, 2, batch_first=True)(x, x, x)
        >>> y.shape, w.shape
        (torch.Size([2, 5, 8]), torch.Size([2, 5, 5]))
    """

    embed_dim: int
    num_heads: int
    dropout: float
    batch_first: bool
    kdim: int
    vdim: int
    head_dim: int
    out_proj: NonDynamicallyQuantizableLinear

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError(f"embed_dim must be divisible by num_heads (got {embed_dim} and {num_heads})")
        together = self._qkv_same_embed_dim
        shapes: dict[str, tuple[int, ...] | None] = {
            "in_proj_weight": (3 * embed_dim, embed_dim) if together else None,
            "q_proj_weight": None if together else (embed_dim, embed_dim),
            "k_proj_weight": None if together else (embed_dim, self.kdim),
            "v_proj_weight": None if together else (embed_dim, self.vdim),
            "in_proj_bias": (3 * embed_dim,) if bias else None,
        }
        for name, shape in shapes.items():
            self.register_parameter(name, None if shape is None else parameter(shape, dtype, device))
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            setattr(self, name, parameter((1, 1, embed_dim), dtype, device) if add_bias_kv else None)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            self.out_proj.bias.data.zero_()  # type: ignore[union-attr]
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def __setstate__(self, state: dict[Any, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)  # modules pickled before kdim and vdim came
        super().__setstate__(state)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None, need_weights: bool = True,
        attn_mask: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Return (output, weights averaged over heads; by head if not ``average_attn_weights``; None if not ``need_weights``).

        key_padding_mask (N, S), attn_mask (L, S) or (N · heads, L, S); is_causal: says that attn_mask is the causal one.
        """
        key_padding_mask = float_mask(key_padding_mask, "key_padding_mask", attn_mask, "attn_mask", query.dtype)
        attn_mask = float_mask(attn_mask, "attn_mask", None, "", query.dtype)
        batch_first = self.batch_first and query.ndim == 3
        if batch_first:
            same = key is query, value is key  # the projection is one product where all three are one tensor
            query = query.transpose(1, 0)
            key = query if same[0] else key.transpose(1, 0)
            value = key if same[1] else value.transpose(1, 0)
        out, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v,
            self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, training=self.training,
            key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim, q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight, v_proj_weight=self.v_proj_weight, average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )  # fmt: skip
        return out.transpose(1, 0) if batch_first else out, weights
