"""Stochastic variational inference of a linear regression, with automatic guides."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import SVI, Predictive, Trace_ELBO, TraceMeanField_ELBO
from pyro.infer.autoguide import AutoDiagonalNormal, AutoLowRankMultivariateNormal, AutoMultivariateNormal, AutoNormal

from ..helpers import data, drawn_by_numpy, numbers


def model(x, y=None):
    weight = pyro.sample("weight", dist.Normal(torch.zeros(3), torch.ones(3)).to_event(1))
    bias = pyro.sample("bias", dist.Normal(0.0, 2.0))
    noise = pyro.sample("noise", dist.LogNormal(0.0, 0.5))
    mean = x @ weight + bias
    with pyro.plate("data", x.shape[0]):
        pyro.sample("y", dist.Normal(mean, noise), obs=y)
    return mean


def run():
    x = data(20, 3)
    y = x @ torch.tensor([1.0, -2.0, 0.5]) + 0.3
    result = {}
    guides = {"normal": AutoNormal, "diagonal": AutoDiagonalNormal, "full": AutoMultivariateNormal, "low rank": AutoLowRankMultivariateNormal}
    for name, Guide in guides.items():
        Loss = TraceMeanField_ELBO if name == "normal" else Trace_ELBO
        pyro.clear_param_store()
        with drawn_by_numpy():
            guide = Guide(model, init_loc_fn=pyro.infer.autoguide.init_to_value(values={
                "weight": torch.zeros(3), "bias": torch.tensor(0.0), "noise": torch.tensor(1.0)}))
            svi = SVI(model, guide, pyro.optim.ClippedAdam({"lr": 0.02}), loss=Loss())
            result[name] = [svi.step(x, y) for _ in range(6)]
            median = guide.median()
            result[name + " median"] = numbers(median["weight"], median["bias"], median["noise"])
            drawn = Predictive(model, guide=guide, num_samples=5)(x[:4])
            result[name + " predicted"] = numbers(drawn["y"])
    return result
