"""Scans along n of arrays (outer, n, inner) in C order; ``reverse`` walks from the end.

``acc`` is a buffer of at least ``inner`` elements of the type in which sums and products are kept (wider than the arrays'); rows
that are interleaved (inner > 1) advance together, so that the inner loop is vectorised and memory is read in order.
"""

import cmath

import numpy as np

from ...codegen.jit import helper, math


def cumsum(outer, n, inner, reverse, x, acc, out):
    """out[k] = x[0] + … + x[k]."""
    step = -1 if reverse else 1
    first = n - 1 if reverse else 0
    done = 0
    if inner == 1:  # four rows at a time: a sum waits for the one before it
        acc[0] = 0
        for r in range(0, outer - 3, 4):
            a = b = c = d = acc[0]
            at = r * n + first
            for _ in range(n):
                a += x[np.uintp(at)]
                b += x[np.uintp(at + n)]
                c += x[np.uintp(at + 2 * n)]
                d += x[np.uintp(at + 3 * n)]
                out[np.uintp(at)], out[np.uintp(at + n)], out[np.uintp(at + 2 * n)], out[np.uintp(at + 3 * n)] = a, b, c, d
                at += step
        done = outer // 4 * 4
    for r in range(done, outer):
        if inner == 1:
            acc[0] = 0
            s = acc[0]
            at = r * n + first
            for _ in range(n):
                s += x[np.uintp(at)]
                out[np.uintp(at)] = s
                at += step
            continue
        for i in range(inner):
            acc[i] = 0
        for j in range(n):
            at = (r * n + first + j * step) * inner
            row = x[at : at + inner]
            line = out[at : at + inner]
            for i in range(row.size):
                acc[i] += row[i]
                line[i] = acc[i]


def cumprod(outer, n, inner, reverse, exclusive, x, acc, out):
    """out[k] = x[0] · … · x[k], or without x[k]."""
    step = -1 if reverse else 1
    first = n - 1 if reverse else 0
    done = 0
    if inner == 1 and not exclusive:  # as in `cumsum`
        acc[0] = 1
        for r in range(0, outer - 3, 4):
            a = b = c = d = acc[0]
            at = r * n + first
            for _ in range(n):
                a *= x[np.uintp(at)]
                b *= x[np.uintp(at + n)]
                c *= x[np.uintp(at + 2 * n)]
                d *= x[np.uintp(at + 3 * n)]
                out[np.uintp(at)], out[np.uintp(at + n)], out[np.uintp(at + 2 * n)], out[np.uintp(at + 3 * n)] = a, b, c, d
                at += step
        done = outer // 4 * 4
    for r in range(done, outer):
        if inner == 1:
            acc[0] = 1
            s = acc[0]
            at = r * n + first
            for _ in range(n):
                before = s
                s *= x[np.uintp(at)]
                out[np.uintp(at)] = before if exclusive else s
                at += step
            continue
        for i in range(inner):
            acc[i] = 1
        for j in range(n):
            at = (r * n + first + j * step) * inner
            row = x[at : at + inner]
            line = out[at : at + inner]
            if exclusive:
                for i in range(row.size):
                    line[i] = acc[i]
                    acc[i] *= row[i]
            else:
                for i in range(row.size):
                    acc[i] *= row[i]
                    line[i] = acc[i]


@helper
def _zeros(x):
    found = 0
    for i in range(x.size):
        found += x[i] == 0
    return found


def prod_backward(outer, n, inner, whole, x, g, y, acc, out):
    """out[k] = g · y / x[k], the product of the others: as running products where any element is 0, so infinities and nan do what they do in PyTorch.
    ``whole``: there is one product, whose slopes are 0 where several factors are."""
    zeros = _zeros(x)
    if whole and zeros > 1:
        for i in range(out.size):
            out[i] = 0
        return
    for r in range(outer):
        if zeros == 0:
            for j in range(n):
                at = (r * n + j) * inner
                for i in range(inner):
                    out[at + i] = g[r * inner + i] * (y[r * inner + i] / x[at + i])
            continue
        for i in range(inner):
            acc[i] = 1
        for j in range(n):
            at = (r * n + j) * inner
            for i in range(inner):
                out[at + i] = acc[i]
                acc[i] *= x[at + i]
        for i in range(inner):
            acc[i] = 1
        for j in range(n - 1, -1, -1):
            at = (r * n + j) * inner
            for i in range(inner):
                out[at + i] = g[r * inner + i] * (out[at + i] * acc[i])
                acc[i] *= x[at + i]


def cumprod_backward(outer, n, inner, reverse, x, g, y, acc, out):
    """out[k] = Σ g[j] · y[j] / x[k] over j from k to the first 0; at that the sum over products without it; 0 behind."""
    step = -1 if reverse else 1
    begin = n - 1 if reverse else 0
    for r in range(outer):
        for i in range(inner):
            start = (r * n + begin) * inner + i
            stride = step * inner
            first = 0
            while first < n and x[start + first * stride] != 0:
                first += 1
            acc[i] = 0
            total = acc[i]
            at = start + (first - 1) * stride
            for _ in range(first):
                total += g[np.uintp(at)] * y[np.uintp(at)]
                out[np.uintp(at)] = total
                at -= stride
            low = r * n + (n - first if reverse else 0)
            if inner == 1:  # (apart from sums, which wait for each other, quotients are vectors)
                line, row = out[low : low + first], x[low : low + first]
                for j in range(line.size):
                    line[j] = line[j] / row[j]
            else:
                for j in range(first):
                    out[start + j * stride] = out[start + j * stride] / x[start + j * stride]
            for j in range(first, n):
                out[start + j * stride] = 0
            if first == n:
                continue
            acc[i] = 1
            total = acc[i] * g[start + first * stride]
            more = True
            for j in range(first + 1, n):
                k = start + j * stride
                more = more and x[k] != 0
                if more:
                    acc[i] *= x[k]
                    total += acc[i] * g[k]
                else:  # what is infinite stays so, and is nan as PyTorch's
                    total += acc[i] * 0
            out[start + first * stride] = total * y[start + (first - 1) * stride] if first > 0 else total


