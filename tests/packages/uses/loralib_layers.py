"""Layers of loralib with matrices of low rank beside theirs: linear, merged, embedding and convolution, trained and merged"""

import loralib
import torch

from ..helpers import data, fill, integers, numbers, train


def run():
    net = fill(torch.nn.Sequential(loralib.Embedding(10, 8, r=2), loralib.Linear(8, 12, r=2, lora_alpha=4), torch.nn.ReLU(),
                                   loralib.MergedLinear(12, 9, r=2, enable_lora=[True, False, True])), scale=0.3)
    conv = fill(loralib.Conv2d(3, 4, 3, r=2, lora_alpha=2), scale=0.3)
    words, pictures = integers(10, 3, 5), data(2, 3, 6, 6)
    loralib.mark_only_lora_as_trainable(net, bias="lora_only")
    losses = train(net, lambda: (net(words) - 1).square().mean())
    loralib.mark_only_lora_as_trainable(conv)
    conv_losses = train(conv, lambda: (conv(pictures) - 1).square().mean())
    state = loralib.lora_state_dict(net, bias="lora_only")
    net.eval()
    merged = net(words)
    net.train()
    conv.eval()  # (it returns None)
    return {"losses": losses, "conv": conv_losses, "merged": numbers(merged, net(words)), "state": numbers(*state.values()),
            "merged conv": numbers(conv(pictures))}
