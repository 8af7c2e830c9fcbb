"""Gather and scatter.

A tensor is read as (B0, B1, K, A0, A1): the indexed dim K of a given stride between dims walked in order. ``dims`` is the tuple
(sizes B0 B1 A0 A1, strides of B0 B1 K A0 A1). The other side (the output of a gather, the values of a scatter) is dense and in
the order B0 B1 index A0 A1, or has strides of its own, given as five more numbers. Indices have been checked to be in range.
"""

import numpy as np

from ...codegen.jit import helper
from ...codegen.runtime import copy, row, scratch
from ...codegen.vectors import independent, one_copy, rolled

SET, ADD, MUL, MAX, MIN = range(5)  #: how `put` and `scatter` combine
TOGETHER = 256  #: indices that are looked at together for those that are a thread's own


@helper
def _order(x):
    """Return what MAX and MIN compare (complex numbers never come with them, but the kernel is compiled for them too). nan, which is neither
    more nor less than anything, stays where it is, and is taken where it comes."""
    return (x + 0).real


def bounds(index, out):
    """out = [smallest, largest] index."""
    lo = index[0]
    hi = index[0]
    for i in range(index.size):
        v = index[i]
        lo = min(lo, v)
        hi = max(hi, v)
    out[0] = lo
    out[1] = hi


def wrap(index, n, out):
    """Write negative indices counted from the end."""
    for i in range(out.size):
        v = index[i]
        out[i] = v + n if v < 0 else v


def combine(outer, inner, n, out):
    """out = outer·n + inner: one index over two dims, the inner one of n elements."""
    for i in range(out.size):
        out[i] = outer[i] * n + inner[i]


def place(index, dims, out):
    """out = how many elements after the first stands what a combined index of four dims means, whose sizes and strides are ``dims``."""
    _, n1, n2, n3, s0, s1, s2, s3 = dims
    for i in range(out.size):
        rest, last = divmod(index[i], n3)
        rest, third = divmod(rest, n2)
        first, second = divmod(rest, n1)
        out[i] = first * s0 + second * s1 + third * s2 + last * s3


def pick(dims, x, index, out):
    """out[b, i, a] = x[b, index[i], a]."""
    n0, n1, m0, m1, s0, s1, step, t0, t1 = dims
    k = 0
    for b0 in range(n0):
        for b1 in range(n1):
            base = b0 * s0 + b1 * s1
            if m0 * m1 == 1:
                line = row(out, k, index.size, 1)
                for i in range(index.size):
                    line[i] = x[np.uintp(base + index[i] * step)]
                k += index.size
                continue
            for i in range(index.size):
                p = base + index[i] * step
                for _ in range(m0):
                    _pick_row(x, p, t1, row(out, k, m1, 1), m1)
                    k += m1
                    p += t0


@helper
def _pick_row(x, p, step, line, n):
    """Write the n elements of x from the p-th on, every ``step``-th, into a row."""
    one_copy()
    if step == 1:
        copy(line, row(x, p, n, 1), n)
    else:
        for j in range(n):
            independent()
            line[j] = x[np.uintp(p + j * step)]


@helper
def _own(index, first, by, begin, end, turn, of, found):
    """Find which of the indices from ``begin`` to ``end`` are this ``turn``'s of ``of``: by fours, each turn has as many places. Return how many.

    Each position is written where the next one of the turn's goes: a branch would be guessed wrongly every second time.
    """
    n = 0
    for i in range(begin, end):
        found[n] = i
        n += np.int64((((index[np.uintp(first + i * by)] >> 2) & 63) * of) >> 6 == turn)
    return n


