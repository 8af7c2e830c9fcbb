"""A sparse variational Gaussian process of inducing points classifies by minibatches."""

import gpytorch
import torch
from torch.utils.data import DataLoader, TensorDataset

from ..helpers import numbers


class Sparse(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        distribution = gpytorch.variational.CholeskyVariationalDistribution(points.size(0))
        super().__init__(gpytorch.variational.VariationalStrategy(self, points, distribution, learn_inducing_locations=True))
        self.mean_module = gpytorch.means.LinearMean(1)
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5))

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def run():
    x = torch.linspace(0, 1, 40).unsqueeze(-1)
    y = torch.sin(6 * x[:, 0])
    model, likelihood = Sparse(x[::8].clone()), gpytorch.likelihoods.GaussianLikelihood()
    with torch.no_grad():
        model.mean_module.weights.fill_(0.3)
        model.mean_module.bias.fill_(0.1)
    model.variational_strategy.variational_params_initialized.fill_(1)
    mll = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=40)
    optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.05)
    losses = []
    for _ in range(2):
        for a, b in DataLoader(TensorDataset(x, y), batch_size=20):
            optimizer.zero_grad()
            loss = -mll(model(a), b)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        f = model(x[::5])
    return {"losses": losses, "prediction": numbers(f.mean, f.variance)}
