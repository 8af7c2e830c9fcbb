"""Numbers that are read anew at each run of a program: learning rates, random streams.

While a function is captured, such a number is a float (or int) that remembers where it came from; arithmetic with it gives
another such number. Whatever turns one into a plain number (a comparison, ``int()``) makes its value a condition of the program.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any


class _Slot:
    """A slot is what float and int share here: ``read()`` gives the number's present value."""

    read: Callable[[], Any]
    decided: list[_Slot]  # slots whose value a program has come to depend on

    @classmethod
    def make(cls, value: float, read: Callable[[], Any], decided: list[Any]) -> Any:
        """Return a slot that is ``value`` now and ``read()`` at each run."""
        slot = cls.__new__(cls, value)  # type: ignore[call-arg]
        slot.read, slot.decided = read, decided
        return slot

    def _derived(self, operation: Callable[..., Any], *operands: Any) -> Any:
        plain = operation(*(plain_number(o) for o in operands))
        if not isinstance(plain, (int, float)) or isinstance(plain, bool):
            return plain

        def read() -> Any:
            return operation(*(o.read() if isinstance(o, _Slot) else o for o in operands))

        kind: Any = FloatSlot if isinstance(plain, float) else IntSlot
        return kind.make(plain, read, self.decided)

    def _decide(self) -> Any:
        self.decided.append(self)
        return plain_number(self)


class FloatSlot(_Slot, float):
    """A float that is read anew."""


class IntSlot(_Slot, int):
    """An int that is read anew."""


def plain_number(value: Any) -> Any:
    """Return the number without its memory."""
    if isinstance(value, FloatSlot):
        return float.__float__(value)
    return int.__int__(value) if isinstance(value, IntSlot) else value


def _forward(name: str) -> Callable[..., Any]:
    function = getattr(operator, name)
    return lambda self, other: self._derived(function, self, other)


def _backward(name: str) -> Callable[..., Any]:
    function = getattr(operator, name)
    return lambda self, other: self._derived(function, other, self)


def _compare(name: str) -> Callable[..., Any]:
    function = getattr(operator, name)
    return lambda self, other: function(self._decide(), plain_number(other))


def _plainly(name: str) -> Callable[..., Any]:
    """Return a method that does what the number itself does: the program depends on its value."""
    return lambda self, *args: getattr(self._decide(), name)(*args)


for _kind in (FloatSlot, IntSlot):
    for _name in ("add", "sub", "mul", "truediv", "pow", "floordiv", "mod"):
        setattr(_kind, f"__{_name}__", _forward(_name))
        setattr(_kind, f"__r{_name}__", _backward(_name))
    for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(_kind, f"__{_name}__", _compare(_name))
    _kind.__neg__ = lambda self: self._derived(operator.neg, self)  # type: ignore[method-assign]
    _kind.__abs__ = lambda self: self._derived(operator.abs, self)  # type: ignore[method-assign]
    _kind.__bool__ = lambda self: bool(self._decide())  # type: ignore[method-assign]
    _kind.__float__ = lambda self: float(self._decide())  # type: ignore[method-assign]
    _kind.__int__ = lambda self: int(self._decide())  # type: ignore[method-assign]
    _kind.__pos__ = lambda self: self._derived(operator.pos, self)  # type: ignore[method-assign]
    for _name in ("round", "format", "trunc", "floor", "ceil", "divmod", "rdivmod", "index", "str", "reduce_ex"):
        if hasattr(_kind.__mro__[2], f"__{_name}__"):
            setattr(_kind, f"__{_name}__", _plainly(f"__{_name}__"))
    _kind.__hash__ = lambda self: hash(self._decide())  # type: ignore[method-assign]
    _kind.__repr__ = lambda self: repr(self._decide())  # type: ignore[method-assign]
