"""Sorting by keys: every dtype is mapped to uint64 keys that sort as its values do (NaN last, −0 = 0), so that one stable
argsort serves all of them."""

import numpy as np

from ...codegen.jit import helper
from ...codegen.runtime import copy
from ...codegen.vectors import independent, rolled

LANES = 8  #: rows of few elements that are sorted side by side
TOGETHER = 256  #: searches that advance together
FEW = 48  #: edges that are all looked at in a search
MANY = 4  #: edges for each value, up to which it is asked whether they are sorted
SMALL = 32  #: rows up to this long are sorted by insertion


@helper
def write_keys(bits, kind, width, infinity, flip, out):
    """Do what `keys` does, into unsigned integers of the elements' width or more."""
    T = out.dtype.type
    sign = T(np.uint64(1) << np.uint64(width - 1))
    rest, top = T(sign - T(1)), T(infinity)
    ones = T(sign | rest)
    turn = T(ones if flip else T(0))
    if kind == 2:
        for i in range(out.size):
            u = T(bits[i])
            size = T(u & rest)
            key = T(u | sign) if u < sign else T(ones ^ u)
            key = sign if size == T(0) else key
            key = ones if size > top else key
            out[i] = T(key ^ turn)
    else:
        if kind == 1:
            turn = T(turn ^ sign)
        for i in range(out.size):
            out[i] = T(T(bits[i]) ^ turn)


def keys(bits, kind, width, infinity, flip, out):
    """Write the sort keys of elements given as unsigned bits. ``kind``: 0 unsigned, 1 signed, 2 float, whose infinity has the bits
    ``infinity``; ``flip`` inverts the order."""
    write_keys(bits, kind, width, infinity, flip, out)


@helper
def _argsort_row(k, order, k2, order2, count, passes_bits):
    """Sort keys ``k`` with their ``order``, stable; all arrays but ``count`` are rows of one length, and scratch."""
    n = k.size
    if n <= SMALL:
        for i in range(1, n):
            key = k[i]
            o = order[i]
            j = i - 1
            while j >= 0 and k[j] > key:
                k[j + 1] = k[j]
                order[j + 1] = order[j]
                j -= 1
            k[j + 1] = key
            order[j + 1] = o
        return
    width = 8 if n < 8192 else 11
    buckets = 1 << width
    mask = np.uint64(buckets - 1)
    shift = 0
    swapped = False
    a, ao, b, bo = k, order, k2, order2
    while shift < passes_bits:
        s = np.uint64(shift)
        for i in range(buckets):
            count[i] = 0
        for i in range(n):
            count[(a[i] >> s) & mask] += 1
        if count[(a[0] >> s) & mask] != n:
            total = 0
            for i in range(buckets):
                c = count[i]
                count[i] = total
                total += c
            for i in range(n):
                key = a[i]
                digit = (key >> s) & mask
                place = count[digit]
                count[digit] = place + 1
                b[np.uintp(place)] = key
                bo[np.uintp(place)] = ao[i]
            a, b = b, a
            ao, bo = bo, ao
            swapped = not swapped
        shift += width
    if swapped:
        for i in range(n):
            k[i] = a[i]
            order[i] = ao[i]


def argsort(key, n, bits, out):
    """Write the stable order of each row of ``n`` keys. ``bits``: how many low bits of keys count."""
    k = np.empty(n, dtype=np.uint64)
    k2 = np.empty(n, dtype=np.uint64)
    order2 = np.empty(n, dtype=np.int64)
    count = np.empty(2048, dtype=np.int64)
    rows = out.size // n
    for r in range(rows):
        order = out[r * n : r * n + n]
        for i in range(order.size):
            order[i] = i
            k[i] = key[r * n + i]
        _argsort_row(k, order, k2, order2, count, bits)


def argsort_together(key, n, out):
    """Write the stable order of each row of ``n`` keys of 32 bits; there are ``LANES`` rows or more.

    Each key with its place makes one number, of which no two of a row are equal. `LANES` rows side by side are sorted by Batcher's
    odd-even merge sort (1968), whose comparisons are the same for all rows.
    """
    x = np.empty(n * LANES, dtype=np.int64)
    rows = out.size // n
    for r in range(0, rows, LANES):
        first = min(r, rows - LANES) * n
        for i in range(n):
            for lane in range(LANES):
                rolled()
                x[np.uintp(i * LANES + lane)] = (key[np.uintp(first + lane * n + i)] << np.uint64(31)) | np.uint64(i)
        p = 1
        while p < n:
            k = p
            while k:
                for j in range(k if k < p else 0, n - k, 2 * k):
                    if k == p or (j + k) & (2 * p - 1):
                        low, high = np.uintp(j * LANES), np.uintp((j + k) * LANES)
                        for i in range(min(k, n - k - j) * LANES):
                            independent()
                            u, v = x[low + np.uintp(i)], x[high + np.uintp(i)]
                            x[low + np.uintp(i)] = min(u, v)
                            x[high + np.uintp(i)] = max(u, v)
                k >>= 1
            p *= 2
        for i in range(n):
            for lane in range(LANES):
                rolled()
                out[np.uintp(first + lane * n + i)] = x[np.uintp(i * LANES + lane)] & np.int64(0x7FFFFFFF)


