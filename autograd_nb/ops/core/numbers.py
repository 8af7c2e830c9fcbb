"""Python numbers as a tensor's dtype keeps them: one rule for filling, assigning, masks, indices and scattering."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import dtypes, launch
from ...dtypes import bool_, converted, dtype, finfo, iinfo
from ...errors import shorten
from ...shapes import as_int, layout_of
from ...tensor import Tensor, make, ndarray

#: the largest float32: a float up to it may go into any float32 or float64 tensor as it is
SINGLE = 3.4028234663852886e38


_NUMBERS = (int, float, bool, complex)


def plain_number(value: Any) -> Any:
    """Return a Python number for what stands for one, else None."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "biuf"):
        return value.item()  # (NumPy's float64 is a float, too)
    return value if isinstance(value, (bool, int, float, complex)) else None


def number_argument(value: Any, name: str, argument: str) -> Any:
    """Return a number that an op takes beside its tensors; a 0-d tensor stands for its own if nobody wants a gradient of it.

    Errors: TypeError for other tensors, through which a gradient would be lost without a word, and for what is no number.
    """
    if isinstance(value, Tensor):
        if value.ndim or value.requires_grad:
            why = "has dims" if value.ndim else "requires grad, and would get none"
            raise TypeError(f"{name}(): argument '{argument}' must be Number, not Tensor (this one {why})")
        return value.item()
    if value.__class__ in _NUMBERS or plain_number(value) is not None or hasattr(value, "_decide"):
        return value
    raise TypeError(f"{name}(): argument '{argument}' must be Number, not {type(value).__name__} ({argument}={shorten(value)})")


def real_argument(value: Any, name: str, argument: str) -> float:
    """Return a number as `number_argument`, without an imaginary part. RuntimeError, OverflowError for what no float64 holds."""
    value = number_argument(value, name, argument)
    return float(number_as(plain_number(value) if isinstance(value, np.generic) else value, dtypes.float64, name))


def real_beside(x: Tensor, value: Any, name: str, argument: str, half: dtype | None = None) -> float:
    """Return a number as `real_argument`, with which ``x`` is computed. RuntimeError for one that float32 does not hold where ``x`` is that.

    half: the dtype that has to hold it where ``x`` is of half precision.
    """
    found = real_argument(value, name, argument)
    d = half if x.dtype.is_half else x.dtype if x.dtype is dtypes.float32 else None
    return found if d is None else float(number_as(found, d, name))


def bool_argument(value: Any, name: str, argument: str) -> bool:
    """Return a flag of an op. TypeError for what is not a bool, as 1 and tensors are not."""
    if value.__class__ is bool or isinstance(value, np.bool_):
        return bool(value)
    raise TypeError(f"{name}(): argument '{argument}' must be bool, not {type(value).__name__} ({argument}={shorten(value)})")


def text_argument(value: Any, name: str, argument: str) -> str | None:
    """Return a word that an op takes, or None. TypeError for what is neither."""
    if value is None or isinstance(value, str):
        return value
    raise TypeError(f"{name}(): argument '{argument}' must be str, not {type(value).__name__} ({argument}={shorten(value)})")


def int_argument(value: Any, name: str, argument: str) -> int:
    """Return an integer of an op, which may come as NumPy's or as a 0-d tensor. TypeError for what is none; ValueError beyond 64 bits."""
    try:
        return as_int(value, argument)
    except TypeError:
        raise TypeError(f"{name}(): argument '{argument}' must be int, not {type(value).__name__} ({argument}={shorten(value)})") from None


def several_argument(value: Any, name: str, argument: str) -> tuple[Any, ...]:
    """Return what an op takes as one int or several of them. TypeError for what is neither."""
    if isinstance(value, str) or not hasattr(value, "__iter__") or (isinstance(value, Tensor) and not value.ndim):
        return (int_argument(value, name, argument),)
    return tuple(value)


def float_argument(value: Any, name: str, argument: str) -> float:
    """Return a real number of an op, which may come as a 0-d tensor that nobody wants a gradient of. TypeError for what is none."""
    if value.__class__ is float:
        return value
    value = plain_number(number_argument(value, name, argument))
    if value is None or isinstance(value, complex):
        raise TypeError(f"{name}(): argument '{argument}' must be float, not {type(value).__name__} ({argument}={shorten(value)})")
    return float(value)


