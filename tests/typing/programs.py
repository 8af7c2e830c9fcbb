"""Whole programs of some thirty lines each, as users write them: what a checker in strict mode has nothing to say of."""
# pyright: strict

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, assert_type

import numpy as np

import autograd_nb as torch
import autograd_nb.distributed as dist
import autograd_nb.nn.functional as F
from autograd_nb import Tensor, nn, optim
from autograd_nb.autograd import Function
from autograd_nb.nn.utils import clip_grad_norm_
from autograd_nb.optim import lr_scheduler
from autograd_nb.utils.data import DataLoader, Dataset, IterableDataset, Sampler, TensorDataset


# ---------------------------------------------------------------------------------------------- a loop with everything
@dataclass
class Progress:
    """What a run has seen."""

    losses: list[float] = field(default_factory=list[float])
    best: float = math.inf
    state: dict[str, Any] = field(default_factory=dict[str, Any])


def fit(model: nn.Module, train: DataLoader[tuple[Tensor, Tensor]], held_out: tuple[Tensor, Tensor], epochs: int) -> Progress:
    """Train with clipping, a schedule and the best weights kept."""
    progress = Progress()
    optimizer = optim.Adam([{"params": list(model.parameters()), "lr": 1e-2}], betas=(0.9, 0.99))
    schedule = lr_scheduler.SequentialLR(
        optimizer, [lr_scheduler.LinearLR(optimizer, 0.5, total_iters=2), lr_scheduler.ExponentialLR(optimizer, 0.9)], [2]
    )
    for _ in range(epochs):
        model.train()
        for x, y in train:
            optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
            loss.backward()
            norm = clip_grad_norm_(model.parameters(), max_norm=1.0)
            if not bool(norm.isfinite()):
                continue
            optimizer.step()
            progress.losses.append(loss.item())
        schedule.step()
        model.eval()
        with torch.no_grad():
            logits: Tensor = model(held_out[0])
            wrong = (logits.argmax(dim=1) != held_out[1]).float().mean().item()
        if float(wrong) < progress.best:
            progress.best = float(wrong)
            progress.state = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(progress.state)
    return progress