@helper
def _swap(a, o, first, second):
    i, j = np.uintp(first), np.uintp(second)
    t = a[i]
    a[i] = a[j]
    a[j] = t
    t2 = o[i]
    o[i] = o[j]
    o[j] = t2


@helper
def _quickselect(a, o, k):
    """Bring the k-th smallest key, with its place, to position k.

    Which of several equal elements is named is a matter of the algorithm: this one goes through PyTorch's steps of kthvalue,
    so that places, and with them gradients, are the same.
    """
    left = 0
    right = a.size - 1
    while right > left:
        if right == left + 1:
            if a[np.uintp(left)] > a[np.uintp(right)]:
                _swap(a, o, left, right)
            return
        _swap(a, o, left + (right - left) // 2, left + 1)
        if a[np.uintp(left + 1)] > a[np.uintp(right)]:
            _swap(a, o, left + 1, right)
        if a[np.uintp(left)] > a[np.uintp(right)]:
            _swap(a, o, left, right)
        if a[np.uintp(left + 1)] > a[np.uintp(left)]:
            _swap(a, o, left + 1, left)
        i = left + 1
        j = right
        pivot = a[np.uintp(left)]
        while True:
            i += 1
            while pivot > a[np.uintp(i)]:
                i += 1
            j -= 1
            while a[np.uintp(j)] > pivot:
                j -= 1
            if j < i:
                break
            _swap(a, o, i, j)
        _swap(a, o, left, j)
        if j <= k:
            left = i
        if j >= k:
            right = j - 1


def kth(key, n, k, out):
    """Write the place of the k-th smallest key (from 0) of each row of ``n``."""
    row = np.empty(n, dtype=np.uint64)
    o = np.empty(n, dtype=np.int64)
    for r in range(out.size):
        copy(row, key[r * n:], n)
        for i in range(n):
            o[i] = i
        _quickselect(row, o, k)
        out[r] = o[k]


@helper
def _row_less(x, width, a, b):
    """Return whether row ``a`` comes before row ``b``: what decides is the first element that is less or greater, which nan never is."""
    for j in range(width):
        left, right = x[a * width + j], x[b * width + j]
        if left < right:
            return True
        if left > right:
            return False
    return False


@helper
def _exchange(order, i, j):
    t = order[i]
    order[i] = order[j]
    order[j] = t


@helper
def _sift(x, width, order, low, root, size):
    """Let the element at ``root`` of the heap order[low:low + size] sink to its place."""
    while 2 * root + 1 < size:
        child = 2 * root + 1
        if child + 1 < size and _row_less(x, width, order[low + child], order[low + child + 1]):
            child += 1
        if not _row_less(x, width, order[low + root], order[low + child]):
            return
        _exchange(order, low + root, low + child)
        root = child


@helper
def _sort_by_heap(x, width, order, low, high):
    size = high - low
    for k in range(size // 2):
        _sift(x, width, order, low, size // 2 - 1 - k, size)
    for k in range(size - 1):
        _exchange(order, low, high - 1 - k)
        _sift(x, width, order, low, 0, size - 1 - k)


@helper
def _part_rows(x, width, order, low, high):
    """Return where the second part of order[low:high] begins, which is parted by the median of three of its rows."""
    a, b, c = low + 1, low + (high - low) // 2, high - 1
    if _row_less(x, width, order[a], order[b]):
        pivot = b if _row_less(x, width, order[b], order[c]) else c if _row_less(x, width, order[a], order[c]) else a
    else:
        pivot = a if _row_less(x, width, order[a], order[c]) else c if _row_less(x, width, order[b], order[c]) else b
    _exchange(order, low, pivot)
    pivot, i, j = order[low], low + 1, high
    while True:
        while i < high - 1 and _row_less(x, width, order[i], pivot):
            i += 1
        j -= 1
        while j > low and _row_less(x, width, pivot, order[j]):
            j -= 1
        if i >= j:
            return i
        _exchange(order, i, j)
        i += 1


def sort_rows(x, width, n, bounds, order):
    """Write the order of ``n`` rows of ``width`` elements; ``bounds`` is scratch for 3 · 128 ints.

    It is introsort with the steps of C++'s ``std::sort``, which PyTorch calls, since rows with nan have no order: where they end
    depends on which rows are compared.
    """
    for i in range(n):
        order[i] = i
    limit, size = 0, n
    while size > 1:
        limit, size = limit + 2, size // 2
    bounds[0], bounds[1], bounds[2] = 0, n, limit
    parts = 1
    while parts:
        parts -= 1
        low, high, depth = bounds[3 * parts], bounds[3 * parts + 1], bounds[3 * parts + 2]
        while high - low > 16:
            if depth == 0:
                _sort_by_heap(x, width, order, low, high)
                break
            depth -= 1
            cut = _part_rows(x, width, order, low, high)
            bounds[3 * parts], bounds[3 * parts + 1], bounds[3 * parts + 2] = low, cut, depth
            parts += 1
            low = cut
    for i in range(1, n):
        row = order[i]
        j = i
        if i < 16 and _row_less(x, width, row, order[0]):
            while j > 0:
                order[j] = order[j - 1]
                j -= 1
        while j > 0 and _row_less(x, width, row, order[j - 1]):
            order[j] = order[j - 1]
            j -= 1
        order[j] = row


def runs(x, order, width, inverse, counts, first, found):
    """Write groups of equal neighbouring rows (``width`` elements) of ``x`` read in ``order``.

    inverse[row] = its group, counts[group] = how many, first[group] = the row that begins it, found[0] = how many groups.
    """
    g = -1
    last = 0
    for i in range(order.size):
        o = order[i]
        new = i == 0
        if not new:
            for j in range(width):
                if x[o * width + j] != x[last * width + j]:
                    new = True
                    break
        if new:
            g += 1
            counts[g] = 0
            first[g] = o
        counts[g] += 1
        inverse[o] = g
        last = o
    found[0] = g + 1


@helper
def _rising(edges):
    """Return whether no element is less than the one before it, or nan."""
    good = True
    for i in range(edges.size):
        good &= edges[max(i, 1) - 1] <= edges[i]
    return good


@helper
def _counted(edges, values, right, out):
    """Write how many of a few sorted edges lie before each value: to look at all of them is quicker than to halve."""
    for i in range(values.size):
        v = values[i]
        before = np.int32(0)
        if right:
            for j in range(edges.size):
                before = np.int32(before + np.int32(not (edges[j] > v)))
        else:
            for j in range(edges.size):
                before = np.int32(before + np.int32(not (edges[j] >= v)))
        out[i] = before


@helper
def _halved(edges, values, right, out):
    """Write how many of the sorted edges lie before each value, many of which take each step together."""
    lows = np.empty(TOGETHER, np.int64)
    for first in range(0, values.size, TOGETHER):
        wanted = values[first : first + TOGETHER]
        for i in range(wanted.size):
            lows[i] = 0
        rest = edges.size
        while rest:
            half = (rest + 1) >> 1
            if right:
                for i in range(wanted.size):
                    lows[i] += half if not (edges[np.uintp(lows[i] + half - 1)] > wanted[i]) else 0
            else:
                for i in range(wanted.size):
                    lows[i] += half if not (edges[np.uintp(lows[i] + half - 1)] >= wanted[i]) else 0
            rest -= half
        for i in range(wanted.size):
            out[first + i] = lows[i]


def search(edges, values, order, rows, n, m, right, sorted_by, out):
    """out[r, i] = where values[r, i] would go in the sorted row edges[r]; one row of edges serves all when rows is 1.

    ``sorted_by``: whether ``order`` gives the order of each row of edges. Many searches take each step together: which half
    it leads to is anybody's guess, and a branch on it would be mispredicted every other time. In rows that are sorted all have equally
    far to go; in others each looks at the elements that PyTorch's looks at, so that they agree there too.
    """
    length = m if rows > 1 else out.size
    few = n <= FEW and not sorted_by
    lows, rests, steps = np.empty(TOGETHER, np.int64), np.empty(TOGETHER, np.int64), np.empty(TOGETHER, np.int64)
    for start in range(0, out.size, max(length, 1)):
        base = start // length * n
        if few and _rising(edges[base : base + n]):
            _counted(edges[base : base + n], values[start : start + length], right, out[start : start + length])
            continue
        if not sorted_by and n <= MANY * length and _rising(edges[base : base + n]):
            _halved(edges[base : base + n], values[start : start + length], right, out[start : start + length])
            continue
        for first in range(start, start + length, TOGETHER):
            wanted = values[first:min(first + TOGETHER, start + length)]
            for i in range(wanted.size):
                lows[i], rests[i] = 0, n
            longest = n
            while longest:
                for i in range(wanted.size):
                    half = rests[i] >> 1
                    mid = base + min(lows[i] + half, n - 1)
                    e = edges[np.uintp(order[np.uintp(mid)] + base if sorted_by else mid)]
                    beyond = not (e > wanted[i]) if right else not (e >= wanted[i])
                    steps[i] = np.int64(beyond) & np.int64(rests[i] > 0)
                for i in range(wanted.size):  # (apart, as sums by a choice among loads would be branches)
                    half = rests[i] >> 1
                    lows[i] += (half + 1) * steps[i]
                    rests[i] = half - (steps[i] & ~rests[i])
                longest >>= 1
            for i in range(wanted.size):
                out[first + i] = lows[i]


def count_ints(x, out):
    """out[v] = how often v occurs."""
    for i in range(out.size):
        out[i] = 0
    for i in range(x.size):
        out[np.uintp(x[i])] += 1


def sum_ints(x, weights, out):
    """out[v] = the sum of the weights where x is v."""
    for i in range(out.size):
        out[i] = 0
    for i in range(x.size):
        out[np.uintp(x[i])] += weights[i]
