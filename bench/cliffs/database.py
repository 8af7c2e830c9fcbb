"""Look for cliffs among all ops: ``python -m bench.cliffs.database [op …]`` times the samples of PyTorch's own op database beside PyTorch.

Samples are small, so what is measured is what a call costs. Of each op the first and the largest sample run, with operands in C order and
with every second column of wider ones, forward and, where it has a gradient, with `autograd.grad`. The figure of a case is the fastest
of many calls, in turn with PyTorch's in this process, on one thread each. Printed is what takes more than `WORST` of PyTorch's time
(``--all``: every case), and the geometric means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

import autograd_nb as ours
from bench.cliffs.beside import Case, Step, main
from tests.parity import opdb


def mapped(tree: Any, function: Callable[[Any], Any]) -> Any:
    """Return lists, tuples and dicts with ``function`` of what is in them."""
    if isinstance(tree, dict):
        return {k: mapped(v, function) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)) and not isinstance(tree, torch.Size) and not hasattr(tree, "_fields"):
        return type(tree)(mapped(v, function) for v in tree)
    return function(tree)


def given(tree: Any, strided: bool, library: Any) -> Any:
    """Return a sample's arguments as this library's or PyTorch's, each tensor a leaf of its own."""

    def one(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return opdb.ours(value) if library is ours else value
        t = opdb.taken(value.detach()) if library is ours else value.detach().clone()
        if strided and t.ndim and t.numel():
            wide = library.zeros(*t.shape[:-1], 2 * t.shape[-1], dtype=t.dtype)
            wide[..., ::2].copy_(t)
            t = wide[..., ::2].detach()
        return t.requires_grad_(value.requires_grad and value.dtype.is_floating_point)

    return mapped(tree, one)


def first_result(out: Any, kind: type) -> Any:
    """Return the first tensor of a result that requires grad, or None."""
    for t in out if isinstance(out, (list, tuple)) else [out]:
        if isinstance(t, kind) and t.requires_grad and t.dtype.is_floating_point:
            return t
    return None


def gradient(function: Step, leaves: list[Any], library: Any) -> Step | None:
    """Return a step that computes the function and its gradients, or None where it has none."""
    out = first_result(function(), library.Tensor)
    if out is None or not leaves:
        return None
    seed = library.ones_like(out.detach())
    return lambda: library.autograd.grad(first_result(function(), library.Tensor), leaves, seed, allow_unused=True)


def leaves_of(tree: Any, kind: type) -> list[Any]:
    found: list[Any] = []
    mapped(tree, lambda t: found.append(t) if isinstance(t, kind) and t.requires_grad else None)
    return found


def steps_of(op: Any, sample: Any, strided: bool) -> Iterator[tuple[str, list[Step]]]:
    """Yield the kinds of passes of a sample, and the steps of both libraries."""
    calls, passes = [], []
    for library, function in ((ours, opdb.find(op)), (torch, op.op)):
        args, options = given([sample.input, *sample.args], strided, library), given(sample.kwargs, strided, library)
        calls.append(lambda function=function, args=args, options=options: function(*args, **options))
        calls[-1]()
        passes.append(gradient(calls[-1], leaves_of([args, options], library.Tensor), library))
    yield "forward", calls
    if None not in passes:
        yield "gradient", passes


def cases(names: list[str]) -> Iterator[Case]:
    """Yield the name, the kind and the steps of each case that both libraries know."""
    for op in op_db:
        if (names and op.name not in names) or opdb.outside(opdb.title(op)) or torch.float32 not in op.dtypes or opdb.find(op) is None:
            continue
        samples = list(op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd))
        sizes = [sum(t.numel() for t in [s.input, *s.args] if isinstance(t, torch.Tensor)) for s in samples]
        for number in sorted({0, sizes.index(max(sizes))}):
            for strided in (False, True):
                try:
                    for kind, steps in steps_of(op, samples[number], strided):
                        yield f"{opdb.title(op)}, sample {number}", f"{'every second column' if strided else 'C order'}, {kind}", steps
                except (*opdb.ERRORS, opdb.Unsupported, AttributeError):  # not of this layout, or not here
                    continue


if __name__ == "__main__":
    main(__doc__, cases, opdb.ERRORS)  # (an error is a gradient that one of the two does not have)