# ------------------------------------------------------------------------------------------------------- custom modules
class Attention(nn.Module):
    """Several heads, with a mask that is a buffer and weights that are kept for a look."""

    mask: Tensor

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"{width} is no multiple of {heads}")
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.register_buffer("mask", torch.ones(length, length, dtype=torch.bool).tril())
        self.seen: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts: Tensor = self.project(x)
        q, k, v = (p.view(batch, length, self.heads, -1).transpose(1, 2) for p in parts.chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
        weights = scores.masked_fill(~self.mask[:length, :length], -math.inf).softmax(dim=-1)
        self.seen = weights.detach()
        mixed: Tensor = self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return mixed


class Tower(nn.Module):
    """Layers in containers, shared ones among them, with hooks."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({"first": nn.Linear(width, width), "second": nn.Bilinear(width, width, width)})
        self.gains = nn.ParameterList([nn.Parameter(torch.ones(width)) for _ in range(2)])
        self.apply(self.start)

    @staticmethod
    def start(module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            nn.init.kaiming_uniform_(module.weight, nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        h: Tensor = self.layers["first"](x) * self.gains[0]
        y: Tensor = self.layers["second"](h, x) * self.gains[1]
        return y


def watched(model: nn.Module, x: Tensor) -> dict[str, Tensor]:
    """The results of all modules."""
    found: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[[nn.Module, tuple[Any, ...], Any], None]:
        def hook(module: nn.Module, given: tuple[Any, ...], result: Any) -> None:
            found[name] = result

        return hook

    handles = [module.register_forward_hook(keep(name)) for name, module in model.named_modules() if name]
    model(x)
    for handle in handles:
        handle.remove()
    return found


# ----------------------------------------------------------------------------------------------------- custom functions
class Clamped(Function):
    """A clamp whose gradient passes through, as a number and a tensor are kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, low: float, high: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.low, ctx.high = low, high
        return x.clamp(low, high)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (x,) = ctx.saved_tensors
        inside = (x >= ctx.low) & (x <= ctx.high)
        return torch.where(inside, grad, 0.1 * grad), None, None


def clamped(x: Tensor, low: float = -1.0, high: float = 1.0) -> Tensor:
    """`Clamped` as a function."""
    y: Tensor = Clamped.apply(x, low, high)
    return y


# ------------------------------------------------------------------------------------------------------------------ data
class Lines(IterableDataset[list[float]]):
    """Rows of a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __iter__(self) -> Iterator[list[float]]:
        with self.path.open() as file:
            for line in file:
                yield [float(part) for part in line.split(",")]


class Evens(Sampler[int]):
    """Every other example."""

    def __init__(self, data: Sequence[Any] | TensorDataset) -> None:
        self.count = len(data)

    def __iter__(self) -> Iterator[int]:
        return iter(range(0, self.count, 2))

    def __len__(self) -> int:
        return (self.count + 1) // 2


class Pairs(Dataset[tuple[np.ndarray[Any, Any], int]]):
    """Arrays with their classes."""

    def __init__(self, count: int) -> None:
        self.arrays = np.random.default_rng(0).random((count, 3))

    def __len__(self) -> int:
        return len(self.arrays)

    def __getitem__(self, index: int) -> tuple[np.ndarray[Any, Any], int]:
        return self.arrays[index], index % 2


def joined(rows: list[tuple[np.ndarray[Any, Any], int]]) -> tuple[Tensor, Tensor]:
    """A batch."""
    return torch.from_numpy(np.stack([a for a, _ in rows])).float(), torch.tensor([n for _, n in rows])


def as_tensor(row: list[float]) -> Tensor:
    """A row."""
    return torch.tensor(row)


def read(path: Path) -> tuple[float, int]:
    """The sum over a file of lines, and the examples that `Evens` leaves."""
    total = sum(float(batch.sum()) for batch in DataLoader(Lines(path), batch_size=None, collate_fn=as_tensor))
    data = TensorDataset(torch.arange(10), torch.zeros(10))
    count = 0
    for numbers, zeros in DataLoader(data, batch_size=2, sampler=Evens(data), drop_last=True):
        count += len(numbers) + int(zeros.sum().item())
    for x, y in DataLoader(Pairs(6), 3, collate_fn=joined, shuffle=True, generator=torch.Generator().manual_seed(0)):
        count += x.shape[0] + y.numel()
    return total, count


# ----------------------------------------------------------------------------------------------- compiled and transformed
@torch.compile
def energy(x: Tensor, scale: float = 1.0) -> Tensor:
    """A compiled function keeps its parameters."""
    return (scale * x.square()).sum()


def compiled_steps(count: int) -> list[float]:
    """A step that is compiled, with what it has captured."""
    model = nn.Linear(3, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    fast = torch.compile(step)
    x = torch.randn(8, 3)
    losses = [fast(x, x.sum(1, keepdim=True)).item() for _ in range(count)]
    print(fast)
    assert_type(energy(x, scale=2.0), Tensor)
    return [float(value) for value in losses]


def per_sample(model: nn.Module, x: Tensor, y: Tensor) -> dict[str, Tensor]:
    """The gradient of every sample apart."""
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(parameters: dict[str, Tensor], one: Tensor, answer: Tensor) -> Tensor:
        out: Tensor = torch.func.functional_call(model, parameters, (one.unsqueeze(0),))
        return F.mse_loss(out, answer.unsqueeze(0))

    found: dict[str, Tensor] = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    return found


def newton(f: Callable[[Tensor], Tensor], x: Tensor, count: int) -> Tensor:
    """A minimum by second derivatives."""
    for _ in range(count):
        slope: Tensor = torch.func.grad(f)(x)
        curvature: Tensor = torch.func.hessian(f)(x)
        x = x - torch.linalg.solve(curvature, slope)
    value: Tensor
    value, tangent = torch.func.jvp(f, (x,), (torch.ones_like(x),))
    assert_type(value, Tensor)
    print(float(value), tangent)
    return x


# --------------------------------------------------------------------------------------------------------- several ranks
def shared(model: nn.Module, x: Tensor, y: Tensor, group: dist.ProcessGroup | None = None) -> float:
    """A step whose gradients are means over the ranks; on one process it is an ordinary step."""
    size = dist.get_world_size(group) if dist.is_initialized() else 1
    loss = F.mse_loss(model(x), y)
    loss.backward()
    if size > 1:
        for p in model.parameters():
            if p.grad is not None:
                work = dist.all_reduce(p.grad, op=dist.ReduceOp.SUM, group=group, async_op=True)
                if work is not None:
                    work.wait()
                p.grad /= size
    if not dist.is_initialized() or dist.get_rank() == 0:
        print(f"{size} ranks: {loss.item():.4f}")
    return float(loss.item())
