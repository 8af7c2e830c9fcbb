"""How much a kernel of a file may do: its steps are counted, over all functions that it calls, against what its arrays can ask for."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from ...codegen.jit import helper

__all__ = ["room", "spent", "taken"]

#: what any kernel may take; arrays may be walked again and again where they are small, or stretched
_FREE = np.float64(1 << 28)
#: per element, and per element of a product of matrices that are as large as all arrays together
_EACH, _PRODUCT = np.float64(256.0), np.float64(16.0)
#: a buffer's element counts as so many steps
_BUFFER = np.float64(8.0)


@intrinsic
def _spend(typingctx, amount, anew):
    """What is left of the steps after ``amount``; ``anew``: of so many. All functions of a kernel are linked into one module."""

    def codegen(context, builder, signature, args):
        kind = context.get_value_type(types.float64)
        rest = builder.module.globals.get("autograd_nb_rest")
        if rest is None:
            rest = cgutils.add_global_variable(builder.module, kind, "autograd_nb_rest")
            rest.linkage, rest.initializer = "common", ir.Constant(kind, 0.0)
        left = builder.select(args[1], args[0], builder.fsub(builder.load(rest), args[0]))
        builder.store(left, rest)
        return left

    return types.float64(types.float64, types.boolean), codegen


_rest = [0.0]


def _spend_plainly(amount: Any, anew: Any) -> Any:
    _rest[0] = amount if anew else _rest[0] - amount
    return _rest[0]


if config.DISABLE_JIT:
    _spend = _spend_plainly


@helper
def room(elements):
    """Begin to count the steps of a kernel whose arrays have so many elements."""
    n = np.float64(elements)
    _spend(_FREE + _EACH * n + _PRODUCT * n * np.sqrt(n), np.bool_(True))


@helper
def spend(steps):
    """Count steps; IndexError when there are none left."""
    if not _spend(steps, np.bool_(False)) >= 0.0:
        raise IndexError("a kernel of a file takes far more steps than its memory has elements")


@helper
def spent(begin, end, step):
    """Count a loop over ``range(begin, end, step)`` before it begins."""
    if step == 0:
        raise IndexError("a loop of a kernel from a file makes no steps")
    spend(max((np.float64(end) - np.float64(begin)) / np.float64(step), 0.0) + 1.0)


@helper
def taken(size, times):
    """``size``, of a buffer of size · times elements."""
    spend(max(np.float64(size) * times * _BUFFER, 0.0))
    return size
