"""What a network looked at: relevance by layers' own rules (zennit), and class activation maps of six methods (torchcam)."""

import torch
from torch import nn
from torchcam.methods import CAM, GradCAM, GradCAMpp, LayerCAM, ScoreCAM, XGradCAM
from zennit.attribution import Gradient, IntegratedGradients
from zennit.composites import EpsilonAlpha2Beta1, EpsilonGammaBox, EpsilonPlus, ExcitationBackprop, GuidedBackprop

from ..helpers import data, fill, numbers


class Pooled(nn.Module):
    """Two convolutions, whose mean is classified."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 6, 3, padding=1)
        self.pool, self.classes = nn.AdaptiveAvgPool2d(1), nn.Linear(6, 3)

    def forward(self, x):
        return self.classes(self.pool(self.last(self.first(x).relu()).relu()).flatten(1))


def flat_net():
    return fill(nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 3)), scale=0.3)


def run():
    x, chosen, result = data(2, 2, 8, 8), torch.eye(3)[[0, 2]], {}
    rules = (EpsilonGammaBox(low=-3.0, high=3.0), EpsilonPlus(), EpsilonAlpha2Beta1(), GuidedBackprop(), ExcitationBackprop())
    for composite in rules:
        with Gradient(model=flat_net(), composite=composite) as attributor:
            result[type(composite).__name__] = numbers(*attributor(x, chosen))
    with IntegratedGradients(model=flat_net(), n_iter=5) as attributor:
        result["integrated"] = numbers(*attributor(x, chosen))
    methods = {CAM: {"fc_layer": "classes"}, GradCAM: {}, GradCAMpp: {}, XGradCAM: {}, ScoreCAM: {"batch_size": 2}}
    for method, options in {**methods, LayerCAM: {"target_layer": "first"}}.items():
        picture = data(1, 2, 8, 8).requires_grad_()
        net = fill(Pooled(), scale=0.3).eval()
        with method(net, input_shape=(2, 8, 8), **{"target_layer": "last", **options}) as maps:
            result[method.__name__] = numbers(*maps(1, net(picture)))
    return result
