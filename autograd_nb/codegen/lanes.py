"""Inner loops of products, written for vector registers: LLVM IR that keeps a tile of sums in registers.

As `runtime`'s, these intrinsics have their meaning in Python in the second half of the file; it is what runs under
``NUMBA_DISABLE_JIT=1``.
"""

import itertools
from typing import Any

import numpy as np
from numba import config
from numba.core import types
from numba.extending import intrinsic

from .processor import Sized
from .vectors import BYTES, REGISTERS, Vectors, int64

#: a tile of `multiply_tile`: rows, and vectors in a row of a broad and of a narrow one
ROWS, BROAD, NARROW = (Sized(n, __name__, REGISTERS) for n in ((8, 3, 2) if REGISTERS == 32 else (4, 3, 2)))
#: a tile of `dot_tile`: left and right operands
LEFT, RIGHT = (Sized(n, __name__, REGISTERS) for n in ((4, 6) if REGISTERS == 32 else (2, 6)))

SHIFTED = Sized(6, __name__)  #: vectors of `add_taps`


def _given(context: Any, builder: Any, signature: Any, args: Any, first: int, last: int) -> tuple[Vectors, list, list]:
    """Return the vectors of the arrays ``args[first:last]``, the addresses of these, and the ints after them."""
    vec = Vectors(context, builder, signature.args[first])
    pairs = list(zip(signature.args, args, strict=True))
    return (
        vec,
        [vec.data(*pair) for pair in pairs[first:last]],
        [context.cast(builder, a, t, types.int64) for t, a in pairs[last:]],
    )


@intrinsic(prefer_literal=True)
def _multiply_tile(typingctx, vectors, weights, bias, x, terms, out, w, apart, last, b, first, count, rows, start, o, ld):
    columns = vectors.literal_value

    def codegen(context, builder, signature, args):
        vec, (weights, bias, x, terms, out), ints = _given(context, builder, signature, args, 1, 6)
        w, apart, last, b, first, count, rows, start, o, ld = ints
        at, load = vec.at, builder.load
        sums = vec.sums(ROWS * columns)
        targets = [at(out, o, vec.times(ld, r), v * vec.lanes) for r in range(ROWS) for v in range(columns)]
        with builder.if_then(vec.less(0, first)):
            for own, target in zip(sums, targets, strict=True):
                builder.store(vec.load(target), own)
        weights, terms = at(weights, w), at(terms, first, first)
        lines = [vec.least(r, last) for r in range(ROWS)]  # those beyond the last are the last once more
        steps = [vec.times(line, apart) for line in lines]
        with vec.loop(count) as i:
            pair = at(terms, i, i)
            source, term = at(x, start, load(pair)), load(at(pair, 1))
            row = [vec.load(at(source, v * vec.lanes)) for v in range(columns)]
            for r in range(ROWS):
                weight = vec.spread(load(at(weights, steps[r], term)))
                for v in range(columns):
                    vec.add_product(sums[r * columns + v], weight, row[v])
        done = builder.icmp_signed("==", builder.add(first, count), rows)
        with builder.if_then(builder.and_(done, vec.less(-1, b))):
            for r in range(ROWS):
                value = vec.spread(load(at(bias, b, lines[r])))
                for place in sums[r * columns : (r + 1) * columns]:
                    builder.store(builder.fadd(load(place), value), place)
        for place, target in zip(sums, targets, strict=True):
            vec.store(load(place), target)
        return context.get_dummy_value()

    given = w, apart, last, b, first, count, rows, start, o, ld
    return types.none(vectors, weights, bias, x, terms, out, *given), codegen


