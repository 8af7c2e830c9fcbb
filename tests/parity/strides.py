"""Strides of results against PyTorch's: every op of its database on operands that do not lie in memory in C order.

``python -m tests.parity.strides [--quick] [--part=0/4] [name…]`` prints where `stride()`, `storage_offset()` or
`is_contiguous()` of a result or of a leaf's ``.grad`` differ, and fails if one does that is not `KNOWN` to, or one does not that is. Each
sample is called with its tensors laid out in several ways (see `VARIANTS`). With NUMBA_DISABLE_JIT=1 it is much quicker.
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
DTYPES = (torch.float32, torch.complex64)


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


def plain(t: torch.Tensor, k: int) -> torch.Tensor:
    return t.clone()


VARIANTS: dict[str, Callable[[torch.Tensor, int], torch.Tensor]] = {
    "C order": plain,
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


def differences(
    op: Any, dtypes: tuple = DTYPES, most: int = SAMPLES, variants: tuple[str, ...] = tuple(VARIANTS)
) -> Iterator[tuple[str, str]]:
    """(variant, what differs) for an op, the first of each variant."""
    function = opdb.find(op)
    if function is None:
        return
    samples = [(sample, dtype) for dtype in dtypes if dtype in op.supported_dtypes("cpu") for sample in small_samples(op, dtype, most)]
    for name in variants:
        for sample, dtype in samples:
            try:
                args, kwargs = laid_out(((sample.input, *sample.args), sample.kwargs), VARIANTS[name], [0])
            except RuntimeError:
                continue
            found = None
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    found = difference(op, function, args, kwargs, dtype is torch.float32 and op.supports_autograd)
                except opdb.Unsupported:
                    continue
                except Exception as error:
                    found = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
            if found:
                yield name, f"{str(dtype)[6:]}: {found}"
                break


def small_samples(op: Any, dtype: torch.dtype, most: int) -> list:
    differentiable = dtype is torch.float32 and op.supports_autograd
    return [s for s in opdb.samples_of(op, dtype, differentiable) if elements(s) <= MOST][:most]


def cases(torch: Any) -> dict[str, Callable]:
    """Calls with a channels-last image [2, 3, 4, 5], and what the database has few samples of."""
    F, last = torch.nn.functional, torch.channels_last

    def line(x):
        return x[0, 0].t()[None]

    def volume(x):
        return x[:, :, None].expand(2, 3, 4, 4, 5).contiguous(memory_format=torch.channels_last_3d)

    return {
        "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
        "batch_norm, evaluation": lambda x: F.batch_norm(x, torch.zeros(3), torch.ones(3)),
        "batch_norm, volume": lambda x: F.batch_norm(volume(x), None, None, training=True),
        "batch_norm, gaps": lambda x: F.batch_norm(x[:, :2], None, None, training=True),
        "instance_norm": lambda x: F.instance_norm(x),
        "group_norm": lambda x: F.group_norm(x, 3),
        "layer_norm": lambda x: F.layer_norm(x, (5,)),
        "rms_norm": lambda x: F.rms_norm(x, (5,)),
        "rrelu": lambda x: F.rrelu(x),
        "rrelu, in place": lambda x: F.rrelu(x, inplace=True),
        "local_response_norm": lambda x: F.local_response_norm(x, 2),
        **{f"pad, {m}": lambda x, m=m: F.pad(x, (1, 1, 1, 1), mode=m) for m in ("constant", "reflect", "replicate", "circular")},
        "conv2d": lambda x: F.conv2d(x, torch.ones(2, 3, 2, 2)),
        "conv2d, by the weight": lambda x: F.conv2d(x.contiguous(), torch.ones(2, 3, 2, 2).to(memory_format=last)),
        "conv2d, transposed": lambda x: F.conv2d(x.contiguous().mT, torch.ones(2, 3, 2, 2)),
        "conv1d": lambda x: F.conv1d(line(x), torch.ones(2, 5, 1)),
        "conv3d": lambda x: F.conv3d(volume(x), torch.ones(2, 3, 1, 2, 2)),
        "conv_transpose2d": lambda x: F.conv_transpose2d(x, torch.ones(3, 2, 2, 2)),
        "max_pool2d": lambda x: F.max_pool2d(x, 2, return_indices=True),
        "max_pool3d": lambda x: F.max_pool3d(volume(x), 2),
        "avg_pool1d": lambda x: F.avg_pool1d(line(x), 2),
        "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
        "avg_pool3d": lambda x: F.avg_pool3d(volume(x), 2),
        "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 2),
        "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 2),
        "lp_pool2d": lambda x: F.lp_pool2d(x, 2.0, 2),
        "max_unpool2d": lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=(4, 5)),
        **{f"interpolate, {m}": lambda x, m=m: F.interpolate(x, scale_factor=2, mode=m) for m in ("nearest", "bilinear", "bicubic", "area")},
        "interpolate, trilinear": lambda x: F.interpolate(volume(x), scale_factor=2, mode="trilinear"),
        "interpolate, line": lambda x: F.interpolate(line(x), scale_factor=2, mode="linear"),
        "pixel_unshuffle": lambda x: F.pixel_unshuffle(x[..., :4], 2),
        "grid_sample": lambda x: F.grid_sample(x, torch.zeros(2, 3, 3, 2)),
        "dropout": lambda x: F.dropout(x),
        "dropout2d": lambda x: F.dropout2d(x),
        "alpha_dropout": lambda x: F.alpha_dropout(x, training=True),
        "prelu": lambda x: F.prelu(x, torch.ones(3)),
        "softmax": lambda x: F.softmax(x, 1),
        "linear": lambda x: F.linear(x, torch.ones(2, 5)),
        "scaled_dot_product_attention": lambda x: F.scaled_dot_product_attention(*[x.transpose(1, 2)] * 3),
        "bernoulli": lambda x: torch.bernoulli(x.clamp(0, 1)),
        "poisson": lambda x: torch.poisson(x),
        "normal": lambda x: torch.normal(x, 1.0),
        "rand_like": lambda x: torch.rand_like(x),
        "cat": lambda x: [torch.cat([x, x], d) for d in range(4)],
        "cat, mixed": lambda x: torch.cat([x, x.contiguous()], 1),
        "stack": lambda x: [torch.stack([x, x], d) for d in range(5)],
        "indexed": lambda x: [x[torch.tensor([0, 1])], x[:, torch.tensor([0, 1])], x[:, :, x[0, 0, :, 0] > 0], x.nonzero()],
        "out=": lambda x: torch.add(x, 1, out=torch.empty(0)),
        "a bias": lambda x: [torch.ones(3, 1, 1) * x, x * torch.ones(5)],
        "mixed": lambda x: [x.contiguous() + x, x + x.contiguous(), x.double() + x, torch.lerp(x, x.contiguous(), 0.5)],
        "formats": lambda x: [
            x.transpose(1, 3).contiguous(memory_format=last),
            torch.zeros_like(x, memory_format=torch.contiguous_format),
            torch.empty(2, 3, 4, 5, memory_format=last),
            x.half(),
            x.to(torch.int64, memory_format=torch.contiguous_format),
        ],
        "arrays": lambda x: [torch.tensor(x.numpy()), torch.tensor(x.numpy().T), torch.as_tensor(x.numpy(), dtype=torch.float64)],
        "reductions": lambda x: [x.sum(1, keepdim=True), x.mean(0), x.amax(3), x.max(1)[0], x.var(2), x.cumsum(1), x.topk(1, 1)[0]],
        "sorted": lambda x: [x.sort(1)[0], x.sort(1)[1], x.flip(1), x.rot90(), x.argsort(2)],
        "rolled": lambda x: [x.roll(1, 1), x.roll(-4, 2), x.roll((1, 4), (1, 2)), x.roll((1, 3), (1, 2))],
    }  # fmt: skip


def differing_cases() -> Iterator[str]:
    for name in cases(torch):
        found = []
        for library in (opdb.ag, torch):
            x = library.arange(120.0).reshape(2, 3, 4, 5).to(memory_format=library.channels_last)
            found.append(described(cases(library)[name](x)))
        if found[0] != found[1]:
            yield f"{name}: {[x[1:] for x in found[0]]} instead of {[x[1:] for x in found[1]]}"


#: entries whose results lie otherwise than PyTorch's -> why, and in which of `VARIANTS`
KNOWN: dict[str, tuple[str, tuple[str, ...]]] = {
    "nn.functional.conv_transpose3d": ("PyTorch's order depends on which of its kernels runs", ("channels last",)),
}  # fmt: skip

QUICK = ("C order", "transposed", "channels last", "mixed", "stepped and transposed")  #: of `VARIANTS`


def main(arguments: list[str]) -> int:
    quick, part, parts, names = False, 0, 1, []
    for a in arguments:
        if a == "--quick":
            quick = True
        elif a.startswith("--part="):
            part, parts = map(int, a[7:].split("/"))
        else:
            names.append(a)
    every = [op for op in op_db if not opdb.outside(op.name) and (not names or op.name in names)][part::parts]
    wrong, known = 0, 0
    for op in every:
        listed = KNOWN.get(opdb.title(op), ("", ()))[1]
        whole = listed or not quick  # what is listed is looked at in all variants, so that an entry that is none any more is found
        rows = dict(differences(op, most=SAMPLES if whole else 1, variants=tuple(VARIANTS) if whole else QUICK))
        known += bool(listed)
        gone = [f"[{variant}] is known to differ, and does not" for variant in listed if variant not in rows]
        found = gone + [f"[{variant}] {text}" for variant, text in rows.items() if variant not in listed]
        wrong += bool(found)
        for text in found:
            print(f"{opdb.title(op)} {text}", flush=True)
    if not names and part == 0:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for row in differing_cases():
                wrong += 1
                print(row, flush=True)
    print(f"{wrong} of {len(every)} entries differ that should not, {known} are known to")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
