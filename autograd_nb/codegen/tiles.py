"""Blocks of a matrix product in registers: what LLVM's own vectoriser does not find in plain loops.

`multiply` sums up a block of a product, a few rows by one or two vectors of columns, without a store in between;
`copy_rows` and `turn_rows` move blocks of a matrix. They are intrinsics on flat arrays, of which the caller
gives the position of the first element; they look at no bounds. The Python that each one stands for is the second half of this
file; it is what runs under ``NUMBA_DISABLE_JIT=1``.
"""

from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import config
from numba.core import cgutils, types
from numba.extending import intrinsic


def _has_wide_registers() -> bool:
    if config.CPU_FEATURES is not None:
        return "+avx512f" in config.CPU_FEATURES
    return bool(dict(binding.get_host_cpu_features()).get("avx512f", False))


BYTES = 64 if _has_wide_registers() else 32  #: of a vector
ROWS = 8 if BYTES == 64 else 4  #: of the larger block, whose sums take half of the registers
HALF = ROWS // 2  #: of the smaller one


def _int64(value: Any) -> Any:
    return ir.Constant(ir.IntType(64), value)


def _int32(value: Any) -> Any:
    return ir.Constant(ir.IntType(32), value)


class _Vectors:
    """Code for the vectors of one type of elements."""

    def __init__(self, builder: Any, element: Any):
        self.builder = builder
        self.size = 4 if isinstance(element, ir.FloatType) else 8
        self.lanes = BYTES // self.size
        self.type = ir.VectorType(element, self.lanes)
        self.suffix = f"v{self.lanes}f{self.size * 8}"

    def splat(self, x: Any) -> Any:
        one = self.builder.insert_element(ir.Constant(ir.VectorType(x.type, self.lanes), ir.Undefined), x, _int32(0))
        return self.builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes))

    def first(self, count: Any) -> Any:
        """The mask of the first ``count`` elements."""
        return self.builder.icmp_signed(
            "<", ir.Constant(ir.VectorType(ir.IntType(64), self.lanes), list(range(self.lanes))), self.splat(count)
        )

    def _call(self, name: str, result: Any, *args: Any) -> Any:
        kind = ir.FunctionType(result, [a.type for a in args])
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.{name}"), args)

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        return self._call(f"fma.{self.suffix}", self.type, a, b, c)

    def load(self, pointer: Any, mask: Any) -> Any:
        """Elements from ``pointer`` on, zeros where the mask is off."""
        pointer = self.builder.bitcast(pointer, self.type.as_pointer())
        return self._call(
            f"masked.load.{self.suffix}.p0", self.type, pointer, _int32(self.size), mask, ir.Constant(self.type, None)
        )

    def store(self, value: Any, pointer: Any, mask: Any) -> None:
        pointer = self.builder.bitcast(pointer, self.type.as_pointer())
        self._call(f"masked.store.{self.suffix}.p0", ir.VoidType(), value, pointer, _int32(self.size), mask)


def _pointer(context, builder, array_type, array, offset):
    return builder.gep(context.make_array(array_type)(context, builder, value=array).data, [offset])


