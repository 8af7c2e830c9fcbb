"""Compile kernels (stub without a disk cache)."""

from __future__ import annotations


def _type(text):
    from numba import types

    if text.endswith("[:]"):
        name = text[:-3]
        return types.Array(types.boolean if name == "bool" else getattr(types, name), 1, "C")
    if text.startswith("("):
        return types.UniTuple(types.int64, int(text.strip("()")))
    return types.boolean if text == "bool" else getattr(types, text)


OPTIONS = dict(error_model="numpy", nogil=True, fastmath={"contract"})


def build(source: str, name: str, argtypes: tuple):
    """Compile ``name`` from ``source`` for the argument types ("float32[:]", "int64", "(2)" a tuple of 2 ints); its entry point."""
    from numba import njit

    space: dict = {}
    exec(compile(source, f"<autograd_nb:{name}>", "exec"), space)
    d = njit(**OPTIONS)(space[name])
    sig = tuple(_type(t) for t in argtypes)
    d.compile(sig)
    return d.overloads[sig].entry_point


def build_function(function, argtypes: tuple):
    """Compile a hand-written kernel of ``autograd_nb.kernels``; its entry point."""
    from numba import njit

    d = njit(**OPTIONS)(function)
    sig = tuple(_type(t) for t in argtypes)
    d.compile(sig)
    return d.overloads[sig].entry_point
