"""Guesses at keywords of functions that were written wrong: told with the error, when nobody has caught it and it is shown.

From 3.13 on, Python's own message has them. Before, Python refuses a keyword before the function runs, and a function around each that waits
for it would slow every call. So the guess is made as Python makes it for names: when the traceback is shown, in a terminal or in a notebook.
"""

from __future__ import annotations

import re
import sys
from functools import wraps
from inspect import unwrap
from types import FunctionType, TracebackType
from typing import Any

from ...errors import with_guess
from ...tensor import Tensor
from .registry import OPS

_PACKAGE = __name__.partition(".")[0]
_REFUSED = re.compile(r"([\w.]+)\(\) got an unexpected keyword argument '\w+'$")
#: Python's own messages have a guess
PYTHON_GUESSES = sys.version_info >= (3, 13)


def functions_called(name: str) -> list[FunctionType]:
    """Return the package's functions that Python calls ``name`` in a message: "add", "Tensor.fill_diagonal_", …"""
    ops = [unwrap(op.call) for op in OPS.values()]
    methods = list(vars(Tensor).values())
    offered = [m.__dict__.get(name) for n, m in list(sys.modules.items()) if n.partition(".")[0] == _PACKAGE and m is not None]
    found = {f for f in (*ops, *methods, *offered) if f.__class__ is FunctionType and name in (f.__qualname__, f.__code__.co_qualname)}
    return [f for f in found if f.__globals__.get("__name__", "").partition(".")[0] == _PACKAGE or f in ops]


def guess_keyword(error: BaseException, trace: TracebackType | None) -> None:
    """Add to the error of a call by a keyword that one of the package's functions does not have the nearest that it has."""
    if not isinstance(error, TypeError):
        return
    found = _REFUSED.match(error.args[0]) if error.args and isinstance(error.args[0], str) else None
    if found is None:
        return
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    frame = trace.tb_frame if trace is not None else None
    functions = functions_called(found[1])
    near_by = frame and (frame.f_locals.get(found[1]) or frame.f_globals.get(found[1]))
    if isinstance(near_by, FunctionType) and unwrap(near_by) not in functions:  # one of the user's own that has the name
        return
    for function in functions:
        with_guess(error, function)
        if error.args[0].endswith("?"):
            return


def _in_notebooks() -> None:
    """Tell IPython, which shows errors itself, to guess before it shows a TypeError, unless the user has set something else."""
    get = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = get() if get is not None else None
    if shell is None or shell.custom_exceptions:
        return

    def show(shell: Any, kind: Any, error: Any, trace: Any, tb_offset: Any = None) -> None:
        guess_keyword(error, trace)
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)

    shell.set_custom_exc((TypeError,), show)


def install() -> None:
    """Have guesses shown with errors that nobody catches, where Python makes none by itself."""
    shown = sys.excepthook
    if PYTHON_GUESSES or getattr(shown, "__module__", "") == __name__:
        return

    @wraps(shown)
    def hook(kind: Any, error: Any, trace: Any) -> None:
        guess_keyword(error, trace)
        shown(kind, error, trace)

    hook.__module__ = __name__
    sys.excepthook = hook
    _in_notebooks()
