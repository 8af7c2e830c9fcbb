"""`autograd_nb.codegen.lanes` with bounds checked: once for a tile, whose elements are then moved by the same instructions."""

from ...codegen import lanes as plain
from ...codegen.lanes import BROAD, LEFT, NARROW, RIGHT, ROWS, SHIFTED
from ...codegen.vectors import BYTES
from .bounds import block, same
from .jit import helper

__all__ = ["BROAD", "LEFT", "NARROW", "RIGHT", "ROWS", "SHIFTED", "add_taps", "copy_lines", "dot_tile", "multiply_tile", "turn_lines"]

_multiply_tile, _dot_tile, _turn_lines = plain.multiply_tile, plain.dot_tile, plain.turn_lines
_add_taps, _copy_lines = plain.add_taps, plain.copy_lines


@helper
def multiply_tile(vectors, weights, bias, x, terms, out, w, apart, last, b, first, count, rows, start, o, ld):
    if (vectors != BROAD and vectors != NARROW) or first < 0 or count < 0 or first + count > rows or last < 0:
        raise IndexError("a kernel of a file reaches beyond its memory")
    same(weights, x)
    same(weights, out)
    same(weights, bias)
    width = vectors * (BYTES // x.itemsize)
    lines = min(ROWS, last + 1)
    block(out, o, ROWS, ld, width, 1)
    block(terms, 2 * first, count, 2, 2, 1)
    if b >= 0:
        block(bias, b, 1, 0, lines, 1)
    for i in range(first, first + count):
        block(x, start + terms[2 * i], 1, 0, width, 1)
        block(weights, w + terms[2 * i + 1], lines, apart, 1, 1)
    if vectors == BROAD:
        _multiply_tile(BROAD, weights, bias, x, terms, out, w, apart, last, b, first, count, rows, start, o, ld)
    else:
        _multiply_tile(NARROW, weights, bias, x, terms, out, w, apart, last, b, first, count, rows, start, o, ld)


@helper
def dot_tile(a, b, lefts, rights, out, left, right, start, size, a_step, b_step, count):
    lanes = BYTES // a.itemsize
    same(a, b)
    same(a, out)
    block(out, 0, -(-LEFT * RIGHT // lanes), lanes, lanes, 1)
    block(lefts, left, LEFT, 1, 1, 0)
    block(rights, right, RIGHT, 1, 1, 0)
    for i in range(LEFT):
        block(a, start + lefts[left + i], count, a_step, size, 1)
    for j in range(RIGHT):
        block(b, rights[right + j], count, b_step, size, 1)
    _dot_tile(a, b, lefts, rights, out, left, right, start, size, a_step, b_step, count)


@helper
def turn_lines(x, offsets, out, first, count, o, pitch):
    same(x, out)
    lanes = BYTES // x.itemsize
    whole = -(-count // lanes) * lanes
    block(offsets, first, 1, 0, lanes, 1)
    block(out, o, whole, pitch, lanes, 1)
    for r in range(lanes):
        block(x, offsets[first + r], 1, 0, whole, 1)
    _turn_lines(x, offsets, out, first, count, o, pitch)


@helper
def add_taps(w, starts, source, out, taps, count):
    same(source, w)
    same(source, out)
    block(w, 0, 1, 0, taps, 1)
    block(starts, 0, 1, 0, taps, 1)
    if count > 0:
        block(out, 0, 1, 0, count, 1)
        across = SHIFTED * BYTES // out.itemsize
        for t in range(taps):
            block(source, starts[t], 1, 0, -(-count // across) * across, 1)
    _add_taps(w, starts, source, out, taps, count)


@helper
def copy_lines(stride, x, out, source, step, target, pitch, width, low, high, begin, end, lines, count, far, apart):
    if width <= 0 or lines <= 0 or count <= 0:
        return
    if end < begin or (stride != 1 and stride != 2):
        raise IndexError("a kernel of a file reaches beyond its memory")
    same(x, out)
    lanes = BYTES // x.itemsize
    block(out, target, count, apart, lines, pitch, width, 1)
    first, last = max(low, 0), min(high, width + lanes)  # a vector that begins within the width is read to its end
    top, bottom = max(begin, 0), min(end, lines)
    if first < last and top < bottom:
        block(x, source + (top - begin) * step + first * stride, bottom - top, step, last - first, stride, count, far)
    if stride == 1:
        _copy_lines(1, x, out, source, step, target, pitch, width, low, high, begin, end, lines, count, far, apart)
    else:
        _copy_lines(2, x, out, source, step, target, pitch, width, low, high, begin, end, lines, count, far, apart)
