"""Diffusion on points: sinusoidal embedding of the time, schedules gathered by index, an exponential average of the weights."""

import copy
import math

import torch
import torch.nn.functional as F
from sklearn.datasets import make_moons
from torch import nn


class SinusoidalEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, t):
        half = self.dim // 2
        freqs = torch.exp(-math.log(10000) * torch.arange(start=0, end=half, dtype=torch.float32) / half).to(device=t.device)
        args = t[:, None].float() * freqs[None]
        return torch.cat([torch.cos(args), torch.sin(args)], dim=-1)


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.ff = nn.Linear(size, size)
        self.act = nn.SiLU()

    def forward(self, x):
        return x + self.act(self.ff(x))


class Denoiser(nn.Module):
    def __init__(self, hidden=32, steps=2):
        super().__init__()
        self.time = nn.Sequential(SinusoidalEmbedding(hidden), nn.Linear(hidden, hidden), nn.SiLU())
        self.inp = nn.Linear(2, hidden)
        self.blocks = nn.ModuleList(Block(hidden) for _ in range(steps))
        self.norm = nn.GroupNorm(4, hidden)
        self.out = nn.Linear(hidden, 2)

    def forward(self, x, t):
        h = self.inp(x) + self.time(t)
        for block in self.blocks:
            h = block(h)
        return self.out(self.norm(h))


class Diffusion:
    def __init__(self, steps=50):
        self.steps = steps
        self.betas = torch.linspace(1e-4, 0.02, steps)
        self.alphas = 1.0 - self.betas
        self.bar = torch.cumprod(self.alphas, dim=0)
        self.prev = F.pad(self.bar[:-1], (1, 0), value=1.0)
        self.sqrt_bar, self.sqrt_one_minus = torch.sqrt(self.bar), torch.sqrt(1.0 - self.bar)

    def extract(self, a, t, shape):
        return a.gather(-1, t).reshape(t.shape[0], *((1,) * (len(shape) - 1)))

    def q_sample(self, x, t, noise):
        return self.extract(self.sqrt_bar, t, x.shape) * x + self.extract(self.sqrt_one_minus, t, x.shape) * noise

    @torch.no_grad()
    def sample(self, model, x, noise):
        for i in reversed(range(self.steps)):
            t = torch.full((len(x),), i, dtype=torch.long)
            mean = (x - self.betas[i] / self.sqrt_one_minus[i] * model(x, t)) / self.alphas[i].sqrt()
            variance = self.betas[i] * (1.0 - self.prev[i]) / (1.0 - self.bar[i])
            x = mean + variance.clamp(min=1e-20).sqrt() * noise(x) if i > 0 else mean
        return x


def run(same):
    data = torch.from_numpy(make_moons(n_samples=64, random_state=0)[0]).to(torch.float32)
    model = same.start(Denoiser())
    ema = copy.deepcopy(model).eval().requires_grad_(False)
    diffusion = Diffusion()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    losses = []
    for _ in range(6):
        t = torch.as_tensor(same.rng.randint(0, diffusion.steps, len(data)))
        noise = same.normal(data)
        loss = F.mse_loss(model(diffusion.q_sample(data, t, noise), t), noise)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        with torch.no_grad():
            for p, e in zip(model.parameters(), ema.parameters(), strict=True):
                e.lerp_(p, 0.1)
        losses.append(loss.item())
    samples = diffusion.sample(ema, same.normal(data), same.normal)
    return [*losses, samples.mean(), samples.std()]
