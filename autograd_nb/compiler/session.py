"""One capture: the run of the function, and the program that is made of it."""

from __future__ import annotations

import types
from collections.abc import Callable
from enum import Enum
from itertools import count
from typing import Any

import numpy as np

from .. import dtypes
from ..errors import AutogradError
from ..graph.modes import state
from ..graph.node import sequence
from ..shapes import Layout
from ..tensor import ALONE, Tensor, edge
from .capture.effects import watching, watching_passes
from .capture.recorder import Capture, Problem, in_order
from .capture.sections import Standing
from .derivatives import Derivatives
from .guards.carried_state import Kept, form, keepable
from .guards.guard import Guard, build_guard
from .guards.holders import KeptGradient
from .guards.reach import Reach
from .ir import Step, address, root, written
from .lower.executable import Executable
from .nested import containers, emptied, flatten, rebuild, slots_in, tensors_in
from .passes.pipeline import optimize
from .run.again import Changes, changes_of
from .run.backward import Back
from .run.fast_path import build_fast_path
from .run.records import (
    OWN,
    AnyResult,
    Argument,
    ArgumentResult,
    GradientResult,
    InitialGradient,
    Memory,
    NewResult,
    StateResult,
    seen_as,
)
from .run.variant import RunState, Variant


class Unstable(Exception):
    """The run changed Python's state (a first step made its buffers, say): capture again at the next call."""

    def __init__(self, what: str):
        super().__init__(what)
        self.what = what


#: objects in results that may be given again: they do not change
_HARMLESS = (type, types.ModuleType, types.BuiltinFunctionType, dtypes.dtype, Layout, np.generic)


