"""The functions that the ops offer under ``signal.windows``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ops.core.registry import functions as _functions

globals().update(_functions("signal.windows"), __all__=sorted(_functions("signal.windows")))

if TYPE_CHECKING:  # what the table of ops holds
    from ..ops.signatures.windows import *  # noqa: F403
