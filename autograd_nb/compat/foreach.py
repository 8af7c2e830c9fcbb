"""The functions of lists, ``torch._foreach_…``: what an op does, for each tensor.

They are one op a tensor; the library's optimizers update all parameters by one launch and need none of them. What PyTorch keeps for a
derivative is whole lists, so that a change of any of their tensors is refused before the backward pass of each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd.function import Function
from ..graph.modes import state
from ..ops.core.history import check_inplace
from ..ops.core.recording import guarded, scalar_type
from ..ops.core.registry import OPS
from ..tensor import Tensor

_OTHER = (("other", "scalar", "scalars"),)
_ORDER = (("ord", 2), ("dtype", None))
#: what the functions take beside the list: each one's names in PyTorch's overloads; a pair with something else is a name and its default
_PARAMETERS: dict[str, tuple[tuple[Any, ...], ...]] = {
    **dict.fromkeys(("add", "sub", "mul", "div", "clamp_min", "clamp_max", "maximum", "minimum"), _OTHER),
    **dict.fromkeys(("addcmul", "addcdiv"), (("tensor1",), ("tensor2",), ("value", "scalars", 1))),
    "lerp": (("tensors1",), ("weight", "weights")), "pow": (("exponent",),), "mm": (("mat2",),), "copy": (("src",), ("non_blocking", False)),
    "norm": _ORDER, "powsum": _ORDER,
}  # fmt: skip
_OPTIONS: dict[str, dict[str, Any]] = {"add": {"alpha": 1}, "sub": {"alpha": 1}, "clone": {"memory_format": None}}
_NAMED = {"maximum": "clamp_min", "minimum": "clamp_max"}
#: what PyTorch keeps of operands, and of results
_OPERANDS = frozenset([
    *("abs", "acos", "asin", "atan", "cos", "cosh", "erf", "erfc", "lgamma", "log", "log10", "log1p", "log2", "norm", "sin", "sinh"),
    *("add", "sub", "mul", "div", "maximum", "minimum", "clamp_min", "clamp_max", "pow", "addcmul", "addcdiv", "lerp", "mm", "powsum"),
])  # fmt: skip
_RESULTS = frozenset(["exp", "expm1", "norm", "reciprocal", "rsqrt", "sigmoid", "sqrt", "tan", "tanh"])


def _of(values: Any, i: int) -> Any:
    return values[i] if isinstance(values, (list, tuple)) else values


def _bound(name: str, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return what is given beside the list, by position, and the options."""
    places, rest, found = _PARAMETERS.get(op, ()), dict(kwargs), list(args)
    if len(args) > len(places):
        raise TypeError(f"{name}() takes {1 + len(places)} positional arguments but {1 + len(args)} were given")
    for place in places[len(args):]:  # fmt: skip
        names = [n for n in place if isinstance(n, str)]
        given = [n for n in names if n in rest]
        if len(given) != 1 and (given or names == list(place)):
            raise TypeError(f"{name}() takes one argument {' or '.join(map(repr, names))}, got {given or 'none'}")
        found.append(rest.pop(given[0]) if given else place[-1])
    options = {n: rest.pop(n, default) for n, default in _OPTIONS.get(op, {}).items()}
    if rest:
        raise TypeError(f"{name}() got an unexpected keyword argument {next(iter(rest))!r}")
    if "alpha" in kwargs and not isinstance(_of(found[0], 0) if found[0] else None, Tensor):
        raise TypeError(f"{name}() takes alpha beside tensors only, not beside numbers")
    return found, options


def _check_list(name: str, tensors: Any) -> None:
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"{name}(): argument 'self' (position 1) must be tuple of Tensors, not {type(tensors).__name__}")
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(t).__name__}")


