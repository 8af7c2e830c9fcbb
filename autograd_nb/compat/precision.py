"""Mixed precision: regions in which products are computed in half precision, and losses in float32, as in PyTorch on the CPU.

Source: https://docs.pytorch.org/docs/stable/amp.html; what is cast is said in `autograd.autocasting`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import get_ident
from typing import Any

from ..autograd.autocasting import clear_cache, switch
from ..dtypes import as_dtype, bfloat16, dtype, float16
from ..errors import warn_user
from ..graph import casting
from ..overriding import whole
from .scaling import GradScaler
from .taken import cast_floats

__all__ = ["GradScaler", "autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

__path__: list[str] = []  # PyTorch has modules below this one: see import_aliases.py

_SUPPORTED = (bfloat16, float16)


def _device(device_type: Any, function: str) -> str:
    """Return the kind of a device, without its number. TypeError for what is no text, RuntimeError where PyTorch has no such device."""
    if not isinstance(device_type, str):
        raise TypeError(f"{function}(): argument 'device_type' (position 1) must be str, not {type(device_type).__name__}")
    kind = device_type.partition(":")[0]
    if kind in casting.LOWER:
        return kind
    if kind == "meta":
        raise RuntimeError(f"{function}(): unknown device type for autocast: 'meta' computes nothing, and has an unsupported scalarType")
    raise RuntimeError(f"Expected one of {', '.join(casting.LOWER)} device type at start of device string: {device_type}")


def is_autocast_available(device_type: str) -> bool:
    """Return whether `autocast` accepts the device type.

    >>> torch.amp.is_autocast_available("cpu")
    True
    """
    return _device(device_type, "is_autocast_available") != ""


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Return whether this thread is in a region of `autocast` for the device.

    >>> with torch.autocast("cpu"): print(torch.is_autocast_enabled("cpu"))
    ...
    True
    """
    return _device(device_type, "is_autocast_enabled") in casting.state.enabled


def set_autocast_enabled(*args: Any, **kwargs: Any) -> None:
    """Switch autocast on or off for a device (device_type, enabled); with a bool alone, for "cuda".

    Errors: TypeError for what is no bool, RuntimeError for a device that PyTorch does not know.

    >>> torch.set_autocast_enabled("cpu", False)
    """
    given = dict(zip(("device_type", "enabled") if len(args) + len(kwargs) > 1 else ("enabled",), args, strict=True)) | kwargs
    enabled = given["enabled"]
    if enabled.__class__ is not bool:
        raise TypeError(f"set_autocast_enabled(): argument 'enabled' (position 2) must be bool, not {type(enabled).__name__}")
    switch(_device(given.get("device_type", "cuda"), "set_autocast_enabled"), enabled)


def get_autocast_dtype(device_type: str) -> dtype:
    """Return the dtype that autocast computes in.

    >>> torch.get_autocast_dtype("cpu")
    torch.bfloat16
    """
    return casting.state.lower[_device(device_type, "get_autocast_dtype")]


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Set the dtype that autocast computes in, for regions that name none.

    Errors: TypeError for what is no dtype, RuntimeError for a device that PyTorch does not know.

    >>> torch.set_autocast_dtype("cpu", torch.bfloat16)
    """
    kind = _device(device_type, "set_autocast_dtype")
    if not isinstance(dtype, _DTYPE):
        raise TypeError(f"set_autocast_dtype(): argument 'dtype' (position 2) must be torch.dtype, not {type(dtype).__name__}")
    switch(kind, kind in casting.state.enabled, dtype)


_DTYPE = dtype


def is_autocast_cache_enabled() -> bool:
    """Return whether what parameters are cast to is kept for the length of the outermost region.

    >>> torch.is_autocast_cache_enabled()
    True
    """
    return casting.state.cache


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Set whether what parameters are cast to is kept. Errors: TypeError for what is no bool.

    >>> torch.set_autocast_cache_enabled(True)
    """
    if enabled.__class__ is not bool:
        raise TypeError(f"enabled must be a bool (got {type(enabled).__name__})")
    casting.state.cache = enabled


