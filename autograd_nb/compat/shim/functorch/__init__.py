"""The package ``functorch``, which PyTorch brings beside ``torch``: the transforms of `autograd_nb.func`, and modules as functions."""

from autograd_nb.compat.functorch import *  # noqa: F403
