"""Rotary embeddings of positions, along one axis and two."""

from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb

from ..helpers import data, numbers


def run():
    rotary = RotaryEmbedding(dim=8)
    q, k = data(1, 2, 6, 16).requires_grad_(), data(1, 2, 6, 16, seed=1)
    turned, other = rotary.rotate_queries_or_keys(q), rotary.rotate_queries_or_keys(k)
    (turned @ other.mT).softmax(-1).square().sum().backward()
    axial = RotaryEmbedding(dim=4, freqs_for="pixel", max_freq=16).get_axial_freqs(4, 5)
    image = apply_rotary_emb(axial, data(1, 4, 5, 16))
    scaled = RotaryEmbedding(dim=8, use_xpos=True).rotate_queries_and_keys(data(1, 2, 6, 16), k)
    return {"turned": numbers(turned, other), "gradient": numbers(q.grad), "axial": numbers(axial, image), "scaled": numbers(*scaled)}
