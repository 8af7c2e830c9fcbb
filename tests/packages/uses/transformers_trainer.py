"""transformers' own optimizer schedule and a ViT and a CLIP text model."""

import torch
from transformers import CLIPTextConfig, CLIPTextModel, ViTConfig, ViTForImageClassification, get_linear_schedule_with_warmup

from ..helpers import data, fill, integers, numbers


def run():
    config = ViTConfig(hidden_size=24, num_hidden_layers=2, num_attention_heads=4, intermediate_size=32, image_size=16, patch_size=4, num_labels=5,
                       hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    vit = fill(ViTForImageClassification(config))
    optimizer = torch.optim.AdamW(vit.parameters(), lr=1e-2)
    schedule = get_linear_schedule_with_warmup(optimizer, 2, 6)
    losses, rates = [], []
    for _ in range(4):
        loss = vit(pixel_values=data(3, 3, 16, 16), labels=torch.tensor([0, 3, 4])).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(vit.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        rates.append(schedule.get_last_lr()[0])
    text = fill(CLIPTextModel(CLIPTextConfig(vocab_size=40, hidden_size=24, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4,
                                             max_position_embeddings=16, eos_token_id=39, bos_token_id=38)))
    out = text(input_ids=integers(40, 2, 8))
    return {"losses": losses, "rates": rates, "text": numbers(out.last_hidden_state, out.pooler_output)}