def _check_operands(count: int, op: str, operands: list[Any]) -> None:
    """Refuse lists of other lengths, and tensors that are no numbers."""
    for values in operands:
        if isinstance(values, Tensor) and values.ndim:
            told = f"{values.ndim} dimensions and {values.numel()} elements"
            raise (RuntimeError if op in ("add", "mul", "div") else TypeError)(f"scalar tensor expected to be 0 dim but it has {told}.")
        if not isinstance(values, (list, tuple)) or len(values) == count:
            continue
        if values and not isinstance(values[0], Tensor):
            raise RuntimeError(f"Tensor list must have same number of elements as scalar list. ({count} tensors, {len(values)} numbers)")
        raise RuntimeError(f"Tensor lists must have the same number of tensors, got {count} and {len(values)}")


def _unpacked(scalars: Any, count: int) -> Any:
    """Return the numbers of the one tensor that `addcmul` and `addcdiv` take for them."""
    if not isinstance(scalars, Tensor):
        return scalars
    if scalars.ndim != 1:
        raise RuntimeError(f"Expected packed scalar Tensor to be of dimension 1. Got {scalars.ndim} instead.")
    if len(scalars) != count:
        raise RuntimeError(f"Expected length of scalars to match input of length {count} but got {len(scalars)} instead.")
    return scalars.tolist()


def _function(name: str) -> Callable[..., Any]:
    op = name.removeprefix("_foreach_")
    inplace = op.endswith("_")
    plain = op.removesuffix("_")

    def foreach(self: Any, *args: Any, **kwargs: Any) -> Any:
        operands, options = _bound(name, plain, args, kwargs)
        if plain == "pow" and not inplace and (isinstance(self, (int, float, complex)) or (isinstance(self, Tensor) and not self.ndim)):  # one base
            _check_list(name, operands[0])
            self = [self.item() if isinstance(self, Tensor) else self] * len(operands[0])
        else:
            _check_list(name, self)
        if plain in ("addcmul", "addcdiv"):
            operands[2] = _unpacked(operands[2], len(self))
        _check_operands(len(self), plain, operands)
        if inplace:  # before anything is changed
            for i, t in enumerate(self):
                check_inplace(t, *[_of(a, i) for a in operands])
        results = [_call(plain, inplace, t, [_of(a, i) for a in operands], options) for i, t in enumerate(self)]
        if inplace:
            return list(results)
        lists = [a for a in (self, *operands) if isinstance(a, (list, tuple))]
        results = _recorded_alike(results, [*operands, *(t for a in lists for t in a)])
        kept = [t for a in lists for t in a] if plain in _OPERANDS else []
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


def _call(op: str, inplace: bool, t: Tensor, args: list[Any], options: dict[str, Any]) -> Any:
    if op in _NAMED and not isinstance(args[0], Tensor):
        op = _NAMED[op]
    if op == "norm":
        return _norm(t, *args)
    if op == "powsum":
        return _power_sum(t, *args)
    if op == "max" and not t.numel():
        raise RuntimeError("_foreach_max cannot compute the maximum of an empty tensor; max over zero elements is undefined.")
    if inplace and op in ("maximum", "minimum"):
        return t.copy_(OPS[op].call(t, *args))
    if op == "pow" and not isinstance(t, Tensor):
        return OPS["pow"].call(t, *args)
    if op in ("addcmul", "addcdiv"):
        options = {"value": args.pop()}
    return getattr(t, op + "_" * inplace)(*args, **options)


def _norm(t: Tensor, order: Any, dtype: Any) -> Tensor:
    if t.dtype.category < 2:
        raise RuntimeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {scalar_type(t.dtype)}")
    return OPS["linalg.vector_norm"].call(t, order, dtype=dtype)


def _power_sum(t: Tensor, order: Any, dtype: Any) -> Tensor:
    if t.dtype.category < 2:
        raise NotImplementedError(f"\"powsum_cpu\" not implemented for '{scalar_type(t.dtype)}'")
    return ((t if dtype is None else t.to(dtype)).abs() ** order).sum()


def __getattr__(name: str) -> Callable[..., Any]:
    """Return the function of lists of this name."""
    if not name.startswith("_foreach_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _function(name)
