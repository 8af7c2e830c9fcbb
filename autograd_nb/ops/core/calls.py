"""The functions that users call for pointwise ops, and the methods that work in place: see `call_path`, which writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import shorten
from ...overriding import whole
from ...tensor import Tensor
from .call_path import inplace_maker, pointwise_maker
from .recording import store

if TYPE_CHECKING:
    from .pointwise import Pointwise


def _named(call: Callable[..., Any], name: str) -> Callable[..., Any]:
    call.__name__ = call.__qualname__ = name
    return call


def unary_call(op: Pointwise) -> Callable[..., Any]:
    """The op of one operand."""
    return _named(pointwise_maker(1)(op, op.plans, _mask(op), lambda input: op.slow((input,)), None), op.name)


def binary_call(op: Pointwise, operator: bool = False, scaled: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """The op of two operands; as an ``operator`` it leaves operands that are not ours to Python; ``scaled`` takes ``alpha``."""

    def first(input: Any, other: Any) -> Any:
        if operator and not acceptable(other):
            return NotImplemented
        only_tensors(op.name, input, other, "second" if operator else op.numbers)
        return op.slow((input, other))

    return _named(pointwise_maker(2)(op, op.plans, _mask(op), first, scaled), op.name)


def _mask(op: Pointwise) -> int:
    """Which operands have a derivative, as bits."""
    return sum(1 << i for i, rule in enumerate(op.rules) if rule is not None)


def only_tensors(name: str, input: Any, other: Any, numbers: str = "none", second: str = "other") -> None:
    """TypeError for a number where PyTorch takes a tensor.

    ``numbers``: which operands may be one: "none", "second", "either" (but one is a tensor) or "both".
    """
    first = isinstance(input, Tensor)
    if numbers == "both" or (first and (numbers != "none" or isinstance(other, Tensor))):
        return
    if not first and numbers == "either" and isinstance(other, Tensor):
        return
    which, value = (second, other) if first else ("input", input)
    raise TypeError(
        f"{name}(): argument '{which}' must be Tensor, not {type(value).__name__} (got {shorten(value)}; use tensor({shorten(value)}))"
    )


def acceptable(other: Any) -> bool:
    """Whether a binary operator takes this operand, or leaves it to the operand's own method."""
    if isinstance(other, (Tensor, int, float, complex)):
        return True
    return hasattr(other, "__array__") and not isinstance(other, np.ndarray)  # NumPy comes back with a tensor made of it


def operator_of(call: Callable[..., Any]) -> Callable[..., Any]:
    """A two-operand op's function as an operator method."""
    method = binary_call(call.op, operator=True)  # type: ignore[attr-defined]
    method.op = call.op  # type: ignore[attr-defined]
    return method


def _counted(op: Pointwise, args: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(args) != len(op.params):
        raise TypeError(f"{op.name}() takes {len(op.params)} arguments ({', '.join(op.params)}) but got {len(args)}")
    return args


def call_of_many(op: Pointwise) -> Callable[..., Any]:
    """The op of three operands or more."""

    def call(*args, out=None):
        t = op.slow(_counted(op, args))
        return t if out is None else store(out, t, op.name)

    return _named(call, op.name)


def inplace_call(op: Pointwise, scaled: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Return the function ``<name>_`` of an op; ``scaled`` says that it takes ``alpha``."""
    n = len(op.params)

    def first(*args: Any) -> Tensor:
        if n == 2 and op.numbers == "none":
            only_tensors(op.name + "_", *args)
        return op.inplace(args)

    call = inplace_maker(n)(op, op.inplace_plans, first, scaled) if n <= 3 else lambda *args: op.inplace(_counted(op, args))
    call.__doc__ = f"In-place version of `{op.name}`."
    return _named(whole(call), op.name + "_")
