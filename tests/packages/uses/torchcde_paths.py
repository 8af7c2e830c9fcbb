"""Controlled differential equations over splines through data."""

import torch
import torchcde

from ..helpers import data, fill, numbers, train


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = fill(torch.nn.Linear(4, 12), scale=0.3)

    def forward(self, t, z):
        return self.linear(z).tanh().view(*z.shape[:-1], 4, 3)


def run():
    x = data(3, 7, 3).cumsum(1)
    result, field = {}, Field()
    for name, coefficients in (("natural", torchcde.natural_cubic_coeffs(x)), ("hermite", torchcde.hermite_cubic_coefficients_with_backward_differences(x)),
                               ("linear", torchcde.linear_interpolation_coeffs(x))):
        path = torchcde.LinearInterpolation(coefficients) if name == "linear" else torchcde.CubicSpline(coefficients)
        result[name] = numbers(coefficients, path.evaluate(1.5), path.derivative(2.3))
        z = torchcde.cdeint(path, field, data(3, 4, seed=1), path.interval, adjoint=False, method="rk4", options={"step_size": 0.5})
        result[name + " solved"] = numbers(z.detach())
    path = torchcde.CubicSpline(torchcde.natural_cubic_coeffs(x))
    result["losses"] = train(field, lambda: torchcde.cdeint(path, field, data(3, 4, seed=1), path.interval, method="rk4",
                                                            options={"step_size": 0.5})[:, -1].square().mean(), steps=2)
    result["signature"] = numbers(torchcde.logsig_windows(x, 2, 3) if hasattr(torchcde, "signatory") else x.diff(dim=1))
    return result
