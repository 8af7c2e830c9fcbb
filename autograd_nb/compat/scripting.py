"""What programs for TorchScript name besides its decorators."""

from __future__ import annotations

from typing import TypeVar

from ..nn.modules.module import Module

T = TypeVar("T")


class ScriptModule(Module):
    """A module as any other, whose methods run eagerly; `jit.script` makes none."""


class ScriptFunction:
    """A class to test against: no function is an instance of it."""


def annotate(the_type: type[T] | None, the_value: T) -> T:
    """Return ``the_value``; the type is for readers."""
    return the_value
