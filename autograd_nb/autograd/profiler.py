"""Where the time of a program goes: spans of ops, of nodes of the backward pass, and of the user's own, over kernel launches.

A `Recorder` observes one thread's launches (see `launch.observe`); overrides tell it of structured ops and of nodes. Nothing of
this stands in the way of a program that is not profiled.

Source: https://docs.pytorch.org/docs/stable/autograd.html#profiler
"""

from __future__ import annotations

import functools
import gzip
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter_ns
from typing import Any

import numpy as np

from .. import launch
from ..codegen.build import compilation, notice
from ..codegen.build.files import replacing
from ..graph import engine, markup
from ..graph.node import Node, here, place
from ..ops.core.structured import Structured
from ..overriding import Overrides, whole
from ..tensor import Tensor
from .function import Function

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Recorder", "emit_itt", "emit_nvtx", "profile", "record_function"]

_CURRENT = threading.local()
_OVERRIDES = Overrides()


# ------------------------------------------------------------------------------------------------------ recording


class FunctionEvent:
    """One span of time: an op, a kernel, a node of the backward pass, or a `record_function` block. Times in microseconds."""

    bytes_moved: int
    bytes_written: int
    category: str
    cpu_parent: FunctionEvent | None
    end: int
    id: int
    input_shapes: Any
    name: str
    start: int
    thread: int

    __slots__ = ("_line", "bytes_moved", "bytes_written", "category", "cpu_children", "cpu_parent", "end", "id", "input_shapes", "name", "start", "thread")

    count = 1
    is_async = is_legacy = is_remote = False
    device_type = "DeviceType.CPU"
    device_time_total = self_device_time_total = cuda_time_total = self_cuda_time_total = device_memory_usage = 0

    def __init__(self, name: str, category: str, start: int, parent: FunctionEvent | None, shapes: Any = None, line: Any = None):
        self.name, self.category, self.start, self.end, self.cpu_parent = name, category, start, start, parent
        self.cpu_children: list[FunctionEvent] = []
        self.bytes_moved = self.bytes_written = 0  # by itself, not by its children
        self.input_shapes, self._line = shapes, line
        self.thread = threading.get_native_id()
        self.id = 0

    @property
    def key(self) -> str:
        """Return the name of the event."""
        return self.name

    @property
    def cpu_time_total(self) -> float:
        """Return the time from beginning to end."""
        return (self.end - self.start) / 1000

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """Return the time without the events inside it."""
        return (self.end - self.start - sum(c.end - c.start for c in self.cpu_children)) / 1000

    @property
    def stack(self) -> list[str]:
        """Return the user's line, if it was recorded (``with_stack``)."""
        return [place(*self._line)] if self._line else []

    @property
    def self_cpu_memory_usage(self) -> int:
        """Return the bytes that its kernels wrote."""
        return self.bytes_written

    @property
    def cpu_memory_usage(self) -> int:
        """Return the bytes that its kernels and those of the events inside it wrote."""
        return self.bytes_written + sum(c.cpu_memory_usage for c in self.cpu_children)

    def __repr__(self) -> str:
        return f"<FunctionEvent {self.name}: {_time(self.cpu_time_total)}>"