@helper
def _put_lines(mode, dims, steps, count, value, index, out):
    """Do what `scatter` does where there is no dim behind that of the index; each mode has its loop."""
    one_copy()  # a function of its own has registers enough for the loop
    n0, n1, _, _, s0, s1, step, _, _, v0, v1, vi, _, _, _, _ = dims
    by_b, by, _ = steps
    first = 0
    for b0 in range(n0):
        for b1 in range(n1):
            base, q = b0 * s0 + b1 * s1, b0 * v0 + b1 * v1
            if mode == SET:
                for i in range(count):
                    out[np.uintp(base + index[np.uintp(first + i * by)] * step)] = value[np.uintp(q + i * vi)]
            elif mode == ADD:
                for i in range(count):
                    out[np.uintp(base + index[np.uintp(first + i * by)] * step)] += value[np.uintp(q + i * vi)]
            elif mode == MUL:
                for i in range(count):
                    out[np.uintp(base + index[np.uintp(first + i * by)] * step)] *= value[np.uintp(q + i * vi)]
            else:
                for i in range(count):
                    p = np.uintp(base + index[np.uintp(first + i * by)] * step)
                    x, a = value[np.uintp(q + i * vi)], out[p]
                    beyond = _order(x) > _order(a) if mode == MAX else _order(x) < _order(a)
                    out[p] = x if beyond | (x != x) else a
            first += by_b


def put(dims, mode, value, index, out):
    """out[b, index[i], a] = (op)= value[b, i, a], one after the other; ``dims`` goes on with the strides of value, and with (turn, of): where
    there is more than an element at each place, it is done for the places of that turn."""
    n0, n1, m0, m1, s0, s1, step, t0, t1, v0, v1, vi, w0, w1, turn, of = dims
    if m0 * m1 == 1:
        _put_lines(mode, dims, (0, 1, 0), index.size, value, index, out)
        return
    mine = scratch(TOGETHER, np.int64)
    for b0 in range(n0):
        for b1 in range(n1):
            base = b0 * s0 + b1 * s1
            from_ = b0 * v0 + b1 * v1
            for c in range(0, index.size, TOGETHER):
                end = min(c + TOGETHER, index.size)
                n = _own(index, 0, 1, c, end, turn, of, mine) if of > 1 else end - c
                for k in range(n):
                    i = mine[k] if of > 1 else c + k
                    for a0 in range(m0):
                        _put_row(mode, value, from_ + i * vi + a0 * w0, w1, out, base + index[i] * step + a0 * t0, t1, m1)


@helper
def _put_one(mode, value, q, out, p):
    """Put an element where another one is, by any of the modes."""
    x, a = value[np.uintp(q)], out[np.uintp(p)]
    if mode == SET:
        out[np.uintp(p)] = x
    elif mode == ADD:
        out[np.uintp(p)] = a + x
    elif mode == MUL:
        out[np.uintp(p)] = a * x
    elif mode == MAX:
        out[np.uintp(p)] = x if (_order(x) > _order(a)) | (x != x) else a
    else:
        out[np.uintp(p)] = x if (_order(x) < _order(a)) | (x != x) else a


@helper
def _put_row(mode, value, q, w, out, p, t, n):
    """Put n elements: every w-th of the values to every t-th of the output."""
    one_copy()
    if t != 1 or w != 1:
        for j in range(n):
            rolled()
            _put_one(mode, value, q + j * w, out, p + j * t)
        return
    line, source = row(out, p, n, 1), row(value, q, n, 1)
    if mode == SET:
        copy(line, source, n)
    elif mode == ADD:
        for j in range(n):
            independent()
            line[j] += source[j]
    elif mode == MUL:
        for j in range(n):
            independent()
            line[j] *= source[j]
    elif mode == MAX:
        for j in range(n):
            independent()
            a, x = line[j], source[j]
            line[j] = x if (_order(x) > _order(a)) | (x != x) else a
    else:
        for j in range(n):
            independent()
            a, x = line[j], source[j]
            line[j] = x if (_order(x) < _order(a)) | (x != x) else a


_pick = helper(pick)


def pick_within(dims, n, x, index, out):
    """Do what `pick` does; IndexError unless every index is in [0, n)."""
    least, most = index[0], index[0]
    for i in range(index.size):
        v = index[i]
        least, most = min(least, v), max(most, v)
    if least < 0 or most >= n:
        raise IndexError
    _pick(dims, x, index, out)


