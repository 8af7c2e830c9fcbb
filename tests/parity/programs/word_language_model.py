"""LSTM language model: batchified text, tied weights, a hidden state detached between chunks, clipped gradients, plain SGD."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

TEXT = """the graph of a program is drawn while the program runs and each value knows the values that it was made from
so the way back is only a walk along the edges and each edge adds its share to the gradient of the value below""".split()


class RNNModel(nn.Module):
    def __init__(self, rnn_type, ntoken, ninp, nhid, nlayers, dropout=0.5, tie_weights=False):
        super(RNNModel, self).__init__()
        self.ntoken = ntoken
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = getattr(nn, rnn_type)(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            self.decoder.weight = self.encoder.weight
        self.init_weights()
        self.rnn_type, self.nhid, self.nlayers = rnn_type, nhid, nlayers

    def init_weights(self):
        initrange = 0.1
        nn.init.uniform_(self.encoder.weight, -initrange, initrange)
        nn.init.zeros_(self.decoder.bias)
        self.decoder.weight.data.uniform_(-initrange, initrange)

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.ntoken)
        return F.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return (weight.new_zeros(self.nlayers, bsz, self.nhid), weight.new_zeros(self.nlayers, bsz, self.nhid))


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous()


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def run(same):
    words = sorted(set(TEXT))
    ids = torch.tensor([words.index(word) for word in TEXT * 4]).type(torch.int64)
    train_data = batchify(ids, 8)
    bptt, lr, clip = 5, 20.0, 0.25
    model = same.start(RNNModel("LSTM", len(words), 16, 16, 2, same.dropout(0.2), tie_weights=True))
    criterion = nn.NLLLoss()
    losses = []
    model.train()
    hidden = model.init_hidden(8)
    for i in range(0, train_data.size(0) - 1, bptt):
        seq_len = min(bptt, len(train_data) - 1 - i)
        data, targets = train_data[i : i + seq_len], train_data[i + 1 : i + 1 + seq_len].view(-1)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        losses += [loss.item(), math.exp(loss.item()) / 10, norm]
    model.eval()
    with torch.no_grad():
        input = torch.randint(len(words), (1, 1), dtype=torch.long)
        hidden = model.init_hidden(1)
        for _ in range(5):
            output, hidden = model(input, hidden)
            weights = output.squeeze().div(1.0).exp().cpu()
            input.fill_(torch.multinomial(weights, 1)[0])
    return losses
