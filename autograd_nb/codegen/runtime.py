"""What generated kernels call: each a few machine instructions, put in place of the call.

They are intrinsics rather than compiled functions, and rather than the Python that they stand for, as that is what
keeps compiling short: a strided kernel as a nest of loops takes twice as long. The Python that each one stands for is
the second half of this file; it is what runs under ``NUMBA_DISABLE_JIT=1``.

The walk over an iteration space: `start` makes a *place*, the positions of some operands and a counter per loop, all 0;
`advance` takes it one step through nested loops whose sizes and strides are in ``dims`` (six sizes, then six strides
an operand). After the last step it is back at the first, so a walk may be nested in another over the same operands::

    place = start(2)                       # the positions of two operands
    for _ in range(steps(dims, 0, 5)):     # loops 0 to 4
        x = row(a0, position(place, 0), n5, 1)
        y = row(o0, position(place, 1), n5, 1)
        …
        advance(place, dims, 2, 0, 5)
"""

import operator
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config
from numba.core import cgutils, types
from numba.extending import intrinsic

from .translate.marks import unknown
from .vectors import independent as independent
from .vectors import rolled as rolled
from .vectors import stay_rolled
from .vectors import wide as wide

LOOPS = 6  #: the loops of every iteration space


def _free(typingctx, a, b, op, float_op):
    """Return the signature of ``a op b``, and its code with leave to reassociate."""
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


@intrinsic
def _radd(typingctx, a, b):
    return _free(typingctx, a, b, operator.add, "fadd")


@intrinsic
def _rmul(typingctx, a, b):
    return _free(typingctx, a, b, operator.mul, "fmul")


#: the positions of operands, which are registers, and the counters of loops, which are memory
_PLACE = types.UniTuple(types.CPointer(types.int64), 2)  # type: ignore[attr-defined]


def _data(context, builder, array_type, array):
    return context.make_array(array_type)(context, builder, value=array).data


def _int(context, builder, value, kind):
    return context.cast(builder, value, kind, types.int64)


def _constant(context, n):
    return context.get_constant(types.int64, n)


@intrinsic(prefer_literal=True)
def _start(typingctx, operands):
    def codegen(context, builder, signature, args):
        place = []
        for n in (operands.literal_value, LOOPS):
            place.append(cgutils.alloca_once(builder, context.get_value_type(types.int64), size=n))
            for k in range(n):
                builder.store(_constant(context, 0), builder.gep(place[-1], [_constant(context, k)]))
        return cgutils.pack_array(builder, place)

    return _PLACE(operands), codegen


@intrinsic(prefer_literal=True)
def _steps(typingctx, dims, first, last):
    def codegen(context, builder, signature, args):
        data = _data(context, builder, signature.args[0], args[0])
        total = None
        for d in range(first.literal_value, last.literal_value):
            n = builder.load(builder.gep(data, [_constant(context, d)]))
            total = n if total is None else builder.mul(total, n)
        return total

    return types.int64(dims, first, last), codegen


@intrinsic(prefer_literal=True)
def _advance(typingctx, place, dims, operands, first, last):
    count, lowest, highest = operands.literal_value, first.literal_value, last.literal_value

    def codegen(context, builder, signature, args):
        def at(pointer, index):
            return builder.gep(pointer, [index])

        def constant(n):
            return _constant(context, n)

        def move(d, factor):  # positions += factor · the strides of loop d
            for k in range(count):
                p = at(positions, constant(k))
                stride = builder.load(at(sizes, builder.add(constant(LOOPS * (k + 1)), d)))
                builder.store(builder.add(builder.load(p), builder.mul(stride, factor) if factor else stride), p)

        positions, counters = cgutils.unpack_tuple(builder, args[0])
        sizes = _data(context, builder, signature.args[1], args[1])
        last = unknown(builder, constant(highest - 1))  # or LLVM writes the loop out, for each of five
        entry = builder.block
        loop = builder.append_basic_block("advance")
        onward = builder.append_basic_block("onward")
        wrap = builder.append_basic_block("wrap")
        done = builder.append_basic_block("advanced")
        builder.branch(loop)
        builder.position_at_end(loop)  # from the innermost loop outwards, while loops come to their end
        d = builder.phi(constant(0).type)
        d.add_incoming(last, entry)
        counter = at(counters, d)
        c = builder.add(builder.load(counter), constant(1))
        n = builder.load(at(sizes, d))
        builder.cbranch(builder.icmp_signed("<", c, n), onward, wrap)
        builder.position_at_end(onward)
        builder.store(c, counter)
        move(d, None)
        builder.branch(done)
        builder.position_at_end(wrap)
        builder.store(constant(0), counter)
        move(d, builder.sub(constant(1), n))
        outer = builder.sub(d, constant(1))
        d.add_incoming(outer, builder.block)
        builder.cbranch(builder.icmp_signed("<", outer, constant(lowest)), done, loop)
        builder.position_at_end(done)
        return context.get_dummy_value()

    return types.void(place, dims, operands, first, last), codegen


