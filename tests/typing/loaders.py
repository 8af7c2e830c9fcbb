"""Data in parts, schedules by a function, and hooks that are written as lambdas: what a checker knows of items, numbers and outputs."""
# pyright: strict

from __future__ import annotations

from typing import Any, assert_type

import autograd_nb as torch
from autograd_nb import Tensor, nn
from autograd_nb.optim.lr_scheduler import LambdaLR
from autograd_nb.utils.data import DataLoader, Dataset, Subset, TensorDataset, random_split


class Points(Dataset[tuple[Tensor, int]]):
    def __init__(self, n: int) -> None:
        self.x = torch.randn(n, 3)

    def __len__(self) -> int:
        return self.x.shape[0]

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        return self.x[i], i % 2


def parts() -> int:
    data = Points(20)
    train, held = random_split(data, [15, 5], generator=torch.Generator().manual_seed(1))
    assert_type(Subset(data, [0, 2])[1], tuple[Tensor, int])
    found = 0
    loader: DataLoader[tuple[Tensor, int]] = DataLoader(data, batch_size=4, shuffle=True)
    for x, _ in (*loader, *DataLoader(train, batch_size=5)):
        found += len(x)
    for (z,) in DataLoader(TensorDataset(torch.ones(4, 3)), batch_size=2):
        found += len(z)
    return found + len(held)


def watched() -> list[Any]:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = LambdaLR(optimizer, lr_lambda=lambda epoch: 0.5**epoch)
    seen: list[Any] = []
    handles = [
        model.register_forward_hook(lambda module, args, output: seen.append(output)),
        model.register_forward_pre_hook(lambda module, args: None),
        model.register_full_backward_hook(lambda module, into, out: None),
    ]
    model(torch.ones(1, 3, requires_grad=True)).sum().backward()
    optimizer.step()
    schedule.step()
    for handle in handles:
        handle.remove()
    return [*seen, *schedule.get_last_lr()]
