"""Selection among keys that may be equal.

Which of several equal elements comes first in a top k or a mode is a matter of the algorithm. These go through the steps
of the C++ library's introspective sort and selection (Musser 1997), which PyTorch uses, so that indices, and with them gradients,
are the same. All work on a range of keys ``k`` and moves the payload ``o`` along.
"""

import numpy as np

from ...codegen.jit import ZERO, helper
from .sort import write_keys

FEW = 16  #: elements up to which those of the top are kept in order as they are found
BLOCK = 32  #: elements that are passed over where the least of them is none of the top
SHORT = 32  #: rows up to this long, of which as many as that
RUN = 16  #: ranges up to this long are left to the insertion sort


@helper
def _at(i):
    """Return an index of which Numba does not ask whether it counts from the end."""
    return np.uintp(i)


@helper
def _swap(k, o, i, j):
    t = k[_at(i)]
    k[_at(i)] = k[_at(j)]
    k[_at(j)] = t
    t2 = o[_at(i)]
    o[_at(i)] = o[_at(j)]
    o[_at(j)] = t2


@helper
def _insertion(k, o, first, last):
    for i in range(first + 1, last):
        key = k[_at(i)]
        place = o[_at(i)]
        j = i - 1
        while j >= first and key < k[_at(j)]:
            k[_at(j + 1)] = k[_at(j)]
            o[_at(j + 1)] = o[_at(j)]
            j -= 1
        k[_at(j + 1)] = key
        o[_at(j + 1)] = place


@helper
def _partition(k, o, first, last):
    """Partition by the median of three, which is moved to the front; return the cut."""
    a, b, c = first + 1, first + (last - first) // 2, last - 1
    if k[_at(a)] < k[_at(b)]:
        middle = b if k[_at(b)] < k[_at(c)] else c if k[_at(a)] < k[_at(c)] else a
    else:
        middle = a if k[_at(a)] < k[_at(c)] else c if k[_at(b)] < k[_at(c)] else b
    _swap(k, o, first, middle)
    pivot = k[_at(first)]
    i, j = first + 1, last
    while True:
        while k[_at(i)] < pivot:
            i += 1
        j -= 1
        while pivot < k[_at(j)]:
            j -= 1
        if i >= j:
            return i
        _swap(k, o, i, j)
        i += 1


