"""What `.data` of an operand or a result that is changed between forward and backward does to gradients: PyTorch's answer and ours.

``python -m tests.parity.exchanged [--part K N] [name…]`` calls every differentiable op of PyTorch's database, changes the values of
one tensor behind the graph's back, by ``t.data.mul_(…)``, and compares the gradients of all inputs. So rules have to read what
PyTorch's read, not what comes to the same while nobody interferes. What is known to differ is listed one by one, in `KNOWN`: a new
difference fails, and so does one that is gone. (Of ``t.data = …`` see docs/design.md.)
"""

from __future__ import annotations

import builtins
import contextlib
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import autograd_nb as ag

from .opdb import RANDOM, Unsupported, find, leaves, ours, plain, samples_of, title
from .saved import MISSING, Table, grown, report

MOST = 2  #: samples of an op in a walk over all
SIZE = 1_000  #: elements of a sample at most
DTYPES = (torch.float64, torch.complex128)
_FUSED = "PyTorch's is made of several ops, whose nodes keep what lies between; here one op computes that anew from its operands"
_BESIDE = "its factors (of the weights, the running variance, the statistics) are kept as the forward pass used them; PyTorch's reads them anew"
_REFLECTED = "a product of reflections is written with two matrices, which the nodes keep; PyTorch's takes its result apart, reflection by reflection"
#: what is known to differ, by the reason: entries -> which change of which samples ("c0" is the first one of complex numbers)
_LISTED: dict[str, dict[str, str]] = {
    _BESIDE: {
        "native_group_norm": "result 1: 0 1; result 2: 0 1",
        "native_batch_norm": "operand 4: 1",
        "nn.functional.batch_norm | nn.functional.nll_loss": "operand 2: 1",
    },
    _REFLECTED: {
        "ormqr": "operand 0: 0 1 c0 c1; operand 1: 0 1 c0 c1; operand 2: 0 1 c0 c1; result 0: 0 1 c0 c1",
        "linalg.householder_product": "operand 0: 0 1 c0 c1; operand 1: 0 1 c0 c1; result 0: 0 1 c0 c1",
    },
    "the vectors' signs are free, and the gradient of their sum depends on them": {"linalg.eigh": "operand 0: 0; result 0: 0; result 1: 0"},
    "e to the power of what was changed overflows, to infinity here and to nan there": {"logcumsumexp": "result 0: c0 c1"},
    "PyTorch's e^(−x²/2 − y) subtracts large numbers, which costs digits; the rule here reads the operand alone": {
        "special.log_ndtr": "operand 0: 0; result 0: 0",
    },
    "PyTorch keeps operands as views that it does not count as such, and so misses changes in place too; here copies are kept": {
        "kron": "operand 0: 0 c0; operand 1: 0 c0",
    },
    _FUSED: {
        "nn.functional.logsigmoid | nn.functional.softsign": "operand 0: 0",
        "nn.functional.linear_cross_entropy (chunked)": "operand 0: 0 1; operand 1: 0 1",
        "nn.functional.linear_cross_entropy (chunked_none)": "operand 0: 0 1; operand 1: 0 1",
        "nn.functional.multilabel_soft_margin_loss | nn.functional.rms_norm": "operand 0: 0 1",
    },
    "PyTorch's gradient is known to be wrong": {
        "as_strided_scatter": "operand 0: 0 1 c0 c1; operand 1: 0 1 c0 c1; result 0: 0 1 c0 c1",
    },
}
#: the same by entry: why, and the differences
KNOWN: dict[str, tuple[str, tuple[str, ...]]] = {
    name: (why, tuple(
        f"{'complex ' if sample[0] == 'c' else ''}#{sample.removeprefix('c')} {part.partition(':')[0].strip()}"
        for part in which.split(";") for sample in part.partition(":")[2].split()
    ))
    for why, entries in _LISTED.items() for names, which in entries.items() for name in names.split(" | ")
}  # fmt: skip


def gradients(call: Callable, args: Any, kwargs: Any, which: int) -> tuple[str, list] | None:
    """(name of the tensor that was changed, gradients of all inputs), None when there is no such tensor."""
    (args, kwargs), operands, inputs = grown((args, kwargs), lambda i: True, [0])
    made = [t for t in leaves(call(*args, **kwargs)) if isinstance(t, (torch.Tensor, ag.Tensor))]
    outs = [t for t in made if t.requires_grad]
    if not outs or not inputs:
        return None
    changed = [(f"operand {i}", t) for i, t in enumerate(operands) if t.is_floating_point() or t.is_complex()]
    changed += [(f"result {i}", t) for i, t in enumerate(outs) if not any(t is o for o in operands)]
    if which >= len(changed):
        return None
    library: Any = torch if isinstance(outs[0], torch.Tensor) else ag
    seeds = [library.ones_like(y) for y in outs]
    name, t = changed[which]
    t.data.mul_(0.75)  # what has to be positive stays so
    found = library.autograd.grad(outs, inputs, seeds, allow_unused=True)
    return name, [None if g is None else plain(g.detach().resolve_conj() if library is torch else g.detach()) for g in found]


def same(a: list, b: list) -> bool:
    return all(
        (x is None or y is None or x.shape == y.shape)
        and np.allclose(np.zeros(1) if x is None else x, np.zeros(1) if y is None else y, rtol=1e-6, atol=1e-8, equal_nan=True)
        for x, y in zip(a, b, strict=True)
    )


def compare(table: Table, what: str, theirs: Callable, mine: Callable, args: Any, kwargs: Any) -> None:
    own_args, own_kwargs = ours((args, kwargs))
    for which in range(8):
        try:
            torch.manual_seed(0)
            expected = gradients(theirs, args, kwargs, which)
        except builtins.Exception:  # no derivative there
            continue
        if expected is None:
            break
        table.pairs += 1
        text = f"{what} {expected[0]}"
        try:
            got = gradients(mine, own_args, own_kwargs, which)
        except builtins.Exception as error:
            table.failures.append(f"{text}: {type(error).__name__}: {' '.join(str(error).split())[:160]}")
            continue
        if got is None or got[0] != expected[0] or not same(got[1], expected[1]):
            table.differences.append(text)


def check(op: Any) -> Table:
    """The first samples of an op, in each dtype."""
    table = Table(title(op))
    function = find(op)
    if function is None or not op.supports_autograd or any(r in op.name for r in RANDOM):
        return table
    for dtype in DTYPES:
        if dtype not in op.supported_dtypes("cpu") or (dtype.is_complex and table.name in MISSING):
            continue
        for k, sample in enumerate(samples_of(op, dtype, True)[:MOST]):
            given = list(leaves((sample.input, sample.args, sample.kwargs)))
            if (op.name.endswith("attention_forward") and k == 0) or sample.kwargs.get("dropout_p"):
                continue  # with random dropout
            if not any(t.requires_grad for t in given) or sum(t.numel() for t in given) > SIZE:
                continue
            with warnings.catch_warnings(), contextlib.suppress(Unsupported):
                warnings.simplefilter("ignore")
                what = f"{'complex ' if dtype.is_complex else ''}#{k}"
                compare(table, what, op, function, (sample.input, *sample.args), sample.kwargs)
    return table


def main(arguments: list[str]) -> int:
    return report(arguments, check, KNOWN, "changes")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
