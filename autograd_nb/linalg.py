"""The functions that the ops offer under ``linalg``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import LinAlgError as LinAlgError
from .ops.core.registry import functions as _functions

globals().update(_functions("linalg"))

if TYPE_CHECKING:  # what the table of ops holds
    from .ops.signatures.linalg import *  # noqa: F403
