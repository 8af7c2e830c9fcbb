"""`compile`: a function that is captured once for each kind of call, and then run as a native program."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import config, dtypes, launch
from ..autograd.function import Function, once_differentiable
from ..errors import AutogradError
from ..graph.modes import state
from ..ops.cast import dense
from ..tensor import Tensor, make, share_view
from .capture import Buffer, Capture, Problem, address, root, watching
from .fuse import fuse
from .guards import Reach, TooMuch
from .program import Program, live
from .quick import quick
from .simplify import simplify
from .slots import _Slot

MOST_PROGRAMS = 16  #: of one function; one that needs more stays eager
ATTEMPTS = 4  #: captures in a row that find Python's state changed


class CompileError(AutogradError):
    """A function that was to be captured whole (``fullgraph=True``) cannot be."""


class Unstable(Exception):
    """The run changed Python's state (a first step made its buffers, say): capture again at the next call."""

    def __init__(self, what: str):
        super().__init__(what)
        self.what = what


def _flatten(value: Any, leaves: list, path: str = "") -> Any:
    """Put tensors of nested containers into ``leaves``; what remains, as a hashable key."""
    if isinstance(value, Tensor):
        leaves.append(value)
        return Tensor
    if isinstance(value, (list, tuple)):
        return (type(value), *(_flatten(v, leaves) for v in value))
    if isinstance(value, dict):
        return (type(value), *((k, _flatten(v, leaves)) for k, v in value.items()))
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return (type(value), value)
    return ("object", id(value))


def _rebuild(value: Any, leaves: Any) -> Any:
    """``value`` with its tensors replaced, in order."""
    if isinstance(value, Tensor):
        return next(leaves)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_rebuild(v, leaves) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_rebuild(v, leaves) for v in value)
    if isinstance(value, dict):
        return type(value)((k, _rebuild(v, leaves)) for k, v in value.items())
    return value


class _Argument:
    """A tensor argument as a program saw it."""

    __slots__ = ("buffer", "layout", "requires_grad", "shift", "written")

    def __init__(self, layout: Any, requires_grad: bool, buffer: int | None, shift: int):
        self.layout, self.requires_grad, self.buffer, self.shift, self.written = layout, requires_grad, buffer, shift, 0


