"""Mixed precision, as programs ask for it: on this library's CPU everything is computed in the tensors' own precision.

Source: https://docs.pytorch.org/docs/stable/amp.html
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .scaling import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

__path__: list[str] = []  # PyTorch has modules below this one: see import_aliases.py


class autocast:
    """A context (or decorator) in which nothing is cast: results are at least as exact as PyTorch's.

    Errors: RuntimeError for a device type that PyTorch does not know.

    >>> with torch.autocast("cpu"):
    ...     (torch.ones(1, 1) @ torch.ones(1, 1)).dtype
    torch.float32
    """

    fast_dtype: Any
    dtype: Any

    def __init__(self, device_type: str = "cpu", dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if device_type not in ("cpu", "cuda", "mps", "xpu", "hpu", "mtia", "xla", "ipu"):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device, self.fast_dtype, self.dtype = device_type, dtype, dtype

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *error: Any) -> None:
        return None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return inside


class cuda_autocast(autocast):
    """`autocast` for "cuda", where the device needs no naming: nothing is cast."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True):
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


def is_autocast_available(device_type: str) -> bool:
    """Return whether `autocast` accepts the device type."""
    return device_type in ("cpu", "cuda")


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """False: nothing is cast.

    >>> torch.is_autocast_enabled("cpu")
    False
    """
    return False


def custom_fwd(fwd: Callable[..., Any] | None = None, *, device_type: str = "cpu", cast_inputs: Any = None) -> Any:
    """Return the function as it is."""
    return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs) if fwd is None else fwd


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str = "cpu") -> Any:
    """Return the function as it is."""
    return functools.partial(custom_bwd, device_type=device_type) if bwd is None else bwd
