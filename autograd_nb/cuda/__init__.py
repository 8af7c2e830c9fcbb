"""What programs ask about GPUs, answered: there are none here.

Source: https://docs.pytorch.org/docs/stable/cuda.html
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..errors import DeviceError


def is_available() -> bool:
    """False: this library computes on the CPU."""
    return False


def device_count() -> int:
    """0."""
    return 0


def is_initialized() -> bool:
    """False."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """False."""
    return False


def manual_seed(seed: int) -> None:
    """Nothing: there is no generator to seed."""


manual_seed_all = manual_seed


def empty_cache() -> None:
    """Nothing; see `autograd_nb.release_memory` for the CPU's."""


def synchronize(device: Any = None) -> None:
    """Nothing to wait for."""


def memory_allocated(device: Any = None) -> int:
    """0."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def ipc_collect() -> None:
    """Nothing."""


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Empty."""
    return ""


def reset_peak_memory_stats(device: Any = None) -> None:
    """Nothing."""


def _none(*args: Any, **kwargs: Any) -> Any:
    raise DeviceError("cuda")


current_stream = default_stream = set_stream = get_rng_state = get_rng_state_all = set_rng_state = mem_get_info = _none
current_device = get_device_name = get_device_properties = set_device = get_device_capability = _none


class OutOfMemoryError(RuntimeError):
    """Never raised: there is no GPU whose memory could be full."""


def _absent(name: str) -> Any:
    """A class of what only a GPU has: no object is an instance of it, and none can be made."""
    return type(name, (), {"__init__": _none, "__module__": __name__, "__doc__": "Not available: there is no GPU here."})


Event, Stream = _absent("Event"), _absent("Stream")
FloatTensor, DoubleTensor, HalfTensor = _absent("FloatTensor"), _absent("DoubleTensor"), _absent("HalfTensor")
LongTensor, IntTensor, ShortTensor = _absent("LongTensor"), _absent("IntTensor"), _absent("ShortTensor")
CharTensor, ByteTensor, BoolTensor = _absent("CharTensor"), _absent("ByteTensor"), _absent("BoolTensor")


def __getattr__(name: str) -> Any:
    if name != "amp":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.amp")
