"""Channels of a network are pruned by torch-pruning with all that depends on them, by several measures of importance"""

import torch
import torch_pruning

from ..helpers import data, fill, numbers, train


class Residual(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm, self.second = torch.nn.BatchNorm2d(8), torch.nn.Conv2d(8, 8, 3, padding=1)
        self.head = torch.nn.Linear(8, 4)

    def forward(self, x):
        y = self.norm(self.first(x)).relu()
        return self.head((y + self.second(y)).relu().mean((2, 3)))


def run():
    x, found = data(4, 3, 6, 6), {}
    ways = {"magnitude": torch_pruning.importance.MagnitudeImportance(p=2), "taylor": torch_pruning.importance.TaylorImportance(),
            "lamp": torch_pruning.importance.LAMPImportance()}
    for name, importance in ways.items():
        net = fill(Residual(), scale=0.3)
        net(x).square().mean().backward()
        before = torch_pruning.utils.count_ops_and_params(net, x)
        pruner = torch_pruning.pruner.MetaPruner(net, x, importance=importance, pruning_ratio=0.5, ignored_layers=[net.head])
        pruner.step()
        after = torch_pruning.utils.count_ops_and_params(net, x)
        net.zero_grad()
        losses = train(net, lambda net=net: net(x).square().mean())
        found[name] = [*before, *after, *losses, *numbers(net(x), net.first.weight)]
    return found
