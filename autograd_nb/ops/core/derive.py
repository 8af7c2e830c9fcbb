"""The derivative of a formula, from the formula itself.

A formula is run on pairs (value, tangent): a sum's tangent is the sum of tangents, a product's follows the product rule, and
``m.f`` takes f's own rule from the table of ops. Run on symbols this writes the derivative into a kernel (common parts are
shared); run on tensors it is recorded, so that derivatives of any order follow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...codegen.formula.namespace import m
from .registry import OPS

#: functions that are flat almost everywhere
_FLAT = {"floor", "ceil", "trunc", "round", "sign", "isnan", "isinf", "isfinite", "zero_like"}


class Pair:
    """A value and how fast it changes; ``tangent`` None is 0."""

    __slots__ = ("tangent", "value")
    __array_ufunc__ = None
    value: Any
    tangent: Any

    pointwise_rank = 1  # a function of a pair and of plain values is a pair

    def __init__(self, value: Any, tangent: Any = None):
        self.value, self.tangent = value, tangent

    def __pointwise__(self, name: str, args: tuple[Any, ...], options: dict[Any, Any]) -> Any:
        values = [value_of(a) for a in args]
        if name == "where":
            return _chosen(values[0], args[1], args[2])
        out = getattr(m, name)(*values, **options)
        if name in _FLAT or not any(isinstance(a, Pair) and a.tangent is not None for a in args):
            return Pair(out)
        rule = getattr(OPS.get(name), "rule", None)
        tangent = None
        for k, a in enumerate(args):
            if isinstance(a, Pair) and a.tangent is not None:
                r = rule.rules[k] if rule is not None and k < len(rule.rules) else None
                if r is None:
                    raise NotImplementedError(f"the derivative of m.{name} is not known; give the formula's derivative yourself (derivatives=…)")
                known: dict[Any, Any] = {"out": out}
                known.update(enumerate(values))
                part = r.whole(a.tangent, known, rule.params)
                tangent = part if tangent is None else tangent + part
        return Pair(out, tangent)

    def _with(self, other: Any, value: Callable[..., Any], mine: Callable[..., Any], theirs: Callable[..., Any]) -> Pair:
        """Return the pair whose tangent is the operands' tangents, scaled by ``mine`` and ``theirs``."""
        b = other if isinstance(other, Pair) else Pair(other)
        tangent = None
        if self.tangent is not None:
            tangent = mine(self.tangent, self.value, b.value)
        if b.tangent is not None:
            part = theirs(b.tangent, self.value, b.value)
            tangent = part if tangent is None else tangent + part
        return Pair(value(self.value, b.value), tangent)

    def __add__(self, o: Any) -> Pair: return self._with(o, lambda a, b: a + b, lambda t, a, b: t, lambda t, a, b: t)
    def __sub__(self, o: Any) -> Pair: return self._with(o, lambda a, b: a - b, lambda t, a, b: t, lambda t, a, b: -t)
    def __mul__(self, o: Any) -> Pair: return self._with(o, lambda a, b: a * b, lambda t, a, b: t * b, lambda t, a, b: a * t)
    def __truediv__(self, o: Any) -> Pair: return self._with(o, lambda a, b: a / b, lambda t, a, b: t / b, lambda t, a, b: -t * (a / b) / b)
    def __radd__(self, o: Any) -> Pair: return Pair(o) + self
    def __rsub__(self, o: Any) -> Pair: return Pair(o) - self
    def __rmul__(self, o: Any) -> Pair: return Pair(o) * self
    def __rtruediv__(self, o: Any) -> Pair: return Pair(o) / self
    def __neg__(self) -> Pair: return Pair(-self.value, None if self.tangent is None else -self.tangent)
    def __abs__(self) -> Any: return m.abs(self)

    def __pow__(self, o: Any) -> Any:
        if isinstance(o, int) and not isinstance(o, bool) and 0 <= o <= 64:  # repeated squaring, as exact as products are
            result, base = None, self
            while o:
                if o & 1:
                    result = base if result is None else result * base
                o >>= 1
                if o:
                    base = base * base
            return Pair(self.value * 0 + 1) if result is None else result
        return m.pow(self, o)

    def __rpow__(self, o: Any) -> Any: return m.pow(o, self)
    def __lt__(self, o: Any) -> Any: return self.value < value_of(o)
    def __le__(self, o: Any) -> Any: return self.value <= value_of(o)
    def __gt__(self, o: Any) -> Any: return self.value > value_of(o)
    def __ge__(self, o: Any) -> Any: return self.value >= value_of(o)
    def __eq__(self, o: Any) -> Any: return self.value == value_of(o)  # type: ignore[override]
    def __ne__(self, o: Any) -> Any: return self.value != value_of(o)  # type: ignore[override]
    def __mod__(self, o: Any) -> Pair: return Pair(self.value % value_of(o), self.tangent)
    def __floordiv__(self, o: Any) -> Pair: return Pair(self.value // value_of(o))
    if TYPE_CHECKING:

        def __hash__(self) -> int: ...

    else:
        __hash__ = object.__hash__

    def __bool__(self) -> bool:
        return bool(self.value)  # a symbol or tensor says what to do instead


def value_of(x: Any) -> Any:
    """Return the value of a pair; anything else as it is."""
    return x.value if isinstance(x, Pair) else x


def _chosen(condition: Any, a: Any, b: Any) -> Pair:
    ta, tb = (x.tangent if isinstance(x, Pair) else None for x in (a, b))
    value = m.where(condition, value_of(a), value_of(b))
    if ta is None and tb is None:
        return Pair(value)
    zero = m.zero_like(ta if ta is not None else tb)
    return Pair(value, m.where(condition, zero if ta is None else ta, zero if tb is None else tb))


def derivative(formula: Callable[..., Any], params: tuple[str, ...], index: int) -> Callable[..., Any]:
    """Return the rule of operand ``index``: a function of ``g`` and the operands by name, giving g · ∂formula/∂operand."""

    def rule(g: Any, *operands: Any) -> Any:
        pairs = [Pair(x, g if k == index else None) for k, x in enumerate(operands)]
        out = formula(*pairs)
        if not isinstance(out, Pair) or out.tangent is None:
            return m.zero_like(g)
        return out.tangent

    names = ("g", *params)
    namespace: dict[str, Any] = {"rule": rule}
    text = ", ".join(names)
    exec(f"def named({text}): return rule({text})", namespace)
    return namespace["named"]  # type: ignore[no-any-return]
