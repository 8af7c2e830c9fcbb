"""The one memo of calls: what a call comes to is worked out for the first of its kind, and found again for all like it.

A call is known by a *key*: the layouts of its operands and its other arguments as they were written. What is kept by it is its
*plan*. `call_path` writes the text of the look-ups, as they run for millions of calls.

All plans are kept by `launch.keep`, so that all of them together have one bound, and those that pass by what an observer of launches
sees by `launch.remember`, which asks whether there is one: that is the only place that does. Nothing else has tables of plans.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ... import launch
from ...shapes import Layout


class Memo:
    """The plans of calls like those that were seen, by what such calls are known by.

    keep(key, plan, weight=1) keeps a plan whose kernels an observer is told of, and returns it; see `launch.keep`.
    """

    __slots__ = ("keep", "plans")

    def __init__(self) -> None:
        self.plans: dict[Any, Any] = {}
        self.keep: Callable[..., Any] = partial(launch.keep, self.plans)

    def remember(self, key: Any, plan: Any, weight: int = 1) -> None:
        """Keep one that passes by what observers see, unless there is one; see `launch.remember`."""
        launch.remember(self.plans, key, plan, weight)


#: the plan of calls that are known to have none
NO_PLAN: tuple[()] = ()


def sought(memo: Memo, key: Any, plan: Any) -> Any:
    """Return what was found to be the plan of such calls; that there is none is kept as well, so that it is not sought each time."""
    if plan is None and ordinary(*key):
        memo.remember(key, NO_PLAN)
    return plan


def ordinary(*parts: Any) -> bool:
    """Return whether a call with operands of these layouts may take the short way to its plan: not within a transform, nor while somebody
    observes. What is no layout is passed over."""
    for part in parts:
        if part.__class__ is not Layout and isinstance(part, Layout):
            return False
    return not launch._observing
