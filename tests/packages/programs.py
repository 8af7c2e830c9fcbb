"""Runs a script that was written for PyTorch, as it is, with each library as its ``torch``, and compares the losses of its first steps.

    python -m tests.packages.programs [--steps N] SCRIPT [ARGUMENTS …]

needs an environment with PyTorch. The libraries draw other numbers from one seed, so what the script draws comes from NumPy (`Draws`), and
parameters are filled from there when an optimizer gets them, or when a model without one begins to train. What kernels draw inside
(dropout of attention and between recurrent layers) stays: give 0 for it. docs/packages.md lists what was run so.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import runpy
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np


class Enough(BaseException):
    """So many steps were seen."""


class Draws:
    """NumPy's draws in the place of a library's."""

    def __init__(self, torch: Any):
        self.torch, self.drawn, self.filled = torch, np.random.RandomState(0), np.random.RandomState(1)
        self.seen: dict[int, Any] = {}  # of parameters, which are kept: ids of those that are gone come again

    def tensor(self, values: Any, dtype: Any = None) -> Any:
        return self.torch.as_tensor(np.asarray(values)).to(dtype or self.torch.get_default_dtype())

    def maker(self, draw: Callable[[Any], Any]) -> Callable[..., Any]:
        def make(*size: Any, dtype: Any = None, requires_grad: bool = False, **options: Any) -> Any:
            size = options.get("size", size)
            made = self.tensor(draw(tuple(size[0] if len(size) == 1 and not isinstance(size[0], int) else size)), dtype)
            return made.requires_grad_() if requires_grad else made

        return make

    def like(self, draw: Callable[[Any], Any]) -> Callable[..., Any]:
        return lambda x, dtype=None, **options: self.tensor(draw(tuple(x.shape)), dtype or x.dtype)

    def in_place(self, draw: Callable[..., Any]) -> Callable[..., Any]:
        def write(x: Any, *numbers: Any, generator: Any = None, **named: Any) -> Any:
            with self.torch.no_grad():
                return x.copy_(self.tensor(draw(tuple(x.shape), *numbers, **named), x.dtype))

        return write

    def randint(self, *bounds: Any, size: Any = None, dtype: Any = None, **options: Any) -> Any:
        *bounds, size = (*bounds, size) if size is not None else bounds  # type: ignore[assignment]
        low, high = (options.get("low", 0), options["high"]) if "high" in options else (0, *bounds)[-2:]
        return self.tensor(self.drawn.randint(low, high, tuple(size)), dtype or self.torch.int64)

    def multinomial(self, p: Any, count: int, replacement: bool = False, **options: Any) -> Any:
        rows = np.atleast_2d(p.detach().double().numpy())
        found = [self.drawn.choice(rows.shape[1], count, replacement, row / row.sum()) for row in rows]
        return self.tensor(found if p.ndim > 1 else found[0], self.torch.int64)

    def dropout(self, x: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        return x * self.tensor((self.drawn.random_sample(tuple(x.shape)) >= p) / (1 - p), x.dtype) if training and p else x

    def fill(self, parameters: Iterable[Any]) -> None:
        """Fill parameters that were not seen; vectors of one number, such as scales and zeros, stay."""
        self.drawn.seed(3)  # what making a model drew differs, as a library's own functions draw inside
        for p in parameters:
            if (
                id(p) not in self.seen
                and p.requires_grad
                and (p.ndim > 1 or bool((p.detach() != p.detach().flatten()[:1]).any()))
            ):
                scale = (p.numel() // p.shape[0]) ** -0.5 if p.ndim > 1 else 0.05
                with self.torch.no_grad():
                    p.copy_(self.tensor(self.filled.standard_normal(tuple(p.shape)) * scale, p.dtype))
            self.seen[id(p)] = p

    def stand_in(self) -> None:
        """Put the draws into the library's place."""
        torch, r = self.torch, self.drawn
        torch.randn, torch.rand = self.maker(r.standard_normal), self.maker(r.random_sample)
        torch.randn_like, torch.rand_like = self.like(r.standard_normal), self.like(r.random_sample)
        torch.randint, torch.multinomial, torch.Tensor.multinomial = self.randint, self.multinomial, self.multinomial
        torch.randperm = lambda n, **options: self.tensor(r.permutation(n), torch.int64)
        torch.bernoulli = lambda p, **options: self.tensor(r.random_sample(tuple(p.shape)) < p.detach().numpy(), p.dtype)
        torch.Tensor.normal_ = self.in_place(lambda size, mean=0, std=1: mean + std * r.standard_normal(size))
        torch.Tensor.uniform_ = self.in_place(lambda size, low=0, high=1: low + (high - low) * r.random_sample(size))
        torch.nn.functional.dropout = self.dropout
        torch.nn.Dropout.forward = lambda module, x: self.dropout(x, module.p, module.training)
        torch.utils.data.RandomSampler.__iter__ = lambda sampler: iter(r.permutation(len(sampler.data_source)).tolist())
        torch.distributions.Categorical.sample = lambda law, size=(): self.multinomial(
            law.probs.reshape(-1, law.probs.shape[-1]), 1
        ).reshape(law.probs.shape[:-1])

    def fill_what_is_trained(self) -> None:
        """Let parameters be filled when an optimizer gets them, or a model of which none was seen begins to train."""
        begin, train = self.torch.optim.Optimizer.__init__, self.torch.nn.Module.train

        def begin_filled(optimizer: Any, params: Any, *args: Any, **options: Any) -> None:
            begin(optimizer, params, *args, **options)
            self.fill(p for group in optimizer.param_groups for p in group["params"])

        def train_filled(module: Any, mode: bool = True) -> Any:
            if mode and not any(id(p) in self.seen for p in module.parameters()):
                self.fill(module.parameters())
            return train(module, mode)

        self.torch.optim.Optimizer.__init__, self.torch.nn.Module.train = begin_filled, train_filled


