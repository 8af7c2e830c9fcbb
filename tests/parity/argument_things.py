"""Arguments that are no such thing at all: each argument of an op, its tensors too, as text, a list of it, an object, a dict, an array, 1j.

``python -m tests.parity.argument_things [--every N] [op…]`` prints each call that ends in words of Python's or NumPy's own, which name neither
the argument nor the remedy (`verdicts.RAW`), or in an exception that only a fault of the library raises. What PyTorch takes, or
stumbles over itself, is passed over.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from .children import Case
from .mutants import copies, groups_of, samples
from .opdb import find, ours
from .verdicts import RAW, arguments, report, run, said


class Thing:
    """What no function takes."""

    def __repr__(self) -> str:
        return "Thing()"


THINGS: dict[str, Callable[[], Any]] = {
    "'a'": lambda: "a", "['a']": lambda: ["a"], "None": lambda: None, "Thing()": Thing, "{}": dict, "1j": lambda: 1j, "array": lambda: np.ones(3),
}  # fmt: skip
#: exceptions that tell of a fault of the library, not of the caller
FAULTS = (AttributeError, KeyError, NameError, SystemError, RecursionError, UnboundLocalError)


def cases(op: Any) -> Iterator[Case]:
    mine = find(op)
    for args, kwargs in samples(op, most=1) or samples(op, torch.int64, most=1):
        for place in (*range(len(args)), *kwargs):
            for what, make in THINGS.items():
                a = (*args[:place], make(), *args[place + 1 :]) if isinstance(place, int) else args
                kw = kwargs if isinstance(place, int) else {**kwargs, place: make()}
                yield f"{place}={what}", lambda a=a, kw=kw: words(op, mine, a, kw)


def words(op: Any, mine: Any, args: tuple, kwargs: dict) -> str:
    """What our function says of a call that PyTorch refuses in words of its own, where ours help nobody."""
    a, kw = copies((args, kwargs))
    how, theirs = run("PyTorch", lambda: op(*a, **kw))
    if how != "refused" or isinstance(theirs, FAULTS) or RAW.search(str(theirs)):
        return ""
    a, kw = ours(copies((args, kwargs)))
    how, error = run("ours", lambda: mine(*a, **kw))
    return f"raw: {said(error)}" if how == "refused" and (isinstance(error, FAULTS) or RAW.search(str(error))) else ""


#: (why, patterns of lines) of the calls that stay so
KNOWN: list[tuple[str, tuple[str, ...]]] = [
    ("a method of Tensor that is called on what is none", (
        "__getitem__ 0=*", "cdouble 0=*", "cfloat 0=*", "item 0=*")),
    ("None stands for what is missing", ("flip dims=None: *",)),
    ("an order of a masked norm is compared with words", ("masked.norm 1=array: *", "masked.normalize 1=array: *")),
]


if __name__ == "__main__":
    _, every, given = arguments(["", *sys.argv[1:]])
    sys.exit(report(list(groups_of(given, cases)), KNOWN, every, every == 1 and not given))
