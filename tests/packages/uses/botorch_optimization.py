"""Bayesian optimization: a Gaussian process is fitted, an acquisition function is maximized."""

import botorch
import torch
from botorch.acquisition import ExpectedImprovement, LogExpectedImprovement, UpperConfidenceBound, qExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood

from ..helpers import data, numbers


def run():
    x = data(10, 2, dtype=torch.float64).sigmoid()
    y = (x[:, :1] * 6).sin() - (x[:, 1:] - 0.4).square()
    model = SingleTaskGP(x, y)
    likelihood = ExactMarginalLogLikelihood(model.likelihood, model)
    before = likelihood(model.train()(*model.train_inputs), model.train_targets)
    fit_gpytorch_mll(likelihood)
    after = likelihood(model.train()(*model.train_inputs), model.train_targets)
    points = data(4, 1, 2, seed=1, dtype=torch.float64).sigmoid()
    model.eval()
    found, value = optimize_acqf(LogExpectedImprovement(model, best_f=y.max()), bounds=torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double(), q=1,
                                 num_restarts=2, raw_samples=None, batch_initial_conditions=points[:2], options={"maxiter": 20})
    sampler = botorch.sampling.IIDNormalSampler(torch.Size([16]))
    sampler.base_samples = data(16, 2, 1, seed=2, dtype=torch.float64)
    many = qExpectedImprovement(model, best_f=y.max(), sampler=botorch.sampling.SobolQMCNormalSampler(torch.Size([64]), seed=1))
    posterior = model.posterior(points.squeeze(1))
    return {"likelihood": numbers(before, after), "posterior": numbers(posterior.mean, posterior.variance),
            "acquisition": numbers(ExpectedImprovement(model, best_f=y.max())(points), UpperConfidenceBound(model, beta=0.2)(points)),
            "shape": [*many(points.squeeze(1).reshape(2, 2, 2)).shape], "found": [round(v, 3) for v in found.flatten().tolist()], "value": numbers(value)}
