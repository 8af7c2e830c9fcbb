"""Whether a block of elements lies inside of an array, for numbers that may be anything."""

import numpy as np

from .jit import helper
from .work import spend

MOST = 2.0**52  #: below it sums of floats are exact, and every size of an array is


@helper
def block(array, at, m, row, n, col, k=1, step=0):
    """IndexError unless ``array`` has the elements at + i·row + j·col + p·step for all i < m, j < n, p < k; they are counted too.

    In floats: integers would overflow, and so come back into the array. (``at`` may be a sum that has overflowed: addresses do alike.)
    """
    if m <= 0 or n <= 0 or k <= 0:
        return
    spend(np.float64(m) * np.float64(n) * np.float64(k))
    a = (np.float64(m) - 1.0) * np.float64(row)
    b = (np.float64(n) - 1.0) * np.float64(col)
    c = (np.float64(k) - 1.0) * np.float64(step)
    first = np.float64(at)
    if not (abs(a) < MOST and abs(b) < MOST and abs(c) < MOST and abs(first) < MOST):
        raise IndexError("a kernel of a file reaches beyond its memory")
    low = first + min(a, 0.0) + min(b, 0.0) + min(c, 0.0)
    high = first + max(a, 0.0) + max(b, 0.0) + max(c, 0.0)
    if low < 0.0 or high >= np.float64(array.size):
        raise IndexError("a kernel of a file reaches beyond its memory")


@helper
def same(a, b):
    """TypeError unless two arrays have elements of one size: vectors of both are read alike."""
    if a.itemsize != b.itemsize:
        raise TypeError("a kernel of a file is given arrays of different types")
