"""`trace`: a static graph of a function, to feed and to fetch from.

The graph is defined once, by running the function on examples, and then run any number of times: `Graph.run` computes only
what the fetched values need, and takes any value, also one in the middle, as given. `Graph.grad` adds the backward pass.
"""

from __future__ import annotations

import inspect
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import count
from typing import Any

import numpy as np

from ... import launch
from ...autograd.api import grad
from ...codegen.build.files import archiving, replacing
from ...dtypes import BY_NAME
from ...graph import markup
from ...graph.modes import enable_grad, no_grad
from ...ops.core.registry import OPS
from ...ops.creation.cast import dense
from ...shapes import Layout, layout_of
from ...tensor import Tensor, make, wrap
from ..capture.effects import watching
from ..capture.recorder import Capture
from ..guards.places import TooMuch
from ..guards.reach import Reach
from ..ir import Buffer, Step, Use, address, needed, show
from ..live_numbers import plain_number
from ..lower.executable import Executable
from ..lower.memory_plan import plan
from ..passes.pipeline import PASSES, SIMPLIFYING, optimize


class GraphError(RuntimeError):
    """A graph cannot be made, saved or run as asked."""


class Value:
    """A named value of a graph: where it stands once ``step`` has run (−1: before all of them)."""

    __slots__ = ("buffer", "layout", "name", "offset", "step")
    name: str
    buffer: Buffer
    offset: int
    layout: Layout
    step: int

    def __init__(self, name: str, buffer: Buffer, offset: int, layout: Layout, step: int):
        self.name, self.buffer, self.offset, self.layout, self.step = name, buffer, offset, layout, step

    def __repr__(self) -> str:
        return f"{self.name}: {self.layout.dtype.name}{list(self.layout.shape)}"


def label(tensor: Tensor, name: str) -> Tensor:
    """Return ``tensor``, under a name by which a graph that is being traced can fetch or feed it."""
    watcher = launch.observer()
    if isinstance(watcher, _Tracing):
        watcher.labels[name] = tensor
    return tensor


class _Tracing(Capture):
    """A capture that collects labels."""

    def __init__(self, known: list[Any]):
        super().__init__(known)
        self.labels: dict[str, Tensor] = {}