class Variant:
    """One captured call: its program, when it holds, and what it does to Python's objects."""

    def __init__(self, key: Any, arguments: list[_Argument], guard: Callable[[], int], reach: Reach, program: Program):
        self.key, self.arguments, self.guard, self.reach, self.program = key, arguments, guard, reach, program
        self.same: list[tuple[int, int]] = []
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
        for i, j in self.same:
            if leaves[i]._data is not leaves[j]._data:
                return f"arguments {i} and {j} are no longer one tensor"
        if not self.same and len(leaves) > 1 and len({id(t._version_) for t in leaves}) != len(leaves) and any(a.written for a in self.arguments):
            return "arguments share memory"
        changed = self.guard()
        if changed >= 0:
            return self.reach.describe(changed)
        for t in self.expects_none:
            if t._grad is not None:
                return "a gradient has been left that was None"
        for slot, value in self.decided:
            if slot.read() != value:
                return "a number that decides what is computed has changed"
        return ""

    def run(self, leaves: list[Tensor]) -> Any:
        """The results of a call that this program serves."""
        if self.quick is not None:
            return self.quick(leaves)
        if self.back is None:
            results = self._run(leaves, None)
        else:
            results = _Captured.apply(self, leaves, *self.back.wanted(leaves))
        return self.rebuilt(results)

    def rebuilt(self, results: Any) -> Any:
        """The results in the function's containers."""
        return results[0] if self.plain else _rebuild(self.result, iter(results))

    def _run(self, leaves: list[Tensor], frame: dict[int, np.ndarray] | None) -> list[Any]:
        """Run the program; ``frame`` receives the memory that the backward pass will read."""
        program = self.program
        with program.lock:
            for t, a in zip(leaves, self.arguments, strict=True):
                if a.buffer is not None:
                    program.bind(a.buffer, t._data, a.shift)
            for g in self.gradients:
                self._fresh_gradient(g)
            made: dict[int, np.ndarray] = {} if frame is None else frame
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
        for counter, by in self.versions:
            counter[0] += by
        for t, a in zip(leaves, self.arguments, strict=True):
            if a.written:
                t._version_[0] += a.written
        for leaf, tensor, *_ in self.gradients:
            leaf._grad = tensor
        results = []
        for kind, *spec in self.outputs:
            if kind == "new":
                buffer, _, _, offset, layout = spec
                data = made[buffer]
                results.append(make(data[offset:] if offset else data, layout, [0, 0]))
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
        self.differentiable: list[bool] = []

    def wanted(self, leaves: list[Tensor]) -> list[Tensor]:
        """The tensors that gradients flow to."""
        return [leaves[x] if kind == "argument" else x for kind, x in self.inputs]

    def run(self, leaves: list[Tensor], frame: dict[int, np.ndarray], bound: list[tuple], gs: tuple) -> list[Any]:
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
                program.bind(number, data)
            for number, data, shift in bound:
                program.bind(number, data, shift)
            for g in self.gradients:
                if g is not None and g[0] == "new" and g[1] not in made:
                    made[g[1]] = launch.empty(g[2], g[3])
                    program.bind(g[1], made[g[1]])
            program.run()
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
    def forward(ctx: Any, variant: Variant, leaves: list[Tensor], *inputs: Tensor) -> Any:
        frame: dict[int, np.ndarray] = {}
        results = variant._run(leaves, frame)
        back = variant.back
        assert back is not None
        bound = [(a.buffer, t._data, a.shift) for t, a in zip(leaves, variant.arguments, strict=True) if a.buffer is not None]
        counters = [(t, t._version_[0]) for t in (*back.reads, *leaves)]
        ctx.held = (variant, leaves, frame, bound, counters)
        ctx.mark_non_differentiable(*[r for r, d in zip(results, back.differentiable, strict=True) if not d])
        return tuple(results)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gs: Any) -> Any:
        variant, leaves, frame, bound, counters = ctx.held
        for t, count in counters:
            if t._version_[0] != count:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an inplace operation: a tensor of shape "
                    f"{list(t.shape)} that a compiled function had read is at version {t._version_[0]}; expected version {count} instead. "
                    "Run backward before the update."
                )
        return (None, None, *variant.back.run(leaves, frame, bound, gs))


