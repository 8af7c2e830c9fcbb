"""Segmentation networks of segmentation_models_pytorch: U-Net, FPN and DeepLab on a ResNet, their losses and scores."""

import segmentation_models_pytorch as smp
import torch

from ..helpers import data, fill, integers, numbers, train


def run():
    x, y, result = data(2, 3, 32, 32), integers(2, 2, 1, 32, 32).float(), {}
    for name in ("Unet", "FPN", "DeepLabV3Plus"):
        torch.manual_seed(0)
        net = fill(getattr(smp, name)("resnet18", encoder_weights=None, in_channels=3, classes=1), scale=0.05).eval()
        criterion = smp.losses.DiceLoss("binary") if name == "Unet" else smp.losses.SoftBCEWithLogitsLoss(smooth_factor=0.1)
        result[name] = train(net, lambda net=net, criterion=criterion: criterion(net(x), y), steps=2, lr=0.01)
        with torch.no_grad():
            result[name + " out"] = numbers(net(x))
    logits = data(2, 1, 8, 8)
    target = integers(2, 2, 1, 8, 8)
    for name in ("JaccardLoss", "TverskyLoss", "FocalLoss", "LovaszLoss"):
        result[name] = numbers(getattr(smp.losses, name)("binary")(logits, target.float()))
    counts = smp.metrics.get_stats((logits > 0).long(), target, mode="binary")
    return {**result, "iou": numbers(smp.metrics.iou_score(*counts, reduction="micro"), smp.metrics.f1_score(*counts, reduction="macro"))}
