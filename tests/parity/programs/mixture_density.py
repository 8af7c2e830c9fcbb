"""Mixture density network: a MixtureSameFamily of normals whose parameters a net gives, and the same by logsumexp."""

import math

import torch
from torch import nn
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal


class MDN(nn.Module):
    def __init__(self, n_hidden, n_gaussians):
        super(MDN, self).__init__()
        self.z_h = nn.Sequential(nn.Linear(1, n_hidden), nn.Tanh())
        self.z_pi = nn.Linear(n_hidden, n_gaussians)
        self.z_sigma = nn.Linear(n_hidden, n_gaussians)
        self.z_mu = nn.Linear(n_hidden, n_gaussians)

    def forward(self, x):
        z_h = self.z_h(x)
        return nn.functional.softmax(self.z_pi(z_h), -1), torch.exp(self.z_sigma(z_h)), self.z_mu(z_h)


def by_hand(y, pi, sigma, mu):
    log_gauss = -0.5 * ((y.expand_as(mu) - mu) * torch.reciprocal(sigma)) ** 2 - torch.log(sigma) - 0.5 * math.log(2 * math.pi)
    return -torch.logsumexp(torch.log(pi) + log_gauss, dim=1).mean()


def run(same):
    y = torch.from_numpy(same.rng.uniform(-10, 10, (128, 1))).float()
    x = 7 * torch.sin(0.75 * y) + 0.5 * y + same.normal(y)
    x, y = x / x.abs().max(), y / 10.0
    model = same.start(MDN(20, 5))
    optimizer = torch.optim.RAdam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(6):
        pi, sigma, mu = model(x)
        loss = by_hand(y, pi, sigma, mu)
        mixture = MixtureSameFamily(Categorical(pi), Independent(Normal(mu.unsqueeze(-1), sigma.unsqueeze(-1)), 1))
        other = -mixture.log_prob(y).mean()
        assert torch.allclose(loss, other, atol=1e-5)
        optimizer.zero_grad()
        (0.5 * (loss + other)).backward()
        optimizer.step()
        losses += [loss.item(), mixture.mean.std().item()]
    samples = torch.normal(mu.detach(), sigma.detach()).gather(1, torch.multinomial(pi.detach(), 1))
    assert samples.shape == mixture.sample().shape == (128, 1)
    return losses
