"""`autograd_nb.codegen.runtime` with bounds checked, and what generated kernels from files call besides.

A row is an array that ends where it should; what takes literals (places, tables of sizes) is as it is, as `compiler.trace.source` looks
at the literals.
"""

from typing import Any

from llvmlite import ir
from numba import config
from numba.core import cgutils, types
from numba.extending import intrinsic

from ...codegen import runtime as plain
from ...codegen.runtime import LOOPS, advance, entry, independent, position, radd, rmul, rolled, start, steps, wide
from .bounds import block
from .jit import helper
from .work import room, spent, taken

__all__ = [
    "LOOPS", "advance", "copy", "entry", "independent", "needs", "pack", "position", "radd", "rmul", "rolled", "room", "row", "scratch",
    "settled", "spent", "start", "steps", "taken", "turn", "wide",
]  # fmt: skip


@intrinsic
def _part(typingctx, array, start, size):
    kind = types.Array(array.dtype, 1, "C")

    def codegen(context, builder, signature, args):
        data = plain._data(context, builder, signature.args[0], args[0])
        begin, n = (plain._int(context, builder, v, t) for v, t in zip(args[1:], signature.args[1:], strict=True))
        return plain._window(context, builder, kind, builder.gep(data, [begin]), n)

    return kind(array, start, size), codegen


@intrinsic(prefer_literal=True)
def _scratch(typingctx, size, dtype):
    n, kind = size.literal_value, dtype.dtype

    def codegen(context, builder, signature, args):
        data = cgutils.alloca_once(builder, context.get_data_type(kind), size=n)
        data.align = 64
        return plain._window(context, builder, signature.return_type, data, plain._constant(context, n))

    return types.Array(kind, 1, "C")(size, dtype), codegen


@helper
def _row(array, start, size, step):
    block(array, start, size, step, 1, 0)
    return _part(array, start, max((size - 1) * step + 1, 0) if size > 0 else 0)


@helper
def copy(target, source, size):
    block(source, 0, size, 1, 1, 0)
    block(target, 0, size, 1, 1, 0)
    for i in range(size):
        target[i] = source[i]


@helper
def pack(buffer, array, start, size, step):
    if size > 0:
        block(array, start, size, step, 1, 0)
        block(buffer, 0, size, 1, 1, 0)
        plain.pack(buffer, array, start, size, step)


@helper
def turn(buffer, width, array, start, rows, columns, step):
    if rows > 0 and columns > 0:
        block(array, start, rows, 1, columns, step)
        block(buffer, 0, rows, width, columns, 1)
        for r in range(rows):
            for c in range(columns):
                buffer[r * width + c] = array[start + c * step + r]


# ------------------------------------------------------------------------ what the checker of files puts into their texts


@intrinsic
def _settled(typingctx, value):
    def codegen(context, builder, signature, args):
        if not isinstance(signature.return_type, types.Integer):
            return args[0]
        kind = args[0].type
        wide = kind if kind.width >= 32 else ir.IntType(32)  # not every processor has names for bytes
        given = builder.zext(args[0], wide) if wide is not kind else args[0]
        found = builder.asm(ir.FunctionType(wide, [wide]), "", "=r,0", [given], False)
        return builder.trunc(found, kind) if wide is not kind else found

    return value(value), codegen


def settled(value: Any) -> Any:
    """``value``, of which LLVM knows nothing: an integer that it calls undefined (of a float too large, of a shift too far) would
    let it drop the test of an index that is made of it."""
    return value


@helper
def needs(table, size):
    """IndexError unless a table of sizes has so many elements."""
    if table.size < size:
        raise IndexError("a kernel of a file reaches beyond its memory")


row, scratch = (plain.row, plain.scratch) if config.DISABLE_JIT else (_row, _scratch)
if not config.DISABLE_JIT:
    settled = _settled
