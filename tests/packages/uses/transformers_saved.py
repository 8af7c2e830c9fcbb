"""Models of transformers are saved, and loaded in several dtypes; others are made on the device meta and filled."""

import tempfile

import torch
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

from ..helpers import data, fill, integers, numbers


def run():
    x, result = integers(45, 2, 7) + 3, {}
    models = {
        "gpt2": GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=1)),
        "llama": LlamaForCausalLM(LlamaConfig(vocab_size=50, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
                                              num_key_value_heads=1, tie_word_embeddings=True)),
        "bert": BertForMaskedLM(BertConfig(vocab_size=50, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
                                           max_position_embeddings=16)),
    }
    for name, model in models.items():
        fill(model).eval()
        folder = tempfile.mkdtemp()
        model.save_pretrained(folder, max_shard_size="20KB")
        for dtype in (torch.float32, torch.float64):
            result[f"{name} {dtype}"] = numbers(type(model).from_pretrained(folder, dtype=dtype).eval()(x).logits)
        if name != "bert":
            again = AutoModelForCausalLM.from_pretrained(folder)
            result[name + " text"] = again.generate(x[:1], max_new_tokens=4, do_sample=False).flatten().tolist()
    result["encoder"] = numbers(AutoModel.from_pretrained(folder, add_pooling_layer=False).eval()(x).last_hidden_state)
    with torch.device("meta"):
        empty = BertForMaskedLM(models["bert"].config)
    empty.load_state_dict(models["bert"].state_dict(), assign=True)
    empty.tie_weights()
    result["assigned"] = numbers(empty.bert.embeddings.word_embeddings.weight)
    layer = torch.nn.Linear(3, 4, device="meta").to_empty(device="cpu")
    layer.load_state_dict({"weight": data(4, 3), "bias": data(4)})
    result["layer"] = numbers(layer(data(2, 3)))
    return result
