"""Checkpoints that all ranks write and read together: `torch.distributed.checkpoint`.

Source: https://docs.pytorch.org/docs/stable/distributed.checkpoint.html
"""

from __future__ import annotations

import sys
from typing import Any

from . import state as state_dict
from .files import CheckpointException, FileSystemReader, FileSystemWriter
from .whole import Stateful, async_save, load, load_state_dict, save, save_state_dict

#: PyTorch has parts of this in modules below it
filesystem: Any = sys.modules[__name__]
state_dict_saver = state_dict_loader = stateful = api = filesystem

__all__ = [
    "CheckpointException", "FileSystemReader", "FileSystemWriter", "Stateful", "async_save", "load", "load_state_dict", "save", "save_state_dict",
    "state_dict",
]  # fmt: skip
