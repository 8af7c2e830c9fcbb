"""Public automatic differentiation: `backward`, `grad`, `Function`, gradient checks, modes."""

from ..graph.modes import enable_grad, inference_mode, no_grad, set_grad_enabled
from .api import backward, get_gradient_edge, grad

__all__ = ["backward", "enable_grad", "get_gradient_edge", "grad", "inference_mode", "no_grad", "set_grad_enabled"]
