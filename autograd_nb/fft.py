"""The functions that the ops offer under ``fft``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .ops.core.registry import functions as _functions

globals().update(_functions("fft"), __all__=sorted(_functions("fft")))

if TYPE_CHECKING:  # what the table of ops holds
    from .ops.signatures.fft import *  # noqa: F403
