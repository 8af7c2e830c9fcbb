"""A worker that compiles beside a program: what it makes of the program's notes (see `codegen.build.workers`).

It *rehearses* what is noted, an op's backward pass for one: it does what the program will do, on operands whose memory holds nothing,
and with kernels that do nothing. The kernels that it was asked for meanwhile are what the program will ask for, and are compiled when
nothing is left to rehearse (`codegen.build.ahead`).
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

from .. import launch
from ..autograd import grad
from ..codegen import threads
from ..codegen.build import compilation
from ..codegen.build.ahead import BACKWARD, FORWARD, UPDATE, Order, Queue, compile_one
from ..dtypes import BY_NAME, get_default_dtype, set_default_dtype
from ..graph.modes import no_grad
from ..graph.node import Output
from ..nn.foreseen import mentioned, rehearse_module
from ..ops.core import pointwise, structured
from ..ops.core.backward_plans import backward_plan
from ..ops.core.foreseen import hollow, rebuilt
from ..ops.core.pointwise_backward import Spec
from ..overriding import Overrides
from ..shapes import Layout
from ..tensor import Tensor

IDLE = 20.0  #: seconds without a note after which a worker ends

_OVERRIDES = Overrides()
_queue = Queue()
_wanting: list[Order | None] = [None]  # when the kernels that are asked for now will be needed, if they are wanted at all
_results: list[tuple[list[Tensor], Any]] = []  # of modules that were rehearsed, until there is an optimizer
_trained = [False]  # whether there is one: what is recorded will be differentiated
_again = [False]  # and derivatives too, by what the program's code mentions
AGAIN = 3  #: then: a loss of second derivatives is differentiated
LATE = 1000  #: notes after which a loss comes


def _nothing(*args: Any, **options: Any) -> None:
    """Stand for a kernel, or for a look at values."""


@_OVERRIDES.at(compilation._entry)
def _noting(standing: Callable[..., Any]) -> Callable[..., Any]:
    """Take note of kernels instead of making them."""

    def entry(make: Any, wanted: Any, *args: Any) -> Any:
        if _wanting[0] is not None:
            _queue.want(_wanting[0], wanted, *args)
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
def _kernels(stage: int, late: int = 0) -> Iterator[None]:
    """Keep the kernels that are asked for within the context, for a stage of the program."""
    _wanting[0] = _queue.turn(stage, late)
    try:
        yield
    finally:
        _wanting[0] = None


def _pointwise(module: str, name: str, node: str, avals: list[Any], out: Layout, mask: int) -> None:
    import_module(module)
    op = next(op for op in pointwise.EVERY if (op.formula.__module__, op.name, op.node.__name__) == (module, name, node))
    with _kernels(BACKWARD):
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
    with no_grad(), _kernels(BACKWARD):
        if node.several:  # what is empty was not asked for
            node.run([hollow(layout) if layout.size else None for layout in node.out_layout])
        else:
            node.run(hollow(node.out_layout))


def _optimizer(module: str, name: str, groups: list[Any]) -> None:
    kind = getattr(import_module(module), name)
    for group in groups:
        for p in group["params"]:
            p._grad = hollow(p._layout.dense)
    with _kernels(UPDATE):
        kind(groups).step()
    _trained[0] = True
    while _results:
        _differentiate(*_results.pop(0))


def _module(state: tuple[Any, ...]) -> None:
    with _kernels(FORWARD):
        _results.append(rehearse_module(state, _again[0]))
    if _trained[0]:
        _differentiate(*_results.pop())


def _differentiate(leaves: list[Tensor], out: Any, late: int = 0) -> None:
    """Run the backward pass of a module's results, and those of its own results where the program has such."""
    results = [t for t in (out if isinstance(out, (tuple, list)) else (out,)) if isinstance(t, Tensor) and t.requires_grad]
    for _ in range(AGAIN if _again[0] else 1):
        with _kernels(BACKWARD, late):
            given = [hollow(t._layout) for t in results]
            found = grad(results, leaves, given, create_graph=_again[0], allow_unused=True)
        results = [t for t in found if t is not None and t.requires_grad]


def _names(names: list[str]) -> None:
    """Rehearse what a program will do by the names that its code mentions: losses, and derivatives of derivatives."""
    _again[0] = "create_graph" in names
    for rehearsal in mentioned(names):
        with contextlib.suppress(Exception):
            with _kernels(FORWARD, LATE):
                leaves, out = rehearsal()
            _differentiate(leaves, out, LATE)


def _texts(kernels: list[tuple[Any, ...]]) -> None:
    """Take kernels that the program is about to build, one after the other."""
    for asked in kernels:
        text, name, argtypes, checked = asked
        wanted = (text, name, argtypes, "checked") if checked else (text, name, argtypes)
        _queue.want(_queue.turn(FORWARD), wanted, *asked)


REHEARSALS: dict[str, Callable[..., None]] = {
    "names": _names, "pointwise": _pointwise, "structured": _structured, "optimizer": _optimizer, "module": _module, "kernels": _texts,
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


def main(claims: int) -> None:
    """Compile what the notes that come through standard input make one want, until the program ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program decides what it means
    reader = _Notes()
    reader.start()
    threads.settings.threads = 1
    compilation.numba()  # what is to be compiled must be defined, not found among what others asked for
    setattr(launch, "check", _nothing)  # noqa: B010  (values are looked at by nobody)
    setattr(launch, "escapes", _escapes)  # noqa: B010
    compilation.numba()  # while there is nothing else to do
    gc.freeze()
    with _OVERRIDES.active():
        while True:
            while reader.notes:
                rehearse(*reader.notes.popleft())
            kernel = compilation.apart(_queue.pick, claims)
            if kernel is not None:
                compilation.apart(compile_one, claims, kernel)
                continue
            reader.some.clear()
            if not reader.notes and not reader.some.wait(IDLE):
                os._exit(0)