class Graph:
    """A static graph. ``inputs``, ``outputs``: names; ``values``: everything that can be fetched or fed, by name."""

    name: str
    steps: list[Step]
    draws: list[Any]

    def __init__(self, name: str, steps: list[Step], draws: list[Any]):
        self.name, self.steps, self.draws = name, steps, draws
        self.inputs: list[str] = []
        self.outputs: list[str] = []
        self.values: dict[str, Value] = {}
        self._tensors: dict[str, Tensor] = {}
        self._capture: Capture | None = None
        self._numbers = count(1_000_000)  # of buffers that passes make
        self._programs: dict[tuple[Any, ...], tuple[Executable, list[str], list[str]]] = {}
        self.checked = False  # whether it is from a file: its kernels look at bounds, and nothing is fused

    # ---- running
    def run(self, fetch: str | Sequence[str] | None = None, feed: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """Return the fetched values (all outputs by default) for the values fed; only what they need is computed.

        Args:
            fetch: a name, or names: inputs, outputs, labels, kernels' results as `print` shows them, or parameters, whose update
                is then run.
            feed: name -> tensor (or array); also as keywords. Every input that is needed must be fed, and any value may be.

        Errors: KeyError for a name that the graph does not have, GraphError for an input that is missing, TypeError or
        RuntimeError for a value of another dtype or shape.
        """
        single = isinstance(fetch, str)
        names = [fetch] if isinstance(fetch, str) else list(self.outputs if fetch is None else fetch)
        given = {**(feed or {}), **more}
        for n in (*names, *given):
            if n not in self.values:
                raise KeyError(f"the graph {self.name} has no value {n!r}; it has: {', '.join(list(self.values)[:40])}")
        key = (tuple(names), tuple(sorted(given)))
        if key not in self._programs:
            self._programs[key] = self._program(names, given)
        program, order, needed = self._programs[key]
        arrays = {n: self._fed(n, given[n]) for n in order}
        results = {}
        with program.alone() as program:
            bound = self._fill(arrays)
            made: dict[int, np.ndarray] = {}
            for n in needed:
                b = self.values[n].buffer
                if b.number not in made:
                    made[b.number] = launch.empty(b.array.size, b.array.dtype)
            for number, array in (bound | made).items():
                program.bind(number, array)
            self._run(program)
        for n in names:
            v = self.values[n]
            if v.buffer.number in bound:  # (a result of one's own, though it is what was fed, or a view of it)
                data = _elements(bound[v.buffer.number], v).copy()
            else:
                data = _elements(made.get(v.buffer.number, v.buffer.array), v)
            results[n] = make(data, v.layout, [0, 0])
        return results[names[0]] if single else [results[n] for n in names]

    __call__ = run

    def _run(self, program: Executable) -> None:
        try:
            program.run()
        except Exception as error:
            if not self.checked or isinstance(error, GraphError):
                raise
            raise GraphError(f"{self.name}: the file that it was loaded from is damaged: {error}") from None

    def _fill(self, arrays: dict[str, np.ndarray]) -> dict[int, np.ndarray]:
        """Return the memory of the buffers that values are fed to: a value's own where it is all of a buffer, else a copy with it."""
        found: dict[int, np.ndarray] = {}
        fed = [self.values[n] for n in arrays]
        for v, array in zip(fed, arrays.values(), strict=True):
            b, begin, n = v.buffer, v.offset * array.itemsize, v.layout.extent * array.itemsize
            if n == b.nbytes and sum(w.buffer is b for w in fed) == 1:
                found[b.number] = array
                continue
            if b.number not in found:
                found[b.number] = launch.empty(b.nbytes, np.dtype(np.uint8))
                found[b.number].fill(0)
            found[b.number][begin : begin + n] = array[: v.layout.extent].view(np.uint8)
        return found

    def _fed(self, name: str, value: Any) -> np.ndarray:
        v = self.values[name]
        t = value if isinstance(value, Tensor) else wrap(np.ascontiguousarray(value))
        if t.dtype is not v.layout.dtype:
            raise TypeError(f"{self.name}: {name} is {v.layout.dtype}, it was fed {t.dtype}; convert it with .to()")
        if t.shape != v.layout.shape:
            raise RuntimeError(f"{self.name}: {name} has shape {list(v.layout.shape)}, it was fed {list(t.shape)}; trace again for other shapes")
        if t._layout is v.layout:
            return t._data
        if not v.layout.contiguous:
            raise RuntimeError(f"{self.name}: {name} has strides {list(v.layout.strides)}, which must be kept: it was fed {list(t.stride())}")
        return dense(t.detach())

    def _program(self, names: list[str], given: Mapping[str, Any]) -> tuple[Executable, list[str], list[str]]:
        fed = {self.values[n].buffer.number: n for n in given}
        wanted = [self.values[n] for n in names if self.values[n].buffer.number not in fed]
        for v in wanted:
            if v.buffer.kind == "argument":
                raise GraphError(f"{self.name}: {v.name} is an input, feed it")
        last = max((v.step for v in wanted), default=-1)
        for v in wanted:
            if any(u.buffer is v.buffer and written for s in self.steps[v.step + 1 : last + 1] for u, written in s.uses()):
                raise GraphError(f"{self.name}: {v.name} is overwritten before {max(wanted, key=lambda w: w.step).name} is known; fetch it alone")
        numbers = {v.buffer.number for v in wanted}
        steps = needed(self.steps[: last + 1], numbers, fed.keys(), effects=False)
        read = {u.buffer.number: u.buffer for s in steps for u, _ in s.uses()}
        for name in self.inputs:
            b = self.values[name].buffer
            if b.number in read and b.number not in fed:
                raise GraphError(f"{self.name}: the input {name} must be fed to fetch {', '.join(names)}")
        fresh = {v.buffer.number for v in wanted if v.buffer.kind == "temporary"}
        copies = [s.copy() for s in steps]
        outside = fresh | set(fed)
        # of a file's steps the passes that fuse would trust what they are called and what they are given
        copies = optimize(copies, outside | numbers, self._numbers, SIMPLIFYING if self.checked else PASSES)
        if self.checked:
            check_memory(self.name, plan(copies, outside)[1] + sum(v.buffer.nbytes for v in wanted))
        program = Executable(copies, self.draws, set(), outside)
        used = read.keys() | {self.values[n].buffer.number for n in names}
        return program, [n for n in given if self.values[n].buffer.number in used], [v.name for v in wanted if v.buffer.number in fresh]

    # ---- derivatives
    def grad(self, of: str, wrt: str | Sequence[str]) -> list[str]:
        """Add the gradients of a value of one element; their names, to be fetched (and differentiated again).

        Errors: KeyError for a name that cannot be differentiated: only inputs, outputs, labels, parameters and gradients can;
        GraphError when ``of`` does not depend on ``wrt``.
        """
        if self._capture is None:
            raise GraphError(f"{self.name}: a graph that was loaded from a file has no derivatives; add them before saving")
        wanted = [wrt] if isinstance(wrt, str) else list(wrt)
        for n in (of, *wanted):
            if n not in self._tensors:
                raise KeyError(f"{self.name}: {n!r} cannot be differentiated; these can: {', '.join(self._tensors)}")
        target = self._tensors[of]
        if target.numel() != 1:
            raise GraphError(f"{self.name}: grad of {of}, which has {target.numel()} elements; it must have one")
        before = len(self.steps)
        with launch.observe(self._capture), enable_grad():
            found = grad(target, [self._tensors[n] for n in wanted], create_graph=True, retain_graph=True, allow_unused=True)
        self._note(before)
        names = []
        for n, g in zip(wanted, found, strict=True):
            if g is None:
                raise GraphError(f"{self.name}: {of} does not depend on {n}")
            name = f"d {of}/d {n}"
            self._add(name, g, len(self.steps) - 1)
            self._tensors[name] = g
            names.append(name)
        return names

    # ---- making
    def _copied(self, name: str) -> str:
        """Return the name of a copy of a value, in memory of its own."""
        assert self._capture is not None
        before = len(self.steps)
        with launch.observe(self._capture), no_grad():
            copy = OPS["clone"].call(self._tensors[name])
        self._note(before)
        self._add(f"copy of {name}", copy, len(self.steps) - 1)
        return f"copy of {name}"

    def _add(self, name: str, t: Tensor, step: int) -> None:
        assert self._capture is not None
        buffer = self._capture.buffer_of(t._data)
        last = max((i for i, s in enumerate(self.steps[: step + 1]) if any(u.buffer is buffer and w for u, w in s.uses())), default=-1)
        self.values[name] = Value(name, buffer, (address(t._data) - address(buffer.array)) // t._data.itemsize, t._layout, last)

    def _note(self, first: int) -> None:
        """Name what the steps from ``first`` on write."""
        for i in range(first, len(self.steps)):
            step = self.steps[i]
            layouts = getattr(getattr(step.call, "recipe", None), "out_layouts", ())
            for k, position in enumerate(step.writes):
                use = step.operands[position]
                if use.buffer.kind != "temporary" or use.dtype.name not in BY_NAME:
                    continue
                base = step.name if k == 0 else f"{step.name}.{k}"
                name, n = base, 1
                while name in self.values:
                    n += 1
                    name = f"{base}_{n}"
                layout = layouts[k] if k < len(layouts) else layout_of((use.size,), None, BY_NAME[use.dtype.name])
                self.values[name] = Value(name, use.buffer, use.offset // use.dtype.itemsize, layout, i)

    # ---- seeing
    def __str__(self) -> str:
        names = {(v.buffer.number, v.step): n for n, v in reversed(self.values.items())}
        lines = [f"graph {self.name}({', '.join(map(repr, (self.values[n] for n in self.inputs)))})"]
        for i, s in enumerate(self.steps):
            known = [names[key] for o in (s.operands[w] for w in s.writes) if (key := (o.buffer.number, i)) in names]
            lines.append(f"{i:4d}  {show(s)}" + (f"    # {', '.join(known)}" if known else ""))
        lines.append(f"return {', '.join(map(repr, (self.values[n] for n in self.outputs)))}")
        return "\n".join(lines)

    @property
    def source(self) -> dict[str, str]:
        """Return the text of every kernel that was generated, by the kernel's name; of others where they stand."""
        found: dict[str, str] = {}
        for s in self.steps:
            origin = getattr(s.call, "origin", ())
            if origin and origin[0] == "source":
                found.setdefault(s.name, origin[1])
            elif origin:
                found.setdefault(s.name, f"# autograd_nb.kernels.{origin[1]}.{origin[2]}")
        return found

    def svg(self, path: Any = None) -> str:
        """Return a picture of the graph: kernels as boxes, left to right by how early they can run; written to ``path`` if given."""
        from .picture import picture

        text = picture(self)
        if path is not None:
            with replacing(path) as f:
                f.write(text.encode())
        return text

    def _repr_html_(self) -> str:
        from .picture import picture

        return markup.page(markup.zoomable(picture(self)), markup.fold("As text", f"<pre>{markup.escape(str(self))}</pre>"))

    # ---- files
    def save(self, path: Any) -> None:
        """Write the graph and the memory that it reads to a file, for `load_graph`; an older one stays until the new one is whole.

        Errors: GraphError when it holds a check of values (an index in range), which only Python can do, or a complex number.
        """
        buffers = {u.buffer.number: u.buffer for s in self.steps for u, _ in s.uses()} | {v.buffer.number: v.buffer for v in self.values.values()}
        steps = []
        for s in self.steps:
            origin = getattr(s.call, "origin", ())
            if s.check is not None or not origin or any(hasattr(o, "read") for o in s.operands):
                raise GraphError(f"{self.name}: the step {s.name} cannot be saved (a check of values, a random number or a number that is read anew)")
            steps.append({
                "name": s.name, "origin": list(origin), "operands": [_plain(o) for o in s.operands], "writes": list(s.writes),
                "over": s.call.over, "outputs": s.call.outputs,
            })  # fmt: skip
        head = {
            "format": 1,
            "name": self.name,
            "inputs": self.inputs,
            "outputs": self.outputs,
            "values": [
                [v.name, v.buffer.number, v.offset, list(v.layout.shape), list(v.layout.strides), v.layout.dtype.name, v.step]
                for v in self.values.values()
            ],
            "buffers": [[b.number, b.kind, b.path, b.array.size, b.array.dtype.str] for b in buffers.values()],
            "steps": steps,
        }
        try:
            text = json.dumps(head)
        except TypeError as error:
            raise GraphError(f"{self.name}: it cannot be saved: {error}") from None
        with nullcontext(path) if hasattr(path, "write") else replacing(path) as file, archiving(file, zipfile.ZIP_DEFLATED) as z:
            z.writestr("graph.json", text)
            for b in buffers.values():
                if b.kind in ("state", "constant"):
                    z.writestr(f"memory/{b.number}", b.array.ravel("K").tobytes())


def _elements(array: np.ndarray, v: Value) -> np.ndarray:
    """Return the flat array that begins with a value's first element, in the memory of its buffer."""
    flat, d = array.ravel("K"), v.layout.dtype.carrier
    if flat.dtype == d:
        return flat[v.offset :]
    memory = flat.view(np.uint8)[v.offset * d.itemsize :]
    return memory[: memory.size // d.itemsize * d.itemsize].view(d)


def check_memory(name: str, size: int) -> None:
    """Raise GraphError where a graph wants more bytes at a time than the machine has."""
    try:
        most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        most = 1 << 40
    if size > most:
        raise GraphError(f"{name}: it wants {size} bytes of memory, which this machine does not have")


def _plain(value: Any) -> Any:
    if isinstance(value, Use):
        return {"buffer": value.buffer.number, "offset": value.offset, "size": value.size, "dtype": value.dtype.str}
    return list(value) if isinstance(value, tuple) else plain_number(value)


def _parameters(function: Callable[..., Any], examples: tuple[Any, ...]) -> list[str]:
    """Return the names of a function's parameters. TypeError where there is no example of one."""
    try:
        called = inspect.signature(function)
    except ValueError:  # it is written in C
        return []
    try:
        called.bind(*examples)
    except TypeError as error:
        wanted = ", ".join([getattr(function, "__name__", "f").strip("<>"), *called.parameters])
        raise TypeError(f"trace(): {error}: give an example of each argument, trace({wanted})") from None
    return list(called.parameters)


def trace(function: Callable[..., Any], *examples: Any, names: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Graph:
    """Return a static `Graph` of a function, from one run on example tensors.

    Args:
        examples: tensors of the shapes and dtypes that will be fed. names: of the inputs, else the function's parameters.
        outputs: names of the results, else "output" (or "output0", …, or the keys of a dict).

    Errors: GraphError when the function reads values, or uses tensors that cannot be found from it.

    Example:
        >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> graph = torch.trace(lambda x: (x * w).sum(), torch.zeros(2))
        >>> graph.run(feed={"x": torch.tensor([3.0, 4.0])})
        [tensor(11.)]
        >>> graph.run(graph.grad("output", "w"), x=torch.tensor([3.0, 4.0]))
        [tensor([3., 4.])]
    """
    parameters = _parameters(function, examples)
    given = list(names) if names is not None else parameters[: len(examples)]
    if len(given) < len(examples):
        given += [f"input{k}" for k in range(len(given), len(examples))]
    for n, e in zip(given, examples, strict=False):
        if not isinstance(e, Tensor):
            raise TypeError(f"trace(): example '{n}' must be Tensor, not {type(e).__name__}")
    reach = Reach()
    try:
        reach.function(function)
    except TooMuch as error:
        raise GraphError(f"trace({getattr(function, '__name__', 'function')}): {error}") from None
    # stand-ins of the examples: leaves of this graph, in memory of their own
    stand = [make(dense(e.detach().clone()), e._layout.dense, [0, 0]).requires_grad_(e.dtype.category >= 2) for e in examples]
    known = [("state", path, t) for path, t in reach.tensors.values()] + [("argument", n, t) for n, t in zip(given, stand, strict=False)]
    capture = _Tracing(known)
    with watching(capture, reach.optimizers), enable_grad():
        result = function(*stand)
    if capture.problems:
        raise GraphError(f"trace({getattr(function, '__name__', 'function')}): {capture.problems[0].reason} {capture.problems[0].line}")
    graph = Graph(getattr(function, "__name__", "graph").strip("<>"), capture.steps, capture.draws)
    graph._capture = capture
    for n, t in zip(given, stand, strict=False):
        graph._add(n, t, -1)
        graph.inputs.append(n)
        graph._tensors[n] = t
    for path, t in reach.tensors.values():
        graph._add(path, t, len(graph.steps) - 1)
        graph._tensors[path] = t
    last = len(graph.steps) - 1
    for n, t in {**capture.labels, **_named(result, outputs)}.items():
        graph._add(n, t, last)
        graph._tensors[n] = t
    graph.outputs = list(_named(result, outputs))
    graph._note(0)
    return graph


def _within(name: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of a result that may be nested, with names that say where they are."""
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, (list, tuple, Mapping)):
        for k, v in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _within(f"{name}.{k}", v)


def _named(result: Any, names: Sequence[str] | None) -> dict[str, Tensor]:
    if isinstance(result, Tensor):
        return {names[0] if names else "output": result}
    if isinstance(result, Mapping):
        return {name: t for k, v in result.items() for name, t in _within(str(k), v)}
    if isinstance(result, (list, tuple)):
        return {name: t for k, v in enumerate(result) for name, t in _within(names[k] if names else f"output{k}", v)}
    raise GraphError(f"trace(): the function must return tensors, it returned {type(result).__name__}")
