"""A language model is adapted by matrices of low rank."""

import torch
from peft import IA3Config, LoraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel

from ..helpers import fill, integers, numbers


def run():
    tokens, result = integers(30, 2, 8), {}
    for name, config in (("lora", LoraConfig(r=2, lora_alpha=4, target_modules=["c_attn"], fan_in_fan_out=True, lora_dropout=0.0, task_type="CAUSAL_LM")),
                         ("ia3", IA3Config(target_modules=["c_attn", "c_fc"], feedforward_modules=["c_fc"], fan_in_fan_out=True, task_type="CAUSAL_LM"))):
        base = fill(GPT2LMHeadModel(GPT2Config(vocab_size=30, n_embd=16, n_layer=2, n_head=2, n_positions=16, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)))
        model = get_peft_model(base, config)
        for k, p in enumerate(p for p in model.parameters() if p.requires_grad and name == "lora"):
            p.data = torch.from_numpy(__import__("numpy").random.default_rng(k).standard_normal(tuple(p.shape)) * 0.1).float()
        optimizer, losses = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2), []
        for _ in range(3):
            loss = model(input_ids=tokens, labels=tokens).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        merged = model.merge_and_unload()
        result[name] = [*losses, *model.get_nb_trainable_parameters(), *numbers(merged(tokens).logits)]
    return result
