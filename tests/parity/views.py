"""Which results are views, of what, and whose memory they share: PyTorch's answer and ours, for every op of its database.

``python -m tests.parity.views [--part K N] [name…]`` calls each op, as a function, method and operator, on operands that are leaves,
results and views, and compares for each result `_is_view()`, whether its `_base` is that of an operand or the operand itself, which
operands and other results its memory is shared with, whether it is an operand, whether it counts changes before there were any, and
whether an in-place op on it counts for each of them. Results that are changed in place are asked what node they have then.
"""

from __future__ import annotations

import builtins
import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

import autograd_nb as ag

from .opdb import Unsupported, find, leaves, ours, samples_of, spellings, title
from .saved import MISSING, Table, report

MOST = 4  #: samples of an op in a walk over all, 2 of a dtype but the first
SIZE = 2_000  #: elements of a sample at most (kernels run as Python)
DTYPES = (torch.float64, torch.complex128)
#: results that PyTorch cuts out of, or looks at through, a wider tensor that nobody else has
_WIDER = (
    "PyTorch's result is a view of a wider one that nobody has; here it is computed itself, so that a change of it copies nothing",
    {("its own", "a view of what nobody has"), ("the op's node", "a view's node")},
)
#: entries whose differences are known: why, and what they are (what we have, what PyTorch has)
KNOWN: dict[str, tuple[str, set[tuple[str, str]]]] = {
    **dict.fromkeys(
        (
            "nn.functional.adaptive_avg_pool1d", "nn.functional.adaptive_max_pool1d", "nn.functional.avg_pool1d", "nn.functional.max_pool1d",
            "nn.functional.max_unpool1d", "nn.functional.max_unpool1d (grad)", "nn.functional.interpolate (area)",
            "nn.functional.instance_norm", "nn.functional.linear_cross_entropy (chunked)", "nn.functional.linear_cross_entropy (chunked_none)",
            "nn.functional.conv1d", "nn.functional.conv2d", "nn.functional.conv3d", "nn.functional.conv_transpose1d",
            "nn.functional.conv_transpose2d", "nn.functional.conv_transpose3d", "einsum", "repeat_interleave", "linalg.cond",
            "svd", "svd_lowrank", "pca_lowrank", "fft.ifft", "fft.ihfft", "fft.ihfft2", "fft.ihfftn",
        ),
        _WIDER,
    ),
}  # fmt: skip


#: with what in-place ops on views are refused
REFUSALS = ("single memory location", "a view of a leaf", "is a view and", "created in no_grad", "multiple views", "inplace")
CHANGED = "changed already"


def operand(t: Any, kind: str) -> Any:
    """The tensor as one that is a result, or a view of a result."""
    made = t.detach().clone().requires_grad_(t.requires_grad).clone()
    return made if kind == "result" else made[...]


def given(tree: Any, kind: str) -> Any:
    if isinstance(tree, (torch.Tensor, ag.Tensor)):
        return operand(tree, kind)
    if isinstance(tree, (list, tuple)) and not isinstance(tree, torch.Size):
        made = [given(v, kind) for v in tree]
        return made if isinstance(tree, list) else tuple(made) if type(tree) is tuple else tree if not list(leaves(tree)) else type(tree)(*made)
    if isinstance(tree, dict):
        return {k: given(v, kind) for k, v in tree.items()}
    return tree


def storage(t: Any) -> Any:
    return t.untyped_storage().data_ptr() if t.numel() else id(t)


def told(t: Any, named: dict[str, Any]) -> Iterator[str]:
    """What is compared of one result; ``named``: all operands and results by names."""
    if t._is_view():
        bases = {**named, **{f"the base of {name}": o._base for name, o in named.items() if o is not t and o._is_view()}}
        yield "a view of " + next((name for name, o in bases.items() if o is t._base), "what nobody has")
    for name, o in named.items():
        if o is t:
            if name.startswith("operand"):
                yield f"is {name}"
        elif t.numel() and o.numel() and storage(o) == storage(t):
            yield f"in the memory of {name}"
    if t._version and not t._is_view() and next(name for name, o in named.items() if o is t).startswith("result"):
        yield CHANGED


