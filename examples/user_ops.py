"""Two ops of one's own: a formula from physics, and a soft argmax from a pair of Numba kernels.

- `pair_energy` is one line of Python, the Lennard-Jones energy of two atoms. `torch.pointwise` compiles it and finds its
  derivatives; forces are gradients of its sum, and Newton's method has the second derivatives too. A cluster of 13 atoms is
  relaxed to the icosahedron, whose energy −44.326801 is known.
- `soft_argmax` is where a row's weight lies, Σ i · softmax(x)ᵢ: `torch.custom_op` makes it of two loops, forward and backward.
  A filter is trained through it to find pulses in noise, to a fraction of a sample.

    python examples/user_ops.py --out out
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

matplotlib.use("Agg")  # pictures go to files; no display is needed
from matplotlib import pyplot as plt

# ------------------------------------------------------------------------------------------------ a formula: pointwise


@torch.pointwise
def pair_energy(r2):
    """Lennard-Jones, of the squared distance: 4 (r⁻¹² − r⁻⁶), with its minimum −1 at r = 2^(1/6)."""
    inverse = 1 / (r2 * r2 * r2)
    return 4 * inverse * (inverse - 1)


BEST = -44.326801  #: of 13 atoms (Hoare and Pal, 1971)


def energy(atoms):
    """Of atoms (N, 3): the sum over all pairs."""
    i, j = torch.triu_indices(atoms.shape[0], atoms.shape[0], 1)
    return pair_energy((atoms[i] - atoms[j]).square().sum(-1)).sum()


def icosahedron(noise: float):
    """13 atoms roughly in place: the centre and the 12 corners, shaken."""
    golden = (1 + math.sqrt(5)) / 2
    corners = [p for a in (-1, 1) for b in (-golden, golden) for p in ((0, a, b), (a, b, 0), (b, 0, a))]
    atoms = torch.tensor([(0, 0, 0), *corners], dtype=torch.float64) * (1.1 / math.hypot(1, golden))
    return atoms + noise * torch.randn_like(atoms)


def relax(atoms, steps: int):
    """Down the forces with LBFGS; (atoms, energy after each step)."""
    atoms = atoms.clone().requires_grad_()
    optimizer = optim.LBFGS([atoms], lr=1.0, max_iter=5, line_search_fn="strong_wolfe", tolerance_grad=1e-10, tolerance_change=1e-14)
    energies = []

    def closure():
        optimizer.zero_grad()
        total = energy(atoms)
        total.backward()
        return total

    with tqdm(range(steps), unit="step", desc="atoms", disable=None) as bar:
        for _ in bar:
            energies.append(optimizer.step(closure).item())
            bar.set_postfix_str(f"energy {energies[-1]:.6f}")
    return atoms.detach(), energies


def modes(atoms):
    """Eigenvalues of the energy's second derivative: 6 zeros (moving and turning the whole), the rest are the stiffnesses."""
    n = atoms.numel()
    hessian = torch.autograd.functional.hessian(energy, atoms).reshape(n, n)
    return torch.linalg.eigvalsh(hessian)


# ---------------------------------------------------------------------------------------------- two kernels: custom_op


def forward(x, out):
    for row in range(x.shape[0]):
        top = x[row].max()
        total = weighted = 0.0
        for i in range(x.shape[1]):
            weight = math.exp(x[row, i] - top)
            total += weight
            weighted += i * weight
        out[row] = weighted / total


def backward(g, x, out, gx):
    for row in range(x.shape[0]):
        top = x[row].max()
        total = 0.0
        for i in range(x.shape[1]):
            weight = math.exp(x[row, i] - top)
            total += weight
            gx[row, i] = weight
        for i in range(x.shape[1]):
            gx[row, i] *= g[row] * (i - out[row]) / total


soft_argmax = torch.custom_op(forward, shape=lambda x: x[:1], backward=backward)


def pulses(n: int, length: int, noise: float):
    """(signals (n, 1, length) with a pulse each, where it is (n,))."""
    where = torch.rand(n) * (length - 24) + 12
    at = torch.arange(length) - where[:, None]
    return (torch.exp(-((at / 2.5) ** 2)) * torch.cos(at) + noise * torch.randn(n, length))[:, None], where


def find(steps: int, length: int = 100, noise: float = 0.15):
    """(filter, loss of each step, (error of the soft argmax, of the loudest sample) on new signals)."""
    model = nn.Conv1d(1, 1, 17, padding=8)
    with torch.no_grad():
        model.weight *= 0.1
    optimizer = optim.Adam(model.parameters(), lr=0.05)
    history = []
    with tqdm(range(steps), unit="step", desc="pulses", disable=None) as bar:
        for _ in bar:
            signals, where = pulses(64, length, noise)
            loss = F.smooth_l1_loss(soft_argmax(model(signals)[:, 0]), where)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            history.append(loss.item())
    signals, where = pulses(1000, length, noise)
    with torch.no_grad():
        soft = (soft_argmax(model(signals)[:, 0]) - where).abs().median().item()
        loudest = (signals[:, 0].argmax(1) - where).abs().median().item()
    return model, history, (soft, loudest)


# ------------------------------------------------------------------------------------------------------------ main


def draw(path: Path, energies: list[float], stiffness, history: list[float], model) -> None:
    figure, axes = plt.subplots(1, 4, figsize=(15, 3.4), layout="constrained")
    axes[0].semilogy([max(e - BEST, 1e-7) for e in energies])
    axes[0].set(title="energy above the icosahedron's", xlabel="step")
    axes[1].plot(stiffness.numpy(), ".")
    axes[1].set(title="stiffness of the cluster's modes", xlabel="mode")
    axes[2].semilogy(history, linewidth=0.8)
    axes[2].set(title="pulses: loss", xlabel="step")
    axes[3].plot(model.weight.detach()[0, 0].numpy(), ".-")
    axes[3].set(title="the filter that was learnt", xlabel="sample")
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--relax", type=int, default=30, metavar="N", help="steps of the atoms (30)")
    add("--steps", type=int, default=600, metavar="N", help="steps of the filter (600)")
    add("--seed", type=int, default=0, metavar="N", help="(0)")
    add("--out", type=Path, default=Path("out"), metavar="DIR", help="where the picture is written (out)")
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(args.seed)
    began = time.perf_counter()

    r2 = torch.linspace(0.9, 3.0, 7, dtype=torch.float64, requires_grad=True)
    right = torch.autograd.gradcheck(pair_energy, r2) and torch.autograd.gradgradcheck(pair_energy, r2)
    x = torch.randn(3, 9, dtype=torch.float64, requires_grad=True)
    right = right and torch.autograd.gradcheck(soft_argmax, x)
    plain = torch.softmax(x, 1) @ torch.arange(9, dtype=torch.float64)
    right = right and torch.allclose(soft_argmax(x), plain)
    print(f"derivatives as finite differences say: {right}")

    atoms, energies = relax(icosahedron(0.15), args.relax)
    stiffness = modes(atoms)
    print(f"13 atoms: energy {energies[0]:.3f} -> {energies[-1]:.6f} (known: {BEST})")
    print(f"their modes: {int((stiffness.abs() < 1e-3).sum())} free ones, the softest of the others {stiffness[6].item():.2f}")
    model, history, (soft, loudest) = find(args.steps)
    print(f"pulses found to {soft:.3f} samples (median), by the loudest sample to {loudest:.3f}")
    draw(args.out / "user_ops.png", energies, stiffness, history, model)
    print(f"{args.out / 'user_ops.png'}; {time.perf_counter() - began:.1f} s")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
