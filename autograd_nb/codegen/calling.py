"""Calls of C functions by their addresses, for kernels that work with a library which is found only when the program runs.

The address is an argument of the kernel, so that its machine code is the same in every process. All arguments are words of 64 bits: a
C function that takes a narrower integer looks at the lower half of its register, by the calling conventions of x86-64 and of 64-bit ARM.
"""

from __future__ import annotations

import ctypes
from typing import Any

from llvmlite import ir
from numba import config
from numba.core import types
from numba.extending import intrinsic

_WORD = ir.IntType(64)


@intrinsic
def _called(typingctx, address, *arguments):
    given = types.StarArgTuple.from_types(arguments)

    def codegen(context, builder, signature, args):
        words = [
            context.cast(builder, builder.extract_value(args[1], i), kind, types.int64) for i, kind in enumerate(signature.args[1].types)
        ]
        kind = ir.FunctionType(ir.IntType(32), [_WORD] * len(words))
        function = builder.inttoptr(args[0], kind.as_pointer())
        return builder.sext(builder.call(function, words), _WORD)

    return types.int64(types.int64, given), codegen


@intrinsic
def _address(typingctx, array, element):
    def codegen(context, builder, signature, args):
        data = context.make_array(array)(context, builder, value=args[0]).data
        at = context.cast(builder, args[1], element, types.int64)
        return builder.ptrtoint(builder.gep(data, [at]), _WORD)

    return types.int64(array, element), codegen


@intrinsic
def _exchange(typingctx, array, element, value):
    def codegen(context, builder, signature, args):
        data = context.make_array(array)(context, builder, value=args[0]).data
        at = context.cast(builder, args[1], element, types.int64)
        word = context.cast(builder, args[2], value, types.int64)
        return builder.atomic_rmw("xchg", builder.gep(data, [at]), word, "seq_cst")

    return types.int64(array, element, value), codegen


def _exchange_in_python(array: Any, element: int, value: int) -> int:
    before = int(array[element])
    array[element] = value
    return before


def _called_in_python(address: int, *arguments: int) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * len(arguments))(int(address))(*map(int, arguments)))


def _address_in_python(array: Any, element: int) -> int:
    return int(array.ctypes.data) + int(element) * int(array.itemsize)


#: ``called(address, word, …)``: what the C function at this address returns, an int
called: Any = _called_in_python if config.DISABLE_JIT else _called
#: ``address(array, i)``: where element i of a flat array is
address: Any = _address_in_python if config.DISABLE_JIT else _address
#: ``exchange(array, i, word)``: put a word into an array of 64-bit words, and return what stood there, at once for all threads
exchange: Any = _exchange_in_python if config.DISABLE_JIT else _exchange
