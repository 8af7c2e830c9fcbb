"""Compiled functions without a compiler: programs as they are captured and rewritten, their kernels run by Python.

Under ``NUMBA_DISABLE_JIT=1`` `compile` gives a function back as it is. What is searched for faults of capturing, of passes and of
guards needs no machine code, which takes most of the time of a search. Left out are the table of records and the fast path.
"""

from __future__ import annotations

from typing import Any

from autograd_nb.codegen.build import compilation
from autograd_nb.compiler import dispatch
from autograd_nb.compiler.ir import Step, grouped
from autograd_nb.compiler.lower import executable

_single = executable.Executable._values_of


def _arguments(program: Any, step: Step) -> list[Any]:
    """A step's operands as they are now, in lists where its kernel takes lists."""
    operands = _single(program, step)
    return operands if step.check is not None else grouped(operands, step.call.origin[-1])


def install() -> None:
    """Where kernels are run by Python, let `compile` make programs all the same, and Python run these too."""
    if compilation.numba().config.DISABLE_JIT:
        dispatch.compile_function = dispatch.Compiled  # type: ignore[assignment]
        executable._in_python = lambda step: True
        executable.Executable._values_of = _arguments  # type: ignore[method-assign]
