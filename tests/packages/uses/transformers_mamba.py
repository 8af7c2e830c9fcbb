"""A state space model (Mamba) from transformers: its language model trains and generates."""

import torch
from transformers import MambaConfig, MambaForCausalLM

from ..helpers import fill, integers, numbers, train


def run():
    config = MambaConfig(
        vocab_size=40, hidden_size=16, state_size=4, num_hidden_layers=2, intermediate_size=32, conv_kernel=3, time_step_rank=2,
        pad_token_id=0, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = fill(MambaForCausalLM(config))
    ids = integers(40, 2, 9)
    losses = train(model, lambda: model(ids, labels=ids).loss, steps=4)
    model.eval()
    with torch.no_grad():
        logits = model(ids).logits
        tokens = model.generate(ids[:, :4] + 1, max_new_tokens=6, do_sample=False, pad_token_id=0, eos_token_id=99)
    return {"losses": losses, "logits": numbers(logits), "tokens": tokens.ravel().tolist()}
