"""The functions of lists, ``torch._foreach_…``: what an op does, for each tensor.

They are one op a tensor; the library's optimizers update all parameters by one launch and need none of them. What PyTorch keeps for a
derivative is whole lists, so that a change of any of their tensors is refused before the backward pass of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.function import Function
from ..graph.modes import state
from ..ops.core.history import check_inplace
from ..ops.core.recording import guarded
from ..ops.core.registry import OPS
from ..tensor import Tensor

_NUMBERS = {"addcdiv": "value", "addcmul": "value"}
_NAMED = {"maximum": "clamp_min", "minimum": "clamp_max"}
#: what PyTorch keeps of operands, and of results
_OPERANDS = frozenset([
    *("abs", "acos", "asin", "atan", "cos", "cosh", "erf", "erfc", "lgamma", "log", "log10", "log1p", "log2", "norm", "sin", "sinh"),
    *("add", "sub", "mul", "div", "maximum", "minimum", "clamp_min", "clamp_max", "pow", "addcmul", "addcdiv", "lerp", "mm", "powsum"),
])  # fmt: skip
_RESULTS = frozenset(["exp", "expm1", "norm", "reciprocal", "rsqrt", "sigmoid", "sqrt", "tan", "tanh"])


def _of(values: Any, i: int) -> Any:
    return values[i] if isinstance(values, (list, tuple)) else values


def _function(name: str) -> Callable[..., Any]:
    op = name.removeprefix("_foreach_")
    inplace = op.endswith("_")
    plain = op.removesuffix("_")
    number = _NUMBERS.get(plain)

    def foreach(self: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        if not self:
            raise RuntimeError("Tensor list must have at least one tensor.")
        if any(isinstance(a, (list, tuple)) and len(a) != len(self) for a in args):
            lengths = [len(self), *(len(a) for a in args if isinstance(a, (list, tuple)))]
            raise RuntimeError(f"Tensor lists must have the same number of tensors, got {lengths}")
        if number and len(args) > 2:  # PyTorch's take it by position too
            kwargs[number], args = args[2], args[:2]
        per_tensor = {k: v.tolist() if isinstance(v, Tensor) and v.ndim else v for k, v in kwargs.items()}
        if inplace:  # before anything is changed
            for i, t in enumerate(self):
                check_inplace(t, *[_of(a, i) for a in args])
        results = [_call(plain, inplace, t, [_of(a, i) for a in args], {k: _of(v, i) for k, v in per_tensor.items()}) for i, t in enumerate(self)]
        if inplace:
            return list(results)
        results = _recorded_alike(results, [t for a in (self, *args) for t in (a if isinstance(a, (list, tuple)) else (a,))])
        kept = [t for a in (self, *args) if isinstance(a, (list, tuple)) for t in a] if plain in _OPERANDS else []
        if plain in _RESULTS or (plain == "pow" and len(kept) > len(self) and isinstance(kept[-1], Tensor)):
            kept += results
        for y in results:
            guarded(y, *kept)
        return tuple(results)

    foreach.__name__ = foreach.__qualname__ = name
    foreach.__doc__ = f"Return `{plain}` of each tensor of the list." if not inplace else f"Do `{op}` on each tensor of the list."
    return foreach


class _Beside(Function):
    """A result that depends on nothing, beside others that do: PyTorch's node of the list is the node of them all."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, other: Tensor) -> Tensor:
        return y.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[None, None]:
        return None, None


def _recorded_alike(results: list[Tensor], operands: list[Any]) -> list[Tensor]:
    """Return the results of a list, which all require grad if one of the operands does."""
    recorded = [t for t in operands if isinstance(t, Tensor) and t.requires_grad]
    if not recorded or not state.grad:
        return results
    return [y if y.requires_grad or not (y.is_floating_point() or y.is_complex()) else _Beside.apply(y, recorded[0]) for y in results]


def _call(op: str, inplace: bool, t: Tensor, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if op in _NAMED and not isinstance(args[0], Tensor):
        op = _NAMED[op]
    if op == "norm":
        return OPS["linalg.vector_norm"].call(t, *args, **kwargs)
    if op == "powsum":
        return (t.abs() ** args[0]).sum()
    if inplace and op in ("maximum", "minimum"):
        return t.copy_(OPS[op].call(t, *args))
    if op == "pow" and not isinstance(t, Tensor):
        return OPS["pow"].call(t, *args)
    return getattr(t, op + "_" * inplace)(*args, **kwargs)


def __getattr__(name: str) -> Callable[..., Any]:
    """Return the function of lists of this name."""
    if not name.startswith("_foreach_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _function(name)
