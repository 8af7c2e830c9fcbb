"""Ordinary differential equations of a batch, each with its own steps (torchode), and integrals by torchquad, with gradients."""

import torch
import torchode
import torchquad

from ..helpers import data, fill, numbers, train


def run():
    result = {}
    y0, times = data(3, 2).abs() + 0.5, torch.linspace(0, 2, 6).repeat(3, 1)
    for method in ("Dopri5", "Tsit5", "Heun"):
        term = torchode.ODETerm(lambda t, y: torch.stack([y[:, 1], -y[:, 0] * t], 1))
        step = getattr(torchode, method)(term=term)
        adjoint = torchode.AutoDiffAdjoint(step, torchode.IntegralController(atol=1e-5, rtol=1e-4, term=term))
        solution = adjoint.solve(torchode.InitialValueProblem(y0=y0, t_eval=times))
        result[method] = [*numbers(solution.ys), *solution.status.tolist()]
    net = fill(torch.nn.Linear(2, 2), scale=0.4)
    term = torchode.ODETerm(lambda t, y: torch.tanh(net(y)))
    solver = torchode.AutoDiffAdjoint(torchode.Dopri5(term=term), torchode.IntegralController(atol=1e-4, rtol=1e-3, term=term))
    problem = torchode.InitialValueProblem(y0=y0, t_eval=times)
    result["losses"] = train(net, lambda: (solver.solve(problem).ys[:, -1] - 1).square().mean())
    domain = torch.tensor([[0.0, 1.0], [-1.0, 2.0]], requires_grad=True)
    for name in ("Trapezoid", "Simpson", "Boole", "GaussLegendre"):
        total = getattr(torchquad, name)().integrate(lambda x: torch.sin(x[:, 0]) * x[:, 1] ** 2, dim=2, N=169, integration_domain=domain, backend="torch")
        result[name] = numbers(total, torch.autograd.grad(total, domain)[0])
    return result
