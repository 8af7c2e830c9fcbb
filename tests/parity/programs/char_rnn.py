"""Names and their languages: a recurrent net of Linear layers, one-hot letters, LogSoftmax with NLLLoss, updates by hand."""

import string
import unicodedata

import torch
import torch.nn as nn

all_letters = string.ascii_letters + " .,;'"
n_letters = len(all_letters)
NAMES = {"Spanish": ["Álvarez", "Muñoz", "Núñez"], "German": ["Müller", "Schäfer", "Groß"], "Polish": ["Kowalski", "Zieliński"]}
all_categories = list(NAMES)


def unicode_to_ascii(s):
    return "".join(c for c in unicodedata.normalize("NFD", s) if unicodedata.category(c) != "Mn" and c in all_letters)


def line_to_tensor(line):
    tensor = torch.zeros(len(line), 1, n_letters)
    for li, letter in enumerate(line):
        tensor[li][0][all_letters.find(letter)] = 1
    return tensor


class RNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super(RNN, self).__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.i2o = nn.Linear(input_size + hidden_size, output_size)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, input, hidden):
        combined = torch.cat((input, hidden), 1)
        hidden = torch.tanh(self.i2h(combined))
        return self.softmax(self.i2o(combined)), hidden

    def initHidden(self):
        return torch.zeros(1, self.hidden_size)


def category_from_output(output):
    top_n, top_i = output.topk(1)
    return all_categories[top_i[0].item()], top_i[0].item()


def run(same):
    rnn = same.start(RNN(n_letters, 16, len(all_categories)))
    criterion, learning_rate = nn.NLLLoss(), 0.05
    losses, confusion = [], torch.zeros(3, 3)
    for category, lines in NAMES.items():
        for line in lines:
            line_tensor = line_to_tensor(unicode_to_ascii(line))
            category_tensor = torch.tensor([all_categories.index(category)], dtype=torch.long)
            hidden = rnn.initHidden()
            rnn.zero_grad()
            for i in range(line_tensor.size()[0]):
                output, hidden = rnn(line_tensor[i], hidden)
            loss = criterion(output, category_tensor)
            loss.backward()
            for p in rnn.parameters():
                p.data.add_(p.grad.data, alpha=-learning_rate)
            guess, guess_i = category_from_output(output)
            confusion[category_tensor.item()][guess_i] += 1
            losses.append(loss.item())
    for i in range(3):
        confusion[i] = confusion[i] / confusion[i].sum()
    return losses + confusion.flatten().tolist()
