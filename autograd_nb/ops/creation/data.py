"""Making tensors of Python's and NumPy's data, and as PyTorch's old constructors do."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from ... import dtypes, launch, strides
from ...dtypes import _default, as_dtype, dtype, from_numpy_dtype
from ...errors import warn_user
from ...graph import modes
from ...graph.versions import FIXED
from ...shapes import Size, as_shape, check_sizes, layout_of
from ...tensor import Tensor, above, make, wrap
from ..core.numbers import number_as, scalar_tensor
from ..core.recording import made_here
from ..core.registry import public
from . import nested
from .cast import cast, is_meta
from .create import _finish, new_empty, on_meta


def _settled(data: Any) -> Any:
    """Return nested lists with plain numbers in the place of those that a capture watches."""
    if isinstance(data, (list, tuple)):
        return [_settled(x) for x in data]
    return data._decide() if hasattr(data, "_decide") else data


class _Casting(threading.local):
    """NumPy's casts without its warnings; an errstate around each would cost five times as much as the cast."""

    def __init__(self) -> None:
        context = contextvars.Context()
        context.run(np.seterr, all="ignore")
        self.run = context.run


_casting = _Casting()


def _of_numbers(data: Any, d: dtype | None) -> Tensor | None:
    """Return a tensor of a Python number or (nested) lists of such, None where there is more to look at."""
    if data.__class__ is not list and data.__class__ is not tuple:
        return _of_number(data, d) if data.__class__ is float or data.__class__ is int else None
    if not data or launch._observing or d is dtypes.uint64:
        return None
    first: Any = data[0]
    leaves: Any = data
    while type(first) is list or type(first) is tuple:
        if not first:
            return None
        first, leaves = first[0], chain.from_iterable(leaves)
    try:
        kinds = set(map(type, leaves))
        if not kinds <= _PLAIN:  # a tensor or an array among them would have a say in the dtype
            return None
        found = dtypes.float64 if float in kinds else dtypes.int64 if int in kinds else dtypes.bool_
        if d is None:
            d = _default[0] if found is dtypes.float64 else found
        if d.carrier is not d.np:
            return None
        array = _casting.run(np.array, data, d.np) if d.category >= 2 else np.array(data, found.np)
    except (ValueError, OverflowError, TypeError):
        return None
    if array.dtype is not d.np:
        if found is not dtypes.bool_ and d.category == 1 and array.size:
            for v in (array.min().item(), array.max().item()):
                number_as(v, d, "tensor")
        array = _casting.run(array.astype, d.np)
    return make(array if array.ndim == 1 else array.ravel(), layout_of(array.shape, None, d), [0, 0])


_PLAIN = frozenset((float, int, bool))


def _of_number(data: Any, d: dtype | None) -> Tensor:
    """Return a 0-d tensor of a number. Errors: ValueError or OverflowError for an int that has no place in 64 bits."""
    if data.__class__ is int and (d is None or d.category == 1) and not -(1 << 63) <= data < 1 << 63:
        nested.check_64_bits(data, d)
    return scalar_tensor(data, d)


def _parse(data: Any, d: dtype | None) -> Tensor:
    if isinstance(data, Tensor):
        return cast(data.detach(), d or data.dtype)
    if isinstance(data, (np.ndarray, np.generic)):
        launch.escapes("a tensor made of a NumPy array")
        found = d or from_numpy_dtype(data.dtype)
        return wrap(_laid_out(data, found), found)
    if isinstance(data, (bool, int, float, complex)):
        return _of_number(data, d)
    if hasattr(data, "_read_as"):
        return data._read_as(d)  # type: ignore[no-any-return]
    if hasattr(data, "__array__") and not isinstance(data, (list, tuple)):
        return _parse(np.asarray(data), d)
    if not isinstance(data, (list, tuple, range)) and nested.is_sequence(data):  # a deque, an array.array
        data = nested.listed(data)
    if not isinstance(data, (list, tuple, range)):
        if d is not None and not isinstance(data, (str, bytes)):
            raise TypeError(f"must be real number, not {type(data).__name__}: tensor() takes numbers, sequences, arrays and Tensors")
        nested.common(data)  # which refuses
    array, d = nested.read(_settled(data) if launch.observer() is not None else data, d)
    with np.errstate(all="ignore"):
        return wrap(launch.constant(dtypes.converted(array, d)), d)


