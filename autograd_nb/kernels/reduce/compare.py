"""Whether two arrays hold the same."""

STEP = 1024  #: elements that are looked at before it is asked whether some differed


def same(x, y, out):
    """out[0] = whether all elements are equal; nan is equal to nothing. What follows a difference is hardly looked at."""
    n = x.size
    begin = 0
    while begin < n:
        end = min(begin + STEP, n)
        a, b = x[begin:end], y[begin:end]
        differ = False
        for i in range(a.size):
            differ = differ | (a[i] != b[i])
        if differ:
            break
        begin = end
    out[0] = begin >= n
