"""A tiny T5 trains two steps and generates."""

from transformers import T5Config, T5ForConditionalGeneration

from ..helpers import fill, integers, numbers, train


def run():
    config = T5Config(vocab_size=48, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, dropout_rate=0.0, decoder_start_token_id=0,
                      pad_token_id=0, eos_token_id=1)
    model = fill(T5ForConditionalGeneration(config))
    tokens, labels = integers(47, 2, 10) + 1, integers(47, 2, 6, seed=1) + 1
    losses = train(model, lambda: model(input_ids=tokens, labels=labels).loss, steps=2)
    model.eval()
    generated = model.generate(tokens, max_new_tokens=6, do_sample=False)
    return {"losses": losses, "tokens": generated.flatten().tolist(), "logits": numbers(model(input_ids=tokens, labels=labels).logits)}
