"""Adversarial pictures by torchattacks: FGSM, BIM, PGD, MI-FGSM, DeepFool and Carlini and Wagner's"""

import torch
import torchattacks

from ..helpers import data, fill, integers, numbers


def run():
    net = fill(torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.AvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(16, 3)), scale=0.5).eval()
    pictures, labels = data(4, 3, 8, 8).sigmoid(), integers(3, 4, seed=1)
    attacks = {
        "fgsm": torchattacks.FGSM(net, eps=0.03), "bim": torchattacks.BIM(net, eps=0.05, alpha=0.01, steps=4),
        "pgd": torchattacks.PGD(net, eps=0.05, alpha=0.01, steps=4, random_start=False), "pgdl2": torchattacks.PGDL2(net, steps=3, random_start=False),
        "mifgsm": torchattacks.MIFGSM(net, steps=3), "nifgsm": torchattacks.NIFGSM(net, steps=3), "deepfool": torchattacks.DeepFool(net, steps=5),
        "cw": torchattacks.CW(net, c=1.0, steps=5),
    }
    return {name: numbers(attack(pictures, labels)) for name, attack in attacks.items()}
