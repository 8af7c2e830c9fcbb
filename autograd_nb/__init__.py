"""Define-by-run tensor autograd whose every kernel is compiled by Numba; ``import autograd_nb as torch``."""

import builtins as _builtins
import math as _math
import sys as _sys
import typing as _typing
from importlib.machinery import EXTENSION_SUFFIXES as _SUFFIXES
from typing import Any as _Any

# (what sysconfig says of it would cost as much as a tenth of this import)
if _builtins.any(f"{_sys.version_info[0]}{_sys.version_info[1]}t-" in suffix for suffix in _SUFFIXES):
    raise ImportError(
        "autograd_nb does not run on free-threaded builds of Python (such as python3.13t), with the global interpreter lock or without: "
        "its machine code reads objects as ordinary builds lay them out; use the ordinary build of this version"
    )

from .graph.collector import Pause as _Pause

_pause = _Pause(_sys.modules[__name__])

# From here, not from deep within: CPython takes and gives back a piece of memory at each call that no longer fits into the one before, and such
# a place in the midst of this import had cost a tenth of it.
import numpy as _numpy

from . import autograd as autograd, display as display, launch as launch, ops as ops, random as random
from .autograd import handlers as _handlers
from .autograd.anomaly import (
    is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled, is_anomaly_enabled as is_anomaly_enabled,
    set_anomaly_enabled as set_anomaly_enabled,
)
from .autograd.legacy import TYPES as _TYPES
from .compat.import_aliases import ask_early as _ask_early
from .compat.import_aliases import finder as _first_finder
from .compat.import_aliases import last as _last_finder
from .config import (
    are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
    get_deterministic_debug_mode as get_deterministic_debug_mode, get_float32_matmul_precision as get_float32_matmul_precision,
    get_num_interop_threads as get_num_interop_threads, get_num_threads as get_num_threads,
    is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
    is_warn_always_enabled as is_warn_always_enabled,
    set_deterministic_debug_mode as set_deterministic_debug_mode, set_float32_matmul_precision as set_float32_matmul_precision,
    set_flush_denormal as set_flush_denormal, set_num_interop_threads as set_num_interop_threads,
    set_num_threads as set_num_threads, set_warn_always as set_warn_always,
    use_deterministic_algorithms as use_deterministic_algorithms,
)
from .dtypes import (
    bfloat16 as bfloat16, complex32 as complex32, complex64 as complex64, complex128 as complex128, dtype as dtype, finfo as finfo, float16 as float16,
    float32 as float32, float64 as float64, get_default_dtype as get_default_dtype, iinfo as iinfo, int8 as int8,
    int16 as int16, int32 as int32, int64 as int64, promote_types as promote_types, set_default_dtype as set_default_dtype,
    uint8 as uint8, uint16 as uint16, uint32 as uint32, uint64 as uint64,
)
from .dtypes import bool_ as _bool
from .graph.modes import (
    enable_grad as enable_grad, inference_mode as inference_mode, is_grad_enabled as is_grad_enabled,
    is_inference_mode_enabled as is_inference_mode_enabled, no_grad as no_grad, set_grad_enabled as set_grad_enabled,
)
from .launch.memory import release_memory as release_memory
from .ops.core.guesses import install as _show_guesses
from .ops.core.registry import functions as _functions
from .ops.creation.device import (
    set_default_device as set_default_device,
    channels_last as channels_last, channels_last_3d as channels_last_3d, contiguous_format as contiguous_format,
    device as device, layout as layout, memory_format as memory_format, preserve_format as preserve_format, strided as strided,
)
from .ops.creation.storages import NAMES as _STORAGES
from .ops.random.generator import Generator as Generator, default_generator as default_generator
from .shapes import Size as Size
from .tensor import Tensor as Tensor
from .tensor import above as _above

bool: dtype
bool = _bool  # noqa: A001
half: dtype
float: dtype
double: dtype
half, float, double = float16, float32, float64  # noqa: A001
short: dtype
int: dtype
long: dtype
short, int, long = int16, int32, int64  # noqa: A001
chalf: dtype
cfloat: dtype
cdouble: dtype
chalf, cfloat, cdouble = complex32, complex64, complex128
inf: _builtins.float
nan: _builtins.float
pi: _builtins.float
e: _builtins.float
inf, nan, pi, e = _math.inf, _math.nan, _math.pi, _math.e
newaxis = None

if _typing.TYPE_CHECKING:  # what the table of ops holds
    from .ops.signatures.torch import *  # noqa: F403
else:
    globals().update(_functions("torch"))
globals().update(_TYPES)

# modules come after the ops that they are written with
from . import compiler as compiler, fft as fft, linalg as linalg, special as special
from .compiler import compile as compile  # noqa: A004