def clear_autocast_cache() -> None:
    """Forget what parameters were cast to.

    >>> torch.clear_autocast_cache()
    """
    clear_cache()


def autocast_increment_nesting() -> int:
    """Return how many regions this thread is in, now that there is one more.

    >>> torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()
    (1, 0)
    """
    casting.state.nesting += 1
    return casting.state.nesting


def autocast_decrement_nesting() -> int:
    """Return how many regions this thread is in, now that there is one less.

    >>> torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()
    (1, 0)
    """
    casting.state.nesting -= 1
    return casting.state.nesting


class autocast:
    """A context (or decorator) in which products are computed in ``dtype`` (bfloat16, or float16), what needs more in float32.

    Linear maps, matrix products, convolutions and attention cast their floating point operands; losses, Fourier transforms and most of linear
    algebra are computed in float32; all else takes the dtypes that it is given. Gradients have the dtypes of what they are gradients of, so those
    of parameters stay float32; call ``backward`` outside. ``enabled=False`` switches it off within. ``cache_enabled``: keep what
    parameters are cast to until the outermost region ends. The state is the thread's.

    For dtypes that are none of the two it warns, and does nothing; so it does for "cuda", which is not there.
    Errors: RuntimeError for a device type that PyTorch does not know.

    >>> with torch.autocast("cpu"):
    ...     y = torch.ones(1, 1) @ torch.ones(1, 1)
    >>> y
    tensor([[1.]], dtype=torch.bfloat16)
    """

    fast_dtype: Any
    device: str

    def __init__(self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        kind = _device(device_type, "autocast")
        self.device = device_type
        self.fast_dtype = casting.state.lower[kind] if dtype is None else dtype
        self._cache_enabled = casting.state.cache if cache_enabled is None else cache_enabled
        if enabled and kind == "cuda":
            warn_user("CUDA is not available or torch_xla is imported. Disabling autocast.", UserWarning)
            enabled = False
        elif enabled and self.fast_dtype not in _SUPPORTED:
            warn_user(
                f"In {kind.upper()} autocast, but the target dtype is not supported. Disabling autocast.\n{kind.upper()} Autocast only supports "
                f"dtypes of {', '.join(map(str, _SUPPORTED))} currently.",
                UserWarning,
            )
            enabled = False
        self._kind, self._enabled = kind, enabled
        self._entered: list[tuple[int, bool, Any, bool]] = []  # by which threads, and what they had before

    @whole
    def __enter__(self) -> autocast:
        state = casting.state
        self._entered.append((get_ident(), self._kind in state.enabled, state.lower[self._kind], state.cache))
        switch(self._kind, bool(self._enabled), as_dtype(self.fast_dtype))
        state.nesting += 1
        state.cache = bool(self._cache_enabled)
        return self

    @whole
    def __exit__(self, *error: Any) -> None:
        state = casting.state
        state.nesting -= 1
        if state.nesting == 0:
            clear_cache()
        thread = get_ident()
        k = max(i for i, entered in enumerate(self._entered) if entered[0] == thread)
        _, enabled, lower, state.cache = self._entered.pop(k)
        switch(self._kind, enabled, lower)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. Did you mean to use autocast as a context manager? "
                "For example: with torch.autocast(device_type=...): output = model(input)"
            )
        return autocast_decorator(self, func)


