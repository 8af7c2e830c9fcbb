"""Names for annotations, as programs import them from ``torch.types``."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from .dtypes import dtype
from .ops.creation.device import device as _device
from .ops.creation.device import layout
from .shapes import Size
from .tensor import Tensor

__all__ = ["Device", "Number", "Size", "Tensor"]

_bool: TypeAlias = builtins.bool
_int: TypeAlias = builtins.int
_float: TypeAlias = builtins.float
_complex: TypeAlias = builtins.complex
_str: TypeAlias = builtins.str
_dtype = dtype
_layout = layout
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
Device: TypeAlias = _device | str | int | None
Number: TypeAlias = int | float | bool
FileLike: TypeAlias = Any

if TYPE_CHECKING:
    import numpy as np

    _Array = TypeVar("_Array", bound=np.ndarray[Any, Any])

    class _Holds(Protocol[_Array]):
        """What holds an array, as every tensor does: checkers read from it which array ``numpy`` returns."""

        _data: _Array