def run(library: str, steps: int, out: str, script: str, arguments: list[str]) -> None:
    """Run the script with one library, and write (losses, error) into a file."""
    if library == "ours":
        import autograd_nb

        autograd_nb.as_torch()
    import torch

    draws, losses = Draws(torch), []
    draws.stand_in()
    draws.fill_what_is_trained()
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 (scripts draw from it)
    back = torch.Tensor.backward

    def backward(loss: Any, *args: Any, **options: Any) -> None:
        losses.append(float(loss.detach().sum()))
        back(loss, *args, **options)
        if len(losses) >= steps:
            raise Enough

    torch.Tensor.backward = backward
    sys.argv, error = [script, *arguments], ""
    sys.path.insert(0, str(Path(script).resolve().parent))
    try:
        runpy.run_path(script, run_name="__main__")
    except (Enough, SystemExit):
        pass
    except Exception as stopped:
        error = repr(stopped)
    Path(out).write_text(json.dumps([losses, error]))


def compared(script: str, arguments: list[str], steps: int) -> str:
    """Return what came of a script in both libraries: "the same, …", or what differs."""
    found = []
    for library in ("theirs", "ours"):
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            where = os.environ | {
                "PYTHONPATH": os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", ""))))
            }
            command = [
                sys.executable,
                "-m",
                "tests.packages.programs",
                "--steps",
                str(steps),
                "--library",
                library,
                "--out",
                file.name,
                script,
                *arguments,
            ]
            subprocess.run(command, env=where, check=True)
            found.append(json.loads(Path(file.name).read_text()))
    (theirs, stopped), (ours, own) = found
    if stopped or own or len(theirs) != len(ours) or not ours:
        return f"PyTorch: {len(theirs)} steps {stopped}; here: {len(ours)} steps {own}"
    difference = max(abs(a - b) / max(abs(a), 1e-3) for a, b in zip(theirs, ours, strict=True))
    return f"{'the same' if difference < 1e-4 else 'other losses'}, {len(ours)} steps, apart by {difference:.1e}: {theirs} and {ours}"


def main() -> None:
    """Read the command line."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--steps", type=int, default=6)
    reader.add_argument("--library", choices=("theirs", "ours"), help=argparse.SUPPRESS)
    reader.add_argument("--out", help=argparse.SUPPRESS)
    reader.add_argument("script")
    reader.add_argument("arguments", nargs=argparse.REMAINDER)
    given = reader.parse_args()
    if given.library:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run(given.library, given.steps, given.out, given.script, given.arguments)
    else:
        print(compared(given.script, given.arguments, given.steps))


if __name__ == "__main__":
    main()