@intrinsic(prefer_literal=True)
def _position(typingctx, place, operand):
    def codegen(context, builder, signature, args):
        return builder.load(builder.gep(builder.extract_value(args[0], 0), [_constant(context, operand.literal_value)]))

    return types.int64(place, operand), codegen


@intrinsic(prefer_literal=True)
def _entry(typingctx, dims, k):
    def codegen(context, builder, signature, args):
        data = _data(context, builder, signature.args[0], args[0])
        return builder.load(builder.gep(data, [_constant(context, k.literal_value)]))

    return types.int64(dims, k), codegen


def _window(context, builder, kind, data, size):
    """Return an array that owns nothing: no reference counts to keep."""
    array = context.make_array(kind)(context, builder)
    itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    array.meminfo = cgutils.get_null_value(array.meminfo.type)
    array.parent = cgutils.get_null_value(array.parent.type)
    array.nitems, array.itemsize, array.data = size, itemsize, data
    array.shape = cgutils.pack_array(builder, [size])
    array.strides = cgutils.pack_array(builder, [itemsize])
    return array._getvalue()


def _bare(dtype):
    """Return the type of rows as bare pointers, which compile in half the time; None where indices are to be checked.

    Booleans are read and written as bytes: another form than that of their values, which Numba's pointers miss.
    """
    return None if config.BOUNDSCHECK else types.CPointer(types.uint8 if dtype == types.boolean else dtype)


@intrinsic
def _row(typingctx, array, start, size, step):
    bare = _bare(array.dtype)

    def codegen(context, builder, signature, args):
        first = _int(context, builder, args[1], start)
        data = builder.gep(_pointer(context, builder, array, args[0]), [first])
        if bare:
            return data
        whole = context.make_array(array)(context, builder, value=args[0])
        extent = _checked(
            context, builder, whole, first, _int(context, builder, args[2], size), _int(context, builder, args[3], step)
        )
        return _window(context, builder, array, data, extent)

    return (bare or array)(array, start, size, step), codegen


def _checked(context, builder, whole, first, n, step):
    """Return how many elements the ``n`` at multiples of ``step`` span, after a look at the bounds of both ends where that is asked for."""
    one = _constant(context, 1)
    extent = builder.add(builder.mul(builder.sub(n, one), step), one)
    if config.BOUNDSCHECK:
        with builder.if_then(builder.icmp_signed(">", n, _constant(context, 0))):
            cgutils.do_boundscheck(context, builder, first, whole.nitems, 0)
            cgutils.do_boundscheck(context, builder, builder.add(first, builder.sub(extent, one)), whole.nitems, 0)
    return extent


def _words(context, builder, kind, pointer):
    """Return a pointer to elements as one to integers of their size."""
    return builder.bitcast(pointer, ir.IntType(8 * _itemsize(context, kind)).as_pointer())


def _itemsize(context, kind):
    return context.get_abi_sizeof(context.get_data_type(kind))


def _steps_of(context, builder, begin, end, step):
    return cgutils.for_range_slice(builder, begin, end, _constant(context, step), inc=True)


@intrinsic
def _copy(typingctx, target, source, size):
    if target.dtype != source.dtype or any(getattr(kind, "layout", "C") != "C" for kind in (target, source)):
        return None

    def codegen(context, builder, signature, args):
        into, of = (_pointer(context, builder, kind, a) for kind, a in zip(signature.args[:2], args[:2], strict=True))
        cgutils.raw_memmove(builder, into, of, _int(context, builder, args[2], size), _itemsize(context, target.dtype))
        return context.get_dummy_value()

    return types.none(target, source, size), codegen


