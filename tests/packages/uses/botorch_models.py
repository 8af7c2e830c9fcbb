"""Models of botorch: transforms of inputs and outcomes, updates with observations, several outcomes, acquisitions and a hypervolume."""

import io

import torch
from botorch.acquisition import (
    LogExpectedImprovement,
    PosteriorMean,
    PosteriorStandardDeviation,
    ProbabilityOfImprovement,
    UpperConfidenceBound,
)
from botorch.acquisition.multi_objective import ExpectedHypervolumeImprovement
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.models.utils.priors import BetaPrior
from botorch.utils.multi_objective import Hypervolume, is_non_dominated
from botorch.utils.multi_objective.box_decompositions import NondominatedPartitioning
from gpytorch.mlls import ExactMarginalLogLikelihood

from ..helpers import data, numbers, stepped


def observed(x, y):
    return SingleTaskGP(x, y, torch.full_like(y, 0.01), outcome_transform=Standardize(1), input_transform=Normalize(2))


def run():
    x = data(10, 2, dtype=torch.float64).sigmoid()
    y = torch.sin(6 * x[:, :1]) - x[:, 1:] ** 2
    model = observed(x, y)
    likelihood = ExactMarginalLogLikelihood(model.likelihood, model)
    losses = stepped(torch.optim.Adam(model.parameters(), 0.05), lambda: -likelihood(model(*model.train_inputs), model.train_targets), 10)
    posterior = model.posterior(x[:3] + 0.01)
    more = model.condition_on_observations(x[:2] + 0.05, y[:2], noise=torch.full_like(y[:2], 0.01))
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    again = observed(x, y)
    again.load_state_dict(torch.load(file, weights_only=False))
    result = {"losses": losses, "posterior": numbers(posterior.mean, posterior.variance, more.posterior(x[:3]).mean, again.posterior(x[:3]).mean)}
    made = (LogExpectedImprovement(model, 0.5), ProbabilityOfImprovement(model, 0.5), UpperConfidenceBound(model, 0.2), PosteriorMean(model))
    for acquisition in (*made, PosteriorStandardDeviation(model)):
        at = data(5, 1, 2, seed=4, dtype=torch.float64).sigmoid().requires_grad_()
        value = acquisition(at)
        result[type(acquisition).__name__] = numbers(value, *torch.autograd.grad(value.sum(), at))
    both, reference = torch.cat([y, x[:, :1] * 0.7 - y**2], 1), torch.full((2,), -1.5, dtype=torch.float64)
    improvement = ExpectedHypervolumeImprovement(SingleTaskGP(x, both), reference, NondominatedPartitioning(reference, both))
    prior = BetaPrior(torch.tensor(2.0), torch.tensor(3.0)).double()
    several = ModelListGP(SingleTaskGP(x, y), SingleTaskGP(x, -y)).posterior(x[:2]).mean.detach()
    volume = Hypervolume(reference).compute(both[is_non_dominated(both)])
    return {**result, "both": numbers(volume, improvement(x[:3, None] + 0.02), several, prior.log_prob(torch.tensor(0.4, dtype=torch.float64)))}
