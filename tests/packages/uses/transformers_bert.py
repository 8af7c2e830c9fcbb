"""A tiny BERT trains on masked words and on classes."""

import torch
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification

from ..helpers import fill, integers, numbers, train


def run():
    config = BertConfig(vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_position_embeddings=32,
                        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=3)
    tokens = integers(50, 3, 10)
    mask = torch.ones_like(tokens)
    mask[0, 7:] = 0
    labels = tokens.masked_fill(mask == 0, -100)
    masked = fill(BertForMaskedLM(config))
    classes = fill(BertForSequenceClassification(config), seed=1)
    wanted = torch.tensor([0, 2, 1])
    result = {"masked": train(masked, lambda: masked(input_ids=tokens, attention_mask=mask, labels=labels).loss, steps=2)}
    result["classes"] = train(classes, lambda: classes(input_ids=tokens, attention_mask=mask, labels=wanted).loss, steps=2)
    classes.eval()
    with torch.no_grad():
        out = classes(input_ids=tokens, attention_mask=mask, output_hidden_states=True)
    result["logits"] = numbers(out.logits, *out.hidden_states)
    return result
