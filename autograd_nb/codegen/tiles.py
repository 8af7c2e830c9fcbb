"""Blocks of a matrix product in registers: what LLVM's own vectoriser does not find in plain loops.

`multiply` sums up a block of a product, a few rows by one or two vectors of columns, without a store in between;
`dot_rows` multiplies a row by some rows;
`copy_rows`, `spread_rows` and `turn_rows` move blocks of a matrix. They are intrinsics on flat arrays, of which the caller
gives the position of the first element; they look at no bounds. The Python that each one stands for is the second half of this
file; it is what runs under ``NUMBA_DISABLE_JIT=1``.
"""

from collections.abc import Callable

import numpy as np
from numba import config
from numba.core import types
from numba.extending import intrinsic

from .processor import LINE, Sized
from .translate.marks import unknown
from .vectors import BYTES, FIRST_CACHE, REGISTERS, SECOND_CACHE, Vectors, int64

#: rows of the larger block, whose sums leave registers for a row of b and an element of a; of the smaller one
ROWS, HALF = (Sized(n, __name__, REGISTERS) for n in ((8, 4) if REGISTERS == 32 else (6, 4)))
SOON = 16  #: terms until what is asked for is there
WIDE = 2  #: vectors in a row of the larger one
BESIDE = Sized(1 if REGISTERS == 32 else WIDE, __name__, REGISTERS)  #: and of the smaller one


def _block(vec, rows, counts, k, a, a_row, a_col, b, b_row, c, c_row, add, ahead=False):
    """Return the code of a block of a product: its rows, and for each vector of columns how many it has (None for all).

    ``ahead``: memory is asked for before it is needed: the block of c and, where rows of a lie side by side, its next terms.
    """
    builder = vec.builder
    starts = [v * vec.lanes for v in range(len(counts))]
    masks = [None if count is None else vec.before(count) for count in counts]
    lines = [vec.times(a_row, r) for r in rows]
    if REGISTERS == 16:  # LLVM is not to know that lines are as far apart: it would add that up, line after line, for each term
        lines = [unknown(builder, line) for line in lines]
    sums = [vec.sums(len(counts)) for _ in rows]
    block = [
        (place, vec.at(c, vec.times(r, c_row), s), mask, count)
        for r, own in zip(rows, sums, strict=True)
        for place, s, mask, count in zip(own, starts, masks, counts, strict=True)
    ]
    if ahead:
        for _, target, *_ in block:
            vec.prefetch(target, FIRST_CACHE)
    with vec.loop(k) as p:
        row, column = vec.at(b, vec.times(p, b_row)), vec.times(p, a_col)
        if ahead and REGISTERS == 32:
            vec.prefetch(vec.at(a, column, vec.times(a_col, SOON)), FIRST_CACHE)
        terms = [vec.load(vec.at(row, s), mask) for s, mask in zip(starts, masks, strict=True)]
        for line, own in zip(lines, sums, strict=True):
            x = vec.spread(builder.load(vec.at(a, line, column)))
            for place, term in zip(own, terms, strict=True):
                vec.add_product(place, x, term)
    with builder.if_then(add):  # a row that stands there twice is read before any is written
        for place, target, mask, _ in block:
            builder.store(builder.fadd(builder.load(place), vec.load(target, mask)), place)
    for place, target, _, count in block:
        if count is None:
            vec.store(builder.load(place), target)
        else:
            vec.store_first(builder.load(place), target, count, often=False)


@intrinsic(prefer_literal=True)
def _multiply(typingctx, rows, vectors, m, n, k, a, at, a_row, a_col, b, bt, b_row, c, ct, c_row, add):
    signature = types.void(
        rows, vectors, *(types.intp,) * 3, a, *(types.intp,) * 3, b, *(types.intp,) * 2, c, *(types.intp,) * 2, types.boolean
    )

    def codegen(context, builder, signature, args):
        _, _, m, n, k, a, at, a_row, a_col, b, bt, b_row, c, ct, c_row, add = args
        vec = Vectors(context, builder, signature.args[5])
        a = vec.data(signature.args[5], a, at)
        b = vec.data(signature.args[9], b, bt)
        c = vec.data(signature.args[12], c, ct)
        last = vec.minus(m, 1)  # rows beyond it are the last once more
        lines = [vec.least(r, last) for r in range(rows.literal_value)]
        counts = [vec.minus(n, v * vec.lanes) for v in range(vectors.literal_value)]
        _block(vec, lines, counts, k, a, a_row, a_col, b, b_row, c, c_row, add)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic(prefer_literal=True)
