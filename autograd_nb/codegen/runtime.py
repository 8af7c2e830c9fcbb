"""Helpers that generated kernels call: additions and products that LLVM may reassociate, and so vectorise."""

from numba import njit

_FREE = {"reassoc", "nsz", "contract"}


@njit(fastmath=_FREE, error_model="numpy", no_cpython_wrapper=True)
def radd(a, b):
    return a + b


@njit(fastmath=_FREE, error_model="numpy", no_cpython_wrapper=True)
def rmul(a, b):
    return a * b
