"""A captured call: when it holds, and how it is run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import launch
from ..autograd.function import Function
from ..graph.modes import state
from ..graph.node import set_edges
from ..ops.cast import dense
from ..ops.create import new_full
from ..tensor import LeafBackward0, Tensor, edge, fill_node, make, share_view
from .capture import address, root
from .guards import Guard, Reach
from .kept import Kept
from .nested import rebuild, tensors_in
from .program import Program
from .slots import _Slot


class Argument:
    """A tensor argument as a program saw it."""

    __slots__ = ("buffer", "has_grad", "layout", "requires_grad", "shares", "shift", "written")

    def __init__(self, t: Tensor, buffer: int | None, shift: int):
        self.layout, self.requires_grad, self.has_grad = t._layout, t.requires_grad, t._grad is not None
        self.buffer, self.shift, self.written = buffer, shift, 0
        #: the state tensor that it is, or (earlier argument, bytes between, whether it is the same tensor)
        self.shares: Tensor | tuple[int, int, bool] | None = None


def stand_in(t: Tensor) -> Tensor:
    """A tensor in the place of ``t``, whose node leads to where the gradient of ``t`` flows."""
    s = make(t._data, t._layout, t._version_)
    s._edge, s._rg = fill_node(LeafBackward0(), (edge(t),)), True
    return s


class Variant:
    """One captured call: its program, when it holds, and what it does to Python's objects."""

    def __init__(self, key: Any, arguments: list[Argument], guard: Guard, reach: Reach, program: Program):
        self.key, self.arguments, self.guard, self.reach, self.program = key, arguments, guard, reach, program
        self.changed = True  # whether live numbers may have, since the program was last given them
        self.function: Any = None
        self.given: Any = None  # (args, kwargs) with places for tensors
        self.exclusive = False  # whether other aliases among arguments and state mean another program
        self.asked: set[str] = set()  # attributes that arguments were asked for and did not have
        self.sharing = False  # whether arguments share memory with one another or with state
        self.state_roots: set[int] = set()
        self.order: list[int] = []  # which of ``outputs`` stands at each place of the result
        self.held: list[
            tuple
        ] = []  # (leaf, buffer, layout, shift, how much its version grows) of gradients that it starts from
        self.expects_some: list[Tensor] = []
        self.outputs: list[tuple] = []
        self.result: Any = None
        self.gradients: list[list] = []  # [leaf, tensor or None, buffer, layout, elements, dtype, version]
        self.versions: list[tuple[Any, int]] = []
        self.expects_none: list[Tensor] = []
        self.decided: list[tuple[_Slot, Any]] = []
        self.reason = ""
        self.plain = True
        self.stores: list[Kept] = []  # where the last of the results are left
        self.carries = False  # whether the last arguments are what earlier calls have left
        self.back: Back | None = None
        self.quick: Callable[[list[Tensor]], Any] | None = None

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
            return self.reach.describe(changed)
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
            return self.quick(leaves)
        if self.back is None:
            results = self._run(leaves, None)
        else:
            results = []
            made = _Captured.apply(self, leaves, results, *self.back.wanted(leaves))
            results = [m if m is not None else r for m, r in zip(made, results, strict=True)]
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

    def differentiable_gradients(self, leaves: list[Tensor], gs: tuple) -> Any:
        """The gradients of the inputs as functions of everything: by running the function again, eagerly.

        RuntimeError for a function of which a second run would do something else than the first.
        """
        from ..autograd.api import grad

        assert self.back is not None
        changes = self.program.writes or self.versions or self.gradients or self.held or self.stores or self.carries
        if changes or self.program.draws:
            raise RuntimeError(
                "create_graph=True through a compiled function that changes tensors or draws random numbers is not supported; call the "
                "function itself, without compile()"
            )
        cut = [i for i, t in enumerate(leaves) if t.requires_grad and t._edge is not None]
        ends = [edge(leaves[i]) for i in cut]
        stand_ins = {i: stand_in(leaves[i]) for i in cut}
        args, kwargs = rebuild(self.given, iter([stand_ins.get(i, t) for i, t in enumerate(leaves)]))
        flat = list({id(t): t for t in tensors_in(self.function(*args, **kwargs))}.values())
        pairs = [(t, g) for t, g, d in zip(flat, gs, self.back.differentiable, strict=True) if d and g is not None]
        inputs = [x if kind == "state" else stand_ins.get(x, leaves[x]) for kind, x in self.back.inputs]
        for s in stand_ins.values():
            set_edges(s._edge, (None,))
        try:
            return grad([t for t, _ in pairs], inputs, [g for _, g in pairs], create_graph=True, allow_unused=True)
        finally:
            for s, e in zip(stand_ins.values(), ends, strict=True):
                set_edges(s._edge, (e,))

    def _run(self, leaves: list[Tensor], frame: dict[int, Any] | None) -> list[Any]:
        """Run the program; ``frame`` receives the memory that the backward pass will read."""
        program = self.program
        with program.lock:
            for t, a in zip(leaves, self.arguments, strict=True):
                if a.buffer is not None:
                    program.bind(a.buffer, t._data, a.shift)
            for leaf, buffer, _, shift, _ in self.held:
                program.bind(buffer, leaf._grad._data, shift)
            for g in self.gradients:
                self._fresh_gradient(g)
            made: dict[int, Any] = {} if frame is None else frame
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
            if self.back is not None and self.back.program._live:
                made[_NUMBERS] = self.back.program.numbers()
        for counter, by in self.versions:
            counter[0] += by
        for leaf, _, _, _, by in self.held:
            leaf._grad._version_[0] += by
        counters = {id(t._version_): (t._version_, a.written) for t, a in zip(leaves, self.arguments, strict=True) if a.written}
        for counter, by in counters.values():
            counter[0] += by
        for leaf, tensor, *_ in self.gradients:
            leaf._grad = tensor
        results = []
        versions: dict[int, list[int]] = {}
        for kind, *spec in self.outputs:
            if kind == "new":
                buffer, _, _, offset, layout, count = spec
                data = made[buffer]
                results.append(make(data[offset:] if offset else data, layout, versions.setdefault(buffer, [count, 0])))
            elif kind == "argument":
                index, offset, layout, whole = spec
                t = leaves[index]
                if whole:
                    results.append(t)
                else:
                    out = make(t._data[offset:] if offset else t._data, layout, t._version_)
                    share_view(t, out)
                    results.append(out)
            elif kind == "gradient":
                results.append(self.gradients[spec[0]][1])
            else:
                results.append(spec[0])
        return results

    def _fresh_gradient(self, g: list) -> bool:
        """Let ``g`` have the tensor that will be the leaf's gradient: the last one, if nobody else has it; whether it is in place."""
        leaf, tensor, buffer, layout, size, carrier, version = g
        if buffer is None:
            return True
        there = leaf._grad is tensor
        # references: this list, the leaf's slot if it is there, the local name, getrefcount's argument
        if (
            tensor is None
            or tensor._rg
            or sys.getrefcount(tensor) > (4 if there else 3)
            or sys.getrefcount(tensor._data) > 2  # of its memory: the tensor, getrefcount's argument
        ):
            g[1] = make(launch.empty(size, carrier), layout, [version, 0])
            self.program.bind(buffer, g[1]._data)
            return False
        tensor._version_[0] = version
        return there