def linear_scan(outer, n, inner, reverse, a, b, acc, out):
    """out[k] = b[k] + a[k] · out[k − 1]."""
    step = -1 if reverse else 1
    first = n - 1 if reverse else 0
    for r in range(outer):
        if inner == 1:
            at = r * n + first
            acc[0] = b[at]
            s = acc[0]
            out[at] = s
            for _ in range(1, n):
                at += step
                s = b[np.uintp(at)] + a[np.uintp(at)] * s
                out[np.uintp(at)] = s
            continue
        for i in range(inner):
            acc[i] = 0
        for j in range(n):
            at = (r * n + first + j * step) * inner
            factor = a[at : at + inner]
            row = b[at : at + inner]
            line = out[at : at + inner]
            if j == 0:  # there is nothing before: a is not read, it may be nan
                for i in range(row.size):
                    acc[i] = row[i]
                    line[i] = row[i]
            else:
                for i in range(row.size):
                    acc[i] = row[i] + factor[i] * acc[i]
                    line[i] = acc[i]


def cummax(outer, n, inner, largest, x, out, index):
    """out[k] = the extreme of x[0 … k] (nan wins), index[k] the last place where it was attained."""
    for r in range(outer):
        start = r * n * inner
        if inner == 1:
            row = x[start : start + n]
            line = out[start : start + n]
            place = index[start : start + n]
            b = row[0]
            k = 0
            for j in range(row.size):  # (no comparison with nan holds, so that a nan stays)
                v = row[j]
                if ((v >= b) if largest else (v <= b)) | (v != v):
                    for i in range(k, j):  # not one by one: where no extreme follows, nothing waits for the one before
                        line[i] = b
                        place[i] = k
                    b = v
                    k = j
            for i in range(k, row.size):
                line[i] = b
                place[i] = k
            continue
        for i in range(inner):
            out[start + i] = x[start + i]
            index[start + i] = 0
        for j in range(1, n):
            at = start + j * inner
            row = x[at : at + inner]
            line = out[at : at + inner]
            place = index[at : at + inner]
            before = out[at - inner : at]
            place_before = index[at - inner : at]
            for i in range(row.size):
                v = row[i]
                b = before[i]
                takes = (v != v) | ((v >= b) if largest else (v <= b))
                line[i] = v if takes else b
                place[i] = j if takes else place_before[i]


def logcumsumexp(outer, n, inner, x, top, total, out):
    """out[k] = ln(e^x[0] + … + e^x[k]); ``top`` and ``total`` are buffers of inner elements."""
    for r in range(outer):
        for i in range(inner):
            top[i] = -np.inf
            total[i] = 0
        for j in range(n):
            at = (r * n + j) * inner
            for i in range(inner):
                v = np.float64(x[at + i])
                t = top[i]
                if v > t:
                    total[i] = total[i] * math.exp(t - v) + 1.0
                    top[i] = v
                elif v == t:
                    total[i] += 1.0
                else:
                    total[i] += math.exp(v - t)
                out[at + i] = top[i] + math.log(total[i])


@helper
def _complex_logaddexp(y, v):
    """Return ln(eʸ + eᵛ): the number with the larger real part is taken out of the sum, the second of equal ones (whose branch the result is of)."""
    if y != y or v != v:
        return complex(math.nan, math.nan)
    high, low = (v, y) if v.real >= y.real else (y, v)
    if math.isinf(high.real) and high.real == low.real:
        return y if high.real < 0 else cmath.log(cmath.exp(y) + cmath.exp(v))
    return high + cmath.log(1.0 + cmath.exp(low - high))


def complex_logcumsumexp(outer, n, inner, x, acc, out):
    """Do the same of complex numbers."""
    for r in range(outer):
        for i in range(inner):
            acc[i] = complex(-math.inf, 0.0)
        for j in range(n):
            at = (r * n + j) * inner
            for i in range(inner):
                acc[i] = _complex_logaddexp(acc[i], np.complex128(x[at + i]))
                out[at + i] = acc[i]


def histogram(low, high, x, out):
    """out = how many elements fall into each of equal bins between low and high (the last includes high)."""
    bins = out.size
    for i in range(bins):
        out[i] = 0
    kind = x.dtype.type
    first, last = kind(low), kind(high)
    for i in range(x.size):
        v = x[i]
        if v >= first and v <= last:  # what rounding makes of a value on an edge is as in PyTorch
            place = (v - first) * kind(bins) / (last - first)
            if not place <= bins:  # beyond all numbers, or 0 / 0 where the bounds are one
                place = (v / 2 - first / 2) / (last / 2 - first / 2) * bins if first < last else kind(0)
            out[min(int(place), bins - 1)] += 1
