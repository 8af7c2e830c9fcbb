"""Cosine transforms (torch-dct) there and back, with gradients, and averages of weights (torch-ema)."""

import torch
import torch_dct
import torch_ema

from ..helpers import data, fill, numbers, train


def run():
    x = data(3, 8).requires_grad_()
    result = {}
    for name in ("dct", "idct", "dct1", "idct1", "dct_2d", "idct_2d"):
        y = getattr(torch_dct, name)(x)
        result[name] = numbers(y, torch.autograd.grad(y.square().sum(), x)[0])
    result["orthonormal"] = numbers(torch_dct.idct(torch_dct.dct(x, norm="ortho"), norm="ortho") - x + 1)
    result["volumes"] = numbers(torch_dct.dct_3d(data(2, 4, 4, 4)), torch_dct.LinearDCT(8, "dct")(x))
    net = fill(torch.nn.Linear(8, 2), scale=0.3)
    average = torch_ema.ExponentialMovingAverage(net.parameters(), decay=0.8)
    result["losses"] = []
    for _ in range(3):
        result["losses"] += train(net, lambda: net(x.detach()).square().mean(), steps=1)
        average.update()
    with average.average_parameters():
        result["averaged"] = numbers(*net.parameters())
    return result
