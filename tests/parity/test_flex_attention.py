"""`nn.attention.flex_attention` beside PyTorch's eager one: scores that a function changes, block masks, gradients, what is told beside the output."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.nn.attention.flex_attention as theirs  # noqa: E402

import autograd_nb as ag  # noqa: E402
import autograd_nb.nn.flex_attention as mine  # noqa: E402


def drawn(lib, *shape):
    return lib.tensor(np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32), requires_grad=True)


SCORES = {
    "none": lambda lib: None,
    "causal": lambda lib: lambda s, b, h, q, kv: lib.where(q >= kv, s, -float("inf")),
    "alibi": lambda lib: lambda s, b, h, q, kv: s + lib.exp2(-((h + 1) * 8.0 / 4)) * (kv - q),
    "soft cap": lambda lib: lambda s, b, h, q, kv: 2 * lib.tanh(s / 2),
    "bias": lambda lib: (lambda bias: lambda s, b, h, q, kv: s + bias[b, h, q, kv])(lib.tensor(np.arange(2 * 4 * 6 * 5).reshape(2, 4, 6, 5) / 50.0)),
    "nested bias": lambda lib: (lambda bias: lambda s, b, h, q, kv: s + bias[h][q])(lib.tensor(np.arange(24).reshape(4, 6) / 9.0)),
}
MASKS = {
    "none": lambda m: None,
    "causal": lambda m: lambda b, h, q, kv: q >= kv,
    "window": lambda m: m.and_masks(lambda b, h, q, kv: q >= kv, lambda b, h, q, kv: q - kv <= 1),
    "prefix": lambda m: m.or_masks(lambda b, h, q, kv: kv < 2, lambda b, h, q, kv: q == kv),
    "of heads": lambda m: lambda b, h, q, kv: (q >= kv) | (h % 2 == 0),
    "nothing kept": lambda m: lambda b, h, q, kv: q > kv + 2,
    "everything": lambda m: m.noop_mask,
}


def both(score, mask, heads=4, key_heads=4, batch=2, **options):
    found = []
    for lib, module in ((ag, mine), (torch, theirs)):
        q, k, v = (drawn(lib, *shape).detach() for shape in ((2, heads, 6, 8), (batch, key_heads, 5, 8), (batch, key_heads, 5, 3)))
        block = MASKS[mask](module)
        if block is not None:
            block = module.create_block_mask(block, 2, heads, 6, 5, device="cpu", BLOCK_SIZE=2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = module.flex_attention(q, k, v, SCORES[score](lib), block, enable_gqa=heads != key_heads, **options)
        outs = [result] if not isinstance(result, tuple) else [result[0], *([result[1]] if isinstance(result[1], lib.Tensor) else result[1])]
        found.append([t.detach().numpy() for t in outs if t is not None])
    assert len(found[0]) == len(found[1])
    for a, b in zip(*found, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


@pytest.mark.parity
@pytest.mark.parametrize("score", SCORES)
def test_scores(score):
    both(score, "none")
    both(score, "causal")


@pytest.mark.parity
@pytest.mark.parametrize("mask", MASKS)
def test_masks(mask):
    both("none", mask)


@pytest.mark.parity
@pytest.mark.parametrize("mask", ["causal", "window", "prefix", "of heads"])
def test_gradients(mask):
    """Those that PyTorch gives where the mask is a tensor: its own flex_attention has none on the CPU."""
    kept = theirs.create_mask(MASKS[mask](theirs), 2, 4, 6, 5, device="cpu")
    found = []
    for lib in (ag, torch):
        q, k, v = drawn(lib, 2, 4, 6, 8), drawn(lib, 2, 4, 5, 8), drawn(lib, 2, 4, 5, 3)
        if lib is ag:
            out = mine.flex_attention(q, k, v, block_mask=mine.create_block_mask(MASKS[mask](mine), 2, 4, 6, 5, BLOCK_SIZE=4))
        else:
            out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=kept)
        out.square().sum().backward()
        found.append([t.detach().numpy() for t in (out, q.grad, k.grad, v.grad)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


@pytest.mark.parity
def test_groups_scale_and_what_is_told_beside():
    both("soft cap", "causal", key_heads=2, scale=0.3)
    both("none", "window", batch=1)
    both("none", "causal", return_lse=True)
    both("alibi", "causal", return_aux=type("Request", (), {"lse": True, "max_scores": False})())
    q = drawn(ag, 1, 2, 3, 4)
    told = mine.flex_attention(q, q, q, scale=1.0, return_aux=mine.AuxRequest(max_scores=True))[1]
    assert told.lse is None and ag.allclose(told.max_scores, (q @ q.mT).amax(-1))


@pytest.mark.parity
@pytest.mark.parametrize("mask", [m for m in MASKS if m != "none"])
@pytest.mark.parametrize("size", [2, (3, 2), 128])
def test_block_masks(mask, size):
    a, b = (m.create_block_mask(MASKS[mask](m), 2, 4, 7, 5, device="cpu", BLOCK_SIZE=size) for m in (mine, theirs))
    assert a.shape == b.shape and math.isclose(a.sparsity(), b.sparsity()) and a.numel() == b.numel() and a.BLOCK_SIZE == b.BLOCK_SIZE
    assert a.to_dense().tolist() == b.to_dense().tolist()
    for name in ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices"):
        x, y = getattr(a, name), getattr(b, name)
        assert x.tolist() == y.tolist() and str(x.dtype) == str(y.dtype), name
    assert a[:, 0].to_dense().tolist() == b[:, 0].to_dense().tolist()
    dense = mine.create_mask(MASKS[mask](mine), 2, 4, 7, 5)
    assert dense.tolist() == theirs.create_mask(MASKS[mask](theirs), 2, 4, 7, 5, device="cpu").tolist()


@pytest.mark.parity
def test_refusals():
    q = ag.zeros(1, 2, 4, 8)
    for error, arguments, options in (
        (NotImplementedError, (q[0], q, q), {}),
        (ValueError, (q, q.double(), q), {}),
        (ValueError, (q, q[:, :1], q[:, :1]), {}),
        (ValueError, (q, q[..., :4], q), {}),
        (ValueError, (q, q, q), {"block_mask": mine.create_block_mask(mine.noop_mask, None, None, 4, 6, BLOCK_SIZE=2)}),
    ):
        with pytest.raises(error):
            mine.flex_attention(*arguments, **options)
    with pytest.raises(RuntimeError, match="callable"):
        mine.and_masks(3)


def test_programs_find_it():
    from autograd_nb.nn.attention.flex_attention import flex_attention

    assert flex_attention is mine.flex_attention and ag.nn.attention.flex_attention is mine
