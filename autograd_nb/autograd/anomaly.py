"""Anomaly detection: the first nan of a backward pass, with the line where its op was recorded.

Source: https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection
"""

from __future__ import annotations

import threading
import warnings
from typing import Any

from ..errors import AutogradError
from ..graph import engine
from ..graph.modes import PerThread
from ..graph.node import Node, place
from ..ops.core.registry import OPS
from ..tensor import Tensor


class _State(PerThread):
    enabled = False
    check_nan = True


_state = _State()
_threads: set[int] = set()  #: those that have switched it on


def _watch(node: Node, gradients: tuple[Any, ...]) -> None:
    if not (_state.enabled and _state.check_nan):
        return
    for i, g in enumerate(gradients):
        if isinstance(g, Tensor) and bool(OPS["isnan"].call(g.detach()).any()):
            warnings.warn(
                f"Error detected in {node.name()}. Traceback of forward call that caused the error: {place(node.code, node.lasti)}",
                UserWarning,
                stacklevel=5,
            )
            raise AutogradError(
                f"Function '{node.name()}' returned nan values in its {i}th output. It was recorded at {place(node.code, node.lasti)}."
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
    engine.watch = _watch if _threads else None  # it asks the state of the thread that it is called in


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

    >>> with torch.autograd.detect_anomaly():  # doctest: +SKIP
    ...     loss.backward()
    """

    def __init__(self, check_nan: bool = True):
        super().__init__(True, check_nan)
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.",
            UserWarning,
            stacklevel=2,
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
