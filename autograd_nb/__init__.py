"""Define-by-run tensor autograd whose every kernel is compiled by Numba; ``import autograd_nb as torch``."""

from . import autograd, display, ops
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

half, float, double = float16, float32, float64  # noqa: A001
short, int, long = int16, int32, int64  # noqa: A001
cfloat, cdouble = complex64, complex128

globals().update(_functions("torch"))

__version__ = "0.1.0"