@intrinsic(prefer_literal=True)
def _multiply(typingctx, rows, vectors, m, n, k, a, at, a_row, a_col, b, bt, b_row, c, ct, c_row, add):
    count, width = rows.literal_value, vectors.literal_value
    signature = types.void(
        rows, vectors, *(types.intp,) * 3, a, *(types.intp,) * 3, b, *(types.intp,) * 2, c, *(types.intp,) * 2, types.boolean
    )

    def codegen(context, builder, signature, args):
        _, _, m, n, k, a, at, a_row, a_col, b, bt, b_row, c, ct, c_row, add = args
        vec = _Vectors(builder, context.get_value_type(signature.args[5].dtype))
        a = _pointer(context, builder, signature.args[5], a, at)
        b = _pointer(context, builder, signature.args[9], b, bt)
        c = _pointer(context, builder, signature.args[12], c, ct)
        zero, one, none = _int64(0), _int64(1), ir.Constant(vec.type, None)
        starts = [_int64(v * vec.lanes) for v in range(width)]
        masks = [vec.first(builder.sub(n, s)) for s in starts]
        last = builder.sub(m, one)  # rows beyond it are the last once more
        lines = [zero]
        for r in range(1, count):
            own = _int64(r)
            lines.append(builder.select(builder.icmp_signed("<", own, last), own, last))
        a_lines = [builder.gep(a, [builder.mul(line, a_row)]) for line in lines]
        before, loop, after = builder.block, builder.append_basic_block("terms"), builder.append_basic_block("summed")
        builder.branch(loop)
        builder.position_at_end(loop)
        p, a_place, b_place = (builder.phi(ir.IntType(64)) for _ in range(3))
        sums = [[builder.phi(vec.type) for _ in range(width)] for _ in range(count)]
        line = builder.gep(b, [b_place])
        terms = [vec.load(builder.gep(line, [s]), mask) for s, mask in zip(starts, masks, strict=True)]
        found = []
        for r in range(count):
            x = vec.splat(builder.load(builder.gep(a_lines[r], [a_place])))
            found.append([vec.fma(x, terms[v], sums[r][v]) for v in range(width)])
        following = builder.add(p, one), builder.add(a_place, a_col), builder.add(b_place, b_row)
        builder.cbranch(builder.icmp_signed("<", following[0], k), loop, after)
        for phi, value in zip((p, a_place, b_place), following, strict=True):
            phi.add_incoming(zero, before)
            phi.add_incoming(value, loop)
        for own, summed in zip(sums, found, strict=True):
            for phi, value in zip(own, summed, strict=True):
                phi.add_incoming(none, before)
                phi.add_incoming(value, loop)
        builder.position_at_end(after)
        # a row that stands there twice is read before any is written
        places = [[builder.gep(c, [builder.add(builder.mul(line, c_row), s)]) for s in starts] for line in lines]
        asked = [builder.and_(mask, vec.splat(add)) for mask in masks]
        old = [[vec.load(places[r][v], asked[v]) for v in range(width)] for r in range(count)]
        for r in range(count):
            for v in range(width):
                vec.store(builder.fadd(found[r][v], old[r][v]), places[r][v], masks[v])
        return context.get_dummy_value()

    return signature, codegen


def _loop(builder, steps, body):
    """``body(i)`` for i < ``steps``, which is positive; the block where it ends."""
    before, loop, after = builder.block, builder.append_basic_block("loop"), builder.append_basic_block("after")
    builder.branch(loop)
    builder.position_at_end(loop)
    i = builder.phi(ir.IntType(64))
    body(i)
    following = builder.add(i, _int64(1))
    i.add_incoming(_int64(0), before)
    i.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, steps), loop, after)
    builder.position_at_end(after)


