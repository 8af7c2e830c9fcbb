"""Numbers as PyTorch's compiler sees them: here they are Python's, so no object is an instance of the classes."""

from __future__ import annotations

import math
from typing import Any

from ..ops.core.foreign import asking_first


class SymInt:
    """A class to test against: sizes are ints here."""


class SymFloat:
    """A class to test against: numbers are floats here."""


class SymBool:
    """A class to test against: conditions are bools here."""


def sym_int(a: Any) -> int:
    """Return the number cut to an integer.

    >>> torch.sym_int(2.7)
    2
    """
    return int(a)


@asking_first
def sym_float(a: Any) -> float:
    """Return the number as a float.

    >>> torch.sym_float(2)
    2.0
    """
    return float(a)


@asking_first
def sym_max(a: Any, b: Any) -> Any:
    """Return the greater one, a float if one of them is.

    >>> torch.sym_max(2, 1.5)
    2.0
    """
    return max(a, b) if isinstance(a, float) == isinstance(b, float) else float(max(a, b))


@asking_first
def sym_min(a: Any, b: Any) -> Any:
    """Return the lesser one, a float if one of them is.

    >>> torch.sym_min(2, 3.5)
    2.0
    """
    return min(a, b) if isinstance(a, float) == isinstance(b, float) else float(min(a, b))


@asking_first
def sym_not(a: Any) -> bool:
    """Return the opposite.

    >>> torch.sym_not(1 > 2)
    True
    """
    return not a


@asking_first
def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """Return ``t`` where ``b`` holds, else ``f``.

    >>> torch.sym_ite(1 > 2, 3, 4)
    4
    """
    return t if b else f


@asking_first
def sym_sqrt(a: Any) -> float:
    """Return the square root.

    >>> torch.sym_sqrt(9)
    3.0
    """
    return math.sqrt(a)


@asking_first
def sym_sum(args: Any) -> Any:
    """Return the sum of the numbers.

    >>> torch.sym_sum([1, 2])
    3
    """
    return sum(args)
