"""What ops give and keep is never memory that nobody has written: ``python -m tests.parity.unwritten [name…]`` walks all ops and modules.

Every call, its first and second derivatives, is made twice, with all new memory filled with one byte and with another (`tests.unwritten`):
its results, what the nodes of its graph keep for backward, and its gradients must have the same bits. ``--part K N`` walks one of N parts.
"""

from __future__ import annotations

import fnmatch
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_modules import module_db

import autograd_nb as ag

from ..unwritten import BYTES, differing, outcome
from . import moduledb
from .opdb import ERRORS, Unsupported, find, leaves, ours, samples_of, spellings, title
from .saved import SLOW, Table, report

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.complex64, torch.int64, torch.uint8, torch.bool)
MOST = 5  #: samples of a dtype in a walk over all
#: ops that give memory as it is
FRESH = ("empty*", "new_empty*", "resize*")


def compare(table: Table, what: str, call: Callable, args: Any, kwargs: Any) -> None:
    try:
        one, other = (outcome(call, *ours((args, kwargs)), byte) for byte in BYTES)
    except (Unsupported, *ERRORS):  # which `opdb` and `moduledb` compare
        return
    table.pairs += len(one)
    table.differences += [f"{what}: {text}" for text in differing(one, other)]


def check(op: Any, most: int) -> Table:
    """Walk over the samples of an op, as a function and in place."""
    table, function = Table(title(op)), find(op)
    if function is None or any(fnmatch.fnmatch(op.name, pattern) for pattern in FRESH):
        return table
    kinds = [("", function), *[(" in place", mine) for what, _, mine in spellings(op) if what == "in place" and mine is not None]]
    for dtype in DTYPES:
        if dtype not in op.supported_dtypes("cpu"):
            continue
        differentiable = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
        for k, sample in enumerate(samples_of(op, dtype, differentiable)[:most]):
            for kind, mine in kinds:
                call = (lambda x, *a, mine=mine, **o: mine(x * 1, *a, **o)) if kind and differentiable else mine
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    compare(table, f"{dtype} #{k}{kind}", call, (sample.input, *sample.args), sample.kwargs)
    return table


def check_module(info: Any, most: int) -> Table:
    """Walk over the inputs of a module, in training and evaluation."""
    name = info.module_cls.__name__
    table = Table(name)
    for dtype in (torch.float64, torch.float32):
        for training in (True, False):
            torch.manual_seed(0)
            samples = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
            for k, sample in enumerate(list(samples)[:most]):
                made, given = sample.constructor_input, sample.forward_input

                def call(*args: Any, made: Any = made, dtype: Any = dtype, training: bool = training, **kwargs: Any) -> list[Any]:
                    module = moduledb.cast(getattr(ag.nn, name)(*moduledb.ours(made.args), **moduledb.ours(made.kwargs)), dtype).train(training)
                    out = module(*args, **kwargs)
                    inputs = [p for p in module.parameters() if p.requires_grad]
                    outs = [t for t in leaves(out) if t.requires_grad]
                    heads = [ag.ones_like(t) for t in outs]
                    grads = ag.autograd.grad(outs, inputs, heads, retain_graph=True, allow_unused=True) if inputs and outs else []
                    return [out, [g for g in grads if g is not None], [b.clone() for b in module.buffers()]]

                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    compare(table, f"{dtype} {'training' if training else 'evaluation'} #{k}", call, given.args, given.kwargs)
    return table


def modules(names: list[str], part: int, parts: int) -> Iterator[Table]:
    for k, info in enumerate(module_db):
        if info.module_cls.__name__ in names if names else k % parts == part:
            yield check_module(info, 2)


def main(arguments: list[str]) -> int:
    return report(arguments, lambda op: check(op, SLOW.get(op.name, MOST)), {}, "arrays", modules)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
