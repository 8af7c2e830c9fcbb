"""Counting into bins of any edges."""

import numpy as np


def histogramdd(rows, weighted, even, x, weight, edges, sizes, out):
    """out[bins of the row] += its weight (or 1) for each row of x, of ``sizes.size`` columns; ``edges``: those of all columns, one
    after another (``even``: equally spaced, so that a bin is found without searching). Rows outside the edges, or with nan, do not
    count; the last bin of a column includes its right edge."""
    for i in range(out.size):
        out[i] = out.dtype.type(0)
    width = sizes.size
    for r in range(rows):
        place = 0
        start = 0
        for d in range(width):
            n = sizes[d]
            v = x[r * width + d]
            if not (v >= edges[start] and v <= edges[start + n - 1]) or n < 2:
                place = -1
                break
            low, high = 0, n - 1  # v belongs into bin low in the end
            if even:
                first = edges[start]
                share = (v - first) / (edges[start + high] - first)
                low = min(int(share * high), high - 1) if share > 0 else 0  # (nan where the edges are one, or too far apart)
                while low > 0 and v < edges[start + low]:
                    low -= 1
                while low + 2 < n and v >= edges[start + low + 1]:
                    low += 1
            else:  # as std::upper_bound halves: edges that do not increase give what they give in PyTorch
                left = n
                while left > 0:
                    half = left >> 1
                    if v < edges[start + low + half]:
                        left = half
                    else:
                        low += half + 1
                        left -= half + 1
                low = min(low - 1, n - 2)
                if low < 0:
                    place = -1
                    break
            place = place * (n - 1) + low
            start += n
        if place >= 0:
            out[np.uintp(place)] += weight[r] if weighted else out.dtype.type(1)
