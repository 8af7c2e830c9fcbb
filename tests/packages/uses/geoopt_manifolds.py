"""Optimization on a sphere, on Stiefel's manifold and in hyperbolic space."""

import geoopt
import torch

from ..helpers import data, numbers


def run():
    result = {}
    matrix = data(6, 6)
    matrix = matrix @ matrix.T
    for name, manifold, start, loss in (
        ("sphere", geoopt.Sphere(), data(6, seed=1), lambda x: x @ matrix @ x),
        ("stiefel", geoopt.Stiefel(), torch.linalg.qr(data(6, 2, seed=2))[0], lambda x: (x.T @ matrix @ x).trace()),
        ("poincare", geoopt.PoincareBall(), data(4, 3, seed=3) * 0.2, lambda x: geoopt.PoincareBall().dist(x[0], x[1:]).sum()),
    ):
        for Optimizer in (geoopt.optim.RiemannianAdam, geoopt.optim.RiemannianSGD):
            point = geoopt.ManifoldParameter(manifold.projx(start.clone()), manifold=manifold)
            optimizer = Optimizer([point], lr=0.02)
            losses = []
            for _ in range(4):
                optimizer.zero_grad()
                value = loss(point)
                value.backward()
                optimizer.step()
                losses.append(value.item())
            result[f"{name} {Optimizer.__name__}"] = [*losses, *numbers(point)]
    ball = geoopt.PoincareBall(c=0.7)
    x, y = ball.expmap0(data(3, 4) * 0.3), ball.expmap0(data(3, 4, seed=5) * 0.3)
    result["ball"] = numbers(ball.mobius_add(x, y), ball.dist(x, y), ball.logmap(x, y), ball.transp(x, y, data(3, 4)), ball.mobius_matvec(data(4, 4), x))
    tensor = geoopt.ManifoldTensor(data(3, 4), manifold=geoopt.Euclidean()) * 2
    result["kind"] = [float(isinstance(point, torch.nn.Parameter)), float(type(tensor) is geoopt.ManifoldTensor or type(tensor) is torch.Tensor)]
    return result
