"""Memory handed to and from other libraries without a copy: DLPack, by way of NumPy, which knows all of it but bfloat16 and complex32.

A capsule holds a struct that begins with the place of the memory; a number of bfloat16 goes through NumPy as an integer of 16 bits, and the struct
is told so, or told otherwise. Source: https://dmlc.github.io/dlpack/latest/c_api.html
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ...dtypes import bfloat16, complex32, int16, int32
from ...errors import DeviceError, shorten
from ...graph.versions import fix
from ...tensor import Tensor, wrap
from ..core.recording import made_here
from ..core.registry import OPS, public
from .convert import ndarray
from .device import device as device_of

_CPU = (1, 3, 11)  # memory of the CPU; that, pinned for CUDA or for ROCm
_DEVICES = {2: "cuda", 4: "opencl", 7: "vulkan", 8: "mps", 10: "rocm", 13: "cuda", 14: "xpu", 15: "webgpu"}
_INTEGER = 0
#: what NumPy does not have: code and bits of it, and the integers by which its elements go through NumPy
_CODED = {bfloat16: (4, 16, int16), complex32: (5, 32, int32)}


class _Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Array(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("kind", ctypes.c_int32), ("number", ctypes.c_int32), ("ndim", ctypes.c_int32), ("type", _Type)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64), ("array", _Array),
    ]  # fmt: skip


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_int
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p


def _type_of(capsule: Any) -> _Type:
    """Return the dtype in the struct of a capsule that nobody has taken yet, to be read or changed there."""
    if _is_valid(capsule, b"dltensor_versioned"):
        return _Versioned.from_address(_pointer(capsule, b"dltensor_versioned")).array.type
    if _is_valid(capsule, b"dltensor"):
        return _Array.from_address(_pointer(capsule, b"dltensor")).type
    raise RuntimeError("from_dlpack(): the capsule has been taken already; a capsule can be taken once (make another with to_dlpack)")


class _Owner:
    """An object that NumPy takes for the owner of a capsule."""

    def __init__(self, capsule: Any):
        self._capsule = capsule

    def __dlpack__(self, **kw: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class _Writable:
    """The memory of an array as one that may be written to, which capsules without a version do not tell."""

    def __init__(self, array: np.ndarray):
        self._array = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.__array_interface__["data"][0], False)}


def _as_capsule(array: np.ndarray, **options: Any) -> Any:
    if np.lib.NumpyVersion(np.__version__) < "2.1.0":  # which knows no options
        options = {}
    return array.__dlpack__(**{k: v for k, v in options.items() if v is not None})


def dlpack(self: Tensor, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None) -> Any:
    """Return a capsule with the tensor's memory; ``stream`` is for devices, and is None (or -1) here.

    Errors: BufferError for tensors that require gradients, and for other devices; TypeError and AssertionError for streams.
    """
    if self.is_meta:
        raise BufferError("Cannot pack tensors on meta: a tensor of the device 'meta' has no memory to hand out")
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if dl_device is not None and tuple(dl_device) != (1, 0):
        raise BufferError(f"__dlpack__(): dl_device={shorten(dl_device)}; tensors are in the CPU's memory, (1, 0)")
    if stream is not None and type(stream) is not int:
        raise TypeError(f"stream must be ``int`` or ``none``, not {shorten(stream)}")
    if stream is not None and stream != -1:
        raise AssertionError(f"stream should be None on cpu. (__dlpack__(): stream={stream})")
    options = {"max_version": max_version, "copy": copy}
    if self.dtype.in_numpy:
        return _as_capsule(ndarray(self), **options)
    code, _, integer = _CODED[self.dtype]
    capsule = _as_capsule(ndarray(self.view(integer)), **options)
    _type_of(capsule).code = code
    return capsule


def dlpack_device(self: Tensor) -> tuple[int, int]:
    """Return DLPack's number of the CPU; ValueError for a tensor of the device "meta", which has no memory."""
    if self.is_meta:
        raise ValueError("Unknown device type meta for Dlpack")
    return (1, 0)


@public(method=False)
def to_dlpack(tensor):
    """Return a capsule with the tensor's memory, for `from_dlpack` of any library, which may take it once. Derivative: none; the tensor is detached."""
    return dlpack(tensor.detach())


@public(method=False)
def from_dlpack(ext_tensor, *, device=None, copy: bool | None = None):
    """Return a tensor that shares the memory of any object with ``__dlpack__``, or that of a capsule.

    copy: True copies the memory; False and None share it.

    Errors: BufferError for memory of other devices than the CPU, RuntimeError for dtypes that no tensor has.

    >>> import numpy
    >>> a = numpy.zeros(2)
    >>> x = torch.from_dlpack(a)
    >>> a[0] = 7
    >>> x
    tensor([7., 0.], dtype=torch.float64)
    """
    if device is not None and device_of(device).type != "cpu":
        raise DeviceError(str(device))
    if type(ext_tensor).__name__ == "PyCapsule":
        capsule = ext_tensor
    elif not hasattr(ext_tensor, "__dlpack__"):
        raise TypeError(f"from_dlpack(): {shorten(ext_tensor)} ({type(ext_tensor).__name__}) has no __dlpack__, and is no capsule")
    else:
        kind, _ = ext_tensor.__dlpack_device__()
        if kind not in _CPU:
            name = _DEVICES.get(int(kind), f"device {int(kind)}")
            raise BufferError(
                f"from_dlpack(): the memory is on {name}, and tensors here are in the CPU's; copy it first, as by x.cpu() or cupy.asnumpy(x)"
            )
        try:
            capsule = ext_tensor.__dlpack__(max_version=(1, 0))
        except TypeError:  # from before there were versions
            capsule = ext_tensor.__dlpack__()
    kind = _type_of(capsule)
    coded = next((d for d, (code, bits, _) in _CODED.items() if (kind.code, kind.bits, kind.lanes) == (code, bits, 1)), None)
    if coded is not None:
        kind.code = _INTEGER
    told = _is_valid(capsule, b"dltensor_versioned")
    array = np.from_dlpack(_Owner(capsule))  # type: ignore[arg-type]
    found = wrap(array if told else np.asarray(_Writable(array)))
    fix(made_here(found)._version_)
    found = found if coded is None else found.view(coded)
    return OPS["clone"].call(found) if copy else found


Tensor.__dlpack__ = dlpack  # type: ignore[assignment]
Tensor.__dlpack_device__ = dlpack_device  # type: ignore[assignment]
