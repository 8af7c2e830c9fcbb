"""The one memo of calls: what a call comes to is worked out for the first of its kind, and found again for all like it.

A call is known by a *key*: the layouts of its operands and its other arguments as they were written. What is kept by it is its
*plan*. The three writers of look-ups are here, and what is made of them is text, as it runs for millions of calls:

- `look_up_lines`: the look-up itself, which all of them share;
- `shortcut`: a function that looks up the plan of a call and runs it, with another for calls whose like was not seen. `call_path.known`
  is this for ops whose arguments are known by name;
- `planned`: a decorator of a function that makes a plan of a key, for what is no call of its own.

All plans are kept by `launch.keep`, so that all of them together have one bound, and those that pass by what an observer of launches
sees by `launch.remember`, which asks whether there is one: that is the only place that does. No family of ops has tables of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ... import launch
from ...dtypes import dtype
from ...graph.node import written
from ...shapes import Layout, Size


def indented(lines: Sequence[str], by: int = 1) -> list[str]:
    """The lines further to the right."""
    return ["    " * by + line for line in lines]


class Memo:
    """The plans of calls like those that were seen, by what such calls are known by.

    - keep(key, plan, weight=1) keeps a plan whose kernels an observer is told of, and returns it; see `launch.keep`;
    - remember(key, plan, weight=1) keeps one that passes by what observers see, unless there is one.
    """

    __slots__ = ("keep", "plans", "remember")

    def __init__(self) -> None:
        self.plans: dict[Any, Any] = launch.plan_table()
        self.keep: Callable[..., Any] = partial(launch.keep, self.plans)
        self.remember: Callable[..., None] = partial(launch.remember, self.plans)


def ordinary(*parts: Any) -> bool:
    """Whether a call with operands of these layouts may take the short way to its plan: not within a transform, nor while somebody
    observes. What is no layout is passed over."""
    for part in parts:
        if part.__class__ is not Layout and isinstance(part, Layout):
            return False
    return not launch._observing


# ------------------------------------------------------------------------------------------- arguments as written

def written_lines(args: str, numbers: bool = False) -> list[str]:
    """``key``: what tells the arguments in the tuple of that name from all others, also from those that are equal to them: 1.0 and True
    are keys of 1 too.

    TypeError where they do not tell by themselves what they ask for: tensors, whose values may change, what must be converted, and
    zeros that have a sign. ``numbers``: floats and bools may be among them.
    """
    equal = [
        "elif kind is float:",
        "    if a.is_integer():",  # no other is equal to an int
        "        if not a:",
        "            raise TypeError",
        "        key += (n, kind)",
        "elif kind is bool:",
        "    key += (n, kind)",
    ]
    return [
        f"key{', n' if numbers else ''} = {args}{', 0' if numbers else ''}",
        f"for a in {args}:",
        *(["    n += 1"] if numbers else []),
        "    kind = a.__class__",
        "    if kind is int or kind is _Size:",
        "        continue",
        "    if kind is tuple:",
        "        if not _are_ints(map(type, a)):",
        "            raise TypeError",
        *(indented(equal) if numbers else []),
        "    elif a is not None and kind is not _dtype:",
        "        raise TypeError",
    ]


_NAMES: dict[str, Any] = {"_Size": Size, "_dtype": dtype, "_are_ints": frozenset((int,)).issuperset}


# ------------------------------------------------------------------------------------------------------ look-ups


def look_up_lines(key: str, before: Sequence[str] = ()) -> list[str]:
    """``plan``: that of calls like this one, or None where none was seen. ``before``: what the key is made by.

    ``key``, if that is made before, is None where a call has none.
    """
    return [
        "try:",
        *indented(before),
        f"    plan = plans[{key}]",
        "except KeyError:",
        "    plan = None",  # what the function raises is not raised in here
        "except (TypeError, ValueError, AttributeError):",
        "    plan = key = None",
    ]


def shortcut(
    parameters: str, key: str, run: Sequence[str], miss: Sequence[str], *, memo: Memo, name: str = "call", first: Sequence[str] = (),
    before: Sequence[str] = (), **space: Any,
) -> Callable[..., Any]:  # fmt: skip
    """A function that runs the plan of calls like those that were seen.

    - key: what a call is known by, as text over the ``parameters`` and what the lines ``before`` set; what they raise means that there
      is none.
    - run: the lines that make the result of ``plan``.
    - miss: what becomes of other calls: lines that return a result, or set a ``plan`` for ``run``. They keep it in ``memo``.
    - first: what is done before all that.
    - space: what the text refers to.
    """
    lines = [*first, *look_up_lines(key, before), "if plan is None:", *indented(miss), *run]
    return written(name, parameters, lines, __file__, plans=memo.plans, **_NAMES, **space)  # type: ignore[no-any-return]


def planned(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: what a function makes of layouts and constants, which is made once. It is called by position."""
    names = ", ".join(inspect.signature(function).parameters)
    memo = Memo()
    lines = ["try:", f"    return _plans[{names},]", "except KeyError:", "    pass", f"return _keep(({names},), _make({names}))"]
    call = written(function.__name__, names, lines, __file__, _plans=memo.plans, _keep=memo.keep, _make=function)
    call.__doc__, call.__wrapped__ = function.__doc__, function
    return call  # type: ignore[no-any-return]