class Session:
    """One capture: the run, and the program that is made of it."""

    def __init__(self, function: Callable[..., Any], reach: Reach, leaves: list[Tensor], given: list[tuple[Kept, Any]]):
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
        self.replaced: dict[Any, Any] = {}
        self.overwritten = [(k, k.get()) for k in reach.kept if not k.read]
        self.unwritten: list[Kept] = []  # those of them that this run left alone
        self.read: list[Kept] = []  # and that it read
        self.numbers = count(1_000_000)  # of buffers that passes make, far from those of the capture

    def run(self, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> Any:
        """Run the function while its launches are watched."""
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

    def variant(self, key: Any, reason: str, given: tuple[Any, ...], result: Any) -> Variant:
        """Return what was captured, as a program. Problem or Unstable when it cannot be run again.

        ``given``: args, kwargs and values that are carried on. ``reason``: why this was captured.
        """
        capture, reach = self.capture, self.reach
        decided = {id(s) for s in capture.decided}
        guard = build_guard(reach, self.replaced.keys())
        stores = self._left(result)
        self._unchanged(guard)
        if capture.problems:
            raise capture.problems[0]
        if stores:
            result = (result, tuple([k.get() for k in stores]))
        self._same_arguments()
        if any(b.kind == "state" and b.owner is None for b in capture.buffers.values()):
            raise Problem("memory without an owner")
        arguments = [self._argument(i, t) for i, t in enumerate(self.leaves)]
        gradients, expects_none = self._gradients()
        flat, order = self._results(result, {id(c) for c in containers(given)})
        outputs, fresh = self._outputs(flat, gradients)
        forward = list(capture.steps)  # (the backward pass is captured behind it)
        back = Derivatives(self, flat, forward, self.standing.ends).back()
        held, expects_some = self._started()
        program = self._program(forward, gradients, fresh if back is None else fresh | {m.buffer for m in back.saved}, held)
        self._unchanged(guard)
        versions = self._versions(held)
        carried = [(k, emptied(value)) for k, value in self.given]
        changes = None
        if back is not None and back.lives:
            changes = self._changes(program, arguments, versions, held, gradients, [*stores, *[k for k, _ in carried]], back)
        variant = Variant(
            key=key, reason=reason, function=self.function, given=emptied(given[:2]), program=program, guard=guard, reach=reach, back=back,
            arguments=arguments, written=[i for i, a in enumerate(arguments) if a.written], asked=capture.asked,
            exclusive=program.writes or reach.tells_apart or capture.hashed, sharing=any(a.shares is not None for a in arguments),
            state_roots=self.state_roots, result=emptied(result), plain=isinstance(result, Tensor), outputs=outputs, order=order,
            decided=[(s, s.__class__.__mro__[2](s.read())) for s in capture.decided if id(s) in decided], stores=stores, carried=carried,
            carried_leaves=len(tensors_in([value for _, value in self.given])), held=held, gradients=gradients, expects_none=expects_none,
            expects_some=expects_some, versions=versions, state=RunState(changes),
        )  # fmt: skip
        variant.state.fast_path = build_fast_path(variant, self.replaced)
        self._release()
        return variant

    def _unchanged(self, guard: Guard) -> None:
        """Unstable where something is not as it was before the run."""
        changed = guard()
        if changed >= 0:
            raise Unstable(guard.describe(changed))

    def _program(self, forward: list[Step], gradients: list[KeptGradient], fresh: set[int], held: list[InitialGradient]) -> Executable:
        """The program of captured steps; ``fresh``: buffers that get new memory at each run."""
        capture = self.capture
        kept = {g.buffer for g in gradients if g.buffer is not None}
        steps = optimize(forward, kept | fresh, self.numbers)
        program = Executable(steps, in_order(capture.draws, capture.streams), kept, fresh | {h.buffer for h in held})
        program.starts_over = True
        return program

    def _versions(self, held: list[InitialGradient]) -> list[tuple[Any, int]]:
        """The counters that grow with each run, of other tensors than arguments and held gradients, and by how much."""
        found: list[tuple[Any, int]] = []
        seen = {id(t._version_) for t in self.leaves}
        for counter, before in [(counter, before) for _, counter, before in self.versions]:
            by = counter[0] - before
            if by and id(counter) not in seen:
                seen.add(id(counter))
                found.append((counter, by))
        seen.update(id(h.leaf._grad._version_) for h in held if h.leaf._grad is not None)
        for counter, before in self.grad_versions:
            if counter[0] != before and id(counter) not in seen:
                seen.add(id(counter))
                found.append((counter, counter[0] - before))
        return found

    def _release(self) -> None:
        """Let go of what the run computed: it is not needed any more."""
        self.capture._kept.clear()
        self.capture.grads.clear()
        for b in self.capture.buffers.values():
            if b.kind in ("argument", "temporary"):
                b.array, b.owner = np.empty(0, b.array.dtype), None

    def _changes(
        self, program: Executable, arguments: list[Argument], versions: list[tuple[Any, ...]], held: list[InitialGradient],
        gradients: list[KeptGradient], places: list[Kept], back: Back,
    ) -> Changes | None:  # fmt: skip
        """Return what another run of the function must begin from, if it or others may change anything."""
        numbers = {u.buffer.number for step in program.steps for u in written(step)}
        memory = [t for t in self.watched if self.capture.buffer_of(t._data).number in numbers]
        mine = [i for i, a in enumerate(arguments) if a.written or a.buffer in numbers]
        counters = [counter for counter, _ in versions]
        read = [(i, self.leaves[i]) for i in back.reads_given]
        return changes_of(memory, mine, back.reads, read, counters, [h.leaf for h in held], [g.leaf for g in gradients], places, program)

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
        reached = isinstance(self.shares[i], Tensor)
        return Argument(
            layout=t._layout,
            requires_grad=t.requires_grad,
            has_grad=self.grads[id(t)][1] is not None,
            inference=t._version_[0] < 0,
            buffer=None if reached else self.capture.buffer_of(t._data).number,
            shift=address(t._data) - address(root(t._data)),
            written=next(counter[0] - before for s, counter, before in self.versions if s is t),
            view=seen_as(t),
            shares=self.shares[i],
        )

    def _gradients(self) -> tuple[list[KeptGradient], list[Tensor]]:
        """(gradients that the run has left, tensors without one)."""
        kept: set[int] = set()
        found: list[KeptGradient] = []
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
                found.append(KeptGradient(t))
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
            found.append(KeptGradient(t, b.number, after._layout, b.array.size, b.array.dtype, after._version_[0]))
        return found, expects_none

    def _started(self) -> tuple[list[InitialGradient], list[Tensor]]:
        """(gradients that the program starts from, tensors whose gradient is there but not used)."""
        capture = self.capture
        used = {u.buffer.number for s in capture.steps for u, _ in s.uses()}
        arguments = {id(t) for t in self.leaves}
        held: list[InitialGradient] = []
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
            held.append(InitialGradient(t, b.number, g._layout, address(g._data) - address(b.array), by))
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
            try:
                edge(t)  # (a view may not know yet that its base's history was rewritten)
            except AutogradError as error:
                raise Problem("a result is one of several views of what it has changed since") from error
        place = {id(t): i for i, t in enumerate(flat)}
        return flat, [place[id(t)] for t in found]

    def _outputs(self, flat: list[Tensor], gradients: list[KeptGradient]) -> tuple[list[AnyResult], set[int]]:
        """(how the results are made, the buffers of those in new memory)."""
        fresh: set[int] = set()
        outputs: list[AnyResult] = []
        kept = [g.buffer for g in gradients]
        by_state = {id(t) for t in self.watched}
        for t in flat:
            if t.__class__ is not Tensor and id(t) not in by_state and not any(t is a for a in self.leaves):
                raise Problem(f"its result is a new tensor of the class {t.__class__.__name__}")
            if id(t) in by_state:
                outputs.append(StateResult(t))
                continue
            if t.requires_grad is not t._rg:
                raise Problem("a result is a view that was made without recording, of what requires grad")
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
                outputs.append(ArgumentResult(index, shift, t._layout, t is a, *self._beside(t, a)))
            elif b.number in kept:
                number = kept.index(b.number)
                if gradients[number].leaf._grad is not t:
                    raise Problem("a result shares its memory with a gradient")
                outputs.append(GradientResult(number))
            elif b.kind == "temporary":
                if b.array.dtype != t._data.dtype:
                    raise Problem("a result is a view of another dtype")
                if b.number in fresh and any(s._rg for s in flat):
                    raise Problem("two results share their memory; return copies (clone())")
                if t.__dict__:
                    raise Problem("it sets an attribute of a result")
                fresh.add(b.number)
                memory = Memory(b.number, b.array.size, b.array.dtype)
                outputs.append(NewResult(memory, offset, t._layout, t._version_[0], self._base(t, flat)))
            else:
                raise Problem("a result shares memory with the function's state; return a copy (clone())")
        return outputs, fresh

    def _beside(self, t: Tensor, a: Tensor) -> tuple[str, int]:
        """(what a result in the memory of an argument has in common with it, the result's version)."""
        if t._view is not None and (t._view is a or t._view is a._view):
            return (t._view_kind if a._view is None else ""), -1
        return "detached", -1 if t._version_ is a._version_ else t._version_[0]

    def _base(self, t: Tensor, flat: list[Tensor]) -> tuple[Any, ...] | None:
        """Tell of views and results that share memory: (number of the counter, the base's number and how the view of it was
        made).

        A view that may be changed in place as others may is told by a word: only that it is one can be seen.
        """
        together = [s for s in flat if self.capture.buffer_of(s._data) is self.capture.buffer_of(t._data)]
        base = t._view
        if len(together) == 1 and base is None:
            return None
        counter = next(i for i, s in enumerate(flat) if s._version_ is t._version_)
        if base is None:
            return counter, None, None, ""
        if len(together) == 1 and not t._view_kind:
            return counter, None, None, ALONE
        same = [i for i, s in enumerate(flat) if s is base or s._view is base]
        shift = (address(base._data) - address(self.capture.buffer_of(t._data).array)) // base._data.itemsize
        number = next((i for i in same if flat[i] is base), -1 - same[0]) if len(together) > 1 else OWN
        return counter, number, (shift, base._layout), t._view_kind


def _hooks(t: Tensor) -> tuple[Any, ...]:
    """The hooks on a tensor's gradient, of its own or of the node that made it."""
    e = edge(t)
    hooks = t._leaf_hook_set if e is None or e.is_leaf_edge else getattr(e, "node", e).hooks
    if hooks is None:
        return ()
    kinds = (hooks.accumulated, hooks.post, hooks.pre, hooks.retained, *hooks.tensor.values())
    return tuple([k for kind in kinds for k in kind])
