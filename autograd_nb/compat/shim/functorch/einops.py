"""`functorch.einops`: tensors with their dims in another order, by a pattern."""

from autograd_nb.compat.functorch import rearrange

__all__ = ["rearrange"]
