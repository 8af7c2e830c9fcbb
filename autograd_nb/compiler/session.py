"""One capture: the run of the function, and the program that is made of it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from ..ops.core.marked import MARKED
from ..tensor import Tensor
from .capture.effects import watching, watching_passes
from .capture.recorder import Capture, Problem, in_order
from .capture.sections import Standing
from .capture.unasked import unasked
from .derivatives import Derivatives
from .guards.carried_state import Kept, form, keepable
from .guards.guard import Guard, build_guard
from .guards.holders import KeptGradient
from .guards.reach import Reach
from .ir import Step, root, written
from .lower.executable import Executable
from .nested import containers, emptied, is_sparse, rebuild, slots_in, tensors_in
from .outcome import Outcome
from .passes.pipeline import optimize
from .run.again import Changes, changes_of
from .run.backward import Back
from .run.fast_path import build_fast_path
from .run.initial_gradients import InitialGradients
from .run.records import Argument, InitialGradient, hooks_on
from .run.restored import launches_of
from .run.serving import build_test
from .run.variant import RunState, Variant
from .snapshot import Snapshot, snapshot


class Unstable(Exception):
    """The run changed Python's state (a first step made its buffers, say): capture again at the next call."""

    def __init__(self, what: str):
        super().__init__(what)
        self.what = what


