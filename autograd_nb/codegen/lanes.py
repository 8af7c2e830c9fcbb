"""Inner loops of products, written for vector registers: LLVM IR that keeps a tile of sums in registers.

Left to itself LLVM keeps such a tile in memory, or vectorises the wrong loop. As `runtime`'s, these intrinsics have their meaning
in Python in the second half of the file; it is what runs under ``NUMBA_DISABLE_JIT=1``.
"""

import itertools
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import config
from numba.core import cgutils, types
from numba.extending import intrinsic


def _registers() -> tuple[int, int]:
    """How many bytes a vector register of this processor has, and how many registers it has."""
    try:
        features = binding.get_host_cpu_features()
    except RuntimeError:  # unknown on this platform
        features = {}
    if features.get("avx512f"):
        return 64, 32
    if features.get("avx"):
        return 32, 16
    return 16, 32 if features.get("neon") else 16


BYTES, _COUNT = _registers()
#: a tile of `multiply_tile`: rows, and vectors in a row of a broad and of a narrow one
ROWS, BROAD, NARROW = (8, 3, 2) if _COUNT == 32 else (4, 2, 1)
#: a tile of `dot_tile`: left and right operands
LEFT, RIGHT = (4, 6) if _COUNT == 32 else (2, 4)


class _Tile:
    """LLVM code of an inner loop: its arrays and numbers, vectors of their elements, and sums that stay in registers."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any, first: int, last: int):
        """``args[first:last]`` are arrays, those after them ints."""
        given = list(zip(args, signature.args, strict=True))
        self.builder = builder
        self.data = [context.make_array(t)(context, builder, value=a).data for a, t in given[first:last]]
        self.ints = [context.cast(builder, a, t, types.int64) for a, t in given[last:]]
        bits = given[first][1].dtype.bitwidth
        self.itemsize, self.lanes = bits // 8, BYTES * 8 // bits
        self.type = ir.VectorType(ir.FloatType() if bits == 32 else ir.DoubleType(), self.lanes)
        self.zero = ir.Constant(self.type, None)
        self._fma = self._intrinsic("fmuladd", [self.type] * 3)
        self._pointer = self.type.as_pointer()
        self._masks = ir.VectorType(ir.IntType(1), self.lanes)
        self._align = ir.Constant(ir.IntType(32), self.itemsize)

    def _intrinsic(self, name: str, arguments: list, suffix: str = "", result: Any = None) -> Any:
        name = f"llvm.{name}.v{self.lanes}f{self.itemsize * 8}{suffix}"
        return cgutils.get_or_insert_function(self.builder.module, ir.FunctionType(result or self.type, arguments), name)

    def at(self, pointer: Any, *indices: Any) -> Any:
        for i in indices:
            pointer = self.builder.gep(pointer, [_int(i) if isinstance(i, int) else i])
        return pointer

    def rolled(self) -> None:
        _stay_rolled(self.builder)

    def times(self, a: Any, b: Any) -> Any:
        return self.builder.mul(a, _int(b) if isinstance(b, int) else b)

    def load(self, pointer: Any) -> Any:
        """The vector that begins at any element."""
        return self.builder.load(self.builder.bitcast(pointer, self._pointer), align=self.itemsize)

    def before(self, count: Any) -> Any:
        """The mask of the first ``count`` lanes."""
        order = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), list(range(self.lanes)))
        return self.builder.icmp_signed("<", order, self.spread(self.builder.trunc(count, ir.IntType(32))))

    def load_some(self, pointer: Any, mask: Any) -> Any:
        """The vector of the elements where ``mask`` is set, and zeros; others are not read."""
        load = self._intrinsic("masked.load", [self._pointer, ir.IntType(32), self._masks, self.type], ".p0")
        return self.builder.call(load, [self.builder.bitcast(pointer, self._pointer), self._align, mask, self.zero])

    def store_some(self, value: Any, pointer: Any, mask: Any) -> None:
        store = self._intrinsic("masked.store", [self.type, self._pointer, ir.IntType(32), self._masks], ".p0", ir.VoidType())
        self.builder.call(store, [value, self.builder.bitcast(pointer, self._pointer), self._align, mask])

    def store(self, value: Any, pointer: Any) -> None:
        self.builder.store(value, self.builder.bitcast(pointer, self._pointer), align=self.itemsize)

    def spread(self, value: Any) -> Any:
        """The vector of one value over and over."""
        kind = ir.VectorType(value.type, self.lanes)
        one = self.builder.insert_element(ir.Constant(kind, ir.Undefined), value, _int(0))
        return self._shuffle(one, ir.Constant(kind, ir.Undefined), [0] * self.lanes)

    def sums(self, count: int) -> list:
        """Variables that begin at 0."""
        found = [cgutils.alloca_once(self.builder, self.type) for _ in range(count)]
        for place in found:
            self.builder.store(self.zero, place)
        return found

    def add_product(self, place: Any, a: Any, b: Any) -> None:
        self.builder.store(self.builder.call(self._fma, [a, b, self.builder.load(place)]), place)

    def evens(self, a: Any, b: Any) -> Any:
        """Every other element of two vectors."""
        return self._shuffle(a, b, list(range(0, 2 * self.lanes, 2)))

    def _shuffle(self, a: Any, b: Any, lanes: list[int]) -> Any:
        return self.builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), lanes))

    def fold(self, vectors: list) -> Any:
        """The vector of the sums over each of as many vectors as it has lanes: a transpose that adds as it goes."""
        step = self.lanes // 2
        while step:
            half, lanes = len(vectors) // 2, range(self.lanes)
            near = [i if not i & step else self.lanes + i - step for i in lanes]
            far = [i + step if not i & step else self.lanes + i for i in lanes]
            pairs = zip(vectors[:half], vectors[half:], strict=True)
            vectors = [self.builder.fadd(self._shuffle(a, b, near), self._shuffle(a, b, far)) for a, b in pairs]
            step //= 2
        return vectors[0]


def _stay_rolled(builder: Any) -> None:
    """Empty assembly in a loop's body: LLVM leaves the loop as it is.

    For some processors it unrolls short loops many times over, which makes compiling several times slower.
    """
    builder.asm(ir.FunctionType(ir.VoidType(), []), "", "", [], True)


@intrinsic
def _rolled(typingctx):
    def codegen(context, builder, signature, args):
        _stay_rolled(builder)
        return context.get_dummy_value()

    return types.none(), codegen


def _int(n: int) -> ir.Constant:
    return ir.Constant(ir.IntType(64), n)


@intrinsic(prefer_literal=True)
def _multiply_tile(typingctx, vectors, weights, x, offsets, out, w, count, start, o, ld):
    columns = vectors.literal_value

    def codegen(context, builder, signature, args):
        tile = _Tile(context, builder, signature, args, 1, 5)
        weights, x, offsets, out = tile.data
        w, count, start, o, ld = tile.ints
        at, load = tile.at, builder.load
        sums = tile.sums(ROWS * columns)
        with cgutils.for_range(builder, count, intp=start.type) as loop:
            tile.rolled()
            source = at(x, start, load(at(offsets, loop.index)))
            row = [tile.load(at(source, v * tile.lanes)) for v in range(columns)]
            for r in range(ROWS):
                weight = tile.spread(load(at(weights, w, tile.times(loop.index, ROWS), r)))
                for v in range(columns):
                    tile.add_product(sums[r * columns + v], weight, row[v])
        for r in range(ROWS):
            bias = tile.spread(load(at(weights, w, tile.times(count, ROWS), r)))
            for v in range(columns):
                target = at(out, o, tile.times(ld, r), v * tile.lanes)
                tile.store(builder.fadd(load(sums[r * columns + v]), bias), target)
        return context.get_dummy_value()

    return types.none(vectors, weights, x, offsets, out, w, count, start, o, ld), codegen


@intrinsic
def _dot_tile(typingctx, a, b, lefts, rights, out, left, right, start, size, a_step, b_step, count):
    def codegen(context, builder, signature, args):
        tile = _Tile(context, builder, signature, args, 0, 5)
        a, b, lefts, rights, out = tile.data
        left, right, start, size, a_step, b_step, count = tile.ints
        at = tile.at
        sums = tile.sums(LEFT * RIGHT)
        rows = [at(a, start, builder.load(at(lefts, left, i))) for i in range(LEFT)]
        columns = [at(b, builder.load(at(rights, right, j))) for j in range(RIGHT)]
        rest = builder.srem(size, _int(tile.lanes))
        whole = builder.sub(size, rest)

        def add_products(i, place, read):
            tile.rolled()
            vectors = [read(at(p, tile.times(i, a_step), place)) for p in rows]
            for j, p in enumerate(columns):
                other = read(at(p, tile.times(i, b_step), place))
                for k, vector in enumerate(vectors):
                    tile.add_product(sums[k * RIGHT + j], vector, other)

        with cgutils.for_range(builder, count, intp=start.type) as outer:
            with cgutils.for_range_slice(builder, _int(0), whole, _int(tile.lanes), intp=start.type) as (place, _):
                add_products(outer.index, place, tile.load)
            with builder.if_then(builder.icmp_signed(">", rest, _int(0))):
                add_products(outer.index, whole, lambda p: tile.load_some(p, tile.before(rest)))
        final = [builder.load(s) for s in sums]
        final += [tile.zero] * (-len(final) % tile.lanes)
        for k in range(0, len(final), tile.lanes):
            tile.store(tile.fold(final[k : k + tile.lanes]), at(out, k))
        return context.get_dummy_value()

    return types.none(a, b, lefts, rights, out, left, right, start, size, a_step, b_step, count), codegen


@intrinsic(prefer_literal=True)
def _copy_lines(typingctx, stride, x, out, source, step, target, pitch, width, low, high, begin, end, lines, count, far, apart):
    pairs = stride.literal_value == 2

    def codegen(context, builder, signature, args):
        tile = _Tile(context, builder, signature, args, 1, 3)
        x, out = tile.data
        source, step, target, pitch, width, low, high, begin, end, lines, count, far, apart = tile.ints
        at, sub = tile.at, builder.sub

        def inside(first, scale):
            """The mask of the elements from ``first`` on that are copied, ``scale`` elements of x to one of them."""
            bounds = tile.times(sub(low, first), scale), sub(tile.times(sub(high, first), scale), _int(scale - 1))
            outside, under = (tile.before(bound) for bound in bounds)
            return builder.and_(builder.not_(outside), under)

        with cgutils.for_range_slice(builder, _int(0), width, _int(tile.lanes), intp=low.type) as (first, _):
            tile.rolled()
            written = tile.before(sub(width, first))
            if pairs:
                masks = [inside(first, 2), inside(builder.add(first, _int(tile.lanes // 2)), 2)]
            else:
                masks = [inside(first, 1)]
            with cgutils.for_range(builder, count, intp=low.type) as plane:
                origin = at(x, source, tile.times(plane.index, far), tile.times(first, 2 if pairs else 1))
                goal = at(out, target, tile.times(plane.index, apart), first)

                with cgutils.for_range(builder, lines, intp=low.type) as loop:
                    tile.rolled()
                    line = sub(loop.index, begin)
                    there = tile.spread(builder.icmp_unsigned("<", line, sub(end, begin)))
                    start = at(origin, tile.times(line, step))
                    parts = [
                        tile.load_some(at(start, k * tile.lanes), builder.and_(mask, there)) for k, mask in enumerate(masks)
                    ]
                    value = tile.evens(*parts) if pairs else parts[0]
                    tile.store_some(value, at(goal, tile.times(loop.index, pitch)), written)
        return context.get_dummy_value()

    given = source, step, target, pitch, width, low, high, begin, end, lines, count, far, apart
    return types.none(stride, x, out, *given), codegen


# ------------------------------------------------------------------------------------------------ in Python


def rolled():
    """To stand in the body of a loop that is not worth being vectorised or unrolled."""


def multiply_tile(vectors, weights, x, offsets, out, w, count, start, o, ld):
    """out[o + r·ld + j] = Σ weights[w + i·ROWS + r] · x[start + offsets[i] + j] over i < count, + weights[w + count·ROWS + r].

    For r < ROWS and all j of ``vectors`` vectors, BROAD or NARROW.
    """
    width = vectors * BYTES // x.itemsize
    tile = weights[w : w + (count + 1) * ROWS].reshape(count + 1, ROWS)
    for r in range(ROWS):
        line = np.full(width, tile[count, r])
        for i in range(count):
            line += tile[i, r] * x[start + offsets[i] : start + offsets[i] + width]
        out[o + r * ld : o + r * ld + width] = line


def dot_tile(a, b, lefts, rights, out, left, right, start, size, a_step, b_step, count):
    """out[i·RIGHT + j] = Σ a[start + lefts[left + i] + k·a_step + p] · b[rights[right + j] + k·b_step + p] over k < count, p < size.

    For i < LEFT and j < RIGHT. ``out`` has room for a vector more.
    """
    for i in range(LEFT):
        for j in range(RIGHT):
            p, q = start + lefts[left + i], rights[right + j]
            pairs = [(a[p + k * a_step :][:size], b[q + k * b_step :][:size]) for k in range(count)]
            out[i * RIGHT + j] = sum((x * y).sum() for x, y in pairs)


def copy_lines(stride, x, out, source, step, target, pitch, width, low, high, begin, end, lines, count, far, apart):
    """out[target + k·apart + i·pitch + j] = x[source + k·far + (i − begin)·step + j·stride], where that is to be read, else 0.

    For k < ``count``, i < ``lines`` and j < ``width``; read for begin ≤ i < end and low ≤ j < high; ``stride`` is 1 or 2.
    """
    for k, i in itertools.product(range(count), range(lines)):
        line = out[target + k * apart + i * pitch :][:width]
        line[:] = 0
        if begin <= i < end and low < high:
            start = source + k * far + (i - begin) * step
            line[low:high] = x[start + low * stride : start + (high - 1) * stride + 1 : stride]


if not config.DISABLE_JIT:
    multiply_tile, dot_tile, copy_lines, rolled = _multiply_tile, _dot_tile, _copy_lines, _rolled
