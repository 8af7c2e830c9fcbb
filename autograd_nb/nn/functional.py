"""The functions behind the modules: everything that the ops offer under ``nn.functional``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..ops.core.registry import functions as _functions

globals().update(_functions("nn.functional"))


def __getattr__(name: str) -> Any:
    if name == "grad":
        return import_module(f"{__package__}.grad")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


if TYPE_CHECKING:  # what the table of ops holds
    from ..ops.signatures.functional import *  # noqa: F403
