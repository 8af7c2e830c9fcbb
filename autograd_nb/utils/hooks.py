"""The handles that hooks are removed with, under PyTorch's name."""

from ..graph.hooks import RemovableHandle

__all__ = ["RemovableHandle"]
