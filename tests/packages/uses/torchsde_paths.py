"""A stochastic differential equation with given noise, its drift and diffusion learnt."""

import torch
import torchsde

from ..helpers import data, numbers, train


class Equation(torch.nn.Module):
    noise_type, sde_type = "diagonal", "ito"

    def __init__(self):
        super().__init__()
        self.rate = torch.nn.Parameter(torch.tensor([0.5, -0.3]))
        self.scale = torch.nn.Parameter(torch.tensor([0.2, 0.4]))

    def f(self, t, y):
        return -self.rate * y + t

    def g(self, t, y):
        return self.scale * y.cos()


class Steps(torchsde.BaseBrownian):
    """Brownian motion that is known at tenths of a unit."""

    def __init__(self):
        super().__init__()
        self.path = torch.cat([torch.zeros(1, 4, 2), data(10, 4, 2, seed=5) * 0.1**0.5]).cumsum(0)

    def __call__(self, ta, tb=None, return_U=False, return_A=False):
        start, end = (0, ta) if tb is None else (ta, tb)
        w = self.path[round(float(end) * 10)] - self.path[round(float(start) * 10)]
        return (w, None) if return_U else w

    shape, dtype, device, levy_area_approximation = (4, 2), torch.float32, torch.device("cpu"), "none"

    def __repr__(self):
        return "Steps()"


def run():
    equation, y0, times = Equation(), data(4, 2), torch.tensor([0.0, 0.5, 1.0])
    result = {}
    for method in ("euler", "milstein", "srk"):
        if method != "srk":
            result[method] = numbers(torchsde.sdeint(equation, y0, times, bm=Steps(), dt=0.1, method=method).detach())
    result["losses"] = train(equation, lambda: torchsde.sdeint(equation, y0, times, bm=Steps(), dt=0.1, method="euler")[-1].square().mean(), lr=0.1)
    interval = torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(4, 2), entropy=3)
    result["shape"] = [*interval(0.2, 0.7).shape, float((interval(0.0, 0.5) + interval(0.5, 1.0) - interval(0.0, 1.0)).abs().max() < 1e-5)]
    return result
