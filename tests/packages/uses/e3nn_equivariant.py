"""Spherical harmonics, tensor products and a layer that turns with its inputs."""

import torch
from e3nn import nn as enn
from e3nn import o3

from ..helpers import data, fill, numbers, train


def run():
    points = data(6, 3).requires_grad_()
    harmonics = o3.spherical_harmonics([0, 1, 2], points, normalize=True, normalization="component")
    (harmonics * data(6, 9, seed=4)).sum().backward()
    angles = torch.tensor(0.3), torch.tensor(0.7), torch.tensor(-0.4)
    wigner = o3.Irreps("1x0e + 1x1o + 1x2e").D_from_angles(*angles)
    product = fill(o3.FullyConnectedTensorProduct("4x0e + 2x1o", "1x0e + 1x1o + 1x2e", "3x0e + 2x1o"), scale=0.5)
    for p in product.parameters():
        p.data = data(*p.shape, seed=3)
    linear = fill(o3.Linear("3x0e + 2x1o", "1x0e + 1x1o"))
    norm = enn.BatchNorm("2x0e + 1x1o")
    x = data(6, 10, seed=1)
    losses = train(product, lambda: linear(product(x, harmonics.detach())).square().mean())
    out = product(x, harmonics.detach())
    turned = product(x @ o3.Irreps("4x0e + 2x1o").D_from_angles(*angles).T, harmonics.detach() @ wigner.T)
    return {"harmonics": numbers(harmonics), "gradient": numbers(points.grad), "wigner": numbers(wigner), "losses": losses, "out": numbers(out),
            "turns": numbers((turned - out @ o3.Irreps("3x0e + 2x1o").D_from_angles(*angles).T).abs().max() < 1e-4), "norm": numbers(norm(data(4, 5)).detach())}