@intrinsic
def _pack(typingctx, buffer, array, start, size, step):
    kinds = (start, size, step)

    def codegen(context, builder, signature, args):
        first, n, s = (_int(context, builder, v, t) for v, t in zip(args[2:], kinds, strict=True))
        whole = context.make_array(array)(context, builder, value=args[1])
        _checked(context, builder, whole, first, n, s)
        source = _words(context, builder, array.dtype, builder.gep(whole.data, [first]))
        target = _words(context, builder, array.dtype, _pointer(context, builder, buffer, args[0]))
        steps = partial(_steps_of, context, builder)
        size, lanes = _itemsize(context, array.dtype), 16
        vector = ir.VectorType(source.type.pointee, lanes).as_pointer()
        even = ir.Constant(ir.VectorType(ir.IntType(32), lanes), list(range(0, 2 * lanes, 2)))
        # of every second element vectors are made by hand, as LLVM would gather them; what follows the last one is not read
        vectorised = builder.and_(builder.sub(n, _constant(context, 1)), _constant(context, -lanes))
        done = builder.select(builder.icmp_signed("==", s, _constant(context, 2)), vectorised, _constant(context, 0))
        with steps(_constant(context, 0), done, lanes) as (i, _):
            at = builder.bitcast(builder.gep(source, [builder.add(i, i)]), vector)
            pair = [builder.load(builder.gep(at, [_constant(context, k)]), align=size) for k in (0, 1)]
            line = builder.shuffle_vector(*pair, even)
            builder.store(line, builder.bitcast(builder.gep(target, [i]), vector), align=size)
        eights = builder.add(done, builder.and_(builder.sub(n, done), _constant(context, -8)))
        for begin, end, together in ((done, eights, 8), (eights, n, 1)):
            with steps(begin, end, together) as (i, _):
                stay_rolled(builder)  # what LLVM makes of a loop of any step is long, and no faster
                places = [builder.add(i, _constant(context, k)) for k in range(together)]
                found = [builder.load(builder.gep(source, [builder.mul(k, s)])) for k in places]
                for k, value in zip(places, found, strict=True):
                    builder.store(value, builder.gep(target, [k]))
        return context.get_dummy_value()

    return types.void(buffer, array, start, size, step), codegen


def _pointer(context, builder, kind, value):
    return _data(context, builder, kind, value) if isinstance(kind, types.Array) else value


