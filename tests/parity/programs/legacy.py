"""The style of years ago: Variable, ``.data``, ``.cuda()`` behind a question, size_average, inplace names without underscore."""

import argparse
import warnings

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.autograd import Variable

parser = argparse.ArgumentParser()
parser.add_argument("--no-cuda", action="store_true", default=False)
parser.add_argument("--seed", type=int, default=1)
args = parser.parse_args([])
args.cuda = not args.no_cuda and torch.cuda.is_available()


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.lstm1 = nn.LSTMCell(1, 12)
        self.lstm2 = nn.LSTMCell(12, 12)
        self.linear = nn.Linear(12, 1)

    def forward(self, input, future=0):
        outputs = []
        h_t = Variable(torch.zeros(input.size(0), 12), requires_grad=False)
        c_t = Variable(torch.FloatTensor(input.size(0), 12).zero_())
        h_t2 = Variable(input.data.new(input.size(0), 12).fill_(0))
        c_t2 = Variable(input.data.new(input.size(0), 12).zero_())
        for input_t in input.chunk(input.size(1), dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for _ in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        return torch.stack(outputs, 1).squeeze(2)


def run(same):
    torch.manual_seed(args.seed)
    if args.cuda:
        torch.cuda.manual_seed(args.seed)
    data = np.sin(np.arange(20)[None, :] / 3.0 + same.rng.randint(-9, 9, (6, 1)))
    input, target = torch.from_numpy(data[:, :-1]), torch.from_numpy(data[:, 1:])
    if args.cuda:
        input, target = input.cuda(), target.cuda()
    input, target = Variable(input.float()), Variable(target.float(), requires_grad=False)
    model = same.start(Net())
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
    losses = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        criterion = nn.MSELoss(size_average=False)
        for epoch in range(6):
            optimizer.zero_grad()
            out = model(input)
            loss = criterion(out, target) / input.size(0) + F.smooth_l1_loss(out, target, size_average=True)
            loss.backward()
            total = torch.nn.utils.clip_grad_norm_(model.parameters(), 5)
            for p in model.parameters():
                p.grad.data.clamp_(-1, 1)
            optimizer.step()
            losses += [loss.data.item(), float(total)]
            if epoch % 2 == 0:
                for group in optimizer.param_groups:
                    group["lr"] *= 0.5
        model.eval()
        with torch.no_grad():
            pred = model(Variable(input), future=5)
            losses.append(F.mse_loss(pred[:, :-5], target, reduce=True).item())
        y = pred.data.cpu().numpy()
        probabilities = F.softmax(torch.from_numpy(y).view(6, -1))
        best = probabilities.data.max(1)[1]
        losses.append(best.eq(torch.LongTensor([3] * 6)).cpu().sum() / 6.0)
    return losses
