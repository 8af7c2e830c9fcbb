"""Compiled calls against eager ones, for every differentiable op of PyTorch's database: what they give, refuse, and whose memory it is.

``python -m tests.parity.compiled [--part K N] [name…]`` calls each op three times, compiled and eagerly: as it is, and in a function
that changes an operand, or a result, in place after the op has saved it. Each call's results, `requires_grad`, presence of `grad_fn`,
gradients, errors and the moment of these must be the same. And no two of the following may share memory, over all three calls: `.grad`
of leaves, gradients that hooks get, retained gradients, results of `autograd.grad`, the user's ``gradient=``, and results of compiled
calls as far as results of eager ones do not. With ``NUMBA_DISABLE_JIT=1`` programs are run by Python, which is quicker.
"""

from __future__ import annotations

import builtins
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import autograd_nb as ag

from ..compiler import interpreted
from .opdb import Unsupported, find, leaves, ours, outside, samples_of, title

CALLS = 3
SIZE = 2_000  #: elements of a sample at most
#: entries whose differences are known, and why
KNOWN: dict[str, str] = {}


@dataclass
class Seen:
    """What one run of calls did: ``told`` can be compared, ``memory`` has everything that owns some, by name."""

    told: list[tuple[str, Any]] = field(default_factory=list)
    memory: dict[str, np.ndarray] = field(default_factory=dict)

    def tell(self, what: str, value: Any) -> None:
        if isinstance(value, ag.Tensor):
            look = value.detach()
            self.told.append((what, (str(value.dtype), tuple(value.shape), look.numpy().copy())))
        else:
            self.told.append((what, value))

    def hold(self, name: str, t: Any) -> None:
        self.memory[name] = t.detach().numpy()


def mapped(tree: Any, f: Callable[[Any], Any]) -> Any:
    """An argument tree with ``f`` of its tensors."""
    if isinstance(tree, ag.Tensor):
        return f(tree)
    if isinstance(tree, (list, tuple)):
        return (
            type(tree)(mapped(v, f) for v in tree)
            if not hasattr(tree, "_fields")
            else type(tree)(*[mapped(v, f) for v in tree])
        )
    return {k: mapped(v, f) for k, v in tree.items()} if isinstance(tree, dict) else tree


def plain(op: Callable, *args: Any, **kwargs: Any) -> Any:
    return op(*args, **kwargs)


def operand_changed(op: Callable, *args: Any, **kwargs: Any) -> Any:
    made: list[Any] = []

    def apart(t: Any) -> Any:
        if not t.dtype.is_floating_point:
            return t
        made.append(t.clone())
        return made[-1]

    args, kwargs = mapped((args, kwargs), apart)
    out = op(*args, **kwargs)
    with ag.no_grad():
        made[0].mul_(0.75)
    return out


def result_changed(op: Callable, *args: Any, **kwargs: Any) -> Any:
    out = op(*args, **kwargs)
    next(t for t in leaves(out) if t.requires_grad).mul_(0.75)
    return out


WAYS = {"plain": plain, "an operand changed": operand_changed, "a result changed": result_changed}


def attempt(seen: Seen, what: str, f: Callable[[], Any]) -> Any:
    """What ``f`` gives; what it raises is told."""
    try:
        return f()
    except builtins.Exception as error:
        seen.tell(what, type(error).__name__)
        return None


def one_call(seen: Seen, k: int, function: Callable, args: Any, kwargs: Any) -> None:
    """Call, look at the results, and run passes through them."""
    inputs = [t for t in leaves((args, kwargs)) if t.requires_grad]
    ag.manual_seed(0)
    out = attempt(seen, f"call {k}", lambda: function(*args, **kwargs))
    if out is None:
        return
    made = list(leaves(out))
    for i, t in enumerate(made):
        seen.tell(f"result {i} of call {k}", t)
        seen.tell(
            f"requires_grad, grad_fn, is_leaf of result {i} of call {k}", (t.requires_grad, t.grad_fn is not None, t.is_leaf)
        )
        if not any(t is a for a in leaves((args, kwargs))):
            seen.hold(f"result {i} of call {k}", t)
    outs = [t for t in made if t.requires_grad]
    if not outs or not inputs:
        return
    hooked: list[Any] = []
    for t in outs:
        t.register_hook(hooked.append)
        if not t.is_leaf:
            t.retain_grad()
    seeds = [ag.ones_like(t) * (1 + i) for i, t in enumerate(outs)]
    asked = attempt(
        seen, f"grad of call {k}", lambda: ag.autograd.grad(outs, inputs, seeds, retain_graph=True, allow_unused=True)
    )
    for _ in range(2):
        attempt(seen, f"backward of call {k}", lambda: ag.autograd.backward(outs, seeds, retain_graph=True))
    for name, found in (
        ("gradient of grad", asked or ()), (".grad", [t.grad for t in inputs]), ("retained gradient", [t.grad for t in outs if not t.is_leaf]),
        ("gradient in a hook", hooked), ("gradient given", seeds),
    ):  # fmt: skip
        for i, g in enumerate(found):
            seen.tell(f"{name} {i} of call {k}", g)
            if g is not None:
                seen.hold(f"{name} {i} of call {k}", g)


