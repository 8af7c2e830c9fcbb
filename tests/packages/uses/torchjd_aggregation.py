"""Descent along Jacobians of several losses (torchjd): aggregations of the gradients of tasks that share parameters."""

import torch
from torchjd import autojac
from torchjd.aggregation import IMTLG, MGDA, AlignedMTL, Krum, Mean, Sum, TrimmedMean

from ..helpers import data, fill, numbers


def run():
    result = {}
    jacobian = data(3, 5)
    for aggregate in (Mean(), Sum(), MGDA(), AlignedMTL(), IMTLG(), Krum(0), TrimmedMean(1)):
        result[type(aggregate).__name__] = numbers(aggregate(jacobian))
    body, heads = fill(torch.nn.Linear(4, 3), scale=0.3), [fill(torch.nn.Linear(3, 1), seed=k + 1, scale=0.3) for k in range(2)]
    x = data(6, 4)
    hidden = torch.tanh(body(x))
    losses = [(head(hidden) - k).square().mean() for k, head in enumerate(heads)]
    autojac.mtl_backward(losses, features=hidden)
    result["heads"] = numbers(*[p.grad for head in heads for p in head.parameters()])
    result["body"] = [float(p.jac.norm()) if hasattr(p, "jac") else float(p.grad.norm()) for p in body.parameters()]
    return result
