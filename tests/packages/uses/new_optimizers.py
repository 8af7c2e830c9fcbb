"""Optimizers of papers: AdaBelief, AdamP and SGDP, D-adaptation of five kinds, Ranger21, LAMB, CAME and Muon."""

from adabelief_pytorch import AdaBelief
from adamp import SGDP, AdamP
from came_pytorch import CAME
from dadaptation import DAdaptAdaGrad, DAdaptAdam, DAdaptAdan, DAdaptSGD
from muon import SingleDeviceMuon
from pytorch_lamb import Lamb
from ranger21 import Ranger21
from torch import nn

from ..helpers import data, fill, integers, numbers, stepped


def losses(make):
    model = fill(nn.Sequential(nn.Conv1d(2, 4, 3, padding=1), nn.Tanh(), nn.Flatten(), nn.Linear(24, 8), nn.GELU(), nn.Linear(8, 3)), scale=0.3)
    x, y, criterion = data(8, 2, 6), integers(3, 8), nn.CrossEntropyLoss()
    return stepped(make(model), lambda: criterion(model(x), y), 6) + numbers(*model.parameters())[:8]


def run():
    return {
        "adabelief": losses(lambda m: AdaBelief(m.parameters(), lr=1e-2, eps=1e-12, weight_decouple=True, rectify=True, print_change_log=False)),
        "adamp": losses(lambda m: AdamP(m.parameters(), lr=1e-2, weight_decay=1e-2)),
        "sgdp": losses(lambda m: SGDP(m.parameters(), lr=1e-2, weight_decay=1e-2, momentum=0.9, nesterov=True)),
        "dadapt_adam": losses(lambda m: DAdaptAdam(m.parameters(), lr=1.0)),
        "dadapt_sgd": losses(lambda m: DAdaptSGD(m.parameters(), lr=1.0)),
        "dadapt_adagrad": losses(lambda m: DAdaptAdaGrad(m.parameters(), lr=1.0, eps=1e-8)),
        "dadapt_adan": losses(lambda m: DAdaptAdan(m.parameters(), lr=1.0)),
        "ranger21": losses(lambda m: Ranger21(m.parameters(), lr=1e-2, num_epochs=2, num_batches_per_epoch=5)),
        "lamb": losses(lambda m: Lamb(m.parameters(), lr=1e-2, weight_decay=0.01)),
        "came": losses(lambda m: CAME(m.parameters(), lr=1e-3, weight_decay=1e-2)),
        "muon": losses(lambda m: SingleDeviceMuon([p for p in m.parameters() if p.ndim == 2], lr=0.02)),
    }
