"""A tiny GPT-2 trains two steps and generates."""

from transformers import GPT2Config, GPT2LMHeadModel

from ..helpers import fill, integers, numbers, train


def run():
    config = GPT2Config(vocab_size=48, n_positions=32, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                        bos_token_id=0, eos_token_id=47)
    model = fill(GPT2LMHeadModel(config))
    tokens = integers(47, 2, 12)
    losses = train(model, lambda: model(input_ids=tokens, labels=tokens).loss, steps=2)
    model.eval()
    greedy = model.generate(tokens[:1, :4], max_new_tokens=8, do_sample=False, pad_token_id=0)
    beams = model.generate(tokens[:1, :4], max_new_tokens=6, num_beams=3, do_sample=False, pad_token_id=0)
    return {"losses": losses, "greedy": greedy.flatten().tolist(), "beams": beams.flatten().tolist(),
            "logits": numbers(model(tokens).logits)}