@intrinsic
def _dot_tile(typingctx, a, b, lefts, rights, out, left, right, start, size, a_step, b_step, count):
    def codegen(context, builder, signature, args):
        vec, (a, b, lefts, rights, out), ints = _given(context, builder, signature, args, 0, 5)
        left, right, start, size, a_step, b_step, count = ints
        at = vec.at
        sums = vec.sums(LEFT * RIGHT)
        rows = [at(a, start, builder.load(at(lefts, left, i))) for i in range(LEFT)]
        columns = [at(b, builder.load(at(rights, right, j))) for j in range(RIGHT)]
        rest = builder.srem(size, int64(vec.lanes))
        whole = builder.sub(size, rest)

        def add_products(i, place, mask=None):
            vectors = [vec.load(at(p, vec.times(i, a_step), place), mask) for p in rows]
            for j, p in enumerate(columns):
                other = vec.load(at(p, vec.times(i, b_step), place), mask)
                for k, vector in enumerate(vectors):
                    vec.add_product(sums[k * RIGHT + j], vector, other)

        with vec.loop(count) as i:
            with vec.loop(whole, vec.lanes) as place:
                add_products(i, place)
            with builder.if_then(vec.less(0, rest)):
                add_products(i, whole, vec.before(rest))
        final = [builder.load(s) for s in sums]
        final += [vec.zero] * (-len(final) % vec.lanes)
        for k in range(0, len(final), vec.lanes):
            vec.store(vec.fold(final[k : k + vec.lanes]), at(out, k))
        return context.get_dummy_value()

    return types.none(a, b, lefts, rights, out, left, right, start, size, a_step, b_step, count), codegen


@intrinsic
def _turn_lines(typingctx, x, offsets, out, first, count, o, pitch):
    def codegen(context, builder, signature, args):
        vec, (x, offsets, out), (first, count, o, pitch) = _given(context, builder, signature, args, 0, 3)
        rows = [vec.at(x, builder.load(vec.at(offsets, first, r))) for r in range(vec.lanes)]
        with vec.loop(count, vec.lanes) as p:
            for j, column in enumerate(vec.transpose([vec.load(vec.at(row, p)) for row in rows])):
                vec.store(column, vec.at(out, o, vec.times(builder.add(p, int64(j)), pitch)))
        return context.get_dummy_value()

    return types.none(x, offsets, out, first, count, o, pitch), codegen


@intrinsic
def _add_taps(typingctx, w, starts, source, out, taps, count):
    def codegen(context, builder, signature, args):
        vec, (w, starts, source, out), (taps, count) = _given(context, builder, signature, args, 0, 4)
        at, load = vec.at, builder.load
        with vec.loop(count, SHIFTED * vec.lanes) as first:
            lefts = [vec.minus(builder.sub(count, first), v * vec.lanes) for v in range(SHIFTED)]
            targets = [at(out, first, v * vec.lanes) for v in range(SHIFTED)]
            sums = vec.sums(SHIFTED)
            for own, target, left in zip(sums, targets, lefts, strict=True):
                builder.store(vec.load(target, vec.before(left)), own)
            with vec.loop(taps) as t:
                weight, place = vec.spread(load(at(w, t))), at(source, load(at(starts, t)), first)
                for v, own in enumerate(sums):
                    vec.add_product(own, weight, vec.load(at(place, v * vec.lanes)))
            for own, target, left in zip(sums, targets, lefts, strict=True):
                vec.store_first(load(own), target, left)
        return context.get_dummy_value()

    return types.none(w, starts, source, out, taps, count), codegen


