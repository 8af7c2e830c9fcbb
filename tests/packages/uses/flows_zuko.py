"""Normalizing flows of zuko: masked autoregressive and neural spline flows, and its distributions."""

import torch
import zuko

from ..helpers import data, fill, numbers, train


def run():
    x, context = data(8, 3), data(8, 2, seed=1)
    result = {}
    for name, flow in (("maf", zuko.flows.MAF(3, 2, transforms=2, hidden_features=(8,))), ("nsf", zuko.flows.NSF(3, 2, transforms=1, hidden_features=(8,))),
                       ("gmm", zuko.flows.GMM(3, 2, components=2, hidden_features=(8,)))):
        fill(flow, scale=0.3)
        result[name] = train(flow, lambda flow=flow: -flow(context).log_prob(x).mean(), lr=0.01)
        if name != "gmm":
            z = flow(context).transform(x)
            result[name + " back"] = numbers(z, flow(context).transform.inv(z))
    box = zuko.distributions.BoxUniform(torch.zeros(2), torch.ones(2) * 3)
    net = fill(zuko.nn.MonotonicMLP(2, 2, hidden_features=[8]), scale=0.3)
    result["others"] = numbers(box.log_prob(torch.ones(2)), net(data(4, 2)), zuko.utils.bisection(lambda t: t**3, torch.tensor(2.0), 0.0, 2.0))
    return result
