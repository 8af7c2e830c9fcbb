"""A tiny Llama trains two steps and generates with its cache of keys and values."""

from transformers import LlamaConfig, LlamaForCausalLM

from ..helpers import fill, integers, numbers, train


def run():
    config = LlamaConfig(vocab_size=48, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                         max_position_embeddings=64, bos_token_id=0, eos_token_id=47, pad_token_id=0)
    model = fill(LlamaForCausalLM(config))
    tokens = integers(47, 2, 12)
    losses = train(model, lambda: model(input_ids=tokens, labels=tokens).loss, steps=2)
    model.eval()
    cached = model.generate(tokens[:1, :4], max_new_tokens=8, do_sample=False)
    plain = model.generate(tokens[:1, :4], max_new_tokens=8, do_sample=False, use_cache=False)
    assert cached.tolist() == plain.tolist()
    return {"losses": losses, "tokens": cached.flatten().tolist(), "logits": numbers(model(tokens).logits)}
