"""Memory that nobody has written: every byte that NumPy hands out within `filled` is a given one, so that it shows where it is read or kept.

What is asked for as zeros is zeros. Kernels' own arrays are filled too where they run without a compiler (NUMBA_DISABLE_JIT=1), and the big
blocks of `launch.memory`, which are used again, are NumPy's within the context.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import numpy as np

import autograd_nb
from autograd_nb import launch
from autograd_nb.graph import recurring
from autograd_nb.graph.node import Node, Output
from autograd_nb.launch import memory
from autograd_nb.tensor import Tensor

_MALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_GET_HANDLER, _SET_HANDLER = 305, 304  #: the places of PyDataMem_GetHandler and PyDataMem_SetHandler in NumPy's C API
_new_capsule, _pointer_of = ctypes.pythonapi.PyCapsule_New, ctypes.pythonapi.PyCapsule_GetPointer
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_api = ctypes.cast(_pointer_of(np._core.multiarray._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))  # type: ignore[attr-defined]
_get_handler = ctypes.PYFUNCTYPE(ctypes.py_object)(_api[_GET_HANDLER])  # type: ignore[arg-type]
_set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(_api[_SET_HANDLER])  # type: ignore[arg-type]


class _Handler(ctypes.Structure):
    """What NumPy calls for the memory of arrays: its struct PyDataMem_Handler."""

    _fields_ = (
        ("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("context", ctypes.c_void_p),
        ("malloc", _MALLOC), ("calloc", ctypes.c_void_p), ("realloc", ctypes.c_void_p), ("free", ctypes.c_void_p),
    )  # fmt: skip


@cache
def _filling(byte: int) -> Any:
    """Return a handler that fills what NumPy's own gives with ``byte``; it stays for good, as do arrays that give memory back to it."""
    own = _Handler.from_address(_pointer_of(_get_handler(), b"mem_handler"))

    def malloc(context: int, size: int) -> int:
        at = own.malloc(context, size)
        ctypes.memset(at, byte, size)
        return int(at)

    room = ctypes.pythonapi.PyMem_RawMalloc
    room.restype = ctypes.c_void_p
    made = _Handler.from_address(room(ctypes.c_size_t(ctypes.sizeof(_Handler))))
    ctypes.memmove(ctypes.addressof(made), ctypes.addressof(own), ctypes.sizeof(_Handler))
    _kept.append(_MALLOC(malloc))
    made.malloc = _kept[-1]
    return _new_capsule(ctypes.addressof(made), b"mem_handler", None)


_kept: list[Any] = []


@contextmanager
def filled(byte: int) -> Iterator[None]:
    """Fill every byte of new arrays with ``byte`` within the context, on this thread (255: numbers that are nan, and integers of -1)."""
    handler, big, memory.BIG = _filling(byte), memory.BIG, 1 << 62
    launch.forget()  # small tensors that `torch.empty` copies from one that it has made
    recurring.forget()  # `tests.recurring` looks at what is repeated
    before = _set_handler(handler)
    try:
        yield
    finally:
        _set_handler(before)
        launch.forget()
        memory.BIG = big


BYTES = (255, 85)  #: numbers that are nan, and finite ones


def kept(found: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield, with a word of what keeps it, each array that the graph behind these tensors keeps."""
    seen: set[int] = set()
    nodes = [t._edge for t in found]
    while nodes:
        node = nodes.pop()
        node = node.node if node.__class__ is Output else node
        if not isinstance(node, Node) or id(node) in seen:
            continue
        seen.add(id(node))
        nodes += node.edges
        names = {name for cls in type(node).__mro__ for name in cls.__dict__.get("__slots__", ())} - {"__weakref__", "edges", "edge", "hooks"}
        for name in sorted(names):
            for array in arrays(getattr(node, name, None), 6):
                yield f"{node.name()}.{name}", array


def arrays(value: Any, depth: int) -> Iterator[np.ndarray]:
    """Yield the arrays in what a node keeps."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, Tensor):
        yield value._data
    elif depth and isinstance(value, (tuple, list)):
        for v in value:
            yield from arrays(v, depth - 1)
    elif depth and isinstance(value, dict):
        for v in value.values():
            yield from arrays(v, depth - 1)


def bits(what: str, value: Any) -> tuple[Any, ...]:
    if isinstance(value, Tensor):
        shown = value.detach().resolve_conj().resolve_neg()
        elements = np.lib.stride_tricks.as_strided(
            shown._data, shown.shape, [s * shown._data.itemsize for s in shown._layout.strides], writeable=False,
        ) if shown.numel() else np.empty(0)  # fmt: skip
        return what, tuple(value.shape), value.dtype, elements.tobytes()
    return what, value.dtype, value.tobytes()


def outcome(call: Callable, args: Any, kwargs: Any, byte: int) -> list[tuple[Any, ...]]:
    """Return the bits of a call's results, of what is kept for its derivatives, and of these, where new memory is filled with ``byte``."""
    with filled(byte):
        autograd_nb.manual_seed(0)
        made = tensors(call(*args, **kwargs))
        found = [bits("result", t) for t in made]
        inputs = [t for t in tensors((args, kwargs)) if t.requires_grad]
        outs = [t for t in made if t.requires_grad]
        with suppress(NotImplementedError, RuntimeError):  # no derivative there
            for which in ("gradient", "second derivative"):
                if not outs or not inputs:
                    break
                found += [bits(what, array) for what, array in kept(outs)]
                heads = [autograd_nb.ones_like(t) for t in outs]
                plain = autograd_nb.autograd.grad(outs, inputs, heads, retain_graph=True, allow_unused=True)
                found += [bits(which, g) for g in plain if g is not None]
                if which == "gradient":
                    grads = autograd_nb.autograd.grad(outs, inputs, heads, create_graph=True, allow_unused=True)
                    outs = [g for g in grads if g is not None and g.requires_grad]
                    found += [bits("recorded gradient", g) for g in grads if g is not None]
    return found


def tensors(tree: Any) -> list[Tensor]:
    """Return the tensors in a tree of tuples, lists and dicts."""
    if isinstance(tree, (tuple, list, dict)):
        return [t for v in (tree.values() if isinstance(tree, dict) else tree) for t in tensors(v)]
    return [tree] if isinstance(tree, Tensor) else []


def differing(one: list[tuple[Any, ...]], other: list[tuple[Any, ...]]) -> list[str]:
    """Return which parts of two outcomes differ: they read or keep memory that nobody has written."""
    if [part[:-1] for part in one] != [part[:-1] for part in other]:
        return ["a graph of another form"]
    return sorted({" ".join(map(str, a[:-1])) for a, b in zip(one, other, strict=True) if a != b})
