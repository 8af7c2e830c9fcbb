"""A captured call: when it holds, and how it is run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import launch
from ...graph import modes
from ...tensor import Tensor, make, share_view
from ..capture.recorder import places
from ..guards.carried_state import Kept
from ..guards.guard import Guard
from ..guards.holders import alone
from ..guards.reach import Reach
from ..ir import address, root
from ..live_numbers import _Slot
from ..lower.program import Program
from ..nested import rebuild
from .again import Before, Changes
from .backward import Back


class Argument:
    """A tensor argument as a program saw it."""

    __slots__ = ("buffer", "has_grad", "inference", "layout", "requires_grad", "shares", "shift", "view", "written")

    def __init__(self, t: Tensor, buffer: int | None, shift: int):
        self.layout, self.requires_grad, self.has_grad = t._layout, t.requires_grad, t._grad is not None
        self.buffer, self.shift, self.written = buffer, shift, 0
        self.inference = t._version_[0] < 0
        self.view: tuple | None = None  # see `seen_as`
        #: the state tensor that it is, or (earlier argument, bytes between, whether it is the same tensor)
        self.shares: Tensor | tuple[int, int, bool] | None = None


def seen_as(t: Tensor) -> tuple | None:
    """What decides whether a tensor may be changed in place, besides its own gradient; None where it is no view."""
    base = t._view
    return None if base is None else (t._view_kind, base.requires_grad, base.is_leaf)


class Variant:
    """One captured call: its program, when it holds, and what it does to Python's objects."""

    def __init__(self, key: Any, arguments: list[Argument], guard: Guard, reach: Reach, program: Program):
        self.key, self.arguments, self.guard, self.reach, self.program = key, arguments, guard, reach, program
        self.changed = True  # whether live numbers may have, since the program was last given them
        self.function: Any = None
        self.given: Any = None  # (args, kwargs) with places for tensors
        self.exclusive = False  # whether other aliases among arguments and state mean another program
        self.asked: set[str] = set()  # attributes that arguments were asked for and did not have
        self.written: list[int] = []  # the arguments that it changes
        self.sharing = False  # whether arguments share memory with one another or with state
        self.state_roots: set[int] = set()
        self.order: list[int] = []  # which of ``outputs`` stands at each place of the result
        self.held: list[
            tuple
        ] = []  # (leaf, buffer, layout, shift, how much its version grows) of gradients that it starts from
        self.expects_some: list[Tensor] = []
        self.outputs: list[tuple] = []
        self.result: Any = None
        self.gradients: list[list] = []  # [leaf, tensor or None, buffer, layout, elements, dtype, version, its memory]
        self.versions: list[tuple[Any, int]] = []
        self.expects_none: list[Tensor] = []
        self.decided: list[tuple[_Slot, Any]] = []
        self.reason = ""
        self.plain = True
        self.stores: list[Kept] = []  # where the last of the results are left
        self.carried: list[tuple[Kept, Any]] = []  # places from which the last arguments were taken, and the forms of what was there
        self.carried_leaves = 0  # how many arguments these are
        self.changes: Changes | None = None  # for results of which another run may be needed: what the function changes
        self.back: Back | None = None
        self.quick: Callable[[Any, list[Tensor]], Any] | None = None

    def refuses(self, leaves: list[Tensor]) -> str:
        """Why this program does not serve a call whose key is the same; empty if it does."""
        for t, a in zip(leaves, self.arguments, strict=True):
            if (
                t._layout is not a.layout
                or (t._rg if t._view is None else t.requires_grad) is not a.requires_grad
                or (t._grad is not None) is not a.has_grad
            ):
                return self._other(leaves)
        if self.asked:
            for i, t in enumerate(leaves):
                if not self.asked.isdisjoint(t.__dict__):
                    return f"argument {i} has attributes of its own"
        if modes.inference_used:
            for i, (t, a) in enumerate(zip(leaves, self.arguments, strict=True)):
                if (t._version_[0] < 0) is not a.inference:
                    return f"argument {i} is {'no' if a.inference else 'an'} inference tensor"
        for i in self.written:
            if seen_as(leaves[i]) != self.arguments[i].view:
                return f"argument {i}, which it changes, is a view of another kind"
        if leaves and (self.exclusive or self.sharing):
            shared = self._shared(leaves)
            if shared:
                return shared
        guard = self.guard
        changed = -1 if guard.always is None else guard.always()
        if changed < 0 and not guard.same():
            self.changed = True
            changed = guard.look()
        if changed >= 0:
            return guard.describe(changed)
        for t in self.expects_none:
            if t._grad is not None:
                return "a gradient has been left that was None"
        for t in self.expects_some:
            if t._grad is None:
                return "a gradient is None that was not"
        if self.held:
            for t, _, layout, _, _ in self.held:
                g = t._grad
                if g is None or g._layout is not layout or g._rg:
                    return "a gradient that it adds to is another"
            if len({id(root(t._grad._data)) for t, *_ in self.held} - self.state_roots) != len(self.held):
                return "gradients share memory"
        for slot, value in self.decided:
            if slot.read() != value:
                return "a number that decides what is computed has changed"
        return ""

    def _other(self, leaves: list[Tensor]) -> str:
        """Which argument is of another kind."""
        for i, (t, a) in enumerate(zip(leaves, self.arguments, strict=True)):
            if t._layout is not a.layout:
                wanted = a.layout
                return (
                    f"argument {i} has shape {list(t.shape)}, strides {list(t.stride())}, {t.dtype} and not {list(wanted.shape)}, "
                    f"{list(wanted.strides)}, {wanted.dtype}"
                )
            if t.requires_grad is not a.requires_grad:
                return f"requires_grad of argument {i} is {t.requires_grad}"
            if (t._grad is not None) is not a.has_grad:
                return f"argument {i} has {'no' if t._grad is None else 'a'} gradient"
        return "an argument is of another kind"

    def _shared(self, leaves: list[Tensor]) -> str:
        """Where arguments share memory in another way than when this was captured."""
        if not self.sharing:
            distinct = {id(root(t._data)) for t in leaves}
            if len(distinct) == len(leaves) and distinct.isdisjoint(self.state_roots):
                return ""
        roots = [root(t._data) for t in leaves]
        for i, (t, r, a) in enumerate(zip(leaves, roots, self.arguments, strict=True)):
            if a.shares is None:
                if self.exclusive and (id(r) in self.state_roots or any(r is q for q in roots[:i])):
                    return f"argument {i} shares memory with another argument or with what the function reaches"
            elif isinstance(a.shares, Tensor):
                if t is not a.shares:
                    return f"argument {i} is no longer a tensor that the function reaches"
            else:
                j, between, same = a.shares
                if r is not roots[j] or address(t._data) - address(leaves[j]._data) != between or (t is leaves[j]) is not same:
                    return f"arguments {i} and {j} no longer share memory as they did"
        return ""

    def run(self, leaves: list[Tensor]) -> Any:
        """The results of a call that this program serves."""
        if self.quick is not None:
            return self.quick(self, leaves)
        before = None if self.changes is None else Before(self.changes, leaves)
        results, made, drawn = self._run(leaves)
        if self.back is not None:
            self.back.attach(self, leaves, made, results, drawn, before)
        return self.rebuilt(results)

    def rebuilt(self, results: Any) -> Any:
        """The results in the function's containers."""
        if self.plain:
            return results[0]
        result = rebuild(self.result, iter([results[i] for i in self.order]))
        if self.stores:
            result, kept = result
            for place, value in zip(self.stores, kept, strict=True):
                place.set(value)
        return result

    def _run(self, leaves: list[Tensor]) -> tuple[list[Any], dict[int, np.ndarray], list | None]:
        """Run the program: its results, the memory that was made by the buffers' numbers, and where it found random streams."""
        with self.program.alone() as program:
            for t, a in zip(leaves, self.arguments, strict=True):
                if a.buffer is not None:
                    program.bind(a.buffer, t._data, a.shift)
            for leaf, buffer, _, shift, _ in self.held:
                program.bind(buffer, leaf._grad._data, shift)
                for g in self.gradients:  # what it reads there it must not write over
                    if g[0] is leaf and g[1] is leaf._grad:
                        g[1] = None
            for g in self.gradients:
                self._fresh_gradient(g)
            made: dict[int, np.ndarray] = {}
            if self.back is not None:
                for buffer, size, carrier in self.back.saved:
                    made[buffer] = launch.empty(size, carrier)
                    program.bind(buffer, made[buffer])
            for kind, *spec in self.outputs:
                if kind == "new":
                    buffer, size, carrier = spec[:3]
                    if buffer not in made:
                        made[buffer] = launch.empty(size, carrier)
                        program.bind(buffer, made[buffer])
            program.run()
            drawn = places(program.draws) if self.back is not None and program.draws else []
        for counter, by in self.versions:
            counter[0] += by
        for leaf, _, _, _, by in self.held:
            leaf._grad._version_[0] += by
        counters = {id(t._version_): (t._version_, a.written) for t, a in zip(leaves, self.arguments, strict=True) if a.written}
        for counter, by in counters.values():
            counter[0] += by
        for leaf, tensor, *_ in self.gradients:
            leaf._grad = tensor
        return self._results(leaves, made), made, drawn

    def _results(self, leaves: list[Tensor], made: dict[int, np.ndarray]) -> list[Any]:
        """The results of a run, which has left this memory."""
        results: list[Any] = []
        bases: list[tuple[Tensor, int, tuple, str]] = []
        for kind, *spec in self.outputs:
            if kind == "new":
                buffer, _, _, offset, layout, count, shared = spec
                data = made[buffer]
                version = [count, 0]
                if shared is not None:
                    counter, base, place, how = shared
                    if counter < len(results):
                        version = results[counter]._version_
                results.append(make(data[offset:] if offset else data, layout, version))
                if shared is not None and base is not None:
                    bases.append((results[-1], base, (data, *place), how))
            elif kind == "argument":
                index, offset, layout, whole, how, count = spec
                t = leaves[index]
                if whole:
                    results.append(t)
                    continue
                out = make(t._data[offset:] if offset else t._data, layout, t._version_ if count < 0 else [count, 0])
                results.append(out if how == "detached" else share_view(t, out, how))
            elif kind == "gradient":
                results.append(self.gradients[spec[0]][1])
            else:
                results.append(spec[0])
        if bases:
            _look_at_bases(results, bases)
        return results

    def _fresh_gradient(self, g: list) -> bool:
        """Let ``g`` have the tensor that will be the leaf's gradient: the last one, if nobody else has it; whether it is in place."""
        buffer, layout, size, carrier, version = g[2:7]
        if buffer is None:
            return True
        there = g[0]._grad is g[1]
        if g[1] is None or g[1]._rg or g[1]._layout is not layout or g[1]._data is not g[7] or not alone(g, there):
            g[7] = launch.empty(size, carrier)
            g[1] = make(g[7], layout, [version, 0])
            self.program.bind(buffer, g[7])
            return False
        g[1]._version_[0] = version
        return there


def _look_at_bases(results: list[Any], views: list[tuple[Tensor, int, tuple, str]]) -> None:
    """Let results be views of another one (its number), or of a base that is none (below 0: one for each number)."""
    hidden: dict[int, Tensor] = {}
    for t, number, (data, offset, layout), how in views:
        base = results[number] if number >= 0 else hidden.get(number)
        if base is None:
            base = hidden[number] = make(data[offset:] if offset else data, layout, t._version_)
        t._view, t._seen, t._view_kind = base, t._version_[1], how
