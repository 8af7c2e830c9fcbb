"""`compile`: a function that is captured once for each kind of call, and then run as a native program."""

from __future__ import annotations

import functools
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from copy import copy, deepcopy
from enum import Enum
from typing import Any

import numpy as np

from .. import config, dtypes, launch
from ..autograd.anomaly import _state as _anomaly
from ..autograd.function import Function
from ..autograd.saved import _state as _saved_hooks
from ..autograd.wrapped import Wrapped
from ..errors import AutogradError
from ..graph.modes import state
from ..graph.node import sequence, set_edges
from ..ops.cast import dense
from ..shapes import Layout
from ..tensor import LeafBackward0, Tensor, edge, fill_node, make, share_view
from .capture import Buffer, Capture, Problem, address, in_order, root, watching
from .fuse import fuse
from .guards import Reach, TooMuch
from .program import Program, Refused, live
from .quick import quick
from .simplify import simplify
from .slots import _Slot, plain_number

MOST_PROGRAMS = 16  #: of one function; one that needs more stays eager
ATTEMPTS = 4  #: captures in a row that find Python's state changed


class CompileError(AutogradError):
    """A function that was to be captured whole (``fullgraph=True``) cannot be."""


class Unstable(Exception):
    """The run changed Python's state (a first step made its buffers, say): capture again at the next call."""

    def __init__(self, what: str):
        super().__init__(what)
        self.what = what


def _flatten(value: Any, leaves: list, others: list | None = None) -> Any:
    """Put tensors of nested containers into ``leaves``; what remains, as a hashable key. ``others``: receives other objects."""
    if isinstance(value, Tensor):
        leaves.append(value)
        return value.__class__
    if isinstance(value, (list, tuple)):
        return (type(value), *[_flatten(v, leaves, others) for v in value])
    if isinstance(value, dict):
        return (type(value), *[(k, _flatten(v, leaves, others)) for k, v in value.items()])
    if isinstance(value, (float, complex)):
        return (type(value), value if value and value == value else repr(value))  # −0.0 is not 0.0, nan is itself
    if value is None or isinstance(value, (int, str, bytes, range)):
        return (type(value), value)
    if isinstance(value, slice):
        return (slice, *[_flatten(v, leaves, others) for v in (value.start, value.stop, value.step)])
    if _is_record(value):
        return (type(value), *[(k, _flatten(v, leaves, others)) for k, v in vars(value).items()])
    if others is not None:
        others.append(value)
    return ("object", id(value))


def _is_record(value: Any) -> bool:
    """Whether it is a dataclass instance with nothing but its fields."""
    fields = getattr(type(value), "__dataclass_fields__", None)
    return fields is not None and getattr(value, "__dict__", {}).keys() == fields.keys()


def _rebuild(value: Any, leaves: Any) -> Any:
    """``value`` with its tensors replaced, in order."""
    if isinstance(value, Tensor):
        return next(leaves)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_rebuild(v, leaves) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_rebuild(v, leaves) for v in value)
    if isinstance(value, dict):
        new = copy(value)
        for k, v in value.items():
            new[k] = _rebuild(v, leaves)
        return new
    if _is_record(value):
        new = copy(value)
        for k, v in vars(value).items():
            object.__setattr__(new, k, _rebuild(v, leaves))
        return new
    return plain_number(value)


def _slots(value: Any, found: list[Any]) -> None:
    """The live numbers in a value."""
    if isinstance(value, _Slot):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for v in value:
            _slots(v, found)
    elif isinstance(value, dict) or _is_record(value):
        for v in (value if isinstance(value, dict) else vars(value)).values():
            _slots(v, found)


def _containers(value: Any) -> Iterator[Any]:
    """The containers in a value that can change."""
    if isinstance(value, (list, dict)) or _is_record(value):
        yield value
    if isinstance(value, (list, tuple)):
        for v in value:
            yield from _containers(v)
    elif isinstance(value, dict) or _is_record(value):
        for v in (value if isinstance(value, dict) else vars(value)).values():
            yield from _containers(v)


def _surroundings() -> Any:
    """What holds in this thread beside arguments and reachable values, as a part of the key; None where calls stay eager."""
    if state.inference or _saved_hooks.stack or _anomaly.enabled:
        return None
    return state.grad, dtypes.get_default_dtype()


