"""The CPU in place of GPUs, for programs that insist on some: ``python -m autograd_nb run --as-gpus 2 program.py``.

Such a program finds `cuda` and `accelerator` available, may put tensors and modules on their devices, and gives `DistributedDataParallel` its
``device_ids``; all of it stays in the memory of the CPU, and a tensor says that it is there (``t.device``).
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..distributed.launcher import AS_GPUS
from ..errors import DeviceError
from ..ops.creation.cast import stand_in
from ..ops.creation.device import device

_current = 0


def _number(where: Any) -> int:
    """Return the number of a device. DeviceError where there is none of it."""
    found = device(where) if isinstance(where, (int, str)) else where
    index = _current if found is None or found.index is None else found.index
    if index >= stand_in.gpus:
        raise DeviceError(str(found))
    return int(index)


def _set(where: Any) -> None:
    global _current
    _current = _number(where)


@contextmanager
def _within(where: Any) -> Iterator[None]:
    """Let a device be the current one inside; None: as it is."""
    before = _current
    if where is not None:
        _set(where)
    try:
        yield
    finally:
        _set(before)


def _answers() -> dict[str, dict[str, Any]]:
    name = "the CPU, in place of a GPU"
    both = {"is_available": lambda: True, "device_count": lambda: stand_in.gpus}
    return {
        "cuda": {
            **both, "is_initialized": lambda: True, "is_bf16_supported": lambda *_: True, "current_device": lambda: _current, "set_device": _set,
            "get_device_name": lambda device=None: (_number(device), name)[1], "get_device_capability": lambda device=None: (_number(device), 0),
        },
        "accelerator": {
            **both, "current_accelerator": lambda check_available=False: device("cuda"), "set_device_index": _set, "set_device_idx": _set,
            "current_device_index": lambda: _current, "current_device_idx": lambda: _current,
            "device_index": _within,
        },
    }  # fmt: skip


def as_gpus(count: int) -> None:
    """Let programs in this process find ``count`` GPUs."""
    stand_in.gpus = count
    package = __name__.split(".")[0]
    for name, answers in _answers().items():
        vars(importlib.import_module(f"{package}.{name}")).update(answers)


def asked() -> None:
    """Do so where the environment asks for it."""
    if os.environ.get(AS_GPUS):
        as_gpus(int(os.environ[AS_GPUS]))
