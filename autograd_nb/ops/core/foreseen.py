"""What is foreseen of ops: a recorded op's backward pass will be wanted, so a worker may compile its kernels ahead.

A program describes what it has recorded in plain data (layouts, numbers, the op's name), which holds no values of tensors and no
code. A worker (`codegen.build.workers`) makes *hollow* operands of it, whose memory is never touched, and rehearses: it
plans the pass as the program will, while kernels are asked for but not run. What is foreseen wrongly has cost a worker's time.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np

from ...codegen.build import workers
from ...dtypes import BY_NAME, DType, get_default_dtype
from ...shapes import Layout, Size, layout_of
from ...tensor import Tensor, make

SMALL = 4096  #: bytes of an array that is an op's argument; what tensors hold is not sent
_PLAIN = (bool, int, float, complex, str, type(None))
_NUMBERS = {t.__name__: t for t in (bool, int, float, complex)}
_HERE = __name__.partition(".")[0] + "."


class Opaque(Exception):
    """The error about what plain data cannot describe."""


def described(value: Any) -> Any:
    """Return plain data that tell of a value what kernels depend on. `Opaque` where there are none."""
    kind = value.__class__
    if kind in _PLAIN:
        return value
    if isinstance(value, Tensor) and value._layout.__class__ is Layout:  # not one that stands for a batch
        return ("tensor", *_layout(value._layout), bool(value._rg))
    if kind is Layout:
        return ("layout", *_layout(value))
    if kind is tuple or kind is Size:
        return ("tuple", tuple([described(v) for v in value]))
    if kind is list:
        return ("list", tuple([described(v) for v in value]))
    if kind is dict:
        return ("dict", tuple([(described(k), described(v)) for k, v in value.items()]))
    if kind is DType:
        return ("dtype", value.name)
    if kind is type and value.__name__ in _NUMBERS:
        return ("number", value.__name__)
    if kind is np.ndarray and value.nbytes <= SMALL and not value.dtype.hasobject:
        return ("array", value.dtype.str, value.shape, value.tobytes())
    if kind is FunctionType or kind is type:
        home, name = _home(value), value.__qualname__
        if home.startswith(_HERE) and getattr(sys.modules.get(home), name, None) is value:
            return ("object", home, name)
    raise Opaque(kind.__name__)


def _home(function: Any) -> str:
    """Return the module of a function or class; "" where it has none, as text that was executed has none."""
    return function.__module__ if isinstance(function.__module__, str) else ""


def _layout(layout: Layout) -> tuple[Any, ...]:
    return layout.sizes, layout.strides, layout.dtype.name


def rebuilt(value: Any) -> Any:
    """Return what `described` has described, tensors being hollow."""
    if value.__class__ is not tuple:
        return value
    kind, *rest = value
    if kind in ("tensor", "layout"):
        layout = layout_of(rest[0], rest[1], BY_NAME[rest[2]])
        return layout if kind == "layout" else hollow(layout, rest[3])
    if kind in ("tuple", "list"):
        return (tuple if kind == "tuple" else list)([rebuilt(v) for v in rest[0]])
    if kind == "dict":
        return {rebuilt(k): rebuilt(v) for k, v in rest[0]}
    if kind == "array":
        return np.frombuffer(rest[2], rest[0]).reshape(rest[1]).copy()
    if kind == "object":
        if not rest[0].startswith(_HERE):
            raise Opaque(rest[0])
        return getattr(import_module(rest[0]), rest[1])
    return BY_NAME[rest[0]] if kind == "dtype" else _NUMBERS[rest[0]]


def hollow(layout: Layout, requires_grad: bool = False) -> Tensor:
    """Return a tensor whose memory has not been written to, and holds anything."""
    t = make(np.empty(layout.extent, layout.dtype.carrier), layout, [0, 0])
    t._rg = requires_grad
    return t


def note(kind: str, *values: Any) -> None:
    """Tell workers what the program does, where it can be described."""
    if workers.foresees():
        try:
            workers.foresee(kind, get_default_dtype().name, *[described(v) for v in values])
        except Opaque:
            pass


def note_op(kind: str, op: Any, function: Any, *values: Any) -> None:
    """Tell workers that an op of this library, which ``function`` declares, was recorded."""
    if workers.foresees() and _home(function).startswith(_HERE):
        note(kind, _home(function), op.name, op.node.__name__, *values)
