"""The functions behind the modules: everything that the ops offer under ``nn.functional``."""

from __future__ import annotations

from ..ops.registry import functions as _functions

globals().update(_functions("nn.functional"))
