"""Losses and heads of self-supervised learning (lightly): SimCLR, Barlow twins, VICReg, SwAV, DINO, momentum encoders."""

import copy

import torch
from lightly.loss import BarlowTwinsLoss, DCLLoss, DINOLoss, NegativeCosineSimilarity, NTXentLoss, SwaVLoss, VICRegLoss
from lightly.models.modules.heads import BarlowTwinsProjectionHead, SimCLRProjectionHead, SwaVPrototypes
from lightly.models.utils import deactivate_requires_grad, update_momentum

from ..helpers import data, fill, numbers, train


def run():
    a, b = data(8, 6), data(8, 6, seed=1)
    result = {}
    for loss in (NTXentLoss(0.2), BarlowTwinsLoss(), VICRegLoss(), DCLLoss(), NegativeCosineSimilarity()):
        head = fill(SimCLRProjectionHead(6, 8, 4), scale=0.3)
        result[type(loss).__name__] = train(head, lambda head=head, loss=loss: loss(head(a), head(b)))
    prototypes = fill(SwaVPrototypes(6, 5), scale=0.4)
    prototypes.normalize()
    result["swav"] = numbers(SwaVLoss()([prototypes(a), prototypes(b)], []))
    dino = DINOLoss(output_dim=6, warmup_teacher_temp_epochs=2)
    result["dino"] = numbers(dino([a, b], [a.flip(0), b], epoch=1), dino.center.value if hasattr(dino.center, "value") else dino.center)
    online = fill(BarlowTwinsProjectionHead(6, 8, 4))
    momentum = copy.deepcopy(online)
    deactivate_requires_grad(momentum)
    with torch.no_grad():
        for p in online.parameters():
            p.add_(0.5)
    update_momentum(online, momentum, m=0.9)
    return {**result, "momentum": numbers(*momentum.parameters())}