@intrinsic(prefer_literal=True)
def _copy_lines(typingctx, stride, x, out, source, step, target, pitch, width, low, high, begin, end, lines, count, far, apart):
    pairs = stride.literal_value == 2

    def codegen(context, builder, signature, args):
        vec, (x, out), ints = _given(context, builder, signature, args, 1, 3)
        source, step, target, pitch, width, low, high, begin, end, lines, count, far, apart = ints
        at, sub = vec.at, builder.sub

        def inside(first, scale):
            """Return the mask of the elements from ``first`` on that are copied, ``scale`` elements of x to one of them."""
            bounds = vec.times(sub(low, first), scale), sub(vec.times(sub(high, first), scale), int64(scale - 1))
            outside, under = (vec.before(bound) for bound in bounds)
            return builder.and_(builder.not_(outside), under)

        with vec.loop(width, vec.lanes) as first:
            left = sub(width, first)
            if pairs:
                masks = [inside(first, 2), inside(builder.add(first, int64(vec.lanes // 2)), 2)]
            else:
                masks = [inside(first, 1)]
            with vec.loop(count) as plane:
                origin = at(x, source, vec.times(plane, far), vec.times(first, 2 if pairs else 1))
                goal = at(out, target, vec.times(plane, apart), first)
                with vec.loop(lines) as i:
                    line = sub(i, begin)
                    there = vec.if_so(builder.icmp_unsigned("<", line, sub(end, begin)))
                    start = at(origin, vec.times(line, step))
                    parts = [vec.load(at(start, k * vec.lanes), builder.and_(mask, there)) for k, mask in enumerate(masks)]
                    value = vec.evens(*parts) if pairs else parts[0]
                    vec.store_first(value, at(goal, vec.times(i, pitch)), left)
        return context.get_dummy_value()

    given = source, step, target, pitch, width, low, high, begin, end, lines, count, far, apart
    return types.none(stride, x, out, *given), codegen


# ------------------------------------------------------------------------------------------------ in Python


def _part(array, start, size, step=1):
    """Return ``array[start]`` and so on, ``size`` elements, each of which must be there."""
    if size <= 0:
        return array[:0]
    if start < 0 or start + (size - 1) * step >= array.size:
        raise IndexError(f"elements {start} to {start + (size - 1) * step} of an array of {array.size}")
    return array[start : start + (size - 1) * step + 1 : step]


def multiply_tile(vectors, weights, bias, x, terms, out, w, apart, last, b, first, count, rows, start, o, ld):
    """out[o + r·ld + j] = Σ weights[w + r·apart + terms[2i + 1]] · x[start + terms[2i] + j] over i < rows, + bias[b + r] where b ≥ 0.

    For r < ROWS, where those beyond ``last`` are that one once more, and all j of ``vectors`` vectors, BROAD or NARROW. Of the terms only those
    of first ≤ i < first + count, the others before them being in ``out``; the bias with the last of them.
    """
    width = vectors * BYTES // x.itemsize
    for r in range(ROWS):
        target, line = _part(out, o + r * ld, width), min(r, last)
        sums = target.copy() if first else np.zeros_like(target)
        for i in range(first, first + count):
            sums += _part(weights, w + line * apart + terms[2 * i + 1], 1) * _part(x, start + terms[2 * i], width)
        target[:] = sums + (_part(bias, b + line, 1) if b >= 0 and first + count == rows else 0)


def dot_tile(a, b, lefts, rights, out, left, right, start, size, a_step, b_step, count):
    """out[i·RIGHT + j] = Σ a[start + lefts[left + i] + k·a_step + p] · b[rights[right + j] + k·b_step + p] over k < count, p < size.

    For i < LEFT and j < RIGHT. ``out`` has room for a vector more.
    """
    for i in range(LEFT):
        for j in range(RIGHT):
            p, q = start + lefts[left + i], rights[right + j]
            pairs = [(_part(a, p + k * a_step, size), _part(b, q + k * b_step, size)) for k in range(count)]
            out[i * RIGHT + j] = sum((x * y).sum() for x, y in pairs)


def turn_lines(x, offsets, out, first, count, o, pitch):
    """out[o + j·pitch + r] = x[offsets[first + r] + j] for r < lanes of a vector and j < count, which is rounded up to whole vectors."""
    lanes = BYTES // x.itemsize
    whole = -(-count // lanes) * lanes
    for r in range(lanes):
        _part(out, o + r, whole, pitch)[:] = _part(x, offsets[first + r], whole)


def add_taps(w, starts, source, out, taps, count):
    """out[j] += Σ w[t] · source[starts[t] + j] over t < taps, for j < count; of ``source`` up to SHIFTED vectors more is read."""
    for t in range(taps):
        _part(source, starts[t], count + SHIFTED * BYTES // out.itemsize - 1)
        _part(out, 0, count)[:] += w[t] * _part(source, starts[t], count)


def copy_lines(stride, x, out, source, step, target, pitch, width, low, high, begin, end, lines, count, far, apart):
    """out[target + k·apart + i·pitch + j] = x[source + k·far + (i − begin)·step + j·stride], where that is to be read, else 0.

    For k < ``count``, i < ``lines`` and j < ``width``; read for begin ≤ i < end and low ≤ j < high; ``stride`` is 1 or 2.
    """
    for k, i in itertools.product(range(count), range(lines)):
        line = _part(out, target + k * apart + i * pitch, width)
        line[:] = 0
        if begin <= i < end and low < high:
            start = source + k * far + (i - begin) * step
            line[low:high] = _part(x, start + low * stride, high - low, stride)


if not config.DISABLE_JIT:
    multiply_tile, dot_tile, turn_lines, add_taps, copy_lines = _multiply_tile, _dot_tile, _turn_lines, _add_taps, _copy_lines
