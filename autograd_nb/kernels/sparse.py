"""Sparse tensors: coordinates in order, sums of what stands at the same place, products with dense matrices."""


def groups(keys, order, ids, firsts, found):
    """Write which of the distinct ``keys`` (sorted; ``order``: where they stood) each place has, these keys, and their number."""
    group = -1
    for k in range(keys.size):
        if k == 0 or keys[k] != keys[k - 1]:
            group += 1
            firsts[group] = keys[k]
        ids[order[k]] = group
    found[0] = group + 1


def segment_sum(count, width, ids, values, out):
    """Write out[s] = Σ of the rows of ``values`` (of ``width`` elements) whose id is s, in their order."""
    for i in range(count * width):
        out[i] = 0
    for k in range(ids.size):
        to = ids[k] * width
        line, row = out[to : to + width], values[k * width : (k + 1) * width]
        for j in range(line.size):
            line[j] += row[j]


def product(m, n, rows, columns, values, b, out):
    """Write out = A @ b for the (m, …) matrix of ``values`` at (rows, columns) and b of ``n`` columns."""
    for i in range(m * n):
        out[i] = 0
    for k in range(rows.size):
        to, at = rows[k] * n, columns[k] * n
        line, row = out[to : to + n], b[at : at + n]
        v = values[k]
        for j in range(line.size):
            line[j] += v * row[j]


def row_starts(m, rows, out):
    """Write where each of the ``m`` rows begins among ``rows``, which are sorted, and where the last ends."""
    for i in range(m + 1):
        out[i] = 0
    for k in range(rows.size):
        out[rows[k] + 1] += 1
    for i in range(m):
        out[i + 1] += out[i]


def rows_of(starts, out):
    """Write the row of each element from where rows start."""
    for i in range(starts.size - 1):
        for k in range(starts[i], starts[i + 1]):
            out[k] = i