@intrinsic(prefer_literal=True)
def _turn(typingctx, buffer, width, array, start, rows, columns, step):
    def codegen(context, builder, signature, args):
        first, tall, wide, s = (
            _int(context, builder, v, t) for v, t in zip(args[3:], (start, rows, columns, step), strict=True)
        )
        whole = context.make_array(array)(context, builder, value=args[2])
        _checked(context, builder, whole, first, wide, s)
        source = _words(context, builder, array.dtype, builder.gep(whole.data, [first]))
        target = _words(context, builder, array.dtype, _pointer(context, builder, buffer, args[0]))
        size = _itemsize(context, array.dtype)
        lanes = min(16, 64 // size)
        zero = _constant(context, 0)
        across = _constant(context, width.literal_value)
        steps = partial(_steps_of, context, builder)

        def copy(r0, r1, c0, c1):  # one by one
            with steps(r0, r1, 1) as (r, _), steps(c0, c1, 1) as (c, _):
                stay_rolled(builder)
                x = builder.load(builder.gep(source, [builder.add(builder.mul(c, s), r)]))
                builder.store(x, builder.gep(target, [builder.add(builder.mul(r, across), c)]))

        if lanes < 8:
            copy(zero, tall, zero, wide)
            return context.get_dummy_value()
        even_rows, even_columns = (builder.and_(n, _constant(context, -lanes)) for n in (tall, wide))
        vector = ir.VectorType(source.type.pointee, lanes).as_pointer()
        with steps(zero, even_columns, lanes) as (c, _), steps(zero, even_rows, lanes) as (r, _):
            lines = []
            for k in range(lanes):
                place = builder.add(builder.mul(builder.add(c, _constant(context, k)), s), r)
                lines.append(builder.load(builder.bitcast(builder.gep(source, [place]), vector), align=size))
            for k, line in enumerate(_transposed(builder, lines)):
                place = builder.add(builder.mul(builder.add(r, _constant(context, k)), across), c)
                builder.store(line, builder.bitcast(builder.gep(target, [place]), vector), align=size * lanes)
        copy(even_rows, tall, zero, even_columns)
        copy(zero, tall, even_columns, wide)
        return context.get_dummy_value()

    return types.void(buffer, width, array, start, rows, columns, step), codegen


def _transposed(builder, lines):
    """Return the columns of a square block of vectors: at each stage halves of pairs of vectors change places."""
    n = len(lines)
    index = ir.VectorType(ir.IntType(32), n)
    half = n // 2
    while half:
        low = [k if not k & half else k - half + n for k in range(n)]
        high = [k + half if not k & half else k + n for k in range(n)]
        lines = list(lines)
        for k in range(n):
            if not k & half:
                a, b = lines[k], lines[k + half]
                lines[k] = builder.shuffle_vector(a, b, ir.Constant(index, low))
                lines[k + half] = builder.shuffle_vector(a, b, ir.Constant(index, high))
        half //= 2
    return lines


@intrinsic(prefer_literal=True)
def _scratch(typingctx, size, dtype):
    n, kind = size.literal_value, dtype.dtype
    bare = _bare(kind)

    def codegen(context, builder, signature, args):
        data = cgutils.alloca_once(builder, context.get_data_type(kind), size=n)
        data.align = 64  # a row of vectors then straddles no cache lines
        return data if bare else _window(context, builder, signature.return_type, data, _constant(context, n))

    return (bare or types.Array(kind, 1, "C"))(size, dtype), codegen


def radd(a: Any, b: Any) -> Any:
    """Return a + b, to be added in any order."""
    return a + b


def rmul(a: Any, b: Any) -> Any:
    """Return a · b, to be multiplied in any order."""
    return a * b


def start(operands: int) -> list[int]:
    """Return a place: the positions of so many operands (a literal), and the loops' counters."""
    return [0] * (operands + LOOPS)


def steps(dims: np.ndarray, first: int, last: int) -> int:
    """Return how many steps the loops from ``first`` up to ``last`` (literals) make together."""
    return int(np.prod(dims[first:last]))


def advance(place: list[int], dims: np.ndarray, operands: int, first: int, last: int) -> None:
    """Take one step through the loops from ``first`` up to ``last`` (literals); after the last step all is as at the first."""
    for d in range(last - 1, first - 1, -1):
        place[operands + d] += 1
        more = place[operands + d] < dims[d]
        for k in range(operands):
            place[k] += int(dims[LOOPS * (k + 1) + d] * (1 if more else 1 - dims[d]))
        if more:
            return
        place[operands + d] = 0


def position(place: list[int], operand: int) -> int:
    """Return where an operand (a literal) stands."""
    return place[operand]


def entry(dims: np.ndarray, k: int) -> int:
    """Return ``dims[k]`` for a literal ``k``."""
    return dims[k]


def row(array: np.ndarray, start: int, size: int, step: int) -> np.ndarray:
    """Return what begins at ``start``: the caller reads ``size`` elements at multiples of ``step`` from there.

    Read the elements of a row of booleans as ``row[i] != 0``: they come as bytes.
    """
    return array[start : start + max((size - 1) * step + 1, 0)]


def scratch(size: int, dtype: type) -> np.ndarray:
    """Return an uninitialised array of a literal size, on the stack."""
    return np.empty(size, dtype)


def copy(target: np.ndarray, source: np.ndarray, size: int) -> None:
    """Do ``target[:size] = source[:size]``, of flat arrays or rows. (For what Numba makes of an assignment of arrays it compiles how to
    say that their sizes differ: two seconds, once a process.)"""
    target[:size] = source[:size]


def pack(buffer: np.ndarray, array: np.ndarray, start: int, size: int, step: int) -> None:
    """Do ``buffer[i] = array[start + i * step]`` for ``size`` > 0: what a vectorised loop is to read."""
    buffer[:size] = row(array, start, size, step)[::step] if step else array[start]


def turn(buffer: np.ndarray, width: int, array: np.ndarray, start: int, rows: int, columns: int, step: int) -> None:
    """Do ``buffer[r * width + c] = array[start + c * step + r]``: a block of an array that lies the other way (``width``: a literal)."""
    for r in range(rows):
        pack(buffer[r * width :], array, start + r, columns, step)


if not config.DISABLE_JIT:
    radd, rmul, start, steps, advance, position = _radd, _rmul, _start, _steps, _advance, _position
    entry, row, scratch, copy, pack, turn = _entry, _row, _scratch, _copy, _pack, _turn
