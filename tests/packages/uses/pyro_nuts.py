"""NUTS and HMC find the posterior of a mean and of a scale."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import HMC, MCMC, NUTS
from pyro.infer.mcmc.util import initialize_model

from ..helpers import data, numbers


def model(y):
    mean = pyro.sample("mean", dist.Normal(0.0, 10.0))
    scale = pyro.sample("scale", dist.HalfCauchy(5.0))
    with pyro.plate("data", len(y)):
        pyro.sample("y", dist.Normal(mean, scale), obs=y)


def run():
    y = 2 + 0.5 * data(40)
    initial, potential, transforms, _ = initialize_model(model, (y,), initial_params={"mean": torch.tensor(1.0), "scale": torch.tensor(0.2)})
    energy = potential(initial)
    pyro.set_rng_seed(1)
    nuts = MCMC(NUTS(model), num_samples=80, warmup_steps=60, disable_progbar=True)
    nuts.run(y)
    samples = nuts.get_samples()
    hmc = MCMC(HMC(model, step_size=0.05, num_steps=5), num_samples=60, warmup_steps=40, disable_progbar=True)
    hmc.run(y)
    others = hmc.get_samples()
    # draws differ between libraries: the posterior's moments are rounded to what so few samples tell
    close = abs(float(samples["mean"].mean()) - float(y.mean())) < 0.1 and abs(float(samples["scale"].mean()) - float(y.std())) < 0.1
    return {"energy": numbers(energy, transforms["scale"](torch.tensor(2.0))), "close": [close, abs(float(others["mean"].mean() - y.mean())) < 0.15],
            "sizes": [samples["mean"].shape[0], others["scale"].shape[0]]}
