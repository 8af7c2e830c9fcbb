"""An exact Gaussian process is fitted by its marginal likelihood and predicts."""

import gpytorch
import torch

from ..helpers import numbers


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def run():
    x = torch.linspace(0, 1, 30)
    y = torch.sin(x * 6.28) + 0.1 * torch.cos(x * 40)
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Exact(x, y, likelihood)
    model.train()
    likelihood.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = -mll(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    likelihood.eval()
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        predicted = likelihood(model(torch.linspace(0, 1.2, 13)))
    return {"losses": losses, "mean": numbers(predicted.mean), "variance": numbers(predicted.variance),
            "lengthscale": numbers(model.covar_module.base_kernel.lengthscale, likelihood.noise)}
