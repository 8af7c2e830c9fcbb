"""Optimizers whose update of all parameters of a group is one kernel over lists of arrays."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from .. import dtypes, launch, threads
from ..graph.modes import enable_grad, no_grad
from ..launch import Kernel
from ..ops.core.registry import OPS
from ..ops.creation.cast import dense
from ..tensor import Tensor
from .optimizer import Optimizer


class Update(Kernel):
    """A kernel of `autograd_nb.kernels.optim` made by `updates.update`, and the names of what it changes besides the parameter."""

    __slots__ = ("counters", "names", "states")

    def __init__(self, name: str, states: tuple[str, ...] = (), counters: tuple[str, ...] = ()):
        super().__init__("optim", name, outputs=1 + len(states) + len(counters))
        self.states, self.counters, self.names = states, counters, states + counters


class Fused(Optimizer):
    """An optimizer whose update is one kernel.

    A subclass says, for a group, which kernel and its numbers (`_plan`), and how the state of a parameter begins (`_begin`).
    """

    def _plan(self, group: dict[str, Any]) -> tuple[Update, tuple[float, ...]]:
        raise NotImplementedError

    def _begin(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        raise NotImplementedError

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        closure: computes the loss again and returns it, with recording on. Returns what it returned, else None.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        launch.looked()
        everything = self.state
        for group in self.param_groups:
            if group.get("differentiable"):
                raise NotImplementedError(
                    f"{type(self).__name__}(differentiable=True) is not supported: write the update with tensor operations to "
                    "differentiate through it"
                )
            params = [p for p in group["params"] if p._grad is not None]
            if not params:
                continue
            kernel, numbers = self._plan(group)
            states = [everything[p] for p in params]
            for p, state in zip(params, states, strict=True):
                if kernel.states[0] not in state:
                    with no_grad():
                        self._begin(p, state, group)
            update(kernel, numbers, [[p._grad for p in params], params, *[[s[name] for s in states] for name in kernel.names]])
        return loss


# ------------------------------------------------------------------------------------------- rows and columns
#
# A *row* is what one parameter's update works on: gradient, parameter, states and counters, in the kernel's order. A *column* is one
# of these of many parameters.

_PLAIN = (dtypes.float32, dtypes.float64)


def is_plain(row: list[Tensor]) -> bool:
    """Whether a kernel can work on the memory of a row itself; the gradient may be laid out in another way."""
    return row[1]._layout.dtype in _PLAIN and all(t._layout.contiguous for t in row[1:])


def through_copies(row: list[Tensor], work: Callable[[list[Tensor]], None]) -> None:
    """``work(row)`` for parameters in other layouts, of half precision, and for complex ones."""
    p = row[1]
    if p.dtype.is_complex:  # both parts are parameters of their own
        with no_grad():
            parts = [OPS["view_as_real"].call(t.detach()) if t.dtype.is_complex else t for t in row]
        if is_plain(parts):
            work(parts)
        else:
            through_copies(parts, work)
        return
    with no_grad():
        d = dtypes.float32 if p.dtype.name == "float16" else p.dtype
        copies = [t.detach().to(d if t.dtype.name == "float16" else t.dtype).contiguous().clone() for t in row]
        work(copies)
        for target, value in zip(row[1:], copies[1:], strict=True):
            target.copy_(value)


class _Plan:
    """What the layouts of a row's tensors say, for all rows of an update.

    ``launches``: (key of the kernel, rows, sizes of their parameters, which of the rows have a gradient laid out in another way than
    the parameter, work). ``odd``: rows that go through copies.
    """

    __slots__ = ("launches", "odd")

    def __init__(self, rows: list[list[Tensor]], counters: int):
        for g, p, *states in rows:
            for t in (g, *states[: len(states) - counters]):
                if t._layout.size != p._layout.size:  # the parameter's memory has been replaced
                    raise RuntimeError(
                        f"The size of tensor a ({p._layout.size}) must match the size of tensor b ({t._layout.size})"
                    )
        self.odd: list[int] = []
        alike: dict[tuple, list[int]] = {}
        for i, row in enumerate(rows):
            same = alike.setdefault(tuple([t.dtype for t in row]), []) if is_plain(row) else self.odd
            same.append(i)
        self.launches = []
        for key, everyone in alike.items():
            for k in range(0, len(everyone), launch.MOST):
                chosen = everyone[k : k + launch.MOST]
                sizes = [rows[i][1]._layout.size for i in chosen]
                scattered = [k for k, i in enumerate(chosen) if rows[i][0]._layout is not rows[i][1]._layout]
                self.launches.append((key, chosen, sizes, scattered, 4 * sum(sizes)))


_plans: dict[tuple, _Plan] = launch.plan_table()


def update(kernel: Update, numbers: tuple, columns: list[list[Tensor]]) -> None:
    """Run an update in the parameters' own memory. ``columns``: gradients, parameters, and what the kernel's names stand for."""
    layouts = (kernel, *[t._layout for column in columns for t in column])
    plan = _plans.get(layouts)
    if plan is None:
        everyone = [list(row) for row in zip(*columns, strict=True)]
        plan = launch.keep(_plans, layouts, _Plan(everyone, len(kernel.counters)), launch.MOST)
    for i in plan.odd:
        through_copies([column[i] for column in columns], lambda row: update(kernel, numbers, [[t] for t in row]))
    for key, rows, sizes, scattered, work in plan.launches:
        arrays = [[column[i]._data for i in rows] for column in columns]
        for k in scattered:
            arrays[0][k] = dense(columns[0][rows[k]].detach())
        if [a.size for a in arrays[1]] != sizes:  # other arrays may go on behind what the kernel asks of them
            arrays[1] = [a[:n] for a, n in zip(arrays[1], sizes, strict=True)]
        if work < threads.WORTH or not _apart(arrays):
            kernel(key, *numbers, True, *arrays)
        else:
            counters = len(arrays) - len(kernel.counters)
            kernel.split(key, (*numbers, False, *arrays), _Cut(len(numbers), counters))
            if kernel.counters:  # once all pieces have read them
                none = [[a[:0] for a in column] for column in arrays[:counters]]
                kernel(key, *numbers, True, *none, *arrays[counters:])
        for i in rows:
            columns[1][i]._version_[0] += 1


def _apart(columns: list[list[np.ndarray]]) -> bool:
    """Whether no parameter's memory is a part of another's, or another's gradient: else they are updated one after the other."""
    seen = sorted((a.__array_interface__["data"][0], a.nbytes) for column in columns[:2] for a in column)
    return all(at + n <= after for (at, n), (after, _) in pairwise(seen)) and all(
        len({*map(id, c)}) == len(c) for c in columns[2:]
    )


class _Cut:
    """The pieces of an update's arguments for several threads, none of which counts: nearly equal shares of all elements."""

    __slots__ = ("begin", "end")

    def __init__(self, begin: int, end: int):
        self.begin, self.end = begin, begin + 1 + end  # of the columns, behind numbers and ``counts``; counters are not cut

    def __call__(self, args: tuple) -> list[tuple]:
        begin, end = self.begin, self.end
        sizes = [a.size for a in args[begin + 2]]
        rooms = [-(-n // threads.ALIGN) * threads.ALIGN for n in sizes]
        found = []
        for first, last in threads.pieces(sum(rooms), sum(rooms) * (end - begin - 1), threads.ALIGN):
            at = 0
            chosen = []
            for k, (size, room) in enumerate(zip(sizes, rooms, strict=True)):
                low, high = max(first - at, 0), min(last - at, size)
                if low < high:
                    chosen.append((k, low, high))
                at += room
            cut = [[column[k][low:high] for k, low, high in chosen] for column in args[begin + 1 : end]]
            found.append((*args[: begin + 1], *cut, *[[column[k] for k, _, _ in chosen] for column in args[end:]]))
        return found
