"""Calls as PyTorch's programs wrote them until 1.4, factors in front of what they multiply: `add(a, 2, b)`, `addmm(0.5, m, 2, a, b)`.

PyTorch still takes them and warns of the first. Here the functions see that they were given more operands than they have, and hand
all of them to `scalars_first`; calls of today's form pay one test for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...config import settings
from ...errors import warn_user
from ...tensor import Tensor
from .foreign import foreign_among
from .registry import OPS

#: function -> (the names that its factors have today in the order of old calls, how many operands follow them)
_FORMS: dict[str, tuple[tuple[str, ...], int]] = {
    **dict.fromkeys(("add", "sub"), (("alpha",), 1)),
    **dict.fromkeys(("addcmul", "addcdiv"), (("value",), 2)),
    **dict.fromkeys(("addmm", "addmv", "addr", "addbmm", "baddbmm"), (("beta", "alpha"), 2)),
}
_told = False


def scalars_first(name: str, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """Return the result of ``name(*args)`` with more operands than the function has: factors stand in front of what they multiply.

    - args: all operands that were given by position, the tensor itself first (of products' functions: second, after ``beta``).
    - options: what was given by name besides. TypeError where a factor is among them, or where there is no such form.
    """
    names, operands = _FORMS.get(name.removesuffix("_"), ((), len(args) - 2))
    given = list(args)
    if len(names) == 2 and not name.endswith("_") and not _is_tensor(given[0]):  # beta · the tensor
        given[:2] = given[1::-1]
    factors = given[1 : len(given) - operands]
    if not 0 < len(factors) <= len(names) or any(n in options for n in names) or not all(map(_is_factor, factors)):
        raise TypeError(f"{name}() takes {operands + 1} positional arguments but {len(args)} were given")
    _tell(name, names[: len(factors)])
    return OPS[name].call(given[0], *given[len(given) - operands :], **dict(zip(names, factors, strict=False)), **options)


def legacy_options(**options: Any) -> dict[str, Any]:
    """Return the options that are not what they are where nothing is said: 1, or None."""
    return {name: value for name, value in options.items() if value is not None and not (value.__class__ is int and value == 1)}


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) or hasattr(value, "_decide") or bool(foreign_among((value,)))


def _is_factor(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex)) or getattr(value, "ndim", None) == 0


def _tell(name: str, factors: Sequence[str]) -> None:
    """Warn once of the old form, as PyTorch does."""
    global _told
    if _told and not settings.warn_always:
        return
    _told = True
    now = ", ".join(f"{factor}=…" for factor in factors)
    warn_user(f"This overload of {name} is deprecated: {name}() with factors in front. Give them by name: {name}(…, {now}).")
