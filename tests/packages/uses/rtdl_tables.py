"""Networks for tables (RTDL): MLP, ResNet and FT-Transformer, with numbers embedded piecewise linearly and periodically"""

import torch
from rtdl_num_embeddings import (
    LinearReLUEmbeddings,
    PeriodicEmbeddings,
    PiecewiseLinearEmbeddings,
    PiecewiseLinearEncoding,
    compute_bins,
)
from rtdl_revisiting_models import MLP, FTTransformer, ResNet

from ..helpers import data, fill, integers, numbers, train


def run():
    x, kinds, y = data(24, 4), integers(3, 24, 2), data(24, 1, seed=2)
    bins = compute_bins(x, n_bins=5)
    mlp = fill(MLP(d_in=4, d_out=1, n_blocks=2, d_block=8, dropout=0.0), scale=0.3)
    resnet = fill(ResNet(d_in=4, d_out=1, n_blocks=2, d_block=8, d_hidden=None, d_hidden_multiplier=2.0, dropout1=0.0, dropout2=0.0), scale=0.3)
    transformer = fill(FTTransformer(
        n_cont_features=4, cat_cardinalities=[3, 3], d_out=1, n_blocks=2, d_block=16, attention_n_heads=4, attention_dropout=0.0,
        ffn_d_hidden=None, ffn_d_hidden_multiplier=4 / 3, ffn_dropout=0.0, residual_dropout=0.0), scale=0.2)
    found = {"mlp": train(mlp, lambda: (mlp(x) - y).square().mean()), "resnet": train(resnet, lambda: (resnet(x) - y).square().mean()),
             "transformer": train(transformer, lambda: (transformer(x, kinds) - y).square().mean())}
    optimizer = torch.optim.AdamW(transformer.make_parameter_groups(), lr=1e-2)
    transformer(x, kinds).square().mean().backward()
    optimizer.step()
    for name, embedding in {"linear": LinearReLUEmbeddings(4, 3), "periodic": PeriodicEmbeddings(4, 3, lite=False),
                            "piecewise": PiecewiseLinearEmbeddings(bins, 3, activation=False, version="B")}.items():
        fill(embedding, scale=0.3)
        net = fill(torch.nn.Sequential(embedding, torch.nn.Flatten(), torch.nn.Linear(12, 1)), scale=0.3)
        found[name] = train(net, lambda net=net: (net(x) - y).square().mean())
    return {**found, "bins": numbers(*bins, PiecewiseLinearEncoding(bins)(x), transformer(x, kinds))}
