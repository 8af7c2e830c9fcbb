"""Transformers of lucidrains: a decoder with rotary positions, an encoder, a vision transformer, and generation."""

import torch
from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper, ViTransformerWrapper

from ..helpers import data, fill, integers, numbers, train


def run():
    model = fill(TransformerWrapper(num_tokens=20, max_seq_len=16, attn_layers=Decoder(
        dim=16, depth=2, heads=2, attn_dim_head=8, rotary_pos_emb=True, ff_glu=True, use_rmsnorm=True)))
    wrapped = AutoregressiveWrapper(model)
    tokens = integers(20, 3, 12)
    losses = train(wrapped, lambda: wrapped(tokens))
    generated = wrapped.generate(tokens[:1, :4], 6, temperature=0.0)
    encoder = fill(TransformerWrapper(num_tokens=20, max_seq_len=16, attn_layers=Encoder(dim=16, depth=1, heads=2, alibi_pos_bias=True)))
    vision = fill(ViTransformerWrapper(image_size=16, patch_size=4, num_classes=5, attn_layers=Encoder(dim=16, depth=1, heads=2)))
    return {"losses": losses, "generated": generated.flatten().tolist(), "encoded": numbers(encoder(tokens, mask=torch.ones(3, 12).bool())),
            "seen": numbers(vision(data(2, 3, 16, 16)))}