_NUMBERS = -1  #: in a frame, the numbers that the forward pass drew


class Back:
    """The backward pass of a program whose results require grad."""

    def __init__(self) -> None:
        self.program: Program
        self.saved: list[tuple[int, int, Any]] = []  # (buffer, elements, dtype) of what the forward pass leaves
        self.seeds: list[tuple[int, int, Any]] = []  # (index of the result, buffer, layout) of incoming gradients
        #: for each input: ("new", buffer, elements, dtype, offset, layout), ("seed", i), ("view", i, offset, layout) or None
        self.gradients: list[tuple | None] = []
        self.reached: list[set[int]] = []  # for each input: from which of the seeds its gradient comes
        self.inputs: list[tuple[str, Any]] = []  # ("argument", index) or ("state", tensor)
        self.reads: list[Tensor] = []  # the user's tensors that the backward pass reads
        self.reads_arguments: set[int] = set()  # the buffers of the arguments that it reads
        self.differentiable: list[bool] = []

    def wanted(self, leaves: list[Tensor]) -> list[Tensor]:
        """The tensors that gradients flow to."""
        return [leaves[x] if kind == "argument" else x for kind, x in self.inputs]

    def run(self, leaves: list[Tensor], frame: dict[int, Any], bound: list[tuple], gs: tuple) -> list[Any]:
        """The gradients of the inputs."""
        program = self.program
        incoming = []
        missing = set()
        for k, (index, _, layout) in enumerate(self.seeds):
            g = gs[index]
            if g is None:
                missing.add(k)
                g = new_full(layout.shape, 0, layout.dtype)
            incoming.append(dense(g if g.dtype is layout.dtype else g.to(layout.dtype)))
        made: dict[int, np.ndarray] = {}
        with program.lock:
            for (_, buffer, _), data in zip(self.seeds, incoming, strict=True):
                program.bind(buffer, data)
            for number, data in frame.items():
                if number != _NUMBERS:
                    program.bind(number, data)
            for number, data, shift in bound:
                program.bind(number, data, shift)
            for g in self.gradients:
                if g is not None and g[0] == "new" and g[1] not in made:
                    made[g[1]] = launch.empty(g[2], g[3])
                    program.bind(g[1], made[g[1]])
            program.run(frame.get(_NUMBERS))
        found: list[Any] = []
        for g, seeds in zip(self.gradients, self.reached, strict=True):
            if g is None or seeds <= missing:
                found.append(None)
            elif g[0] == "seed":
                found.append(gs[self.seeds[g[1]][0]])
            elif g[0] == "view":
                found.append(make(incoming[g[1]][g[2] :], g[3], [0, 0]))
            else:
                data = made[g[1]]
                found.append(make(data[g[4] :] if g[4] else data, g[5], [0, 0]))
        return found


