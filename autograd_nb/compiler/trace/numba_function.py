"""`numba_callable`: a function and its gradient for the user's own Numba code, with no Python in the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...codegen.build import compilation
from ...ops.creation.data import as_tensor
from ...tensor import Tensor
from ..ir import Step
from ..lower import driver
from ..lower.executable import Executable
from ..lower.memory_plan import ALIGN
from .graph import Graph, GraphError, Value, trace


def numba_callable(function: Callable[..., Any], example: Any) -> Any:
    """Return an njit-callable ``f(x, g)``: the value of ``function`` at the array ``x``, its gradient written into the array ``g``.

    The function takes one floating tensor and returns one number; it is captured once, at the example's shape and dtype.
    The result can be called from Python and from any ``@njit`` function (also from several threads: each call has its own
    memory). ``.address`` is the address of a C function ``double f(T *x, T *g)``.

    Errors: GraphError for a function that does not return one number, or that has steps only Python can run (checks of
    indices, FFTs). The callable raises ValueError for arrays of another size, TypeError for other dtypes and for arrays with gaps.

    Example:
        >>> import numpy as np
        >>> f = torch.numba_callable(lambda x: (x ** 2).sum(), np.zeros(2))
        >>> g = np.empty(2)
        >>> f(np.array([1.0, 2.0]), g), g.tolist()
        (5.0, [2.0, 4.0])
    """
    if not callable(function):
        raise TypeError(f"numba_callable(): expected a function, got {type(function).__name__}")
    x = example if isinstance(example, Tensor) else as_tensor(np.ascontiguousarray(example))
    if not x.dtype.is_floating_point:
        raise GraphError(f"numba_callable(): the example must be floating, it is {x.dtype}")
    graph = trace(function, x.detach(), names=["x"])
    value, gradient = _outputs(graph)
    program, _, _ = graph._program([value.name, gradient.name], {"x": None})
    if any(isinstance(s, Step) for s in program.segments) or program.draws or program._live:
        raise GraphError("numba_callable(): the function has steps that only Python can run (a check of values, an FFT, random numbers)")
    compiled = _compiled(program, graph.values["x"], value, gradient)
    compiled._held = (graph, program)  # what the machine code refers to
    compiled.address, compiled._entry = _entry_point(compiled, graph.values["x"])
    compiled.graph = graph
    return compiled


def _outputs(graph: Graph) -> tuple[Value, Value]:
    """Return the value of a graph of one number and its gradient to x, each in memory of its own from the first byte on."""
    name = graph.outputs[0]
    if len(graph.outputs) != 1 or graph.values[name].layout.size != 1:
        raise GraphError(f"numba_callable(): the function must return one number, it returns {[graph.values[n] for n in graph.outputs]}")
    (gradient,) = graph.grad(name, "x")
    v, g = graph.values[name], graph.values[gradient]
    if v.buffer.kind != "temporary":  # an element of x
        name = graph._copied(name)
    if g.offset or not g.layout.contiguous or g.buffer is v.buffer or g.buffer.kind != "temporary":  # that of a sum: ones
        gradient = graph._copied(gradient)
    return graph.values[name], graph.values[gradient]


def _compiled(program: Executable, x: Value, value: Value, gradient: Value) -> Any:
    """Return the njit function ``f(x, g)`` that runs a program in memory of its own."""
    records, words, template = program._records_at, program.records.size, program.values.copy()
    arena_bytes, arena_cell = int(program.arena_bytes), program._arena_cell
    x_cell, g_cell, v_cell = (program.cells.get(v.buffer.number, -1) for v in (x, gradient, value))
    size, value_size, value_at, value_dtype = x.layout.size, value.buffer.array.size, value.offset, value.buffer.array.dtype
    check_types = _type_check(_element(x))
    drive = driver.driver()

    @compilation.numba().njit(nogil=True)
    def value_and_gradient(x: Any, g: Any) -> float:
        check_types(x, g)
        if x.size != size or g.size != size:
            raise ValueError("numba_callable: x and g must have the size of the example")
        cells = template.copy()
        arena = np.empty(arena_bytes + ALIGN, np.uint8)
        at = arena.ctypes.data
        cells[arena_cell] = at + (-at) % ALIGN
        value = np.empty(value_size, value_dtype)
        if x_cell >= 0:
            cells[x_cell] = x.ctypes.data
        cells[g_cell] = g.ctypes.data
        cells[v_cell] = value.ctypes.data
        if drive(records, words, cells.ctypes.data) != 0:
            raise RuntimeError("numba_callable: a kernel failed")
        return float(value[value_at])

    return value_and_gradient


def _element(value: Value) -> Any:
    """Return Numba's type of a value's elements."""
    return compilation.numba().from_dtype(value.layout.dtype.carrier)


def _type_check(element: Any) -> Callable[[Any, Any], None]:
    """Return an intrinsic that raises TypeError, when the caller is compiled, for other arrays than contiguous ones of these elements."""
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def check_types(typingctx: Any, x: Any, g: Any) -> Any:
        for name, a in (("x", x), ("g", g)):
            if not isinstance(a, types.Array) or a.dtype != element or a.layout != "C":
                raise TypeError(f"numba_callable: {name} must be a C-contiguous array of {element}, it is {a}")
        if not g.mutable:
            raise TypeError("numba_callable: g is read-only, the gradient is written to it")
        return types.void(x, g), lambda context, builder, signature, operands: context.get_dummy_value()

    return check_types  # type: ignore[no-any-return]


def _entry_point(compiled: Any, x: Value) -> tuple[int, Any]:
    """Return (the address of the C function ``double f(T *x, T *g)``, what keeps it alive)."""
    numba = compilation.numba()
    from numba import types

    element, size = _element(x), x.layout.size

    @numba.cfunc(types.float64(types.CPointer(element), types.CPointer(element)))
    def entry(x: Any, g: Any) -> float:
        return compiled(numba.carray(x, (size,)), numba.carray(g, (size,)))

    return entry.address, entry
