"""Graphs of gradients, as Graphviz draws them."""

import re

import torch
from torchviz import make_dot

from ..helpers import data


def run():
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
    dot = make_dot(net(data(2, 4)).mean(), params=dict(net.named_parameters()))
    names = re.findall(r"label=\"?(\w+)", dot.source)
    x = data(3).requires_grad_()
    more = make_dot((x.sin() * x.exp()).sum(), params={"x": x}, show_attrs=True, show_saved=True)
    kinds = ("AddmmBackward0", "TanhBackward0", "MeanBackward0", "AccumulateGrad", "TBackward0")
    return {"kinds": [names.count(kind) for kind in kinds], "edges": [dot.source.count("->"), more.source.count("->")]}
