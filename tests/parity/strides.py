"""Strides of results against PyTorch's: every op of its database on operands that do not lie in memory in C order.

``python -m tests.parity.strides [name…]`` prints where `stride()`, `storage_offset()` or `is_contiguous()` of a result or of a
leaf's ``.grad`` differ. Each sample is called with its tensors laid out in several ways (see `VARIANTS`).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

from . import opdb

SAMPLES = 2  #: of an op in one dtype that are tried in each way
MOST = 2_000  #: elements of a sample (kernels run as Python)
DTYPES = (torch.float32,)


def _reordered(t: torch.Tensor, order: list[int]) -> torch.Tensor:
    """The same tensor with its dims in memory in this order, the first outermost."""
    fresh = torch.empty_permuted(t.shape, order, dtype=t.dtype) if t.ndim else t.clone()
    return fresh.copy_(t)


def transposed(t: torch.Tensor, k: int) -> torch.Tensor:
    return _reordered(t, list(range(t.ndim))[::-1])


def rolled(t: torch.Tensor, k: int) -> torch.Tensor:
    """Channels last, for any number of dims."""
    return _reordered(t, [0, *range(2, t.ndim), 1] if t.ndim > 2 else list(range(t.ndim)))


def mixed(t: torch.Tensor, k: int) -> torch.Tensor:
    """Every second tensor is transposed, the first of them first."""
    return t.clone() if k % 2 else transposed(t, k)


def mixed_later(t: torch.Tensor, k: int) -> torch.Tensor:
    return transposed(t, k) if k % 2 else t.clone()


def stepped(t: torch.Tensor, k: int) -> torch.Tensor:
    """Every second element of the last dim of a larger tensor."""
    if not t.ndim:
        return t.clone()
    wide = torch.zeros((*t.shape[:-1], 2 * t.shape[-1]), dtype=t.dtype)
    return wide[..., ::2].copy_(t)


def stepped_turned(t: torch.Tensor, k: int) -> torch.Tensor:
    """A transposed tensor with gaps."""
    if t.ndim < 2:
        return stepped(t, k)
    return stepped(t.mT.contiguous(), k).mT


def expanded(t: torch.Tensor, k: int) -> torch.Tensor:
    """The first row (or column) everywhere."""
    return t[:1].clone().expand(t.shape) if t.ndim and t.shape[0] > 1 and k == 0 else transposed(t, k)


VARIANTS: dict[str, Callable[[torch.Tensor, int], torch.Tensor]] = {
    "transposed": transposed, "channels last": rolled, "mixed": mixed, "mixed, second": mixed_later, "stepped": stepped,
    "stepped and transposed": stepped_turned, "expanded": expanded,
}  # fmt: skip


def laid_out(tree: Any, how: Callable, count: list[int]) -> Any:
    """The tree with each of its tensors laid out anew."""
    if isinstance(tree, torch.Tensor):
        t = how(tree.detach(), count[0]).requires_grad_(tree.requires_grad)
        count[0] += 1
        return t
    if isinstance(tree, (list, tuple)) and not hasattr(tree, "_fields") and not isinstance(tree, torch.Size):
        return type(tree)(laid_out(v, how, count) for v in tree)
    if isinstance(tree, dict):
        return {k: laid_out(v, how, count) for k, v in tree.items()}
    return tree


def described(tree: Any, offsets: bool = True) -> list[tuple]:
    """What is compared of the tensors of a tree. Strides of dims of size 1 (here 0), and of what is empty, tell nothing."""
    found = []
    for t in opdb.leaves(tree):
        shape = tuple(t.shape)
        strides = tuple(0 if n == 1 else s for n, s in zip(shape, t.stride(), strict=True)) if t.numel() else ()
        found.append((shape, strides, t.storage_offset() if offsets and t.numel() else 0, t.is_contiguous()))
    return found


def difference(op: Any, function: Callable, args: tuple, kwargs: dict, gradients: bool) -> str | None:
    """What differs for one call, None where nothing does (or PyTorch refuses the call)."""
    try:
        my_args, my_kwargs = opdb.ours((args, kwargs))
    except opdb.Unsupported:
        return None
    given = described((args, kwargs))
    try:
        theirs = op(*args, **kwargs)
    except Exception:
        return None
    mine = function(*my_args, **my_kwargs)
    a, b = described(mine), described(theirs)
    if a != b:
        return f"{given} -> {[x[1:] for x in a]} instead of {[x[1:] for x in b]}"
    if not gradients:
        return None
    outs = [t for t in opdb.leaves(theirs) if t.requires_grad]
    mine_outs = [t for t in opdb.leaves(mine) if t.requires_grad]
    if not outs or len(outs) != len(mine_outs):
        return None
    try:
        torch.autograd.backward(outs, [torch.ones_like(t) for t in outs])
    except RuntimeError:
        return None
    opdb.ag.autograd.backward(mine_outs, [opdb.ag.ones_like(t) for t in mine_outs])
    pairs = zip(opdb.leaves((my_args, my_kwargs)), opdb.leaves((args, kwargs)), strict=True)
    a, b = [], []
    for m, t in pairs:
        if m.is_leaf and t.is_leaf and m.grad is not None and t.grad is not None:
            a += described(m.grad, False)  # PyTorch keeps parts of larger gradients as they are
            b += described(t.grad, False)
    return None if a == b else f"{given}: .grad {[x[1:] for x in a]} instead of {[x[1:] for x in b]}"


def elements(sample: Any) -> int:
    return sum(t.numel() for t in opdb.leaves((sample.input, sample.args, sample.kwargs)))


def differences(op: Any, dtypes: tuple = DTYPES, most: int = SAMPLES) -> Iterator[tuple[str, str]]:
    """(variant, what differs) for an op, the first of each variant."""
    function = opdb.find(op)
    if function is None:
        return
    for name, how in VARIANTS.items():
        found = None
        for dtype in dtypes:
            if dtype not in op.supported_dtypes("cpu"):
                continue
            differentiable = dtype is torch.float32 and op.supports_autograd
            small = [s for s in opdb.samples_of(op, dtype, differentiable) if elements(s) <= MOST]
            for sample in small[:most]:
                try:
                    args, kwargs = laid_out(((sample.input, *sample.args), sample.kwargs), how, [0])
                except RuntimeError:
                    continue
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    try:
                        found = difference(op, function, args, kwargs, differentiable)
                    except opdb.Unsupported:
                        continue
                    except Exception as error:
                        found = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
                if found:
                    yield name, f"{str(dtype)[6:]}: {found}"
                    break
            if found:
                break


def main(names: list[str]) -> None:
    wrong = 0
    every = [op for op in op_db if not opdb.outside(op.name) and (not names or op.name in names)]
    for op in every:
        rows = list(differences(op))
        wrong += bool(rows)
        for variant, text in rows:
            print(f"{opdb.title(op)} [{variant}] {text}", flush=True)
    print(f"{wrong} of {len(every)} entries differ")


if __name__ == "__main__":
    main(sys.argv[1:])