class Recorder:
    """The observer of one thread's launches, and the tree of events that comes of it."""

    shapes: bool
    lines: bool
    kernels: bool

    def __init__(self, shapes: bool = False, lines: bool = False, kernels: bool = True):
        self.shapes, self.lines, self.kernels = shapes, lines, kernels
        self.roots: list[FunctionEvent] = []
        self.stack: list[FunctionEvent] = []
        self._watching: Any = None

    # ---- spans
    def begin(self, name: str, category: str, shapes: Any = None, start: int | None = None) -> FunctionEvent:
        """Open a span of the recording."""
        parent = self.stack[-1] if self.stack else None
        event = FunctionEvent(name, category, perf_counter_ns() if start is None else start, parent, shapes, here(2) if self.lines else None)
        (parent.cpu_children if parent else self.roots).append(event)
        self.stack.append(event)
        return event

    def finish(self, event: FunctionEvent) -> None:
        """Close a span, and those inside it that an exception left open."""
        end = perf_counter_ns()
        if event not in self.stack:
            return
        while True:
            last = self.stack.pop()
            last.end = end
            if last is event:
                return

    # ---- what `launch` calls
    def __call__(self, call: Any, args: tuple[Any, ...]) -> None:
        start = perf_counter_ns()
        call.entry(*args)
        end = perf_counter_ns()
        moved, written = _bytes(call, args)
        origin = call.origin
        name = f"{origin[1].rpartition('.')[2]}::{origin[2]}" if origin and origin[0] == "kernel" else f"aten::{call.name}"
        above = self.stack[-1] if self.stack else None
        if above is not None and (above.name == name or not self.kernels):  # the op is this kernel
            above.bytes_moved += moved
            above.bytes_written += written
            return
        event = self.begin(name, "kernel" if name[:6] != "aten::" else "cpu_op", _shapes_of(call, args) if self.shapes else None, start)
        self.stack.pop()
        event.end, event.bytes_moved, event.bytes_written = end, moved, written

    def program(self, name: str, run: Callable[..., Any], *args: Any) -> Any:
        """Run a compiled program, which launches its kernels by itself."""
        event = self.begin(f"CompiledFunction: {name}", "cpu_op")
        try:
            return run(*args)
        finally:
            self.finish(event)

    # ---- beginning and end
    @whole
    def start(self) -> None:
        """Observe this thread. RuntimeError if it is observed already."""
        if not getattr(launch.observer(), "gives_way", launch.observer() is None):
            raise RuntimeError("profile: this thread is being profiled (or compiled) already; end the other profile first")
        _OVERRIDES.enter()
        _CURRENT.recorder = self
        self._watching = launch.observe(self)
        self._watching.__enter__()

    @whole
    def stop(self) -> None:
        """End the observation of launches."""
        if self._watching is None:
            return
        self._watching.__exit__(None, None, None)
        self._watching = None
        _CURRENT.recorder = None
        _OVERRIDES.leave()

    def take(self) -> EventList:
        """Return all events so far, each before those inside it; the recorder begins anew."""
        if self.stack:
            self.finish(self.stack[0])
        found: list[FunctionEvent] = []
        stack, self.roots = self.roots[::-1], []
        while stack:
            event = stack.pop()
            event.id = len(found)
            found.append(event)
            stack.extend(reversed(event.cpu_children))
        return EventList(found)


def current() -> Recorder | None:
    """Return the recorder that observes this thread now (a capture in between hides it)."""
    recorder = getattr(_CURRENT, "recorder", None)
    return recorder if recorder is not None and launch.observer() is recorder else None


def _bytes(call: Any, args: tuple[Any, ...]) -> tuple[int, int]:
    """Return the bytes that a launch reads and writes, and those that it writes. Layouts say it for generated kernels: memory may go on behind a tensor."""
    recipe = call.recipe
    if hasattr(recipe, "out_layouts"):
        written = sum(layout.size * layout.dtype.itemsize for layout in recipe.out_layouts)
        return written + sum(layout.size * layout.dtype.itemsize for layout in recipe.in_layouts), written
    arrays = [a.nbytes if isinstance(a, np.ndarray) else sum(x.nbytes for x in a) if isinstance(a, list) else 0 for a in args]
    return sum(arrays), sum(arrays[len(args) - call.outputs :])


def _shapes_of(call: Any, args: tuple[Any, ...]) -> list[Any]:
    if hasattr(call.recipe, "in_layouts"):
        return [list(layout.shape) for layout in call.recipe.in_layouts]
    given = [a for a in args[: len(args) - call.outputs] if isinstance(a, (np.ndarray, list))]
    return [[a.size] if isinstance(a, np.ndarray) else [[x.size] for x in a] for a in given]


def _shapes(args: Iterable[Any]) -> list[Any]:
    return [list(a.shape) if isinstance(a, Tensor) else _shapes(a) if isinstance(a, (list, tuple)) and a and isinstance(a[0], Tensor) else [] for a in args]


@functools.cache
def _public_name(node: str) -> str:
    """Return  "aten::max_pool2d" of "MaxPool2DBackward0": nodes bear PyTorch's names, the functions inside need not."""
    return "aten::" + re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[0-9])(?=[A-Z][a-z])", "_", re.sub(r"Backward\d*$", "", node)).lower()


