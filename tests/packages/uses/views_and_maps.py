"""Pictures: predictions averaged over views (ttach), class activation maps (grad-cam), unfoldings of any dimension (unfoldNd), counts by thop."""

import numpy as np
import thop
import torch
import ttach
import unfoldNd
from pytorch_grad_cam import EigenCAM, GradCAM, GradCAMPlusPlus, LayerCAM
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

from ..helpers import data, fill, numbers


def run():
    net = fill(torch.nn.Sequential(
        torch.nn.Conv2d(3, 6, 3, padding=1), torch.nn.BatchNorm2d(6), torch.nn.ReLU(), torch.nn.Conv2d(6, 8, 3, stride=2), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 4))).eval()
    x = data(2, 3, 12, 12)
    averaged = ttach.ClassificationTTAWrapper(net, ttach.aliases.d4_transform(), merge_mode="mean")(x)
    segmented = ttach.SegmentationTTAWrapper(net[:3], ttach.Compose([ttach.HorizontalFlip(), ttach.Rotate90([0, 90]), ttach.Scale([1, 2])]))(x)
    maps = {}
    for method in (GradCAM, GradCAMPlusPlus, LayerCAM, EigenCAM):
        with method(model=net, target_layers=[net[3]]) as cam:
            shown = cam(input_tensor=x, targets=[ClassifierOutputTarget(1), ClassifierOutputTarget(2)])
        maps[method.__name__] = [float(np.abs(shown).mean()), float(shown[0].max()), float(shown[1, 3, 4])]
    volume, series = data(1, 2, 5, 5, 5).requires_grad_(), data(2, 3, 9).requires_grad_()
    blocks = unfoldNd.UnfoldNd(3, dilation=1, padding=1, stride=2)(volume)
    rows = unfoldNd.unfoldNd(series, kernel_size=3, stride=2)
    folded = unfoldNd.foldNd(rows, output_size=(9,), kernel_size=(3,), stride=2)
    (blocks.square().sum() + folded.sum()).backward()
    counted = thop.profile(net, inputs=(x,), verbose=False)
    return {"averaged": numbers(averaged, segmented), **maps, "unfolded": numbers(blocks, rows, folded, volume.grad, series.grad), "counted": counted}
