"""Sliding windows of images as columns, and columns added up to images.

``geometry`` holds, for three dims, input sizes, output sizes, kernel sizes, strides, paddings, dilations (18 ints).
"""

from __future__ import annotations

import numpy as np

from ...codegen.jit import helper


@helper
def seen(places, size, stride, shift):
    """Return (low, high): the places along a line, low ≤ i < high, whose element i·stride + shift is inside it."""
    low = 0 if shift >= 0 else min(places, (stride - 1 - shift) // stride)
    high = min(places, (size - shift + stride - 1) // stride) if size > shift else 0
    return low, max(low, high)


@helper
def following(line, z, lines, step):
    """Return the line of the output after ``line``, and what depth of the input it reads; a plane has ``lines``."""
    return (line + 1, z) if line + 1 < lines else (0, z + step)


@helper
def columns(x, geometry, channels, first, count, col, ld):
    """col (channels·kernel × count) = the inputs that output positions first … first + count see; rows of whole output lines.

    Positions are counted along the flattened output; ``first`` and ``count`` are multiples of the output's width. ``ld``:
    elements from one row of ``col`` to the next.
    """
    di, hi, wi, _, ho, wo, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw = geometry
    zero = col.dtype.type(0)
    lines = count // wo
    row = 0
    for c in range(channels):
        plane = c * di * hi * wi
        for a in range(kd):
            for b in range(kh):
                for e in range(kw):
                    shift = e * dw - pw
                    low, high = seen(wo, wi, sw, shift)
                    oh, z = (first // wo) % ho - 1, (first // wo // ho) * sd + a * dd - pd
                    for line in range(lines):
                        oh, z = following(oh, z, ho, sd)
                        y = oh * sh + b * dh - ph
                        out = col[row * ld + line * wo : row * ld + line * wo + wo]
                        if z < 0 or z >= di or y < 0 or y >= hi:
                            for i in range(out.size):
                                out[i] = zero
                            continue
                        start = plane + (z * hi + y) * wi + shift
                        for i in range(low):
                            out[i] = zero
                        if sw == 1:
                            inside = out[low:high]
                            source = x[start + low : start + high]
                            for i in range(inside.size):
                                inside[i] = source[i]
                        else:
                            for i in range(low, high):
                                out[np.uintp(i)] = x[np.uintp(start + i * sw)]
                        for i in range(high, wo):
                            out[np.uintp(i)] = zero
                    row += 1


@helper
def add_columns(col, ld, geometry, channels, first, count, x):
    """Do the transpose of `columns`: every element of ``col`` is added to the input it came from."""
    di, hi, wi, _, ho, wo, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw = geometry
    lines = count // wo
    row = 0
    for c in range(channels):
        plane = c * di * hi * wi
        for a in range(kd):
            for b in range(kh):
                for e in range(kw):
                    shift = e * dw - pw
                    low, high = seen(wo, wi, sw, shift)
                    oh, z = (first // wo) % ho - 1, (first // wo // ho) * sd + a * dd - pd
                    for line in range(lines):
                        oh, z = following(oh, z, ho, sd)
                        y = oh * sh + b * dh - ph
                        if z < 0 or z >= di or y < 0 or y >= hi:
                            continue
                        source = col[row * ld + line * wo : row * ld + line * wo + wo]
                        start = plane + (z * hi + y) * wi + shift
                        if sw == 1:
                            target = x[start + low : start + high]
                            inside = source[low:high]
                            for i in range(target.size):
                                target[i] += inside[i]
                        else:
                            for i in range(low, high):
                                x[np.uintp(start + i * sw)] += source[np.uintp(i)]
                    row += 1


def unfold(images, channels, geometry, x, out):
    """out (images, channels · window, places) = what each window of x (images, channels, D, H, W) sees, 0 outside."""
    di, hi, wi, do, ho, wo, kd, kh, kw = geometry[:9]
    size, places = channels * di * hi * wi, do * ho * wo
    block = channels * kd * kh * kw * places
    for n in range(images):
        columns(x[n * size : (n + 1) * size], geometry, channels, 0, places, out[n * block : (n + 1) * block], places)


def fold(images, channels, geometry, x, out):
    """Do the transpose of `unfold`: values of windows are added where they came from."""
    di, hi, wi, do, ho, wo, kd, kh, kw = geometry[:9]
    size, places = channels * di * hi * wi, do * ho * wo
    block = channels * kd * kh * kw * places
    for i in range(out.size):
        out[i] = 0
    for n in range(images):
        add_columns(x[n * block : (n + 1) * block], places, geometry, channels, 0, places, out[n * size : (n + 1) * size])
