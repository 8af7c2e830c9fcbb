"""Weights that are distributions: networks of blitz and Bayesian-Torch, Laplace approximations of laplace-torch, and the optimizer IVON."""

import ivon
import torch
import torch.nn.functional as F
from bayesian_torch.models.dnn_to_bnn import dnn_to_bnn, get_kl_loss
from blitz.modules import BayesianLinear, BayesianLSTM
from blitz.utils import variational_estimator
from laplace import Laplace
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from ..helpers import data, drawn_by_numpy, fill, integers, numbers, stepped, train

PRIOR = {"prior_mu": 0.0, "prior_sigma": 1.0, "posterior_mu_init": 0.0, "posterior_rho_init": -3.0, "type": "Reparameterization",
         "moped_enable": False, "moped_delta": 0.5}  # fmt: skip


@variational_estimator
class Regression(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = BayesianLinear(4, 8), BayesianLinear(8, 1)

    def forward(self, x):
        return self.last(F.relu(self.first(x)))


def with_ivon():
    model, x, y = fill(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))), data(16, 4), integers(2, 16)
    optimizer, losses = ivon.IVON(model.parameters(), lr=0.1, ess=16), []
    for _ in range(4):
        for _ in range(2):
            with optimizer.sampled_params(train=True):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def approximated(**options):
    model, x, y = fill(nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2)), scale=0.4), data(24, 3), integers(2, 24)
    train(model, lambda: F.cross_entropy(model(x), y), steps=5)
    found = Laplace(model, "classification", **options)
    found.fit(DataLoader(TensorDataset(x, y), batch_size=8))
    found.optimize_prior_precision(method="marglik", n_steps=5)
    return numbers(found(x[:4]), found.log_marginal_likelihood(), found.prior_precision)


def run():
    result = {
        "laplace full": approximated(subset_of_weights="all", hessian_structure="full"),
        "laplace kron": approximated(subset_of_weights="last_layer", hessian_structure="kron"),
        "laplace diag": approximated(subset_of_weights="all", hessian_structure="diag"),
    }
    with drawn_by_numpy():
        net, x, y = fill(Regression()), data(16, 4), data(16, 1, seed=1)
        elbo = lambda: net.sample_elbo(inputs=x, labels=y, criterion=nn.MSELoss(), sample_nbr=2, complexity_cost_weight=1 / 16)
        result["blitz"] = stepped(torch.optim.Adam(net.parameters(), lr=0.05), elbo, 4)
        out, (h, c) = fill(BayesianLSTM(3, 5))(data(2, 4, 3))
        result["blitz lstm"] = numbers(out, h, c)
        model, images, labels = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 2)), data(4, 1, 6, 6), integers(2, 4)
        dnn_to_bnn(model, PRIOR)
        fill(model)
        loss = lambda: F.cross_entropy(model(images), labels) + get_kl_loss(model) / 100
        result["bayesian_torch"] = stepped(torch.optim.SGD(model.parameters(), lr=0.05), loss, 3)
        result["ivon"] = with_ivon()
    return result
