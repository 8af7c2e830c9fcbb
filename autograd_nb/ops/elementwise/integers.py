"""Ops on integers and on their bits."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...codegen.formula.namespace import m
from ...codegen.formula.symbols import libm
from ..core.calls import acceptable, only_tensors
from ..core.pointwise import pointwise
from ..core.recording import kind_among, scalar_type, store
from ..core.registry import public, register
from ..core.structured import tensor_argument
from .comparison import logical_not


@pointwise(None, None, name="bitwise_and", public=False)
def _bitwise_and(a, b):
    return a & b


@pointwise(None, None, name="bitwise_or", public=False)
def _bitwise_or(a, b):
    return a | b


@pointwise(None, None, name="bitwise_xor", public=False)
def _bitwise_xor(a, b):
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


@pointwise(None, None, name="gcd", public=False)
def _gcd(a, b):
    return libm("np.gcd", a, b)


@pointwise(None, None, name="lcm", public=False)
def _lcm(a, b):
    least = libm("np.lcm", a, b)
    return abs(least) if a.dtype in ("int32", "int64") else least  # (after it has wrapped around, which narrower types do last)


_BITS = {"uint8": 8, "int8": 8, "int16": 16, "int32": 32, "int64": 64}


@pointwise(None, None, name="bitwise_left_shift", public=False)
def _shift_left(a, b):
    n = _BITS[a.dtype]
    return m.where((b < 0) | (b >= n), 0, a << m.where((b < 0) | (b >= n), 0, b))


@pointwise(None, None, name="bitwise_right_shift", public=False)
def _shift_right(a, b):
    n = _BITS[a.dtype]
    if a.dtype == "uint8":  # no sign is left where all bits are gone
        return m.where((b < 0) | (b >= n), 0, a >> m.where((b < 0) | (b >= n), 0, b))
    return a >> m.where((b < 0) | (b >= n), n - 1, b)


def _integers_only(name: str, op: Any, numbers: str, shown: str, dtypes: str = "integer", **info: Any) -> Any:
    """Return the public op and its in-place form; ``numbers``: see `only_tensors`, ``shown``: the values of 6 with 3 and of 5 with 1."""
    booleans = "bool" in dtypes
    kinds = "integers and booleans" if booleans else "integers"
    kernel = {"bitwise_left_shift": "lshift", "bitwise_right_shift": "rshift"}.get(name, name) + "_cpu"

    def check(*args: Any) -> None:
        kind = kind_among(args)
        wrong = kind.category > 1 or (kind.category == 0 and not booleans)
        if wrong and all(map(acceptable, args)):  # else the op refuses what is no number
            raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_type(kind)}'; it takes {kinds} only")

    def call(input, other, *, out=None):
        only_tensors(name, input, other, numbers)
        check(input, other)
        y = op(input, other)
        return y if out is None else store(out, y, name, (), (input, other))

    def inner(input, other):
        check(input, other)
        return op.inplace(input, other)

    call.__name__, inner.__name__ = name, name + "_"
    call.__doc__ = f"Return the {name.replace('_', ' ')} of {kinds}. RuntimeError for others; {name}([6, 5], [3, 1]) = {shown}."
    inner.__doc__ = f"Compute `{name}` in place and return the tensor."
    register(name, call, "pointwise", differentiable=False, rule=op.op, dtypes=dtypes, **info)
    register(name + "_", inner, "inplace", namespaces=("torch",) if name in ("gcd", "lcm") else ())
    return call


bitwise_and: Any = _integers_only("bitwise_and", _bitwise_and, "either", "[2, 1]", "integer bool")
bitwise_or: Any = _integers_only("bitwise_or", _bitwise_or, "either", "[7, 5]", "integer bool")
bitwise_xor: Any = _integers_only("bitwise_xor", _bitwise_xor, "either", "[5, 4]", "integer bool")
gcd: Any = _integers_only("gcd", _gcd, "none", "[3, 1]", samples=(1, 20))
lcm: Any = _integers_only("lcm", _lcm, "none", "[6, 5]", samples=(1, 20))
bitwise_left_shift: Any = _integers_only("bitwise_left_shift", _shift_left, "either", "[48, 10]", samples=(0, 5))
bitwise_right_shift: Any = _integers_only("bitwise_right_shift", _shift_right, "either", "[0, 2]", samples=(0, 5))
