"""`numba_callable`: a function and its gradient for the user's own Numba code, with no Python in the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...codegen.build import compilation
from ...ops.creation.create import as_tensor
from ...tensor import Tensor
from ..ir import Step
from ..lower import driver
from .graph import GraphError, trace


def numba_callable(function: Callable, example: Any) -> Any:
    """An njit-callable ``f(x, g)``: the value of ``function`` at the array ``x``, its gradient written into the array ``g``.

    The function takes one floating tensor and returns one number; it is captured once, at the example's shape and dtype.
    The result can be called from Python and from any ``@njit`` function (also from several threads: each call has its own
    memory). ``.address`` is the address of a C function ``double f(T *x, T *g)``.

    Errors: GraphError for a function that does not return one number, or that has steps only Python can run (checks of
    indices, FFTs). The callable raises ValueError for arrays of another size, TypeError for other dtypes and for arrays with gaps.

    Example:
        >>> import numpy as np
        >>> import autograd_nb as torch
        >>> f = torch.numba_callable(lambda x: (x ** 2).sum(), np.zeros(2))
        >>> g = np.empty(2)
        >>> f(np.array([1.0, 2.0]), g), g.tolist()
        (5.0, [2.0, 4.0])
    """
    numba = compilation.numba()
    from numba import types
    from numba.extending import intrinsic

    if not callable(function):
        raise TypeError(f"numba_callable(): expected a function, got {type(function).__name__}")
    x = example if isinstance(example, Tensor) else as_tensor(np.ascontiguousarray(example))
    if not x.dtype.is_floating_point:
        raise GraphError(f"numba_callable(): the example must be floating, it is {x.dtype}")
    graph = trace(function, x.detach(), names=["x"])
    value = graph.outputs[0]
    lay = graph.values[value].layout
    if len(graph.outputs) != 1 or lay.size != 1:
        raise GraphError(f"numba_callable(): the function must return one number, it returns {[graph.values[n] for n in graph.outputs]}")
    (gradient,) = graph.grad(value, "x")
    v, g = graph.values[value], graph.values[gradient]
    if v.buffer.kind != "temporary":  # an element of x
        value = graph._copied(value)
    if g.offset or not g.layout.contiguous or g.buffer is v.buffer or g.buffer.kind != "temporary":  # that of a sum: ones
        gradient = graph._copied(gradient)
    wanted = [value, gradient]
    v, g = graph.values[value], graph.values[gradient]
    program, _, _ = graph._program(wanted, {"x": None})
    if any(isinstance(s, Step) for s in program.segments) or program.draws or program._live:
        raise GraphError("numba_callable(): the function has steps that only Python can run (a check of values, an FFT, random numbers)")
    records, words, template = program._records_at, program.records.size, program.values.copy()
    bytes_ = int(program.arena_bytes)
    arena_cell = program._arena_cell
    x_cell, g_cell, v_cell = (program.cells.get(b.number, -1) for b in (graph.values["x"].buffer, g.buffer, v.buffer))
    size, value_size, value_at = x.numel(), v.buffer.array.size, v.offset
    value_dtype = v.buffer.array.dtype
    element = numba.from_dtype(x._data.dtype)
    drive = driver.driver()

    @intrinsic
    def check_types(typingctx: Any, x: Any, g: Any) -> Any:
        for name, a in (("x", x), ("g", g)):
            if not isinstance(a, types.Array) or a.dtype != element or a.layout != "C":
                raise TypeError(f"numba_callable: {name} must be a C-contiguous array of {element}, it is {a}")
        if not g.mutable:
            raise TypeError("numba_callable: g is read-only, the gradient is written to it")
        return types.void(x, g), lambda context, builder, signature, operands: context.get_dummy_value()

    @numba.njit(nogil=True)
    def value_and_gradient(x: Any, g: Any) -> float:
        check_types(x, g)
        if x.size != size or g.size != size:
            raise ValueError("numba_callable: x and g must have the size of the example")
        cells = template.copy()
        arena = np.empty(bytes_ + 64, np.uint8)
        at = arena.ctypes.data
        cells[arena_cell] = at + (-at) % 64
        value = np.empty(value_size, value_dtype)
        if x_cell >= 0:
            cells[x_cell] = x.ctypes.data
        cells[g_cell] = g.ctypes.data
        cells[v_cell] = value.ctypes.data
        if drive(records, words, cells.ctypes.data) != 0:
            raise RuntimeError("numba_callable: a kernel failed")
        return float(value[value_at])

    signature = types.float64(types.CPointer(element), types.CPointer(element))

    @numba.cfunc(signature)
    def address(x: Any, g: Any) -> float:
        return value_and_gradient(numba.carray(x, (size,)), numba.carray(g, (size,)))

    value_and_gradient._held = (graph, program, address)  # what the machine code refers to
    value_and_gradient.address = address.address
    value_and_gradient.graph = graph
    return value_and_gradient
