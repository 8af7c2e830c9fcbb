"""Anomaly detection: the first nan of a backward pass, with the line where its op was recorded, and the first one of what was computed before it.

Source: https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection
"""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np

from .. import launch
from ..config import note_unusual
from ..errors import AutogradError, warn_user
from ..graph import engine
from ..graph.modes import PerThread
from ..graph.node import Node, here, place
from ..ops.core.registry import OPS
from ..tensor import Tensor


class _State(PerThread):
    enabled = False
    check_nan = True
    forward: _Forward | None = None  # what looks at this thread's kernels


class _Forward:
    """The observer of a thread's kernels; ``first`` tells which one, called from which line, first made nan of operands without."""

    gives_way = True  # to a profile, which takes its place

    def __init__(self) -> None:
        self.first = ""
        self._context = launch.observe(self)
        self._context.__enter__()

    def end(self) -> None:
        """Observe no more, unless another observer stands before this one."""
        if launch.observer() is self:
            self._context.__exit__(None, None, None)

    def __call__(self, call: Any, args: tuple[Any, ...]) -> None:
        looking = not self.first and _state.enabled and _state.check_nan
        inputs = args[: len(args) - call.outputs]
        clean = looking and not any(map(_has_nan, inputs))
        call.entry(*args)
        if clean and any(map(_has_nan, args[len(args) - call.outputs :])):
            code, lasti = here(2)
            if code is None or _in_backward():
                return
            self.first = f"{call.name}, called at {place(code, lasti)}"
            warn_user(f"Anomaly detection: nan, made of operands without nan, by {self.first}", UserWarning)


def _in_backward() -> bool:
    """Return whether a backward pass runs: what it makes is told of by its node."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename == engine.__file__:
            return True
        frame = frame.f_back
    return False


def _has_nan(value: Any) -> bool:
    """Return whether an argument of a kernel is an array of floats, or a list of such, with a nan in it."""
    if isinstance(value, list):
        return any(map(_has_nan, value))
    return isinstance(value, np.ndarray) and value.dtype.kind in "fc" and bool(np.isnan(value).any())


_state = _State()
_threads: set[int] = set()  #: those that have switched it on


def _tell(node: Node) -> None:
    """Warn that a node failed, with the line of its op; where warnings are errors the text goes to the standard error."""
    if not _state.enabled:
        return
    text = f"Error detected in {node.name()}. Traceback of forward call that caused the error: {place(node.code, node.lasti)}"
    try:
        warn_user(text, UserWarning)
    except Warning:
        sys.stderr.write(text + "\n")


def _watch(node: Node, gradients: tuple[Any, ...]) -> None:
    if not (_state.enabled and _state.check_nan):
        return
    for i, g in enumerate(gradients):
        if isinstance(g, Tensor) and bool(OPS["isnan"].call(g.detach()).any()):
            _tell(node)
            raise AutogradError(
                f"Function '{node.name()}' returned nan values in its {i}th output. It was recorded at {place(node.code, node.lasti)}."
                + (f" The first nan of the forward pass was made by {_state.forward.first}." if _state.forward and _state.forward.first else "")
            )


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Switch anomaly detection on or off in this thread.

    >>> torch.set_anomaly_enabled(True)
    >>> torch.is_anomaly_enabled()
    True
    >>> torch.set_anomaly_enabled(False)
    """
    _state.enabled, _state.check_nan = bool(mode), bool(check_nan)
    (_threads.add if mode else _threads.discard)(threading.get_ident())
    if mode:
        note_unusual("anomaly detection", True)
    looks = mode and check_nan
    if looks and _state.forward is None and launch.observer() is None:
        _state.forward = _Forward()
    elif not looks and _state.forward is not None:
        _state.forward.end()
        _state.forward = None
    engine.watch = _watch if _threads else None  # it asks the state of the thread that it is called in
    engine.failed = _tell if _threads else None


class set_detect_anomaly:
    """Look for nan in backward passes of this thread, at once or for the length of a ``with`` block."""

    def __init__(self, mode: bool, check_nan: bool = True):
        self._previous = _state.enabled, _state.check_nan
        set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        set_anomaly_enabled(*self._previous)


class detect_anomaly(set_detect_anomaly):
    """Context in which a backward pass that makes a nan is a RuntimeError naming the op and its line.

    The forward pass is watched too: the first kernel that makes nan of operands without nan is told of in a warning with its line,
    and again in the error of the backward pass.

    >>> with torch.autograd.detect_anomaly():  # doctest: +SKIP
    ...     loss.backward()
    """

    def __init__(self, check_nan: bool = True):
        super().__init__(True, check_nan)
        warn_user(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.",
            UserWarning,
        )


def is_anomaly_enabled() -> bool:
    """Return whether anomaly detection is on in this thread.

    >>> torch.is_anomaly_enabled()
    False
    """
    return _state.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Return whether anomaly detection, where it is on, looks for nan.

    >>> torch.is_anomaly_check_nan_enabled()
    True
    """
    return _state.check_nan
