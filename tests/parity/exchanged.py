"""What `.data` of an operand or a result that is changed between forward and backward does to gradients: PyTorch's answer and ours.

``python -m tests.parity.exchanged [--part K N] [name…]`` calls every differentiable op of PyTorch's database, changes the values of
one tensor behind the graph's back, by ``t.data.mul_(…)`` ("written") or ``t.data = …`` ("exchanged"), and compares the gradients
of all inputs. So rules have to read what PyTorch's read, not what comes to the same while nobody interferes.
"""

from __future__ import annotations

import builtins
import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import autograd_nb as ag

from .opdb import RANDOM, Unsupported, find, leaves, ours, outside, plain, samples_of, title
from .saved import Table, grown

MOST = 2  #: samples of an op in a walk over all
SIZE = 1_000  #: elements of a sample at most
KINDS = ("written",)  #: of "exchanged" see docs/design.md
_ANEW = "PyTorch's is made of several ops, which keep what lies between; here one op computes that anew from its operands"
_PARTS = "made of other ops here, which keep what lies between; PyTorch's keeps its operands or its result"
_ZEROS = "PyTorch divides the result by the operand where no element is 0; the rule here looks at no values, so that it can be compiled"
_NONE = "where no element is the extreme any more PyTorch divides 0 by 0, and the rule here gives 0, or the other way round"
#: entries whose differences are known, and why
KNOWN: dict[str, str] = {
    **dict.fromkeys(("cumprod", "prod", "masked.cumprod", "masked.prod"), _ZEROS),
    **dict.fromkeys(
        (
            "nn.functional.softsign", "nn.functional.multilabel_soft_margin_loss", "mvlgamma (mvlgamma_p_1)", "mvlgamma (mvlgamma_p_3)",
            "mvlgamma (mvlgamma_p_5)", "renorm", "linalg.vander", "nn.functional.cross_entropy", "nn.functional.rms_norm",
            "nn.functional.linear_cross_entropy (chunked)", "nn.functional.linear_cross_entropy (chunked_none)", "tensordot", "dist",
            "nn.functional.multi_margin_loss", "nn.functional.logsigmoid", "special.log_ndtr", "kron",
        ),
        _ANEW,
    ),
    **dict.fromkeys(
        (
            "cross", "linalg.cross", "lu_solve", "linalg.lu_solve", "linalg.lu", "linalg.det", "linalg.eigh", "ormqr", "nn.functional.bilinear",
            "linalg.householder_product", "nn.functional.batch_norm", "nn.functional.batch_norm (without_cudnn)", "native_batch_norm",
            "native_group_norm", "nn.functional.nll_loss", "linalg.lstsq", "linalg.lstsq (grad_oriented)", "triangular_solve",
        ),
        _PARTS,
    ),
    **dict.fromkeys(
        (
            "norm (inf)", "median", "nanmedian", "masked.median", "logcumsumexp", "scatter_reduce (amin)", "scatter_reduce (amax)",
            "index_reduce (amin)", "index_reduce (amax)", "index_reduce (mean)", "index_reduce (prod)",
        ),
        _NONE,
    ),
    "as_strided_scatter": "PyTorch's gradient is known to be wrong",
    "nn.functional.scaled_dot_product_attention": "with random dropout",
    "nn.functional.multi_head_attention_forward": "with random dropout",
}  # fmt: skip


def change(t: Any, kind: str) -> None:
    """Other values behind the graph's back; such that what has to be positive stays so."""
    if kind == "written":
        t.data.mul_(0.75)
    else:
        t.data = t.detach().clone().mul_(0.75)