def fill_within(dims, n, value, index, out):
    """out[b, index[i], a] = value, negative indices counted from the end; IndexError, and nothing is written, if one is out of range."""
    n0, n1, m0, m1, s0, s1, step, t0, t1 = dims
    least, most = index[0], index[0]
    for i in range(index.size):
        v = index[i]
        least, most = min(least, v), max(most, v)
    if least < -n or most >= n:
        raise IndexError
    for b0 in range(n0):
        for b1 in range(n1):
            for i in range(index.size):
                v = index[i]
                p = b0 * s0 + b1 * s1 + (v + n if v < 0 else v) * step
                for a0 in range(m0):
                    for j in range(m1):
                        out[np.uintp(p + a0 * t0 + j * t1)] = value


def assign_within(dims, count, sizes, steps, a, b, c, d, value, out):
    """out[b, index[i], a] = value[b, i, a], the index being that of ``count`` dims, negative ones counted from the end; IndexError, and nothing is
    written, if one is out of range. ``dims``: sizes of the loops around and within, their strides, and those of value."""
    n0, n1, m0, m1, s0, s1, t0, t1, v0, v1, vi, w0, w1 = dims
    for k in range(count):
        index, n = a if k == 0 else b if k == 1 else c if k == 2 else d, sizes[k]
        least, most = index[0], index[0]
        for i in range(a.size):
            least, most = min(least, index[i]), max(most, index[i])
        if least < -n or most >= n:
            raise IndexError
    for b0 in range(n0):
        for b1 in range(n1):
            for i in range(a.size):
                p, q = b0 * s0 + b1 * s1, b0 * v0 + b1 * v1 + i * vi
                for k in range(count):
                    v = a[i] if k == 0 else b[i] if k == 1 else c[i] if k == 2 else d[i]
                    p += (v + sizes[k] if v < 0 else v) * steps[k]
                for a0 in range(m0):
                    for j in range(m1):
                        out[np.uintp(p + a0 * t0 + j * t1)] = value[np.uintp(q + a0 * w0 + j * w1)]


def scatter_by_mask(mask, value, x, out, found):
    """out = the elements of ``x``, or where the mask is true those of ``value``, in order, as long as there are; found = how often it is true."""
    q = 0
    for i in range(mask.size):
        out[i] = x[i]
        if mask[i]:
            if q < value.size:
                out[i] = value[np.uintp(q)]
            q += 1
    found[0] = q


def gather_by_mask(mask, x, out):
    """out = the elements of ``x`` where the mask is true, in order, as long as there is room; then zeros."""
    q = 0
    for i in range(mask.size):
        if q < out.size:
            out[np.uintp(q)] = x[i]
        q += np.int64(mask[i])
    for i in range(q, out.size):
        out[i] = out.dtype.type(0)


def assign_by_mask(width, step, along, mask, value, out):
    """Write the rows of ``value`` to those of ``out``, of ``width`` elements, where the mask is true; IndexError, and nothing is written, if they
    are not as many. ``step`` 0: the one row of value, and ``along`` 0: its one element."""
    found = 0
    for i in range(mask.size):
        found += mask[i]
    if step and found * step != value.size:
        raise IndexError
    q = 0
    for i in range(mask.size):
        if mask[i]:
            for j in range(width):
                out[np.uintp(i * width + j)] = value[np.uintp(q + j * along)]
            q += step


@helper
def _gather_lines(dims, steps, count, x, index, out):
    """Do what `gather` does where there is no dim behind that of the index."""
    one_copy()  # a function of its own has registers enough for the loop
    n0, n1, _, _, s0, s1, step, _, _ = dims
    by_b, by_k, _ = steps
    k = 0
    first = 0
    for b0 in range(n0):
        for b1 in range(n1):
            base = b0 * s0 + b1 * s1
            line = row(out, k, count, 1)
            for i in range(count):
                line[i] = x[np.uintp(base + index[np.uintp(first + i * by_k)] * step)]
            k += count
            first += by_b


