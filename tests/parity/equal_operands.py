"""Gradients where all elements of operands are equal: ``NUMBA_DISABLE_JIT=1 python -m tests.parity.equal_operands [name…]``.

Norms, deviations and roots have no slope there, and formulas divide by zero. Where PyTorch's results and gradients are numbers, ours must not
be nan. Operands that require grad are filled with 0, then with 1: the first alone, then all.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

import autograd_nb as ag

from .opdb import find, leaves, ours, outside, plain, samples_of, taken, title

MOST = 3  #: samples of an op
KNOWN = {
    "__rmod__": "a remainder by zero: PyTorch's derivative is infinite",
    "linalg.eig": "eigenvalues that meet have no derivative",
    "linalg.eigvals": "eigenvalues that meet have no derivative",
    "linalg.cond": "a singular matrix, whose inverse rounding makes of it",
    "linalg.qr": "a matrix without full rank, which rounding hides",
    "qr": "a matrix without full rank, which rounding hides",
    "linalg.inv_ex": "a singular matrix: what its factors divide by zero is infinite there",
    "logdet": "a singular matrix: the derivative is infinite there",
    "linalg.slogdet": "a singular matrix: the derivative is infinite there",
}


def mapped(tree: Any, function: Any) -> Any:
    if isinstance(tree, dict):
        return {k: mapped(v, function) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)) and not isinstance(tree, torch.Size) and not hasattr(tree, "_fields"):
        return type(tree)(mapped(v, function) for v in tree)
    return function(tree)


def outcome(library: Any, function: Any, sample: Any, value: float, everything: bool) -> list[Any] | None:
    """The results and gradients of a library as NumPy's arrays; None where it refuses."""
    operands: list[Any] = []

    def given(v: Any) -> Any:
        if not isinstance(v, torch.Tensor):
            return ours(v) if library is ag else v
        grows, t = v.requires_grad, v.detach().clone()
        if grows and (everything or not operands):
            t.fill_(value)
        t = (taken(t) if library is ag else t).requires_grad_(grows)
        operands.extend([t] if grows else [])
        return t

    try:
        out = [t for t in leaves(function(*mapped([sample.input, *sample.args], given), **mapped(sample.kwargs, given))) if t.requires_grad]
        grads = library.autograd.grad(out, operands, [library.ones_like(t) for t in out], allow_unused=True)
    except Exception:
        return None
    return [plain(t.detach().resolve_conj().resolve_neg()) for t in (*out, *[g for g in grads if g is not None])]


def walk(op: Any) -> Iterator[tuple[str, bool]]:
    """Yield what was compared, and whether it differs."""
    for dtype in (torch.float64, torch.complex128):
        for k, sample in enumerate(samples_of(op, dtype, True)[:MOST] if dtype in op.dtypes else []):
            for value in (0.0, 1.0):
                for everything in (False, True):
                    theirs = outcome(torch, op.op, sample, value, everything)
                    mine = outcome(ag, find(op), sample, value, everything)
                    if theirs and mine and len(theirs) == len(mine):
                        wrong = any(((b != b) & (a == a)).any() for a, b in zip(theirs, mine, strict=True) if a.shape == b.shape)
                        yield f"{title(op)}, {dtype} #{k}, {'all' if everything else 'the first'} {value}", wrong


def main(names: list[str]) -> int:
    compared, wrong = 0, []
    for op in op_db:
        if (names and op.name not in names) or not op.supports_autograd or outside(title(op)) or find(op) is None:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for what, differs in walk(op):
                compared += 1
                if differs and op.name not in KNOWN:
                    wrong.append(what)
    print(*wrong, sep="\n")
    print(f"{compared} calls compared; {len(wrong)} are nan here alone")
    return bool(wrong) or not compared


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
