"""A worker that compiles beside a program: what it makes of the program's notes (see `codegen.build.workers`).

It *rehearses* what is noted, an op's backward pass for one: it does what the program will do, on operands whose memory holds nothing,
and with kernels that do nothing. The kernels that it was asked for meanwhile are what the program will ask for, and are compiled when
nothing is left to rehearse, in the order of the notes: the first recorded op's backward pass comes last, so program and
worker meet in the middle.
"""

from __future__ import annotations

import contextlib
import gc
import marshal
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from .. import launch, threads
from ..codegen.build import compilation
from ..dtypes import BY_NAME, get_default_dtype, set_default_dtype
from ..graph.modes import no_grad
from ..graph.node import Output
from ..nn.foreseen import rehearse_module
from ..ops.core import pointwise, structured
from ..ops.core.foreseen import hollow, rebuilt
from ..ops.core.pointwise_backward import Spec, backward_plan
from ..overriding import Overrides
from ..shapes import Layout
from ..tensor import Tensor

IDLE = 20.0  #: seconds without a note after which a worker ends

_OVERRIDES = Overrides()
# what is to be compiled: (key in memory, then function or text, … as `compilation.build` has it)
_soon: list[tuple[Any, ...]] = []  #: for forward passes, the last first: the program begins with the first
_later: deque[tuple[Any, ...]] = deque()  #: for backward passes, the first first: the program begins with the last
_seen: set[Any] = set()
_wanting: list[Callable[[tuple[Any, ...]], None] | None] = [None]  # takes the kernels that are asked for now, if they are wanted at all


def _nothing(*args: Any) -> None:
    """Stand for a kernel."""


@_OVERRIDES.at(compilation._entry)
def _noting(standing: Callable[..., Any]) -> Callable[..., Any]:
    """Take note of kernels instead of making them."""

    def entry(make: Any, wanted: Any, *args: Any) -> Any:
        if _wanting[0] is not None and wanted not in _seen:
            _seen.add(wanted)
            _wanting[0]((wanted, *args))
        return _nothing

    return entry


@_OVERRIDES.at(compilation.written)
def _harmless(standing: Callable[..., Any]) -> Callable[..., Any]:
    """Do not call other libraries: their code reads the operands."""

    def written(*args: Any) -> Any:
        function = standing(*args)
        return compilation.foreign(lambda *args: None) if getattr(function, "foreign", False) else function

    return written


class _Unknown(Exception):
    """The error of a rehearsal that goes on as values say, which are not there."""


def _escapes(what: str) -> None:
    raise _Unknown(what)


# ----------------------------------------------------------------------------------------------------- rehearsals


@contextlib.contextmanager
def _kernels(take: Callable[[tuple[Any, ...]], None]) -> Iterator[None]:
    """Let ``take`` have the kernels that are asked for within the context."""
    _wanting[0] = take
    try:
        yield
    finally:
        _wanting[0] = None


def _pointwise(module: str, name: str, node: str, avals: list[Any], out: Layout, mask: int) -> None:
    import_module(module)
    op = next(op for op in pointwise.EVERY if (op.formula.__module__, op.name, op.node.__name__) == (module, name, node))
    with _kernels(_later.append):
        backward_plan(Spec(op, tuple(avals), out, mask), out)


def _structured(module: str, name: str, node: str, args: list[Any]) -> None:
    import_module(module)
    _backward(structured.NAMED[module, name, node](*args))


def _backward(out: Any) -> None:
    """Run the node of hollow results, on hollow gradients."""
    results = out if isinstance(out, (tuple, list)) else (out,)
    edge = next((t._edge for t in results if isinstance(t, Tensor) and t._edge is not None), None)
    if edge is None:
        return
    node = edge.node if isinstance(edge, Output) else edge
    with no_grad(), _kernels(_later.append):
        if node.several:  # what is empty was not asked for
            node.run([hollow(layout) if layout.size else None for layout in node.out_layout])
        else:
            node.run(hollow(node.out_layout))


def _optimizer(module: str, name: str, groups: list[Any]) -> None:
    kind = getattr(import_module(module), name)
    for group in groups:
        for p in group["params"]:
            p._grad = hollow(p._layout.dense)
    with _kernels(_later.append):
        kind(groups).step()


def _module(state: tuple[Any, ...]) -> None:
    with _kernels(_soon.append):
        rehearse_module(state)


def _texts(kernels: list[tuple[Any, ...]]) -> None:
    """Take kernels as they are: the program will build them one after the other, the first first."""
    for asked in kernels:
        text, name, argtypes, checked = asked
        wanted = (text, name, argtypes, "checked") if checked else (text, name, argtypes)
        if wanted not in _seen:
            _seen.add(wanted)
            _soon.append((wanted, *asked))


REHEARSALS: dict[str, Callable[..., None]] = {
    "pointwise": _pointwise, "structured": _structured, "optimizer": _optimizer, "module": _module, "kernels": _texts,
}  # fmt: skip


def rehearse(kind: str, default: str, *values: Any) -> None:
    """Do what follows from a note; whatever fails is no worker's business."""
    before = get_default_dtype()
    with contextlib.suppress(Exception), np.errstate(all="ignore"):
        set_default_dtype(BY_NAME[default])
        REHEARSALS[kind](*[rebuilt(v) for v in values])
    set_default_dtype(before)


# ---------------------------------------------------------------------------------------------------- the process


class _Notes(threading.Thread):
    """The thread that reads notes, and ends the process when there can be no others."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.notes: deque[Any] = deque()
        self.some = threading.Event()

    def run(self) -> None:
        try:
            while True:
                self.notes.append(marshal.load(sys.stdin.buffer))
                self.some.set()
        finally:
            os._exit(0)


def _compile(claims: int, wanted: Any, first: Any, *rest: Any) -> None:
    if isinstance(first, str):
        name, argtypes, checked = rest
        function, source = compilation.defined(wanted, first, name), first
    else:
        argtypes, checked = rest
        function, source = getattr(first, "py_func", first), ""
    with contextlib.suppress(Exception):
        compilation.prepare(claims, function, argtypes, source, checked)


def main(claims: int) -> None:
    """Compile what the notes that come through standard input make one want, until the program ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program decides what it means
    reader = _Notes()
    reader.start()
    threads.settings.threads = 1
    setattr(launch, "check", _nothing)  # noqa: B010  (values are looked at by nobody)
    setattr(launch, "escapes", _escapes)  # noqa: B010
    gc.freeze()
    with _OVERRIDES.active():
        while True:
            while reader.notes:
                rehearse(*reader.notes.popleft())
            if _soon or _later:
                compilation.apart(_compile, claims, *(_soon.pop() if _soon else _later.popleft()))
                continue
            reader.some.clear()
            if not reader.notes and not reader.some.wait(IDLE):
                os._exit(0)
