"""EfficientNet of efficientnet-pytorch, small, with its memory-efficient swish"""

import torch
from efficientnet_pytorch import EfficientNet
from efficientnet_pytorch.utils import MemoryEfficientSwish

from ..helpers import data, fill, numbers, train


def run():
    net = fill(EfficientNet.from_name("efficientnet-b0", num_classes=4, depth_coefficient=0.2, width_coefficient=0.25, dropout_rate=0.0,
                                      drop_connect_rate=0.0), scale=0.05).double()
    pictures = data(4, 3, 64, 64, dtype=torch.float64)
    losses = train(net, lambda: torch.nn.functional.cross_entropy(net(pictures), torch.tensor([0, 3, 1, 2])), steps=2, lr=1e-4)
    net.eval()
    ends = net.extract_endpoints(pictures)
    x = data(5).requires_grad_()
    MemoryEfficientSwish()(x).sum().backward()
    return {"losses": losses, "features": numbers(*ends.values(), net(pictures)), "swish": numbers(x.grad)}