class _Argument:
    """A tensor argument as a program saw it."""

    __slots__ = ("buffer", "has_grad", "layout", "requires_grad", "shares", "shift", "written")

    def __init__(self, t: Tensor, buffer: int | None, shift: int):
        self.layout, self.requires_grad, self.has_grad = t._layout, t.requires_grad, t._grad is not None
        self.buffer, self.shift, self.written = buffer, shift, 0
        self.shares: Tensor | tuple[int, int] | None = None  # the state tensor that it is, or (earlier argument, bytes between)


def _stand_in(t: Tensor) -> Tensor:
    """A tensor in the place of ``t``, whose node leads to where the gradient of ``t`` flows."""
    s = make(t._data, t._layout, t._version_)
    s._edge, s._rg = fill_node(LeafBackward0(), (edge(t),)), True
    return s


class Variant:
    """One captured call: its program, when it holds, and what it does to Python's objects."""

    def __init__(self, key: Any, arguments: list[_Argument], guard: Callable[[], int], reach: Reach, program: Program):
        self.key, self.arguments, self.guard, self.reach, self.program = key, arguments, guard, reach, program
        self.function: Any = None
        self.given: Any = None  # (args, kwargs) with places for tensors
        self.writes = False  # whether the program writes to arguments or state
        self.sharing = False  # whether arguments share memory with one another or with state
        self.state_roots: set[int] = set()
        self.order: list[int] = []  # which of ``outputs`` stands at each place of the result
        self.held: list[
            tuple
        ] = []  # (leaf, buffer, layout, shift, how much its version grows) of gradients that it starts from
        self.expects_some: list[Tensor] = []
        self.outputs: list[tuple] = []
        self.result: Any = None
        self.gradients: list[list] = []  # [leaf getter, tensor or None, buffer, layout]
        self.versions: list[tuple[Any, int]] = []
        self.expects_none: list[Tensor] = []
        self.decided: list[tuple[_Slot, Any]] = []
        self.reason = ""
        self.plain = True
        self.back: Back | None = None
        self.quick: Callable[[list[Tensor]], Any] | None = None

    def refuses(self, leaves: list[Tensor]) -> str:
        """Why this program does not serve a call whose key is the same; empty if it does."""
        for i, (t, a) in enumerate(zip(leaves, self.arguments, strict=True)):
            if t._layout is not a.layout:
                wanted = a.layout
                return (
                    f"argument {i} has shape {list(t.shape)}, strides {list(t.stride())}, {t.dtype} and not {list(wanted.shape)}, "
                    f"{list(wanted.strides)}, {wanted.dtype}"
                )
            if (t._rg if t._view is None else t.requires_grad) is not a.requires_grad:
                return f"requires_grad of argument {i} is {t.requires_grad}"
            if (t._grad is not None) is not a.has_grad:
                return f"argument {i} has {'no' if t._grad is None else 'a'} gradient"
        if self.writes or self.sharing:
            shared = self._shared(leaves)
            if shared:
                return shared
        changed = self.guard()
        if changed >= 0:
            return self.reach.describe(changed)
        for t in self.expects_none:
            if t._grad is not None:
                return "a gradient has been left that was None"
        for t in self.expects_some:
            if t._grad is None:
                return "a gradient is None that was not"
        for t, _, layout, _, _ in self.held:
            g = t._grad
            if g is None or g._layout is not layout or g._rg:
                return "a gradient that it adds to is another"
        if self.held and len({id(root(t._grad._data)) for t, *_ in self.held} - self.state_roots) != len(self.held):
            return "gradients share memory"
        for slot, value in self.decided:
            if slot.read() != value:
                return "a number that decides what is computed has changed"
        return ""

    def _shared(self, leaves: list[Tensor]) -> str:
        """Where arguments share memory in another way than when this was captured."""
        roots = [root(t._data) for t in leaves]
        for i, (t, r, a) in enumerate(zip(leaves, roots, self.arguments, strict=True)):
            if a.shares is None:
                if self.writes and (id(r) in self.state_roots or any(r is q for q in roots[:i])):
                    return f"argument {i} shares memory with another argument or with what the function reaches"
            elif isinstance(a.shares, Tensor):
                if t is not a.shares:
                    return f"argument {i} is no longer a tensor that the function reaches"
            else:
                j, between = a.shares
                if r is not roots[j] or address(t._data) - address(leaves[j]._data) != between:
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
        return results[0] if self.plain else _rebuild(self.result, iter([results[i] for i in self.order]))

    def differentiable_gradients(self, leaves: list[Tensor], gs: tuple) -> Any:
        """The gradients of the inputs as functions of everything: by running the function again, eagerly.

        RuntimeError for a function of which a second run would do something else than the first.
        """
        from ..autograd.api import grad

        assert self.back is not None
        if self.writes or self.versions or self.gradients or self.held or self.program.draws:
            raise RuntimeError(
                "create_graph=True through a compiled function that changes tensors or draws random numbers is not supported; call the "
                "function itself, without compile()"
            )
        cut = [i for i, t in enumerate(leaves) if t.requires_grad and t._edge is not None]
        ends = [edge(leaves[i]) for i in cut]
        stand_ins = {i: _stand_in(leaves[i]) for i in cut}
        args, kwargs = _rebuild(self.given, iter([stand_ins.get(i, t) for i, t in enumerate(leaves)]))
        flat = list({id(t): t for t in _tensors(self.function(*args, **kwargs))}.values())
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

    def _fresh_gradient(self, g: list) -> None:
        """The tensor that will be the leaf's gradient: the last one, if nobody else has it."""
        leaf, tensor, buffer, layout, size, carrier = g
        if buffer is None:
            return
        # references: this list, the leaf's slot if it is there, the local name, getrefcount's argument
        if tensor is None or sys.getrefcount(tensor) > (4 if leaf._grad is tensor else 3) or sys.getrefcount(tensor._data) > 3:
            g[1] = make(launch.empty(size, carrier), layout, [0, 0])
            self.program.bind(buffer, g[1]._data)


