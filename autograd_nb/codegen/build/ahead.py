"""What a compile worker has to do: kernels that a program is going to need, in that order, and which of them is compiled next."""

from __future__ import annotations

import contextlib
from functools import cached_property
from types import FunctionType
from typing import Any

from . import compilation, machine_code, workers

FORWARD, BACKWARD, UPDATE = range(3)  #: what a program needs first, and then; of backward passes the last that was noted first

Order = tuple[int, int]


class Kernel:
    """A kernel that will be needed. ``first``, ``rest``: a text or function and what follows, as `compilation.build` takes them."""

    def __init__(self, order: Order, wanted: Any, first: Any, *rest: Any):
        self.order = order
        self.given: tuple[FunctionType, tuple[str, ...], str, bool]
        self.length: int
        if isinstance(first, str):
            name, argtypes, checked = rest
            self.given = compilation.defined(wanted, first, name), argtypes, first, checked
            self.length = len(first)
        else:
            self.given = getattr(first, "py_func", first), rest[0], "", rest[1]
            self.length = length(first)

    @cached_property
    def key(self) -> str | None:
        """Return its name in the cache; None where it cannot be kept."""
        return compilation._key(*self.given)

    def is_needed(self) -> bool:
        """Return whether nobody has compiled it yet."""
        return self.key is not None and not machine_code.holds(self.key)

    def is_free(self, claims: int) -> bool:
        """Return whether nobody has begun to compile it."""
        assert self.key is not None
        with workers.unclaimed(claims, self.key) as free:
            return free


def length(function: Any) -> int:
    """Return how much code there is in a function and those that it calls, about as many bytes as a text has letters."""
    found: dict[FunctionType, int] = {}
    left = [function]
    while left:
        one = left.pop()
        one = getattr(one, "py_func", one)
        if isinstance(one, FunctionType) and one not in found:
            found[one] = len(one.__code__.co_code)
            left += [one.__globals__[n] for n in one.__code__.co_names if n in one.__globals__]
    return sum(found.values())


class Queue:
    """Kernels that are to be compiled, each of which is asked for once."""

    def __init__(self) -> None:
        self.seen: set[Any] = set()
        self.left: list[Kernel] = []
        self.turns: int = 0

    def turn(self, stage: int, late: int = 0) -> Order:
        """Return when kernels will be needed that are noted now. ``late``: what they are for comes after so many other things."""
        self.turns += 1
        return stage, -self.turns - late if stage == BACKWARD else self.turns + late

    def want(self, order: Order, wanted: Any, *args: Any) -> None:
        """Enter a kernel. ``wanted``: its key in memory."""
        if wanted not in self.seen:
            self.seen.add(wanted)
            self.left.append(Kernel(order, wanted, *args))

    def pick(self, claims: int) -> Kernel | None:
        """Return the kernel that is to be compiled now, None where there is none.

        It is the longest of those that will be ready about when the program comes to need them: it compiles whatever is before them
        meanwhile, and as much again that was not foreseen. Where there is none such, it is the last.
        """
        self.left = sorted([k for k in self.left if k.is_needed()], key=lambda k: k.order)
        before, last, chosen = 0, None, None
        for kernel in self.left:
            if kernel.is_free(claims):
                last = kernel
                if 2 * before >= kernel.length and (chosen is None or kernel.length > chosen.length):
                    chosen = kernel
            before += kernel.length
        chosen = chosen or last
        if chosen is not None:
            self.left.remove(chosen)
        return chosen


def compile_one(claims: int, kernel: Kernel) -> None:
    """Put a kernel into the cache; one that cannot be compiled is the program's business."""
    with contextlib.suppress(Exception):
        compilation.prepare(claims, *kernel.given)
