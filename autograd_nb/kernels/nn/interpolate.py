"""Resizing of planes (depth × height × width): nearest neighbours, and weighted sums of neighbours dim by dim.

A dim's table lists, for each output place, ``taps`` inputs (the first ``count`` of them are used) and their weights. Tables of
all dims are joined: ``index`` and ``weight`` hold width, height, depth one after the other.
"""

from __future__ import annotations

import numpy as np

from ...codegen.jit import helper, math
from ...codegen.vectors import rolled

NARROW = 12  #: columns from which rows are worth loops of vectors
TOGETHER = 8  #: rows that a table is read for once
ROOM = 2048  #: elements of planes that are resized at a time
NEAREST, EXACT, LINEAR, CUBIC, SMOOTH_LINEAR, SMOOTH_CUBIC, LANCZOS = range(7)


def nearest_table(exact, n_in, n_out, scale, index):
    """Write the input place of each output place; as PyTorch, in float32. ``scale``: inputs per output, or 0 for n_in/n_out."""
    step = np.float32(scale) if scale > 0 else np.float32(n_in) / np.float32(n_out)
    for o in range(n_out):
        if exact:
            i = math.floor((np.float32(o) + np.float32(0.5)) * step)
        else:
            i = math.floor(np.float32(o) * step)
        index[o] = min(max(i, 0), n_in - 1)


@helper
def cubic_near(x, a):
    """Return the cubic convolution kernel at 0 ≤ x ≤ 1."""
    return ((a + 2) * x - (a + 3)) * x * x + 1


@helper
def cubic_far(x, a):
    """Return the cubic convolution kernel at 1 < x < 2."""
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


@helper
def filtered(mode, x):
    """Return the filter of anti-aliased resizing at x: a triangle, Keys' cubic with a = −1/2, Lanczos' with three lobes."""
    x = abs(x)
    if mode == SMOOTH_LINEAR:
        return max(1 - x, 0.0)
    if mode == SMOOTH_CUBIC:
        return cubic_near(x, -0.5) if x < 1 else cubic_far(x, -0.5) if x < 2 else 0.0
    if x >= 3:
        return 0.0
    if x == 0:
        return 1.0
    z = math.pi * x
    return math.sin(z) / z * (math.sin(z / 3) / (z / 3))


def table(mode, n_in, n_out, scale, aligned, taps, count, index, weight):
    """Fill the table of one dim (see the module's text)."""
    one = weight.dtype.type(1)
    zero = weight.dtype.type(0)
    half = weight.dtype.type(0.5)
    if aligned:
        step = weight.dtype.type(n_in - 1) / weight.dtype.type(n_out - 1) if n_out > 1 else zero
    else:
        step = weight.dtype.type(scale) if scale > 0 else weight.dtype.type(n_in) / weight.dtype.type(n_out)
    for o in range(n_out):
        at = o * taps
        if mode >= SMOOTH_LINEAR:
            reach = 1.0 if mode == SMOOTH_LINEAR else 2.0 if mode == SMOOTH_CUBIC else 3.0
            wide = max(step, one)
            support = reach * wide
            center = step * (weight.dtype.type(o) + half)  # as PyTorch, also with aligned corners
            low = max(int(center - support + 0.5), 0)
            used = min(max(min(int(center + support + 0.5), n_in) - low, 0), taps)
            total = zero
            narrow = one / wide
            for k in range(used):
                w = weight.dtype.type(filtered(mode, weight.dtype.type((k + low - center + 0.5) * narrow)))  # (each rounded as PyTorch does)
                total += w
                index[at + k] = low + k
                weight[at + k] = w
            if total != 0:
                for k in range(used):
                    weight[at + k] = weight[at + k] / total
            count[o] = used
            continue
        place = step * weight.dtype.type(o) if aligned else step * (weight.dtype.type(o) + half) - half
        if mode == LINEAR:
            place = max(place, zero)
        low = min(math.floor(place), n_in - 1)
        t = min(max(place - weight.dtype.type(low), zero), one)
        count[o] = taps
        if mode == LINEAR:
            index[at] = low
            index[at + 1] = min(low + 1, n_in - 1)
            weight[at] = one - t
            weight[at + 1] = t
        else:
            for k in range(4):
                index[at + k] = min(max(low - 1 + k, 0), n_in - 1)
            weight[at] = cubic_far(1.0 + t, -0.75)
            weight[at + 1] = cubic_near(t, -0.75)
            weight[at + 2] = cubic_near(one - t, -0.75)
            weight[at + 3] = cubic_far(2.0 - t, -0.75)


