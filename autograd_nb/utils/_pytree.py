"""The place of `autograd_nb.pytree` in PyTorch: ``torch.utils._pytree``."""

from ..pytree import *  # noqa: F403
from ..pytree import __all__ as __all__