def narrowed(p: float, d: dtype) -> float:
    """Return the order of a norm as what computes on ``d`` holds it, where that is 0 or infinite: PyTorch's powers of float32 are by float32."""
    if d.compute == "float64":
        return float(p)
    return math.copysign(math.inf, p) if abs(p) > SINGLE else math.copysign(0.0, p) if abs(p) < 2.0**-150 else float(p)


def number_as(value: Any, d: dtype, name: str) -> Any:
    """Return ``value`` as a tensor of dtype ``d`` keeps it: its truth, its integer part, its real part.

    Errors: RuntimeError for what the dtype has no place for (nan in integers, an imaginary part in a real tensor, 300 in uint8),
    OverflowError for integers beyond 64 bits.
    """
    if hasattr(value, "_decide"):  # a learning rate in a captured function
        if d.category == 2:
            return value
        value = value._decide()
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        raise OverflowError(f"int too big to convert ({name}(): {shorten(value)})")
    if d is bool_:
        return bool(value)
    if isinstance(value, complex):
        if d.is_complex:
            if not (_fits(value.real, d) and _fits(value.imag, d)):
                raise _overflow(value, d, name)
            return value
        if value.imag:
            raise _overflow(value, d, name)
        value = value.real
    if d.category == 1:
        return _integer(value, d, name)
    if not _fits(value, d):
        raise _overflow(value, d, name)
    return value


def numbers_among(tensors: list[Tensor], values: list[Any], name: str) -> list[Any]:
    """Return numbers as the dtype keeps them that a pointwise result of them and these tensors has. Errors: as `number_as`."""
    kinds = [(t.dtype, 2 if t.ndim else 1) for t in tensors] + [(dtypes.of_scalar(type(v)), 0) for v in values]
    kind = dtypes.result_of(kinds)
    return [number_as(v, kind, name) for v in values]


_C_NAMES = {
    "int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t", "float16": "c10::Half",
    "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double", "complex32": "c10::complex<c10::Half>", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}  # fmt: skip
_limits: dict[dtype, tuple[Any, ...]] = {}  # the least and the greatest number of a dtype


def limits(d: dtype) -> tuple[Any, ...]:
    """Return the least and the greatest number of an integer or floating dtype; a complex one's are its parts'."""
    found = _limits.get(d)
    if found is None:
        info: Any = iinfo(d) if d.category == 1 else finfo(d.to_real())
        found = _limits[d] = info.min, info.max
    return found


def _integer(value: Any, d: dtype, name: str) -> int:
    if value - value != 0:  # inf and nan
        raise _overflow(value, d, name)
    least, greatest = limits(d)
    if least <= value <= greatest:
        return int(value)
    if least == 0 and isinstance(value, int) and -greatest <= value < 0:  # unsigned: PyTorch lets negative integers wrap
        return value + greatest + 1
    raise _overflow(value, d, name)


def _fits(value: float, d: dtype) -> bool:
    least, greatest = limits(d)
    return least <= value <= greatest or value - value != 0


def _overflow(value: Any, d: dtype, name: str) -> RuntimeError:
    return RuntimeError(f"value cannot be converted to type {_C_NAMES.get(d.name, d.name)} without overflow: {shorten(value)} ({name}())")


MOST_DIMS = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32  #: of an array


def numbers_of(t: Tensor) -> np.ndarray:
    """Return the elements for Python to read: `ndarray`, but for bfloat16 a copy in float32, for complex32 one in complex64."""
    layout = t._layout
    if layout.dtype.in_numpy:
        return ndarray(t)
    if layout.dtype.is_complex:
        bits = ndarray(make(t._data.view(np.int32), layout_of(layout.shape, layout.strides, dtypes.int32), [0, 0]))
        parts = np.ascontiguousarray(bits).view(np.float16).astype(np.float32)
        return parts.view(np.complex64).reshape(layout.sizes)
    bits = ndarray(make(t._data.view(np.int16), layout_of(layout.shape, layout.strides, dtypes.int16), [0, 0]))
    return (bits.astype(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def scalar_tensor(value: Any, d: dtype | None = None) -> Tensor:
    """Return a 0-d tensor of a Python number."""
    if hasattr(value, "_decide"):  # a learning rate in a captured function
        value = value._decide()
    d = d or dtypes.of_scalar(type(value))
    if not d.in_numpy:
        data = converted(np.array([number_as(value, d, "tensor")]), d)
    else:
        try:
            data = np.array([value], d.np)
        except OverflowError:
            data = np.array([number_as(value, d, "tensor")], d.np)
    if d.carrier is not d.np:
        data = data.view(d.carrier)
    return make(launch.constant(data) if launch._observing else data, layout_of((), None, d), [0, 0])