if _typing.TYPE_CHECKING:  # what is imported when it is asked for
    from . import (
        distributed as distributed, distributions as distributions, func as func, masked as masked, nn as nn, optim as optim,
        profiler as profiler, serialization as serialization, signal as signal, sparse as sparse, testing as testing, types as types,
        utils as utils, viz as viz,
    )
    from .autograd.batching.vmap import vmap as vmap
    from .autograd.custom_ops import custom_op as custom_op, pointwise as pointwise
    from .codegen.formula.namespace import m as m
    from .compat import fx as fx, precision as _precision, processes as _processes, version as version
    from .compat.as_torch import as_torch as as_torch
    from .compat.names import (
        _C, accelerator as accelerator, backends as backends, cuda as cuda, hub as hub, jit as jit, onnx as onnx,
    )
    from .compat.precision import GradScaler as GradScaler, autocast as autocast, is_autocast_enabled as is_autocast_enabled
    from .compiler.trace.numba_function import numba_callable as numba_callable
    from .compiler.trace.stored import load_graph as load_graph
    from .distributed import futures as futures
    from .ops.creation import storages as _storages
    from .ops.creation.storages import Storage as Storage, TypedStorage as TypedStorage, UntypedStorage as UntypedStorage
    from .serialization import load as load, save as save
    from .sparse import sparse_coo_tensor as sparse_coo_tensor, sparse_csr_tensor as sparse_csr_tensor
    from .viz import memory as memory

    amp, multiprocessing, storage = _precision, _processes, _storages

#: name -> the module that it is found in, "" for a module of that name
_LAZY = {
    "save": "serialization", "load": "serialization", "as_torch": "compat.as_torch",
    **dict.fromkeys(("autocast", "GradScaler", "is_autocast_enabled"), "compat.precision"), "vmap": "func",
    "pointwise": "autograd.custom_ops", "custom_op": "autograd.custom_ops", "m": "codegen.formula.namespace",
    "load_graph": "compiler.trace.stored", **dict.fromkeys(("sparse_coo_tensor", "sparse_csr_tensor"), "sparse"),
    "numba_callable": "compiler.trace.numba_function", "memory": "viz",
    **dict.fromkeys(("TypedStorage", "UntypedStorage", "Storage", *_STORAGES), "ops.creation.storages"),
    **dict.fromkeys(
        ("nn", "optim", "serialization", "utils", "amp", "multiprocessing", "version", "testing", "func", "distributions", "distributed", "profiler", "futures",
         "fx", "masked", "signal", "sparse", "types", "viz", "storage"), "",
    ),
}  # fmt: skip


if _first_finder not in _sys.meta_path:
    _sys.meta_path.insert(0, _first_finder)  # type: ignore[arg-type]
    _sys.meta_path.append(_last_finder)  # type: ignore[arg-type]
    _ask_early()

_sum_of_diagonal = _functions("torch")["trace"]
_sum_of_diagonal.__qualname__ = "Tensor.trace"  # the name is another's here, and `pickle` goes by it


def trace(input: _Any, *examples: _Any, **options: _Any) -> _Any:  # type: ignore[no-redef]
    """Return, of a function, the static graph that one run on ``examples`` gives (see `compiler.trace.graph.trace`); of a matrix Σ of its diagonal."""
    if isinstance(input, Tensor) or not callable(input):
        return _sum_of_diagonal(input, *examples, **options)
    from .compiler.trace.graph import trace as static_graph

    return static_graph(input, *examples, **options)


def _lazily(name: str) -> _Any:
    """Modules that few programs need are imported when they are asked for."""
    place = _LAZY.get(name, "")
    full = f"{__package__}.{name}"
    if name not in _LAZY and _last_finder.find_spec(full) is None and (name.startswith("__") or _first_finder.find_spec(full) is None):
        from .compat.absent import top

        found = globals()[name] = top(name)
        return found
    from .codegen.build.apart import imported

    module = imported(f"{__package__}.{place or name}")
    value = globals()[name] = getattr(module, name) if place else module
    return value


if not _typing.TYPE_CHECKING:  # a checker knows all names, and so finds wrong ones
    __getattr__ = _lazily


def _namespace_of_ops(name: str) -> _Any:
    """``torch.ops.aten`` and namespaces of programs; what is in the package `ops` itself is found before."""
    if name.startswith("__"):
        raise AttributeError(f"module {ops.__name__!r} has no attribute {name!r}")
    from .compat.operators import namespace

    found = ops.__dict__[name] = namespace(name)
    return found


ops.__dict__["__getattr__"] = _namespace_of_ops


def __dir__() -> list[str]:
    """Return the names that there are, those of what is imported when it is asked for among them."""
    from .compat.more import MODULES, TOP

    return sorted({*globals(), *_LAZY, *TOP, *(name for name in MODULES if "." not in name)})


def _reduce_tensor(t: Tensor) -> tuple[_Any, ...]:
    """Return how pickle and copy take a tensor apart; what does so is imported when it is asked for."""
    from .serialization import reduce_tensor

    return reduce_tensor(t)


_above.reduce_tensor = _reduce_tensor
_handlers.install()
_show_guesses()

__version__ = "0.2.0"

_pause.set_aside()
_pause.end()
del _pause
