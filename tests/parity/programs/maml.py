"""Meta-learning of sine waves: an inner step of descent that stays in the graph, weights in an OrderedDict."""

from collections import OrderedDict

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class SineModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            OrderedDict([("l1", nn.Linear(1, 20)), ("relu1", nn.ReLU()), ("l2", nn.Linear(20, 20)), ("relu2", nn.ReLU())])
        )
        self.add_module("head", nn.Linear(20, 1))

    def forward(self, x, weights=None):
        if weights is None:
            return self.head(self.features(x))
        x = F.relu(F.linear(x, weights["features.l1.weight"], weights["features.l1.bias"]))
        x = F.relu(F.linear(x, weights["features.l2.weight"], weights["features.l2.bias"]))
        return F.linear(x, weights["head.weight"], weights["head.bias"])


def run(same):
    model = same.start(SineModel())
    meta = torch.optim.Adam(model.parameters(), lr=1e-2)
    rng = np.random.RandomState(1)
    losses = []
    for _ in range(6):
        meta_loss = 0.0
        meta.zero_grad()
        for _ in range(3):
            amplitude, phase = rng.uniform(0.1, 5), rng.uniform(0, np.pi)
            x = torch.Tensor(rng.uniform(-5, 5, (20, 1)))
            y = amplitude * torch.sin(x + phase)
            weights = OrderedDict(model.named_parameters())
            for _ in range(2):
                loss = F.mse_loss(model(x[:10], weights), y[:10])
                grads = torch.autograd.grad(loss, weights.values(), create_graph=True)
                weights = OrderedDict((n, p - 0.01 * g) for (n, p), g in zip(weights.items(), grads, strict=True))
            meta_loss = meta_loss + F.mse_loss(model(x[10:], weights), y[10:])
        meta_loss /= 3
        meta_loss.backward()
        meta.step()
        losses.append(meta_loss.item())
    return losses