class _Captured(Function):
    """A compiled function in the graph."""

    @staticmethod
    def forward(ctx: Any, variant: Variant, leaves: list[Tensor], results: list[Tensor], *inputs: Tensor) -> Any:
        frame: dict[int, Any] = {}
        results[:] = variant._run(leaves, frame)
        back = variant.back
        assert back is not None
        bound = [(a.buffer, t._data, a.shift) for t, a in zip(leaves, variant.arguments, strict=True) if a.buffer is not None]
        read = [t for t, a in zip(leaves, variant.arguments, strict=True) if a.buffer in back.reads_arguments]
        counters = [(t, t._version_[0]) for t in (*back.reads, *read)]
        # (what an earlier call has left may have a graph, which would keep the calls before that one alive)
        ctx.held = (variant, [] if variant.carries else leaves, frame, bound, counters)
        new = [r if kind == "new" else None for r, (kind, *_) in zip(results, variant.outputs, strict=True)]
        ctx.set_materialize_grads(False)  # no gradient is another answer than one of zeros
        ctx.mark_non_differentiable(*[r for r, d in zip(new, back.differentiable, strict=True) if r is not None and not d])
        return tuple(new)

    @staticmethod
    def backward(ctx: Any, *gs: Any) -> Any:
        variant, leaves, frame, bound, counters = ctx.held
        for t, count in counters:
            if t._version_[0] != count:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an inplace operation: a tensor of shape "
                    f"{list(t.shape)} that a compiled function had read is at version {t._version_[0]}; expected version {count} instead. "
                    "Run backward before the update."
                )
        if state.grad:  # create_graph
            return (None, None, None, *variant.differentiable_gradients(leaves, gs))
        return (None, None, None, *variant.back.run(leaves, frame, bound, gs))
