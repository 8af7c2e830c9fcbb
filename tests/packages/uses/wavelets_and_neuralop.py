"""Wavelets (pytorch-wavelets) there and back, with gradients, and a Fourier neural operator (neuraloperator) that learns a map of functions"""

import torch
from neuralop.models import FNO
from pytorch_wavelets import DTCWTForward, DTCWTInverse, DWTForward, DWTInverse

from ..helpers import data, numbers, train


def run():
    x = data(2, 3, 16, 16).requires_grad_()
    low, high = DWTForward(J=2, wave="db2", mode="symmetric")(x)
    back = DWTInverse(wave="db2", mode="symmetric")((low, high))
    slow, fast = DTCWTForward(J=2)(x)
    again = DTCWTInverse()((slow, fast))
    (low.square().sum() + sum(h.abs().sum() for h in fast)).backward()
    net = FNO(n_modes=(4, 4), hidden_channels=8, in_channels=1, out_channels=1, n_layers=2)
    with torch.no_grad():
        for k, p in enumerate(net.parameters()):
            p.copy_((torch.complex(data(*p.shape, seed=k), data(*p.shape, seed=k + 99)) if p.is_complex() else data(*p.shape, seed=k)) * 0.2)
    z = data(2, 1, 16, 16, seed=5)
    losses = train(net, lambda: (net(z) - z.roll(1, -1)).square().mean(), lr=0.01)
    return {"wavelets": numbers(low, *high, back, slow, *fast, again, x.grad), "operator": [*losses, *numbers(net(z))]}
