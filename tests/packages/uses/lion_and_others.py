"""Optimizers of other packages: Lion, RAdam with lookahead, AdaBound, LAMB, Yogi, schedule-free and more."""

import lion_pytorch
import pytorch_optimizer
import pytorch_ranger
import schedulefree
import torch
import torch_optimizer

from ..helpers import data, fill, numbers


def run():
    result = {}
    makers = {
        "lion": lambda p: lion_pytorch.Lion(p, lr=1e-2, weight_decay=0.1), "ranger": lambda p: pytorch_ranger.Ranger(p, lr=1e-2, k=2),
        **{name: (lambda p, name=name: getattr(torch_optimizer, name)(p, lr=1e-2)) for name in (
            "AdaBound", "AdaMod", "AdamP", "DiffGrad", "Lamb", "NovoGrad", "QHAdam", "RAdam", "SGDP", "SGDW", "SWATS", "Yogi", "AggMo", "MADGRAD")},
        "shampoo": lambda p: torch_optimizer.Shampoo(p, lr=1e-2), "accelerated": lambda p: torch_optimizer.AccSGD(p, lr=1e-2),
        **{"o" + name: (lambda p, name=name: getattr(pytorch_optimizer, name)(p, lr=1e-2)) for name in (
            "AdaBelief", "AdamP", "Lion", "Tiger", "CAME", "Adan", "SophiaH", "StableAdamW", "AdEMAMix", "Prodigy", "GrokFastAdamW")},
    }
    for name, make in makers.items():
        net = fill(torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 1)), scale=0.4)
        optimizer = make(net.parameters())
        for _ in range(4):
            optimizer.zero_grad()
            (net(data(8, 4)) - data(8, 1, seed=1)).square().mean().backward(create_graph=name == "oSophiaH")
            optimizer.step()
        result[name] = numbers(*[p.detach() for p in net.parameters()][:2])
    net = fill(torch.nn.Linear(4, 1))
    free = schedulefree.AdamWScheduleFree(net.parameters(), lr=0.01, warmup_steps=2)
    free.train()
    for _ in range(4):
        free.zero_grad()
        (net(data(8, 4)) - data(8, 1, seed=1)).square().mean().backward()
        free.step()
    free.eval()
    return {**result, "free": numbers(net.weight.detach())}
