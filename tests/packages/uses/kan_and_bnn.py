"""Networks of splines on edges (pykan), and Bayesian layers (torchbnn) with their divergence"""

import torch
import torchbnn
from kan import KANLayer
from kan.spline import B_batch, coef2curve

from ..helpers import data, drawn_by_numpy, numbers, train


def run():
    grid = torch.linspace(-1, 1, 6).expand(2, -1).contiguous()
    x = data(10, 2).tanh()
    basis = B_batch(x, grid, k=3)
    coefficients = data(2, 3, basis.shape[-1], seed=1)
    curve = coef2curve(x, grid, coefficients, k=3)
    layer = KANLayer(in_dim=2, out_dim=3, num=5, k=3)
    with torch.no_grad():
        for k, p in enumerate(layer.parameters()):
            if p.requires_grad:
                p.copy_(data(*p.shape, seed=k) * 0.3)
    losses = train(torch.nn.ModuleList([layer]), lambda: (layer(x)[0] - 1).square().mean())
    net = torch.nn.Sequential(torchbnn.BayesLinear(0, 0.1, 2, 8), torch.nn.ReLU(), torchbnn.BayesLinear(0, 0.1, 8, 1))
    with torch.no_grad():
        for k, p in enumerate(net.parameters()):
            p.copy_(data(*p.shape, seed=k) * 0.1 - (2 if p.mean() < -1 else 0))
    divergence = torchbnn.BKLLoss(reduction="mean", last_layer_only=False)
    with drawn_by_numpy():
        bayes = train(net, lambda: (net(x) - 1).square().mean() + 0.1 * divergence(net).sum())
    return {"splines": numbers(basis, curve), "layer": losses, "bayes": bayes}
