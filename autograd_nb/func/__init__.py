"""Transforms of functions: gradients, Jacobians, batches; what PyTorch users know as ``torch.func``."""

from ..autograd import forward_ad as _forward_ad
from ..autograd.batching.vmap import vmap
from ..autograd.transforms import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from ..nn.utils.functional_call import functional_call, replace_all_batch_norm_modules_, stack_module_state

__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "replace_all_batch_norm_modules_",
    "stack_module_state", "vjp", "vmap",
]  # fmt: skip
