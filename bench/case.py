"""What a benchmark is: one program, written once for libraries with PyTorch's API, and perhaps again for others.

`bench.cases` holds them all; `bench.run` times them and prints the table, `test_*.py` gives them to pytest-benchmark, and
`agreement` is what both ask before anything is timed.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

OURS, COMPILED, TORCH, TORCH_COMPILE = "ours", "compiled", "PyTorch", "torch.compile"
#: name of a peer -> the module that it needs; in the order of the table's columns
PEERS = {
    TORCH: "torch", TORCH_COMPILE: "torch", "JAX": "jax", "autograd": "autograd", "MyGrad": "mygrad", "NumPy": "numpy",
}  # fmt: skip


@dataclass
class Program:
    """One case in one library: ``step()`` runs a round and returns what is to be compared, nested as it likes.

    ``gradients()`` are compared after the first round, where the round itself does not return them.
    """

    step: Callable[[], Any]
    gradients: Callable[[], Any] | None = None


@dataclass(frozen=True)
class Case:
    """One row of the table. ``build(lib)`` serves this library and PyTorch; ``others`` are peers with an API of their own."""

    name: str
    suite: str  # overhead, kernels or models
    group: str  # rows of one group share a geometric mean and a target
    build: Callable[[Any], Program]
    others: dict[str, Callable[[], Program]] = field(default_factory=dict)
    compiled: bool = False  # whether `compile(step)` is a row too
    size: int = 0  # elements, where the case exists at several sizes
    smallest: bool = True  # whether it is the smallest of those
    quick: bool = True  # part of --quick
    threaded: bool = False  # part of the section on two threads
    rounds: int = 3  # compared before timing: a step that updates parameters wrongly shows in the losses of the next ones
    per: int = 1  # what one round is divided by: ops, nodes
    bytes: int = 0  # that one round has to read and write
    flops: int = 0
    tolerance: float = 1e-4  # of each array's largest magnitude
    bounds: dict[str, float] = field(default_factory=dict)  # ratios of the compiled row that the issue asks for, by peer

    def __str__(self) -> str:
        return self.name


class Disagreement(AssertionError):
    """Two libraries compute different things in one case."""


def missing(peer: str) -> str:
    """Why a peer is not there; empty if it is."""
    module = PEERS[peer]
    return "" if importlib.util.find_spec(module) else f"{module} is not installed"


def ready(case: Case, peer: str) -> Program:
    """The case as ``peer`` runs it."""
    if peer in (OURS, COMPILED):
        lib = importlib.import_module("autograd_nb")
    elif peer in (TORCH, TORCH_COMPILE):
        lib = importlib.import_module("torch")
    else:
        return case.others[peer]()
    program = case.build(lib)
    if peer in (COMPILED, TORCH_COMPILE):
        program.step = lib.compile(program.step)
    return program


def peers_of(case: Case, wanted: Iterable[str]) -> list[str]:
    """The peers among ``wanted`` that know the case, whether installed or not."""
    return [
        p for p in wanted
        if p in (OURS, TORCH) or p in case.others or (p in (COMPILED, TORCH_COMPILE) and case.compiled)
    ]  # fmt: skip


def arrays(value: Any) -> Iterator[np.ndarray]:
    """The numbers of nested results as NumPy arrays, in order."""
    if isinstance(value, (list, tuple)):
        for v in value:
            yield from arrays(v)
    elif isinstance(value, dict):
        for k in sorted(value):
            yield from arrays(value[k])
    elif hasattr(value, "detach"):
        yield np.array(value.detach().numpy())
    elif type(value).__module__.startswith("mygrad"):
        yield np.array(value.data)
    elif value is not None:
        yield np.array(value)


def observe(case: Case, program: Program) -> list[np.ndarray]:
    """What a program computes in its first rounds; afterwards it is warm."""
    first = [*arrays(program.step())]
    if program.gradients is not None:
        first += arrays(program.gradients())
    return first + [a for _ in range(case.rounds - 1) for a in arrays(program.step())]


def compare(case: Case, reference: list[np.ndarray], other: list[np.ndarray], names: str) -> None:
    """Raise `Disagreement` unless all arrays agree within the case's tolerance of their largest magnitude."""
    if len(reference) != len(other):
        raise Disagreement(f"{case}: {names} give {len(reference)} and {len(other)} arrays")
    for i, (a, b) in enumerate(zip(reference, other, strict=True)):
        if a.shape != b.shape:
            raise Disagreement(f"{case}: array {i} of {names} has shapes {a.shape} and {b.shape}")
        if not a.size:
            continue
        if not np.array_equal(np.isnan(a), np.isnan(b)):
            raise Disagreement(f"{case}: array {i} of {names} has NaN in different places")
        error = np.nanmax(np.abs(np.nan_to_num(a) - np.nan_to_num(b)), initial=0)
        allowed = case.tolerance * max(float(np.nanmax(np.abs(b))), 1e-1)
        if not error <= allowed:
            raise Disagreement(f"{case}: array {i} of {names} differs by {error:.3g}, where {allowed:.3g} is allowed")