@_OVERRIDES.at(Structured, "__call__")
def _structured(inner: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Structured, *args: Any) -> Any:
        recorder = current()
        if recorder is None:
            return inner(self, *args)
        event = recorder.begin(_public_name(self.node_name), "cpu_op", _shapes(args) if recorder.shapes else None)
        try:
            return inner(self, *args)
        finally:
            recorder.finish(event)

    return call


@_OVERRIDES.at(Function, "_applied")
def _applied(inner: Any) -> Any:
    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        with record_function(cls.__name__):
            return inner.__func__(cls, *args, **kwargs)

    return classmethod(apply)


@_OVERRIDES.at(compilation._entry)
def _built(inner: Callable[..., Any]) -> Callable[..., Any]:
    def entry(*args: Any) -> Any:
        with record_function("autograd_nb::load"):
            before, made = notice.count(), inner(*args)
            if notice.count() > before and (recorder := current()) is not None:  # it was not on disk
                recorder.stack[-1].name = f"autograd_nb::compile: {notice.last()}"
            return made

    return entry


@_OVERRIDES.at(engine.Pass, "run_node")
def _run_node(inner: Callable[..., Any]) -> Callable[..., Any]:
    def run_node(self: engine.Pass, node: Node, g: Any) -> None:
        recorder = current()
        if recorder is None:
            return inner(self, node, g)
        event = recorder.begin(node.name(), "backward", _shapes(g if isinstance(g, (list, tuple)) else (g,)) if recorder.shapes else None)
        if recorder.lines and node.code is not None:
            event._line = (node.code, node.lasti)  # where the op was recorded says more than where backward() stands
        try:
            return inner(self, node, g)
        finally:
            recorder.finish(event)

    return run_node


def _watch(node: Node, gradients: tuple[Any, ...]) -> None:
    """Observe a node; while this stands in the engine, every node goes through `Pass.run_node`."""


def _opened() -> None:
    if engine.watch is None:
        engine.watch = _watch


def _closed() -> None:
    if engine.watch is _watch:
        engine.watch = None


_OVERRIDES.opened, _OVERRIDES.closed = _opened, _closed  # type: ignore[method-assign]


class record_function:
    """A named span of the profile: a ``with`` block, or a decorator. It costs next to nothing while nothing is profiled.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.autograd.profiler.record_function.html
    >>> with torch.profiler.record_function("forward"): print(torch.ones(1) * 2)
    tensor([2.])
    """

    name: str
    args: str | None

    def __init__(self, name: str, args: str | None = None):
        self.name, self.args = name, args
        self._open: list[tuple[Recorder, FunctionEvent] | None] = []

    def __enter__(self) -> record_function:
        recorder = current()
        self._open.append(None if recorder is None else (recorder, recorder.begin(self.name, "user_annotation")))
        return self

    def __exit__(self, *error: Any) -> None:
        opened = self._open.pop()
        if opened is not None:
            opened[0].finish(opened[1])

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return wrapped


# -------------------------------------------------------------------------------------------------------- results


class FunctionEventAvg:
    """The events of one name together (and of one place or of the same shapes, where asked for). Times in microseconds."""

    key: str
    input_shapes: Any
    stack: list[Any]

    device_type = "DeviceType.CPU"
    device_time_total = self_device_time_total = cuda_time_total = self_cuda_time_total = device_time = cuda_time = 0
    self_device_memory_usage = device_memory_usage = self_cuda_memory_usage = cuda_memory_usage = 0

    count: int
    bytes_moved: int
    cpu_memory_usage: int
    self_cpu_memory_usage: int
    cpu_time_total: float
    self_cpu_time_total: float

    def __init__(self, key: str, input_shapes: Any = None, stack: Any = ()):
        self.key, self.input_shapes, self.stack = key, input_shapes, list(stack)
        self.count = self.bytes_moved = self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0

    @property
    def name(self) -> str:
        """Return the key by which events were put together."""
        return self.key

    @property
    def cpu_time(self) -> float:
        """Return the time of one call, on average."""
        return self.cpu_time_total / self.count if self.count else 0.0

    def add(self, event: Any, nested: bool = False) -> FunctionEventAvg:
        """Take in an event; one that is inside another of its name adds no time to the total."""
        self.count += event.count
        self.self_cpu_time_total += event.self_cpu_time_total
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        self.bytes_moved += event.bytes_moved
        if not nested:
            self.cpu_time_total += event.cpu_time_total
            self.cpu_memory_usage += event.cpu_memory_usage
        return self

    def __repr__(self) -> str:
        return f"<FunctionEventAvg {self.key}: {self.count} calls, {_time(self.cpu_time_total)}, self {_time(self.self_cpu_time_total)}>"


