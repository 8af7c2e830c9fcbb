"""Modules, data, training, saving: what a checker in strict mode sees of them."""
# pyright: strict

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import assert_type

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb import Tensor, nn
from autograd_nb.utils.data import DataLoader, Dataset, TensorDataset, random_split


class Block(nn.Module):
    """A residual block with a branch that is itself a module."""

    def __init__(self, features: int, rate: float = 0.1) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.linear = nn.Linear(features, features, bias=False)
        self.drop = nn.Dropout(rate)
        self.scale = nn.Parameter(torch.ones(features))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        h = F.gelu(self.linear(self.norm(x)))
        assert_type(h, Tensor)
        dropped: Tensor = self.drop(h)
        return x + self.scale * dropped


class Classifier(nn.Module):
    def __init__(self, features: int, classes: int, depth: int = 2) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(features) for _ in range(depth)])
        self.head = nn.Sequential(nn.Linear(features, 32), nn.ReLU(), nn.Linear(32, classes))

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(x)
        return logits


class Squares(Dataset[tuple[Tensor, Tensor]]):
    """Numbers and their squares."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        x = torch.tensor([float(index)])
        return x, x * x


def train(model: nn.Module, batches: DataLoader[tuple[Tensor, Tensor]], epochs: int = 3) -> list[float]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    losses: list[float] = []
    for _ in range(epochs):
        for x, y in batches:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            assert_type(norm, Tensor)
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
        assert_type(scheduler.get_last_lr(), list[float | Tensor])
    return losses


def evaluate(model: nn.Module, x: Tensor, y: Tensor) -> float:
    model.eval()
    with torch.no_grad():
        guess = model(x).argmax(dim=1)
        assert isinstance(guess, Tensor)
        return (guess == y).float().mean().item()


def count(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def by_name(model: nn.Module) -> Iterator[tuple[str, torch.Size]]:
    for name, parameter in model.named_parameters():
        yield name, parameter.shape


def keep(model: nn.Module, where: Path) -> None:
    torch.save(model.state_dict(), where)
    state = torch.load(where)
    model.load_state_dict(state)
    model.to(torch.float64).double().train(False)
    for child in model.children():
        child.requires_grad_(False)


def main() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(64, 8), torch.randint(0, 3, (64,))
    whole = TensorDataset(x, y)
    first, second = random_split(whole, [48, 16])
    model = Classifier(8, 3)
    for pair in DataLoader(first, batch_size=16, shuffle=True):
        assert len(pair) == 2
    print(len(second), count(model), dict(by_name(model)))
    print(train(model, DataLoader(first, batch_size=8)), len(Squares()))
    print(evaluate(model, x, y))
    print(nn.Linear(2, 3).weight.shape, nn.Linear(2, 3)(torch.ones(1, 2)).shape)
