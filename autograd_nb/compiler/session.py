"""One capture: the run of the function, and the program that is made of it."""

from __future__ import annotations

import types
from collections.abc import Callable
from enum import Enum
from itertools import count
from typing import Any

import numpy as np

from .. import dtypes
from ..graph.modes import state
from ..graph.node import sequence
from ..shapes import Layout
from ..tensor import Tensor, edge
from .capture.effects import watching, watching_passes
from .capture.recorder import Capture, Problem, in_order
from .capture.sections import Standing
from .derivatives import Derivatives
from .guards.carried_state import Kept, form, keepable
from .guards.guard import build_guard
from .guards.reach import Reach
from .ir import address, root, written
from .lower.program import Program
from .nested import containers, emptied, flatten, rebuild, slots_in, tensors_in
from .passes.pipeline import optimize
from .run.again import Changes
from .run.fast_path import build_fast_path
from .run.variant import Argument, Variant, seen_as


class Unstable(Exception):
    """The run changed Python's state (a first step made its buffers, say): capture again at the next call."""

    def __init__(self, what: str):
        super().__init__(what)
        self.what = what


#: objects in results that may be given again: they do not change
_HARMLESS = (type, types.ModuleType, types.BuiltinFunctionType, dtypes.dtype, Layout, np.generic)


