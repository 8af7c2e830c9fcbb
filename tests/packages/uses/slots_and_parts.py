"""Layers that look at sets and parts: Reformer, Sinkhorn, slot attention, GLOM, Conformer, points in space, tables, and BYOL around a network."""

import torch
from byol_pytorch import BYOL
from conformer import ConformerBlock
from glom_pytorch import Glom
from invariant_point_attention import InvariantPointAttention
from reformer_pytorch import LSHSelfAttention, ReformerLM
from sinkhorn_transformer import SinkhornTransformerLM
from slot_attention import SlotAttention
from tab_transformer_pytorch import FTTransformer
from torch import nn
from torch.nn import functional as F

from ..helpers import data, drawn_by_numpy, fill, integers, numbers, train


def learnt(module, *given, lr=0.05, loss=lambda out: out.pow(2).mean()):
    fill(module)
    with drawn_by_numpy():
        return train(module, lambda: loss(module(*given)), lr=lr) + numbers(*list(module.parameters())[:3])


def words(model):
    x = integers(20, 2, 16)
    return learnt(model, x, loss=lambda out: F.cross_entropy(out.transpose(1, 2), x))


def run():
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.Linear(16, 4))
    with drawn_by_numpy():
        byol = BYOL(
            net, image_size=8, hidden_layer=-2, projection_size=8, projection_hidden_size=8, augment_fn=nn.Identity(), augment_fn2=nn.Identity()
        )
    points = InvariantPointAttention(
        dim=8, heads=2, scalar_key_dim=4, scalar_value_dim=4, point_key_dim=2, point_value_dim=2, pairwise_repr_dim=4
    )  # fmt: skip
    turned = {"rotations": torch.eye(3).expand(1, 6, 3, 3), "translations": torch.zeros(1, 6, 3)}
    table = FTTransformer(
        categories=(3, 4), num_continuous=3, dim=8, dim_out=1, depth=1, heads=2, attn_dropout=0.0, ff_dropout=0.0
    )  # fmt: skip
    return {
        "reformer": words(ReformerLM(num_tokens=20, dim=16, depth=2, max_seq_len=16, heads=2, bucket_size=4, n_hashes=2, ff_chunks=1, causal=True)),
        "buckets": learnt(LSHSelfAttention(dim=16, heads=2, bucket_size=4, n_hashes=2, causal=False), data(2, 16, 16)),
        "sinkhorn": words(SinkhornTransformerLM(num_tokens=20, dim=16, heads=2, depth=2, max_seq_len=16, bucket_size=4, causal=False, n_sortcut=1)),
        "slots": learnt(SlotAttention(num_slots=3, dim=16, iters=2), data(2, 10, 16)),
        "glom": learnt(Glom(dim=8, levels=3, image_size=16, patch_size=4), data(1, 3, 16, 16)),
        "conformer": learnt(ConformerBlock(dim=8, dim_head=4, heads=2, conv_kernel_size=5), data(2, 10, 8)),
        "points": learnt(lambda_module(points, turned), data(1, 6, 8), data(1, 6, 6, 4)),
        "table": learnt(table, torch.stack([integers(3, 6), integers(4, 6)], 1), data(6, 3)),
        "byol": learnt(byol, data(4, 3, 8, 8), loss=lambda out: out),
    }


class lambda_module(nn.Module):
    """A module that is called with more arguments."""

    def __init__(self, module, options):
        super().__init__()
        self.module, self.options = module, options

    def forward(self, *given):
        return self.module(*given, **self.options)
