"""What programs ask about dtypes, shapes and devices without computing anything."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...dtypes import as_dtype, get_default_dtype
from ...errors import shorten, warn_user
from ...shapes import Size
from ...shapes import broadcast_shapes as _broadcast
from ...tensor import Tensor
from ..core.numbers import int_argument, several_argument
from ..core.recording import made_in
from ..core.recording import typename as name_of
from ..core.registry import public
from .cast import placed
from .data import from_numpy, taken, tensor, warn_of_reading
from .device import device
from .dlpack import from_dlpack
from .ranges import arange, stored_in_order


@public(method=False)
def broadcast_shapes(*shapes) -> Size:
    """Return the shape that these shapes broadcast to. RuntimeError where they do not.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.broadcast_shapes.html

    >>> torch.broadcast_shapes((3, 1), (4,))
    torch.Size([3, 4])
    """
    sizes = [tuple([int_argument(n, "broadcast_shapes", "shapes") for n in several_argument(s, "broadcast_shapes", "shapes")]) for s in shapes]
    for s in sizes:
        if any(n < 0 for n in s):
            raise RuntimeError(f"Trying to create tensor with negative dimension ({min(s)}): ({min(s)})")
    return Size(_broadcast(*sizes))


@public(method=False)
def can_cast(from_: dtypes.dtype, to: dtypes.dtype) -> bool:
    """Return whether a result of one dtype may be written into a tensor of the other: kinds only go up (bool, integer, float, complex).

    Source: https://docs.pytorch.org/docs/stable/generated/torch.can_cast.html

    >>> torch.can_cast(torch.float32, torch.int64)
    False
    """
    from_, to = dtypes.as_dtype(from_, "from_"), dtypes.as_dtype(to, "to")
    return from_.category <= to.category


@public(method=False)
def result_type(tensor1: Tensor | float, tensor2: Tensor | float) -> dtypes.dtype:
    """Return the dtype of an arithmetic result of two tensors or numbers.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.result_type.html

    >>> torch.result_type(torch.tensor([1]), 2.5)
    torch.float32
    """
    operands: tuple[Any, Any] = (tensor1, tensor2)
    ranks: dict[int, Any] = {}
    for x in operands:
        if isinstance(x, Tensor):
            rank, d = (2 if x.ndim else 1), x.dtype
        else:
            if not isinstance(x, (bool, int, float, complex, np.number, np.bool_)):
                raise TypeError(f"result_type(): operands must be Tensors or numbers, not {type(x).__name__} (got {shorten(x)})")
            rank, d = 0, dtypes.of_scalar(type(x))
        ranks[rank] = d if rank not in ranks else dtypes.promote_types(ranks[rank], d)
    best: Any = None
    category = -1
    for rank in sorted(ranks, reverse=True):  # numbers and 0-dim tensors count only where they bring a higher kind
        d = ranks[rank]
        if best is None or d.category > category:
            if best is None:
                best = d
            elif d.category == 3 and category == 2:
                best = best.to_complex()
            else:
                best = dtypes.promote_types(best, d) if rank else d
            category = d.category
    return best


@public(method=False)
def typename(obj) -> str:
    """Return the name of an object's type, with its module; of a class or a function its own name.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.typename.html

    >>> torch.typename(torch.tensor([1.])), torch.typename(3), torch.typename(len)
    ('torch.FloatTensor', 'int', 'len')
    """
    return obj.type() if isinstance(obj, Tensor) else name_of(obj)


@public(method=False, name="range")
@placed
def range_(start: float, end: float | None = None, step: float = 1, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """Return `arange` of floats with the end included; PyTorch has deprecated it.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.range.html

    >>> torch.arange(1, 3)
    tensor([1, 2])
    """
    warn_user(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with Python's range builtin. "
        "Instead, use torch.arange, which produces values in [start, end)."
    )
    if end is None:
        start, end = 0, start
    count = int((end - start) / step) + 1
    if step == 0 or count < 1:
        raise RuntimeError(f"upper bound and lower bound inconsistent with step sign (start={start}, end={end}, step={step})")
    d = made_in(out, dtype) or dtypes.get_default_dtype()
    past = start + step * (count - 0.5 if d.category > 1 else count)
    if out is None:
        return arange(start, past, step, dtype=d, device=device, requires_grad=requires_grad)
    return stored_in_order(out, arange(start, past, step, dtype=d, device=device), "range", requires_grad)


@public(method=False)
def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """Return a 1-D tensor reading the memory of an object with Python's buffer protocol. ValueError when it does not fit.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.frombuffer.html

    >>> torch.frombuffer(bytearray((1, 2)), dtype=torch.uint8)
    tensor([1, 2], dtype=torch.uint8)
    """
    dtype = dtypes.as_dtype(dtype)
    try:
        view = np.frombuffer(buffer, np.uint8)
    except TypeError:
        raise ValueError(f"object does not implement Python buffer protocol. (frombuffer() got {type(buffer).__name__}; torch.tensor() takes lists)") from None
    size = dtype.itemsize
    if len(view) == 0 or count == 0:
        raise ValueError(f"both buffer length ({len(view)}) and count ({count}) must not be 0")
    if not 0 <= offset < len(view):
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({len(view)} bytes) minus 1"
        )
    if count < 0:
        if (len(view) - offset) % size:
            raise ValueError(
                f"buffer length ({len(view) - offset} bytes) after offset ({offset} bytes) must be a multiple of element size ({size})"
            )
        count = (len(view) - offset) // size
    if offset + count * size > len(view):
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be greater than actual buffer "
            f"length ({len(view)} bytes)"
        )
    known = dtype.name if dtype.in_numpy else f"int{8 * size}"
    if not view.flags.writeable:
        warn_of_reading("buffer")
    array = np.frombuffer(buffer, dtype=known, count=count, offset=offset)
    t = taken(array, dtypes.from_numpy_dtype(array.dtype)).view(dtype)
    return t.requires_grad_(requires_grad)


@public(method=False)
@placed
def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None):
    """Return a tensor that shares the memory of ``obj`` where it can: a tensor, an array, a capsule, an object with Python's buffer protocol.

    ``copy``: True for memory of its own, False to be refused where memory cannot be shared. ``requires_grad``: as of ``obj``, if None.
    Errors: ValueError where ``copy=False`` cannot be done, RuntimeError for NumPy's scalars.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.asarray.html

    >>> torch.asarray((1, 2))
    tensor([1, 2])
    """
    d = None if dtype is None else as_dtype(dtype)
    if isinstance(obj, np.generic) and copy is False:
        raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. ")
    t = _sharing(obj, d)
    if t is None:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return tensor(obj, dtype=d, requires_grad=bool(requires_grad))
    wanted = t.requires_grad if requires_grad is None else bool(requires_grad)
    if d is not None and t.dtype is not d:
        if copy is False:
            raise ValueError(f"can't alias tensor with dtype '{t.dtype.name}' into dtype '{d.name}'.")
        t = t.to(d)
    elif copy:
        t = t.clone()
    if wanted == t.requires_grad:
        return t
    return t.requires_grad_(wanted) if t.is_leaf else t.detach()


def _sharing(obj: Any, d: Any) -> Tensor | None:
    """Return a tensor over the memory of an object, None for what is no memory."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, np.ndarray):
        return from_numpy(obj) if obj.ndim else tensor(obj)  # (0-d arrays count as numbers)
    if type(obj).__name__ == "PyCapsule":
        return from_dlpack(obj)  # type: ignore[no-any-return]
    if isinstance(obj, np.generic):
        return None
    try:
        memoryview(obj)
    except TypeError:
        return None
    return frombuffer(obj, dtype=d or get_default_dtype())


@public(method=False)
def get_device_module(device_name=None) -> Any:
    """Raise RuntimeError for anything but the CPU, which has no module of its own."""
    kind = device(device_name).type if device_name is not None else "cpu"
    raise RuntimeError(f"Device {kind!r} does not have a module of its own here: this library computes on the CPU only")