def gradients(call: Callable, args: Any, kwargs: Any, which: int, kind: str) -> tuple[str, list] | None:
    """(name of the tensor that was changed, gradients of all inputs), None when there is no such tensor."""
    (args, kwargs), operands, inputs = grown((args, kwargs), lambda i: True, [0])
    made = [t for t in leaves(call(*args, **kwargs)) if isinstance(t, (torch.Tensor, ag.Tensor))]
    outs = [t for t in made if t.requires_grad]
    if not outs or not inputs:
        return None
    changed = [(f"operand {i}", t) for i, t in enumerate(operands) if t.dtype.is_floating_point]
    changed += [(f"result {i}", t) for i, t in enumerate(outs) if not any(t is o for o in operands)]
    if which >= len(changed):
        return None
    library: Any = torch if isinstance(outs[0], torch.Tensor) else ag
    seeds = [library.ones_like(y) for y in outs]
    name, t = changed[which]
    change(t, kind)
    found = library.autograd.grad(outs, inputs, seeds, allow_unused=True)
    return name, [None if g is None else plain(g.detach().resolve_conj() if library is torch else g.detach()) for g in found]


def same(a: list, b: list) -> bool:
    return all(
        (x is None or y is None or x.shape == y.shape)
        and np.allclose(np.zeros(1) if x is None else x, np.zeros(1) if y is None else y, rtol=1e-6, atol=1e-8, equal_nan=True)
        for x, y in zip(a, b, strict=True)
    )


def compare(table: Table, what: str, theirs: Callable, mine: Callable, args: Any, kwargs: Any, kinds: tuple[str, ...]) -> None:
    own_args, own_kwargs = ours((args, kwargs))
    for kind in kinds:
        for which in range(8):
            try:
                torch.manual_seed(0)
                expected = gradients(theirs, args, kwargs, which, kind)
            except builtins.Exception:  # no derivative there
                continue
            if expected is None:
                break
            table.pairs += 1
            try:
                got = gradients(mine, own_args, own_kwargs, which, kind)
            except builtins.Exception as error:
                table.failures.append(f"{what} {kind}: {type(error).__name__}: {' '.join(str(error).split())[:160]}")
                continue
            if got is None or got[0] != expected[0] or not same(got[1], expected[1]):
                table.differences.append(f"{what}: {expected[0]} {kind}")


def check(op: Any, most: int | None = MOST, dtype: torch.dtype = torch.float64, kinds: tuple[str, ...] = KINDS) -> Table:
    """The first samples of an op."""
    table = Table(title(op))
    function = find(op)
    if function is None or not op.supports_autograd or dtype not in op.supported_dtypes("cpu") or any(r in op.name for r in RANDOM):
        return table
    for k, sample in enumerate(samples_of(op, dtype, True)[:most]):
        given = list(leaves((sample.input, sample.args, sample.kwargs)))
        if not any(t.requires_grad for t in given) or sum(t.numel() for t in given) > SIZE:
            continue
        with warnings.catch_warnings(), contextlib.suppress(Unsupported):
            warnings.simplefilter("ignore")
            compare(table, f"#{k}", op, function, (sample.input, *sample.args), sample.kwargs, kinds)
    return table


def entries(names: list[str], part: int, parts: int) -> Iterator[Table]:
    for k, op in enumerate(op_db):
        if not outside(title(op)) and (op.name in names if names else k % parts == part):
            yield check(op)


def main(arguments: list[str]) -> int:
    part, parts = 0, 1
    if arguments[:1] == ["--part"]:
        part, parts, arguments = int(arguments[1]), int(arguments[2]), arguments[3:]
    pairs = wrong = known = 0
    for table in entries(arguments, part, parts):
        pairs += table.pairs
        found = table.differences + table.failures
        if not found:
            continue
        if table.name in KNOWN:
            known += len(found)
            print(f"{table.name}: {len(found)} of {table.pairs}, known: {KNOWN[table.name]}", flush=True)
            continue
        wrong += len(found)
        print(f"{table.name}: {len(found)} of {table.pairs}", flush=True)
        for text in found if arguments else found[:6]:
            print("          ", text, flush=True)
    print(f"{pairs} changes compared; {wrong} differ, {known} are known to.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
