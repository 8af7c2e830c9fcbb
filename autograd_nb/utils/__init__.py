"""Tools: data loading, checkpointing, hooks' handles, trees, DLPack, TensorBoard; each is imported when it is asked for."""

from __future__ import annotations

import typing as _typing
from typing import Any

from . import hooks as hooks

_LAZY = ("_pytree", "checkpoint", "data", "dlpack", "tensorboard")

if not _typing.TYPE_CHECKING:  # a checker goes by the imports
    __all__ = ["hooks", "swap_tensors", *_LAZY]
else:
    from .swapping import swap_tensors as swap_tensors
    from . import _pytree as _pytree, checkpoint as checkpoint, data as data, dlpack as dlpack, tensorboard as tensorboard


def __getattr__(name: str) -> Any:
    if name == "swap_tensors":
        from .swapping import swap_tensors

        return swap_tensors
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return import_module(f"{__name__}.{name}")