def after_change(t: Any, named: dict[str, Any]) -> Iterator[str]:
    """Which versions an in-place op on ``t`` moves on, and whether the node of the op or that of a view is its history then."""
    before, version = {name: o._version for name, o in named.items()}, t._version
    history = t.grad_fn is not None
    try:
        t.neg_() if t.is_floating_point() or t.is_complex() else t.zero_()
    except RuntimeError as error:
        yield next((phrase for phrase in REFUSALS if phrase in str(error)), "refused otherwise")
        return
    yield from (name for name, o in named.items() if o is not t and o._version != before[name])
    yield from ["not counted"] * (t._version == version)
    if history:
        yield "the op's node" if type(t.grad_fn).__name__.startswith("Neg") else "a view's node"


def answers(call: Callable, args: Any, kwargs: Any, kind: str) -> list[tuple[str, str]]:
    args, kwargs = given((args, kwargs), kind)
    made = [t for t in leaves(call(*args, **kwargs)) if isinstance(t, (torch.Tensor, ag.Tensor))]
    named = {f"operand {i}": t for i, t in enumerate(leaves((args, kwargs)))}
    named |= {f"result {i}": t for i, t in enumerate(made) if not any(t is o for o in named.values())}
    found = [(f"result {i}", ", ".join(told(t, named)) or "its own") for i, t in enumerate(made)]
    return found + [(f"result {i} changed", ", ".join(after_change(t, named))) for i, t in enumerate(made[:3])]


def expected_of(mine: str, theirs: str) -> str:
    """PyTorch's answer, but for that a result was changed already where ours was not: PyTorch writes some piece by piece."""
    if CHANGED in mine or CHANGED not in theirs:
        return theirs
    return ", ".join(part for part in theirs.split(", ") if part != CHANGED) or "its own"


def compare(table: Table, what: str, theirs: Callable, mine: Callable, args: Any, kwargs: Any) -> None:
    own_args, own_kwargs = ours((args, kwargs))
    for kind in ("result", "view"):
        try:
            torch.manual_seed(0)
            expected = answers(theirs, args, kwargs, kind)
        except builtins.Exception:
            continue
        table.pairs += len(expected)
        try:
            got = answers(mine, own_args, own_kwargs, kind)
        except builtins.Exception as error:
            table.failures.append(f"{what} of a {kind}: {type(error).__name__}: {' '.join(str(error).split())[:160]}")
            continue
        if len(got) != len(expected):
            table.failures.append(f"{what} of a {kind}: {len(got)} answers instead of {len(expected)}")
            continue
        known = KNOWN.get(table.name, ("", set()))[1]
        for (name, a), (_, theirs_told) in zip(got, expected, strict=True):
            b = expected_of(a, theirs_told)
            if a != b and (a, b) in known:
                table.known += 1
            elif a != b:
                table.differences.append(f"{what} of a {kind}: {name}: {a} instead of {b}")


def check(op: Any, most: int | None = MOST) -> Table:
    table = Table(title(op))
    function = find(op)
    if function is None:
        return table
    for dtype in DTYPES:
        if dtype not in op.supported_dtypes("cpu") or (dtype.is_complex and table.name in MISSING):
            continue
        requires_grad = op.supports_autograd and dtype is not torch.int64
        for k, sample in enumerate(samples_of(op, dtype, requires_grad)[: most if dtype is torch.float64 else 2]):
            if sum(t.numel() for t in leaves((sample.input, sample.args, sample.kwargs))) > SIZE:
                continue
            kinds = [("", op, function)]
            if not k:
                kinds += [(f" {w}", t, m) for w, t, m in spellings(op) if m is not None and isinstance(sample.input, torch.Tensor)]
            for kind, theirs, mine in kinds:
                with warnings.catch_warnings(), contextlib.suppress(Unsupported):
                    warnings.simplefilter("ignore")
                    compare(table, f"{str(dtype)[6:]} #{k}{kind}", theirs, mine, (sample.input, *sample.args), sample.kwargs)
    if table.name in KNOWN and table.pairs and not table.known:
        table.failures.append("is known to differ, and does not")
    return table


def main(arguments: list[str]) -> int:
    return report(arguments, check, {name: (why, ()) for name, (why, _) in KNOWN.items()}, "answers")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
