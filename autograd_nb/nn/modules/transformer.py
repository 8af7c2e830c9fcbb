"""The transformer (Vaswani et al., 2017) and its parts.

Source: https://docs.pytorch.org/docs/stable/nn.html#transformer-layers
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ... import dtypes, launch
from ...errors import warn_user
from ...graph.modes import state
from ...ops.creation.cast import as_device
from ...ops.creation.create import new_full
from ...tensor import Tensor
from .. import functional as F
from .. import init
from .activation import GELU, ReLU
from .attention import MultiheadAttention, float_mask
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

Activation = str | Callable[[Tensor], Tensor]


def _causal_mask(size: int, device: Any = None, dtype: Any = None) -> Tensor:
    """Return a mask that is −∞ above the diagonal, else 0."""
    if device is not None:
        as_device(device)
    d = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    return new_full((size, size), float("-inf"), d).triu(1)


def _is_causal(mask: Tensor | None, said: bool | None, x: Tensor, batch_first: bool) -> bool:
    """Return whether a mask is the causal one, if the caller does not say."""
    size = x.size(0 if x.ndim == 2 or not batch_first else 1)
    if said is not None or mask is None:
        return said is True
    if launch.observer() is not None:  # a captured function does not look at values; the mask does the same without the hint
        return False
    return tuple(mask.shape) == (size, size) and bool((mask == _causal_mask(size, dtype=mask.dtype)).all())


def _get_activation_fn(given: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(given, str):
        return given
    if given not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {given}")
    return getattr(F, given)


def _get_clones(module: Module, n: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(n)])


class _Layer(Module):
    """The base of the layers: kinds of attention, each with dropout and a layer norm, and a feed-forward network with both."""

    self_attn: MultiheadAttention
    multihead_attn: MultiheadAttention
    linear1: Linear
    dropout: Dropout
    linear2: Linear
    norm1: LayerNorm
    norm2: LayerNorm
    norm3: LayerNorm
    dropout1: Dropout
    dropout2: Dropout
    dropout3: Dropout
    activation: Callable[..., Tensor]
    attentions: tuple[str, ...]

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        where: dict[str, Any] = {"device": device, "dtype": dtype}
        super().__init__()
        for name in self.attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, **where))
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **where)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **where)
        self.norm_first = norm_first
        parts = range(1, len(self.attentions) + 2)
        for i in parts:
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where))
        for i in parts:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _get_activation_fn(activation)

    def _sa_block(self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False) -> Tensor:
        y = self.self_attn(x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, need_weights=False, is_causal=is_causal)[0]
        return self.dropout1(y)

    def _ff_block(self, x: Tensor) -> Tensor:
        last = self.dropout2 if len(self.attentions) == 1 else self.dropout3
        return last(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward network, each with dropout, a residual connection and layer norm.

    activation: "relu", "gelu" or a callable. norm_first: normalise what goes into a part instead of the sum.
    Shapes: as of `MultiheadAttention`; the output like the input.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoderLayer.html

    >>> torch.nn.TransformerEncoderLayer(4, 2, 8)(torch.ones(3, 1, 4)).shape
    torch.Size([3, 1, 4])
    """

    attentions: tuple[str, ...] = ("self_attn",)

    @property
    def activation_relu_or_gelu(self) -> int:
        """Return 1 for relu, 2 for gelu, else 0."""
        if self.activation is F.relu or isinstance(self.activation, ReLU):
            return 1
        return 2 if self.activation is F.gelu or isinstance(self.activation, GELU) else 0

    def forward(
        self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool = False
    ) -> Tensor:
        padding = float_mask(src_key_padding_mask, "src_key_padding_mask", src_mask, "src_mask", src.dtype)
        mask = float_mask(src_mask, "src_mask", None, "", src.dtype)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), mask, padding, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, mask, padding, is_causal))
        return self.norm2(x + self._ff_block(x))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's output (``memory``), and a feed-forward network; see `TransformerEncoderLayer`.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerDecoderLayer.html

    >>> torch.nn.TransformerDecoderLayer(4, 2, 8)(torch.ones(3, 1, 4), torch.ones(2, 1, 4)).shape
    torch.Size([3, 1, 4])
    """

    attentions: tuple[str, ...] = ("self_attn", "multihead_attn")

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        own, other = (tgt_mask, tgt_key_padding_mask, tgt_is_causal), (memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), memory, *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, memory, *other))
        return self.norm3(x + self._ff_block(x))

    def _mha_block(
        self, x: Tensor, mem: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        y = self.multihead_attn(x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False)
        return self.dropout2(y[0])


class TransformerEncoder(Module):
    """``num_layers`` copies of an encoder layer, one after the other, and a last ``norm``.

    enable_nested_tensor: padded places of the output are 0 in evaluation (where PyTorch computes on nested tensors); see forward.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoder.html

    >>> layer = torch.nn.TransformerEncoderLayer(4, 2, 8)
    >>> torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)(torch.ones(3, 1, 4)).shape
    torch.Size([3, 1, 4])
    """

    layers: ModuleList
    num_layers: int
    norm: Module | None
    enable_nested_tensor: bool
    mask_check: bool
    use_nested_tensor: bool

    def __init__(
        self, encoder_layer: Module, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check
        reason = _not_nested(encoder_layer)
        self.use_nested_tensor = enable_nested_tensor and not reason
        if enable_nested_tensor and reason:
            warn_user(
                f"enable_nested_tensor is True, but self.use_nested_tensor is False because encoder_layer{reason}"
            )

    def forward(
        self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool | None = None
    ) -> Tensor:
        padding = float_mask(src_key_padding_mask, "src_key_padding_mask", mask, "mask", src.dtype)
        mask = float_mask(mask, "mask", None, "", src.dtype)
        causal = _is_causal(mask, is_causal, src, self.layers[0].self_attn.batch_first)
        out = src
        for layer in self.layers:
            out = layer(out, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        if padding is not None and mask is None and self._forgets_padding(src, padding):
            out = out.masked_fill((padding != 0).unsqueeze(-1), 0.0)
        return out if self.norm is None else self.norm(out)

    def _forgets_padding(self, src: Tensor, padding: Tensor) -> bool:
        """Return whether PyTorch would drop the padding on the way and fill its places with 0 at the end."""
        if not getattr(self, "use_nested_tensor", False) or self.layers[0].training or src.ndim != 3:
            return False
        if state.grad and (src.requires_grad or any(p.requires_grad for p in self.layers[0].parameters())):
            return False
        seen = padding == 0
        return not self.mask_check or bool((seen[:, 1:] <= seen[:, :-1]).all())


def _not_nested(layer: Module) -> str:
    """Return why PyTorch's encoder would not use nested tensors with this layer, or nothing."""
    if not isinstance(layer, TransformerEncoderLayer):
        return " was not TransformerEncoderLayer"
    attention = layer.self_attn
    if layer.norm_first:
        return ".norm_first was True"
    if not attention.batch_first:
        return ".self_attn.batch_first was not True(use batch_first for better inference performance)"
    if not attention._qkv_same_embed_dim:
        return ".self_attn._qkv_same_embed_dim was not True"
    if attention.in_proj_bias is None:
        return ".self_attn was passed bias=False"
    if not layer.activation_relu_or_gelu:
        return ".activation_relu_or_gelu was not True"
    if layer.norm1.eps != layer.norm2.eps:
        return ".norm1.eps was not equal to encoder_layer.norm2.eps"
    return ".self_attn.num_heads is odd" if attention.num_heads % 2 else ""