@intrinsic
def _copy_rows(typingctx, m, n, a, at, a_row, out, ot, out_row):
    signature = types.void(types.intp, types.intp, a, types.intp, types.intp, out, types.intp, types.intp)

    def codegen(context, builder, signature, args):
        m, n, a, at, a_row, out, ot, out_row = args
        vec = _Vectors(builder, context.get_value_type(signature.args[2].dtype))
        a = _pointer(context, builder, signature.args[2], a, at)
        out = _pointer(context, builder, signature.args[5], out, ot)
        lanes = _int64(vec.lanes)

        def columns(v):
            start = builder.mul(v, lanes)
            mask = vec.first(builder.sub(n, start))
            source, target = builder.gep(a, [start]), builder.gep(out, [start])

            def row(r):
                value = vec.load(builder.gep(source, [builder.mul(r, a_row)]), mask)
                vec.store(value, builder.gep(target, [builder.mul(r, out_row)]), mask)

            _loop(builder, m, row)

        with builder.if_then(builder.icmp_signed(">", builder.mul(m, n), _int64(0))):
            _loop(builder, builder.sdiv(builder.add(n, _int64(vec.lanes - 1)), lanes), columns)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def _turn_rows(typingctx, m, n, a, at, a_row, out, ot, out_row):
    signature = types.void(types.intp, types.intp, a, types.intp, types.intp, out, types.intp, types.intp)

    def codegen(context, builder, signature, args):
        m, n, a, at, a_row, out, ot, out_row = args
        vec = _Vectors(builder, context.get_value_type(signature.args[2].dtype))
        a = _pointer(context, builder, signature.args[2], a, at)
        out = _pointer(context, builder, signature.args[5], out, ot)
        lanes, half = _int64(vec.lanes), vec.lanes // 2
        halves = [[i // 2 + start + (vec.lanes if i % 2 else 0) for i in range(vec.lanes)] for start in (0, half)]
        low, high = (ir.Constant(ir.VectorType(ir.IntType(32), vec.lanes), places) for places in halves)
        across, down = (builder.sdiv(builder.add(count, _int64(vec.lanes - 1)), lanes) for count in (n, m))
        last_row, last_column = builder.sub(m, _int64(1)), builder.sub(n, _int64(1))

        def bounded(x, last):
            return builder.select(builder.icmp_signed("<", x, last), x, last)

        def block(i):
            first = builder.mul(builder.srem(i, across), lanes)
            top = builder.mul(builder.sdiv(i, across), lanes)
            mask = vec.first(builder.sub(n, first))
            rows = []
            for r in range(vec.lanes):
                line = builder.mul(bounded(builder.add(top, _int64(r)), last_row), a_row)
                rows.append(vec.load(builder.gep(a, [builder.add(line, first)]), mask))
            for _ in range(half.bit_length()):  # each pass interleaves the first half of the rows with the second
                rows = [builder.shuffle_vector(rows[r // 2], rows[r // 2 + half], (low, high)[r % 2]) for r in range(vec.lanes)]
            mask = vec.first(builder.sub(m, top))
            for r in range(vec.lanes):
                own = builder.add(first, _int64(r))
                line = builder.mul(bounded(own, last_column), out_row)
                inside = builder.and_(mask, vec.splat(builder.icmp_signed("<=", own, last_column)))
                vec.store(rows[r], builder.gep(out, [builder.add(line, top)]), inside)

        with builder.if_then(builder.icmp_signed(">", builder.mul(m, n), _int64(0))):
            _loop(builder, builder.mul(across, down), block)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def _fetch(typingctx, m, n, a, at, a_row):
    def codegen(context, builder, signature, args):
        m, n, a, at, a_row = args
        a = _pointer(context, builder, signature.args[2], a, at)
        line = 64 * 8 // signature.args[2].dtype.bitwidth
        across = builder.sdiv(builder.add(n, _int64(line - 1)), _int64(line))

        def row(i):
            first = builder.gep(a, [builder.mul(i, a_row)])

            def read(j):
                place = builder.bitcast(builder.gep(first, [builder.mul(j, _int64(line))]), ir.IntType(8).as_pointer())
                builder.load_atomic(
                    place, "monotonic", 1
                )  # an ordinary load, but never left out (prefetches are, when many wait)

            _loop(builder, across, read)

        with builder.if_then(builder.and_(*(builder.icmp_signed(">", x, _int64(0)) for x in (m, n)))):
            _loop(builder, m, row)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, a, types.intp, types.intp), codegen


def fetch(m: int, n: int, a: np.ndarray, at: int, a_row: int) -> None:
    """Read a line of memory after the other of a (m × n), for nothing but that they are near then: a tile waits for each."""


def multiply(
    rows: int, vectors: int, m: int, n: int, k: int, a: np.ndarray, at: int, a_row: int, a_col: int,
    b: np.ndarray, bt: int, b_row: int, c: np.ndarray, ct: int, c_row: int, add: bool,
) -> None:  # fmt: skip
    """c (m × n) = a (m × k) · b (k × n), or added to c, each array from its position on.

    ``rows`` ≥ m and ``vectors`` of columns ≥ n are literals; k > 0. Elements of a stand ``a_row`` and ``a_col`` apart, rows of
    b and c ``b_row`` and ``c_row``. An element is the sum of its terms in their order, wherever in a block it stands.
    """
    terms = a[at + np.arange(m)[:, None] * a_row + np.arange(k) * a_col], b[bt + np.arange(k)[:, None] * b_row + np.arange(n)]
    places = ct + np.arange(m)[:, None] * c_row + np.arange(n)
    c[places] = terms[0] @ terms[1] + (c[places] if add else 0)


def copy_rows(m: int, n: int, a: np.ndarray, at: int, a_row: int, out: np.ndarray, ot: int, out_row: int) -> None:
    """out (m × n) = a, in rows that stand ``a_row`` and ``out_row`` apart."""
    rows = np.arange(m)[:, None]
    out[ot + rows * out_row + np.arange(n)] = a[at + rows * a_row + np.arange(n)]


def turn_rows(m: int, n: int, a: np.ndarray, at: int, a_row: int, out: np.ndarray, ot: int, out_row: int) -> None:
    """out (n × m) = aᵀ, of rows that stand ``a_row`` and ``out_row`` apart."""
    rows = np.arange(m)[:, None]
    out[ot + rows + np.arange(n) * out_row] = a[at + rows * a_row + np.arange(n)]


if not config.DISABLE_JIT:
    multiply, copy_rows, turn_rows, fetch = _multiply, _copy_rows, _turn_rows, _fetch
