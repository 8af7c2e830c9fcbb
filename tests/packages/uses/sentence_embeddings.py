"""A sentence encoder of random weights learns by contrasts."""

import torch
from sentence_transformers import SentenceTransformer, losses, util
from sentence_transformers.sentence_transformer import modules as parts
from transformers import BertConfig, BertModel

from ..helpers import data, fill, numbers, train


class Words(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bert = fill(BertModel(BertConfig(vocab_size=30, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
                                              hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)))

    def forward(self, features, **kwargs):
        out = self.bert(input_ids=features["input_ids"], attention_mask=features["attention_mask"])
        return {**features, "token_embeddings": out.last_hidden_state}


def run():
    model = SentenceTransformer(modules=[Words(), parts.Pooling(16, "mean"), parts.Normalize()], device="cpu")
    ids = torch.arange(24).view(4, 6)
    pair = [{"input_ids": ids, "attention_mask": torch.ones_like(ids)}, {"input_ids": ids.flip(1), "attention_mask": torch.ones_like(ids)}]
    loss = losses.MultipleNegativesRankingLoss(model)
    values = train(model, lambda: loss([dict(p) for p in pair], None))
    found = model(dict(pair[0]))["sentence_embedding"].detach()
    return {"losses": values, "embedding": numbers(found), "similar": numbers(util.cos_sim(found, data(3, 16)), util.dot_score(found, found)),
            "search": [hit["corpus_id"] for hits in util.semantic_search(found, data(5, 16), top_k=2) for hit in hits]}