_NUMBERS = -1  #: in a frame, the numbers that the forward pass drew


class Back:
    """The backward pass of a program whose results require grad."""

    def __init__(self) -> None:
        self.program: Program
        self.saved: list[tuple[int, int, Any]] = []  # (buffer, elements, dtype) of what the forward pass leaves
        self.seeds: list[tuple[int, int, Any]] = []  # (index of the result, buffer, layout) of incoming gradients
        #: for each input: ("new", buffer, elements, dtype, offset, layout), ("seed", i), ("view", i, offset, layout) or None
        self.gradients: list[tuple | None] = []
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
        for index, _, layout in self.seeds:
            g = gs[index]
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
        for g in self.gradients:
            if g is None:
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
        ctx.held = (variant, leaves, frame, bound, counters)
        new = [r if kind == "new" else None for r, (kind, *_) in zip(results, variant.outputs, strict=True)]
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


_all: weakref.WeakSet = weakref.WeakSet()
_capturing = threading.RLock()
_PACKAGE = __name__.partition(".")[0]


class Compiled:
    """What `compile` returns for a function: called like it, captured once for each kind of call."""

    def __init__(self, function: Callable, fullgraph: bool, check: bool):
        functools.update_wrapper(self, function, updated=())
        self._function, self._fullgraph, self._check = function, fullgraph, 3 if check else 0
        self._variants: dict[Any, list[Variant]] = {}
        self._eager: dict[Any, str] = {}
        self._attempts: dict[Any, int] = {}
        self._grown: set[Any] = set()  # keys of calls whose arguments have a graph of their own
        self._count = 0
        _all.add(self)

    def __reduce__(self) -> Any:
        function = self._function
        module = sys.modules.get(getattr(function, "__module__", None) or "")
        if getattr(module, getattr(function, "__qualname__", ""), None) is self:  # a decorated function is found by its name
            return str(function.__qualname__)
        return compile_function, (function, self._fullgraph, self._check > 0)

    def __deepcopy__(self, memo: dict) -> Any:
        function = self._function
        return (
            self
            if isinstance(function, types.FunctionType)
            else compile_function(deepcopy(function, memo), self._fullgraph, self._check > 0)
        )

    def forget(self) -> None:
        """Capture anew from now on."""
        self._variants, self._eager, self._attempts, self._count = {}, {}, {}, 0

    @property
    def programs(self) -> list[Variant]:
        """The captured calls; each has ``reason`` (why it was captured), ``program`` and ``key``."""
        return [v for variants in self._variants.values() for v in variants]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        around = _surroundings()
        watching = launch.observer()
        if around is None or (watching is not None and not hasattr(watching, "program")):
            return self._function(*args, **kwargs)
        leaves: list[Tensor] = []
        given = tuple([Tensor if a.__class__ is Tensor else None for a in args])
        if kwargs or None in given:
            key = (_flatten(args, leaves), _flatten(kwargs, leaves) if kwargs else None, around)
        else:
            leaves, key = list(args), (given, None, around)
        if key in self._eager:
            return self._function(*args, **kwargs)
        variant, reason = self._find(key, leaves)
        if variant is None:
            with _capturing:  # one at a time: a capture changes what other threads would see
                variant, reason = self._find(key, leaves)
                if variant is None:
                    return self._capture(key, leaves, args, kwargs, reason)
        try:
            if self._check:
                return self._compared(variant, leaves, args, kwargs)
            return variant.run(leaves) if watching is None else watching.program(self.__name__, variant.run, leaves)
        except Refused:  # a value was refused before anything had changed: say so as the function itself does
            return self._function(*args, **kwargs)

    def _find(self, key: Any, leaves: list[Tensor]) -> tuple[Variant | None, str]:
        """The captured call that serves, or why none does."""
        reason = "first call of its kind"
        for v in self._variants.get(key, ()):
            reason = v.refuses(leaves)
            if not reason:
                return v, ""
        return None, reason

    # ---- capturing
    def _capture(self, key: Any, leaves: list[Tensor], args: tuple, kwargs: dict, reason: str) -> Any:
        if self._count >= MOST_PROGRAMS:
            self._give_up(key, Problem(f"it was captured {self._count} times, the last because {reason}"))
            return self._function(*args, **kwargs)
        try:
            reach = Reach()
            reach.function(self._function)
            others: list[Any] = []
            before = _flatten((args, kwargs), [], others)
            for a in others:
                reach.value("an argument", a)
            for kind in {t.__class__ for t in (*leaves, *(t for _, t in reach.tensors.values()))}:
                if issubclass(kind, Wrapped):  # within vmap, grad or jvp
                    self._eager[key] = "it is called within a transform"
                    return self._function(*args, **kwargs)
                if not kind.__module__.startswith(_PACKAGE):
                    raise TooMuch(f"it works on a tensor of the class {kind.__name__}")
            session = Session(self._function, reach, leaves)
            if session.argument_problem:
                raise TooMuch(session.argument_problem)
        except TooMuch as error:
            if self._fullgraph or key not in self._variants:
                self._give_up(key, Problem(str(error)))
            return self._function(*args, **kwargs)
        alias = key in self._grown
        result = session.run(*(session.aliased(args, kwargs) if alias else (args, kwargs)))
        try:
            after: list[Tensor] = []
            if before != _flatten((args, kwargs), after) or any(t is not s for t, s in zip(after, leaves, strict=True)):
                raise Problem("it changes a container that it is given; return the values instead")
            variant = session.variant(key, result, {id(c) for c in _containers((args, kwargs))}, alias)
            if variant is None:  # arguments have a graph of their own, and are not changed: the next call is captured
                self._grown.add(key)
                return result
        except Unstable as error:
            n = self._attempts[key] = self._attempts.get(key, 0) + 1
            if n >= ATTEMPTS:
                self._give_up(key, Problem(f"every call changes Python's state: {error.what}"))
            return result
        except Problem as problem:
            self._give_up(key, problem)
            return result
        variant.reason = reason
        variant.function, variant.given = self._function, _emptied((args, kwargs))
        self._count += 1
        self._variants.setdefault(key, []).insert(0, variant)
        return result

    def _give_up(self, key: Any, problem: Problem) -> None:
        name = getattr(self._function, "__name__", "function")
        where = f" at {problem.line}" if problem.line else ""
        if self._fullgraph:
            raise CompileError(f"compile({name}, fullgraph=True): {problem.reason}{where}")
        self._eager[key] = problem.reason
        warnings.warn(f"compile({name}): this kind of call runs eagerly, as {problem.reason}{where}", UserWarning, stacklevel=4)

    # ---- checking
    def _compared(self, variant: Variant, leaves: list[Tensor], args: tuple, kwargs: dict) -> Any:
        """Run compiled and eager from the same state, and compare everything they change."""
        self._check -= 1
        watched = [t for _, t in variant.reach.tensors.values()] + leaves
        grads = [t._grad for t in watched]
        before = [t._data.copy() for t in watched]
        before_grads = [None if g is None else g._data.copy() for g in grads]
        sources = [getattr(s, "source", s) for s, _ in variant.program.draws]
        draws = {id(s): (s, s._seed, s._call) for s in sources}
        result = variant.run(leaves)
        found = [t._data.copy() for t in watched]
        found_grads = [None if t._grad is None else t._grad.detach().clone() for t in watched]
        values = [t.detach().clone() for t in _tensors(result)]
        for t, data, g, gd in zip(watched, before, grads, before_grads, strict=True):
            t._data[...] = data
            t._grad = g
            if g is not None and gd is not None:
                g._data[...] = gd
        for s, seed, call in draws.values():
            s._seed, s._call = seed, call
        expected = self._function(*args, **kwargs)
        for what, a, b in (
            ("a result", values, [t.detach() for t in _tensors(expected)]),
            ("memory", found, [t._data for t in watched]),
            ("a gradient", found_grads, [None if t._grad is None else t._grad for t in watched]),
        ):
            for x, y in zip(a, b, strict=True):
                if not _alike(x, y):
                    raise CompileError(f"compile(check=True): compiled and eager runs differ in {what}: {x} and {y}")
        return expected


