"""`autograd_nb.codegen.jit` for functions in which Numba checks every index, and loops are counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from numba import config, njit

from ...codegen.interpreted import plainly
from ...codegen.jit import FLOAT, FREE, LETTER, NO, ONE, OPTIONS, POINTER, SIZE, YES, ZERO, external, math
from ...codegen.library import Helper, SharedHelper
from ..counting import counted

__all__ = [
    "FLOAT", "FREE", "LETTER", "NO", "ONE", "OPTIONS", "POINTER", "SIZE", "YES", "ZERO", "external", "helper", "math",
]  # fmt: skip


def helper(
    function: Callable | None = None, *, fastmath: Iterable[str] | None = None, inline: str = "never", shared: bool = False
) -> Any:
    """As `autograd_nb.codegen.jit.helper`."""
    if function is None:
        return lambda given: helper(given, fastmath=fastmath, inline=inline, shared=shared)
    function = counted(function)  # type: ignore[arg-type]
    if config.DISABLE_JIT:
        return plainly(function)
    options = {
        **OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "inline": inline,
        "pipeline_class": SharedHelper if shared else Helper, "boundscheck": True,
    }  # fmt: skip
    if fastmath is not None:
        options["fastmath"] = set(fastmath)
    return njit(**options)(function)
