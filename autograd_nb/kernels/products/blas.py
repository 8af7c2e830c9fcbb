"""SciPy's BLAS, bound without the rest of `scipy.linalg`, whose import takes longer than NumPy's; and without Numba but for its libraries in C."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any

import scipy

from ...codegen.build.linking import extension

#: where Numba's binding looks for the addresses of functions
_MODULE = "scipy.linalg.cython_blas"
_GEMM = ctypes.PYFUNCTYPE(
    ctypes.c_int, *[ctypes.c_char] * 3, *[ctypes.c_ssize_t] * 3, *[ctypes.c_void_p] * 2, ctypes.c_ssize_t, ctypes.c_void_p,
    ctypes.c_ssize_t, *[ctypes.c_void_p] * 2, ctypes.c_ssize_t,
)  # fmt: skip


@functools.cache
def ready() -> None:
    """Bind it, once, and have it leave threads alone: what calls it is one of several threads itself."""
    bind()
    limit_threads(1)


def bind() -> None:
    """Have Numba look up the products of its four types, which it remembers, in SciPy's extension module alone.

    The module is then forgotten again, so that an import of `scipy.linalg` finds all as usual. Where SciPy or Numba are made in
    another way, `scipy.linalg` is imported whole.
    """
    if _MODULE not in sys.modules and "scipy.linalg" not in sys.modules:
        try:
            sys.modules[_MODULE] = _alone()
            _look_up()
        except Exception:
            sys.modules.pop(_MODULE, None)
        else:
            if "scipy.linalg" not in sys.modules:
                del sys.modules[_MODULE]
            return
    importlib.import_module(_MODULE)


def _alone() -> Any:
    """Return SciPy's module of BLAS functions, imported without the package that it lies in."""
    spec = PathFinder.find_spec(_MODULE, [str(Path(scipy.__file__).parent / "linalg")])
    if spec is None or spec.loader is None:
        raise ImportError(_MODULE)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _look_up() -> None:
    """Multiply matrices without elements, by each of the functions."""
    gemm = _GEMM(extension("numba._helperlib").c_helpers["xxgemm"])
    memory = (ctypes.c_double * 2)()
    at = ctypes.addressof(memory)
    for kind in (b"s", b"d", b"c", b"z"):
        if gemm(kind, b"N", b"N", 0, 0, 0, at, at, 1, at, 1, at, at, 1):
            raise ImportError(f"no {kind.decode()}gemm")


def limit_threads(count: int) -> bool:
    """Let SciPy's OpenBLAS use ``count`` threads; return False where its library is not found (another BLAS).

    By itself it takes every core for every product: for products of a few thousand elements, of which convolutions make
    thousands, handing work over costs more than doing it, and kernels that share the cores already would be slowed down.
    """
    root = Path(scipy.__file__).parent
    for library in (*root.parent.glob("scipy.libs/*openblas*"), *root.glob(".dylibs/*openblas*")):
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(str(library)).scipy_openblas_set_num_threads(count)
            return True
    return False
