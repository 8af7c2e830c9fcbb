"""The place of `autograd_nb.autograd.pytree` in PyTorch: ``torch.utils._pytree``."""

from ..autograd.pytree import *  # noqa: F403
from ..autograd.pytree import __all__ as __all__
