"""One switch for all compiled functions: whether calls are captured, and whether captured ones are replayed."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

#: stance -> whether nothing captured is replayed, and what becomes of a call that would have to be captured
STANCES = {
    "default": (False, ""),
    "eager_then_compile": (False, ""),
    "aot_eager_then_compile": (False, ""),
    "force_eager": (True, "eager"),
    "eager_on_recompile": (False, "eager"),
    "fail_on_recompile": (False, "fail"),
}


class Current:
    """The stance: whether all calls are ``eager``, and whether ``new`` ones are captured (""), run as they are ("eager") or refused ("fail")."""

    name = "default"
    eager = False
    new = ""


current = Current()


def _take(name: str) -> None:
    current.name = name
    current.eager, current.new = STANCES[name]
    dispatch = sys.modules.get(f"{__package__}.dispatch")
    for compiled in list(dispatch._all) if dispatch is not None else ():
        compiled.look_again()


def captures(name: str, reason: str) -> bool:
    """Return whether a new call is captured. RuntimeError where the stance refuses it."""
    if current.new == "fail":
        raise RuntimeError(
            f"Detected recompile when torch.compile stance is 'fail_on_recompile': a call of {name}() would be captured ({reason}). Make such a "
            "call before, or choose the stance 'eager_on_recompile'"
        )
    return not current.new


class set_stance:
    """Say for all compiled functions what their calls do, from now on, within a ``with`` block, or in each call of a decorated function.

    "default" captures and replays, "force_eager" runs every function as it is, "eager_on_recompile" does so where a call would have to be
    captured, "fail_on_recompile" refuses such a call. ("eager_then_compile" and "aot_eager_then_compile" are as "default".)

    Errors: RuntimeError for another stance, and where "fail_on_recompile" refuses a call.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.compiler.set_stance.html

    >>> double = torch.compile(lambda x: x * 2)
    >>> with torch.compiler.set_stance("force_eager"):
    ...     double(torch.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None):
        if stance not in STANCES:
            raise RuntimeError(f"invalid torch.compile stance {stance!r}: it is one of {', '.join(STANCES)}")
        self.stance, self._before = stance, current.name
        _take(stance)

    def __enter__(self) -> None:
        _take(self.stance)

    def __exit__(self, *error: object) -> None:
        _take(self._before)

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, in each call of which the stance holds; it no longer holds outside."""
        _take(self._before)

        @functools.wraps(fn)
        def within(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self.stance):
                return fn(*args, **kwargs)

        return within