def _multiply_whole(typingctx, rows, vectors, k, a, at, a_row, a_col, b, bt, b_row, c, ct, c_row, add):
    signature = types.void(
        rows, vectors, types.intp, a, *(types.intp,) * 3, b, *(types.intp,) * 2, c, *(types.intp,) * 2, types.boolean
    )

    def codegen(context, builder, signature, args):
        _, _, k, a, at, a_row, a_col, b, bt, b_row, c, ct, c_row, add = args
        vec = Vectors(context, builder, signature.args[3])
        a = vec.data(signature.args[3], a, at)
        b = vec.data(signature.args[7], b, bt)
        c = vec.data(signature.args[10], c, ct)
        lines = [int64(r) for r in range(rows.literal_value)]
        _block(vec, lines, [None] * vectors.literal_value, k, a, a_row, a_col, b, b_row, c, c_row, add, True)
        return context.get_dummy_value()

    return signature, codegen


def _moving(body: Callable) -> Callable:
    """Return the intrinsic on m × n elements of ``a`` that go to ``out``, each in rows that stand ``a_row`` and ``out_row`` apart."""

    @intrinsic
    def move(typingctx, m, n, a, at, a_row, out, ot, out_row):
        def codegen(context, builder, signature, args):
            m, n, a, at, a_row, out, ot, out_row = args
            vec = Vectors(context, builder, signature.args[2])
            body(vec, m, n, vec.data(signature.args[2], a, at), a_row, vec.data(signature.args[5], out, ot), out_row)
            return context.get_dummy_value()

        return types.void(types.intp, types.intp, a, types.intp, types.intp, out, types.intp, types.intp), codegen

    return move


@_moving
def _copy_rows(vec, m, n, a, a_row, out, out_row):
    with vec.loop(n, vec.lanes) as start:
        left = vec.minus(n, start)
        mask = vec.before(left)
        with vec.loop(m) as r:
            value = vec.load(vec.at(a, start, vec.times(r, a_row)), mask)
            vec.store_first(value, vec.at(out, start, vec.times(r, out_row)), left)


@_moving
def _spread_rows(vec, m, n, a, a_row, out, out_row):
    wide = WIDE * vec.lanes
    with vec.loop(m) as r:
        line, target = vec.at(a, vec.times(r, a_row)), vec.at(out, vec.times(r, wide))
        with vec.loop(n) as q:
            place = vec.at(target, vec.times(q, out_row))
            for v in range(WIDE):
                vec.store(vec.load(vec.at(line, vec.times(q, wide), v * vec.lanes)), vec.at(place, v * vec.lanes))


@_moving
def _turn_rows(vec, m, n, a, a_row, out, out_row):
    last_row, last_column = vec.minus(m, 1), vec.minus(n, 1)
    with vec.loop(m, vec.lanes) as top, vec.loop(n, vec.lanes) as first:
        mask = vec.before(vec.minus(n, first))
        rows = []
        for r in range(vec.lanes):
            line = vec.times(vec.least(vec.builder.add(top, int64(r)), last_row), a_row)
            rows.append(vec.load(vec.at(a, line, first), mask))
        left = vec.minus(m, top)
        columns = list(enumerate(vec.transpose(rows)))
        whole = vec.less(vec.lanes - 1, left)
        for part in (False, True):
            with vec.builder.if_then(vec.builder.not_(whole) if part else whole):
                for r, column in reversed(columns):  # those beyond the last go where the last one is written after them
                    place = vec.at(out, vec.times(vec.least(vec.builder.add(first, int64(r)), last_column), out_row), top)
                    if part:
                        vec.store_first(column, place, left, often=False)
                    else:
                        vec.store(column, place)


@intrinsic
def _dot_rows(typingctx, n, k, a, at, b, bt, b_row, c, ct):
    def codegen(context, builder, signature, args):
        n, k, a, at, b, bt, b_row, c, ct = args
        kinds = signature.args
        vec = Vectors(context, builder, kinds[2])
        line, target = vec.data(kinds[2], a, at), vec.data(kinds[7], c, ct)
        start, last = vec.data(kinds[4], b, bt), vec.minus(n, 1)
        rows = [vec.at(start, vec.times(vec.least(int64(r), last), b_row)) for r in range(vec.lanes)]
        sums = vec.sums(vec.lanes)
        rest = builder.srem(k, int64(vec.lanes))
        whole = builder.sub(k, rest)

        def add_products(place, mask=None):
            own = vec.load(vec.at(line, place), mask)
            for row, total in zip(rows, sums, strict=True):
                vec.add_product(total, own, vec.load(vec.at(row, place), mask))

        with vec.loop(whole, vec.lanes) as place:
            add_products(place)
        with builder.if_then(vec.less(0, rest)):
            add_products(whole, vec.before(rest))
        vec.store_first(vec.fold([builder.load(total) for total in sums]), target, n)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, a, types.intp, b, types.intp, types.intp, c, types.intp), codegen


