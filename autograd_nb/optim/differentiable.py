"""Steps that are recorded (``differentiable=True``): the formulas of the kernels run on tensors, so that gradients go through the update.

A kernel's two functions (see `kernels.updates`) are read anew with tensors in the place of numbers: what chooses between two numbers of one
element becomes `where`, and NumPy's functions become ops. So there is no second text of any update.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from .. import dtypes
from ..dtypes import dtype
from ..graph.modes import enable_grad
from ..ops.core.numbers import scalar_tensor
from ..ops.core.registry import OPS
from ..tensor import Tensor
from .optimizer import number

__all__ = ["update"]

Columns = Sequence[Sequence[Tensor]]


# ------------------------------------------------------------------------------------------- formulas, on tensors


class _OnTensors(ast.NodeTransformer):
    """Calls in the place of what Python does with one number only: ``a if c else b``, ``or``, ``and``."""

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        return _call("_chosen", [node.test, ast.Lambda(nothing, node.body), ast.Lambda(nothing, node.orelse)])

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        return _call("_either" if isinstance(node.op, ast.Or) else "_both", node.values)


def _call(name: str, args: list[ast.expr]) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), args, [])


def _either(*conditions: Any) -> Any:
    found = conditions[0]
    for c in conditions[1:]:
        found = found | c
    return found


def _both(*conditions: Any) -> Any:
    found = conditions[0]
    for c in conditions[1:]:
        found = found & c
    return found


class _First:
    """True, of the first average of gradients, which has no history, as in PyTorch."""


def _chosen(d: dtype, condition: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """Return one of two numbers, or of tensors each element of the one or the other; numbers among tensors have the dtype ``d``."""
    if condition.__class__ is _First:
        return yes().detach()
    if not isinstance(condition, Tensor):
        return yes() if condition else no()
    a, b = (v if isinstance(v, Tensor) else scalar_tensor(float(v), d) for v in (yes(), no()))
    return OPS["where"].call(condition, a, b)


def _root(x: Any) -> Any:
    return x.sqrt() if isinstance(x, Tensor) else float(x) ** 0.5


def _as_it_is(x: Any) -> Any:
    return x


_NUMPY = SimpleNamespace(sqrt=_root, float64=_as_it_is, float32=_as_it_is)


@cache
def _formulas(name: str, d: dtype) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return what all elements share, and the formula of an element, of a kernel for parameters of a dtype, on tensors."""
    kernel = getattr(import_module(f"{__package__.rpartition('.')[0]}.kernels.optim"), name)  # (a kernel that was stored has no Python)
    found = []
    for function in (kernel.shared, kernel.element):
        tree = ast.fix_missing_locations(_OnTensors().visit(ast.parse(textwrap.dedent(inspect.getsource(function)))))
        space: dict[str, Any] = {"np": _NUMPY, "math": _NUMPY, "_chosen": partial(_chosen, d), "_either": _either, "_both": _both}
        exec(compile(tree, inspect.getfile(function), "exec"), space)
        found.append(space[function.__name__])
    return found[0], found[1]


# ------------------------------------------------------------------------------------------------------- numbers


def _number(value: Any) -> Any:
    """Return an option, as a tensor without dims where gradients go to it."""
    return value.reshape(()) if isinstance(value, Tensor) and value.requires_grad else number(value)


class _Counter:
    """A counter as a kernel sees it: an array of one element, whose dtype makes numbers."""

    dtype: SimpleNamespace = SimpleNamespace(type=_as_it_is)

    def __init__(self, t: Tensor):
        self.value = _number(t)

    def __getitem__(self, i: int) -> Any:
        return self.value


# --------------------------------------------------------------------------------------------------------- steps


def update(kernel: Any, options: Mapping[str, Any], group: dict[str, Any], given: dict[str, Any], columns: Columns) -> None:
    """Do what `fused.update` does, recorded: parameters, states and counters get a history. ``given``: numbers that are known in the step only.

    Errors: AssertionError with ``foreach=True``; RuntimeError for a leaf that requires grad, which nothing may change in place.
    """
    if group.get("foreach"):
        raise AssertionError("_foreach ops don't support autograd (differentiable=True): leave foreach out")
    with enable_grad():
        values = kernel.reader(options, _number)(group, **{name: _First() if value is True else value for name, value in given.items()})
        numbers = dict(zip(kernel.numbers, values, strict=True))
        for row in zip(*columns, strict=True):
            _step(kernel, numbers, list(row))


def _step(kernel: Any, numbers: dict[str, Any], row: list[Tensor]) -> None:
    """Update one parameter; ``row``: its gradient, itself, its states, and its counters."""
    split = len(row) - len(kernel.counters)
    tensors, counters = row[:split], row[split:]
    g, x, *states = [_real(t.clone()) for t in tensors]  # what is saved of them is not changed by the step
    shared, element = _formulas(kernel.name, dtypes.float32 if x.dtype.is_half else x.dtype)
    asked = [n for n in inspect.signature(shared).parameters if n != "T" and n not in kernel.counters]
    common, now = shared(_as_it_is, *[numbers[n] for n in asked], *map(_Counter, counters))
    d = -g if numbers["maximize"] else g
    decay = numbers["weight_decay"]
    if number(decay) != 0.0:
        if numbers.get("decoupled_weight_decay"):
            x = x * (1.0 - numbers["lr"] * decay)
        else:
            d = d + decay * x
    made = element(common, d, x, *states)
    for target, value in zip(tensors[1:], made if isinstance(made, tuple) else (made,), strict=True):
        target.copy_(OPS["view_as_complex"].call(value.contiguous()) if target.dtype.is_complex else value)
    for target, value in zip(counters, now, strict=True):
        target.copy_(value if isinstance(value, Tensor) else scalar_tensor(float(value), target.dtype))


def _real(t: Tensor) -> Tensor:
    """Return both parts of complex numbers, which are parameters of their own."""
    return OPS["view_as_real"].call(t) if t.dtype.is_complex else t  # type: ignore[no-any-return]
