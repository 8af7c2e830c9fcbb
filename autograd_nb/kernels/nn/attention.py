"""Scaled dot-product attention, some queries of one head at a time, so that scores stay in cache between products and softmax."""

from __future__ import annotations

import numpy as np

from ...codegen.elementary import exp
from ...codegen.jit import FREE, NO, ONE, ZERO, helper
from ...codegen.processor import LINE
from ...codegen.runtime import row
from ...codegen.tiles import BESIDE, HALF, ROWS, dot_rows, multiply, multiply_whole, prefetch, turn_rows
from ...codegen.vectors import BYTES, independent, larger, one_copy, rolled

DEEP = 256  #: terms of a product before they are added to the output: a panel of so many rows stays in the first cache
SOON = 2  #: blocks of keys that are asked for ahead of time
NEAR = 1 << 16  #: bytes of an array at most that are asked for ahead of time
LONGEST = LINE // 4  #: elements of a line of the cache at most
FEW, BROAD = 2, 4  #: queries whose scores are dot products of rows; vectors of values that are then read together
ROOM = 2048  #: scores that stay in the first cache from one step of the softmax to the next
ALL, RESULT, FIRST_TERMS, LAST_TERMS = range(4)  # what of a product counts, see `product`
NONE, ADDED, ALLOWED = range(3)  # kinds of mask: none, floats that are added to scores, bools that say what may be seen


@helper(fastmath={"contract", "nnan", "nsz"})
def greatest(values, n):
    """Return the largest element; of no use when there is a nan."""
    top = values[0]
    for j in range(n):
        top = larger(values[j], top)
    return top


@helper
def powers(values, n):
    """values = e^values, of whole lines of the cache: vectors alone, no code for what would be left over."""
    for j in range((n + LONGEST - 1) & -LONGEST):
        independent()
        values[j] = exp(values[j])


@helper(fastmath=FREE)
def total(values, n):
    found = values[0]
    for j in range(1, n):
        found += values[j]
    return found


@helper(fastmath=FREE)
def dot(a, b, n):
    found = a[0] * b[0]
    for j in range(1, n):
        found += a[j] * b[j]
    return found


@helper
def masked(values, n, kind, mask, start, step, lowest):
    """Add the mask to scores, or make ``lowest`` what it does not allow."""
    one_copy()
    given = row(mask, start, n, step)
    if step == 1:
        if kind == ADDED:
            for j in range(n):
                independent()
                values[j] += given[j]
        else:
            for j in range(n):
                independent()
                values[j] = values[j] if given[j] != 0 else lowest
    else:
        for j in range(n):
            rolled()
            value = given[j * step]
            if kind == ADDED:
                values[j] += value
            elif value == 0:
                values[j] = lowest


@helper
def product(counts, shift, m, n, k, a, at, a_row, a_col, b, bt, b_row, c, ct, c_row, add):
    """c (m × n) = a (m × k) · b (k × n), or added to c, operands as those of `multiply`; k > 0.

    Where one of the matrices is that of a causal mask, what it leaves out is mostly not computed: of row i counts what is not
    beyond column i + ``shift`` of c (``RESULT``), not beyond that column of a (``FIRST_TERMS``, zero beyond), or not before
    column i − ``shift`` of a (``LAST_TERMS``, zero before).
    """
    one = BYTES // c.itemsize
    wide = (BROAD if m <= FEW else 2) * one
    for p in range(0, k, DEEP):
        for j in range(0, n, wide):
            width = min(wide, n - j)
            for y in range(0, m, ROWS):
                if counts == RESULT and j >= y + shift + ROWS:
                    continue
                begin = max(p, y - shift) if counts == LAST_TERMS else p
                end = min(k, p + DEEP, y + shift + ROWS) if counts == FIRST_TERMS else min(k, p + DEEP)
                more = add or p > 0
                if begin >= end:
                    if more:
                        continue
                    begin = end  # no terms
                high, deep = min(ROWS, m - y), end - begin
                x, w, z = at + y * a_row + begin * a_col, bt + begin * b_row + j, ct + y * c_row + j
                if m <= FEW:
                    multiply(FEW, BROAD, high, width, deep, a, x, a_row, a_col, b, w, b_row, c, z, c_row, more)
                elif high <= HALF:
                    for v in range(0, width, BESIDE * one):
                        multiply(HALF, BESIDE, high, min(width - v, BESIDE * one), deep, a, x, a_row, a_col, b, w + v, b_row, c, z + v, c_row, more)
                elif high == ROWS and width == wide:
                    multiply_whole(ROWS, 2, deep, a, x, a_row, a_col, b, w, b_row, c, z, c_row, more)
                elif width > one:
                    multiply(ROWS, 2, high, width, deep, a, x, a_row, a_col, b, w, b_row, c, z, c_row, more)
                else:
                    multiply(ROWS, 1, high, width, deep, a, x, a_row, a_col, b, w, b_row, c, z, c_row, more)


