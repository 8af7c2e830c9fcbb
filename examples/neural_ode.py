"""A neural differential equation: the law of a spiral is learnt from noisy points on it.

The data follow dz/dt = A z³ (elementwise cube) from one starting point. A network f stands for the unknown right-hand side; the
solution of dz/dt = f(z) comes from a Runge–Kutta solver that is written with tensors, so a loss on the solution is simply
differentiated through every step of the solver.

    python examples/neural_ode.py --out out
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

try:
    import matplotlib
    from tqdm import tqdm
except ModuleNotFoundError as missing:
    sys.exit(f"This example needs the package {missing.name!r}: pip install 'autograd_nb[examples]'")

import autograd_nb as torch
from autograd_nb import nn, optim

matplotlib.use("Agg")  # pictures go to files; no display is needed
from matplotlib import pyplot as plt

START = (2.0, 0.0)
LAW = ((-0.1, 2.0), (-2.0, -0.1))


class Spiral(nn.Module):
    """The law that made the data."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("law", torch.tensor(LAW))

    def forward(self, z):
        return z**3 @ self.law


class Learnt(nn.Module):
    """A small network in its place, (N, 2) -> (N, 2)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 2))
        for layer in self.layers:
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=0.1)
                nn.init.zeros_(layer.bias)

    def forward(self, z):
        return self.layers(z**3)


def rk4(f, z, step: float, count: int):
    """The solution of dz/dt = f(z) at ``count`` times, ``step`` apart, z being the first: (count, *z.shape)."""
    found = [z]
    for _ in range(count - 1):
        a = f(z)
        b = f(z + a * (step / 2))
        c = f(z + b * (step / 2))
        d = f(z + c * step)
        z = z + (a + 2 * b + 2 * c + d) * (step / 6)
        found.append(z)
    return torch.stack(found)


def train(f, data, args) -> list[float]:
    optimizer = optim.Adam(f.parameters(), lr=args.lr)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    history = []
    last = data.shape[0] - args.span
    with tqdm(range(args.steps), unit="step", disable=None, dynamic_ncols=True) as bar:
        for _ in bar:
            begin = torch.randint(0, last + 1, (args.batch_size,))
            index = begin + torch.arange(args.span)[:, None]  # (span, batch): short pieces of the trajectory
            found = rk4(f, data[begin], args.step, args.span)
            loss = (found - data[index]).abs().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            history.append(loss.item())
            if len(history) % 20 == 0:
                bar.set_postfix_str(f"loss {history[-1]:.4f}")
    return history


def draw(path: Path, history: list[float], data, wanted, found, f) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    axes[0].semilogy(history, linewidth=0.8)
    axes[0].set(title="loss", xlabel="step")
    grid = torch.linspace(-2.2, 2.2, 21)
    x, y = torch.meshgrid(grid, grid, indexing="xy")
    with torch.no_grad():
        flow = f(torch.stack([x, y], dim=-1).reshape(-1, 2)).reshape(21, 21, 2)
        flow = flow / (flow.norm(dim=-1, keepdim=True) + 1e-6)
    axes[1].quiver(x.numpy(), y.numpy(), flow[..., 0].numpy(), flow[..., 1].numpy(), color="0.8")
    axes[1].plot(*data.T.numpy(), ".", color="0.5", markersize=2, label="data")
    axes[1].plot(*wanted.T.numpy(), color="C0", linewidth=3, alpha=0.5, label="true law")
    axes[1].plot(*found.T.numpy(), color="C1", label="learnt law")
    axes[1].set(title="one trajectory, and the learnt field", xlabel="x", ylabel="y", aspect="equal")
    figure.legend(*axes[1].get_legend_handles_labels(), loc="outside right upper")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--steps", type=int, default=1000, metavar="N", help="(1000)")
    add("--points", type=int, default=400, metavar="N", help="points of the trajectory (400)")
    add("--step", type=float, default=0.025, metavar="DT", help="time between two points (0.025)")
    add("--span", type=int, default=10, metavar="N", help="points of a piece that is fitted (10)")
    add("--batch-size", type=int, default=32, metavar="N", help="pieces a step (32)")
    add("--noise", type=float, default=0.005, metavar="SIGMA", help="noise of the data (0.005)")
    add("--width", type=int, default=50, metavar="N", help="hidden units (50)")
    add("--lr", type=float, default=2e-3, metavar="RATE", help="learning rate of Adam (0.002)")
    add("--seed", type=int, default=0, metavar="N", help="(0)")
    add("--out", type=Path, default=Path("out"), metavar="DIR", help="where the picture is written (out)")
    args = parser.parse_args(argv)
    if not 2 <= args.span <= args.points:
        parser.error(f"--span must be from 2 to --points ({args.points}), got {args.span}")
    args.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(args.seed)
    began = time.perf_counter()

    start = torch.tensor(START)
    with torch.no_grad():
        wanted = rk4(Spiral(), start, args.step, args.points)
    data = wanted + args.noise * torch.randn_like(wanted)
    f = Learnt(args.width)
    history = train(f, data, args)
    with torch.no_grad():
        found = rk4(f, start, args.step, args.points)
    path = torch.cdist(found, wanted).min(dim=1).values  # to the nearest point of the true path, whatever the time
    late = (found - wanted).norm(dim=-1)
    print(f"loss {history[0]:.4f} -> {history[-1]:.4f}")
    print(f"solved from the first point: {path.mean().item():.3f} off the true path on average, {late.mean().item():.3f} at equal times")
    draw(args.out / "neural_ode.png", history, data, wanted, found, f)
    print(f"{args.out / 'neural_ode.png'}; {time.perf_counter() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
