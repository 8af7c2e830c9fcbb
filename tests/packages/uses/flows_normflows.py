"""Normalizing flows of normflows: RealNVP, and a neural spline."""

import normflows as nf

from ..helpers import data, fill, numbers, train


def run():
    layers = []
    for _ in range(2):
        layers.append(nf.flows.AffineCouplingBlock(nf.nets.MLP([2, 8, 8, 4], init_zeros=False)))
        layers.append(nf.flows.Permute(4, mode="swap"))
    flow = fill(nf.NormalizingFlow(nf.distributions.DiagGaussian(4, trainable=False), layers), scale=0.3)
    x = data(10, 4)
    losses = train(flow, lambda: flow.forward_kld(x), lr=0.01)
    z, logdet = flow.inverse_and_log_det(x)
    spline = fill(nf.flows.AutoregressiveRationalQuadraticSpline(4, 1, 8), scale=0.3)
    y, change = spline(x)
    planar = fill(nf.flows.Planar((4,)), scale=0.3)
    return {"losses": losses, "inverse": numbers(z, logdet), "spline": numbers(y, change), "planar": numbers(*planar(x)),
            "density": numbers(flow.log_prob(x))}
