"""Siamese and triplet networks: margin and cosine losses on a shared embedding, a Dataset of pairs, weight-normalised layers."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset, Subset


class TripletDigits(Dataset):
    def __init__(self, rng):
        images, labels = load_digits(return_X_y=True)
        self.images = (images[:200] / 16).astype("float32")
        self.labels = labels[:200]
        self.others = [
            (rng.choice(np.flatnonzero(self.labels == y)), rng.choice(np.flatnonzero(self.labels != y))) for y in self.labels
        ]

    def __getitem__(self, i):
        positive, negative = self.others[i]
        return (self.images[i], self.images[positive], self.images[negative]), self.labels[i]

    def __len__(self):
        return len(self.labels)


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=1.0):
        super(ContrastiveLoss, self).__init__()
        self.margin = margin
        self.eps = 1e-9

    def forward(self, output1, output2, target, size_average=True):
        distances = (output2 - output1).pow(2).sum(1)
        losses = 0.5 * (
            target.float() * distances + (1 + -1 * target).float() * F.relu(self.margin - (distances + self.eps).sqrt()).pow(2)
        )
        return losses.mean() if size_average else losses.sum()


class Embed(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 8, 3), nn.PReLU(), nn.MaxPool2d(2, stride=2))
        self.fc = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(72, 16)), nn.PReLU(), nn.Linear(16, 4))

    def forward(self, x):
        output = self.conv(x.view(-1, 1, 8, 8))
        return self.fc(output.view(output.size()[0], -1))


def run(same):
    dataset = Subset(TripletDigits(same.rng), list(range(192)))
    net = same.start(Embed())
    triplet = nn.TripletMarginLoss(margin=1.0, p=2)
    contrastive, cosine = ContrastiveLoss(), nn.CosineEmbeddingLoss(margin=0.2)
    optimizer = torch.optim.NAdam(net.parameters(), lr=1e-2)
    losses = []
    for (anchor, positive, negative), labels in DataLoader(dataset, batch_size=32, drop_last=True):
        assert labels.dtype == torch.int64 and anchor.shape == (32, 64)
        optimizer.zero_grad()
        a, p, n = map(net, (anchor, positive, negative))
        loss = triplet(a, p, n)
        loss += contrastive(torch.cat((a, a)), torch.cat((p, n)), torch.cat([torch.ones(32), torch.zeros(32)]))
        loss += cosine(a, n, -torch.ones(len(a)))
        hardest = torch.cdist(a, n).masked_fill(labels[:, None] == labels[None, :], float("inf")).min(dim=1)
        loss += 0.1 * F.softplus(1 - hardest.values).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
