"""Vision transformers of vit-pytorch: ViT, SimpleViT, one for small data, CCT and MaxViT, trained for some steps."""

import torch
from vit_pytorch import SimpleViT, ViT
from vit_pytorch.cct import CCT
from vit_pytorch.max_vit import MaxViT
from vit_pytorch.vit_for_small_dataset import ViT as SmallViT

from ..helpers import data, fill, integers, numbers, train


def run():
    x, y = data(2, 3, 16, 16), integers(5, 2)
    size = {"image_size": 16, "patch_size": 8, "num_classes": 5, "dim": 16, "depth": 2, "heads": 2, "mlp_dim": 24}
    makers = {
        "vit": lambda: ViT(**size), "simple": lambda: SimpleViT(**size), "small": lambda: SmallViT(**size),
        "cct": lambda: CCT(img_size=16, embedding_dim=16, n_conv_layers=1, num_layers=1, num_heads=2, num_classes=5, n_input_channels=3),
        "max": lambda: MaxViT(num_classes=5, dim_conv_stem=8, dim=8, dim_head=8, depth=(1,), window_size=2),
    }
    result = {}
    for name, make in makers.items():
        net = fill(make()).eval()
        result[name] = train(net, lambda net=net: torch.nn.functional.cross_entropy(net(x), y), lr=0.02)
        with torch.no_grad():
            result[name + " out"] = numbers(net(x))
    return result
