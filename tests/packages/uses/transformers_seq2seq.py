"""Tiny BART, Marian, Pegasus and a gated T5 train, and generate by beams with penalties."""

import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    PegasusConfig,
    PegasusForConditionalGeneration,
    T5Config,
    T5ForConditionalGeneration,
)

from ..helpers import fill, integers, numbers, train

SIZES = {
    "vocab_size": 50, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0, "max_position_embeddings": 32,
}  # fmt: skip


def run():
    x, y, result = integers(45, 2, 9) + 3, integers(45, 2, 7, seed=1) + 3, {}
    models = {
        "bart": BartForConditionalGeneration(BartConfig(**SIZES, forced_eos_token_id=2)),
        "marian": MarianMTModel(MarianConfig(**SIZES, pad_token_id=1, eos_token_id=2, decoder_start_token_id=1, forced_eos_token_id=2)),
        "pegasus": PegasusForConditionalGeneration(PegasusConfig(**SIZES)),
        "t5": T5ForConditionalGeneration(T5Config(vocab_size=50, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, dropout_rate=0.0,
                                                  feed_forward_proj="gated-gelu", decoder_start_token_id=0)),
    }
    for name, model in models.items():
        fill(model, scale=0.3)
        if name == "t5":
            model.double()  # in float32 the means of its states have three digits, here and in PyTorch
        result[name] = train(model, lambda m=model: m(input_ids=x, labels=y, attention_mask=torch.ones_like(x)).loss)
        model.eval()
        found = model.generate(x, max_new_tokens=6, num_beams=4, num_return_sequences=2, length_penalty=0.8, early_stopping=True, do_sample=False,
                               no_repeat_ngram_size=2, output_scores=True, return_dict_in_generate=True)
        result[name + " beams"] = found.sequences.flatten().tolist() + found.sequences_scores.tolist()
        greedy = model.generate(x, max_new_tokens=6, repetition_penalty=1.5, do_sample=False, min_new_tokens=4, bad_words_ids=[[5]])
        result[name + " greedy"] = greedy.flatten().tolist()
        out = model(input_ids=x, decoder_input_ids=y, output_hidden_states=True)
        result[name + " states"] = numbers(*out.decoder_hidden_states, out.encoder_last_hidden_state)
    return result
