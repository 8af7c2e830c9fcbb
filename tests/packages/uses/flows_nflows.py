"""Normalizing flows of nflows: couplings, autoregressive maps and splines."""

import torch
from nflows import distributions, flows, transforms

from ..helpers import data, fill, numbers, train


def run():
    parts = []
    for k in range(2):
        parts.append(transforms.ReversePermutation(features=4))
        parts.append(transforms.MaskedAffineAutoregressiveTransform(features=4, hidden_features=8))
    flow = fill(flows.Flow(transforms.CompositeTransform(parts), distributions.StandardNormal([4])), scale=0.3)
    x = data(12, 4)
    losses = train(flow, lambda: -flow.log_prob(x).mean(), lr=0.01)
    spline = fill(transforms.PiecewiseRationalQuadraticCouplingTransform(
        mask=torch.tensor([1, 0, 1, 0]), transform_net_create_fn=lambda i, o: torch.nn.Sequential(torch.nn.Linear(i, 8), torch.nn.ReLU(), torch.nn.Linear(8, o))
        if False else _Net(i, o), num_bins=5, tails="linear", tail_bound=3.0), scale=0.5)
    y, logdet = spline(x)
    back, _ = spline.inverse(y)
    lu = transforms.LULinear(4, identity_init=True)
    return {"losses": losses, "spline": numbers(y, logdet), "back": numbers((back - x).abs().max() < 1e-4), "lu": numbers(*lu(x))}


class _Net(torch.nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(i, 8), torch.nn.ReLU(), torch.nn.Linear(8, o))

    def forward(self, x, context=None):
        return self.net(x)