class EventList(markup.Rows, list[Any]):
    """Events, or their averages: a list that can be summed up, shown and written."""

    metadata: dict[str, Any] = {}

    @property
    def self_cpu_time_total(self) -> float:
        """Return the microseconds of all of them."""
        return sum(e.self_cpu_time_total for e in self)

    def total_average(self) -> FunctionEventAvg:
        """Return all events as one."""
        total = FunctionEventAvg("Total")
        for e in self:
            total.add(e, nested=getattr(e, "cpu_parent", None) is not None)
        return total

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False) -> EventList:
        """Return one row for each name (and shapes, and line)."""
        rows: dict[Any, FunctionEventAvg] = {}
        for e in self:
            shapes = e.input_shapes if group_by_input_shapes else None
            stack = e.stack[:group_by_stack_n] if group_by_stack_n else ()
            row = rows.setdefault((e.name, str(shapes), tuple(stack)), FunctionEventAvg(e.name, shapes, stack))
            parent, nested = e.cpu_parent, False
            while parent is not None and not nested:
                nested, parent = parent.name == e.name, parent.cpu_parent
            row.add(e, nested)
        return EventList(rows.values())

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75, max_name_column_width: int = 55,
        max_shapes_column_width: int = 80, header: str | None = None, top_level_events_only: bool = False, time_unit: str | None = None,
    ) -> str:  # fmt: skip
        """Return a table as text: name, time by itself and in all, calls, bytes read and written.

        Args:
            sort_by: "self_cpu_time_total", "cpu_time_total", "cpu_time", "count", "bytes_moved", "self_cpu_memory_usage", …
            row_limit: rows shown at most; −1 for all. time_unit: "s", "ms" or "us" for all times, else what fits each.
        """
        rows: list[Any] = list(self)
        if sort_by is not None:
            rows.sort(key=lambda e: getattr(e, sort_by), reverse=True)
        if top_level_events_only:
            rows = [e for e in rows if getattr(e, "cpu_parent", None) is None]
        total = self.self_cpu_time_total
        shown = rows if row_limit < 0 else rows[:row_limit]

        def short(text: str, most: int) -> str:
            return text if most <= 0 or len(text) <= most else text[: most - 3] + "..."

        with_shapes, with_stack = any(e.input_shapes for e in shown), any(e.stack for e in shown)
        head = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls", "Bytes", "CPU Mem"]
        head += ["Input Shapes"] * with_shapes + ["Source Location"] * with_stack
        lines = []
        for e in shown:
            line = [
                short(e.key, max_name_column_width), _share(e.self_cpu_time_total, total), _time(e.self_cpu_time_total, time_unit),
                _share(e.cpu_time_total, total), _time(e.cpu_time_total, time_unit), _time(e.cpu_time, time_unit), str(e.count),
                _memory(e.bytes_moved), _memory(e.cpu_memory_usage),
            ]  # fmt: skip
            line += [short(str(e.input_shapes or []), max_shapes_column_width)] * with_shapes
            line += [short("; ".join(e.stack), max_src_column_width)] * with_stack
            lines.append(line)
        width = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
        rule = "  ".join("-" * w for w in width)
        text = [rule, "  ".join(f"{v:>{w}}" for v, w in zip(head, width, strict=True)), rule]
        text += ["  ".join(f"{v:>{w}}" for v, w in zip(line, width, strict=True)) for line in lines]
        text += [rule, f"Self CPU time total: {_time(total, time_unit)}", ""]
        return "\n".join(([header] if header else []) + text)

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return "[" + ", ".join(map(repr, self)) + "]"

    def export_chrome_trace(self, path: str) -> None:
        """Write the events for chrome://tracing or https://ui.perfetto.dev (compressed if ``path`` ends in .gz)."""
        found = []
        for e in self:
            args: dict[str, Any] = {"bytes": e.bytes_moved}
            if e.input_shapes:
                args["Input Dims"] = e.input_shapes
            if e.stack:
                args["Source"] = e.stack[0]
            found.append({"ph": "X", "cat": e.category, "name": e.name, "pid": os.getpid(), "tid": e.thread,
                          "ts": e.start / 1000, "dur": (e.end - e.start) / 1000, "args": args})  # fmt: skip
        text = json.dumps({"schemaVersion": 1, "displayTimeUnit": "ms", **self.metadata, "traceEvents": found})
        with replacing(path) as file:
            file.write(gzip.compress(text.encode()) if str(path).endswith(".gz") else text.encode())

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write a line "outer;inner;… microseconds" for each stack of events, which flame graph tools read."""
        sums: dict[str, float] = {}
        for e in self:
            names, parent = [e.name], e.cpu_parent
            while parent is not None:
                names.append(parent.name)
                parent = parent.cpu_parent
            key = ";".join(n.replace(";", ",").replace(" ", "_") for n in reversed(names))
            sums[key] = sums.get(key, 0.0) + getattr(e, metric)
        with replacing(path) as file:
            file.writelines(f"{key} {round(value)}\n".encode() for key, value in sums.items() if round(value) > 0)


def _time(us: float, unit: str | None = None) -> str:
    unit = unit or ("s" if us >= 1e6 else "ms" if us >= 1e3 else "us")
    return f"{us / {'s': 1e6, 'ms': 1e3, 'us': 1.0}[unit]:.3f}{unit}"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "-"


def _memory(n: int) -> str:
    for unit in ("b", "Kb", "Mb"):
        if abs(n) < 1024:
            return f"{n} b" if unit == "b" else f"{n:.2f} {unit}"
        n /= 1024  # type: ignore[assignment]
    return f"{n:.2f} Gb"


class profile:
    """Profile what this thread runs in a ``with`` block: ``key_averages().table(sort_by="self_cpu_time_total")`` shows it.

    Args:
        enabled: False makes it do nothing. record_shapes: keep the operands' shapes, for ``key_averages(True)``. with_stack: keep
            the user's lines, for ``key_averages(group_by_stack_n=1)``. The rest is accepted: bytes are always counted, and
            there are no other devices.

    Source: https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.profiler.profile
    """

    enabled: bool
    record_shapes: bool
    with_stack: bool

    def __init__(
        self, enabled: bool = True, *, use_cuda: bool = False, use_device: str | None = None, record_shapes: bool = False, with_flops: bool = False,
        profile_memory: bool = False, with_stack: bool = False, with_modules: bool = False, use_kineto: bool = False, use_cpu: bool = True, **options: Any,
    ):  # fmt: skip
        self.enabled, self.record_shapes, self.with_stack = enabled, record_shapes, with_stack
        self.function_events: EventList | None = None
        self._recorder: Recorder | None = None

    def __enter__(self) -> profile:
        if self.enabled:
            if self._recorder is not None:
                raise RuntimeError("Profiler context manager is not reentrant")
            self._recorder = Recorder(self.record_shapes, self.with_stack)
            self._recorder.start()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._recorder is not None:
            self._recorder.stop()
            self.function_events = self._recorder.take()

    def _found(self) -> EventList:
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running: ask for its results after the with block")
        return self.function_events

    def events(self) -> EventList:
        """Return all events that were recorded."""
        return self._found()

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False) -> EventList:
        """Return what `EventList.key_averages` gives."""
        return self._found().key_averages(group_by_input_shape, group_by_stack_n)

    def table(self, *args: Any, **kwargs: Any) -> str:
        """Return what `EventList.table` gives."""
        return self._found().table(*args, **kwargs)

    def export_chrome_trace(self, path: str) -> None:
        """Write the file as `EventList.export_chrome_trace` does."""
        self._found().export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the file as `EventList.export_stacks` does."""
        self._found().export_stacks(path, metric)

    def total_average(self) -> FunctionEventAvg:
        """Return all events as one."""
        return self._found().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Return the time of all events, in microseconds."""
        return self._found().self_cpu_time_total

    def __iter__(self) -> Iterator[Any]:
        return iter(self._found())

    def __str__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self.function_events is None else str(self.function_events)


class emit_nvtx:
    """Does nothing: there are no such devices."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False):
        pass

    def __enter__(self) -> emit_nvtx:
        return self

    def __exit__(self, *error: Any) -> None:
        pass


emit_itt = emit_nvtx
