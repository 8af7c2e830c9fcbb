"""Tensors as MPI takes them: flat arrays of bytes, or of numbers that MPI can add.

A dense tensor's own memory is given. One with gaps is gathered into a copy before, and the copy is spread after; float16 and bfloat16, of
which MPI has no sums, are reduced as float32 and rounded once; bfloat16, which NumPy has not, is here by its bits, as
uint16. All of it happens in the communication thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import launch
from ..dtypes import bfloat16, dtype
from ..ops.core.marked import MARKED
from ..tensor import Tensor, ndarray
from .reduce_op import RedOpType, ReduceOp

_DIVIDE, _DIVIDE_TOWARDS_ZERO = (launch.Kernel("collectives", name) for name in ("divide", "divide_towards_zero"))
_REDUCED_AS = {np.dtype(np.float16): np.dtype(np.float32)}
_BOOL = {
    ReduceOp.SUM: "LOR", ReduceOp.MAX: "LOR", ReduceOp.BOR: "LOR", ReduceOp.PRODUCT: "LAND", ReduceOp.MIN: "LAND", ReduceOp.BAND: "LAND",
    ReduceOp.BXOR: "LXOR",
}  # fmt: skip
#: what MPI calls the reductions, and the types of numbers
OPERATIONS = {
    ReduceOp.SUM: "SUM", ReduceOp.AVG: "SUM", ReduceOp.PRODUCT: "PROD", ReduceOp.MIN: "MIN", ReduceOp.MAX: "MAX",
    ReduceOp.BAND: "BAND", ReduceOp.BOR: "BOR", ReduceOp.BXOR: "BXOR",
}  # fmt: skip
NAMES = {
    "bool": "C_BOOL", "uint8": "UINT8_T", "int8": "INT8_T", "int16": "INT16_T", "int32": "INT32_T", "int64": "INT64_T",
    "float32": "FLOAT", "float64": "DOUBLE", "complex64": "C_FLOAT_COMPLEX", "complex128": "C_DOUBLE_COMPLEX",
}  # fmt: skip
_TYPES = {np.dtype(name): kind for name, kind in NAMES.items()}  # a dtype's name is slow to ask for


class Buffer:
    """One tensor's elements in a flat array: its own memory where it is dense, else a copy of which `write` brings the values back."""

    __slots__ = ("array", "flat", "own")
    array: np.ndarray
    own: bool
    flat: np.ndarray

    def __init__(self, tensor: Tensor):
        self.array = memory(tensor)
        self.own = self.array.flags.c_contiguous
        self.flat = self.array.reshape(-1) if self.own else np.empty(0, self.array.dtype)

    def read(self) -> np.ndarray:
        """Return the elements as they are now."""
        if not self.own:
            self.flat = np.ascontiguousarray(self.array).reshape(-1)
        return self.flat

    def room(self) -> np.ndarray:
        """Return memory for the elements, whose values do not matter."""
        if not self.own:
            self.flat = np.empty(self.array.size, self.array.dtype)
        return self.flat

    def write(self) -> None:
        """Bring what stands in the flat array into the tensor."""
        if not self.own:
            np.copyto(self.array, self.flat.reshape(self.array.shape))

    def fill(self, values: np.ndarray) -> None:
        """Bring other values of the same number into the tensor."""
        store(self.array, values.reshape(self.array.shape))


def store(array: np.ndarray, values: np.ndarray) -> None:
    """Write values into an array, rounded where it has fewer bits."""
    if array.dtype == np.uint16 and values.dtype == np.float32:
        values = _rounded(values)
    np.copyto(array, values, casting="unsafe")


def room(elements: int, d: dtype) -> np.ndarray:
    """Return memory for elements of a dtype, zeros; bfloat16 as `memory` has it."""
    return np.zeros(elements, np.uint16 if d is bfloat16 else d.np)


def memory(tensor: Tensor) -> np.ndarray:
    """Return an array that shares a tensor's memory: bfloat16 by its bits, as uint16. RuntimeError for views that show conjugates."""
    if tensor.__class__ in MARKED:
        raise RuntimeError("a collective doesn't work on unresolved conjugated tensors, nor on negative views: give it x.resolve_conj().resolve_neg()")
    if tensor.dtype is not bfloat16:
        return ndarray(tensor)
    step, layout = tensor.dtype.itemsize, tensor._layout
    return np.lib.stride_tricks.as_strided(tensor._data.view(np.uint16), layout.shape, tuple(s * step for s in layout.strides))


def _rounded(values: np.ndarray) -> np.ndarray:
    """Return the bits of float32 values that are rounded to the nearest bfloat16, to the even one of two."""
    bits = values.view(np.uint32)
    nearest = ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), nearest)


def as_bytes(flat: np.ndarray) -> np.ndarray:
    """Return the memory of a dense array as bytes."""
    return flat.view(np.uint8)


def summable(flat: np.ndarray) -> np.ndarray:
    """Return a copy of the elements in a type that MPI reduces."""
    if flat.dtype == np.uint16:
        return (flat.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return flat.astype(_REDUCED_AS.get(flat.dtype, flat.dtype))


def is_summable(flat: np.ndarray) -> bool:
    """Return whether MPI reduces this type as it is."""
    return flat.dtype not in _REDUCED_AS and flat.dtype != np.uint16


def typed(MPI: Any, flat: np.ndarray) -> list[Any]:
    """Return the array as MPI's functions that reduce take it: with the number of elements and their type."""
    return [as_bytes(flat), flat.size, getattr(MPI, _TYPES[flat.dtype])]


def operation(MPI: Any, op: RedOpType, flat: np.ndarray) -> Any:
    """Return MPI's operation; truth values are or-ed and and-ed."""
    return getattr(MPI, _BOOL[op] if flat.dtype == np.bool_ else OPERATIONS[op])


def average(flat: np.ndarray, ranks: int) -> None:
    """Divide sums by a number of ranks, in place; integers towards zero."""
    kernel = _DIVIDE_TOWARDS_ZERO if flat.dtype.kind in "iu" else _DIVIDE
    kernel(str(flat.dtype), ranks, flat)


def joined(buffers: Sequence[Buffer]) -> np.ndarray:
    """Return the elements of several tensors behind one another."""
    return np.concatenate([b.read() for b in buffers]) if len(buffers) != 1 else buffers[0].read()


def parted(flat: np.ndarray, buffers: Sequence[Buffer]) -> None:
    """Write elements that stand behind one another into several tensors."""
    at = 0
    for b in buffers:
        b.fill(flat[at : at + b.array.size])
        at += b.array.size
