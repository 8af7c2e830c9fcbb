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

from .children import Case
from .mutants import copies, difference, groups_of, samples
from .opdb import RANDOM, find, ours
from .verdicts import arguments, report, run

#: parameters that are no ints, flags or dims, or say where a result goes
LEFT_OUT = {"legacy", "out", "dtype", "device", "layout", "generator", "requires_grad", "pin_memory", "memory_format", "names", "size_average", "reduce"}
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


#: (why, patterns of lines) of the differences that stay
KNOWN: list[tuple[str, tuple[str, ...]]] = [
    ("functions that PyTorch writes in Python stumble over some arguments, and take others for what Python takes them for", (
        "masked.*", "nn.functional.max_unpool*", "nn.functional.linear_cross_entropy (chunked*", "nn.functional.unfold *", "to *=*", "svd_lowrank q=*",
        "nn.functional.adaptive_avg_pool3d *", "nn.functional.fractional_max_pool*=tensor(0) *", "norm (fro) dim=tensor(0) *")),
    ("operators that PyTorch writes in Python take an alpha, whatever it is", ("__r* alpha=*", "rsub alpha=None *")),
    ("None stands for no dim, or for the default", (
        "* dim=None for *: accepted: *", "* axis=None for *: accepted: *", "* 1=None for *: accepted: *", "constant_pad_nd value=None *",
        "std* unbiased=None *", "var* unbiased=None *")),
    ("an order of a norm is a number here, neither a bool nor a tensor", (
        "dist *: refused: *", "linalg.norm ord=*: refused: *", "linalg.vector_norm ord=*: refused: *", "linalg.cond p=*: refused: *", "norm 1=*: refused: *",
        "nn.functional.triplet_margin_loss p=*: refused: *", "linalg.matrix_norm *: kind: *")),
    ("one int stands for a tuple of it", (
        "* for (*: accepted: PyTorch TypeError: *must be tuple of ints, not *", "* for (*: kind: *PyTorch TypeError: *",
        "tensor_split 1=* for (*", "aminmax dim=(tensor(0),) *", "repeat_interleave repeats=*", "unsafe_split 1=(tensor(0),) *")),
    ("True among several ints is 1", (
        "*split 1=*True* for *: accepted: *", "unravel_index 1=True *", "native_group_norm *=True *")),
    ("both refuse, by another of two faults", (
        "nn.functional.pad (*) value=*: kind: *", "gradient edge_order=*: kind: *", "*split 1=tensor(1.0) *: kind: *", "narrow_copy *: kind: *",
        "repeat_interleave output_size=*", "div * rounding_mode=*: kind: *", "stft onesided='a' *")),
    ("PyTorch's result for no element of a single number has no dim", ("topk 1=tensor(0) *: wrong: *",)),
    ("whatever is equal to 1 or 2", ("gradient edge_order=*: accepted: *",)),
    ("a 0-d tensor is no size here where PyTorch asks for one int", ("randint_like *=tensor(1.0) *", "split * 1=tensor(1.0) *", "split 1=tensor(1.0) *")),
]


if __name__ == "__main__":
    _, every, given = arguments(["", *sys.argv[1:]])
    sys.exit(report(list(groups_of(given, cases)), KNOWN, every, every == 1 and not given))
