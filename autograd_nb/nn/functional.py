"""The functions behind the modules: everything that the ops offer under ``nn.functional``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ops.core.registry import functions as _functions

globals().update(_functions("nn.functional"))

if TYPE_CHECKING:  # what the table of ops holds
    from ..ops.signatures.functional import *  # noqa: F403
