"""Gaussian processes of two outputs together, and of a product and a sum of kernels by their leave-one-out likelihood."""

import gpytorch
import torch
from gpytorch import kernels, likelihoods, means, mlls

from ..helpers import fill, numbers, train


class Together(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean = means.MultitaskMean(means.ConstantMean(), num_tasks=2)
        self.covariance = kernels.MultitaskKernel(kernels.RBFKernel(), num_tasks=2, rank=1)

    def forward(self, x):
        return gpytorch.distributions.MultitaskMultivariateNormal(self.mean(x), self.covariance(x))


class Composed(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean = means.LinearMean(1)
        self.covariance = kernels.ScaleKernel(kernels.PeriodicKernel() + kernels.MaternKernel(nu=1.5) * kernels.RQKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.covariance(x))


def run():
    x = torch.linspace(0, 1, 12)
    y = torch.stack([torch.sin(x * 6), torch.cos(x * 6)], -1)
    likelihood = likelihoods.MultitaskGaussianLikelihood(num_tasks=2)
    model = fill(Together(x, y, likelihood))
    mll = mlls.ExactMarginalLogLikelihood(likelihood, model)
    result = {"together": train(model, lambda: -mll(model(x), y), 4, 0.02)}
    model.eval(), likelihood.eval()
    with torch.no_grad():
        found = likelihood(model(x[:4] + 0.05))
    result["tasks"] = numbers(found.mean, found.variance)
    single = likelihoods.GaussianLikelihood(noise_constraint=gpytorch.constraints.GreaterThan(1e-3))
    composed = fill(Composed(x[:, None], y[:, 0], single))
    left_out = mlls.LeaveOneOutPseudoLikelihood(single, composed)
    result["composed"] = train(composed, lambda: -left_out(composed(x[:, None]), y[:, 0]), 3, 0.02)
    composed.eval()
    with gpytorch.settings.fast_pred_var():
        found = composed(torch.tensor([[0.3], [0.7]], requires_grad=True))
        result["predicted"] = numbers(found.mean, found.variance, found.confidence_region()[0])
    return result