def gather(dims, steps, count, x, index, out):
    """out[b, k, a] = x[b, index[b, k, a], a] for k < count; ``steps``: strides of the index by b, k and a, the last 0 or 1."""
    n0, n1, m0, m1, s0, s1, step, t0, t1 = dims
    by_b, by_k, by_a = steps
    if m0 * m1 == 1:
        _gather_lines(dims, steps, count, x, index, out)
        return
    k = 0
    first = 0
    for b0 in range(n0):
        for b1 in range(n1):
            base = b0 * s0 + b1 * s1
            for i in range(count):
                q = first + i * by_k
                p = base + index[np.uintp(q)] * step if by_a == 0 else base
                for _ in range(m0):
                    line = row(out, k, m1, 1)
                    if by_a == 0:
                        _pick_row(x, p, t1, line, m1)
                    else:
                        for j in range(m1):
                            line[j] = x[np.uintp(p + index[np.uintp(q + j)] * step + j * t1)]
                    k += m1
                    p += t0
                    q += m1
            first += by_b


_gather = helper(gather)


def gather_within(dims, steps, count, n, x, index, at, out):
    """Do what `gather` does; IndexError unless every index, of which ``at`` is all there are, is in [0, n)."""
    least, most = at[0], at[0]
    for i in range(at.size):
        v = at[i]
        least, most = min(least, v), max(most, v)
    if least < 0 or most >= n:
        raise IndexError
    _gather(dims, steps, count, x, index, out)


def scatter(dims, steps, mode, count, value, index, out):
    """out[b, index[b, k, a], a] (op)= value[b, k, a] for k < count, one after the other; ``steps``: strides of the index by b, k and a, the last
    0 or 1; ``dims`` goes on with the strides of value, and with (turn, of), which are those of `put` where the last step is 0."""
    n0, n1, m0, m1, s0, s1, step, t0, t1, v0, v1, vi, w0, w1, turn, of = dims
    by_b, by_k, by_a = steps
    if m0 * m1 == 1:
        _put_lines(mode, dims, steps, count, value, index, out)
        return
    mine = scratch(TOGETHER, np.int64)
    first = 0
    for b0 in range(n0):
        for b1 in range(n1):
            base, from_ = b0 * s0 + b1 * s1, b0 * v0 + b1 * v1
            for c in range(0, count, TOGETHER):
                end = min(c + TOGETHER, count)
                n = _own(index, first, by_k, c, end, turn, of, mine) if of > 1 else end - c
                for k in range(n):
                    i = mine[k] if of > 1 else c + k
                    at = first + i * by_k
                    p, q = base, from_ + i * vi
                    if by_a == 0:
                        p += index[np.uintp(at)] * step
                    for _ in range(m0):
                        if by_a == 0:
                            _put_row(mode, value, q, w1, out, p, t1, m1)
                        else:
                            for j in range(m1):
                                rolled()
                                _put_one(mode, value, q + j * w1, out, p + index[np.uintp(at + j)] * step + j * t1)
                        at += m1 * by_a
                        p += t0
                        q += w0
            first += by_b


def count_true(mask, out):
    """out[0] = the number of true elements."""
    n = 0
    for i in range(mask.size):
        n += np.int64(mask[i])
    out[0] = n


def true_places(mask, out, found):
    """Write the flat indices of the true elements, in order, as many as there is room for; found[0] = their number.

    It is another one than was counted where another thread changes the mask meanwhile. Each index is written where the next true one goes: a
    branch by the mask would be guessed wrongly every second time.
    """
    k = 0
    for i in range(mask.size):
        if k < out.size:
            out[k] = i
        k += np.int64(mask[i])
    found[0] = k


def first_true(mask, n, fill, shape, out):
    """out[r, d] = coordinate d of the r-th true element of a tensor of ``shape``, for r < n; ``fill`` where there are fewer."""
    dims, r = shape.size, 0
    for i in range(mask.size):
        if mask[np.uintp(i)]:
            if r == n:
                break
            rest = np.int64(i)
            for d in range(dims - 1, -1, -1):
                out[np.uintp(r * dims + d)] = rest % shape[np.uintp(d)]
                rest //= shape[np.uintp(d)]
            r += 1
    for j in range(r * dims, n * dims):
        out[np.uintp(j)] = fill


