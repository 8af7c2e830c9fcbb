"""What may be changed in place between forward and backward: PyTorch's answer and ours, for every tensor that an op reads or makes.

``python -m tests.parity.saved [name…]`` prints each pair (op and sample; operand or result) in which they differ, and how many
pairs were compared. The table is made live from PyTorch: an op of its database is called once, the version of one tensor is moved
on as an in-place op would do it, and a backward pass either raises or does not.
"""

from __future__ import annotations

import builtins
import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

import autograd_nb as ag

from .opdb import Unsupported, find, leaves, ours, outside, samples_of, spellings, title

PHRASE = "modified by an inplace operation"
ALONE = 4  #: samples of which each operand is also the only one that requires grad


class Stop(Exception):
    """Our backward pass has checked everything and would begin to run."""


@dataclass
class Table:
    """What was compared for one op or module."""

    name: str
    pairs: int = 0
    differences: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def stop(*_: Any) -> None:
    raise Stop


def grown(tree: Any, mask: Callable[[int], bool], count: list[int]) -> tuple[Any, list, list]:
    """(``tree`` with tensors that are no leaves of the graph, all of these, the leaves that require grad)."""
    if isinstance(tree, (torch.Tensor, ag.Tensor)):
        leaf = tree.detach().clone()
        if tree.requires_grad:
            count[0] += 1
            if mask(count[0] - 1):
                leaf.requires_grad_()
        t = leaf.clone()
        return t, [t], [leaf] if leaf.requires_grad else []
    if isinstance(tree, (list, tuple)):
        found = [grown(v, mask, count) for v in tree]
        made: Any = [f[0] for f in found]
        if not isinstance(tree, list):
            made = tuple(made) if type(tree) is tuple else tree if not any(f[1] for f in found) else type(tree)(*made)
        return made, [t for f in found for t in f[1]], [t for f in found for t in f[2]]
    if isinstance(tree, dict):
        found = [grown(v, mask, count) for v in tree.values()]
        return (
            dict(zip(tree, [f[0] for f in found], strict=True)),
            [t for f in found for t in f[1]],
            [t for f in found for t in f[2]],
        )
    return tree, [], []


def refused(outs: list, inputs: list, t: Any) -> bool:
    """Whether a backward pass is refused after ``t`` was changed; ``t`` is put back."""
    theirs = isinstance(t, torch.Tensor)
    library: Any = torch if theirs else ag
    with contextlib.ExitStack() as after:
        if theirs:
            version = t._version
            torch.autograd.graph.increment_version(t)
            after.callback(torch._C._autograd._unsafe_set_version_counter, (t,), (version,))
        else:
            counter = t._version_
            ag.autograd.graph.increment_version(t)
            after.callback(counter.__setitem__, 0, counter[0] - 1)
        try:
            library.autograd.grad(outs, inputs, [library.ones_like(y) for y in outs], retain_graph=True, allow_unused=True)
        except Stop:
            return False
        except RuntimeError as error:
            if PHRASE not in str(error):
                raise
            return True
    return False


def answers(call: Callable, args: Any, kwargs: Any, mask: Callable[[int], bool], only: Any = None) -> list[tuple[str, bool]]:
    """("operand 0", refused), … of one call; RuntimeError where even an untouched graph cannot be run backward."""
    (args, kwargs), operands, inputs = grown((args, kwargs), mask, [0])
    made = [t for t in leaves(call(*args, **kwargs)) if isinstance(t, (torch.Tensor, ag.Tensor))]
    outs = [t for t in made if t.requires_grad]
    if not outs or not inputs:
        return []
    if isinstance(outs[0], ag.Tensor):
        for t in outs:
            t.register_hook(stop)
    else:
        torch.autograd.grad(outs, inputs, [torch.ones_like(y) for y in outs], retain_graph=True, allow_unused=True)
    found = [(f"operand {i}", t) for i, t in enumerate(operands)]
    found += [(f"result {i}", t) for i, t in enumerate(made) if not any(t is o for o in operands)]
    return [(name, refused(outs, inputs, t)) for name, t in found]


def compare(table: Table, what: str, theirs: list, mine: list) -> None:
    table.pairs += len(theirs)
    if [name for name, _ in theirs] != [name for name, _ in mine]:
        table.failures.append(f"{what}: {[name for name, _ in mine]} instead of {[name for name, _ in theirs]}")
        return
    for (name, expected), (_, got) in zip(theirs, mine, strict=True):
        if got is not expected:
            table.differences.append(f"{what}: {name} wrongly {'refused' if got else 'allowed'}")


def masks(count: int, alone: bool) -> Iterator[tuple[str, Callable[[int], bool]]]:
    """Which of ``count`` differentiable operands require grad: all, then one at a time."""
    yield "", lambda i: True
    if alone and 1 < count <= 4:
        for k in range(count):
            yield f" (grad of {k})", lambda i, k=k: i == k


def run_call(table: Table, what: str, theirs: Callable, mine: Callable, args: Any, kwargs: Any, alone: bool) -> None:
    """Compare one call for every choice of operands that require grad."""
    own_args, own_kwargs = ours((args, kwargs))
    count = sum(t.requires_grad for t in leaves((args, kwargs)))
    for which, mask in masks(count, alone):
        try:
            torch.manual_seed(0)
            expected = answers(theirs, args, kwargs, mask)
        except builtins.Exception:  # no derivative there
            continue
        if not expected:
            continue
        try:
            compare(table, what + which, expected, answers(mine, own_args, own_kwargs, mask))
        except builtins.Exception as error:
            table.failures.append(f"{what}{which}: {type(error).__name__}: {' '.join(str(error).split())[:160]}")


def check(op: Any, most: int | None = None, dtype: torch.dtype = torch.float64) -> Table:
    """All samples of an op (``most`` of them), as a function and in place."""
    table = Table(title(op))
    function = find(op)
    if function is None or not op.supports_autograd or dtype not in op.supported_dtypes("cpu"):
        return table
    kinds = [("", op, function)]
    for what, theirs, mine in spellings(op):
        if what == "in place" and op.supports_inplace_autograd and mine is not None:
            kinds.append((" in place", theirs, mine))
    for k, sample in enumerate(samples_of(op, dtype, True)[:most]):
        if not any(t.requires_grad for t in leaves((sample.input, sample.args, sample.kwargs))):
            continue
        for kind, theirs, mine in kinds:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with contextlib.suppress(Unsupported):
                    args = (sample.input, *sample.args)
                    run_call(table, f"#{k}{kind}", theirs, mine, args, sample.kwargs, k < ALONE)
    return table


def main(names: list[str]) -> None:
    tables = []
    for op in op_db:
        if outside(title(op)) or (names and op.name not in names):
            continue
        table = check(op, None if names else 12)
        tables.append(table)
        if table.differences or table.failures:
            print(f"{table.name}: {len(table.differences)} of {table.pairs} pairs", flush=True)
            for text in (table.differences if names else table.differences[:6]) + table.failures[:3]:
                print("          ", text, flush=True)
    pairs, wrong = sum(t.pairs for t in tables), sum(len(t.differences) for t in tables)
    print(f"{pairs} pairs of {len(tables)} ops compared, {wrong} differ, {sum(len(t.failures) for t in tables)} calls failed.")


if __name__ == "__main__":
    main(sys.argv[1:])