@intrinsic
def _prefetch(typingctx, m, n, a, at, a_row):
    def codegen(context, builder, signature, args):
        m, n, a, at, a_row = args
        vec = Vectors(context, builder, signature.args[2])
        a = vec.data(signature.args[2], a, at)
        with vec.loop(m) as i, vec.loop(n, LINE // vec.itemsize) as j:
            vec.prefetch(vec.at(a, vec.times(i, a_row), j), SECOND_CACHE)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, a, types.intp, types.intp), codegen


def prefetch(m: int, n: int, a: np.ndarray, at: int, a_row: int) -> None:
    """Have m × n elements of a brought near, which nothing waits for; it may reach beyond the array."""


def multiply(
    rows: int, vectors: int, m: int, n: int, k: int, a: np.ndarray, at: int, a_row: int, a_col: int,
    b: np.ndarray, bt: int, b_row: int, c: np.ndarray, ct: int, c_row: int, add: bool,
) -> None:  # fmt: skip
    """c (m × n) = a (m × k) · b (k × n), or added to c, each array from its position on.

    ``rows`` ≥ m and ``vectors`` of columns ≥ n are literals; k > 0. Elements of a stand ``a_row`` and ``a_col`` apart, rows of
    b and c ``b_row`` and ``c_row``. An element is the sum of its terms in their order, wherever in a block it stands.
    """
    if not (0 < m <= rows and 0 < n <= vectors * BYTES // c.itemsize):
        raise IndexError(f"{m} × {n} elements of a block of {rows} rows of {vectors} vectors")
    terms = a[at + np.arange(m)[:, None] * a_row + np.arange(k) * a_col], b[bt + np.arange(k)[:, None] * b_row + np.arange(n)]
    places = ct + np.arange(m)[:, None] * c_row + np.arange(n)
    c[places] = terms[0] @ terms[1] + (c[places] if add else 0)


def multiply_whole(
    rows: int, vectors: int, k: int, a: np.ndarray, at: int, a_row: int, a_col: int,
    b: np.ndarray, bt: int, b_row: int, c: np.ndarray, ct: int, c_row: int, add: bool,
) -> None:  # fmt: skip
    """Do `multiply` of a block that is not at a border: without masks it takes 5 % less time. Memory is asked for ahead."""
    columns = vectors * BYTES // c.itemsize
    multiply(rows, vectors, rows, columns, k, a, at, a_row, a_col, b, bt, b_row, c, ct, c_row, add)


def copy_rows(m: int, n: int, a: np.ndarray, at: int, a_row: int, out: np.ndarray, ot: int, out_row: int) -> None:
    """out (m × n) = a, in rows that stand ``a_row`` and ``out_row`` apart."""
    rows = np.arange(m)[:, None]
    out[ot + rows * out_row + np.arange(n)] = a[at + rows * a_row + np.arange(n)]


def spread_rows(m: int, n: int, a: np.ndarray, at: int, a_row: int, out: np.ndarray, ot: int, out_row: int) -> None:
    """Lay m rows of a, which stand ``a_row`` apart, in n panels of `WIDE` vectors of columns, which begin ``out_row`` apart."""
    wide = WIDE * BYTES // a.itemsize
    for q in range(n):
        copy_rows(m, wide, a, at + q * wide, a_row, out, ot + q * out_row, wide)


def turn_rows(m: int, n: int, a: np.ndarray, at: int, a_row: int, out: np.ndarray, ot: int, out_row: int) -> None:
    """out (n × m) = aᵀ, of rows that stand ``a_row`` and ``out_row`` apart."""
    rows = np.arange(m)[:, None]
    out[ot + rows + np.arange(n) * out_row] = a[at + rows * a_row + np.arange(n)]


def dot_rows(n: int, k: int, a: np.ndarray, at: int, b: np.ndarray, bt: int, b_row: int, c: np.ndarray, ct: int) -> None:
    """c[ct + j] = Σ a[at + i] · b[bt + j·b_row + i] over i < k, for j < n, at most as many as a vector has lanes."""
    c[ct + np.arange(n)] = b[bt + np.arange(n)[:, None] * b_row + np.arange(k)] @ a[at + np.arange(k)]


if not config.DISABLE_JIT:
    multiply, multiply_whole, prefetch, dot_rows = _multiply, _multiply_whole, _prefetch, _dot_rows
    copy_rows, spread_rows, turn_rows = _copy_rows, _spread_rows, _turn_rows
