"""`autograd_nb.codegen.tiles` with bounds checked: once for a block, whose elements are then moved by the same instructions."""

from ...codegen import tiles as plain
from ...codegen.tiles import BESIDE, HALF, ROWS, WIDE
from .bounds import block, same
from .jit import helper

__all__ = ["BESIDE", "HALF", "ROWS", "WIDE", "copy_rows", "dot_rows", "multiply", "multiply_whole", "prefetch", "spread_rows", "turn_rows"]

_multiply, _copy_rows, _spread_rows, _turn_rows = plain.multiply, plain.copy_rows, plain.spread_rows, plain.turn_rows
_dot_rows = plain.dot_rows


@helper
def multiply(rows, vectors, m, n, k, a, at, a_row, a_col, b, bt, b_row, c, ct, c_row, add):
    lanes = plain.BYTES // c.itemsize
    if m <= 0 or n <= 0 or m > rows or n > vectors * lanes:
        raise IndexError("a kernel of a file reaches beyond its memory")
    same(a, c)
    same(b, c)
    block(c, ct, m, c_row, n, 1)
    if k > 0:
        block(a, at, m, a_row, k, a_col)
        block(b, bt, k, b_row, n, 1)
    if vectors == WIDE:
        _multiply(ROWS, WIDE, m, n, k, a, at, a_row, a_col, b, bt, b_row, c, ct, c_row, add)
    else:
        for j in range(0, n, lanes):
            _multiply(ROWS, 1, m, min(lanes, n - j), k, a, at, a_row, a_col, b, bt + j, b_row, c, ct + j, c_row, add)


@helper
def multiply_whole(rows, vectors, k, a, at, a_row, a_col, b, bt, b_row, c, ct, c_row, add):
    columns = vectors * plain.BYTES // c.itemsize
    multiply(rows, vectors, rows, columns, k, a, at, a_row, a_col, b, bt, b_row, c, ct, c_row, add)


@helper
def copy_rows(m, n, a, at, a_row, out, ot, out_row):
    if m > 0 and n > 0:
        same(a, out)
        block(a, at, m, a_row, n, 1)
        block(out, ot, m, out_row, n, 1)
        _copy_rows(m, n, a, at, a_row, out, ot, out_row)


@helper
def spread_rows(m, n, a, at, a_row, out, ot, out_row):
    if m > 0 and n > 0:
        wide = WIDE * plain.BYTES // a.itemsize
        same(a, out)
        block(a, at, m, a_row, n * wide, 1)
        block(out, ot, n, out_row, m * wide, 1)
        _spread_rows(m, n, a, at, a_row, out, ot, out_row)


@helper
def turn_rows(m, n, a, at, a_row, out, ot, out_row):
    if m > 0 and n > 0:
        same(a, out)
        block(a, at, m, a_row, n, 1)
        block(out, ot, n, out_row, m, 1)
        _turn_rows(m, n, a, at, a_row, out, ot, out_row)


@helper
def dot_rows(n, k, a, at, b, bt, b_row, c, ct):
    if n <= 0 or n > plain.BYTES // c.itemsize:
        raise IndexError("a kernel of a file reaches beyond its memory")
    same(a, b)
    same(a, c)
    block(a, at, 1, 0, k, 1)
    block(b, bt, n, b_row, k, 1)
    block(c, ct, 1, 0, n, 1)
    _dot_rows(n, k, a, at, b, bt, b_row, c, ct)


@helper
def prefetch(m, n, a, at, a_row):
    """Nothing: it would only be quicker."""
