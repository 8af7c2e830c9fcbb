"""Learning to learn: after meta-training, one gradient step on ten points is enough to fit a new sine wave.

Each task is a sine of its own amplitude and phase. The inner step is recorded (`create_graph=True`), so that the loss after it
can be differentiated with respect to the weights before it: a gradient through a gradient. (MAML: Finn, Abbeel, Levine 2017.)

    python examples/maml_sine.py --out out
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

try:
    import matplotlib
    from tqdm import tqdm
except ModuleNotFoundError as missing:
    sys.exit(f"This example needs the package {missing.name!r}: pip install 'autograd_nb[examples]'")

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb import nn, optim
from autograd_nb.func import functional_call

matplotlib.use("Agg")  # pictures go to files; no display is needed
from matplotlib import pyplot as plt


class Task:
    """y = amplitude · sin(x + phase) for x in −5 … 5."""

    def __init__(self) -> None:
        self.amplitude = torch.empty(1).uniform_(0.1, 5.0)
        self.phase = torch.empty(1).uniform_(0.0, math.pi)

    def __call__(self, x):
        return self.amplitude * torch.sin(x + self.phase)

    def sample(self, n: int):
        x = torch.rand(n, 1) * 10 - 5
        return x, self(x)


def network(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(1, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))


def adapted(model, weights: dict, x, y, rate: float, steps: int = 1, *, recorded: bool = True) -> dict:
    """The weights after gradient steps on (x, y); recorded, they can be differentiated with respect to those before."""
    for _ in range(steps):
        loss = F.mse_loss(functional_call(model, weights, (x,)), y)
        gradients = torch.autograd.grad(loss, list(weights.values()), create_graph=recorded)
        weights = {name: w - rate * g for (name, w), g in zip(weights.items(), gradients, strict=True)}
    return weights


def train(model, args) -> list[float]:
    optimizer = optim.Adam(model.parameters(), lr=args.lr)
    history = []
    with tqdm(range(args.steps), unit="step", disable=None, dynamic_ncols=True) as bar:
        for _ in bar:
            optimizer.zero_grad()
            total = 0.0
            for _ in range(args.tasks):
                task = Task()
                x, y = task.sample(args.shots)
                weights = adapted(model, dict(model.named_parameters()), x, y, args.inner_lr)
                x, y = task.sample(args.shots)
                loss = F.mse_loss(functional_call(model, weights, (x,)), y) / args.tasks
                loss.backward()
                total += loss.item()
            optimizer.step()
            history.append(total)
            if len(history) % 20 == 0:
                bar.set_postfix_str(f"loss after the inner step {sum(history[-20:]) / 20:.3f}")
    return history


def held_out(model, args, tasks: int, most: int = 5):
    """Mean squared error on new tasks after 0 … ``most`` gradient steps."""
    grid = torch.linspace(-5, 5, 100)[:, None]
    error = torch.zeros(most + 1)
    for _ in range(tasks):
        task = Task()
        x, y = task.sample(args.shots)
        weights = dict(model.named_parameters())
        for k in range(most + 1):
            with torch.no_grad():
                error[k] += F.mse_loss(functional_call(model, weights, (grid,)), task(grid)) / tasks
            weights = adapted(model, weights, x, y, args.inner_lr, recorded=False)
    return error


def draw(path: Path, history: list[float], model, args, before, after) -> None:
    figure, axes = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
    axes[0].plot(history, color="C0", alpha=0.4, linewidth=0.8)
    axes[0].set(title="meta-training: loss after one step", xlabel="step", yscale="log")
    axes[1].plot(before.numpy(), ".-", label="untrained")
    axes[1].plot(after.numpy(), ".-", label="meta-trained")
    axes[1].set(title="error on new tasks", xlabel="gradient steps", yscale="log")
    axes[1].legend()
    task = Task()
    x, y = task.sample(args.shots)
    grid = torch.linspace(-5, 5, 100)[:, None]
    axes[2].plot(grid.numpy(), task(grid).numpy(), color="0.7", linewidth=4, label="a new task")
    axes[2].plot(x.numpy(), y.numpy(), "k.", label=f"its {args.shots} points")
    for k in (0, 1, 5):
        weights = adapted(model, dict(model.named_parameters()), x, y, args.inner_lr, k, recorded=False)
        with torch.no_grad():
            axes[2].plot(grid.numpy(), functional_call(model, weights, (grid,)).numpy(), label=f"after {k} steps", linewidth=1)
    axes[2].set(title="one of them", xlabel="x", ylabel="y")
    axes[2].legend(fontsize=7)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--steps", type=int, default=1000, metavar="N", help="meta-training steps (1000)")
    add("--tasks", type=int, default=8, metavar="N", help="tasks a step (8)")
    add("--shots", type=int, default=10, metavar="N", help="points of a task (10)")
    add("--width", type=int, default=40, metavar="N", help="hidden units (40)")
    add("--inner-lr", type=float, default=0.01, metavar="RATE", help="of the steps on a task (0.01)")
    add("--lr", type=float, default=2e-3, metavar="RATE", help="of meta-training (0.002)")
    add("--seed", type=int, default=0, metavar="N", help="(0)")
    add("--out", type=Path, default=Path("out"), metavar="DIR", help="where the picture is written (out)")
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(args.seed)
    began = time.perf_counter()

    model = network(args.width)
    before = held_out(model, args, 100)
    history = train(model, args)
    after = held_out(model, args, 100)
    print("mean squared error on 100 new tasks after 0, 1 and 5 gradient steps:")
    for name, error in (("untrained", before), ("meta-trained", after)):
        print(f"  {name:12} {error[0].item():6.3f} {error[1].item():6.3f} {error[5].item():6.3f}")
    draw(args.out / "maml_sine.png", history, model, args, before, after)
    print(f"{args.out / 'maml_sine.png'}; {time.perf_counter() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