@helper
def reach(i, source, least):
    """Return where the tile of row i of causal scores ends: what is beyond is read by no product. ``least``: 0, or all where none are causal."""
    return max(least, min(source, (i // ROWS + 1) * ROWS))


@helper
def softmax_rows(scores, at, start, rows, source, causal, kind, mask, base, steps, blank, room):
    """Compute the softmax in place of a block of scores, masked, whose first row is number ``start`` and stands at ``at``; see `forward`.

    The rows of a tile lie side by side in ``room`` while their powers are computed, all in one loop: causal rows are short.
    """
    kept, lowest = scores.dtype.type(blank), scores.dtype.type(-np.inf)
    zero, one = scores.dtype.type(0), scores.dtype.type(1)
    together = ROWS if ROWS * source <= ROOM else 1
    least = 0 if causal else source
    for first in range(0, rows, together):
        some = min(together, rows - first)
        end = reach(start + first, source, least)
        for r in range(some):
            i = start + first + r
            values, line = row(scores, at + (first + r) * source, end, ONE), row(room, r * end, end, ONE)
            seen = max(least, min(end, i + 1))
            if kind != NONE:
                masked(values, seen, kind, mask, base + i * steps[2], steps[3], lowest)
            for j in range(seen, end):
                rolled()
                values[j] = lowest
            top = greatest(values, end)
            if not top > lowest:
                top = zero
            for j in range(end):
                independent()
                line[j] = values[j] - top
        powers(room, some * end)
        for r in range(some):
            values, line = row(scores, at + (first + r) * source, source, ONE), row(room, r * end, end, ONE)
            for j in range(end, source):
                independent()
                values[j] = zero
            sum_ = total(line, end)
            if sum_ == zero:  # all of it is masked
                seen = max(least, min(end, start + first + r + 1))
                for j in range(end):
                    rolled()
                    values[j] = kept if j < seen else zero
            else:
                inverse = one / sum_
                for j in range(end):
                    independent()
                    values[j] = line[j] * inverse


@helper
def few(rows, source, width, a, at, a_row, b, bt, b_row, c, ct, c_row):
    """c (rows × source) = a · bᵀ, where a has so few rows that to turn b would cost more."""
    lanes = BYTES // c.itemsize
    for j in range(0, source, lanes):
        prefetch(max(ZERO, min(lanes, source - j - SOON * lanes)), width, b, bt + (j + SOON * lanes) * b_row, b_row)
        for i in range(rows):
            dot_rows(min(lanes, source - j), width, a, at + i * a_row, b, bt + j * b_row, b_row, c, ct + i * c_row + j)


@helper
def score(directly, causal, start, rows, source, width, factor, q, query, q_row, k, key, k_row, turned, scores, at):
    """Write the scores of some rows of q: ``directly`` from the keys, or from ``turned``, the keys times ``factor``."""
    if directly:
        few(rows, source, width, q, query, q_row, k, key, k_row, scores, at, source)
        for i in range(rows * source):
            independent()
            scores[at + i] *= factor
    elif width:
        counts = RESULT if causal else ALL
        product(counts, start, rows, source, width, q, query, q_row, ONE, turned, ZERO, source, scores, at, source, NO)
    else:
        for i in range(rows * source):
            rolled()
            scores[at + i] = scores.dtype.type(0)


@helper
def place(batch, head, steps, i):
    """Return where row ``i`` of a matrix begins."""
    return batch * steps[0] + head * steps[1] + i * steps[2]


@helper
def ask(rows, width, array, at, apart):
    """Have rows brought near that are needed next, where they are not too many."""
    if rows * width * array.itemsize <= NEAR:
        prefetch(rows, width, array, at, apart)


def forward(
    first, last, heads, length, source, width, value_width, scale, causal, kind, blank, keep, block, q_steps, k_steps, v_steps, mask_steps,
    y_steps, q, k, v, mask, p, y,
):  # fmt: skip
    """p = softmax(scale · q kᵀ + mask), y = p v for the matrices from ``first`` to ``last``, ``block`` rows of q at a time.

    ``…_steps``: elements from one batch, head and row to the next (of ``mask``, column too), heads being the innermost of the
    batches; p is dense. ``blank``: the weights of a row of which all is masked. p is written only with ``keep``, y unless it is empty.
    """
    factor, lanes = y.dtype.type(scale), LINE // y.itemsize
    block = (block + ROWS - 1) // ROWS * ROWS  # tiles of causal scores begin at multiples of their rows (see `reach`)
    # one piece of memory for the keys, turned; what the softmax works on; and scores that are not kept
    directly = 0 < length <= FEW and width > 0
    beyond = 0 if directly else (width * source + lanes - 1) // lanes * lanes
    after = beyond + (max(ROOM, source) + LONGEST - 1) // LONGEST * LONGEST  # (see `powers`)
    room = np.empty(after if keep else after + min(length, block) * source, y.dtype)
    scores = p if keep else room
    batch, head = first // heads, first % heads
    for n in range(first, last):
        follows = head + 1 < heads
        beside, over = head + 1 if follows else ZERO, batch if follows else batch + 1
        if not directly:
            turn_rows(source, width, k, place(batch, head, k_steps, ZERO), k_steps[2], room, ZERO, source)
            for i in range(width * source):
                independent()
                room[i] *= factor
        for start in range(0, length, block):
            rows, more = min(block, length - start), start + block < length
            query, out, value = place(batch, head, q_steps, start), place(batch, head, y_steps, start), place(batch, head, v_steps, ZERO)
            at = (n * length + start) * source if keep else after
            if not more:
                ask(source, width, k, place(over, beside, k_steps, ZERO), k_steps[2])
                ask(source, value_width, v, place(over, beside, v_steps, ZERO), v_steps[2])
            then, last_head = batch if more else over, head if more else beside
            begin = start + block if more else ZERO
            ask(rows, width, q, place(then, last_head, q_steps, begin), q_steps[2])
            ask(rows, value_width, y, place(then, last_head, y_steps, begin), y_steps[2])
            if keep:
                ask(rows, source, p, at + rows * source, source)
            score(
                directly, causal, start, rows, source, width, factor, q, query, q_steps[2], k, place(batch, head, k_steps, ZERO), k_steps[2], room,
                scores, at,
            )  # fmt: skip
            base = batch * mask_steps[0] + head * mask_steps[1]
            softmax_rows(scores, at, start, rows, source, causal, kind, mask, base, mask_steps, blank, row(room, beyond, after - beyond, ONE))
            if y.size:
                counts = FIRST_TERMS if causal else ALL
                product(
                    counts, start, rows, value_width, source, scores, at, source, ONE, v, value, v_steps[2], y, out, y_steps[2], NO,
                )  # fmt: skip
        batch, head = over, beside


@helper
def slope_scores(slopes, at, p, weight, start, rows, source, causal, factor):
    """Turn the gradients, at ``at``, of the weights ``p`` of ``rows`` of queries, from ``start`` on, into those of their scores, in place."""
    least = 0 if causal else source
    for i in range(rows):
        end = reach(start + i, source, least)
        seen = max(least, min(end, start + i + 1))
        s, w = row(slopes, at + i * source, end, ONE), row(p, weight + i * source, end, ONE)
        for j in range(seen, end):
            rolled()
            s[j] = slopes.dtype.type(0)
        mean = dot(s, w, end)
        for j in range(end):
            independent()
            s[j] = w[j] * (s[j] - mean) * factor


def backward(
    first, last, heads, length, source, width, value_width, scale, causal, block, q_steps, k_steps, v_steps, g_steps, dq_steps, dk_steps,
    dv_steps, q, k, v, g, p, dq, dk, dv,
):  # fmt: skip
    """Write gradients of `forward` to q, k and v, given that of y."""
    block = (block + ROWS - 1) // ROWS * ROWS
    lanes = LINE // g.itemsize
    after = (value_width * source + lanes - 1) // lanes * lanes
    room = np.empty(after + min(block, length) * source, g.dtype)  # the values, turned, and the gradients of scores
    result, early, late = (RESULT, FIRST_TERMS, LAST_TERMS) if causal else (ALL, ALL, ALL)
    batch, head = first // heads, first % heads
    for n in range(first, last):
        follows = head + 1 < heads
        beside, over = head + 1 if follows else ZERO, batch if follows else batch + 1
        key, dkey, dvalue = place(batch, head, k_steps, ZERO), place(batch, head, dk_steps, ZERO), place(batch, head, dv_steps, ZERO)
        turn_rows(source, value_width, v, place(batch, head, v_steps, ZERO), v_steps[2], room, ZERO, source)
        for start in range(0, length, block):
            rows, more = min(block, length - start), start + block < length
            weight = (n * length + start) * source
            query, grad, dquery = place(batch, head, q_steps, start), place(batch, head, g_steps, start), place(batch, head, dq_steps, start)
            if not more:
                ask(source, width, k, place(over, beside, k_steps, ZERO), k_steps[2])
                ask(source, value_width, v, place(over, beside, v_steps, ZERO), v_steps[2])
                ask(source, width, dk, place(over, beside, dk_steps, ZERO), dk_steps[2])
                ask(source, value_width, dv, place(over, beside, dv_steps, ZERO), dv_steps[2])
            then, last_head = batch if more else over, head if more else beside
            begin = start + block if more else ZERO
            ask(rows, width, q, place(then, last_head, q_steps, begin), q_steps[2])
            ask(rows, value_width, g, place(then, last_head, g_steps, begin), g_steps[2])
            ask(rows, width, dq, place(then, last_head, dq_steps, begin), dq_steps[2])
            ask(rows, source, p, weight + rows * source, source)
            product(
                result, start, rows, source, value_width, g, grad, g_steps[2], ONE, room, ZERO, source, room, after, source, NO,
            )  # fmt: skip
            slope_scores(room, after, p, weight, start, rows, source, causal, g.dtype.type(scale))
            again = start > 0
            product(
                early, start, rows, width, source, room, after, source, ONE, k, key, k_steps[2], dq, dquery, dq_steps[2], NO
            )
            product(
                late, start, source, width, rows, room, after, ONE, source, q, query, q_steps[2], dk, dkey, dk_steps[2], again
            )
            product(
                late, start, source, value_width, rows, p, weight, ONE, source, g, grad, g_steps[2], dv, dvalue, dv_steps[2], again,
            )  # fmt: skip
        batch, head = over, beside
