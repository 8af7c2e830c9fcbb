"""Small image models of timm, trained a few steps, with its optimizers, schedules and losses."""

import timm
import torch
from timm.loss import LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import ModelEmaV3

from ..helpers import data, fill, integers, numbers


def run():
    x, y, result = data(4, 3, 64, 64, dtype=torch.float64), integers(5, 4), {}
    for name, options in (("resnet10t", {}), ("vit_tiny_patch16_224", {"img_size": 64, "embed_dim": 24, "depth": 2, "num_heads": 2}),
                          ("mobilenetv3_small_050", {}), ("convnext_atto", {"depths": (1, 1, 1, 1), "dims": (8, 8, 16, 16)})):
        model = fill(timm.create_model(name, pretrained=False, num_classes=5, **options)).double().train()
        optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-2, weight_decay=0.05)
        schedule = CosineLRScheduler(optimizer, t_initial=4, warmup_t=1, warmup_lr_init=1e-3)
        losses = []
        for step in range(2):
            schedule.step(step)
            loss = LabelSmoothingCrossEntropy(0.1)(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        result[name] = [*losses, *numbers(model.eval()(x).detach())]
    ema = ModelEmaV3(torch.nn.Linear(3, 2), decay=0.9)
    result["others"] = [*numbers(SoftTargetCrossEntropy()(data(2, 5), data(2, 5, seed=1).softmax(1))), sum(p.numel() for p in ema.module.parameters())]
    return result
