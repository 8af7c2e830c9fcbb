"""The functions that the ops offer under ``special``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .ops.core.registry import functions as _functions

globals().update(_functions("special"), __all__=sorted(_functions("special")))

if TYPE_CHECKING:  # what the table of ops holds
    from .ops.signatures.special import *  # noqa: F403
