"""Layers of small packages: sines, graphs that turn, gMLP, lambda, soft and sparse experts, linear attention, keys that are products, TCN, FFT convolutions."""

import torch
from diffsort import DiffSortNet
from egnn_pytorch import EGNN_Network
from fft_conv_pytorch import FFTConv2d, fft_conv
from g_mlp_pytorch import gMLP, gMLPVision
from lambda_networks import LambdaLayer
from linear_attention_transformer import LinearAttentionTransformerLM
from madgrad import MADGRAD, MirrorMADGRAD
from memory_efficient_attention_pytorch import Attention
from mixture_of_experts import MoE
from product_key_memory import PKM
from ptflops import get_model_complexity_info
from pytorch_tcn import TCN
from siren_pytorch import SirenNet, SirenWrapper
from soft_moe_pytorch import SoftMoE
from torch import nn

from ..helpers import data, drawn_by_numpy, fill, integers, numbers, train


def learnt(module, *given, lr=0.05):
    fill(module)
    return train(module, lambda: module(*given).pow(2).mean(), lr=lr) + numbers(module(*given))


def sorted_softly(network, distribution):
    x = data(2, 8).requires_grad_()
    values, places = DiffSortNet(network, 8, steepness=4, distribution=distribution)(x)
    (values * torch.arange(8.0)).sum().backward()
    return numbers(values, places, x.grad)


def stepped(kind):
    model, x, losses = fill(nn.Linear(4, 3)), data(8, 4), []
    optimizer = kind(model.parameters(), lr=0.01)
    for _ in range(4):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def run():
    result = {f"diffsort {n} {d}": sorted_softly(n, d) for n in ("bitonic", "odd_even") for d in ("logistic", "cauchy")}
    wrapper, image = SirenWrapper(fill(SirenNet(dim_in=2, dim_hidden=16, dim_out=3, num_layers=3, w0_initial=30.0), scale=0.05), 8, 8), data(1, 3, 8, 8)
    result["siren"] = train(wrapper, lambda: wrapper(image), lr=0.01) + numbers(wrapper())
    graph = fill(EGNN_Network(num_tokens=7, num_positions=16, dim=8, depth=2, num_nearest_neighbors=4, coor_weights_clamp_value=2.0))
    given, mask = (integers(7, 1, 12), data(1, 12, 3)), torch.ones(1, 12).bool()
    result["egnn"] = train(graph, lambda: sum(t.pow(2).mean() for t in graph(*given, mask=mask))) + numbers(*graph(*given, mask=mask))
    result["gmlp"] = learnt(gMLP(num_tokens=20, dim=16, depth=2, seq_len=8, circulant_matrix=True), integers(20, 2, 8))
    vision = fill(gMLPVision(image_size=8, patch_size=4, num_classes=3, dim=16, depth=2)).eval()
    result["gmlp vision"] = numbers(vision(data(2, 3, 8, 8)))
    result["lambda"] = learnt(LambdaLayer(dim=8, dim_out=8, r=3, dim_k=4, heads=2, dim_u=1), data(2, 8, 6, 6))
    result["soft moe"] = learnt(SoftMoE(dim=8, seq_len=12, num_experts=3), data(2, 12, 8))
    result["pkm"] = learnt(PKM(dim=16, heads=2, dim_head=8, num_keys=16, topk=4), data(2, 5, 16))
    attention = Attention(dim=16, dim_head=8, heads=2, memory_efficient=True, q_bucket_size=8, k_bucket_size=8, causal=True)
    result["memory efficient"] = learnt(attention, data(1, 24, 16))
    words = LinearAttentionTransformerLM(num_tokens=30, dim=16, heads=2, depth=2, max_seq_len=32, causal=True, blindspot_size=4)
    result["linear attention"] = learnt(words, integers(30, 2, 32), lr=0.01)
    tcn = TCN(3, [4, 6], kernel_size=3, dropout=0.0, causal=True, use_skip_connections=True)
    result["tcn"] = learnt(tcn, data(1, 3, 20))
    tcn.eval().reset_buffers()
    result["tcn streamed"] = numbers(*(tcn(data(1, 3, 20)[..., k : k + 1], inference=True) for k in range(3)))
    with drawn_by_numpy():
        experts, x = fill(MoE(dim=8, num_experts=4, hidden_dim=16)), data(2, 6, 8)
        result["moe"] = train(experts, lambda: sum(part.pow(k).mean() for part, k in zip(experts(x), (2, 1), strict=True)))
    layer, x = fill(FFTConv2d(3, 4, 3, padding=1, stride=2, bias=True)), data(2, 3, 9, 9).requires_grad_()
    y = layer(x)
    y.pow(2).sum().backward()
    result["fft"] = numbers(y, x.grad, layer.weight.grad, fft_conv(data(1, 2, 32), data(3, 2, 5, seed=1), bias=data(3), dilation=2))
    result["madgrad"] = stepped(MADGRAD) + stepped(MirrorMADGRAD)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 5))
    result["ptflops"] = list(get_model_complexity_info(model, (3, 16, 16), as_strings=False, print_per_layer_stat=False, backend="pytorch"))
    return result