@helper
def _sift(k, o, first, hole, size, key, place):
    """Let the hole of a heap sink to the bottom, then the element rise from there."""
    top = hole
    child = hole
    while child < (size - 1) // 2:
        child = 2 * (child + 1)
        if k[_at(first + child)] < k[_at(first + child - 1)]:
            child -= 1
        k[_at(first + hole)] = k[_at(first + child)]
        o[_at(first + hole)] = o[_at(first + child)]
        hole = child
    if size % 2 == 0 and child == (size - 2) // 2:
        child = 2 * (child + 1)
        k[_at(first + hole)] = k[_at(first + child - 1)]
        o[_at(first + hole)] = o[_at(first + child - 1)]
        hole = child - 1
    while hole > top and k[_at(first + (hole - 1) // 2)] < key:
        k[_at(first + hole)] = k[_at(first + (hole - 1) // 2)]
        o[_at(first + hole)] = o[_at(first + (hole - 1) // 2)]
        hole = (hole - 1) // 2
    k[_at(first + hole)] = key
    o[_at(first + hole)] = place


@helper
def _heap_select(k, o, first, middle, last):
    """Make a heap of the smallest of the range in its beginning, up to ``middle``."""
    size = middle - first
    for parent in range((size - 2) // 2 if size > 1 else -1, -1, -1):
        _sift(k, o, first, parent, size, k[_at(first + parent)], o[_at(first + parent)])
    for i in range(middle, last):
        if k[_at(i)] < k[_at(first)]:
            key, place = k[_at(i)], o[_at(i)]
            k[_at(i)] = k[_at(first)]
            o[_at(i)] = o[_at(first)]
            _sift(k, o, first, ZERO, size, key, place)


@helper
def _sort_heap(k, o, first, last):
    while last - first > 1:
        last -= 1
        key, place = k[_at(last)], o[_at(last)]
        k[_at(last)] = k[_at(first)]
        o[_at(last)] = o[_at(first)]
        _sift(k, o, first, ZERO, last - first, key, place)


@helper
def _depth(n):
    d = 0
    while n > 1:
        n >>= 1
        d += 2
    return d


@helper
def _sort(k, o, n):
    """Sort the first ``n``."""
    stack = np.empty((130, 3), dtype=np.int64)
    stack[0, 0] = 0
    stack[0, 1] = n
    stack[0, 2] = _depth(n)
    waiting = 1
    while waiting > 0:
        waiting -= 1
        first, last, depth = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2]
        while last - first > RUN:
            if depth == 0:
                _heap_select(k, o, first, last, last)
                _sort_heap(k, o, first, last)
                break
            depth -= 1
            cut = _partition(k, o, first, last)
            stack[waiting, 0] = cut
            stack[waiting, 1] = last
            stack[waiting, 2] = depth
            waiting += 1
            last = cut
    _insertion(k, o, ZERO, n)


@helper
def _nth(k, o, nth, n):
    """Bring the element of rank ``nth`` of the first ``n`` to its place, smaller ones before it."""
    first, last, depth = ZERO, n, _depth(n)
    while last - first > 3:
        if depth == 0:
            _heap_select(k, o, first, nth + 1, last)
            _swap(k, o, first, nth)
            return
        depth -= 1
        cut = _partition(k, o, first, last)
        if cut <= nth:
            first = cut
        else:
            last = cut
    _insertion(k, o, first, last)


@helper
def _few(key, count, k, o):
    """Write the ``count`` smallest keys and their places, in order; return whether they are the only such: of equal ones, where they
    matter, the algorithm decides."""
    filled = ZERO
    first = ZERO
    while first < key.size:
        last = min(first + BLOCK, key.size)
        if filled == count:  # most blocks have none
            block = key[first:last]
            least = block[0]
            for i in range(block.size):
                least = min(least, block[i])
            if least > k[count - 1]:
                first = last
                continue
        for i in range(first, last):
            value = np.uint64(key[i])
            if filled == count:
                if value > k[count - 1]:
                    continue
                if value == k[count - 1]:
                    return False
                filled -= 1
            j = filled
            while j > 0 and k[j - 1] > value:
                k[j] = k[j - 1]
                o[j] = o[j - 1]
                j -= 1
            if j > 0 and k[j - 1] == value:
                return False
            k[j] = value
            o[j] = i
            filled += 1
        first = last
    return True


def topk(bits, kind, width, infinity, flip, n, count, ordered, out):
    """Write the places of the ``count`` smallest keys of each row of ``n`` (the greatest elements, if ``flip``); in order, if ``ordered``.
    The elements are given as `sort.keys` takes them; keys of their own width fill vectors better than those."""
    k = np.empty(n, dtype=np.uint64)
    o = np.empty(n, dtype=np.int64)
    key = np.empty(n, dtype=bits.dtype)
    for r in range(out.size // count):
        write_keys(bits[r * n : r * n + n], kind, width, infinity, flip, key)
        if ordered and count <= FEW and (n <= SHORT or count * count <= n) and _few(key, count, k, o):
            for i in range(count):
                out[r * count + i] = o[i]
            continue
        for i in range(n):
            k[i] = key[i]
            o[i] = i
        if count * 64 <= n:
            _heap_select(k, o, ZERO, count, n)
            _sort_heap(k, o, 0, count)
        else:
            _nth(k, o, count - 1, n)
            if ordered:
                _sort(k, o, count - 1)
        for i in range(count):
            out[r * count + i] = o[i]


@helper
def _ranked(k, o, rank, n):
    """Return the key of rank ``rank`` of the first ``n``, and how many of its equals come before it; ``o`` is scratch.

    As only a value is asked for, what lies on the wrong side of a pivot is dropped, without a branch for each element.
    """
    size, depth, tried = n, _depth(n), ZERO
    while True:
        if size <= RUN or depth <= 0:  # few are left, or pivots were no good
            pivot = k[tried]
            tried += 1
        else:
            a, b, c = k[0], k[size >> 1], k[size - 1]
            pivot = max(min(a, b), min(max(a, b), c))
        below = same = ZERO
        for i in range(size):
            below += k[i] < pivot
            same += k[i] == pivot
        if below <= rank < below + same:
            return pivot, rank - below
        if size <= RUN:
            continue
        depth -= 1
        if depth == 0:
            _nth(k, o, rank, size)
            tried = rank
            continue
        kept = ZERO
        if rank < below:
            for i in range(size):
                value = k[i]
                k[kept] = value
                kept += value < pivot
        else:
            for i in range(size):
                value = k[i]
                k[kept] = value
                kept += value > pivot
            rank -= below + same
        size = kept


def median(key, n, skip, bits, out):
    """Write the place of the median (the lower one) of each row of ``n`` keys in stable order; of what is not nan, if ``skip``, else of
    the first nan if there is one. ``bits``: of the float that the keys stand for, whose nan is all ones; 0 for integers."""
    k = np.empty(n, dtype=np.uint64)
    o = np.empty(n, dtype=np.int64)
    limit = (np.uint64(1) << np.uint64(bits - 1)) * np.uint64(2) - np.uint64(1) if bits else np.uint64(0)
    for r in range(out.size):
        row = key[r * n : r * n + n]
        holes = ZERO
        if bits:
            for i in range(n):
                holes += row[i] >= limit
        if holes == n and skip:  # nothing is left: of equal ones the algorithm decides
            for i in range(n):
                k[i], o[i] = row[i], i
            _nth(k, o, ZERO, n)
            out[r] = o[0]
            continue
        if holes and not skip:
            out[r] = 0
            while row[out[r]] < limit:
                out[r] += 1
            continue
        for i in range(n):
            k[i] = row[i]
        value, before = _ranked(k, o, (n - holes - 1) // 2, n)
        for i in range(n):
            if row[i] == value:
                if before == 0:
                    out[r] = i
                    break
                before -= 1


@helper
def _insertion_of_nan(k, o, n, top):
    """Go through the steps of the insertion sort where no comparison holds with what is beyond ``top``."""
    for i in range(1, n):
        key, place = k[i], o[i]
        front = key < k[0] <= top  # what is less than the first goes before it, past whatever lies between
        j = i
        while j > 0 and (front or key < k[j - 1] <= top):
            k[j] = k[j - 1]
            o[j] = o[j - 1]
            j -= 1
        k[j] = key
        o[j] = place


def mode(key, n, bits, out):
    """Write the place of the most frequent key of each row of ``n``: the last in order of the smallest of several. nan (``bits`` as in
    `median`) equals nothing."""
    k = np.empty(n, dtype=np.uint64)
    o = np.empty(n, dtype=np.int64)
    top = (np.uint64(1) << np.uint64(bits - 1)) * np.uint64(2) - np.uint64(2) if bits else ~np.uint64(0)
    for r in range(out.size):
        holes = ZERO
        for i in range(n):
            k[i] = key[r * n + i]
            o[i] = i
            holes += k[i] > top
        if holes:
            _insertion_of_nan(k, o, n, top)
        else:
            _sort(k, o, n)
        most = 0
        count = 0
        for i in range(n):
            count += 1
            if i == n - 1 or k[i] != k[i + 1] or k[i] > top:
                if count > most:
                    most = count
                    out[r] = o[i]
                count = 0
