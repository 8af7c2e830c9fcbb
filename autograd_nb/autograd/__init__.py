"""Public automatic differentiation: `backward`, `grad`, `Function`, gradient checks, anomaly detection, modes, the old API."""

import sys as _sys
from typing import Any as _Any

from ..graph.modes import enable_grad, inference_mode, no_grad, set_grad_enabled
from . import function, functional, graph, marked_operands, old_methods, sparse_names, subclasses
from .anomaly import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from .api import backward, get_gradient_edge, grad, set_graph_reuse
from .function import Function
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .legacy import TYPES, Variable
from .legacy import __name__ as _legacy_name
from .saved import SavedTensor

# programs of the old days say ``from torch.autograd.variable import Variable`` and ``torch.autograd.grad_mode.no_grad``
variable = _sys.modules[__name__ + ".variable"] = _sys.modules[_legacy_name]
from ..graph import modes as grad_mode  # noqa: E402

_sys.modules[__name__ + ".grad_mode"] = grad_mode

__all__ = [
    "TYPES", "Function", "GradcheckError", "SavedTensor", "Variable", "backward", "detect_anomaly", "enable_grad", "function", "functional",
    "get_gradient_edge", "grad", "grad_mode", "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_anomaly_enabled", "no_grad",
    "set_detect_anomaly", "set_grad_enabled", "set_graph_reuse", "variable",
]  # fmt: skip


def __getattr__(name: str) -> _Any:
    """Return a module that few programs need: it is imported when it is asked for."""
    if name not in ("forward_ad", "profiler"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return import_module(f"{__name__}.{name}")
