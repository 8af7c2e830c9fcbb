"""Segmentation of volumes with monai: a U-Net trained with Dice losses, windows that slide, metrics, transforms."""

import torch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss, DiceLoss, FocalLoss, TverskyLoss
from monai.metrics import DiceMetric, compute_hausdorff_distance
from monai.networks.nets import UNet
from monai.networks.utils import one_hot
from monai.transforms import Compose, EnsureChannelFirst, NormalizeIntensity, ScaleIntensity

from ..helpers import data, fill, integers, numbers, train


def run():
    net = fill(UNet(spatial_dims=3, in_channels=1, out_channels=2, channels=(4, 8, 8), strides=(2, 2), num_res_units=1, norm="batch"))
    x, y = data(2, 1, 8, 8, 8), integers(2, 2, 1, 8, 8, 8)
    criterion = DiceCELoss(to_onehot_y=True, softmax=True)
    result = {"losses": train(net, lambda: criterion(net(x), y), steps=2)}
    net.eval()
    with torch.no_grad():
        logits = net(x)
        result["windows"] = numbers(sliding_window_inference(data(1, 1, 12, 8, 8), (8, 8, 8), 2, net, overlap=0.5, mode="gaussian"))
    hot = one_hot(y, 2)
    for name, loss in (("dice", DiceLoss(softmax=True)), ("focal", FocalLoss()), ("tversky", TverskyLoss(softmax=True, alpha=0.3, beta=0.7))):
        result[name] = numbers(loss(logits, hot.float()))
    metric = DiceMetric(include_background=True)
    metric(one_hot(logits.argmax(1, keepdim=True), 2), hot)
    result["metric"] = numbers(metric.aggregate())
    result["distance"] = numbers(compute_hausdorff_distance(one_hot(logits.argmax(1, keepdim=True), 2), hot, include_background=True))
    prepare = Compose([EnsureChannelFirst(channel_dim="no_channel"), ScaleIntensity(), NormalizeIntensity()])
    return {**result, "prepared": numbers(torch.as_tensor(prepare(data(6, 6, seed=3))))}
