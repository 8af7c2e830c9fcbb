"""Arguments of another kind than PyTorch takes: each int, flag, dim and tuple of ints of an op as a float, a bool, a string, a tensor and None.

``python -m tests.parity.argument_kinds [--every N] [op…]`` prints each call on which the libraries differ (`verdicts.CATEGORIES`), of the
first small sample of every op in PyTorch's database: what the sample gives, and what the signature here has besides. Each bad call is made
after a good one of the same op, as what is known of that must not let 1.0 pass for True.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

from .children import Case, Group
from .mutants import DANGEROUS, copies, difference, samples
from .opdb import RANDOM, find, ours, outside, title
from .verdicts import arguments, report, run

#: parameters that are no ints, flags or dims, or say where a result goes
LEFT_OUT = {"out", "dtype", "device", "layout", "generator", "requires_grad", "pin_memory", "memory_format", "names", "size_average", "reduce"}
KINDS: dict[str, Callable[[], Any]] = {
    "1.0": lambda: 1.0, "0.0": lambda: 0.0, "True": lambda: True, "1": lambda: 1, "'a'": lambda: "a", "None": lambda: None,
    "tensor(0)": lambda: torch.tensor(0), "tensor(1.0)": lambda: torch.tensor(1.0), "(0.0,)": lambda: (0.0,), "(True,)": lambda: (True,),
    "('a',)": lambda: ("a",), "(tensor(0),)": lambda: (torch.tensor(0),),
}  # fmt: skip


def plain(value: Any) -> bool:
    """Whether a value is an int, a flag or several ints: what the walk changes."""
    if isinstance(value, (tuple, list)):
        return bool(value) and all(isinstance(v, int) for v in value)
    return isinstance(value, int)


def unused(op: Any, mine: Callable, args: tuple, kwargs: dict) -> Iterator[tuple[str, Any]]:
    """(name, default) of the parameters that a sample does not give, as far as PyTorch's function has them too."""
    try:
        parameters = list(inspect.signature(mine).parameters.values())
    except (TypeError, ValueError):
        return
    for k, p in enumerate(parameters):
        known = k < len(args) or p.name in kwargs or p.name in LEFT_OUT or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY)
        if known or not (plain(p.default) or p.default is None):
            continue
        value = 0 if p.default is None and p.name in ("dim", "axis") else p.default
        a, kw = copies((args, {**kwargs, p.name: value}))
        if run("PyTorch", lambda a=a, kw=kw: op(*a, **kw))[0] == "made":
            yield p.name, value


def cases(op: Any) -> Iterator[Case]:
    mine = find(op)
    values = not any(r in op.name for r in RANDOM)
    for args, kwargs in samples(op, most=1) or samples(op, torch.int64, most=1):
        places: list[tuple[Any, Any]] = [(k, v) for k, v in enumerate(args) if plain(v)]
        places += [(name, v) for name, v in kwargs.items() if plain(v)]
        for place, value in [*places, *unused(op, mine, args, kwargs)]:
            yield from calls(op, mine, args, kwargs, place, value, values)


def calls(op: Any, mine: Any, args: tuple, kwargs: dict, place: Any, value: Any, values: bool) -> Iterator[Case]:
    for what, make in {"as it is": lambda: value, **KINDS}.items():
        bad = make()
        if what != "as it is" and type(bad) is type(value) and bad == value:
            continue
        a = (*args[:place], bad, *args[place + 1 :]) if isinstance(place, int) else args
        kw = kwargs if isinstance(place, int) else {**kwargs, place: bad}
        good = (args, kwargs) if isinstance(place, int) else (args, {**kwargs, place: value})
        yield f"{place}={what} for {value}", lambda a=a, kw=kw, good=good: after(op, mine, good, a, kw, values)


def after(op: Any, mine: Any, good: tuple[tuple, dict], args: tuple, kwargs: dict, values: bool) -> str:
    """How the libraries differ on a call that follows a good one."""
    a, kw = ours(copies(good))
    run("ours", lambda: mine(*a, **kw))
    return difference(op, mine, args, kwargs, values)


def groups(names: list[str]) -> Iterator[Group]:
    for op in op_db:
        safe = op.name not in DANGEROUS["numbers"] and not outside(title(op))
        if op.name in names if names else safe and find(op) is not None:
            yield title(op), lambda o=op: cases(o)


KNOWN: list[tuple[str, tuple[str, ...]]] = []


if __name__ == "__main__":
    _, every, given = arguments(["", *sys.argv[1:]])
    sys.exit(report(list(groups(given)), KNOWN, every, every == 1 and not given))
