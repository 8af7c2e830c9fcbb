"""Ops that users write: `pointwise` from a scalar formula, `custom_op` from a pair of Numba kernels.

They stand as equals of the built-in ones: recorded, differentiated, fused and captured by `compile`.
"""

from __future__ import annotations

import builtins
import inspect
import math
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import dtypes, launch
from ..codegen.build import compilation
from ..codegen.formula.namespace import m
from ..codegen.formula.symbols import INTEGERS
from ..codegen.templates import loops
from ..dtypes import as_dtype
from ..graph.modes import state
from ..graph.nested import users
from ..ops.core.derive import derivative
from ..ops.core.pointwise import pointwise as _declare
from ..ops.core.structured import Structured
from ..ops.creation.cast import dense
from ..ops.creation.ranges import linspace
from ..shapes import layout_of
from ..tensor import Tensor, make
from .gradcheck import gradcheck, gradgradcheck
from .torch_function import INTERCEPTION

_NUMPY_NAMES = {"absolute": "abs", "fabs": "abs", "power": "pow", "arctan": "atan", "arcsin": "asin", "arccos": "acos", "arctan2": "atan2",
                "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh"}  # fmt: skip


class _AsMathematics:
    """Stands for ``math`` or ``numpy`` inside a formula."""

    pi, e, inf, nan, tau = math.pi, math.e, math.inf, math.nan, math.tau

    def __getattr__(self, name: str) -> Any:
        return getattr(m, _NUMPY_NAMES.get(name, name))


