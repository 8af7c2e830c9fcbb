"""One layer of LSTM, GRU or plain RNN in one direction, over all steps of a batch of sequences, and its gradients.

Sequences are packed: the rows of step 0, then those of step 1, …; ``sizes`` says how many of the sequences, the longest first,
go on for each step. (A padded batch is the case of equal sizes.) The state is kept in place: a step overwrites the rows of the
sequences that take part in it, so the last state of each is what remains, in either direction. The input's product with its
weight is one GEMM over all steps; a step adds the state's product and applies the gates row by row.
"""

from __future__ import annotations

import numpy as np

from ..codegen.elementary import sigmoid, tanh
from ..codegen.jit import helper
from .matmul import gemm


@helper
def _product(a, b, transposed, c, m, n, k, add):
    """c (m × n) = a (m × k) · b, or · bᵀ for b (n × k) if ``transposed``; plus c if ``add``."""
    one, zero = c.dtype.type(1), c.dtype.type(0)
    if m == 0 or n == 0:
        return
    if k == 0:
        if not add:
            c[:m * n] = zero
        return
    gemm(a, False, k, b, transposed, k if transposed else n, c, n, m, n, k, one, one if add else zero)


@helper
def _starts(sizes):
    """The first row of each step."""
    starts = np.empty(sizes.size, np.int64)
    row = 0
    for t in range(sizes.size):
        starts[t] = row
        row += sizes[t]
    return starts


@helper
def _copy(source, target):
    for i in range(target.size):
        target[i] = source[i]


@helper
def _previous(sizes, starts, reverse, n, first, after, out):
    """Row of every step: the state before it, which is that ``after`` the step before, or the ``first`` one."""
    steps = sizes.size
    for t in range(steps):
        before = t + 1 if reverse else t - 1
        known = 0 if before < 0 or before >= steps else min(sizes[t], sizes[before])
        row = starts[t] * n
        if known:
            at = starts[before] * n
            _copy(after[at:at + known * n], out[row:row + known * n])
        _copy(first[known * n:sizes[t] * n], out[row + known * n:row + sizes[t] * n])


@helper
def _project_input(rows, inputs, n, x, w, biased, b1, b2, both, gates):
    """gates (rows × n) = x · wᵀ + b1 (+ b2 if ``both``)."""
    if biased:
        for r in range(rows):
            row = gates[r * n:r * n + n]
            if both:
                for j in range(row.size):
                    row[j] = b1[j] + b2[j]
            else:
                for j in range(row.size):
                    row[j] = b1[j]
    _product(x, w, True, gates, rows, n, inputs, biased)


@helper
def _sigmoid(row):
    for j in range(row.size):
        row[j] = sigmoid(row[j])


@helper
def _tanh(row):
    for j in range(row.size):
        row[j] = tanh(row[j])


# ------------------------------------------------------------------------------------------------------------ LSTM


