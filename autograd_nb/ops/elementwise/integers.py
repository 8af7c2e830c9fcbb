"""Ops on integers and on their bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import dtypes
from ...codegen.formula.namespace import m
from ...codegen.formula.symbols import libm
from ..core.pointwise import pointwise
from ..core.recording import kind_among, scalar_type, store
from ..core.registry import public
from ..core.structured import tensor_argument
from .comparison import logical_not


def _whole(kernel: str, kinds: str = "integers") -> Callable[..., None]:
    """Return the check of an op that takes ``kinds`` of numbers: NotImplementedError for others."""

    def check(avals: Sequence[Any]) -> None:
        kind = kind_among(avals)
        if kind.category > 1 or (kind.category == 0 and "booleans" not in kinds):
            raise NotImplementedError(f"\"{kernel}_cpu\" not implemented for '{scalar_type(kind)}'; it takes {kinds} only")

    return check


def _bits(name: str) -> Any:
    return pointwise(None, None, numbers="either", check=_whole(name, "integers and booleans"), dtypes="integer bool", methods=(f"{name}_",))


@_bits("bitwise_and")
def bitwise_and(a, b):
    """Return the bitwise and of integers and booleans. NotImplementedError for others; bitwise_and([6, 5], [3, 1]) = [2, 1]."""
    return a & b


@_bits("bitwise_or")
def bitwise_or(a, b):
    """Return the bitwise or of integers and booleans. NotImplementedError for others; bitwise_or([6, 5], [3, 1]) = [7, 5]."""
    return a | b


@_bits("bitwise_xor")
def bitwise_xor(a, b):
    """Return the bitwise exclusive or of integers and booleans. NotImplementedError for others; bitwise_xor([6, 5], [3, 1]) = [5, 4]."""
    return a ^ b


@pointwise(None, name="bitwise_not", public=False)
def _bitwise_not(x):
    return ~x


@public()
def bitwise_not(input, *, out=None):
    """Return every bit inverted; ``not`` for booleans. NotImplementedError for floats; bitwise_not([0, 5]) = [-1, -6]."""
    x = tensor_argument(input, "bitwise_not")
    if x.dtype.category > 1:
        raise NotImplementedError(f"~ (operator.invert) is only implemented on integer and Boolean-type tensors, not {x.dtype}")
    y = logical_not(x) if x.dtype is dtypes.bool_ else _bitwise_not(x)
    return y if out is None else store(out, y, "bitwise_not", (), (input,))


@pointwise(None, None, numbers="none", check=_whole("gcd"), dtypes="integer", samples=(1, 20))
def gcd(a, b):
    """Return the greatest common divisor of integers. NotImplementedError for others; gcd([6, 5], [3, 1]) = [3, 1]."""
    return libm("np.gcd", a, b)


@pointwise(None, None, numbers="none", check=_whole("lcm"), dtypes="integer", samples=(1, 20))
def lcm(a, b):
    """Return the least common multiple of integers. NotImplementedError for others; lcm([6, 5], [3, 1]) = [6, 5]."""
    least = libm("np.lcm", a, b)
    return abs(least) if a.dtype in ("int32", "int64") else least  # (after it has wrapped around, which narrower types do last)


_BITS = {"uint8": 8, "int8": 8, "int16": 16, "int32": 32, "int64": 64}


def _shift(name: str, kernel: str) -> Any:
    return pointwise(None, None, numbers="either", check=_whole(kernel), dtypes="integer", samples=(0, 5), methods=(f"{name}_",))


@_shift("bitwise_left_shift", "lshift")
def bitwise_left_shift(a, b):
    """Return a·2ᵇ of integers, 0 where b is not a place of their bits. NotImplementedError for others; bitwise_left_shift([6, 5], [3, 1]) = [48, 10]."""
    n = _BITS[a.dtype]
    return m.where((b < 0) | (b >= n), 0, a << m.where((b < 0) | (b >= n), 0, b))


@_shift("bitwise_right_shift", "rshift")
def bitwise_right_shift(a, b):
    """Return ⌊a/2ᵇ⌋ of integers, the sign where b is no place of theirs. NotImplementedError for others; bitwise_right_shift([6, 5], [3, 1]) = [0, 2]."""
    n = _BITS[a.dtype]
    if a.dtype == "uint8":  # no sign is left where all bits are gone
        return m.where((b < 0) | (b >= n), 0, a >> m.where((b < 0) | (b >= n), 0, b))
    return a >> m.where((b < 0) | (b >= n), n - 1, b)
