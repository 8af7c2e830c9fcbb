"""Variational autoencoder: reparametrisation, summed binary cross entropy and the closed form of the divergence."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self, noise):
        super().__init__()
        self.noise = noise
        self.fc1 = nn.Linear(64, 40)
        self.fc21 = nn.Linear(40, 6)
        self.fc22 = nn.Linear(40, 6)
        self.fc3 = nn.Linear(6, 40)
        self.fc4 = nn.Linear(40, 64)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + self.noise(std) * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    bce = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


def run(same):
    images = torch.tensor(load_digits().images[:256] / 16, dtype=torch.float32)
    loader = torch.utils.data.DataLoader(images, batch_size=64)
    model = same.start(VAE(torch.randn_like if same.random else same.normal))
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(2):
        total = 0
        for data in loader:
            optimizer.zero_grad()
            recon, mu, logvar = model(data)
            loss = loss_function(recon, data, mu, logvar)
            loss.backward()
            total += loss.item()
            optimizer.step()
            losses.append(loss.item() / len(data))
        losses.append(total / len(loader.dataset))
    with torch.no_grad():
        sample = model.decode(torch.randn(8, 6)).cpu()
        grid = torch.cat([images[:8], sample.view(8, 8, 8)])
    assert np.asarray(grid).shape == (16, 8, 8)
    return losses
