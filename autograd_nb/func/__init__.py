"""Transforms of functions: gradients, Jacobians, batches; what PyTorch users know as ``torch.func``."""

from .modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from .transforms import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from .vmap import vmap

__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "replace_all_batch_norm_modules_",
    "stack_module_state", "vjp",
    "vmap",
]  # fmt: skip