class Session:
    """One capture: the run, and the program that is made of it."""

    def __init__(self, function: Callable, reach: Reach, leaves: list[Tensor], given: list[tuple[Kept, Any]]):
        self.function, self.reach, self.leaves, self.given = function, reach, leaves, given
        known: list[tuple[str, str, Tensor]] = []
        self.watched: list[Tensor] = [t for _, t in reach.tensors.values()]
        known += [("state", path, t) for path, t in reach.tensors.values()]
        self.grads = {id(t): (t, t._grad) for t in [*self.watched, *leaves]}
        known += [("state", "a gradient", g) for _, g in self.grads.values() if g is not None]
        self.argument_problem = ""
        self.state_roots = {id(root(t._data)) for t in self.watched}
        fixed = {id(root(t._data)) for _, _, t in known}
        reached = {id(t) for t in self.watched}
        roots: dict[int, int] = {}
        self.shares: list[Any] = []
        for i, t in enumerate(leaves):
            r = id(root(t._data))
            if t.__dict__ and id(t) not in reached:
                self.argument_problem = f"argument {i} has attributes of its own ({', '.join(t.__dict__)}); pass what they hold"
            if r in fixed:
                if id(t) not in reached:
                    self.argument_problem = (
                        f"argument {i} shares memory with a tensor or gradient that the function reaches; pass a copy (clone())"
                    )
                self.shares.append(t)
                continue
            j = roots.get(r)
            self.shares.append(None if j is None else (j, address(t._data) - address(leaves[j]._data), t is leaves[j]))
            roots.setdefault(r, i)
            known.append(("argument", f"argument {i}", t))
        self.standing = Standing(leaves)
        self.edges = [edge(t) for t in leaves]
        self.looks = [(t._data, t._layout, _hooks(t)) for t in leaves]
        self.mode = state.grad, dtypes.get_default_dtype()
        self.attributes = [set(t.__dict__) for t in leaves]
        self.capture = Capture(known)
        self.capture.grads = {i: (t, g, 0 if g is None else g._version_[0]) for i, (t, g) in self.grads.items()}
        self.began = sequence()
        self.versions = [(t, t._version_, t._version_[0]) for t in [*self.watched, *leaves]]
        self.grad_versions = [(g._version_, g._version_[0]) for _, g in self.grads.values() if g is not None]
        self.replaced: dict = {}
        self.overwritten = [(k, k.get()) for k in reach.kept if not k.read]
        self.unwritten: list[Kept] = []  # those of them that this run left alone
        self.read: list[Kept] = []  # and that it read
        self.numbers = count(1_000_000)  # of buffers that passes make, far from those of the capture

    def run(self, args: tuple, kwargs: dict) -> Any:
        """Run the function, watched."""
        live = self.reach.optimizers if self.reach.live_numbers else []
        watched = watching(self.capture, live, self.reach.codes)
        with self.standing, watching_passes(self.capture, self.began), watched as self.replaced:
            result = self.function(*args, **kwargs)
        numbers: list[Any] = []
        slots_in(result, numbers)
        for n in numbers:
            n._decide()
        return rebuild(result, iter(tensors_in(result))) if numbers else result

    def _left(self, result: Any) -> list[Kept]:
        """The places where the run has left tensors. Unstable where it was not told beforehand how it uses one of them."""
        self.unwritten = [k for k, old in self.overwritten if k.get() is old]
        places = [k for k, _ in self.overwritten] + [k for k, old in self.given if k.get() is not old]
        values = [k.get() for k in places]
        used = self.capture.buffers.keys() | {id(root(t._data)) for t in tensors_in((result, values))}
        self.read = [
            k
            for k, old in self.overwritten
            if k not in self.unwritten
            and (any(id(root(t._data)) in used for t in tensors_in(old)) or form(old) != form(k.get()))
        ]
        if self.unwritten or not all(map(keepable, values)):
            raise Unstable("it does not always leave tensors where an earlier call has")
        if self.read:
            raise Unstable(f"it reads {self.read[0].path}, which an earlier call has left")
        return places

    def variant(self, key: Any, result: Any, given: set[int]) -> Variant:
        """What was captured, as a program. Problem or Unstable when it cannot be run again.

        ``given``: ids of the containers among the arguments.
        """
        capture, reach = self.capture, self.reach
        decided = {id(s) for s in capture.decided}
        guard = build_guard(reach, self.replaced.keys())
        stores = self._left(result)
        changed = guard()
        if changed >= 0:
            raise Unstable(guard.describe(changed))
        if capture.problems:
            raise capture.problems[0]
        if stores:
            result = (result, tuple([k.get() for k in stores]))
        self._same_arguments()
        if any(b.kind == "state" and b.owner is None for b in capture.buffers.values()):
            raise Problem("memory without an owner")
        arguments = [self._argument(i, t) for i, t in enumerate(self.leaves)]
        kept, gradients, expects_none = self._gradients()
        flat, order = self._results(result, given)
        outputs, fresh = self._outputs(flat, kept, gradients)
        forward = list(capture.steps)
        back = Derivatives(self, flat, forward, self.standing.ends).back()
        if back is not None:
            fresh |= {number for number, _, _ in back.saved}
        steps = optimize(forward, kept | fresh, self.numbers)
        held, expects_some = self._started()
        program = Program(steps, in_order(capture.draws, capture.streams), kept, fresh | {b for _, b, *_ in held})
        changed = guard()
        if changed >= 0:
            raise Unstable(guard.describe(changed))
        variant = Variant(key, arguments, guard, reach, program)
        variant.back = back
        variant.outputs, variant.result, variant.order = outputs, result, order
        variant.held, variant.expects_some, variant.state_roots = held, expects_some, self.state_roots
        variant.exclusive = program.writes or reach.tells_apart or capture.hashed
        variant.asked = capture.asked
        variant.written = [i for i, a in enumerate(arguments) if a.written]
        variant.sharing = any(a.shares is not None for a in arguments)
        variant.plain, variant.stores = isinstance(result, Tensor), stores
        variant.carried = [(k, emptied(value)) for k, value in self.given]
        variant.carried_leaves = len(tensors_in([value for _, value in self.given]))
        variant.gradients, variant.expects_none = gradients, expects_none
        variant.decided = [(s, s.__class__.__mro__[2](s.read())) for s in capture.decided if id(s) in decided]
        own = {id(t._version_) for t in self.leaves}
        seen = set()
        for _, counter, before in self.versions:
            by = counter[0] - before
            if by and id(counter) not in own and id(counter) not in seen:
                seen.add(id(counter))
                variant.versions.append((counter, by))
        seen.update(id(t._grad._version_) for t, *_ in held if t._grad is not None)
        for counter, before in self.grad_versions:
            if counter[0] != before and id(counter) not in seen:
                seen.add(id(counter))
                variant.versions.append((counter, counter[0] - before))
        if back is not None and back.lives:
            variant.changes = self._changes(variant)
        variant.result = emptied(result)
        program.starts_over = True
        variant.quick = build_fast_path(variant, self.replaced)
        capture._kept.clear()
        capture.grads.clear()
        for b in capture.buffers.values():  # what the run computed is not needed any more
            if b.kind in ("argument", "temporary"):
                b.array, b.owner = np.empty(0, b.array.dtype), None
        return variant

    def _changes(self, variant: Variant) -> Changes | None:
        """What another run of the function must begin from, if it changes anything."""
        numbers = {u.buffer.number for step in variant.program.steps for u in written(step)}
        return Changes(variant, [t for t in self.watched if self.capture.buffer_of(t._data).number in numbers], numbers) or None

    def _same_arguments(self) -> None:
        """Problem where the run has made something else of an argument than other values."""
        for t, names, e, look in zip(self.leaves, self.attributes, self.edges, self.looks, strict=True):
            if t.__dict__.keys() != names:
                raise Problem("it sets an attribute of an argument")
            if edge(t) is not e or any(t is c for c in self.standing.changed):
                raise Problem("it changes an argument in place that requires grad")
            if t._data is not look[0] or t._layout is not look[1]:
                raise Problem("it gives an argument other memory or another shape; return the new tensor")
            if _hooks(t) != look[2]:
                raise Problem("it registers a hook on an argument")
        if self.mode != (state.grad, dtypes.get_default_dtype()):
            raise Problem("it leaves another grad mode or default dtype behind")

    def _argument(self, i: int, t: Tensor) -> Argument:
        buffer = self.capture.buffer_of(t._data)
        reached = isinstance(self.shares[i], Tensor)
        a = Argument(t, None if reached else buffer.number, address(t._data) - address(root(t._data)))
        a.has_grad = self.grads[id(t)][1] is not None
        a.shares = self.shares[i]
        a.written = next(counter[0] - before for s, counter, before in self.versions if s is t)
        a.view = seen_as(t)
        return a

    def _gradients(self) -> tuple[set[int], list[list], list[Tensor]]:
        kept: set[int] = set()
        found: list[list] = []
        expects_none: list[Tensor] = []
        arguments = {id(t) for t in self.leaves}
        for t, before in self.grads.values():
            after = t._grad
            forgotten = id(t) in self.capture.forgotten
            if before is None and not forgotten and t._rg and id(t) not in arguments:
                expects_none.append(t)
            if after is before and (after is not None or not forgotten or id(t) in arguments):
                continue
            if id(t) in arguments:
                raise Problem("it leaves a gradient in an argument; return the gradient instead")
            if after is None:
                found.append([t, None, None, None, 0, None, 0, None])
                continue
            b = self.capture.buffer_of(after._data)
            if (
                b.kind != "temporary"
                or b.number in kept
                or address(after._data) != address(b.array)
                or b.array.dtype != after._data.dtype
            ):
                raise Problem("a gradient shares its memory with another tensor")
            kept.add(b.number)
            found.append([t, None, b.number, after._layout, b.array.size, b.array.dtype, after._version_[0], None])
        return kept, found, expects_none

    def _started(self) -> tuple[list[tuple], list[Tensor]]:
        """(gradients that the program starts from, tensors whose gradient is there but not used)."""
        capture = self.capture
        used = {u.buffer.number for s in capture.steps for u, _ in s.uses()}
        arguments = {id(t) for t in self.leaves}
        held: list[tuple] = []
        some: list[Tensor] = []
        for t, g in self.grads.values():
            if g is None:
                continue
            b = capture.buffer_of(g._data)
            if b.number not in used:
                if t._rg and id(t) not in arguments and id(t) not in capture.forgotten:
                    some.append(t)
                continue
            if id(t) in arguments or b.owner is not g or g._rg:
                raise Problem("it works on the gradient of an argument, or on one that shares its memory")
            by = g._version_[0] - next(before for counter, before in self.grad_versions if counter is g._version_)
            held.append((t, b.number, g._layout, address(g._data) - address(b.array), by))
        return held, some

    def _results(self, result: Any, given: set[int]) -> tuple[list[Tensor], list[int]]:
        """The tensors of the result, each once, and which of them stands at each place."""
        found: list[Tensor] = []
        others: list[Any] = []
        flatten(result, found, others)
        for o in others:
            if not isinstance(o, (_HARMLESS, Enum)) and not self.reach.reaches(o):
                raise Problem(
                    f"its result holds an object of the class {type(o).__name__}; return tensors, numbers and containers of them"
                )
        for c in containers(result):
            if id(c) in given or self.reach.reaches(c):
                raise Problem("its result is a container that it was given or reaches; return a new one")
        flat = list({id(t): t for t in found}.values())
        for t in flat:
            edge(t)  # (a view may not know yet that its base's history was rewritten)
        place = {id(t): i for i, t in enumerate(flat)}
        return flat, [place[id(t)] for t in found]

    def _outputs(self, flat: list[Tensor], kept: set[int], gradients: list[list]) -> tuple[list[tuple], set[int]]:
        fresh: set[int] = set()
        outputs: list[tuple] = []
        by_state = {id(t) for t in self.watched}
        for t in flat:
            if t.__class__ is not Tensor and id(t) not in by_state and not any(t is a for a in self.leaves):
                raise Problem(f"its result is a new tensor of the class {t.__class__.__name__}")
            if id(t) in by_state:
                outputs.append(("same", t))
                continue
            b = self.capture.buffer_of(t._data)
            offset = (address(t._data) - address(b.array)) // t._data.itemsize
            index = next((i for i, a in enumerate(self.leaves) if a is t), None)
            if index is None and not any(isinstance(s, Tensor) and self.capture.buffer_of(s._data) is b for s in self.shares):
                index = next((i for i, a in enumerate(self.leaves) if self.capture.buffer_of(a._data) is b), None)
                if index is not None and (t._rg or self.leaves[index]._rg):
                    raise Problem("a result is a view of an argument that requires grad; return a copy (clone())")
            if index is not None:
                a = self.leaves[index]
                shift = (address(t._data) - address(a._data)) // t._data.itemsize
                outputs.append(("argument", index, shift, t._layout, t is a, *self._beside(t, a)))
            elif b.number in kept:
                number = next(i for i, g in enumerate(gradients) if g[2] == b.number)
                if gradients[number][0]._grad is not t:
                    raise Problem("a result shares its memory with a gradient")
                outputs.append(("gradient", number))
            elif b.kind == "temporary":
                if b.array.dtype != t._data.dtype:
                    raise Problem("a result is a view of another dtype")
                if b.number in fresh and any(s._rg for s in flat):
                    raise Problem("two results share their memory; return copies (clone())")
                if t.__dict__:
                    raise Problem("it sets an attribute of a result")
                fresh.add(b.number)
                outputs.append(("new", b.number, b.array.size, b.array.dtype, offset, t._layout, t._version_[0], self._base(t, flat)))
            else:
                raise Problem("a result shares memory with the function's state; return a copy (clone())")
        return outputs, fresh

    def _beside(self, t: Tensor, a: Tensor) -> tuple[str, int]:
        """(what a result in the memory of an argument has in common with it, the result's version)."""
        if t._view is not None and (t._view is a or t._view is a._view):
            return (t._view_kind if a._view is None else ""), -1
        return "detached", -1 if t._version_ is a._version_ else t._version_[0]

    def _base(self, t: Tensor, flat: list[Tensor]) -> tuple | None:
        """Among results that share memory: (number of the counter, the base's number and how the view of it was made)."""
        together = [s for s in flat if self.capture.buffer_of(s._data) is self.capture.buffer_of(t._data)]
        if len(together) == 1:
            return None
        counter = next(i for i, s in enumerate(flat) if s._version_ is t._version_)
        base = t._view
        if base is None:
            return counter, None, None, ""
        same = [i for i, s in enumerate(flat) if s is base or s._view is base]
        shift = (address(base._data) - address(self.capture.buffer_of(t._data).array)) // base._data.itemsize
        number = next((i for i in same if flat[i] is base), -1 - same[0])
        return counter, number, (shift, base._layout), t._view_kind


def _hooks(t: Tensor) -> tuple:
    """The hooks on a tensor's gradient, of its own or of the node that made it."""
    e = edge(t)
    hooks = t._leaf_hook_set if e is None or e.is_leaf_edge else getattr(e, "node", e).hooks
    if hooks is None:
        return ()
    kinds = (hooks.accumulated, hooks.post, hooks.pre, hooks.retained, *hooks.tensor.values())
    return tuple([k for kind in kinds for k in kind])
