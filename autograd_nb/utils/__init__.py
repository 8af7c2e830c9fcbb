"""Tools: data loading, checkpointing, hooks' handles, trees, DLPack, TensorBoard; each is imported when it is asked for."""

from __future__ import annotations

from typing import Any

from . import hooks

_LAZY = ("_pytree", "checkpoint", "data", "dlpack", "tensorboard")

__all__ = ["hooks", *_LAZY]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return import_module(f"{__name__}.{name}")