def _laid_out(data: Any, d: dtype) -> np.ndarray:
    """Return a copy of an array that lies as that of a tensor would, in the array's order of dims."""
    data = data if d.in_numpy else dtypes.converted(data, d)
    if data.flags.c_contiguous or any(s < 0 for s in data.strides):
        return np.array(data, d.np, copy=True, order="K")
    kept = strides.like(layout_of(data.shape, tuple(s // data.itemsize for s in data.strides), d))
    array = np.lib.stride_tricks.as_strided(np.empty(kept.size, d.np), data.shape, [s * d.np.itemsize for s in kept.strides])
    array[...] = data
    return array


@public(method=False)
def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """Return a new leaf with a copy of ``data``: a number, nested lists, a NumPy array or a Tensor.

    Without ``dtype`` Python floats become the default dtype, ints int64, bools bool, arrays keep theirs.

    Example:
        >>> torch.tensor([[1, 2], [3, 4]]).sum()
        tensor(10)

    Errors: ValueError for ragged lists, TypeError for what are not numbers.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.tensor.html
    """
    if device is not None and is_meta(device):
        return on_meta(tensor(data, dtype=dtype, requires_grad=requires_grad))
    d = None if dtype is None else as_dtype(dtype)
    t = _of_numbers(data, d)
    if t is None:
        t = _parse(data, d)
        if isinstance(data, Tensor) and t._version_ is data._version_:
            t = t.clone()
    return _finish(t, requires_grad) if requires_grad or modes.inference_used else t


def taken(array: np.ndarray[Any, Any], d: dtype) -> Tensor:
    """Return a tensor of an array's memory, which cannot be resized."""
    if launch._observing:
        launch.escapes("from_numpy()")
    t = wrap(array, d)
    t._version_[1] = FIXED
    return made_here(t)


def warn_of_reading(what: str) -> None:
    """Warn that memory which may only be read becomes a tensor's."""
    warn_user(
        f"The given {what} is not writable, and PyTorch does not support non-writable tensors: writing to this tensor writes to the memory "
        f"of the {what.rpartition(' ')[2]}, or stops the process (copy it first, or make it writable).",
    )


@public(method=False)
def from_numpy(ndarray: np.ndarray):
    """Return a tensor that shares the memory of a NumPy array.

    Errors: TypeError for other objects and dtypes, ValueError for negative strides (copy the array first).

    >>> import numpy as np
    >>> torch.from_numpy(np.array((1., 2.)))
    tensor([1., 2.], dtype=torch.float64)
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    d = dtypes.BY_NUMPY.get(ndarray.dtype) or from_numpy_dtype(ndarray.dtype)
    flags = ndarray.flags
    if flags.carray and d.carrier is ndarray.dtype and ndarray.__class__ is np.ndarray and not launch._observing:
        return made_here(make(ndarray.ravel(), layout_of(ndarray.shape, None, d), [0, FIXED]))  # nothing to look at: native, aligned, in order
    if not flags.writeable:
        warn_of_reading("NumPy array")
    regular = flags.c_contiguous and flags.aligned
    if not regular and any(s < 0 for s in ndarray.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently supported. "
            "(You can probably work around this by making a copy of your array  with array.copy().) "
        )
    if not regular and (any(s % ndarray.itemsize for s in ndarray.strides) or not flags.aligned):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory."
        )
    if not ndarray.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is currently not supported."
        )
    return taken(ndarray, d)


@public(method=False)
def as_tensor(data, dtype=None, device=None, *, copy=None, requires_grad=False):
    """Return ``data`` as a tensor, sharing memory where it can (Tensors and arrays of the wanted dtype); as_tensor((1, 2)) = [1, 2]."""
    if device is not None and is_meta(device):
        return on_meta(as_tensor(data, dtype, requires_grad=requires_grad))
    d = None if dtype is None else as_dtype(dtype)
    if isinstance(data, Tensor) and not copy:
        t = data if d is None else cast(data, d)
        return t
    if isinstance(data, np.ndarray) and not copy and not any(s < 0 for s in data.strides):
        t = from_numpy(data)
        return cast(t, d) if d else t
    return tensor(data, dtype=d, requires_grad=requires_grad)


def legacy_tensor(*args: Any, **kw: Any) -> Tensor:
    """Return what PyTorch's old constructor makes: ``Tensor(2, 3)`` is uninitialised, ``Tensor([1, 2])`` holds data; of the default dtype."""
    return legacy(args, None, **kw)


def legacy(args: tuple[Any, ...], d: dtype | None, *, size: Any = None, device: Any = None) -> Tensor:
    """Return what PyTorch's old constructors make, ``d`` None for `Tensor`, which takes tensors of every dtype."""
    if device is not None and is_meta(device):
        return on_meta(legacy(args, d, size=size))
    if size is not None:
        args = (Size(size), *args)
    if len(args) == 1:
        (a,) = args
        if isinstance(a, Tensor):
            if d is not None and a.dtype is not d:
                raise TypeError(f"expected a tensor of {d} (got {a.dtype}; cast it with .to({d}))")
            return a.detach()
    d = d or dtypes.get_default_dtype()
    if len(args) == 1:
        if hasattr(a, "data_ptr"):
            return new_empty((0,), d).set_(a)
        if isinstance(a, tuple) and type(a).__name__ == "Size":
            return made_here(new_empty(a, d))
        if isinstance(a, (Sequence, np.ndarray)) or hasattr(a, "_read_as"):
            return tensor(a, dtype=d)
        if nested.is_sequence(a):
            return tensor(nested.listed(a), dtype=d)
        if not hasattr(a, "__index__") and not isinstance(a, float):
            raise TypeError(f"new(): data must be a sequence (got {type(a).__name__})")
    if len(args) > 1 and isinstance(args[0], (tuple, list)):
        kinds = ", ".join(type(a).__name__ for a in args)
        raise TypeError(f"new() received an invalid combination of arguments - got ({kinds}): sizes, or one sequence of numbers")
    for a in args:
        if isinstance(a, float):
            raise TypeError(f"new(): data must be a sequence (got float); use tensor({a})")
    shape = as_shape(args or (0,))
    check_sizes(shape)
    return made_here(new_empty(shape, d))


@public(namespaces=())
def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    """Return `tensor` with this tensor's dtype."""
    return tensor(data, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)


@public(namespaces=())
def new(self, *args, size=None, device=None):
    """Return what PyTorch's old constructor makes, of this tensor's dtype.

    >>> torch.ones(1).new([1, 2])
    tensor([1., 2.])
    """
    return legacy(args, self.dtype, size=size, device=device)


above.legacy_tensor = legacy_tensor
