"""Attributions of a small network and of a convolution."""

import torch
from captum.attr import (
    DeepLift,
    FeatureAblation,
    GradientShap,
    InputXGradient,
    IntegratedGradients,
    LayerConductance,
    LayerGradCam,
    Occlusion,
    Saliency,
)

from ..helpers import data, fill, numbers


def run():
    net = fill(torch.nn.Sequential(torch.nn.Linear(6, 10), torch.nn.ReLU(), torch.nn.Linear(10, 3)), scale=0.5)
    x = data(4, 6)
    integrated, delta = IntegratedGradients(net).attribute(x, target=1, return_convergence_delta=True, n_steps=20)
    result = {"integrated": numbers(integrated, delta), "saliency": numbers(Saliency(net).attribute(x, target=0)),
              "product": numbers(InputXGradient(net).attribute(x, target=2)), "deeplift": numbers(DeepLift(net).attribute(x, torch.zeros_like(x), target=1)),
              "ablation": numbers(FeatureAblation(net).attribute(x, target=1)),
              "conductance": numbers(LayerConductance(net, net[1]).attribute(x, target=1, n_steps=10))}
    shap = GradientShap(net).attribute(x, baselines=torch.zeros(1, 6), n_samples=3, stdevs=0.0, target=1)
    convolution = fill(torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(4 * 36, 2)))
    image = data(2, 1, 8, 8)
    result["gradcam"] = numbers(LayerGradCam(convolution, convolution[0]).attribute(image, target=1))
    result["occlusion"] = numbers(Occlusion(convolution).attribute(image, sliding_window_shapes=(1, 3, 3), strides=(1, 2, 2), target=0))
    result["shapes"] = [*shap.shape]
    return result
