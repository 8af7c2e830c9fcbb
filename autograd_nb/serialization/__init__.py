"""Saving and loading: pickle of tensors, ``save`` and ``load`` in PyTorch's file format, and safetensors files.

A file of `save` is a zip archive: ``data.pkl`` (the object, with tensors as references), and the memory of each storage as it
is. PyTorch reads these files and `load` reads PyTorch's. `load` runs no code from the file unless ``weights_only=False``: its
unpickler knows containers, numbers, tensors and nothing else.

Source: https://docs.pytorch.org/docs/stable/notes/serialization.html, https://huggingface.co/docs/safetensors
"""

from typing import Any

from .loading import load
from .pickling import compact, reduce_tensor, refuse_non_leaf
from .safetensors import load_safetensors, save_safetensors
from .saving import save
from .unpickling import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

MAP_LOCATION = FILE_LIKE = Any  # as annotations name them

__all__ = [
    "add_safe_globals", "clear_safe_globals", "compact", "get_safe_globals", "load", "load_safetensors", "reduce_tensor", "refuse_non_leaf",
    "safe_globals", "save", "save_safetensors",
]  # fmt: skip