def unravel(flat, begin, end, shape, out):
    """out[d, k] = coordinate d of flat index k in a tensor of ``shape`` (an int64 array), for k from ``begin`` to ``end``.

    Only where an index lies in another row than the one before is anything divided.
    """
    last = shape.size - 1
    row = np.empty(shape.size, np.int64)
    low, high = np.int64(0), np.int64(0)
    for k in range(begin, end):
        v = flat[np.uintp(k)]
        if v < low or v >= high:
            rest = v // shape[last]
            low = rest * shape[last]
            high = low + shape[last]
            for d in range(last - 1, -1, -1):
                row[d] = rest % shape[d]
                rest //= shape[d]
        for d in range(last):
            out[np.uintp(d * flat.size + k)] = row[d]
        out[np.uintp(last * flat.size + k)] = v - low


def max_norm_rows(index, width, limit, p, weight):
    """Scale the rows of ``weight`` named by ``index`` (sorted, without repeats) down to p-norm ``limit``."""
    for i in range(index.size):
        row = weight[index[i] * width : index[i] * width + width]
        total = 0.0
        if p == np.inf:
            for j in range(row.size):
                total = max(total, np.float64(abs(row[j])))
        else:
            for j in range(row.size):
                total += np.float64(abs(row[j])) ** p
            total = total ** (1.0 / p)
        if total > limit:
            scale = row.dtype.type(limit / (total + 1e-7))
            for j in range(row.size):
                row[j] = row[j] * scale


def flip(outer, n, inner, x, out):
    """out[o, n−1−i, :] = x[o, i, :]."""
    for o in range(outer):
        if inner == 1:
            line, source = row(out, o * n, n, 1), row(x, o * n, n, 1)
            for j in range(n):
                independent()
                line[j] = source[n - 1 - j]
            continue
        for i in range(n):
            p = (o * n + i) * inner
            q = (o * n + n - 1 - i) * inner
            line, source = row(out, q, inner, 1), row(x, p, inner, 1)
            for j in range(inner):
                independent()
                line[j] = source[j]


def roll(outer, n, inner, shift, x, out):
    """out[o, (i + shift) mod n, :] = x[o, i, :], for 0 ≤ shift < n."""
    size = n * inner
    at = shift * inner
    less = min(at, size - at)
    if 4 * less <= size:  # all in one piece, then what comes round at the end of each row
        on, back, to, of = (at, 0, 0, size - at) if less == at else (0, less, at, 0)
        copy(row(out, on, out.size - less, 1), row(x, back, out.size - less, 1), out.size - less)
        for o in range(outer):
            for j in range(less):
                rolled()
                out[np.uintp(o * size + to + j)] = x[np.uintp(o * size + of + j)]
        return
    for o in range(outer):
        p = o * size
        a = out[p + at : p + size]
        b = x[p : p + size - at]
        for j in range(a.size):
            a[j] = b[j]
        a = out[p : p + at]
        b = x[p + size - at : p + size]
        for j in range(a.size):
            a[j] = b[j]


def triangle(batch, rows, columns, k, upper, x, out):
    """Write zeros on the other side of diagonal ``k`` of each matrix."""
    for b in range(batch):
        for r in range(rows):
            p = (b * rows + r) * columns
            cut = min(max(r + k if upper else r + k + 1, 0), columns)
            # (parts of lines, as a loop that begins somewhere is not made of vectors)
            none, some, source = out[p : p + cut], out[p + cut : p + columns], x[p + cut : p + columns]
            if not upper:
                none, some, source = some, none, x[p : p + cut]
            for j in range(none.size):
                none[j] = 0
            for j in range(some.size):
                some[j] = source[j]


def triangle_places(rows, columns, k, upper, out):
    """Write the row and column of each element on or above (below) diagonal ``k``: all rows, then all columns."""
    half = out.size // 2
    at = 0
    for r in range(rows):
        first = min(max(r + k, 0), columns) if upper else 0
        last = columns if upper else min(max(r + k + 1, 0), columns)
        for c in range(first, last):
            out[at] = r
            out[half + at] = c
            at += 1


def repeats(counts, out):
    """Write index i counts[i] times, in order."""
    k = 0
    for i in range(counts.size):
        for _ in range(counts[i]):
            out[k] = i
            k += 1
