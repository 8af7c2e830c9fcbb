"""Reversing sequences: a packed bidirectional GRU encoder, Bahdanau attention, teacher forcing, a loss that skips padding."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

PAD, SOS, EOS, VOCAB = 0, 1, 2, 12


class EncoderRNN(nn.Module):
    def __init__(self, hidden, dropout):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, hidden, padding_idx=PAD)
        self.gru = nn.GRU(hidden, hidden, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * hidden, hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, input, lengths):
        embedded = self.dropout(self.embedding(input))
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        outputs, hidden = self.gru(packed)
        outputs, _ = pad_packed_sequence(outputs, batch_first=True, padding_value=0.0)
        return outputs, torch.tanh(self.bridge(torch.cat((hidden[-2], hidden[-1]), dim=1))).unsqueeze(0)


class BahdanauAttention(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.Wa, self.Ua, self.Va = nn.Linear(hidden, hidden), nn.Linear(2 * hidden, hidden), nn.Linear(hidden, 1)

    def forward(self, query, keys, mask):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys))).squeeze(2).unsqueeze(1)
        weights = F.softmax(scores.masked_fill(~mask.unsqueeze(1), -1e9), dim=-1)
        return torch.bmm(weights, keys), weights


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, hidden)
        self.attention = BahdanauAttention(hidden)
        self.gru = nn.GRU(3 * hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, VOCAB)

    def forward(self, encoder_outputs, hidden, mask, target=None, max_length=7):
        batch_size = encoder_outputs.size(0)
        decoder_input = torch.empty(batch_size, 1, dtype=torch.long).fill_(SOS)
        outputs, attentions = [], []
        for i in range(max_length if target is None else target.size(1)):
            context, weights = self.attention(hidden.permute(1, 0, 2), encoder_outputs, mask)
            output, hidden = self.gru(torch.cat((self.embedding(decoder_input), context), dim=2), hidden)
            output = self.out(output)
            outputs.append(output)
            attentions.append(weights)
            if target is not None:
                decoder_input = target[:, i].unsqueeze(1)
            else:
                decoder_input = output.topk(1)[1].squeeze(-1).detach()
        return F.log_softmax(torch.cat(outputs, dim=1), dim=-1), hidden, torch.cat(attentions, dim=1)


def run(same):
    encoder, decoder = same.start(EncoderRNN(16, same.dropout(0.1)), AttnDecoderRNN(16))
    encoder_optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)
    decoder_optimizer = torch.optim.Adam(decoder.parameters(), lr=0.01)
    criterion = nn.NLLLoss(ignore_index=PAD)
    losses = []
    for _ in range(6):
        seqs = [torch.from_numpy(same.rng.randint(3, VOCAB, n)) for n in same.rng.randint(2, 7, 8)]
        lengths = torch.tensor([len(s) for s in seqs])
        source = pad_sequence(seqs, batch_first=True, padding_value=PAD)
        target = pad_sequence([torch.cat([s.flip(0), torch.tensor([EOS])]) for s in seqs], batch_first=True)
        mask = torch.arange(source.size(1))[None, :] < lengths[:, None]
        encoder_optimizer.zero_grad()
        decoder_optimizer.zero_grad()
        encoder_outputs, encoder_hidden = encoder(source, lengths)
        decoder_outputs, _, attention = decoder(encoder_outputs, encoder_hidden, mask, target)
        loss = criterion(decoder_outputs.view(-1, decoder_outputs.size(-1)), target.view(-1))
        loss.backward()
        encoder_optimizer.step()
        decoder_optimizer.step()
        losses += [loss.item(), attention.max().item()]
    with torch.no_grad():
        _, topi = decoder(encoder_outputs, encoder_hidden, mask)[0].topk(1)
        assert topi.squeeze().shape == (8, 7)
    return losses