def lstm(inputs, n, p, reverse, biased, sizes, x, w_ih, w_hh, b_ih, b_hh, w_hr, h0, c0, gates, cells, y, h, c):
    """Gates (i, f, g, o of each row, after their nonlinearity), cell states and outputs of all rows; last h and c.

    n: the size of the cell; p: that of the projected output, or n without a projection.
    """
    projected = w_hr.size > 0
    starts = _starts(sizes)
    steps = sizes.size
    _project_input(gates.size // (4 * n), inputs, 4 * n, x, w_ih, biased, b_ih, b_hh, True, gates)
    _copy(h0, h)
    _copy(c0, c)
    hidden = np.empty(sizes[0] * n, y.dtype) if projected else y
    for s in range(steps):
        t = steps - 1 - s if reverse else s
        count, start = sizes[t], starts[t]
        step = gates[start * 4 * n:(start + count) * 4 * n]
        _product(h, w_hh, True, step, count, 4 * n, p, True)
        for b in range(count):
            _sigmoid(step[b * 4 * n:b * 4 * n + 2 * n])
            _tanh(step[b * 4 * n + 2 * n:b * 4 * n + 3 * n])
            _sigmoid(step[b * 4 * n + 3 * n:b * 4 * n + 4 * n])
            i = step[b * 4 * n:b * 4 * n + n]
            f = step[b * 4 * n + n:b * 4 * n + 2 * n]
            g = step[b * 4 * n + 2 * n:b * 4 * n + 3 * n]
            o = step[b * 4 * n + 3 * n:b * 4 * n + 4 * n]
            cell = c[b * n:b * n + n]
            for j in range(cell.size):
                cell[j] = f[j] * cell[j] + i[j] * g[j]
            at = b * n if projected else (start + b) * n
            out = hidden[at:at + n]
            for j in range(out.size):
                out[j] = o[j] * tanh(cell[j])
        _copy(c[:count * n], cells[start * n:(start + count) * n])
        rows = y[start * p:(start + count) * p]
        if projected:
            _product(hidden, w_hr, True, rows, count, p, n, False)
        _copy(rows, h[:count * p])


def lstm_backward(
    n, p, reverse, has_gy, has_gh, has_gc, sizes, w_hh, w_hr, h0, c0, gates, cells, y, gy, gh, gc,
    dgates, before, hidden, dout, dh, dc,
):  # fmt: skip
    """The gradients by the gates (before their nonlinearity) and by the first states, and what those by the weights are made of:
    ``before``, the output before each row; with a projection ``hidden`` and ``dout``, its input and the gradient of its result.
    """
    projected = w_hr.size > 0
    starts = _starts(sizes)
    steps = sizes.size
    one, zero = dh.dtype.type(1), dh.dtype.type(0)
    _previous(sizes, starts, reverse, p, h0, y, before)
    cell_before = np.empty(cells.size, cells.dtype)
    _previous(sizes, starts, reverse, n, c0, cells, cell_before)
    if has_gh:
        _copy(gh, dh)
    else:
        dh[:] = zero
    if has_gc:
        _copy(gc, dc)
    else:
        dc[:] = zero
    wide = np.empty(sizes[0] * n, dh.dtype) if projected else dh
    row_tanh = np.empty(n, dh.dtype)
    for s in range(steps):
        t = s if reverse else steps - 1 - s
        count, start = sizes[t], starts[t]
        if has_gy:
            rows = gy[start * p:(start + count) * p]
            for j in range(rows.size):
                dh[j] += rows[j]
        if projected:
            _copy(dh[:count * p], dout[start * p:(start + count) * p])
            _product(dh, w_hr, False, wide, count, n, p, False)
        for b in range(count):
            r = start + b
            i = gates[r * 4 * n:r * 4 * n + n]
            f = gates[r * 4 * n + n:r * 4 * n + 2 * n]
            g = gates[r * 4 * n + 2 * n:r * 4 * n + 3 * n]
            o = gates[r * 4 * n + 3 * n:r * 4 * n + 4 * n]
            di = dgates[r * 4 * n:r * 4 * n + n]
            df = dgates[r * 4 * n + n:r * 4 * n + 2 * n]
            dg = dgates[r * 4 * n + 2 * n:r * 4 * n + 3 * n]
            do = dgates[r * 4 * n + 3 * n:r * 4 * n + 4 * n]
            cell = cells[r * n:r * n + n]
            last = cell_before[r * n:r * n + n]
            g_h = wide[b * n:b * n + n]
            g_c = dc[b * n:b * n + n]
            for j in range(row_tanh.size):
                row_tanh[j] = tanh(cell[j])
            if projected:
                full = hidden[r * n:r * n + n]
                for j in range(full.size):
                    full[j] = o[j] * row_tanh[j]
            for j in range(do.size):
                do[j] = g_h[j] * row_tanh[j] * o[j] * (one - o[j])
            for j in range(g_c.size):
                g_c[j] += g_h[j] * o[j] * (one - row_tanh[j] * row_tanh[j])
            for j in range(di.size):
                di[j] = g_c[j] * g[j] * i[j] * (one - i[j])
            for j in range(dg.size):
                dg[j] = g_c[j] * i[j] * (one - g[j] * g[j])
            for j in range(df.size):
                df[j] = g_c[j] * last[j] * f[j] * (one - f[j])
            for j in range(g_c.size):
                g_c[j] *= f[j]
        _product(dgates[start * 4 * n:], w_hh, False, dh, count, p, 4 * n, False)


# ------------------------------------------------------------------------------------------------------------- GRU


def gru(inputs, n, reverse, biased, sizes, x, w_ih, w_hh, b_ih, b_hh, h0, gates, news, y, h):
    """Gates (r, z, n of each row), the state's share of n before r is applied (``news``), outputs of all rows; last h."""
    starts = _starts(sizes)
    steps = sizes.size
    zero = y.dtype.type(0)
    _project_input(gates.size // (3 * n), inputs, 3 * n, x, w_ih, biased, b_ih, b_ih, False, gates)
    _copy(h0, h)
    share = np.empty(sizes[0] * 3 * n, y.dtype)
    for s in range(steps):
        t = steps - 1 - s if reverse else s
        count, start = sizes[t], starts[t]
        for b in range(count):
            row = share[b * 3 * n:b * 3 * n + 3 * n]
            if biased:
                _copy(b_hh, row)
            else:
                row[:] = zero
        _product(h, w_hh, True, share, count, 3 * n, n, True)
        for b in range(count):
            at = (start + b) * 3 * n
            both = gates[at:at + 2 * n]
            add = share[b * 3 * n:b * 3 * n + 2 * n]
            for j in range(both.size):
                both[j] = sigmoid(both[j] + add[j])
            r, z, new = gates[at:at + n], gates[at + n:at + 2 * n], gates[at + 2 * n:at + 3 * n]
            news_row = news[(start + b) * n:(start + b) * n + n]
            _copy(share[b * 3 * n + 2 * n:b * 3 * n + 3 * n], news_row)
            for j in range(new.size):
                new[j] = tanh(new[j] + r[j] * news_row[j])
            state = h[b * n:b * n + n]
            for j in range(state.size):
                state[j] = new[j] + z[j] * (state[j] - new[j])
        _copy(h[:count * n], y[start * n:(start + count) * n])


def gru_backward(n, reverse, has_gy, has_gh, sizes, w_hh, h0, gates, news, y, gy, gh, dgates, dshare, before, dh):
    """The gradients by the input's share of the gates, by the state's share, and by the first state; the states before rows."""
    starts = _starts(sizes)
    steps = sizes.size
    one, zero = dh.dtype.type(1), dh.dtype.type(0)
    _previous(sizes, starts, reverse, n, h0, y, before)
    if has_gh:
        _copy(gh, dh)
    else:
        dh[:] = zero
    for s in range(steps):
        t = s if reverse else steps - 1 - s
        count, start = sizes[t], starts[t]
        if has_gy:
            rows = gy[start * n:(start + count) * n]
            for j in range(rows.size):
                dh[j] += rows[j]
        for b in range(count):
            at = (start + b) * 3 * n
            r, z, new = gates[at:at + n], gates[at + n:at + 2 * n], gates[at + 2 * n:at + 3 * n]
            dr, dz, dn = dgates[at:at + n], dgates[at + n:at + 2 * n], dgates[at + 2 * n:at + 3 * n]
            news_row = news[(start + b) * n:(start + b) * n + n]
            last = before[(start + b) * n:(start + b) * n + n]
            g = dh[b * n:b * n + n]
            for j in range(dn.size):
                dn[j] = g[j] * (one - z[j]) * (one - new[j] * new[j])
            for j in range(dz.size):
                dz[j] = g[j] * (last[j] - new[j]) * z[j] * (one - z[j])
            for j in range(dr.size):
                dr[j] = dn[j] * news_row[j] * r[j] * (one - r[j])
            _copy(dgates[at:at + 2 * n], dshare[at:at + 2 * n])
            dn_share = dshare[at + 2 * n:at + 3 * n]
            for j in range(dn_share.size):
                dn_share[j] = dn[j] * r[j]
            for j in range(g.size):
                g[j] *= z[j]
        _product(dshare[start * 3 * n:], w_hh, False, dh, count, n, 3 * n, True)


# ------------------------------------------------------------------------------------------------------------- RNN


def rnn(inputs, n, reverse, biased, relu, sizes, x, w_ih, w_hh, b_ih, b_hh, h0, y, h):
    """Outputs of all rows, tanh or relu of the sums, and the last state."""
    starts = _starts(sizes)
    steps = sizes.size
    zero = y.dtype.type(0)
    _project_input(y.size // n, inputs, n, x, w_ih, biased, b_ih, b_hh, True, y)
    _copy(h0, h)
    for s in range(steps):
        t = steps - 1 - s if reverse else s
        count, start = sizes[t], starts[t]
        step = y[start * n:(start + count) * n]
        _product(h, w_hh, True, step, count, n, n, True)
        if relu:
            for j in range(step.size):
                step[j] = zero if step[j] < zero else step[j]
        else:
            _tanh(step)
        _copy(step, h[:count * n])


def rnn_backward(n, reverse, relu, has_gy, has_gh, sizes, w_hh, h0, y, gy, gh, dgates, before, dh):
    """The gradients by the sums and by the first state; the states before rows."""
    starts = _starts(sizes)
    steps = sizes.size
    one, zero = dh.dtype.type(1), dh.dtype.type(0)
    _previous(sizes, starts, reverse, n, h0, y, before)
    if has_gh:
        _copy(gh, dh)
    else:
        dh[:] = zero
    for s in range(steps):
        t = s if reverse else steps - 1 - s
        count, start = sizes[t], starts[t]
        if has_gy:
            rows = gy[start * n:(start + count) * n]
            for j in range(rows.size):
                dh[j] += rows[j]
        step, out = dgates[start * n:(start + count) * n], y[start * n:(start + count) * n]
        if relu:
            for j in range(step.size):
                step[j] = dh[j] if out[j] > zero else zero
        else:
            for j in range(step.size):
                step[j] = dh[j] * (one - out[j] * out[j])
        _product(step, w_hh, False, dh, count, n, n, False)