def several(function: Callable, args: Any, kwargs: Any) -> Seen:
    """``CALLS`` calls, each with tensors of its own."""
    seen = Seen()
    for k in range(CALLS):

        def fresh(t: Any, k: int = k) -> Any:
            new = t.detach().clone()
            if k == 2 and t.dtype.is_floating_point:
                new.mul_(0.96)
            return new.requires_grad_(t.requires_grad)

        own_args, own_kwargs = mapped((args, kwargs), fresh)
        attempt(seen, f"looking at call {k}", partial(one_call, seen, k, function, own_args, own_kwargs))
    return seen


def shared(seen: Seen) -> set[tuple[str, str]]:
    """Names of what has memory in common."""
    names = [n for n, a in seen.memory.items() if a.size]
    return {(a, b) for i, a in enumerate(names) for b in names[i + 1 :] if np.may_share_memory(seen.memory[a], seen.memory[b])}


def same(a: Any, b: Any) -> bool:
    if not (
        isinstance(a, tuple) and isinstance(b, tuple) and a and isinstance(a[-1], np.ndarray) and isinstance(b[-1], np.ndarray)
    ):
        return bool(a == b) and type(a) is type(b)
    if a[:-1] != b[:-1]:
        return False
    return (
        np.allclose(a[-1], b[-1], rtol=1e-7, atol=1e-9, equal_nan=True)
        if a[-1].dtype.kind in "fc"
        else np.array_equal(a[-1], b[-1])
    )


def differences(mine: Seen, theirs: Seen) -> Iterator[str]:
    for (what, a), (name, b) in zip(mine.told, theirs.told):
        if what != name or not same(a, b):
            yield f"{what}: {str(a)[:150]} instead of {name}: {str(b)[:150]}"
            return
    if len(mine.told) != len(theirs.told):
        yield f"{mine.told[-1][0]} is the last that is seen instead of {theirs.told[-1][0]}"
    eager = shared(theirs)
    for a, b in sorted(eager):
        if not (a.startswith("result") and b.startswith("result")):
            yield f"eager: {a} and {b} share memory"
    for a, b in sorted(shared(mine) - eager):
        yield f"{a} and {b} share memory"


@dataclass
class Table:
    """What was compared for one op."""

    name: str
    calls: int = 0
    captured: int = 0  # functions that became programs
    differences: list[str] = field(default_factory=list)


def check(op: Any, most: int) -> Table:
    """Some samples of an op, in all ways."""
    table = Table(title(op))
    function = find(op)
    if function is None or not op.supports_autograd or torch.float64 not in op.supported_dtypes("cpu"):
        return table
    tried = 0
    for k, sample in enumerate(samples_of(op, torch.float64, True)):
        given = list(leaves((sample.input, sample.args, sample.kwargs)))
        if not any(t.requires_grad for t in given) or sum(t.numel() for t in given) > SIZE:
            continue
        try:
            args, kwargs = ours(((sample.input, *sample.args), sample.kwargs))
        except Unsupported:
            continue
        for what, way in WAYS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")

                def call(*a: Any, way: Callable = way, **kw: Any) -> Any:
                    return way(function, *a, **kw)

                compiled = ag.compile(call)
                theirs, mine = several(call, args, kwargs), several(compiled, args, kwargs)
            table.calls += CALLS
            table.captured += bool(compiled.programs)
            table.differences += [f"#{k} {what}: {text}" for text in differences(mine, theirs)]
        tried += 1
        if tried == most:
            break
    return table


def walk(names: list[str], part: int, parts: int, most: int) -> Iterator[Table]:
    """The tables of the ops of these names, or of one of ``parts`` parts of all."""
    for k, op in enumerate(op_db):
        if not outside(title(op)) and (op.name in names if names else k % parts == part):
            yield check(op, most)


def main(arguments: list[str]) -> int:
    interpreted.install()
    part, parts = 0, 1
    if arguments[:1] == ["--part"]:
        part, parts, arguments = int(arguments[1]), int(arguments[2]), arguments[3:]
    ops = calls = captured = wrong = 0
    for table in walk(arguments, part, parts, 4 if arguments else 1):
        ops += table.calls > 0
        calls, captured = calls + table.calls, captured + table.captured
        if table.name in KNOWN:
            continue
        wrong += bool(table.differences)
        for text in table.differences[: None if arguments else 4]:
            print(f"{table.name} {text}", flush=True)
    print(f"{ops} ops, {calls} calls, {captured} of {calls // CALLS} functions became programs; {wrong} ops differ.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