@helper
def together(planes, sizes):
    """Return how many planes are resized at a time: small ones many, so that a plane costs no calls."""
    di, hi, wi, _, _, wo = sizes
    return min(max(ROOM // max(di * hi * max(wi, wo), 1), 1), max(planes, 1))


@helper
def read(n_in, n_out, taps, count, index, places):
    """Write which inputs of a dim any output reads, in order; return how many."""
    if taps == 0:
        for i in range(n_in):
            places[i] = i
        return n_in
    for i in range(n_in):
        places[i] = -1
    for o in range(n_out):
        for k in range(o * taps, o * taps + count[o]):
            places[index[k]] = index[k]
    found = 0
    for i in range(n_in):
        if places[i] >= 0:
            places[found] = i
            found += 1
    return found


@helper
def lines(planes, sizes, taps, count, index):
    """Return (slices that are read, rows that are read, planes) of so many planes one after the other."""
    di, hi, _, do, ho, wo = sizes
    td, th, tw = taps
    depths, heights = np.empty(di, np.int64), np.empty(hi, np.int64)
    deep = read(di, do, td, count[wo + ho:], index[wo * tw + ho * th:], depths)
    high = read(hi, ho, th, count[wo:], index[wo * tw:], heights)
    slices, rows = np.empty(planes * deep, np.int64), np.empty(planes * deep * high, np.int64)
    for i in range(slices.size):
        slices[i] = i // deep * di + depths[i % deep]
        for b in range(high):
            rows[i * high + b] = slices[i] * hi + heights[b]
    whole = np.empty(planes, np.int64)
    for i in range(planes):
        whole[i] = i
    return slices, rows, whole


@helper
def along(rows, n_in, n_out, taps, count, index, weight, x, y):
    """Resize the ``rows`` of x; by two taps, a few rows together."""
    if taps == 2:
        for begin in range(0, rows.size, TOGETHER):
            some = rows[begin:min(begin + TOGETHER, rows.size)]
            for o in range(n_out):
                near, far, u, v = index[2 * o], index[2 * o + 1], weight[2 * o], weight[2 * o + 1]
                for j in range(some.size):
                    rolled()
                    at = some[j] * n_in
                    y[np.uintp(some[j] * n_out + o)] = u * x[np.uintp(at + near)] + v * x[np.uintp(at + far)]
        return
    for j in range(rows.size):
        source = x[rows[j] * n_in:rows[j] * n_in + n_in]
        out = y[rows[j] * n_out:rows[j] * n_out + n_out]
        for o in range(out.size):
            total = y.dtype.type(0)
            for k in range(o * taps, o * taps + count[o]):
                total += weight[np.uintp(k)] * source[np.uintp(index[np.uintp(k)])]
            out[o] = total


@helper
def along_back(rows, n_in, n_out, taps, count, index, weight, g, out):
    """Do the transpose of `along`; the other rows of ``out`` are 0."""
    for i in range(out.size):
        out[i] = out.dtype.type(0)
    if n_out < NARROW:
        for begin in range(0, rows.size, TOGETHER):
            some = rows[begin:min(begin + TOGETHER, rows.size)]
            for o in range(n_out):
                for k in range(o * taps, o * taps + count[o]):
                    w, at = weight[k], index[k]
                    for j in range(some.size):
                        rolled()
                        out[np.uintp(some[j] * n_in + at)] += w * g[np.uintp(some[j] * n_out + o)]
        return
    for j in range(rows.size):
        target = out[rows[j] * n_in:rows[j] * n_in + n_in]
        source = g[rows[j] * n_out:rows[j] * n_out + n_out]
        for o in range(source.size):
            v = source[o]
            for k in range(o * taps, o * taps + count[o]):
                target[np.uintp(index[np.uintp(k)])] += weight[np.uintp(k)] * v


@helper
def across(blocks, n_in, n_out, inner, taps, count, index, weight, x, y):
    """Resize the middle dim of x (…, n_in, inner) in those ``blocks``."""
    zero = y.dtype.type(0)
    for a in range(blocks.size):
        of, to = blocks[a] * n_in * inner, blocks[a] * n_out * inner
        for o in range(n_out):
            k = o * taps
            if inner < NARROW and taps == 2:
                near, far, u, v = of + index[k] * inner, of + index[k + 1] * inner, weight[k], weight[k + 1]
                for i in range(inner):
                    rolled()
                    y[np.uintp(to + i)] = u * x[np.uintp(near + i)] + v * x[np.uintp(far + i)]
            elif inner < NARROW:
                for i in range(inner):
                    total = zero
                    for j in range(k, k + count[o]):
                        rolled()
                        total += weight[np.uintp(j)] * x[np.uintp(of + index[np.uintp(j)] * inner + i)]
                    y[np.uintp(to + i)] = total
            elif taps == 2:
                out, u, v = y[to:to + inner], weight[k], weight[k + 1]
                first, second = x[of + index[k] * inner:of + (index[k] + 1) * inner], x[of + index[k + 1] * inner:of + (index[k + 1] + 1) * inner]
                for i in range(out.size):
                    out[i] = u * first[i] + v * second[i]
            else:
                out = y[to:to + inner]
                for i in range(out.size):
                    out[i] = zero
                for j in range(k, k + count[o]):
                    row, w = x[of + index[j] * inner:of + (index[j] + 1) * inner], weight[j]
                    for i in range(out.size):
                        out[i] += w * row[i]
            to += inner


@helper
def across_back(blocks, n_in, n_out, inner, taps, count, index, weight, g, out):
    """Do the transpose of `across`; other blocks are left as they are."""
    for a in range(blocks.size):
        of, to = blocks[a] * n_out * inner, blocks[a] * n_in * inner
        for i in range(to, to + n_in * inner):
            out[np.uintp(i)] = out.dtype.type(0)
        for o in range(n_out):
            for j in range(o * taps, o * taps + count[o]):
                w, at = weight[j], to + index[j] * inner
                if inner < NARROW:
                    for i in range(inner):
                        rolled()
                        out[np.uintp(at + i)] += w * g[np.uintp(of + i)]
                else:
                    row, source = out[at:at + inner], g[of:of + inner]
                    for i in range(source.size):
                        row[i] += w * source[i]
            of += inner


def resample(planes, sizes, taps, count, index, weight, x, y):
    """y = x resized. ``sizes``: depth, height, width of x, then of y; ``taps`` of a dim is 0 where it stays as it is."""
    di, hi, wi, do, ho, wo = sizes
    td, th, tw = taps
    some = together(planes, sizes)
    wide = np.empty(some * di * hi * wo if tw and (th or td) else 0, y.dtype)
    tall = np.empty(some * di * ho * wo if th and td else 0, y.dtype)
    slices, rows, whole = lines(some, sizes, taps, count, index)
    for p in range(0, planes, some):
        n = min(some, planes - p)
        current = x[p * di * hi * wi:(p + n) * di * hi * wi]
        out = y[p * do * ho * wo:(p + n) * do * ho * wo]
        if tw:
            target = wide if th or td else out
            along(rows[:rows.size // some * n], wi, wo, tw, count, index, weight, current, target)
            current = target
        for depth in range(2):  # one place that calls, so that the loops are compiled once
            t = td if depth else th
            if t == 0:
                continue
            n_in, n_out, inner, blocks = (di, do, ho * wo, whole[:n]) if depth else (hi, ho, wo, slices[:slices.size // some * n])
            start, at = (wo * tw + ho * th, wo + ho) if depth else (wo * tw, wo)
            target = tall if td and not depth else out
            across(blocks, n_in, n_out, inner, t, count[at:], index[start:], weight[start:], current, target)
            current = target
        if not (tw or th or td):
            for i in range(out.size):
                out[i] = current[i]


def resample_back(planes, sizes, taps, count, index, weight, g, out):
    """Do the transpose of `resample`: ``g`` has the sizes of y, ``out`` those of x."""
    di, hi, wi, do, ho, wo = sizes
    td, th, tw = taps
    some = together(planes, sizes)
    wide = np.empty(some * di * hi * wo if tw and (th or td) else 0, out.dtype)
    tall = np.empty(some * di * ho * wo if th and td else 0, out.dtype)
    slices, rows, whole = lines(some, sizes, taps, count, index)
    for p in range(0, planes, some):
        n = min(some, planes - p)
        current = g[p * do * ho * wo:(p + n) * do * ho * wo]
        result = out[p * di * hi * wi:(p + n) * di * hi * wi]
        if td and th and not tw:  # as slices that are not read get nothing
            for i in range(result.size):
                result[i] = result.dtype.type(0)
        for height in range(2):
            t = th if height else td
            if t == 0:
                continue
            n_in, n_out, inner, blocks = (hi, ho, wo, slices[:slices.size // some * n]) if height else (di, do, ho * wo, whole[:n])
            start, at = (wo * tw, wo) if height else (wo * tw + ho * th, wo + ho)
            target = tall if th and not height else wide if tw else result
            across_back(blocks, n_in, n_out, inner, t, count[at:], index[start:], weight[start:], current, target)
            current = target
        if tw:
            along_back(rows[:rows.size // some * n], wi, wo, tw, count, index, weight, current, result)
        elif not (td or th):
            for i in range(result.size):
                result[i] = current[i]


def byte_table(n_out, taps, count, index, weight, used, place, total, whole, bits):
    """Make of the table of one dim one of integers for bytes; ``total``: the weights of one input, added up.

    ``bits``: how many stand behind the point, as many as 16 bits have room for beside the largest weight.
    """
    largest = 0.0
    for o in range(n_out):
        at = o * taps
        end = at
        for k in range(at, at + count[o]):
            if end > at and place[end - 1] == index[k]:
                total[end - 1] += weight[k]
            else:
                place[end] = index[k]
                total[end] = weight[k]
                end += 1
        used[o] = end - at
        for k in range(at, end):
            largest = max(largest, total[k])
    bits[0] = 0
    while bits[0] < 22 and int(0.5 + largest * (1 << (bits[0] + 1))) < 1 << 15:
        bits[0] += 1
    for o in range(n_out):
        for k in range(o * taps, o * taps + used[o]):
            w = total[k] * (1 << bits[0])
            whole[k] = int(w - 0.5) if w < 0 else int(w + 0.5)


@helper
def byte_across(blocks, n_in, n_out, inner, taps, bits, count, index, whole, x, y):
    """Resize the middle dim of x (blocks, n_in, inner), all of bytes: sums are rounded and kept within 0 and 255."""
    for b in range(blocks):
        for o in range(n_out):
            for i in range(inner):
                total = (1 << bits) >> 1
                for k in range(o * taps, o * taps + count[o]):
                    total += whole[k] * np.int64(x[(b * n_in + index[k]) * inner + i])
                y[(b * n_out + o) * inner + i] = min(max(total >> bits, 0), 255)


def resample_bytes(planes, sizes, taps, count, index, whole, bits, x, y):
    """y = x resized, with bytes in between, as PyTorch does; the depth is 1."""
    _, hi, wi, _, ho, wo = sizes
    _, th, tw = taps
    wide = np.empty(hi * wo if tw and th else 0, y.dtype)
    for p in range(planes):
        current = x[p * hi * wi:(p + 1) * hi * wi]
        out = y[p * ho * wo:(p + 1) * ho * wo]
        for height in range(2):
            t = th if height else tw
            if t == 0:
                continue
            n_in, n_out, inner, blocks = (hi, ho, wo, 1) if height else (wi, wo, 1, hi)
            start, at, b = (wo * tw, wo, bits[1]) if height else (0, 0, bits[0])
            target = wide if th and not height else out
            byte_across(blocks, n_in, n_out, inner, t, b, count[at:], index[start:], whole[start:], current, target)
            current = target
        if not (tw or th):
            for i in range(out.size):
                out[i] = current[i]


@helper
def doubled(index, n_in, n_out):
    """Return whether every input is taken twice in a row."""
    if n_out != 2 * n_in:
        return False
    for i in range(n_in):
        if index[2 * i] != i or index[2 * i + 1] != i:
            return False
    return True


@helper
def neighbours(sizes, index):
    """Return which element of a plane stands at each place of a resized one, whose rows are not worth a loop each."""
    _, hi, wi, do, ho, wo = sizes
    table = np.empty(do * ho * wo, np.int64)
    for a in range(do):
        for b in range(ho):
            for c in range(wo):
                table[np.uintp((a * ho + b) * wo + c)] = (index[wo + ho + a] * hi + index[wo + b]) * wi + index[c]
    return table


def nearest(planes, sizes, index, x, y):
    """y[p, a, b, c] = x[p, depth index[a], height index[b], width index[c]]; ``index`` joined, width first."""
    di, hi, wi, do, ho, wo = sizes
    double = doubled(index, wi, wo)
    narrow = wo < NARROW
    table = neighbours((di, hi, wi, do if narrow else 0, ho, wo), index)
    for p in range(planes):
        for i in range(table.size):
            rolled()
            y[np.uintp(p * table.size + i)] = x[np.uintp(p * di * hi * wi + table[i])]
        for a in range(0 if narrow else do):
            for b in range(ho):
                at = ((p * do + a) * ho + b) * wo
                out = y[at:at + wo]
                if b > 0 and index[wo + b] == index[wo + b - 1]:
                    above = y[at - wo:at]
                    for c in range(out.size):
                        out[c] = above[c]
                    continue
                start = ((p * di + index[wo + ho + a]) * hi + index[wo + b]) * wi
                row = x[start:start + wi]
                if double:
                    for c in range(row.size):
                        out[np.uintp(2 * c)] = row[c]
                        out[np.uintp(2 * c + 1)] = row[c]
                else:
                    for c in range(out.size):
                        out[c] = row[np.uintp(index[c])]


def nearest_back(planes, sizes, index, g, out):
    """Do the transpose of `nearest`."""
    di, hi, wi, do, ho, wo = sizes
    for i in range(out.size):
        out[i] = 0
    double = doubled(index, wi, wo)
    narrow = wo < NARROW
    table = neighbours((di, hi, wi, do if narrow else 0, ho, wo), index)
    for p in range(planes):
        for i in range(table.size):
            rolled()
            out[np.uintp(p * di * hi * wi + table[i])] += g[np.uintp(p * table.size + i)]
        for a in range(0 if narrow else do):
            for b in range(ho):
                at = ((p * do + a) * ho + b) * wo
                source = g[at:at + wo]
                start = ((p * di + index[wo + ho + a]) * hi + index[wo + b]) * wi
                row = out[start:start + wi]
                if double:
                    for c in range(row.size):
                        row[c] += source[np.uintp(2 * c)] + source[np.uintp(2 * c + 1)]
                else:
                    for c in range(source.size):
                        row[np.uintp(index[c])] += source[c]
