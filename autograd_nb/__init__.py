"""Define-by-run tensor autograd whose every kernel is compiled by Numba; ``import autograd_nb as torch``."""

import math as _math
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from . import autograd, display, launch, ops
from .dtypes import (
    bool_ as bool,  # noqa: A004
)
from .dtypes import (
    complex64,
    complex128,
    dtype,
    finfo,
    float16,
    float32,
    float64,
    get_default_dtype,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    set_default_dtype,
    uint8,
)
from .graph.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .ops.registry import functions as _functions
from .shapes import Size
from .tensor import Tensor

from .autograd.legacy import TYPES as _TYPES
from .launch import release_memory

half, float, double = float16, float32, float64  # noqa: A001
short, int, long = int16, int32, int64  # noqa: A001
cfloat, cdouble = complex64, complex128
strided, contiguous_format, preserve_format = "torch.strided", "torch.contiguous_format", "torch.preserve_format"
inf, nan, pi, e = _math.inf, _math.nan, _math.pi, _math.e
newaxis = None

globals().update(_functions("torch"))
globals().update(_TYPES)

# modules come after the ops that they are written with
from . import nn, optim  # noqa: E402

if _TYPE_CHECKING:

    def __getattr__(name: str) -> _Any: ...  # the ops, which are attached from their table


__version__ = "0.1.0"
