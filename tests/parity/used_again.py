"""Which ops a second backward pass goes through: PyTorch's answer, and ours where `set_graph_reuse("torch")` asks for that.

``python -m tests.parity.used_again [--part K N] [name…]`` calls each op of the database, as a function and in place, on operands that are
no leaves, goes back through it twice without ``retain_graph`` and compares whether the second pass is refused.
"""

from __future__ import annotations

import builtins
import contextlib
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch

import autograd_nb as ag

from .opdb import Unsupported, leaves, ours, title
from .saved import Table, calls_of, masks, report

MOST = 4  #: samples of an op, 2 of a dtype but the first
SIZE = 2_000  #: elements of a sample at most (kernels run as Python)
PHRASE = "through the graph a second time"
_NUMBER = "products with numbers within keep these as a product that the user writes, which they do not in PyTorch"
#: entries whose differences are known: why, and which (as patterns)
KNOWN: dict[str, tuple[str, tuple[str, ...]]] = {
    **dict.fromkeys(("addmm", "addmv", "addbmm", "baddbmm", "addr"), (
        "a number by which the first operand is multiplied within, which PyTorch's node keeps as it is, is kept here as a product keeps one",
        ("* (grad of 0): refused instead of allowed",),
    )),
    "conj_physical": ("a change of real numbers that changes nothing is not recorded", ("float64 #0 in place on a view: allowed instead of refused",)),
    "index_add": ("what has no dims is changed through a view of one element", ("* in place (grad of 0): refused instead of allowed",)),
    "gradient": ("it divides by distances: " + _NUMBER, ("float64 #?: refused instead of allowed", "complex128 #?: refused instead of allowed")),
    **dict.fromkeys(("trapz", "trapezoid", "cumulative_trapezoid"), (_NUMBER, ("float64 #3: refused instead of allowed",))),
    "nn.functional.linear_cross_entropy (chunked)": (
        "PyTorch's computes its gradients in the forward pass and hands them out any number of times",
        ("float64 #?: refused instead of allowed", "float64 #? (grad of ?): refused instead of allowed"),
    ),
    "nn.functional.pad (circular)": ("PyTorch's writes parts of a new tensor, whose nodes keep that",
                                    ("float64 #?: allowed instead of refused", "complex128 #?: allowed instead of refused")),
    "triangular_solve": ("PyTorch's copy of the coefficients has a history", ("* (grad of 0): NotImplementedError: *",)),
}  # fmt: skip


def given(tree: Any, mask: Callable[[int], bool], count: list[int]) -> tuple[Any, list[Any]]:
    """The arguments, of which those that require grad and that the mask takes are results; and the leaves these were made of."""
    if isinstance(tree, (torch.Tensor, ag.Tensor)):
        leaf = tree.detach().clone()
        if tree.requires_grad:
            count[0] += 1
            if mask(count[0] - 1):
                leaf.requires_grad_()
                library: Any = torch if isinstance(tree, torch.Tensor) else ag
                return library.add(leaf, 0), [leaf]
        return leaf, []
    if isinstance(tree, (list, tuple)):
        found = [given(v, mask, count) for v in tree]
        made: Any = [f[0] for f in found]
        if not isinstance(tree, list):
            made = tuple(made) if type(tree) is tuple else tree if not list(leaves(tree)) else type(tree)(*made)
        return made, [t for f in found for t in f[1]]
    if isinstance(tree, dict):
        pairs = {k: given(v, mask, count) for k, v in tree.items()}
        return {k: p[0] for k, p in pairs.items()}, [t for p in pairs.values() for t in p[1]]
    return tree, []


def answer(call: Callable, args: Any, kwargs: Any, mask: Callable[[int], bool]) -> str | None:
    """Whether a second pass is refused; None where there is nothing to differentiate."""
    (args, kwargs), inputs = given((args, kwargs), mask, [0])
    made = [t for t in leaves(call(*args, **kwargs)) if isinstance(t, (torch.Tensor, ag.Tensor))]
    outs = [t for t in made if t.requires_grad]
    if not outs or not inputs:
        return None
    library: Any = torch if isinstance(outs[0], torch.Tensor) else ag
    seeds = [library.ones_like(y) for y in outs]
    library.autograd.grad(outs, inputs, seeds, allow_unused=True)
    try:
        library.autograd.grad(outs, inputs, seeds, allow_unused=True)
    except RuntimeError as error:
        if PHRASE not in str(error):
            raise
        return "refused"
    return "allowed"


def on_view(call: Callable) -> Callable:
    """The op in place on a part of the first operand, which returns all of it."""

    def changed(x: Any, *args: Any, **kwargs: Any) -> Any:
        call(x[...], *args, **kwargs)
        return x

    return changed


def compare(table: Table, what: str, theirs: Callable, mine: Callable, args: Any, kwargs: Any) -> None:
    own_args, own_kwargs = ours((args, kwargs))
    for which, mask in masks(sum(t.requires_grad for t in leaves((args, kwargs))), True):
        try:
            torch.manual_seed(0)
            expected = answer(theirs, args, kwargs, mask)
        except builtins.Exception:  # no derivative there
            continue
        if expected is None:
            continue
        table.pairs += 1
        try:
            got = answer(mine, own_args, own_kwargs, mask)
        except builtins.Exception as error:
            table.differences.append(f"{what}{which}: {type(error).__name__}: {' '.join(str(error).split())[:160]}")
            continue
        if got != expected:
            table.differences.append(f"{what}{which}: {got} instead of {expected}")


def check(op: Any, most: int | None = MOST) -> Table:
    table = Table(title(op))
    for dtype, k, kind, theirs, mine, args, kwargs in calls_of(op, most):
        if sum(t.numel() for t in leaves((args, kwargs))) > SIZE:
            continue
        ways = [(kind, theirs, mine), *([(kind + " on a view", on_view(theirs), on_view(mine))] if kind else [])]
        for way, one, other in ways:
            with warnings.catch_warnings(), contextlib.suppress(Unsupported):
                warnings.simplefilter("ignore")
                compare(table, f"{str(dtype)[6:]} #{k}{way}", one, other, args, kwargs)
    return table


def main(arguments: list[str]) -> int:
    before = ag.autograd.set_graph_reuse("torch")
    try:
        return report(arguments, check, KNOWN, "passes")
    finally:
        ag.autograd.set_graph_reuse(before)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
