"""Attention in less than quadratic time: Performer, Linformer, Nyström's, local windows, Reformer's positions, and Perceiver"""

import torch
from axial_positional_embedding import AxialPositionalEmbedding
from linformer import Linformer
from local_attention import LocalAttention
from nystrom_attention import NystromAttention
from perceiver_pytorch import Perceiver
from performer_pytorch import FastAttention

from ..helpers import data, drawn_by_numpy, fill, integers, numbers, train


def run():
    q, k, v = (data(2, 4, 16, 8, seed=s) for s in range(3))
    with drawn_by_numpy():
        performer = FastAttention(8, nb_features=16)
    performer.projection_matrix.copy_(data(16, 8, seed=9))
    generalized = FastAttention(8, nb_features=16, generalized_attention=True)
    generalized.projection_matrix.copy_(data(16, 8, seed=9))
    causal = LocalAttention(dim=8, window_size=4, causal=True, autopad=True)
    x = data(2, 16, 32)
    lin, nys = fill(Linformer(32, 16, 2, heads=4, k=8)), fill(NystromAttention(32, dim_head=8, heads=4, num_landmarks=4))
    axial = fill(AxialPositionalEmbedding(32, axial_shape=(4, 4)))
    perceiver = fill(Perceiver(
        input_channels=3, input_axis=2, num_freq_bands=2, max_freq=4.0, depth=2, num_latents=6, latent_dim=16, num_classes=5, latent_dim_head=8,
        cross_dim_head=8, latent_heads=2), scale=0.2)
    pictures, labels = data(2, 6, 6, 3), integers(5, 2)
    return {
        "performer": numbers(performer(q, k, v), generalized(q, k, v)), "local": numbers(causal(q, k, v)),
        "linformer": train(lin, lambda: (lin(x) - 1).square().mean()), "nystrom": train(nys, lambda: (nys(x) - 1).square().mean()),
        "axial": train(axial, lambda: (axial(x) - 1).square().mean()),
        "perceiver": train(perceiver, lambda: torch.nn.functional.cross_entropy(perceiver(pictures), labels)),
    }
