"""A physics-informed network: the heat equation solved by a network whose derivatives are in the loss.

A rod with both ends at 0 and a sine of heat at first: ∂u/∂t = a ∂²u/∂x², u(x, 0) = sin πx, u(0, t) = u(1, t) = 0, which has
the solution u = exp(−π²at) sin πx. The network u(x, t) is trained on the equation at random points, without ever being told
the solution: `grad(…, create_graph=True)` gives ∂u/∂t and ∂²u/∂x², and the loss is differentiated through both.

    python examples/pinn_heat.py --out out
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
from autograd_nb import nn, optim

matplotlib.use("Agg")  # pictures go to files; no display is needed
from matplotlib import pyplot as plt

DIFFUSIVITY, END = 0.2, 1.0  # a, and the last t


class Heat(nn.Module):
    """(x, t), each (N, 1) -> u (N, 1); 0 at both ends by its form."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x, t):
        return x * (1 - x) * self.layers(torch.cat([2 * x - 1, 2 * t / END - 1], dim=1))


def residual(model, x, t):
    """∂u/∂t − a ∂²u/∂x² at points that require grad."""
    u = model(x, t)
    du_dx, du_dt = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
    (d2u_dx2,) = torch.autograd.grad(du_dx.sum(), x, create_graph=True)
    return du_dt - DIFFUSIVITY * d2u_dx2


def exact(x, t):
    return torch.exp(-(math.pi**2) * DIFFUSIVITY * t) * torch.sin(math.pi * x)


def losses(model, points: int):
    """(of the equation, of the beginning), mean squares at random points."""
    x = torch.rand(points, 1, requires_grad=True)
    t = (torch.rand(points, 1) * END).requires_grad_()
    start = torch.rand(points // 4, 1)
    first = model(start, torch.zeros_like(start)) - torch.sin(math.pi * start)
    return residual(model, x, t).square().mean(), first.square().mean()


def train(model, args) -> list[float]:
    optimizer = optim.Adam(model.parameters(), lr=args.lr)
    scheduler = optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total_steps=args.steps)
    history = []
    with tqdm(range(args.steps), unit="step", disable=None, dynamic_ncols=True) as bar:
        for _ in bar:
            equation, beginning = losses(model, args.points)
            loss = equation + 10 * beginning
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            history.append(loss.item())
            if len(history) % 50 == 0:
                bar.set_postfix_str(f"loss {history[-1]:.1e}")
    return history


def compare(model, n: int = 101):
    """x, t, u of the network and the exact u on a grid of n × n."""
    x, t = torch.meshgrid(torch.linspace(0, 1, n), torch.linspace(0, END, n), indexing="ij")
    with torch.no_grad():
        u = model(x.reshape(-1, 1), t.reshape(-1, 1)).reshape(n, n)
    return x, t, u, exact(x, t)


def draw(path: Path, history: list[float], x, t, u, wanted) -> None:
    figure, axes = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
    axes[0].semilogy(history, linewidth=0.8)
    axes[0].set(title="loss", xlabel="step")
    for k in range(0, x.shape[1], 20):
        axes[1].plot(x[:, k].numpy(), wanted[:, k].numpy(), color="0.7", linewidth=4)
        axes[1].plot(x[:, k].numpy(), u[:, k].numpy(), color=f"C{k // 20}", label=f"t = {t[0, k].item():.1f}")
    axes[1].set(title="network (thin) and exact solution (grey)", xlabel="x", ylabel="u")
    axes[1].legend(fontsize=8)
    error = axes[2].imshow((u - wanted).abs().numpy(), origin="lower", extent=(0, END, 0, 1), aspect="auto")
    axes[2].set(title="|error|", xlabel="t", ylabel="x")
    figure.colorbar(error, ax=axes[2])
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--steps", type=int, default=3000, metavar="N", help="(3000)")
    add("--points", type=int, default=256, metavar="N", help="random points a step (256)")
    add("--width", type=int, default=32, metavar="N", help="units of each hidden layer (32)")
    add("--lr", type=float, default=1e-2, metavar="RATE", help="largest learning rate of Adam (0.01)")
    add("--seed", type=int, default=0, metavar="N", help="(0)")
    add("--out", type=Path, default=Path("out"), metavar="DIR", help="where the picture is written (out)")
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(args.seed)
    began = time.perf_counter()

    model = Heat(args.width)
    history = train(model, args)
    x, t, u, wanted = compare(model)
    error = (u - wanted).abs()
    print(f"loss {history[0]:.2e} -> {history[-1]:.2e}")
    print(f"error against the exact solution: mean {error.mean().item():.1e}, largest {error.max().item():.1e}")
    draw(args.out / "pinn_heat.png", history, x, t, u, wanted)
    print(f"{args.out / 'pinn_heat.png'}; {time.perf_counter() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
