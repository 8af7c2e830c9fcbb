"""Helpers that generated kernels call: additions and products that LLVM may reassociate, and so vectorise.

They are intrinsics, one instruction each: as compiled functions they cost every process that compiles a reduction 60 ms.
"""

import operator

from numba import config
from numba.core import types
from numba.extending import intrinsic


def _free(typingctx, a, b, op, float_op):
    """The signature of ``a op b``, and its code with leave to reassociate."""
    if not (isinstance(a, types.Number | types.Boolean) and isinstance(b, types.Number | types.Boolean)):
        return None
    result = typingctx.resolve_function_type(op, (a, b), {}).return_type

    def codegen(context, builder, signature, args):
        x, y = (context.cast(builder, v, t, result) for v, t in zip(args, signature.args, strict=True))
        if isinstance(result, types.Float):
            return getattr(builder, float_op)(x, y, flags=("contract", "nsz", "reassoc"))
        sig = typingctx.resolve_function_type(op, (result, result), {})
        return context.get_function(op, sig)(builder, (x, y))

    return result(a, b), codegen


if config.DISABLE_JIT:  # intrinsics have no Python body to run
    radd, rmul = operator.add, operator.mul
else:

    @intrinsic
    def radd(typingctx, a, b):
        """a + b, to be added in any order."""
        return _free(typingctx, a, b, operator.add, "fadd")

    @intrinsic
    def rmul(typingctx, a, b):
        """a · b, to be multiplied in any order."""
        return _free(typingctx, a, b, operator.mul, "fmul")
