"""Classifier of digits: convolutions, dropout, nll_loss, Adadelta, StepLR, a DataLoader over a Dataset."""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from sklearn.datasets import load_digits
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    def __init__(self, train=True, transform=None):
        digits = load_digits()
        part = slice(0, 160) if train else slice(160, 260)
        self.images = digits.images[part].astype(np.float32) / 16
        self.targets = digits.target[part]
        self.transform = transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = torch.from_numpy(self.images[index]).unsqueeze(0)
        if self.transform is not None:
            image = self.transform(image)
        return image, int(self.targets[index])


class Net(nn.Module):
    def __init__(self, dropout):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.dropout1 = nn.Dropout(dropout)
        self.dropout2 = nn.Dropout(dropout)
        self.fc1 = nn.Linear(64, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = self.dropout1(x)
        x = torch.flatten(x, 1)
        x = self.dropout2(F.relu(self.fc1(x)))
        return F.log_softmax(self.fc2(x), dim=1)


def train(args, model, device, loader, optimizer, losses):
    model.train()
    for batch_idx, (data, target) in enumerate(loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if args.dry_run:
            break


def test(model, device, loader):
    model.eval()
    loss, correct = 0, 0
    with torch.no_grad():
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            loss += F.nll_loss(output, target, reduction="sum").item()
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    return [loss / len(loader.dataset), correct / len(loader.dataset)]


def run(same):
    args = argparse.Namespace(dry_run=False, lr=1.0, gamma=0.7)
    use_accel = torch.accelerator.is_available() and False
    torch.manual_seed(1)
    device = torch.accelerator.current_accelerator() if use_accel else torch.device("cpu")
    normalise = lambda image: (image - 0.3) / 0.38
    train_loader = DataLoader(Digits(True, normalise), batch_size=32, shuffle=same.random)
    test_loader = DataLoader(Digits(False, normalise), batch_size=64)
    model = same.start(Net(same.dropout(0.25)).to(device))
    optimizer = optim.Adadelta(model.parameters(), lr=args.lr)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    losses = []
    for epoch in range(1, 3):
        train(args, model, device, train_loader, optimizer, losses)
        losses += test(model, device, test_loader)
        scheduler.step()
    return losses