class TransformerDecoder(Module):
    """``num_layers`` copies of a decoder layer, one after the other, and a last ``norm``.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerDecoder.html

    >>> layer = torch.nn.TransformerDecoderLayer(4, 2, 8)
    >>> torch.nn.TransformerDecoder(layer, 2)(torch.ones(3, 1, 4), torch.ones(2, 1, 4)).shape
    torch.Size([3, 1, 4])
    """

    layers: ModuleList
    num_layers: int
    norm: Module | None

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        causal = _is_causal(tgt_mask, tgt_is_causal, tgt, self.layers[0].self_attn.batch_first)
        out = tgt
        for layer in self.layers:
            out = layer(
                out, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal, memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return out if self.norm is None else self.norm(out)


class Transformer(Module):
    """An encoder, and a decoder that attends to its output. Matrices start Xavier-uniform.

    Shapes: src (S, N, d_model), tgt (T, N, d_model) → (T, N, d_model), with the batch first if ``batch_first``, or without it.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.Transformer.html

    >>> m = torch.nn.Transformer(4, 2, 1, 1, 8, batch_first=True)
    >>> m(torch.ones(1, 3, 4), torch.ones(1, 2, 4)).shape
    torch.Size([1, 2, 4])
    """

    encoder: Any
    decoder: Any
    d_model: int
    nhead: int
    batch_first: bool

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6, dim_feedforward: int = 2048,
        dropout: float = 0.1, activation: Activation = F.relu, custom_encoder: Any = None, custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        where: dict[str, Any] = {"device": device, "dtype": dtype}
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)

        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            self.encoder = TransformerEncoder(TransformerEncoderLayer(*options, **where), num_encoder_layers, norm())
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            self.decoder = TransformerDecoder(TransformerDecoderLayer(*options, **where), num_decoder_layers, norm())
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None, src_is_causal: bool | None = None, tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        dim = 0 if self.batch_first else 1
        if src.size(dim) != tgt.size(dim) and src.ndim == 3:
            raise RuntimeError(f"the batch number of src and tgt must be equal (src {list(src.shape)}, tgt {list(tgt.shape)})")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError(
                f"the feature number of src and tgt must be equal to d_model (= {self.d_model}; src {list(src.shape)}, "
                f"tgt {list(tgt.shape)})"
            )
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Return the causal mask: (sz, sz) with −∞ above the diagonal, else 0."""
        return _causal_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        for p in self.parameters():
            if p.ndim > 1:
                init.xavier_uniform_(p)
