"""Attention whose scores a function changes or masks: `flex_attention`, and the masks that it takes.

The functions are given one score, or place, at a time (0-d tensors) and are mapped over all of them by `vmap`. All scores are computed, and
those of masked places dropped; a `BlockMask` tells which blocks of places a mask leaves empty, and is itself read through its ``mask_mod``.

Source: https://docs.pytorch.org/docs/stable/nn.attention.flex_attention.html
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from .. import dtypes
from ..autograd.batching.vmap import vmap
from ..ops.core.registry import OPS
from ..tensor import Tensor
from . import functional as F

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask", "create_mask", "flex_attention", "noop_mask", "or_masks",
]  # fmt: skip

_DEFAULT_SPARSE_BLOCK_SIZE = 128
FlexKernelOptions: TypeAlias = dict[str, Any]  #: options of PyTorch's kernels, without effect here
MaskMod: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


class AuxRequest(NamedTuple):
    """A request says what `flex_attention` is to return beside the output: ``lse``, ``max_scores``."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """Holds the logarithm of the sum of exponentials of the scores, and their maximum, (B, H, L) each, None where it was not asked for."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """Return true: nothing is masked."""
    return batch.new_ones((), dtype=dtypes.bool_)


def _of_masks(mask_mods: tuple[MaskMod, ...], first: bool, join: Callable[[Tensor, Tensor], Tensor]) -> MaskMod:
    if not all(callable(mask) for mask in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def mask_mod(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_full((), first, dtype=dtypes.bool_)
        for mask in mask_mods:
            result = join(result, mask(b, h, q_idx, kv_idx))
        return result

    return mask_mod


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """Return the mask of the places that all of the masks keep. RuntimeError for what is no function."""
    return _of_masks(mask_mods, True, lambda a, b: a & b)


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """Return the mask of the places that one of the masks keeps. RuntimeError for what is no function."""
    return _of_masks(mask_mods, False, lambda a, b: a | b)


def _mapped(function: Callable[..., Tensor], sizes: tuple[int, int, int, int], scores: tuple[Tensor, ...] = ()) -> Tensor:
    """Return ``function(*scores, b, h, q, kv)`` of every place, (B, H, Q, KV)."""
    lead = (0,) * len(scores)
    for k in (3, 2, 1, 0):
        function = vmap(function, (*lead, *(0 if d == k else None for d in range(4))))
    return function(*scores, *(OPS["arange"].call(n) for n in sizes))


def create_mask(mod_fn: Callable[..., Tensor], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None) -> Tensor:
    """Return the mask of a function, bool (B, H, Q_LEN, KV_LEN); the bias, of a function of a score: what it makes of zeros.

    >>> from autograd_nb.nn.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, kv: q >= kv, 1, 1, 2, 2)
    tensor([[[[ True, False],
              [ True,  True]]]])
    """
    sizes = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    if _takes_score(mod_fn):
        return _mapped(mod_fn, sizes, (OPS["zeros"].call(*sizes),))
    return _mapped(mod_fn, sizes)


def _takes_score(function: Callable[..., Any]) -> bool:
    import inspect

    parameters = inspect.signature(function).parameters.values()
    required = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(required) == 5


class BlockMask:
    """Tells which blocks of (query, key) places a mask keeps whole, in part, or not at all; `create_block_mask` makes one.

    ``kv_num_blocks`` (B, H, rows) and ``kv_indices`` (B, H, rows, columns) list the blocks of each row that are kept in part, first in the
    list; ``full_kv_num_blocks`` and ``full_kv_indices`` those that are kept whole; ``q_…`` the same by columns. ``BLOCK_SIZE`` is (Q, KV).
    """

    seq_lengths: tuple[int, int]
    BLOCK_SIZE: tuple[int, int]
    mask_mod: MaskMod
    kv_num_blocks: Tensor
    kv_indices: Tensor
    full_kv_num_blocks: Tensor | None
    full_kv_indices: Tensor | None
    q_num_blocks: Tensor | None
    q_indices: Tensor | None
    full_q_num_blocks: Tensor | None
    full_q_indices: Tensor | None

    def __init__(
        self, seq_lengths: tuple[int, int], kv_num_blocks: Tensor, kv_indices: Tensor, full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None, BLOCK_SIZE: tuple[int, int], mask_mod: MaskMod, compute_q_blocks: bool = True,
    ) -> None:  # fmt: skip
        if kv_indices.ndim < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = seq_lengths, BLOCK_SIZE, mask_mod
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks = self.q_indices = self.full_q_num_blocks = self.full_q_indices = None
        if compute_q_blocks:
            self.q_num_blocks, self.q_indices = _listed(_spread(kv_num_blocks, kv_indices).transpose(-2, -1))
            if full_kv_num_blocks is not None:
                self.full_q_num_blocks, self.full_q_indices = _listed(_spread(full_kv_num_blocks, full_kv_indices).transpose(-2, -1))

    @classmethod
    def from_kv_blocks(
        cls, kv_num_blocks: Tensor, kv_indices: Tensor, full_kv_num_blocks: Tensor | None = None, full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE, mask_mod: MaskMod | None = None, seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:  # fmt: skip
        """Return the mask whose blocks these are."""
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        lengths = (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        return cls(
            seq_lengths or lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, size, mask_mod or noop_mask, compute_q_blocks
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Return (B, H, queries, keys)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """Return the number of places."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """Return how many percent of the places are in blocks that are masked as a whole."""
        blocks = self.kv_num_blocks.sum().item() + (0 if self.full_kv_num_blocks is None else self.full_kv_num_blocks.sum().item())
        return 100 * (1 - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """Return which blocks are kept, whole or in part, (B, H, rows, columns) of 0 and 1."""
        kept = _spread(self.kv_num_blocks, self.kv_indices)
        return kept if self.full_kv_num_blocks is None else kept | _spread(self.full_kv_num_blocks, self.full_kv_indices)

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """Return what the mask is made of."""
        size = self.BLOCK_SIZE if flatten else (self.BLOCK_SIZE,)
        lengths = self.seq_lengths if flatten else (self.seq_lengths,)
        return (
            *lengths, self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices, self.q_num_blocks, self.q_indices,
            self.full_q_num_blocks, self.full_q_indices, *size, self.mask_mod,
        )  # fmt: skip

    def to(self, device: Any) -> BlockMask:
        """Return the mask, which is on the CPU."""
        return self

    def __getitem__(self, index: Any) -> BlockMask:
        index = index if isinstance(index, tuple) else (index,)
        index = tuple(slice(i, i + 1 or None) if isinstance(i, int) else i for i in index)
        full = None if self.full_kv_num_blocks is None else self.full_kv_num_blocks[index]
        places = None if self.full_kv_indices is None else self.full_kv_indices[index]
        return BlockMask.from_kv_blocks(
            self.kv_num_blocks[index], self.kv_indices[index], full, places, self.BLOCK_SIZE, self.mask_mod, self.seq_lengths, self.q_indices is not None
        )

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def _listed(kept: Tensor) -> tuple[Tensor, Tensor]:
    """Return (how many blocks of each row are kept, all of the row's, first those)."""
    kept = kept.to(dtypes.int32)
    return kept.sum(-1).to(dtypes.int32).contiguous(), kept.argsort(dim=-1, descending=True, stable=True).to(dtypes.int32).contiguous()


def _spread(numbers: Tensor, indices: Any) -> Tensor:
    """Return the blocks that such lists name, (…, rows, columns) of 0 and 1."""
    named = OPS["arange"].call(indices.shape[-1]) < numbers[..., None]
    return named.new_zeros(indices.shape, dtype=dtypes.int32).scatter(-1, indices.to(dtypes.int64), named.to(dtypes.int32))


def create_block_mask(
    mask_mod: MaskMod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE, _compile: bool = False,
) -> BlockMask:  # fmt: skip
    """Return the `BlockMask` of a function of a place, which says whether it is kept; None for ``B`` or ``H``: the same for all.

    >>> from autograd_nb.nn.flex_attention import create_block_mask
    >>> create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 4, 4, BLOCK_SIZE=2).to_dense()
    tensor([[[[1, 0],
              [1, 1]]]], dtype=torch.int32)
    """
    if _takes_score(mask_mod):
        raise AssertionError(f"create_block_mask requires a mask_mod function (of b, h, q_idx, kv_idx)! Got {mask_mod}")
    rows, columns = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = F.pad(create_mask(mask_mod, B, H, Q_LEN, KV_LEN), (0, -KV_LEN % columns, 0, -Q_LEN % rows))
    b, h, q, kv = mask.shape
    count = mask.view(b, h, q // rows, rows, kv // columns, columns).permute(0, 1, 2, 4, 3, 5).sum((-2, -1))
    whole = count == rows * columns
    partial = _listed((count > 0) & ~whole)
    return BlockMask((Q_LEN, KV_LEN), *partial, *_listed(whole), (rows, columns), mask_mod)


def _check(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool, block_mask: BlockMask | None) -> None:
    for name, t in (("query", query), ("key", key), ("value", value)):
        if t.ndim != 4:
            raise NotImplementedError(f"NYI: query, key, and value must be 4D tensors ({name} has shape {list(t.shape)})")
    if query.dtype is not key.dtype or query.dtype is not value.dtype:
        raise ValueError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {query.dtype}, key.dtype: {key.dtype}, and "
            f"value.dtype: {value.dtype} instead."
        )
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"Expect query and key/value to have the same embedding dimension but got E={query.shape[-1]} and E={key.shape[-1]}.")
    heads, of_keys = query.shape[1], key.shape[1]
    if not enable_gqa and heads != of_keys:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={of_keys}. Try setting enable_gqa=True for GQA."
        )
    if heads % of_keys:
        raise ValueError(f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={of_keys}.")
    if block_mask is None:
        return
    for d, n in ((0, query.shape[0]), (1, heads)):
        if block_mask.kv_num_blocks.shape[d] not in (1, n):
            raise ValueError(f"flex_attention(): block_mask of shape {block_mask.shape} does not broadcast to {n} in dim {d}")
    if block_mask.seq_lengths != (query.shape[-2], key.shape[-2]):
        raise ValueError(
            f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={query.shape[-2]} and kv_len={key.shape[-2]}: make the "
            "mask with the lengths of these tensors"
        )


def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: Callable[..., Tensor] | None = None, block_mask: BlockMask | None = None,
    scale: float | None = None, enable_gqa: bool = False, return_lse: bool = False, kernel_options: Any = None, *, return_aux: AuxRequest | None = None,
) -> Any:  # fmt: skip
    """Return softmax(score_mod(scale · q kᵀ)) v, the scores of masked places being −∞; query (B, H, L, E), key (B, H, S, E), value (B, H, S, V).

    ``score_mod(score, b, h, q_idx, kv_idx)`` changes one score; ``block_mask`` drops places. ``scale`` is 1/√E unless given. A query all of whose
    places are masked gives zeros. With ``return_aux`` (output, `AuxOutput`), with ``return_lse`` (output, lse) is returned.

    Errors: ValueError for shapes and dtypes that do not match.

    >>> from autograd_nb.nn.flex_attention import flex_attention
    >>> v = torch.tensor([[[[1.0], [3.0]]]])
    >>> flex_attention(torch.zeros(1, 1, 2, 4), torch.zeros(1, 1, 2, 4), v, lambda s, b, h, q, kv: torch.where(q >= kv, s, -torch.inf)).flatten()
    tensor([1., 2.])
    """
    _check(query, key, value, enable_gqa, block_mask)
    if return_lse and return_aux is not None:
        raise ValueError("return_lse and return_aux cannot be used together (use return_aux=AuxRequest(lse=True))")
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    if query.shape[0] != key.shape[0]:
        if key.shape[0] != 1:
            raise RuntimeError(f"Bq and Bkv must broadcast. Got Bq={query.shape[0]} and Bkv={key.shape[0]}")
        key, value = (t.expand(query.shape[0], -1, -1, -1) for t in (key, value))
    working = dtypes.float64 if query.dtype is dtypes.float64 else dtypes.float32
    scores = (query.to(working) @ key.to(working).transpose(-2, -1)) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    sizes: Any = tuple(scores.shape)
    if score_mod is not None:
        scores = _mapped(score_mod, sizes, (scores,)).to(working)
    if block_mask is not None and block_mask.mask_mod is not noop_mask:
        scores = scores.masked_fill(~_mapped(block_mask.mask_mod, sizes), -math.inf)
    empty = (scores == -math.inf).all(-1)
    weights = scores.softmax(-1).masked_fill(empty[..., None], 0.0)
    out = weights.to(query.dtype) @ value
    if not return_lse and return_aux is None:
        return out
    lse = scores.logsumexp(-1) if return_lse or (return_aux and return_aux.lse) else None
    if return_lse:
        return out, lse
    return out, AuxOutput(lse, scores.amax(-1) if return_aux and return_aux.max_scores else None)
