"""Guides of four kinds fit a regression, a mixture is summed over its classes, and a Markov model and a spline flow give densities."""

import pyro
import pyro.distributions as dist
import torch
from pyro import poutine
from pyro.infer import SVI, Trace_ELBO, TraceEnum_ELBO, autoguide, config_enumerate

from ..helpers import data, drawn_by_numpy, numbers


def regression(x, y=None):
    slope, offset = pyro.sample("slope", dist.Normal(0.0, 1.0)), pyro.sample("offset", dist.Normal(0.0, 1.0))
    scale = pyro.sample("scale", dist.LogNormal(0.0, 1.0))
    with pyro.plate("data", len(x)):
        return pyro.sample("y", dist.Normal(slope * x + offset, scale), obs=y)


@config_enumerate
def mixture(points):
    weights = pyro.param("weights", torch.tensor([0.5, 0.5]), constraint=dist.constraints.simplex)
    places = pyro.param("places", torch.tensor([1.0, 9.0]))
    with pyro.plate("data", len(points)):
        kind = pyro.sample("kind", dist.Categorical(weights))
        pyro.sample("point", dist.Normal(places[kind], 1.0), obs=points)


def run():
    x, result = data(20), {}
    y = 2 * x + 1 + 0.1 * data(20, seed=1)
    for name in ("AutoDelta", "AutoNormal", "AutoMultivariateNormal", "AutoLowRankMultivariateNormal"):
        pyro.clear_param_store()
        with drawn_by_numpy():
            svi = SVI(regression, getattr(autoguide, name)(regression), pyro.optim.Adam({"lr": 0.05}), Trace_ELBO(num_particles=2))
            result[name] = [svi.step(x, y) for _ in range(5)]
    known = poutine.condition(regression, {"slope": torch.tensor(2.0), "offset": torch.tensor(1.0), "scale": torch.tensor(0.1)})
    result["density"] = numbers(poutine.trace(known).get_trace(x, y).log_prob_sum())
    pyro.clear_param_store()
    svi = SVI(mixture, lambda points: None, pyro.optim.SGD({"lr": 0.01}), TraceEnum_ELBO(max_plate_nesting=1))
    result["mixture"] = [svi.step(torch.tensor([0.0, 1.0, 10.0, 11.0, 12.0])) for _ in range(4)]
    unit = dist.MultivariateNormal(torch.zeros(2), torch.eye(2))
    result["chain"] = numbers(dist.GaussianHMM(unit, torch.eye(2), unit, torch.eye(2), unit).log_prob(data(5, 2)))
    spline = dist.transforms.Spline(3, count_bins=4)
    with torch.no_grad():
        for i, p in enumerate(spline.parameters()):
            p.copy_(data(*p.shape, seed=i))
    z = data(4, 3)
    result["spline"] = numbers(spline(z), spline.log_abs_det_jacobian(z, spline(z)), spline.inv(spline(z)))
    return result
