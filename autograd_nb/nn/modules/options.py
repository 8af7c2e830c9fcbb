"""What layers share: uninitialised parameters, sizes given as one int or several, families for one, two and three dims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

from ...dtypes import as_dtype, get_default_dtype
from ...ops.core.foreign import asked
from ...ops.core.recording import made_here
from ...ops.creation.cast import is_meta
from ...ops.creation.create import new_empty
from ...shapes import as_ints, check_sizes
from ..parameter import Parameter
from .module import Module


def parameter(shape: Sequence[int], dtype: Any = None, device: Any = None) -> Parameter:
    """Return a parameter with undefined contents, which ``reset_parameters`` fills."""
    away = device is not None and is_meta(device)
    shape = as_ints(shape, "size", "empty")
    check_sizes(shape)
    made = made_here(new_empty(shape, get_default_dtype() if dtype is None else as_dtype(dtype)))
    return Parameter(asked.meta().on_meta(made) if away or (device is None and asked.meta_used and asked.meta().is_around()) else made)


def sizes(value: Any, n: int, name: str, module: Module) -> tuple[int, ...]:
    """Return what `several` does, of ints. TypeError for anything else, here and not when the module is called."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        value = (value,) * n
    return as_ints(value, name, type(module).__name__)


def several(value: Any, n: int) -> tuple[Any, ...]:
    """Return ``value`` as ``n`` numbers: one for all, or one for each."""
    return tuple(value) if isinstance(value, Iterable) else tuple(repeat(value, n))


class Spatial(Module):
    """A layer over the last ``dims`` dims; ``class Conv2d(_Conv, dims=2)`` is that of a family over two."""

    dims: int

    def __init_subclass__(cls, dims: int | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if dims is not None:
            cls.dims = dims