class Compiled:
    """What `compile` returns for a function: called like it, captured once for each kind of call."""

    def __init__(self, function: Callable, fullgraph: bool, check: bool):
        functools.update_wrapper(self, function, updated=())
        self._function, self._fullgraph, self._check = function, fullgraph, 3 if check else 0
        self._variants: dict[Any, list[Variant]] = {}
        self._eager: dict[Any, str] = {}
        self._attempts: dict[Any, int] = {}
        self._count = 0

    @property
    def programs(self) -> list[Variant]:
        """The captured calls; each has ``reason`` (why it was captured), ``program`` and ``key``."""
        return [v for variants in self._variants.values() for v in variants]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves: list[Tensor] = []
        given = tuple([Tensor if a.__class__ is Tensor else None for a in args])
        if kwargs or None in given:
            key = (_flatten(args, leaves), _flatten(kwargs, leaves) if kwargs else None, state.grad)
        else:
            leaves, key = list(args), (given, None, state.grad)
        watching = launch.observer()
        if state.inference or key in self._eager or (watching is not None and not hasattr(watching, "program")):
            return self._function(*args, **kwargs)
        variants = self._variants.get(key)
        reason = "first call of its kind"
        if variants:
            for v in variants:
                reason = v.refuses(leaves)
                if not reason:
                    if self._check:
                        return self._compared(v, leaves, args, kwargs)
                    return v.run(leaves) if watching is None else watching.program(self.__name__, v.run, leaves)
        return self._capture(key, leaves, args, kwargs, reason)

    # ---- capturing
    def _capture(self, key: Any, leaves: list[Tensor], args: tuple, kwargs: dict, reason: str) -> Any:
        if self._count >= MOST_PROGRAMS:
            self._give_up(key, Problem(f"it was captured {self._count} times, the last because {reason}"))
            return self._function(*args, **kwargs)
        try:
            reach = Reach()
            reach.function(self._function)
            for i, a in enumerate((*args, *kwargs.values())):
                if not isinstance(a, (Tensor, int, float, str, type(None), list, tuple, dict)):
                    reach.value(f"argument {i}", a)
        except TooMuch as error:
            self._give_up(key, Problem(str(error)))
            return self._function(*args, **kwargs)
        session = Session(self._function, reach, leaves)
        result = session.run(args, kwargs)
        try:
            variant = session.variant(key, result)
        except Unstable as error:
            n = self._attempts[key] = self._attempts.get(key, 0) + 1
            if n >= ATTEMPTS:
                self._give_up(key, Problem(f"every call changes Python's state: {error.what}"))
            return result
        except Problem as problem:
            self._give_up(key, problem)
            return result
        variant.reason = reason
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
        draws = {id(s): (s, s._seed, s._call) for s, _ in variant.program.draws}
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
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, float(np.nanmax(np.abs(b), initial=0.0))), equal_nan=True))


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
        state_roots = {id(root(t._data)) for _, _, t in known}
        roots: dict[int, int] = {}
        self.same: list[tuple[int, int]] = []
        self.in_state: set[int] = set()
        for i, t in enumerate(leaves):
            r = id(root(t._data))
            if r in state_roots:
                self.in_state.add(i)
            elif r in roots and leaves[roots[r]]._data is t._data:
                self.same.append((roots[r], i))
            else:
                if r in roots:
                    self.argument_problem = "two arguments are parts of one array; pass copies (clone())"
                roots.setdefault(r, i)
                known.append(("argument", f"argument {i}", t))
        self.capture = Capture(known)
        self.versions = [(t, t._version_, t._version_[0]) for t in [*self.watched, *leaves]]
        self.grad_versions = [(g._version_, g._version_[0]) for _, g in self.grads.values() if g is not None]
        self.replaced: dict = {}
        self._numbers = 0

    def run(self, args: tuple, kwargs: dict) -> Any:
        """Run the function, watched."""
        with watching(self.capture, self.reach.optimizers) as self.replaced:
            return self.function(*args, **kwargs)

    def variant(self, key: Any, result: Any) -> Variant:
        """What was captured, as a program. Problem or Unstable when it cannot be run again."""
        capture, reach = self.capture, self.reach
        decided = {id(s) for s in capture.decided}
        codes = set()
        for g in (g for o in reach.optimizers for g in o.param_groups):
            number = reach._seen.get(id(g))
            codes |= {f"o{number}.get({name!r}, MISSING)" for (i, name) in self.replaced if i == id(g)}
        changed = reach.checker(codes)()
        if changed >= 0:
            raise Unstable(reach.describe(changed))
        if capture.problems:
            raise capture.problems[0]
        if self.argument_problem:
            raise Problem(self.argument_problem)
        if any(b.kind == "state" and b.owner is None for b in capture.buffers.values()):
            raise Problem("memory without an owner")
        arguments = [self._argument(i, t) for i, t in enumerate(self.leaves)]
        kept, gradients, expects_none = self._gradients()
        flat = _tensors(result)
        outputs, fresh = self._outputs(flat, kept, gradients)
        forward = list(capture.steps)
        back = self._backward(flat, forward)
        if back is not None:
            fresh |= {number for number, _, _ in back.saved}
        wanted = [b for b in capture.buffers.values() if b.number in kept or b.number in fresh]
        steps = self._optimised(live(forward, wanted), kept | fresh)
        program = Program(steps, capture.draws, kept, fresh)
        variant = Variant(key, arguments, reach.checker(codes), reach, program)
        variant.back = back
        variant.same, variant.outputs, variant.result = self.same, outputs, result
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
        for counter, before in self.grad_versions:
            if counter[0] != before and id(counter) not in seen:
                seen.add(id(counter))
                variant.versions.append((counter, counter[0] - before))
        variant.result = _emptied(result)
        variant.quick = quick(variant)
        capture._kept.clear()
        return variant

    def _argument(self, i: int, t: Tensor) -> _Argument:
        if i in self.in_state:
            raise Problem("an argument is also reached through the function's closure or globals")
        if t._edge is not None and t._rg:
            raise Problem(f"argument {i} carries a graph of its own (its grad_fn is {t.grad_fn}); detach() it, or compile the function that makes it")
        buffer = self.capture.buffer_of(t._data)
        a = _Argument(t._layout, t._rg, buffer.number, address(t._data) - address(root(t._data)))
        a.written = next(counter[0] - before for s, counter, before in self.versions if s is t)
        return a

    def _gradients(self) -> tuple[set[int], list[list], list[Tensor]]:
        kept: set[int] = set()
        found: list[list] = []
        expects_none: list[Tensor] = []
        arguments = {id(t) for t in self.leaves}
        for t, before in self.grads.values():
            after = t._grad
            if before is None and id(t) not in self.capture.forgotten and t._rg:
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
            if b.kind != "temporary" or b.number in kept or address(after._data) != address(b.array) or b.array.dtype != after._data.dtype:
                raise Problem("a gradient shares its memory with another tensor")
            kept.add(b.number)
            found.append([t, None, b.number, after._layout, b.array.size, b.array.dtype])
        return kept, found, expects_none

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
        from ..autograd.api import grad

        differentiable = {id(t) for t in results}

        capture = self.capture
        back = Back()
        back.differentiable = [t._rg and (id(t) in mine or id(t) in differentiable) for t in flat]
        inputs: list[Tensor] = []
        for t in _leaves_of(results):
            index = next((i for i, a in enumerate(self.leaves) if a is t), None)
            if index is None and id(t) not in self.reach.tensors:
                raise Problem("its result depends on a tensor that requires grad and cannot be found from the function")
            inputs.append(t)
            back.inputs.append(("argument", index) if index is not None else ("state", t))
        seeds = []
        for i, t in enumerate(flat):
            if id(t) in differentiable:
                seed = make(np.ones(max(t._layout.size, 1), t._data.dtype), t._layout.dense, [0, 0])
                seeds.append(seed)
                back.seeds.append((i, capture.buffer_of(seed._data, "argument", "an incoming gradient").number, t._layout.dense))
        with launch.observe(capture):
            found = grad(results, inputs, seeds, retain_graph=True, allow_unused=True)
        if capture.problems:
            raise capture.problems[0]
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
                back.gradients.append(("view", owner[b.number], (address(g._data) - address(b.array)) // g._data.itemsize, g._layout))
            elif b.kind == "temporary" and b.array.dtype == g._data.dtype:
                grads.add(b.number)
                back.gradients.append(("new", b.number, b.array.size, b.array.dtype, (address(g._data) - address(b.array)) // g._data.itemsize, g._layout))
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
        back.reads = [t for t in self.watched if capture.buffer_of(t._data).number in state]
        steps = self._optimised(steps, grads)
        back.program = Program(steps, [], grads, {b.number for b in saved} | {b for _, b, _ in back.seeds})
        return back

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
            index = next((i for i, a in enumerate(self.leaves) if self.capture.buffer_of(a._data) is b), None)
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
                fresh.add(b.number)
                outputs.append(("new", b.number, b.array.size, b.array.dtype, offset, t._layout))
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


def _leaves_of(results: list[Tensor]) -> list[Tensor]:
    """The leaves of a graph, in the order of a walk from its results."""
    found: list[Tensor] = []
    seen: set[int] = set()
    stack = [t._edge for t in reversed(results)]
    while stack:
        e = stack.pop()
        e = getattr(e, "node", e) if e is not None and not e.is_leaf_edge else e
        if e is None or id(e) in seen:
            continue
        seen.add(id(e))
        if e.is_leaf_edge:
            found.append(e)
        else:
            stack.extend(reversed(e.edges))
    return found


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