def _tensors(value: Any) -> list[Tensor]:
    leaves: list[Tensor] = []
    _flatten(value, leaves)
    return leaves


def _alike(x: Any, y: Any) -> bool:
    if x is None or y is None:
        return x is y
    from ..tensor import ndarray

    a, b = (v if isinstance(v, np.ndarray) else ndarray(v.detach()) for v in (x, y))
    if a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    tolerance = 1e-4 if a.dtype.itemsize <= 4 else 1e-9
    return bool(
        np.allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, float(np.nanmax(np.abs(b), initial=0.0))), equal_nan=True)
    )


#: objects in results that may be given again: they do not change
_HARMLESS = (type, types.ModuleType, types.BuiltinFunctionType, dtypes.dtype, Layout, np.generic)


class Session:
    """One capture: the run, and the program that is made of it."""

    def __init__(self, function: Callable, reach: Reach, leaves: list[Tensor]):
        self.function, self.reach, self.leaves = function, reach, leaves
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
            if r in fixed:
                if id(t) not in reached:
                    self.argument_problem = (
                        f"argument {i} shares memory with a tensor or gradient that the function reaches; pass a copy (clone())"
                    )
                self.shares.append(t)
                continue
            self.shares.append((roots[r], address(t._data) - address(leaves[roots[r]]._data)) if r in roots else None)
            roots.setdefault(r, i)
            known.append(("argument", f"argument {i}", t))
        self.grown = [i for i, t in enumerate(leaves) if t.requires_grad and t._edge is not None]
        self.edges = [edge(t) for t in leaves]
        self.stand_ins: dict[int, Tensor] = {}  # of arguments with a graph of their own
        self.capture = Capture(known)
        self.capture.grads = {i: (t, g, 0 if g is None else g._version_[0]) for i, (t, g) in self.grads.items()}
        self.began = sequence()
        self.versions = [(t, t._version_, t._version_[0]) for t in [*self.watched, *leaves]]
        self.grad_versions = [(g._version_, g._version_[0]) for _, g in self.grads.values() if g is not None]
        self.replaced: dict = {}
        self._numbers = 0

    def run(self, args: tuple, kwargs: dict) -> Any:
        """Run the function, watched."""
        with watching(self.capture, self.reach.optimizers if self.reach.live_numbers else []) as self.replaced:
            result = self.function(*args, **kwargs)
        numbers: list[Any] = []
        _slots(result, numbers)
        for n in numbers:
            n._decide()
        return _rebuild(result, iter(_tensors(result))) if numbers else result

    def aliased(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The arguments with stand-ins for those that have a graph of their own: the captured part of the graph ends there."""
        for i in self.grown:
            self.stand_ins[i] = _stand_in(self.leaves[i])
        return _rebuild((args, kwargs), iter([self.stand_ins.get(i, t) for i, t in enumerate(self.leaves)]))  # type: ignore[no-any-return]

    def variant(self, key: Any, result: Any, given: set[int], alias: bool) -> Variant | None:
        """What was captured, as a program. Problem or Unstable when it cannot be run again.

        ``given``: ids of the containers among the arguments. None where arguments have a graph and had no stand-ins (``alias``).
        """
        capture, reach = self.capture, self.reach
        decided = {id(s) for s in capture.decided}
        codes = set()
        for g in (g for o in reach.optimizers for g in o.param_groups):
            number = reach._seen.get(id(g))
            codes |= {(f"o{number}", repr(name)) for (i, name) in self.replaced if i == id(g)}
        changed = reach.checker(codes)()
        if changed >= 0:
            raise Unstable(reach.describe(changed))
        if capture.problems:
            raise capture.problems[0]
        if any(edge(t) is not e for t, e in zip(self.leaves, self.edges, strict=True)):
            raise Problem("it changes an argument in place that requires grad")
        if self.grown and not alias:
            return None
        if any(b.kind == "state" and b.owner is None for b in capture.buffers.values()):
            raise Problem("memory without an owner")
        arguments = [self._argument(i, t) for i, t in enumerate(self.leaves)]
        kept, gradients, expects_none = self._gradients()
        flat, order = self._results(result, given)
        outputs, fresh = self._outputs(flat, kept, gradients)
        forward = list(capture.steps)
        back = self._backward(flat, forward)
        if back is not None:
            fresh |= {number for number, _, _ in back.saved}
        wanted = [b for b in capture.buffers.values() if b.number in kept or b.number in fresh]
        steps = self._optimised(live(forward, wanted), kept | fresh)
        held, expects_some = self._started()
        program = Program(steps, in_order(capture.draws, capture.streams), kept, fresh | {b for _, b, *_ in held})
        if reach.handles and program.refuses_late:
            raise Problem("it handles errors, and changes something before a value may be refused")
        changed = reach.checker(codes)()
        if changed >= 0:
            raise Unstable(reach.describe(changed))
        variant = Variant(key, arguments, reach.checker(codes), reach, program)
        variant.back = back
        variant.outputs, variant.result, variant.order = outputs, result, order
        variant.held, variant.expects_some, variant.state_roots = held, expects_some, self.state_roots
        variant.writes = any(u.buffer.kind in ("state", "argument") for s in steps for u, written in s.uses() if written)
        variant.sharing = any(a.shares is not None for a in arguments)
        variant.plain = isinstance(result, Tensor)
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
        variant.result = _emptied(result)
        program.starts_over = True
        variant.quick = quick(variant)
        capture._kept.clear()
        capture.grads.clear()
        for b in capture.buffers.values():  # what the run computed is not needed any more
            if b.kind in ("argument", "temporary"):
                b.array, b.owner = np.empty(0, b.array.dtype), None
        return variant

    def _argument(self, i: int, t: Tensor) -> _Argument:
        buffer = self.capture.buffer_of(t._data)
        reached = isinstance(self.shares[i], Tensor)
        a = _Argument(t, None if reached else buffer.number, address(t._data) - address(root(t._data)))
        a.has_grad = self.grads[id(t)][1] is not None
        a.shares = self.shares[i]
        a.written = next(counter[0] - before for s, counter, before in self.versions if s is t)
        return a

    def _gradients(self) -> tuple[set[int], list[list], list[Tensor]]:
        kept: set[int] = set()
        found: list[list] = []
        expects_none: list[Tensor] = []
        arguments = {id(t) for t in self.leaves}
        for t, before in self.grads.values():
            after = t._grad
            if before is None and id(t) not in self.capture.forgotten and t._rg and id(t) not in arguments:
                expects_none.append(t)
            if before is not None and after is before:
                if id(t) not in self.capture.forgotten:
                    continue
            if after is before:
                continue
            if id(t) in arguments:
                raise Problem("it leaves a gradient in an argument; return the gradient instead")
            if after is None:
                found.append([t, None, None, None, 0, None])
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
            found.append([t, None, b.number, after._layout, b.array.size, b.array.dtype])
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
        _flatten(result, found, others)
        for o in others:
            if not isinstance(o, (_HARMLESS, Enum)) and id(o) not in self.reach._seen:
                raise Problem(
                    f"its result holds an object of the class {type(o).__name__}; return tensors, numbers and containers of them"
                )
        for c in _containers(result):
            if id(c) in given or id(c) in self.reach._seen:
                raise Problem("its result is a container that it was given or reaches; return a new one")
        flat = list({id(t): t for t in found}.values())
        place = {id(t): i for i, t in enumerate(flat)}
        stand_ins = {id(s): self.leaves[i] for i, s in self.stand_ins.items()}
        return [stand_ins.get(id(t), t) for t in flat], [place[id(t)] for t in found]

    def _optimised(self, steps: list[Any], outside: set[int]) -> list[Any]:
        """Simplified and fused; new buffers get numbers far from those of others."""
        self._numbers += 1_000_000
        return fuse(simplify(steps, outside), outside, self._numbers)

    def _backward(self, flat: list[Tensor], forward: list[Any]) -> Back | None:
        """The backward pass of results that require grad, captured as a program of its own."""
        mine = {id(t) for t in (*self.watched, *self.leaves)}
        results = [t for t in flat if t._rg and id(t) not in mine and not _consumed(t)]
        if not results:
            return None
        differentiable = {id(t) for t in results}

        capture = self.capture
        back = Back()
        back.differentiable = [t._rg and (id(t) in mine or id(t) in differentiable) for t in flat]
        inputs: list[Tensor] = []
        for t in self._ends(results):
            index = next((i for i, a in enumerate(self.leaves) if a is t), None)
            if index is None:
                index = next((i for i, s in self.stand_ins.items() if s is t), None)
            if index is None and id(t) not in self.reach.tensors:
                raise Problem("its result depends on a tensor that requires grad and cannot be found from the function")
            inputs.append(t)
            back.inputs.append(("argument", index) if index is not None else ("state", t))
        seeds = []
        for i, t in enumerate(flat):
            if id(t) in differentiable:
                seed = make(np.ones(max(t._layout.size, 1), t._data.dtype), t._layout.dense, [0, 0])
                seeds.append(seed)
                back.seeds.append(
                    (i, capture.buffer_of(seed._data, "argument", "an incoming gradient").number, t._layout.dense)
                )
        draws = len(capture.draws)
        hooks = [(t, t._leaf_hook_set) for t in inputs]  # they run where the gradient arrives
        for t in inputs:
            t._leaf_hook_set = None
        for s in self.stand_ins.values():  # what lies behind them is not this function's affair
            set_edges(s._edge, (None,))
        try:
            found = self._gradient(results, inputs, seeds)
        finally:
            for t, h in hooks:
                t._leaf_hook_set = h
            for i, s in self.stand_ins.items():
                set_edges(s._edge, (self.edges[i],))
        if capture.problems:
            raise capture.problems[0]
        if len(capture.draws) != draws:
            raise Problem("the backward pass of its results draws random numbers")
        steps = capture.steps[len(forward) :]
        grads: set[int] = set()
        owner = {b: i for i, (_, b, _) in enumerate(back.seeds)}
        for g in found:
            if g is None:
                back.gradients.append(None)
                continue
            b = capture.buffer_of(g._data)
            if b.number in owner and g._layout is seeds[owner[b.number]]._layout:
                back.gradients.append(("seed", owner[b.number]))
            elif b.number in owner and b.array.dtype == g._data.dtype:  # of a sum, say: the incoming gradient, expanded
                back.gradients.append(
                    ("view", owner[b.number], (address(g._data) - address(b.array)) // g._data.itemsize, g._layout)
                )
            elif b.kind == "temporary" and b.array.dtype == g._data.dtype:
                grads.add(b.number)
                back.gradients.append(
                    (
                        "new",
                        b.number,
                        b.array.size,
                        b.array.dtype,
                        (address(g._data) - address(b.array)) // g._data.itemsize,
                        g._layout,
                    )
                )
            else:
                raise Problem("a gradient shares memory with the function's state")
        made = {u.buffer.number for s in forward for u, written in s.uses() if written}
        steps = live(steps, [b for b in capture.buffers.values() if b.number in grads])
        read = {u.buffer.number: u.buffer for s in steps for u, _ in s.uses()}
        saved = [b for n, b in read.items() if n in made and b.kind == "temporary"]
        if any(b.number in grads for b in saved):
            raise Problem("a gradient is memory of the forward pass")
        back.saved = [(b.number, b.array.size, b.array.dtype) for b in saved]
        state = {n for n, b in read.items() if b.kind == "state"}
        back.reads_arguments = {n for n, b in read.items() if b.kind == "argument"}
        back.reads = [t for t in self.watched if capture.buffer_of(t._data).number in state]
        steps = self._optimised(steps, grads)
        back.program = Program(steps, [], grads, {b.number for b in saved} | {b for _, b, _ in back.seeds})
        return back

    def _gradient(self, results: list[Tensor], inputs: list[Tensor], seeds: list[Tensor]) -> Any:
        from ..autograd.api import grad

        with launch.observe(self.capture):
            return grad(results, inputs, seeds, retain_graph=True, allow_unused=True)

    def _ends(self, results: list[Tensor]) -> list[Tensor]:
        """Where the graph of the results ends: leaves and stand-ins, in the order of a walk from the results."""
        found: list[Tensor] = []
        ends = {id(s._edge): s for s in self.stand_ins.values()}
        seen: set[int] = set()
        stack = [t._edge for t in reversed(results)]
        while stack:
            e = stack.pop()
            e = getattr(e, "node", e) if e is not None and not e.is_leaf_edge else e
            if e is None or id(e) in seen:
                continue
            seen.add(id(e))
            if e.is_leaf_edge or id(e) in ends:
                found.append(ends.get(id(e), e))
                continue
            if e.seq < self.began:
                raise Problem("its result depends on a tensor with a graph of its own, made outside; pass it as an argument")
            hooks = e.hooks
            if hooks is not None and (hooks.pre or hooks.post or hooks.retained or any(hooks.tensor.values())):
                raise Problem("hooks run in the backward pass of its results, or retain gradients there")
            stack.extend(reversed(e.edges))
        return found

    def _outputs(self, flat: list[Tensor], kept: set[int], gradients: list[list]) -> tuple[list[tuple], set[int]]:
        fresh: set[int] = set()
        outputs: list[tuple] = []
        by_state = {id(t) for t in self.watched}
        for t in flat:
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
                outputs.append(("argument", index, shift, t._layout, t is a))
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
                fresh.add(b.number)
                outputs.append(("new", b.number, b.array.size, b.array.dtype, offset, t._layout, t._version_[0]))
            else:
                raise Problem("a result shares memory with the function's state; return a copy (clone())")
        return outputs, fresh


def _consumed(result: Tensor) -> bool:
    """Whether the function itself ran a backward pass from here: a loss that a training step returns is a plain number."""
    seen: set[int] = set()
    stack = [result._edge]
    while stack:
        e = stack.pop()
        e = getattr(e, "node", e) if e is not None and not e.is_leaf_edge else e
        if e is None or e.is_leaf_edge or id(e) in seen:
            continue
        if e.consumed is not None:
            return True
        seen.add(id(e))
        stack.extend(e.edges)
    return False


def _emptied(value: Any) -> Any:
    """The result's structure, holding no memory of the capture."""
    place = make(np.empty(0, np.float32), _EMPTY, [0, 0])
    leaves: list[Tensor] = []
    _flatten(value, leaves)
    return _rebuild(value, iter([place] * len(leaves)))


def _empty_layout() -> Any:
    from ..shapes import layout

    return layout((0,), None, dtypes.float32)


_EMPTY = _empty_layout()


def compile_function(function: Any, fullgraph: bool, check: bool) -> Any:
    """The compiled form of a function (see `autograd_nb.compile`)."""
    from numba import config as numba_config

    if numba_config.DISABLE_JIT:
        return function
    return Compiled(function, fullgraph, check)


__all__ = ["Buffer", "CompileError", "Compiled", "compile_function", "config"]
