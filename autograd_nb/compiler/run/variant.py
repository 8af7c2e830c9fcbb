"""A captured call: when it holds, and how it is run."""

from __future__ import annotations

import _thread
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ... import launch
from ...graph import markup, modes, ownership
from ...ops.core.history import share_view
from ...overriding import whole
from ...tensor import Tensor, make
from ..capture.recorder import places
from ..guards.carried_state import Kept
from ..guards.guard import Guard
from ..guards.holders import KeptGradient, alone
from ..guards.reach import Reach
from ..ir import address, root, written_at
from ..live_numbers import _Slot
from ..lower.executable import Executable, Refused
from ..nested import rebuild
from .again import Before, Changes
from .backward import Back
from .initial_gradients import InitialGradients
from .records import (
    OWN,
    AnyResult,
    Argument,
    ArgumentResult,
    GradientResult,
    Memory,
    NewResult,
    be_view,
    hidden_base,
    hooks_on,
    seen_as,
)


def _not_built(variant: Variant, leaves: Sequence[Tensor]) -> bool:
    return False


class RunState:
    """The state of a captured call that changes from run to run.

    ``changed``: whether live numbers may have, since the program was last given them. ``serves``: see `serving`. ``fast_path``, ``call``:
    see `fast_path`. ``observed``: whether another run makes the graph behind results only where its launches are observed. ``changes``, for
    results of which another run may be needed: what the function changes, once there was such a run with all values that it reads.
    ``turned``: how gradients lie in memory, see `again.Call.turned`.
    """

    __slots__ = ("call", "changed", "changes", "fast_path", "observed", "serves", "turned")
    changed: bool
    changes: Changes | None
    observed: bool

    def __init__(self, changes: Changes | None = None) -> None:
        self.changed, self.observed, self.changes = True, False, changes
        self.serves: Callable[[Any, Sequence[Tensor]], bool] = _not_built
        self.fast_path: Callable[[Any, Sequence[Tensor]], Any] | None = None
        self.call: Callable[[Any, Sequence[Any]], Any] | None = None
        self.turned: dict[tuple[Any, ...], list[Any] | None] = {}


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Variant:
    """One captured call: its program, when it holds, and what it does to Python's objects."""

    key: Any
    reason: str  #: why it was captured
    function: Callable[..., Any]
    given: Any  #: (args, kwargs) with places for tensors
    program: Executable
    guard: Guard
    reach: Reach
    back: Back | None

    # arguments and state
    arguments: list[Argument]
    written: list[int]  #: the arguments that it changes
    asked: set[str]  #: attributes that arguments were asked for and did not have
    exclusive: bool  #: whether other aliases among arguments and state mean another program
    derived: bool  #: whether it differentiates by some of its tensors, so that hooks of arguments would be called
    sharing: bool  #: whether arguments share memory with one another or with state
    state_roots: set[int]  #: ids of the arrays that own the state's memory
    decided: list[tuple[_Slot, Any]]  #: live numbers on whose values it depends

    # results
    result: Any  #: with places for tensors
    single: bool  #: whether it is one tensor
    outputs: list[AnyResult]
    order: list[int]  #: which of ``outputs`` stands at each place of the result
    stores: list[Kept]  #: where the last of the results are left
    carried: list[tuple[Kept, Any]]  #: places from which the last arguments were taken, and the forms of what was there
    carried_leaves: int  #: how many arguments these are

    # gradients and versions
    initial: InitialGradients
    gradients: list[KeptGradient]
    touched: frozenset[int]  #: ids of the leaves whose gradients it reads or leaves
    versions: list[tuple[Any, int]]  #: (counter, how much it grows)

    state: RunState = field(default_factory=RunState)

    def __repr__(self) -> str:
        """Return what the program consists of, and why the call was captured, as sentences."""
        program = self.program
        kernels = Counter(s.name for s in program.steps if s.call is not None)
        several = [f"{count} × {name}" if count > 1 else name for name, count in kernels.most_common()]
        shown = ", ".join(several[:6]) + (f" and {len(several) - 6} others" if len(several) > 6 else "")
        backward = " Its backward pass is compiled too." if self.back is not None else ""
        count = sum(kernels.values())
        return (
            f"Program of {count} kernel{'s' * (count != 1)}{': ' * bool(shown)}{shown}, with {program.arena_bytes:,} bytes for temporaries."
            f"{backward} Captured: {self.reason}."
        )

    def folded(self, number: int = 1) -> str:
        """Return the program as HTML that folds out: each kernel, the line that it came from, the bytes that it reads and writes."""
        rows = []
        for step in self.program.steps:
            sizes = [0, 0]
            for use, written in step.uses():
                sizes[written] += use.size * use.dtype.itemsize
            rows.append((step.name, f"{sizes[0]:,}", f"{sizes[1]:,}", written_at(step)))
        body = markup.table(("kernel", "bytes read", "bytes written", "line"), rows, words=(0, 3))
        return markup.fold(f"Program {number}: {markup.escape(repr(self).removeprefix('Program of '))}", body)

    def _repr_html_(self) -> str:
        return markup.page(self.folded())

    def refuses(self, leaves: list[Tensor]) -> str:
        """Return why this program does not serve a call whose key is the same; empty if it does."""
        return "" if self.state.serves(self, leaves) else self._why(leaves)

    def _why(self, leaves: list[Tensor]) -> str:
        """Return what `serving.test_lines` has found."""
        for t, a in zip(leaves, self.arguments, strict=True):
            if t._layout is not a.layout or t.requires_grad is not a.requires_grad or (t._grad is not None) is not a.has_grad or a.other_leaf(t):
                return self._other(leaves)
        marked = self._marked(leaves)
        if marked:
            return marked
        for i in self.written:
            if seen_as(leaves[i]) != self.arguments[i].view:
                return f"argument {i}, which it changes, is a view of another kind"
        if self.derived and self._hooked(leaves):
            return "an argument that it differentiates by has hooks"
        shared = self._shared(leaves) if leaves and (self.exclusive or self.sharing) else ""
        changed = -1 if shared else self.guard()
        if shared or changed >= 0:
            return shared or self.guard.describe(changed)
        return self.initial.differ() or "a number that decides what is computed has changed"

    def _other(self, leaves: list[Tensor]) -> str:
        """Return which argument is of another kind."""
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
            if a.other_leaf(t):
                return f"argument {i} is {'a' if t._edge is None else 'no'} leaf"
        return "an argument is of another kind"

    def _marked(self, leaves: list[Tensor]) -> str:
        """Return which argument has attributes that were asked for, or is an inference tensor where it was none."""
        if self.asked:
            for i, t in enumerate(leaves):
                if not self.asked.isdisjoint(t.__dict__):
                    return f"argument {i} has attributes of its own"
        if modes.inference_used:
            for i, (t, a) in enumerate(zip(leaves, self.arguments, strict=True)):
                if (t._version_[0] < 0) is not a.inference:
                    return f"argument {i} is {'no' if a.inference else 'an'} inference tensor"
        return ""

    def _hooked(self, leaves: list[Tensor]) -> bool:
        """Return whether an argument that requires grad has hooks."""
        return any(t.requires_grad and hooks_on(t) for t in leaves)

    def _shared(self, leaves: list[Tensor]) -> str:
        """Return where arguments share memory in another way than when this was captured."""
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

    def serve(self, leaves: list[Tensor]) -> Any:
        """Return the results of a call that this program serves. Refused where it does so no more, as another thread has changed a gradient."""
        if self.touched and _thread._count():
            return ownership.alone(self.touched, self._still, leaves)
        return self.run(leaves)

    def _still(self, leaves: list[Tensor]) -> Any:
        if self.refuses(leaves):
            raise Refused
        return self.run(leaves)

    def run(self, leaves: list[Tensor]) -> Any:
        """Return the results of a call that this program serves."""
        fast = self.state.fast_path
        if fast is not None:
            return fast(self, leaves)
        changes = self.state.changes
        before = None if changes is None else Before(changes, leaves)
        results, made, drawn = self._run(leaves)
        if self.back is not None:
            self.back.attach(self, leaves, made, results, drawn, before)
        return self.rebuilt(results)

    def rebuilt(self, results: Any) -> Any:
        """Return the results in the function's containers."""
        if self.single:
            return results[0]
        result = rebuild(self.result, iter([results[i] for i in self.order]))
        if self.stores:
            result, kept = result
            for place, value in zip(self.stores, kept, strict=True):
                place.set(value)
        return result

    @whole
    def _run(self, leaves: list[Tensor]) -> tuple[list[Any], dict[int, np.ndarray], list[Any] | None]:
        """Run the program: its results, the memory that was made by the buffers' numbers, and where it found random streams."""
        with self.program.alone() as program:
            for t, a in zip(leaves, self.arguments, strict=True):
                if a.buffer is not None:
                    program.bind(a.buffer, t._data, a.shift)
            self.initial.same = bool  # where they lay when it was last asked is no longer what the program knows
            for leaf, buffer, _, shift, _ in self.initial.held:
                program.bind(buffer, leaf._grad._data, shift)
                for g in self.gradients:  # what it reads there it must not write over
                    if g.leaf is leaf and g.tensor is leaf._grad:
                        g.tensor = None
            for g in self.gradients:
                self._fresh_gradient(g)
            made: dict[int, np.ndarray] = {}
            if self.back is not None:
                self._allocate(program, self.back.saved, made)
            self._allocate(program, [o.memory for o in self.outputs if o.__class__ is NewResult], made)
            program.run()
            drawn = places(program.draws) if self.back is not None and program.draws else []
        for counter, by in self.versions:
            counter[0] += by
        for leaf, _, _, _, by in self.initial.held:
            leaf._grad._version_[0] += by
        counters = {id(t._version_): (t._version_, a.written) for t, a in zip(leaves, self.arguments, strict=True) if a.written}
        for counter, by in counters.values():
            counter[0] += by
        for g in self.gradients:
            g.leaf._grad = g.tensor
        return self._results(leaves, made), made, drawn

    @staticmethod
    def _allocate(program: Executable, memories: list[Memory], made: dict[int, np.ndarray]) -> None:
        """Let buffers have new memory, which is noted in ``made``."""
        for buffer, size, carrier in memories:
            if buffer not in made:
                made[buffer] = launch.empty(size, carrier)
                program.bind(buffer, made[buffer])

    def _results(self, leaves: list[Tensor], made: dict[int, np.ndarray]) -> list[Any]:
        """Return the results of a run, which has left this memory."""
        results: list[Any] = []
        bases: list[tuple[Tensor, int, tuple[Any, ...], str]] = []
        for output in self.outputs:
            if output.__class__ is NewResult:
                memory, offset, layout, count, shared = output
                data = made[memory.buffer]
                version = [count, 0]
                if shared is not None:
                    counter, base, place, how = shared
                    if counter < len(results):
                        version = results[counter]._version_
                results.append(make(data[offset:] if offset else data, layout, version))
                if shared is None or (not how and base is None):
                    continue
                if base is None or base == OWN:
                    be_view(results[-1], data, shared[1:])
                else:
                    bases.append((results[-1], base, (data, *place), how))
            elif output.__class__ is ArgumentResult:
                index, offset, layout, whole, how, count = output
                t = leaves[index]
                if whole:
                    results.append(t)
                    continue
                out = make(t._data[offset:] if offset else t._data, layout, t._version_ if count < 0 else [count, 0])
                results.append(out if how == "detached" else share_view(t, out, how))
            else:
                results.append(self.gradients[output.number].tensor if output.__class__ is GradientResult else output.tensor)
        if bases:
            _look_at_bases(results, bases)
        return results

    def _fresh_gradient(self, g: KeptGradient) -> bool:
        """Let ``g`` have the tensor that will be the leaf's gradient: the last one, if nobody else has it; whether it is in place."""
        if g.buffer is None:
            return True
        there = g.leaf._grad is g.tensor
        if g.tensor is None or g.tensor._rg or g.tensor._layout is not g.layout or g.tensor._data is not g.memory or not alone(g, there):
            g.tensor = None  # until the program writes into the new memory: what is broken off here begins anew
            g.memory = launch.empty(g.size, g.carrier)
            self.program.bind(g.buffer, g.memory)
            g.tensor = make(g.memory, g.layout, [g.version, 0])
            return False
        g.tensor._version_[0] = g.version
        return there


def _look_at_bases(results: list[Any], views: list[tuple[Tensor, int, tuple[Any, ...], str]]) -> None:
    """Let results be views of another one (its number), or of a base that is none (below 0: one for each number)."""
    hidden: dict[int, Tensor] = {}
    for t, number, (data, offset, layout, requires_grad), how in views:
        base = results[number] if number >= 0 else hidden.get(number)
        if base is None:
            base = hidden[number] = hidden_base(t, data[offset:] if offset else data, layout, requires_grad)
        t._view, t._seen, t._view_kind = base, t._version_[0], how
