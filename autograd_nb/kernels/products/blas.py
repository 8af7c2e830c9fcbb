"""SciPy's BLAS and LAPACK, bound without the rest of `scipy.linalg`, whose import takes longer than NumPy's; and without Numba but for its libraries in C."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any

import scipy

from ...codegen.build.linking import extension

#: where Numba's binding looks for the addresses of functions
_BLAS, _LAPACK = "scipy.linalg.cython_blas", "scipy.linalg.cython_lapack"
_KINDS = b"s", b"d", b"c", b"z"  #: of numbers


@functools.cache
def ready() -> None:
    """Bind BLAS, once, and have it leave threads alone: what calls it is one of several threads itself."""
    bind(_BLAS, _multiply_nothing)
    limit_threads(1)


@functools.cache
def lapack_ready() -> None:
    """Bind LAPACK, once."""
    ready()
    bind(_LAPACK, _factor_ones)


def bind(name: str, look_up: Callable[[], None]) -> None:
    """Have Numba look up functions of its four types, which it remembers, in one of SciPy's extension modules alone.

    The module is then forgotten again, so that an import of `scipy.linalg` finds all as usual. Where SciPy or Numba are made in
    another way, `scipy.linalg` is imported whole.
    """
    if name not in sys.modules and "scipy.linalg" not in sys.modules:
        try:
            sys.modules[name] = _alone(name)
            look_up()
        except Exception:
            sys.modules.pop(name, None)
        else:
            if "scipy.linalg" not in sys.modules:
                del sys.modules[name]
            return
    importlib.import_module(name)


def _alone(name: str) -> Any:
    """Return one of SciPy's modules of functions, imported without the package that it lies in."""
    spec = PathFinder.find_spec(name, [str(Path(scipy.__file__).parent / "linalg")])
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _call(name: str, kind: bytes, *arguments: Any) -> None:
    """Call one of Numba's functions in C: letters, sizes and addresses."""
    kinds = [ctypes.c_char if isinstance(a, bytes) else ctypes.c_ssize_t for a in (kind, *arguments)]
    function = ctypes.PYFUNCTYPE(ctypes.c_int, *kinds)(extension("numba._helperlib").c_helpers[name])
    if function(kind, *arguments):
        raise ImportError(f"no {kind.decode()}: {name}")


def _multiply_nothing() -> None:
    """Multiply matrices without elements, by each of the functions."""
    memory = (ctypes.c_double * 2)()
    at = ctypes.addressof(memory)
    for k in range(len(_KINDS)):
        _call("xxgemm", _KINDS[k], b"N", b"N", 0, 0, 0, at, at, 1, at, 1, at, at, 1)


def _factor_ones() -> None:
    """Compute the factors of matrices of one element, by each of the functions that kernels call."""
    memory = [(ctypes.c_double * 2)() for _ in range(5)]
    a, b, c, d, e = map(ctypes.addressof, memory)
    for k in range(len(_KINDS)):
        kind = _KINDS[k]
        vectors = (b"N", b"N", 1, a, 1, b, c, d, 1, e, 1) if kind in b"sd" else (b"N", b"N", 1, a, 1, b, d, 1, e, 1)
        for name, *arguments in (
            ("xxgetrf", 1, 1, a, 1, b),
            ("xxpotrf", b"L", 1, a, 1),
            ("ez_geqrf", 1, 1, a, 1, b),
            ("ez_xxgqr", 1, 1, 1, a, 1, b),
            ("ez_gesdd", b"N", 1, 1, a, 1, b, d, 1, e, 1),
            ("ez_xxxevd", b"N", b"L", 1, a, 1, b),
            ("ez_rgeev" if kind in b"sd" else "ez_cgeev", *vectors),
        ):
            _one(kind, memory[0])
            _call(name, kind, *arguments)


def _one(kind: bytes, memory: Any) -> None:
    """Write the number 1."""
    single = (ctypes.c_float * 4).from_buffer(memory)
    memory[:] = (0.0, 0.0)
    if kind in b"sc":
        single[0] = 1.0
    else:
        memory[0] = 1.0


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
