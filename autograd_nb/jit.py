"""TorchScript's decorators, for programs that use them: functions and modules stay as they are, and run eagerly.

Source: https://docs.pytorch.org/docs/stable/jit.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .nn.modules.module import Module


def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """``obj`` itself; `autograd_nb.compile` is what makes functions fast here."""
    return obj


def trace(func: Any, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """``func`` itself."""
    return func


def script_if_tracing(fn: Callable) -> Callable:
    """``fn`` itself."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The function as it is; also used as ``@ignore()``."""
    return drop if callable(drop) else lambda fn: fn


def export(fn: Callable) -> Callable:
    """``fn`` itself."""
    return fn


unused = interface = script_method = export


def is_scripting() -> bool:
    """False."""
    return False


is_tracing = is_scripting


def annotate(the_type: Any, the_value: Any) -> Any:
    """``the_value``."""
    return the_value


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """RuntimeError: there are no TorchScript files here."""
    raise RuntimeError("jit.save(): TorchScript files cannot be written; save the state_dict with autograd_nb.save")


def load(f: Any, map_location: Any = None) -> Any:
    """RuntimeError: there are no TorchScript files here."""
    raise RuntimeError("jit.load(): TorchScript files cannot be read; load a state_dict with autograd_nb.load")


class ScriptModule(Module):
    """A module as any other, whose methods run eagerly; `script` makes none."""


class ScriptFunction:
    """Only a name to test against."""


Final = Any
