"""Attributions of a convolution by windows, groups of pixels and layers, and attacks on it."""

import torch
from captum.attr import FeatureAblation, GuidedGradCam, LayerConductance, LayerGradCam, Occlusion, ShapleyValues
from captum.metrics import infidelity
from captum.robust import PGD
from torch import nn

from ..helpers import data, fill, numbers


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 4, 3)
        self.relu, self.pool, self.last = nn.ReLU(), nn.MaxPool2d(2), nn.Linear(16, 3)

    def forward(self, x):
        return self.last(self.second(self.pool(self.relu(self.first(x)))).flatten(1))


def run():
    net, x, t = fill(Net(), scale=0.3).eval(), data(2, 1, 8, 8), torch.tensor([0, 2])
    groups = torch.arange(64).view(1, 1, 8, 8)
    occluded = Occlusion(net).attribute(x, (1, 3, 3), strides=(1, 2, 2), target=t)
    return {
        "windows": numbers(occluded, Occlusion(net).attribute(x, (1, 2, 4), strides=(1, 1, 2), target=t, perturbations_per_eval=4)),
        "groups": numbers(FeatureAblation(net).attribute(x, target=t, feature_mask=groups // 8),
                          ShapleyValues(net).attribute(x, target=t, feature_mask=groups // 32)),
        "layers": numbers(LayerGradCam(net, net.second).attribute(x, t), LayerConductance(net, net.first).attribute(x, target=t, n_steps=10),
                          GuidedGradCam(net, net.second).attribute(x, t)),
        "metrics": numbers(infidelity(net, lambda z: (torch.full_like(z, 0.05), z - 0.05), x, occluded, target=t, n_perturb_samples=2)),
        "attack": numbers(PGD(net, nn.CrossEntropyLoss(reduction="none")).perturb(x, 0.2, 0.05, 3, t)),
    }
