"""Multi-head attention and the transformer's modules, without PyTorch at hand."""

from __future__ import annotations

import copy
import math

import pytest

import autograd_nb as torch
from autograd_nb import nn


def by_hand(m, q, k, v, mask=None):
    """Attention of one unbatched sequence, head by head."""
    w, b = m.in_proj_weight.chunk(3), m.in_proj_bias.chunk(3)
    q, k, v = (x @ wi.T + bi for x, wi, bi in zip((q, k, v), w, b, strict=True))
    out, weights = [], []
    for h in range(m.num_heads):
        part = slice(h * m.head_dim, (h + 1) * m.head_dim)
        scores = q[:, part] @ k[:, part].T / math.sqrt(m.head_dim)
        p = (scores if mask is None else scores + mask).softmax(-1)
        out.append(p @ v[:, part])
        weights.append(p)
    return m.out_proj(torch.cat(out, 1)), torch.stack(weights)


def test_attention_is_what_the_formula_says():
    torch.manual_seed(0)
    m = nn.MultiheadAttention(6, 2)
    q, k = torch.randn(3, 6), torch.randn(4, 6)
    y, w = m(q, k, k, average_attn_weights=False)
    z, p = by_hand(m, q, k, k)
    assert torch.allclose(y, z, atol=1e-6)
    assert torch.allclose(w, p, atol=1e-6)
    assert torch.allclose(m(q, k, k)[1], p.mean(0), atol=1e-6)
    assert m(q, k, k, need_weights=False)[1] is None
    mask = torch.tensor([[False, True, False, True]] * 3)
    minus = torch.zeros(3, 4).masked_fill(mask, float("-inf"))
    assert torch.allclose(m(q, k, k, attn_mask=mask)[0], by_hand(m, q, k, k, minus)[0], atol=1e-6)
    assert torch.allclose(m(q, k, k, key_padding_mask=mask[0])[0], by_hand(m, q, k, k, minus)[0], atol=1e-6)


def test_batch_first_is_only_another_order():
    m = nn.MultiheadAttention(4, 2)
    n = nn.MultiheadAttention(4, 2, batch_first=True)
    n.load_state_dict(m.state_dict())
    x = torch.randn(3, 2, 4)
    y, w = m(x, x, x)
    z, p = n(*[x.transpose(0, 1)] * 3)
    assert torch.allclose(y, z.transpose(0, 1), atol=1e-6)
    assert torch.allclose(w, p, atol=1e-6)


def test_other_key_sizes_and_added_keys():
    m = nn.MultiheadAttention(4, 2, kdim=3, vdim=5, add_bias_kv=True, add_zero_attn=True)
    assert set(m.state_dict()) == {
        "q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias", "bias_k", "bias_v", "out_proj.weight", "out_proj.bias",
    }  # fmt: skip
    y, w = m(torch.randn(3, 2, 4), torch.randn(6, 2, 3), torch.randn(6, 2, 5))
    assert y.shape == (3, 2, 4)
    assert w.shape == (2, 3, 8)
    assert torch.allclose(w.sum(-1), torch.ones(2, 3))
    y.sum().backward()
    assert all(p.grad is not None for p in m.parameters())


def test_gradients():
    torch.manual_seed(1)
    layer = nn.TransformerDecoderLayer(4, 2, 5, 0.0, "gelu", batch_first=True, norm_first=True).double()
    x, memory = (torch.randn(1, n, 4, dtype=torch.float64, requires_grad=True) for n in (2, 3))
    assert torch.autograd.gradcheck(layer, (x, memory))


@pytest.mark.parametrize("norm_first", [False, True])
def test_encoder_layer(norm_first):
    layer = nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True, norm_first=norm_first)
    x = torch.randn(2, 3, 4)

    def attend(t):
        return layer.self_attn(t, t, t)[0]

    def feed(t):
        return layer.linear2(layer.linear1(t).relu())

    if norm_first:
        y = x + attend(layer.norm1(x))
        y = y + feed(layer.norm2(y))
    else:
        y = layer.norm1(x + attend(x))
        y = layer.norm2(y + feed(y))
    assert torch.allclose(layer(x), y, atol=1e-6)


