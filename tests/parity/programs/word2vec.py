"""Skip-grams with negative sampling: two Embeddings, batched dot products, logsigmoid, Adagrad; a continuous bag of words besides."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Variable

CORPUS = "we are about to study the idea of a process and processes are what the programs that we write direct".split()


class SkipGram(nn.Module):
    def __init__(self, vocab_size, embedding_dim):
        super().__init__()
        self.in_embed = nn.Embedding(vocab_size, embedding_dim)
        self.out_embed = nn.Embedding(vocab_size, embedding_dim)
        self.in_embed.weight.data.uniform_(-0.5 / embedding_dim, 0.5 / embedding_dim)
        self.out_embed.weight.data.uniform_(-0.5, 0.5)

    def forward(self, centre, context, negative):
        v, u, n = self.in_embed(centre), self.out_embed(context), self.out_embed(negative)
        score = torch.sum(torch.mul(u, v), dim=1).squeeze()
        neg_score = torch.bmm(n, v.unsqueeze(2)).squeeze()
        return -1 * (F.logsigmoid(score).sum() + F.logsigmoid(-1 * neg_score).sum()) / len(centre)


class CBOW(nn.Module):
    def __init__(self, vocab_size, embedding_dim):
        super().__init__()
        self.embeddings = nn.EmbeddingBag(vocab_size, embedding_dim, mode="mean")
        self.linear = nn.Linear(embedding_dim, vocab_size)

    def forward(self, inputs):
        return F.log_softmax(self.linear(self.embeddings(inputs)), dim=1)


def run(same):
    vocab = sorted(set(CORPUS))
    ids = np.array([vocab.index(word) for word in CORPUS])
    freq = torch.tensor(np.bincount(ids)).float() ** 0.75
    skip, cbow = same.start(SkipGram(len(vocab), 8), CBOW(len(vocab), 8))
    optimizer = torch.optim.Adagrad(list(skip.parameters()) + list(cbow.parameters()), lr=0.1)
    losses = []
    for _ in range(6):
        centre, context = Variable(torch.LongTensor(ids[1:-1])), Variable(torch.LongTensor(ids[2:]))
        if same.random:
            negative = torch.multinomial(freq / freq.sum(), len(centre) * 4, replacement=True).view(-1, 4)
        else:
            negative = torch.from_numpy(same.rng.randint(0, len(vocab), (len(centre), 4)))
        around = torch.stack([torch.from_numpy(ids[:-2]), torch.from_numpy(ids[2:])], dim=1)
        loss = skip(centre, context, negative) + F.nll_loss(cbow(around), centre)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    weight = skip.in_embed.weight.detach()
    similar = F.cosine_similarity(weight[vocab.index("process")].unsqueeze(0), weight)
    assert similar.argsort(descending=True)[0] == vocab.index("process")
    return [*losses, weight.norm(dim=1).mean().item()]
