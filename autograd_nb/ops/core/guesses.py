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

from ...errors import keywords_of, with_guess
from ...tensor import Tensor
from .registry import OPS

_PACKAGE = __name__.partition(".")[0]
_REFUSED = re.compile(r"([\w.]+)\(\) got an unexpected keyword argument '\w+'$")
#: Python's own messages have a guess
PYTHON_GUESSES = sys.version_info >= (3, 13)


def _belongs(function: Any) -> bool:
    """Return whether a function, or what it is wrapped around, was written in the package, or for a tuple with names."""
    home = unwrap(function).__globals__.get("__name__", "")
    return home.partition(".")[0] == _PACKAGE or home.startswith("namedtuple_")


def functions_called(name: str) -> list[FunctionType]:
    """Return the package's functions that Python calls ``name`` in a message: "add", "Tensor.fill_diagonal_", "DataLoader.__init__", …"""
    ops = [unwrap(op.call) for op in OPS.values()]
    methods = list(vars(Tensor).values())
    owner, _, last = name.rpartition(".")
    offered = [m.__dict__.get(owner or name) for n, m in list(sys.modules.items()) if n.partition(".")[0] == _PACKAGE and m is not None]
    if owner:
        offered = [getattr(kind.__dict__.get(last), "__func__", kind.__dict__.get(last)) for kind in offered if isinstance(kind, type)]
    found = {f for f in (*ops, *methods, *offered) if f.__class__ is FunctionType and ((owner and f in offered) or name in _names_of(f))}
    return [f for f in found if f in ops or _belongs(f)]


def _names_of(function: FunctionType) -> tuple[str, str]:
    return function.__qualname__, function.__code__.co_qualname


def guess_keyword(error: BaseException, trace: TracebackType | None) -> None:
    """Add to the error of a call by a keyword that one of the package's functions does not have the nearest that it has.

    Where several have the name, as `nn.functional.unfold` and `Tensor.unfold` do, it is the nearest of all.
    """
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
    if isinstance(near_by, FunctionType) and unwrap(near_by) not in map(unwrap, functions):  # one of the user's own that has the name
        return
    if functions:
        with_guess(error, functions[0], [keyword for f in functions[1:] for keyword in keywords_of(f)])


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