def test_causal_mask():
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    inf = float("inf")
    assert mask.tolist() == [[0, -inf, -inf], [0, 0, -inf], [0, 0, 0]]
    layer = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True), 2)
    x = torch.randn(1, 3, 4)
    y = layer(x, mask=mask)
    x[:, 2] += 1
    z = layer(x, mask=mask, is_causal=True)
    assert torch.allclose(y[:, :2], z[:, :2], atol=1e-6)  # the past does not see the future
    assert not torch.allclose(y[:, 2], z[:, 2])


@pytest.mark.parametrize("length", [1, 5, 63, 80, 200])
def test_causal_attention_over_several_blocks_of_queries(length):
    """Whatever the height of a tile is on this processor: blocks begin where tiles of all causal scores do; values and gradients."""
    torch.manual_seed(length)
    q, k, v = (torch.randn(length, 3, dtype=torch.float64, requires_grad=True) for _ in range(3))
    y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    later = torch.triu(torch.full((length, length), -math.inf, dtype=torch.float64), 1)
    expected = (q @ k.T / math.sqrt(3) + later).softmax(-1) @ v
    assert torch.allclose(y, expected)
    weights = torch.randn_like(y)
    for mine, theirs in zip(torch.autograd.grad(y, (q, k, v), weights), torch.autograd.grad(expected, (q, k, v), weights), strict=True):
        assert torch.allclose(mine, theirs)


def test_padded_places_are_zero_in_evaluation():
    layer = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True), 1).eval()
    x, padding = torch.randn(1, 3, 4), torch.tensor([[False, False, True]])
    with torch.no_grad():
        y = layer(x, src_key_padding_mask=padding)
        assert y[0, 2].tolist() == [0, 0, 0, 0]
        assert torch.allclose(y[:, :2], layer(x[:, :2]), atol=1e-6)
    assert layer(x, src_key_padding_mask=padding)[0, 2].abs().sum() > 0  # where gradients are recorded they are computed


def test_transformer():
    with pytest.warns(UserWarning, match="enable_nested_tensor is True"):
        model = nn.Transformer(8, 2, 1, 2, 16, dropout=0.0)
    y = model(torch.randn(5, 3, 8), torch.randn(4, 3, 8), tgt_mask=model.generate_square_subsequent_mask(4))
    assert y.shape == (4, 3, 8)
    assert len(model.encoder.layers) == 1
    assert len(model.decoder.layers) == 2
    a, b = model.decoder.layers
    assert a.linear1.weight is not b.linear1.weight
    assert set(copy.deepcopy(model).state_dict()) == set(model.state_dict())
    with pytest.raises(RuntimeError, match="batch number of src and tgt must be equal"):
        model(torch.randn(5, 3, 8), torch.randn(4, 2, 8))
    with pytest.raises(RuntimeError, match="equal to d_model"):
        model(torch.randn(5, 3, 8), torch.randn(4, 3, 7))


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: nn.MultiheadAttention(5, 2), AssertionError, "divisible by num_heads"),
        (lambda: nn.MultiheadAttention(0, 2), ValueError, "must be greater than 0"),
        (lambda: nn.TransformerEncoderLayer(4, 2, activation="tanh"), RuntimeError, "should be relu/gelu"),
        (
            lambda: nn.MultiheadAttention(4, 2)(*[torch.zeros(3, 4)] * 3, attn_mask=torch.zeros(3, 3, dtype=torch.int64)),
            AssertionError,
            "only bool and floating types",
        ),
    ],
)
def test_refused(make, error, text):
    with pytest.raises(error, match=text):
        make()
