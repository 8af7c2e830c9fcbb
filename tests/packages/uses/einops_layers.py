"""Rearranged, reduced and repeated images, einsum by names, and layers that do it in a network"""

import einops
import torch
from einops.layers.torch import EinMix, Rearrange, Reduce

from ..helpers import data, fill, numbers, train


def run():
    x = data(2, 3, 8, 8).requires_grad_()
    patches = einops.rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4)
    pooled = einops.reduce(x, "b c (h 2) (w 2) -> b c h w", "max")
    tiled = einops.repeat(pooled.mean((2, 3)), "b c -> b c k", k=3)
    (patches.square().mean() + tiled.sum()).backward()
    packed, shapes = einops.pack([data(2, 5), data(2, 3, 4, seed=1)], "b *")
    back = einops.unpack(packed, shapes, "b *")
    product = einops.einsum(data(4, 5), data(5, 6, seed=2), "i j, j k -> k i")
    net = fill(torch.nn.Sequential(
        Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4), EinMix("b n i -> b n o", weight_shape="i o", bias_shape="o", i=48, o=8),
        torch.nn.GELU(), Reduce("b n o -> b o", "mean"), torch.nn.Linear(8, 1)), scale=0.2)
    losses = train(net, lambda: (net(x.detach()) - 1).square().mean())
    return {"patches": numbers(patches, pooled, tiled), "gradient": numbers(x.grad), "packed": numbers(packed, *back),
            "product": numbers(product), "losses": losses}
