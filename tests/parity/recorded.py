"""What a gradient says of itself under ``create_graph``: PyTorch's answer and ours, for every operand of every op.

``python -m tests.parity.recorded [name…]`` prints each first gradient that is there, requires grad or not otherwise than PyTorch's,
and each second one that is not there, or whose value differs; ``--part K N`` walks one of N parts of the op database. Each sample is
differentiated with an incoming gradient that requires grad and with one that does not, by all operands and by each alone.
"""

from __future__ import annotations

import builtins
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

import autograd_nb as ag

from .opdb import RANDOM, WRONG_THERE, Unsupported, compare, find, grad, leaves, ours, samples_of
from .saved import Table, report

MOST = 5  #: samples of an op in a walk over all
ALONE = 2  #: samples that are differentiated by each operand alone too
SIZE = 200  #: elements of a sample at most (kernels run as Python)
#: entries of which something is known to differ: why, and what (as patterns, each of which has to be found)
KNOWN: dict[str, tuple[str, tuple[str, ...]]] = {
    "nn.functional.linear_cross_entropy (chunked)": (
        "PyTorch computes the gradients in the forward pass, so theirs are none", ("*: recorded, not constant", "*: values, not none")),
    "nn.functional.linear_cross_entropy (chunked_none)": (
        "PyTorch computes the gradients in the forward pass, so theirs are none", ("*: recorded, not constant",)),
    "native_group_norm": (
        "PyTorch's mean and rstd require grad where only the weight does", ("* live: another number of results requires grad",)),
    "native_layer_norm": ("PyTorch's second derivative leaves out what comes by the bias", ("* live: second derivative 1: values, not none",)),
    "linalg.eigh": ("the sign of an eigenvector is free", ("*: Not equal to *",)),
    "triangular_solve": ("PyTorch's copy of the coefficients has a history", ("* (of 0)*: NotImplementedError: *",)),
}


def weights(outs: list[Any], live: bool) -> list[Any]:
    """Incoming gradients of a library's results, the same for both."""
    rng, made = np.random.default_rng(0), []
    for t in outs:
        w = rng.uniform(0.5, 1.5, tuple(t.shape))
        w = torch.from_numpy(w).to(t.dtype) if isinstance(t, torch.Tensor) else ag.from_numpy(w).to(t.dtype)
        made.append(w.requires_grad_(live))
    return made


def described(gradient: Any) -> str:
    if gradient is None:
        return "none"
    return "recorded" if gradient.requires_grad else "constant"


def passes(call: Any, args: tuple, kwargs: dict, alone: int | None, live: bool) -> tuple[list[str], list[Any]]:
    """(what is said of each first gradient, the second ones by operands and incoming gradients)"""
    operands = [t for t in leaves((args, kwargs)) if t.requires_grad]
    wanted = operands if alone is None else [operands[alone]]
    for t in operands:
        if all(t is not w for w in wanted):
            t.requires_grad_(False)
    outs = [t for t in leaves(call(*args, **kwargs)) if t.requires_grad]
    if not outs:
        return ["no result requires grad"], []
    seeds = weights(outs, live)
    first = grad(outs, wanted, seeds, True)
    said = [described(g) for g in first]
    recorded = [g for g in first if g is not None and g.requires_grad]
    second = grad(recorded, [*wanted, *seeds] if live else wanted, weights(recorded, False), False) if recorded else []
    return said, second


def compared(function: Any, op: Any, sample: Any, alone: int | None, live: bool) -> Iterator[str]:
    given = (sample.input, *sample.args), sample.kwargs
    needs = [t.requires_grad for t in leaves(given)]
    m_args, m_kwargs = ours(given)
    try:
        theirs, t_second = passes(op, *given, alone, live)
    except (RuntimeError, NotImplementedError):  # what PyTorch cannot do
        return
    finally:
        for t, need in zip(leaves(given), needs, strict=True):
            if t.is_leaf:
                t.requires_grad_(need)
    mine, m_second = passes(function, m_args, m_kwargs, alone, live)
    if len(m_second) != len(t_second) and mine == theirs:
        yield "another number of results requires grad"
        return
    for k, (a, b) in enumerate(zip(mine, theirs, strict=False)):
        if a != b:
            yield f"gradient {k}: {a}, not {b}"
    if mine == theirs:
        for k, (x, y) in enumerate(zip(m_second, t_second, strict=True)):
            if x is None or y is None:
                if y is not None:
                    yield f"second derivative {k}: none, not {'values' if np.any(y.detach().numpy(force=True)) else 'zeros'}"
                elif x is not None and np.any(x.detach().numpy(force=True)):  # (zeros are as good)
                    yield f"second derivative {k}: values, not none"
                continue
            try:
                compare(x, y, f"second derivative {k}")
            except AssertionError as error:
                yield " ".join(str(error).split())


def check(op: Any, most: int = MOST) -> Table:
    table, function = Table(op.name + (f" ({op.variant_test_name})" if op.variant_test_name else "")), find(op)
    drawn = any(r in op.name for r in RANDOM) or op.name in WRONG_THERE or op.name.endswith("multi_head_attention_forward")
    if function is None or drawn or not op.supports_autograd or not op.supports_gradgrad or torch.float64 not in op.supported_dtypes("cpu"):
        return table
    samples = samples_of(op, torch.float64, True)
    for k, sample in enumerate([s for s in samples if sum(t.numel() for t in leaves((s.input, s.args, s.kwargs))) <= SIZE][:most]):
        if sample.kwargs.get("dropout_p"):
            continue
        operands = sum(t.requires_grad for t in leaves((sample.input, sample.args, sample.kwargs)))
        for alone in [None, *range(operands if operands > 1 and k < ALONE else 0)]:
            for live in (True, False):
                what = f"#{k}{'' if alone is None else f' (of {alone})'}{' live' if live else ''}"
                table.pairs += 1
                try:
                    with warnings.catch_warnings(), np.errstate(all="ignore"):
                        warnings.simplefilter("ignore")
                        table.differences += [f"{what}: {text}" for text in compared(function, op, sample, alone, live)]
                except Unsupported:
                    table.pairs -= 1
                except builtins.Exception as error:
                    table.differences.append(f"{what}: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
    return table


if __name__ == "__main__":
    sys.exit(report(sys.argv[1:], check, KNOWN, "passes"))
