"""Gaussian processes with sums and products of kernels, classes as Dirichlet's targets over learnt features, counts by natural gradients, and a grid."""

import gpytorch
import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import (
    GridInterpolationKernel,
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)

from ..helpers import data, fill, integers, numbers, stepped

DOUBLE = {"dtype": torch.float64}


class Exact(gpytorch.models.ExactGP):
    """A process of a mean, a kernel and, where there is one, a network that makes features."""

    def __init__(self, x, y, likelihood, mean, kernel, features=None):
        super().__init__(x, y, likelihood)
        self.mean_module, self.covar_module, self.features = mean, kernel, features

    def forward(self, x):
        x = x if self.features is None else self.features(x)
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Counts(gpytorch.likelihoods._OneDimensionalLikelihood):
    """Poisson's counts."""

    def forward(self, f):
        return torch.distributions.Poisson(rate=f.exp())


class Inducing(gpytorch.models.ApproximateGP):
    """A process of inducing points."""

    def __init__(self, points):
        law = gpytorch.variational.NaturalVariationalDistribution(len(points), mean_init_std=0.0)
        super().__init__(gpytorch.variational.VariationalStrategy(self, points, law, learn_inducing_locations=True))
        self.mean_module, self.covar_module = gpytorch.means.ConstantMean(), ScaleKernel(MaternKernel(nu=1.5))

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def fitted(model, x, target, steps):
    likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    losses = stepped(torch.optim.Adam(model.parameters(), lr=0.05), lambda: -likelihood(model(x), target).sum(), steps)
    model.eval()
    model.likelihood.eval()
    return losses


def run():
    line = torch.linspace(0, 1, 30, **DOUBLE)
    x, y = torch.stack([line, (line * 7) % 1], 1), torch.sin(6 * line) + 0.1 * data(30, **DOUBLE)
    kernel = ScaleKernel(RBFKernel(ard_num_dims=2) + PeriodicKernel(active_dims=[0])) + ScaleKernel(RQKernel() * LinearKernel())
    noise = gpytorch.constraints.Interval(1e-4, 1.0)
    sums = Exact(x, y, gpytorch.likelihoods.GaussianLikelihood(noise_constraint=noise), gpytorch.means.ConstantMean(), kernel).double()
    result = {"sums": fitted(sums, x, y, 20)}
    z, classes = data(24, 3, **DOUBLE), integers(3, 24)
    targets, three = gpytorch.likelihoods.DirichletClassificationLikelihood(classes, learn_additional_noise=True), {"batch_shape": torch.Size((3,))}
    features = fill(torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).double(), scale=0.5)
    mean, kernel = gpytorch.means.ConstantMean(**three), ScaleKernel(RBFKernel(**three), **three)
    deep = Exact(z, targets.transformed_targets, targets, mean, kernel, features).double()
    result["deep"] = fitted(deep, z, targets.transformed_targets, 15)
    grid = GridInterpolationKernel(RBFKernel(), grid_size=24, num_dims=1, grid_bounds=[(-0.2, 1.2)])
    fixed = gpytorch.likelihoods.FixedNoiseGaussianLikelihood(noise=torch.full((30,), 0.05, **DOUBLE))
    gridded = Exact(line, y, fixed, gpytorch.means.ZeroMean(), grid).double()
    result["grid"] = fitted(gridded, line, y, 8)
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        for name, model, at in (("sums", sums, x[:9] + 0.01), ("deep", deep, z[:5]), ("grid", gridded, line[:7] + 0.01)):
            posterior = model(at)
            result[f"{name} posterior"] = numbers(posterior.mean, posterior.variance)
    short, counts = torch.linspace(0, 1, 20)[:, None], integers(6, 20, seed=2).float()
    model = Inducing(short[::4].clone())
    bound = gpytorch.mlls.VariationalELBO(Counts(), model, 20)
    natural = gpytorch.optim.NGD(model.variational_parameters(), num_data=20, lr=0.05)

    def loss():
        natural.zero_grad()
        return -bound(model(short), counts)

    usual = torch.optim.Adam(model.hyperparameters(), lr=0.02)
    usual.register_step_post_hook(lambda *_: natural.step())
    return {**result, "counts": stepped(usual, loss, 15), "rates": numbers(model.eval()(short).mean)}
