"""Tensors of nested data: lists of numbers, and of arrays and tensors among them.

As in PyTorch the first elements say what the shape is, all elements have a say in the dtype, and what does not fit the shape is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ... import dtypes, launch
from ...dtypes import dtype, from_numpy_dtype
from ...tensor import Tensor
from ..core.numbers import numbers_of

#: with the name of a type
NO_NUMBERS = "Could not infer dtype of {}: tensor() takes numbers, (nested) lists of numbers, arrays and Tensors"
_OVERFLOW = "Overflow when unpacking long long: an integer in the data does not fit 64 bits"


def read(data: Any, d: dtype | None) -> tuple[np.ndarray, dtype]:
    """Return the numbers of nested lists as an array, and the dtype that a tensor of them has: ``d``, or what they are."""
    try:
        held = {type(x) for x in _leaves(data)}
    except RecursionError:
        raise TypeError("new(): self-referential lists are incompatible (or the lists are nested too deeply)") from None
    if not held <= {bool, int, float, complex}:
        sizes = _sizes(data)
        d = d or common(data)
        array = _elements(data, sizes, d)
    else:
        try:
            # (of integers above and below 2⁶³ NumPy would make floats)
            array = np.array(data, np.uint64 if d is dtypes.uint64 and held <= {bool, int} else None)
            if array.dtype.kind == "f" and array.size and held <= {bool, int}:
                raise OverflowError
        except ValueError:  # ragged, which is an error but for nothing at all
            d = d or common(data)
            array = _elements(data, _sizes(data), d)
        except OverflowError:
            for x in _leaves(data):
                check_64_bits(x, d)
            raise ValueError(_OVERFLOW) from None
        if array.dtype == np.uint64 and d is not None and d.category == 1 and d is not dtypes.uint64:
            raise ValueError(_OVERFLOW)
    if array.dtype.kind == "O":
        raise ValueError(_OVERFLOW)
    d = d or _inferred(array)
    if array.dtype.kind == "c" and not d.is_complex and d is not dtypes.bool_:
        raise TypeError(f"must be real number, not complex (dtype={d!r})")
    return array, d


def check_64_bits(x: Any, d: dtype | None) -> None:
    """Raise ValueError for an integer that int64 does not hold, of a tensor of uint64 OverflowError for one that this does not."""
    if d is dtypes.uint64:
        if x < 0:
            raise OverflowError("can't convert negative int to unsigned")
        if x >> 64:
            raise OverflowError(f"int too big to convert ({x})")
    elif not -(1 << 63) <= x < 1 << 63:
        raise ValueError(_OVERFLOW)


def _leaves(data: Any) -> Iterator[Any]:
    for x in data:
        if isinstance(x, (list, tuple)):
            yield from _leaves(x)
        else:
            yield x


def _inferred(array: np.ndarray) -> dtype:
    """Return the dtype of a tensor of Python's numbers: the default one for floats and for no numbers at all."""
    if array.size == 0 or array.dtype.kind == "f":
        return dtypes.get_default_dtype()
    if array.dtype.kind == "c":
        return dtypes.get_default_dtype().to_complex()
    if array.dtype == np.uint64:
        raise ValueError("Overflow when unpacking long long: an integer in the data does not fit int64")
    return from_numpy_dtype(array.dtype)


def is_sequence(x: Any) -> bool:
    """Return whether ``x`` holds elements by their places: a list, a deque, or any class with a length and items that is no mapping."""
    if isinstance(x, Sequence):
        return not isinstance(x, (str, bytes))
    if isinstance(x, (Tensor, np.ndarray, np.generic, Mapping)):
        return False
    return hasattr(type(x), "__getitem__") and hasattr(type(x), "__len__")


def listed(data: Any) -> list[Any]:
    """Return the elements of a sequence of any class; ValueError where they are not at the places from 0."""
    try:
        return [data[k] for k in range(len(data))]
    except (TypeError, KeyError):
        raise ValueError(f"could not determine the shape of object type '{type(data).__name__}'") from None


def common(data: Any) -> dtype:
    """Return the dtype of data: those of its tensors, arrays and numbers, promoted; RuntimeError for what is none of them."""
    if isinstance(data, Tensor):
        return data.dtype
    if isinstance(data, (np.ndarray, np.generic)):
        wide = data.dtype.kind == "u" and data.dtype.itemsize > 1 and isinstance(data, np.generic)
        return dtypes.int64 if wide else from_numpy_dtype(data.dtype)
    if isinstance(data, (bool, int, float, complex)):
        return dtypes.of_scalar(next(kind for kind in (bool, int, float, complex) if isinstance(data, kind)))
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}': tensor() takes numbers only")
    if not is_sequence(data):
        raise RuntimeError(NO_NUMBERS.format(type(data).__name__))
    found: dtype | None = None
    for x in data:
        own = common(x)
        found = own if found is None else dtypes.promote_types(found, own)
    return found or dtypes.get_default_dtype()


def _sizes(data: Any) -> list[int]:
    """Return the shape that the first elements have, up to the first size 0."""
    sizes: list[int] = []
    while is_sequence(data) or (isinstance(data, np.ndarray) and data.ndim):
        sizes.append(len(data))
        if not len(data):
            return sizes
        data = data[0]
    if isinstance(data, str):
        raise ValueError(f"too many dimensions '{type(data).__name__}': tensor() takes numbers only")
    return sizes


def _elements(data: Any, sizes: list[int], d: dtype) -> np.ndarray:
    """Return the numbers one by one, in this shape."""
    if 0 in sizes:
        return np.empty(sizes)
    numbers = list(_numbers(data, sizes, 0, d))
    try:
        return np.array(numbers).reshape(sizes)
    except OverflowError:
        raise RuntimeError(_OVERFLOW) from None


def _numbers(data: Any, sizes: list[int], dim: int, d: dtype) -> Iterator[Any]:
    items: Iterable[Any]
    if isinstance(data, Tensor) and data.ndim:
        items = list(data)
    elif is_sequence(data) or (isinstance(data, np.ndarray) and data.ndim):
        items = data
    else:
        raise TypeError(f"not a sequence: {type(data).__name__} among sequences of length {sizes[dim]}, at dim {dim}")
    if len(items) != sizes[dim]:  # type: ignore[arg-type]
        raise ValueError(f"expected sequence of length {sizes[dim]} at dim {dim} (got {len(items)})")  # type: ignore[arg-type]
    for x in items:
        if dim + 1 < len(sizes):
            yield from _numbers(x, sizes, dim + 1, d)
        else:
            yield _number(x, d)


def _number(x: Any, d: dtype) -> Any:
    """Return the number that an element stands for."""
    if isinstance(x, Tensor):
        if x._layout.size != 1:
            raise ValueError(f"only one element tensors can be converted to Python scalars (one in the list has shape {list(x.shape)}; use stack())")
        x = numbers_of(x).reshape(())
    elif isinstance(x, np.ndarray):
        launch.escapes("a tensor made of a NumPy array")
        if x.ndim:
            raise TypeError(f"only 0-dimensional arrays can be converted to Python scalars (one in the list has shape {list(x.shape)})")
    x = x.item() if isinstance(x, (np.ndarray, np.generic)) else x
    if not isinstance(x, (bool, int, float, complex)) or (isinstance(x, complex) and not d.is_complex):
        raise TypeError(f"must be real number, not {type(x).__name__}")
    return x
