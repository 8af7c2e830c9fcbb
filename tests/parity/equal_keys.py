"""Calls whose numbers are equal and of other types, 1, 1.0, True, np.int64(1), tensor(1), one after the other, in every order.

What is known of one of them must not pass for another: 1 == 1.0 == True, and their hashes are the same. Each call's outcome (values, dtype, shape,
strides, history, gradients, or the exception) behind each other one is compared with that of the first call when nothing is known yet.

``python -m tests.parity.equal_keys [--part K/N] [op…]`` prints what differs, of samples of every op in PyTorch's database;
`test_walks` runs a part of it.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import autograd_nb as ag
from autograd_nb import launch

from .mutants import copies, samples
from .opdb import Unsupported, find, leaves, ours, outside, spellings, title

MOST = 2  #: samples of each kind of number
Place = tuple[Any, ...]  #: where a number stands in (args, kwargs)


def twins(value: Any) -> dict[str, Callable[[], Any]]:
    """Numbers that are equal to this one, by their texts."""
    made: dict[str, Callable[[], Any]] = {"as it is": lambda: value}
    if isinstance(value, bool) or value in (0, 1):
        made |= {"bool": lambda: bool(value), "np.bool_": lambda: np.bool_(value)}
    if value == int(value):
        whole = int(value)
        made |= {"int": lambda: whole, "np.int64": lambda: np.int64(whole), "np.int32": lambda: np.int32(whole)}
        made |= {"tensor(int)": lambda: ag.tensor(whole)}
    number = float(value)
    made |= {"float": lambda: number, "np.float64": lambda: np.float64(number), "tensor(float)": lambda: ag.tensor(number)}
    if float(np.float32(number)) == number:
        made |= {"np.float32": lambda: np.float32(number)}
    return {what: make for what, make in made.items() if what != type(value).__name__}


def numbers(tree: Any, at: Place = ()) -> Iterator[tuple[Place, Any]]:
    """(place, number) of all finite real numbers in a tree of arguments."""
    if isinstance(tree, (bool, int, float)):
        if tree == tree and abs(tree) < 1 << 40:
            yield at, tree
    elif isinstance(tree, (list, tuple)):
        for k, v in enumerate(tree):
            yield from numbers(v, (*at, k))
    elif isinstance(tree, dict):
        for k, v in tree.items():
            yield from numbers(v, (*at, k))


def put(tree: Any, at: Place, value: Any) -> Any:
    """The tree with another value at a place."""
    if not at:
        return value
    if isinstance(tree, dict):
        return {k: put(v, at[1:], value) if k == at[0] else v for k, v in tree.items()}
    made = [put(v, at[1:], value) if k == at[0] else v for k, v in enumerate(tree)]
    return made if isinstance(tree, list) else tuple(made)


def described(tree: Any) -> Any:
    """What is compared of results and operands."""
    if isinstance(tree, ag.Tensor):
        node = type(tree.grad_fn).__name__ if tree.grad_fn is not None else ""
        bits = tree.detach().contiguous().view(ag.uint8).numpy().tobytes() if tree.ndim and tree.numel() else repr(tree.detach())
        return tree.dtype, tuple(tree.shape), tree.stride(), tree.requires_grad, node, bits
    if isinstance(tree, (list, tuple)):
        return type(tree).__name__, [described(v) for v in tree]
    return type(tree).__name__, repr(tree)


def called(function: Callable, args: Any, kwargs: Any, at: Place, make: Callable[[], Any], recorded: bool) -> Any:
    """What a call with another number at a place comes to, and its backward pass."""
    given = ours(copies((args, kwargs)))
    inputs = [t for t in leaves(given) if recorded and (t.is_floating_point() or t.is_complex())]
    for t in inputs:
        t.requires_grad_()
    a, kw = put(given, at, make())
    ag.manual_seed(0)
    try:
        result = function(*a, **kw)
        found = [described(result), described([t.detach() for t in leaves(given)])]
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    live = [t for t in leaves(result) if t.requires_grad]
    if live and inputs:
        try:
            found.append(described(list(ag.autograd.grad(live, inputs, [ag.ones_like(t) for t in live], allow_unused=True))))
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    return found


def walk(op: Any) -> Iterator[str]:
    """What differs, of an op's samples of floats and of integers."""
    ways = [("function", find(op)), *[(what, mine) for what, _, mine in spellings(op)]]
    for args, kwargs in samples(op, most=MOST) + samples(op, torch.int64, most=MOST):
        for spelling, function in ways:
            for at, value in numbers((args, kwargs)) if function is not None else ():
                call = partial(called, function, args, kwargs, at, recorded="place" not in spelling)
                with contextlib.suppress(Unsupported):
                    yield from orders(f"{title(op)} ({spelling}) {at} = {value!r}", call, twins(value))


def orders(what: str, call: Callable, made: dict[str, Callable[[], Any]]) -> Iterator[str]:
    """What differs, of numbers at one place."""
    first = {}
    for kind, make in made.items():
        launch.forget()
        first[kind] = call(make)
        launch.forget()
        if call(make) != first[kind]:
            return  # what a call comes to is not the same each time
    for before, earlier in made.items():
        launch.forget()
        call(earlier)
        for kind, make in made.items():
            if kind != before:
                COUNT[0] += 1
                found = call(make)
                if found != first[kind]:
                    yield f"{what}: {kind} behind {before}: {found!r:.150}\n    and not {first[kind]!r:.150}"
                    break  # what is known by now is wrong


COUNT = [0]


def main(words: list[str]) -> int:
    warnings.simplefilter("ignore")
    part, of = map(int, words[1].split("/")) if words[:1] == ["--part"] else (0, 1)
    names = words[2:] if words[:1] == ["--part"] else words
    chosen = [op for op in op_db if (op.name in names if names else not outside(title(op)))]
    found = [text for op in chosen[part::of] for text in walk(op)]
    print("\n".join(found))
    print(f"{len(found)} differences in {COUNT[0]} calls of {len(chosen[part::of])} ops")
    return len(found) > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
