"""Make a failing program short: drop what the difference does not need."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from .program import Calls, Program


def _without(sequence: tuple, begin: int, count: int) -> tuple:
    return sequence[:begin] + sequence[begin + count :]


def shrink(program: Any, fails: Callable[[Any], bool]) -> Any:
    """The smallest program found by dropping parts of which ``fails`` still holds."""
    fields = ["statements"] if isinstance(program, Program) else ["calls", "body", "setup", "results"]
    again = True
    while again:
        again = False
        for name in fields:
            count = max(1, len(getattr(program, name)) // 2)
            while count:
                k = len(getattr(program, name)) - count
                while k >= 0:
                    smaller = dataclasses.replace(program, **{name: _without(getattr(program, name), k, count)})
                    if fails(smaller):
                        program, again = smaller, True
                    k -= count
                count //= 2
        if isinstance(program, Calls):
            for k in range(len(program.calls)):
                for part in ("before", "after"):
                    i = len(getattr(program.calls[k], part))
                    while i:
                        i -= 1
                        one = dataclasses.replace(program.calls[k], **{part: _without(getattr(program.calls[k], part), i, 1)})
                        smaller = dataclasses.replace(program, calls=(*program.calls[:k], one, *program.calls[k + 1 :]))
                        if fails(smaller):
                            program, again = smaller, True
    return program