def autocast_decorator(autocast_instance: autocast, func: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, which runs in the region."""

    @functools.wraps(func)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with autocast_instance:
            return func(*args, **kwargs)

    return inside


def _older(device: str, kind: str) -> dict[str, Callable[..., Any]]:
    """Return the functions that named the device in their own names."""

    def warn(name: str, arguments: str, instead: str) -> None:
        warn_user(f"torch.{name}({arguments}) is deprecated. Please use torch.{instead} instead.", DeprecationWarning)

    def is_enabled() -> bool:
        warn(f"is_autocast_{device}_enabled", "", f"is_autocast_enabled('{kind}')")
        return is_autocast_enabled(kind)

    def set_enabled(enabled: bool) -> None:
        if enabled.__class__ is not bool:
            raise TypeError(f"enabled must be a bool (got {type(enabled).__name__})")
        warn(f"set_autocast_{device}_enabled", "enabled", f"set_autocast_enabled('{kind}', enabled)")
        set_autocast_enabled(kind, enabled)

    def get_dtype() -> dtype:
        warn(f"get_autocast_{device}_dtype", "", f"get_autocast_dtype('{kind}')")
        return get_autocast_dtype(kind)

    def set_dtype(dtype: dtype) -> None:
        if not isinstance(dtype, _DTYPE):
            raise TypeError(f"dtype must be a torch.dtype (got {type(dtype).__name__})")
        warn(f"set_autocast_{device}_dtype", "dtype", f"set_autocast_dtype('{kind}', dtype)")
        set_autocast_dtype(kind, dtype)

    made: dict[str, Callable[..., Any]] = {
        f"is_autocast_{device}_enabled": is_enabled, f"set_autocast_{device}_enabled": set_enabled, f"get_autocast_{device}_dtype": get_dtype,
        f"set_autocast_{device}_dtype": set_dtype,
    }  # fmt: skip
    for name, function in made.items():
        function.__name__ = function.__qualname__ = name
        function.__doc__ = f"`{name.replace(f'_{device}', '')}` of the device {kind!r}, by its older name."
    return made


for _name, _kind in {"cpu": "cpu", "gpu": "cuda", "ipu": "ipu", "xla": "xla"}.items():
    globals().update(_older(_name, _kind))


def _deprecated(name: str, instead: str) -> None:
    warn_user(f"`torch.{name}(args...)` is deprecated. Please use `torch.amp.{instead}` instead.", FutureWarning)


class cuda_autocast(autocast):
    """`autocast` for "cuda", where the device needs no naming, and is not there: it warns, and nothing is cast."""

    def __init__(self, enabled: bool = True, dtype: Any = float16, cache_enabled: bool = True) -> None:
        _deprecated("cuda.amp.autocast", "autocast('cuda', args...)")
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class cpu_autocast(autocast):
    """`autocast` for "cpu", where the device needs no naming."""

    def __init__(self, enabled: bool = True, dtype: Any = bfloat16, cache_enabled: bool = True) -> None:
        _deprecated("cpu.amp.autocast", "autocast('cpu', args...)")
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


def cuda_custom_fwd(fwd: Callable[..., Any] | None = None, *, cast_inputs: Any = None) -> Any:
    """Return `custom_fwd` for "cuda", where the device needs no naming."""
    _deprecated("cuda.amp.custom_fwd", "custom_fwd(args..., device_type='cuda')")
    return custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def cuda_custom_bwd(bwd: Callable[..., Any] | None = None) -> Any:
    """Return `custom_bwd` for "cuda", where the device needs no naming."""
    _deprecated("cuda.amp.custom_bwd", "custom_bwd(args..., device_type='cuda')")
    return custom_bwd(bwd, device_type="cuda")


def custom_fwd(fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: Any = None) -> Any:
    """Decorator of a Function's ``forward``: it runs in the autocast state that it is called in, which ``backward`` (`custom_bwd`) finds again.

    With ``cast_inputs`` floating point tensors are cast to that dtype, where autocast is on, and nothing is cast within.
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        args[0]._dtype = get_autocast_dtype(device_type)
        on = is_autocast_enabled(device_type)
        args[0]._fwd_used_autocast = on and cast_inputs is None
        if cast_inputs is None or not on:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*cast_floats(args, device_type, cast_inputs), **cast_floats(kwargs, device_type, cast_inputs))

    return decorated


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Decorator of a Function's ``backward``: it runs in the autocast state of ``forward``, which `custom_fwd` has noted."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, dtype=args[0]._dtype, enabled=args[0]._fwd_used_autocast):
            return bwd(*args, **kwargs)

    return decorated