def _on_symbols(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a plain Python formula as one over symbols: its ``math`` and ``np`` are ``m``, its ``max`` and ``min`` elementwise."""
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"pointwise(): expected a Python function, got {type(function).__name__}")
    scope = dict(function.__globals__)
    for name, value in function.__globals__.items():
        if value is math or value is np:
            scope[name] = _AsMathematics()
    for name, ours in (("max", m.maximum), ("min", m.minimum)):
        if scope.get(name, getattr(builtins, name)) is getattr(builtins, name):
            scope[name] = ours
    cells = []
    for cell in function.__closure__ or ():
        held = cell.cell_contents
        cells.append(types.CellType(_AsMathematics() if held is math or held is np else held))
    twin = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, tuple(cells))
    twin.__doc__, twin.__module__ = function.__doc__, function.__module__
    return twin


def pointwise(
    function: Callable[..., Any] | None = None, *, derivatives: Sequence[Callable[..., Any] | None] | None = None, check: bool = False
) -> Any:
    """Return an op from the formula of one element: plain branch-free Python over operators, ``math`` (or `autograd_nb.m`), max and min.

    Its kernel is compiled at first use for each dtype and layout; operands broadcast; of integers comes what the formula makes of
    them (with division or ``exp``: the default float). The derivative is found from the formula,
    unless ``derivatives`` gives a formula for each operand: a function whose parameter names say what it needs (``g`` the
    incoming gradient, the operands, ``out``); one without ``g`` is the factor of ``g``.

    Args:
        check: compare first and second derivatives with finite differences now, at a few points in (0.1, 0.9).

    Errors: TypeError for what is not a function. A formula that branches on a value fails at its first call, saying to use
    ``m.where``.

    Example:
        >>> import math
        >>> @torch.pointwise
        ... def gaussian(x, width):
        ...     return math.exp(-(x / width) ** 2)
        >>> x = torch.tensor([0.0, 1.0], requires_grad=True)
        >>> gaussian(x, 1.0).sum().backward()
        >>> x.grad
        tensor([-0.0000, -0.7358])
    """
    if function is None:
        return lambda f: pointwise(f, derivatives=derivatives, check=check)
    formula = _on_symbols(function)
    params = tuple(inspect.signature(formula).parameters)
    if not params:
        raise TypeError(f"pointwise(): {formula.__name__}() takes no operand")
    if derivatives is None:
        rules: list[Callable[..., Any] | None] = [derivative(formula, params, k) for k in range(len(params))]
    else:
        if len(derivatives) != len(params):
            raise TypeError(
                f"pointwise(): {formula.__name__} has {len(params)} operands, and {len(derivatives)} derivatives were given"
            )
        rules = [None if r is None else _on_symbols(r) for r in derivatives]
        for r in rules:
            unknown = set(inspect.signature(r).parameters) - {"g", "out", *params} if r is not None else set()
            if unknown:
                raise TypeError(
                    f"pointwise(): a derivative of {formula.__name__} asks for {sorted(unknown)}; it may ask for g, out, {', '.join(params)}"
                )
    call = _declare(*rules, result=_of_integers(formula, len(params)), public=False)(formula)
    if check:
        _check(call, params)
    INTERCEPTION.add(call)
    return call


def _of_integers(formula: Callable[..., Any], count: int) -> str:
    """Return what a formula makes of integers: "same", "bool", or "float" where it divides them or asks for what they do not have."""
    try:
        body = loops.trace_body(lambda *x: (formula(*x),), [loops.Input("int64")] * count, "int64", [None])
    except Exception:  # said again, and for the dtypes that are given, at the first call
        return "float"
    kind = body.results[0][1]
    return kind if kind == "bool" else "same" if kind in INTEGERS else "float"


def _check(call: Callable[..., Any], params: tuple[str, ...]) -> None:
    points = [
        linspace(0.1137 + 0.0531 * k, 0.8719 - 0.0317 * k, 5, dtype=dtypes.float64).requires_grad_() for k in range(len(params))
    ]
    gradcheck(call, points)
    gradgradcheck(call, points)


class _Kernel(launch.Kernel):
    """A kernel made of a user's function over arrays of any number of dims."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any], outputs: int):
        super().__init__("custom", function.__name__, outputs)
        self.function = function

    def _origin(self, types: tuple[str, ...]) -> tuple[Any, ...]:
        return ()

    def _compile(self, key: Any, args: tuple[Any, ...]) -> Any:
        njit = compilation.numba().njit
        count = len(args) // 2
        inner = self.function if hasattr(self.function, "py_func") else njit(error_model="numpy", nogil=True)(self.function)
        names = [f"a{k}" for k in range(count)]
        shapes = [f"s{k}" for k in range(count)]
        ranks = key[1]
        views = [
            f"{a}[: size({s})].reshape({s})" if r else f"{a}[:1].reshape(())"
            for a, s, r in zip(names, shapes, ranks, strict=True)
        ]
        scope: dict[str, Any] = {"inner": inner}
        exec(
            "def size(shape):\n    n = 1\n    for k in shape:\n        n *= k\n    return n\n"
            f"def kernel({', '.join([*shapes, *names])}):\n    inner({', '.join(views)})\n",
            scope,
        )
        scope["size"] = njit(scope["size"])
        compiled = compilation.build_function(scope["kernel"], tuple(launch.argument_type(a) for a in args))
        self._entries[key] = compiled
        return compiled


def _run(kernel: _Kernel, tensors: Sequence[Tensor]) -> None:
    """Run the kernel on whole tensors; those that it writes are dense."""
    shapes = [tuple(t.shape) or (1,) for t in tensors]
    key = (tuple(t.dtype for t in tensors), tuple(len(t.shape) for t in tensors))
    kernel(key, *shapes, *[dense(t) if k < len(tensors) - kernel.outputs else t._data for k, t in enumerate(tensors)])


def _made(shape: Sequence[int], d: Any) -> Tensor:
    layout = layout_of(tuple(int(n) for n in shape), None, d)
    return make(launch.empty(layout.size, d.carrier), layout, [0, 0])


def custom_op(
    forward: Callable[..., Any] | None = None, *, shape: Callable[..., Any], backward: Callable[..., Any] | None = None,
    backward_ops: Callable[..., Any] | None = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """Return an op from Numba kernels over arrays.

    Args:
        forward: ``forward(a, b, …, out)`` fills ``out``; a plain function, compiled by Numba, or an njit one. The arrays are
            C-contiguous with the tensors' shapes.
        shape: ``shape(a_shape, b_shape, …)`` gives the shape of the result.
        backward: ``backward(g, a, b, …, out, grad_a, grad_b, …)`` fills a gradient for every operand; gives first derivatives.
        backward_ops: ``backward_ops(g, a, b, …, out)`` gives the gradients as tensors, computed with this library's ops: then
            there are derivatives of every order. One of the two at most; with neither the op has no derivative.
        dtype: of the result; that of the first operand if None.

    Errors: TypeError for operands that are not tensors, RuntimeError for a shape that is not a tuple of sizes.

    Example:
        >>> def forward(x, out):
        ...     for i in range(x.shape[0]):
        ...         out[i] = x[i].sum()
        >>> def backward(g, x, out, gx):
        ...     for i in range(x.shape[0]):
        ...         gx[i, :] = g[i]
        >>> row_sums = torch.custom_op(forward, shape=lambda x: x[:1], backward=backward)
        >>> x = torch.ones(2, 3, requires_grad=True)
        >>> row_sums(x).sum().backward()
        >>> x.grad.tolist()
        [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    if forward is None:
        return lambda f: custom_op(f, shape=shape, backward=backward, backward_ops=backward_ops, dtype=dtype)
    if backward is not None and backward_ops is not None:
        raise TypeError("custom_op(): give backward (a kernel) or backward_ops (tensor operations), not both")
    made = _CustomOp(forward, shape, backward, backward_ops, dtype)
    name, params, op = made.name, made.params, made.op()

    def call(*tensors: Any) -> Any:
        if len(tensors) != len(params):
            raise TypeError(f"{name}() takes {len(params)} operands ({', '.join(params)}) but {len(tensors)} were given")
        for p, t in zip(params, tensors, strict=True):
            if not isinstance(t, Tensor):
                raise TypeError(f"{name}(): argument '{p}' must be Tensor, not {type(t).__name__}")
        return op(*tensors)

    call.__name__ = call.__qualname__ = name
    call.__doc__, call.__module__ = made.plain.__doc__, made.plain.__module__
    INTERCEPTION.add(call)
    return call


class _CustomOp:
    """The arguments of `custom_op`, and the functions that it becomes."""

    def __init__(
        self, forward: Callable[..., Any], shape: Callable[..., Any], backward: Callable[..., Any] | None,
        backward_ops: Callable[..., Any] | None, dtype: Any,
    ):  # fmt: skip
        plain = getattr(forward, "py_func", forward)
        params = tuple(inspect.signature(plain).parameters)[:-1]
        name = plain.__name__ if plain.__name__.isidentifier() else "custom"
        if not params:
            raise TypeError(f"custom_op(): {name} takes the operands and then the output, it has {len(params) + 1} parameters")
        if backward is not None:
            wanted, given = 2 + 2 * len(params), len(inspect.signature(getattr(backward, "py_func", backward)).parameters)
            if given != wanted:
                raise TypeError(
                    f"custom_op(): the backward kernel of {name} takes g, {', '.join(params)}, out and a gradient for each operand: "
                    f"{wanted} parameters, it has {given}"
                )
        self.plain, self.params, self.name, self.shape, self.dtype = plain, params, name, shape, dtype
        self.forward, self.backward_ops = _Kernel(forward, 1), backward_ops
        self.backward = None if backward is None else _Kernel(backward, len(params))

    def compute(self, *tensors: Tensor) -> Tensor:
        """Return the forward function of the op."""
        found = self.shape(*[tuple(t.shape) for t in tensors])
        if not isinstance(found, (tuple, list)) or not all(isinstance(n, int) and n >= 0 for n in found):
            raise RuntimeError(f"{self.name}(): shape(…) must give a tuple of sizes, got {found!r}")
        out = _made(found, tensors[0].dtype if self.dtype is None else as_dtype(self.dtype))
        _run(self.forward, [*tensors, out])
        return out

    def differentiate(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the rule of all operands together."""
        tensors = [values[p] for p in self.params]
        if self.backward_ops is not None:
            return self._by_ops(values["g"], tensors, values["out"])
        assert self.backward is not None
        made = [_made(t.shape, t.dtype) for t in tensors]
        _gradients(self.backward, [values["g"], *tensors, values["out"]], made)
        return dict(zip(self.params, made, strict=True))

    def _by_ops(self, g: Tensor, tensors: list[Tensor], out: Tensor) -> dict[str, Any]:
        assert self.backward_ops is not None
        grads = self.backward_ops(g, *tensors, out)
        grads = grads if isinstance(grads, (tuple, list)) else (grads,)
        if len(grads) != len(self.params):
            raise RuntimeError(
                f"{self.name}: backward_ops gave {len(grads)} gradients for {len(self.params)} operands ({', '.join(self.params)})"
            )
        for p, t, grad in zip(self.params, tensors, grads, strict=True):
            if grad is not None and grad.shape != t.shape:
                raise RuntimeError(
                    f"{self.name}: backward_ops gave a gradient of shape {list(grad.shape)} for {p} of shape {list(t.shape)}"
                )
        return dict(zip(self.params, grads, strict=True))

    def op(self) -> Structured:
        """Return the structured op, whose functions have the operands' names."""
        text = ", ".join(self.params)
        scope: dict[str, Any] = {"compute": self.compute, "differentiate": users(self.differentiate)}
        exec(
            f"def {self.name}({text}): return compute({text})\n"
            f"def every(g, {text}, out): return differentiate(dict(g=g, out=out, {', '.join(f'{p}={p}' for p in self.params)}))",
            scope,
        )
        scope[self.name].__module__ = "custom"  # rules of batches and tangents go by module and name: never those of a built-in op
        derivable = self.backward is not None or self.backward_ops is not None
        op = Structured(scope[self.name], {}, scope["every"] if derivable else None, False, "")
        op.ours = self.backward_ops is None
        return op


def _gradients(kernel: _Kernel, given: list[Tensor], made: list[Tensor]) -> None:
    if state.grad and any(t.requires_grad for t in given):
        raise NotImplementedError(
            f"{kernel.name}: the backward pass of this op is a kernel, which cannot be differentiated again; give backward_ops= instead of backward="
        )
    _run(kernel, [*given, *made])
