"""Enumerated mixture components, a normalizing flow and Pyro's effect handlers."""

import pyro
import pyro.distributions as dist
import torch
from pyro import poutine
from pyro.infer import SVI, TraceEnum_ELBO, config_enumerate

from ..helpers import numbers


@config_enumerate
def model(y):
    weights = pyro.param("weights", torch.tensor([0.4, 0.6]), constraint=dist.constraints.simplex)
    means = pyro.param("means", torch.tensor([-1.0, 1.5]))
    scale = pyro.param("scale", torch.tensor(0.7), constraint=dist.constraints.positive)
    with pyro.plate("data", len(y)):
        which = pyro.sample("which", dist.Categorical(weights))
        pyro.sample("y", dist.Normal(means[which], scale), obs=y)


def guide(y):
    pass


def run():
    y = torch.tensor([-1.2, -0.8, 1.9, 2.2, 2.0, -1.0])
    pyro.clear_param_store()
    svi = SVI(model, guide, pyro.optim.Adam({"lr": 0.05}), loss=TraceEnum_ELBO(max_plate_nesting=1))
    losses = [svi.step(y) for _ in range(5)]
    conditioned = poutine.condition(lambda: pyro.sample("z", dist.Normal(0.0, 1.0)), data={"z": torch.tensor(0.5)})
    trace = poutine.trace(conditioned).get_trace()
    flow = dist.TransformedDistribution(dist.Normal(torch.zeros(2), torch.ones(2)), [dist.transforms.SigmoidTransform()])
    return {"losses": losses, "params": numbers(*(pyro.param(name) for name in ("weights", "means", "scale"))),
            "log_prob": numbers(trace.log_prob_sum(), flow.log_prob(torch.tensor([0.2, 0.7])))}
