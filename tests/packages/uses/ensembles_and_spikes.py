"""Ensembles of networks (torchensemble) of four kinds, spiking networks in single steps and in several (spikingjelly), and minimal recurrent cells."""

import torch
import torchensemble
from minGRU_pytorch import minGRU
from minGRU_pytorch.minLSTM import minLSTM
from spikingjelly.activation_based import functional, layer, neuron, surrogate
from torch import nn
from torch.nn.functional import mse_loss, one_hot

from ..helpers import data, fill, integers, numbers, train


class Small(nn.Module):
    """What an ensemble is made of."""

    def __init__(self):
        super().__init__()
        self.layers = fill(nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 2)), scale=0.4)

    def forward(self, x):
        return self.layers(x)


def ensembles():
    batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data(16, 3), integers(2, 16)), 8)
    options = {"VotingClassifier": {"n_jobs": 1}}
    fits = {"SnapshotEnsembleClassifier": {"lr_clip": [1e-4, 0.1]}}
    for name in ("FusionClassifier", "VotingClassifier", "GradientBoostingClassifier", "SnapshotEnsembleClassifier"):
        model = getattr(torchensemble, name)(estimator=Small, n_estimators=2, cuda=False, **options.get(name, {}))
        model.set_criterion(nn.CrossEntropyLoss())
        model.set_optimizer("Adam", lr=0.05)
        model.fit(batches, epochs=4, save_model=False, log_interval=100, **fits.get(name, {}))
        yield name, [*numbers(model.forward(data(4, 3, seed=5))), model.evaluate(batches)]


def run():
    net = nn.Sequential(
        layer.Linear(4, 8), neuron.LIFNode(tau=2.0, surrogate_function=surrogate.ATan()), layer.Linear(8, 3),
        neuron.IFNode(surrogate_function=surrogate.Sigmoid()),
    )  # fmt: skip
    fill(net, scale=0.8)
    x, wanted = data(6, 4).abs(), one_hot(integers(3, 6), 3).float()

    def loss():
        functional.reset_net(net)
        return mse_loss(sum(net(x) for _ in range(5)) / 5, wanted)

    conv = nn.Sequential(
        layer.Conv2d(1, 2, 3, padding=1), layer.BatchNorm2d(2), neuron.ParametricLIFNode(init_tau=2.0, surrogate_function=surrogate.ATan()),
        layer.MaxPool2d(2),
    )  # fmt: skip
    fill(conv, scale=0.6)
    functional.set_step_mode(conv, "m")
    cell, series, target, state, steps = fill(minGRU(6, expansion_factor=1.5), scale=0.4), data(2, 7, 6), data(2, 7, 6, seed=3), None, []
    learnt = train(cell, lambda: mse_loss(cell(series), target), 10)
    for t in range(3):
        y, state = cell(series[:, t : t + 1], state, return_next_prev_hidden=True)
        steps.append(y)
    spiking = {"spikes": train(net, loss, 8, lr=0.2), "steps": numbers(conv(data(4, 2, 1, 6, 6)))}
    cells = {"cell": [*learnt, *numbers(*steps)], "lstm": numbers(fill(minLSTM(6), scale=0.4)(series))}
    return {**dict(ensembles()), **spiking, **cells}
