"""Transformer encoder as a language model: positional encoding in a buffer, a causal mask, LambdaLR with warm-up, evaluation."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn import TransformerEncoder, TransformerEncoderLayer


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=50):
        super(PositionalEncoding, self).__init__()
        self.dropout = nn.Dropout(p=dropout)
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len, dtype=torch.float).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0).transpose(0, 1))

    def forward(self, x):
        return self.dropout(x + self.pe[: x.size(0), :])


class TransformerModel(nn.Module):
    def __init__(self, ntoken, ninp, nhead, nhid, nlayers, dropout, norm_first):
        super(TransformerModel, self).__init__()
        self.src_mask = None
        self.pos_encoder = PositionalEncoding(ninp, dropout)
        layer = TransformerEncoderLayer(ninp, nhead, nhid, dropout, activation="gelu", norm_first=norm_first)
        self.encoder = TransformerEncoder(layer, nlayers, enable_nested_tensor=False)
        self.input_emb = nn.Embedding(ntoken, ninp)
        self.ninp = ninp
        self.decoder = nn.Linear(ninp, ntoken)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)

    def _generate_square_subsequent_mask(self, sz):
        return torch.log(torch.tril(torch.ones(sz, sz)))

    def forward(self, src):
        if self.src_mask is None or self.src_mask.size(0) != len(src):
            self.src_mask = self._generate_square_subsequent_mask(len(src)).to(src.device)
        src = self.pos_encoder(self.input_emb(src) * math.sqrt(self.ninp))
        return F.log_softmax(self.decoder(self.encoder(src, mask=self.src_mask)), dim=-1)


def run(same):
    tokens = torch.tensor([(i * i + 3 * i) % 17 for i in range(164)]).view(4, -1).t().contiguous()
    losses = []
    for norm_first in (False, True):
        model = same.start(TransformerModel(17, 16, 4, 32, 2, same.dropout(0.2), norm_first))
        optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
        noam = lambda step: 16**-0.5 * min((step + 1) ** -0.5, (step + 1) * 4**-1.5)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=noam)
        model.train()
        for i in range(0, 40, 8):
            source, target = tokens[i : i + 8], tokens[i + 1 : i + 9].reshape(-1)
            optimizer.zero_grad()
            loss = F.nll_loss(model(source).view(-1, 17), target)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            losses.append(F.cross_entropy(model(tokens[:8]).permute(0, 2, 1), tokens[1:9]).item())
    return losses