class Session:
    """One capture: the run, and the program that is made of it."""

    function: Callable[..., Any]
    reach: Reach
    leaves: list[Tensor]
    given: list[tuple[Kept, Any]]
    before: Snapshot
    standing: Standing
    capture: Capture
    overwritten: list[tuple[Kept, Any]]
    numbers: count[int]

    def __init__(self, function: Callable[..., Any], reach: Reach, leaves: list[Tensor], given: list[tuple[Kept, Any]]):
        self.function, self.reach, self.leaves, self.given = function, reach, leaves, given
        self.before = snapshot(reach, leaves)
        self.standing = Standing(leaves)
        self.capture = self.before.capture()
        self.live_entries: dict[Any, Any] = {}  # of parameter groups, that are read anew: see `live_numbers`
        self.overwritten = [(k, k.get()) for k in reach.kept if not k.read]
        self.unwritten: list[Kept] = []  # those of them that this run left alone
        self.read: list[Kept] = []  # and that it read
        self.numbers = count(1_000_000)  # of buffers that passes make, far from those of the capture

    def run(self, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> Any:
        """Run the function while its launches are watched."""
        live = self.reach.optimizers if self.reach.live_numbers else []
        watched = watching(self.capture, live, self.reach.codes)
        with self.standing, watching_passes(self.capture, self.before.began, self.standing.ends), watched as self.live_entries:
            result = self.function(*args, **kwargs)
            for leave in self.capture.leaving:
                leave()
        numbers: list[Any] = []
        slots_in(result, numbers)
        for n in numbers:
            n._decide()
        return rebuild(result, iter(tensors_in(result))) if numbers else result

    def _left(self, result: Any) -> list[Kept]:
        """Return the places where the run has left tensors; raise Unstable where it was not told beforehand how it uses one of them."""
        self.unwritten = [k for k, old in self.overwritten if k.get() is old]
        places = [k for k, _ in self.overwritten] + [k for k, old in self.given if k.get() is not old]
        values = [k.get() for k in places]
        found = tensors_in((result, values))
        if any(t.__class__ in MARKED for t in found):
            raise Problem("its result holds a view that shows conjugates or negatives; return its resolve_conj().resolve_neg()")
        if any(map(is_sparse, found)):
            raise Problem("its result holds a sparse tensor; make it dense (to_dense())")
        used = self.capture.buffers.keys() | {id(root(t._data)) for t in found}
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
        guard = build_guard(reach, self.live_entries.keys())
        stores = self._left(result)
        self._unchanged(guard)
        capture.problems += [Problem(reason) for ask in capture.endings if (reason := ask())]
        if capture.problems:
            raise capture.problems.pop(0)  # (kept there it would be a cycle, by way of the frames that it passes)
        if stores:
            result = (result, tuple([k.get() for k in stores]))
        self.before.check_arguments(self.standing.changed)
        self.before.check_state()
        if any(b.kind == "state" and b.owner is None for b in capture.buffers.values()):
            raise Problem("memory without an owner")
        arguments = [self.before.argument(i, capture) for i in range(len(self.leaves))]
        if capture.derived and any(t.requires_grad and hooks_on(t) for t in self.leaves):
            raise Problem("it differentiates by an argument that has hooks")
        outcome = Outcome(capture, self.before, reach)
        gradients, expects_none = outcome.gradients()
        flat, order = outcome.results(result, {id(c) for c in containers(given)})
        outputs, fresh = outcome.outputs(flat, gradients)
        forward = list(capture.steps)  # (the backward pass is captured behind it)
        with unasked(capture, reach, [*self.before.reached, *self.leaves]) as state:
            back = Derivatives(self, flat, forward, self.standing.ends, state).back()
            self._unchanged(guard)
        if back is not None and {m.buffer for m in back.saved}.intersection([g.buffer for g in gradients]):
            raise Problem("the backward pass of its results reads a gradient that it leaves")  # whose memory is the leaf's, and may change
        held, expects_some = outcome.initial_gradients()
        program = self._program(forward, gradients, fresh if back is None else fresh | {m.buffer for m in back.saved}, held)
        versions = self.before.growing_versions(held)
        carried = [(k, emptied(value)) for k, value in self.given]
        changes = None
        if back is not None and back.lives:
            nones, some = (expects_none, expects_some) if capture.looked else ([], [])
            left = [*[g.leaf for g in gradients], *nones]
            changes = self._changes(program, arguments, versions, held, left, some, [*stores, *[k for k, _ in carried]], back, forward)
        variant = Variant(
            key=key, reason=reason, function=self.function, given=emptied(given[:2]), program=program, guard=guard, reach=reach, back=back,
            arguments=arguments, written=[i for i, a in enumerate(arguments) if a.written], asked=capture.asked,
            exclusive=program.writes or reach.tells_apart or capture.hashed, sharing=any(a.shares is not None for a in arguments),
            derived=capture.derived,
            state_roots=self.before.state_roots, result=emptied(result), single=isinstance(result, Tensor), outputs=outputs, order=order,
            decided=[(s, s.__class__.__mro__[2](s.read())) for s in capture.decided if id(s) in decided], stores=stores, carried=carried,
            carried_leaves=len(tensors_in([value for _, value in self.given])), gradients=gradients, versions=versions,
            initial=InitialGradients(held, expects_none, expects_some, self.before.state_roots), state=RunState(changes),
            touched=frozenset([id(g.leaf) for g in (*gradients, *held)]),
        )  # fmt: skip
        variant.state.serves = build_test(variant)
        build_fast_path(variant, self.live_entries)
        self._release()
        for tell in capture.settled:
            tell(self.function)
        return variant

    def _unchanged(self, guard: Guard) -> None:
        """Raise Unstable where something is not as it was before the run."""
        changed = guard()
        if changed >= 0:
            raise Unstable(guard.describe(changed))

    def _program(self, forward: list[Step], gradients: list[KeptGradient], fresh: set[int], held: list[InitialGradient]) -> Executable:
        """Return the program of captured steps; ``fresh``: buffers that get new memory at each run."""
        capture = self.capture
        kept = {g.buffer for g in gradients if g.buffer is not None}
        steps = optimize(forward, kept | fresh, self.numbers)
        program = Executable(steps, in_order(capture.draws, capture.streams), kept, fresh | {h.buffer for h in held})
        program.starts_over = True
        return program

    def _release(self) -> None:
        """Let go of what the run computed: it is not needed any more."""
        self.capture._kept.clear()
        self.capture.grads.clear()
        for b in self.capture.buffers.values():
            if b.kind in ("argument", "temporary"):
                b.array, b.owner = np.empty(0, b.array.dtype), None

    def _changes(
        self, program: Executable, arguments: list[Argument], versions: list[tuple[Any, ...]], held: list[InitialGradient],
        left: list[Tensor], some: list[Tensor], places: list[Kept], back: Back, forward: list[Step],
    ) -> Changes | None:  # fmt: skip
        """Return what another run of the function must begin from, if it or others may change anything."""
        numbers = {u.buffer.number for step in program.steps for u in written(step)}
        memory = [t for t in self.before.reached if self.capture.buffer_of(t._data).number in numbers]
        mine = [i for i, a in enumerate(arguments) if a.written or a.buffer in numbers]
        counters = [counter for counter, _ in versions]
        read = [(i, self.leaves[i]) for i in back.reads_given]
        launches = launches_of(forward, {m.buffer for m in back.saved})
        return changes_of(
            memory, mine, back.reads, read, counters, [h.leaf for h in held], left, some, places, program, launches
        )
