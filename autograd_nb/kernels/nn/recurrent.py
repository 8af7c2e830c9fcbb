"""One layer of LSTM, GRU or plain RNN in one direction, over all steps of a batch of sequences, and its gradients.

Sequences are packed: the rows of step 0, then those of step 1, …; ``sizes`` says how many of the sequences, the longest first,
go on for each step. (A padded batch is the case of equal sizes.) The state is kept in place: a step overwrites the rows of the
sequences that take part in it, so the last state of each is what remains, in either direction. The input's product with its
weight is one GEMM over all steps; a step adds the state's product and applies the gates row by row.
"""

from __future__ import annotations

import numpy as np

from ...codegen.elementary import sigmoid, tanh
from ...codegen.jit import NO, YES, helper
from ...codegen.runtime import copy, row
from ...codegen.vectors import independent, masked
from ..products.tiled import panels, times_panels


@helper
def _starts(sizes):
    """Return the first row of each step."""
    starts = np.empty(sizes.size, np.int64)
    total = 0
    for t in range(sizes.size):
        starts[t] = total
        total += sizes[t]
    return starts


@helper
def _copy(source, target, n):
    for i in range(n):
        independent()
        target[i] = source[i]


@helper
def _add(source, target, n):
    for i in range(n):
        independent()
        target[i] += source[i]


@helper
def _tanh(x, n):
    for j in range(n):
        masked()
        x[j] = tanh(x[j])


@helper
def _begin(given, source, target):
    """Write the gradient by a last state, which may be missing."""
    if given:
        copy(target, source, target.size)
    else:
        target[:] = target.dtype.type(0)


@helper
def _previous(sizes, starts, reverse, n, first, after, out):
    """Write for the row of every step the state before it, which is that ``after`` the step before, or the ``first`` one."""
    steps = sizes.size
    for t in range(steps):
        before = t + 1 if reverse else t - 1
        known = 0 if before < 0 or before >= steps else min(sizes[t], sizes[before])
        to = starts[t] * n
        if known:
            _copy(row(after, starts[before] * n, known * n, 1), row(out, to, known * n, 1), known * n)
        rest = (sizes[t] - known) * n
        if rest:
            _copy(row(first, known * n, rest, 1), row(out, to + known * n, rest, 1), rest)


@helper
def _fill(rows, n, biased, b1, b2, both, out):
    """Make every row of ``out`` (rows × n) b1 (+ b2 if ``both``), where there are biases, for a product to add to."""
    if biased:
        b, c = row(b1, 0, n, 1), row(b2, 0, n, 1)
        for r in range(rows):
            line = row(out, r * n, n, 1)
            if both:
                for j in range(n):
                    independent()
                    line[j] = b[j] + c[j]
            else:
                _copy(b, line, n)


# ------------------------------------------------------------------------------------------------------------ LSTM


def lstm(inputs, n, p, reverse, biased, sizes, x, w_ih, w_hh, b_ih, b_hh, w_hr, h0, c0, gates, cells, y, h, c):
    """Write gates (i, f, g, o of each row, after their nonlinearity), cell states and outputs of all rows; last h and c.

    n: the size of the cell; p: that of the projected output, or n without a projection.
    """
    projected = w_hr.size > 0
    starts = _starts(sizes)
    steps = sizes.size
    rows = gates.size // (4 * n)
    _fill(rows, 4 * n, biased, b_ih, b_hh, YES, gates)
    times_panels(rows, 4 * n, inputs, x, panels(inputs, 4 * n, w_ih, YES), gates, biased)
    copy(h, h0, h.size)
    copy(c, c0, c.size)
    across, down = panels(p, 4 * n, w_hh, YES), panels(n if projected else 0, p, w_hr, YES)
    narrow = np.empty(sizes[0] * n if projected else 0, y.dtype)
    hidden = narrow if projected else y
    for s in range(steps):
        t = steps - 1 - s if reverse else s
        count, start = sizes[t], starts[t]
        times_panels(count, 4 * n, p, h, across, gates[start * 4 * n :], YES)
        for b in range(count):
            at = (start + b) * 4 * n
            i, f = row(gates, at, n, 1), row(gates, at + n, n, 1)
            g, o = row(gates, at + 2 * n, n, 1), row(gates, at + 3 * n, n, 1)
            cell, kept = row(c, b * n, n, 1), row(cells, (start + b) * n, n, 1)
            out = row(hidden, b * n if projected else (start + b) * n, n, 1)
            for j in range(n):
                masked()
                entering, staying = sigmoid(i[j]), sigmoid(f[j])
                new, shown = tanh(g[j]), sigmoid(o[j])
                state = staying * cell[j] + entering * new
                i[j], f[j], g[j], o[j] = entering, staying, new, shown
                cell[j], kept[j], out[j] = state, state, shown * tanh(state)
        if projected:
            times_panels(count, p, n, hidden, down, y[start * p :], NO)
        _copy(row(y, start * p, count * p, 1), row(h, 0, count * p, 1), count * p)


def lstm_backward(
    n, p, reverse, has_gy, has_gh, has_gc, sizes, w_hh, w_hr, h0, c0, gates, cells, y, gy, gh, gc,
    dgates, before, hidden, dout, dh, dc,
):  # fmt: skip
    """Write the gradients by the gates (before their nonlinearity) and by the first states, and what those by the weights are made of:
    ``before``, the output before each row; with a projection ``hidden`` and ``dout``, its input and the gradient of its result.
    """
    projected = w_hr.size > 0
    starts = _starts(sizes)
    steps = sizes.size
    one = dh.dtype.type(1)
    _previous(sizes, starts, reverse, p, h0, y, before)
    cell_before = np.empty(cells.size, cells.dtype)
    _previous(sizes, starts, reverse, n, c0, cells, cell_before)
    _begin(has_gh, gh, dh)
    _begin(has_gc, gc, dc)
    spread = np.empty(sizes[0] * n if projected else 0, dh.dtype)
    wide = spread if projected else dh
    across, up = panels(4 * n, p, w_hh, NO), panels(p if projected else 0, n, w_hr, NO)
    for s in range(steps):
        t = s if reverse else steps - 1 - s
        count, start = sizes[t], starts[t]
        if has_gy:
            _add(row(gy, start * p, count * p, 1), row(dh, 0, count * p, 1), count * p)
        if projected:
            _copy(row(dh, 0, count * p, 1), row(dout, start * p, count * p, 1), count * p)
            times_panels(count, n, p, dh, up, wide, NO)
        for b in range(count):
            r = start + b
            at = r * 4 * n
            i, f = row(gates, at, n, 1), row(gates, at + n, n, 1)
            g, o = row(gates, at + 2 * n, n, 1), row(gates, at + 3 * n, n, 1)
            di, df = row(dgates, at, n, 1), row(dgates, at + n, n, 1)
            dg, do = row(dgates, at + 2 * n, n, 1), row(dgates, at + 3 * n, n, 1)
            last = row(cell_before, r * n, n, 1)
            g_h, g_c = row(wide, b * n, n, 1), row(dc, b * n, n, 1)
            state = row(cells, r * n, n, 1)
            full = row(hidden, r * n if projected else 0, n if projected else 0, 1)
            for j in range(n):
                masked()
                entering, staying, new, shown = i[j], f[j], g[j], o[j]
                level, by_out = tanh(state[j]), g_h[j]
                by_state = g_c[j] + by_out * shown * (one - level * level)
                if projected:
                    full[j] = shown * level
                do[j] = by_out * level * shown * (one - shown)
                di[j] = by_state * new * entering * (one - entering)
                dg[j] = by_state * entering * (one - new * new)
                df[j] = by_state * last[j] * staying * (one - staying)
                g_c[j] = by_state * staying
        times_panels(count, p, 4 * n, dgates[start * 4 * n :], across, dh, NO)


# ------------------------------------------------------------------------------------------------------------- GRU


def gru(inputs, n, reverse, biased, sizes, x, w_ih, w_hh, b_ih, b_hh, h0, gates, news, y, h):
    """Write gates (r, z, n of each row), the state's share of n before r is applied (``news``), outputs of all rows; last h."""
    starts = _starts(sizes)
    steps = sizes.size
    rows = gates.size // (3 * n)
    _fill(rows, 3 * n, biased, b_ih, b_ih, NO, gates)
    times_panels(rows, 3 * n, inputs, x, panels(inputs, 3 * n, w_ih, YES), gates, biased)
    copy(h, h0, h.size)
    across = panels(n, 3 * n, w_hh, YES)
    share = np.empty(sizes[0] * 3 * n, y.dtype)
    for s in range(steps):
        t = steps - 1 - s if reverse else s
        count, start = sizes[t], starts[t]
        _fill(count, 3 * n, biased, b_hh, b_hh, NO, share)
        times_panels(count, 3 * n, n, h, across, share, biased)
        for b in range(count):
            at = (start + b) * 3 * n
            r, z, new = row(gates, at, n, 1), row(gates, at + n, n, 1), row(gates, at + 2 * n, n, 1)
            own = b * 3 * n
            to_r, to_z, to_new = row(share, own, n, 1), row(share, own + n, n, 1), row(share, own + 2 * n, n, 1)
            kept, state = row(news, (start + b) * n, n, 1), row(h, b * n, n, 1)
            for j in range(n):
                masked()
                reset, update, by_state = sigmoid(r[j] + to_r[j]), sigmoid(z[j] + to_z[j]), to_new[j]
                fresh = tanh(new[j] + reset * by_state)
                r[j], z[j], new[j], kept[j] = reset, update, fresh, by_state
                state[j] = fresh + update * (state[j] - fresh)
        _copy(row(h, 0, count * n, 1), row(y, start * n, count * n, 1), count * n)


def gru_backward(n, reverse, has_gy, has_gh, sizes, w_hh, h0, gates, news, y, gy, gh, dgates, dshare, before, dh):
    """Write the gradients by the input's share of the gates, by the state's share, and by the first state; the states before rows."""
    starts = _starts(sizes)
    steps = sizes.size
    one = dh.dtype.type(1)
    _previous(sizes, starts, reverse, n, h0, y, before)
    _begin(has_gh, gh, dh)
    across = panels(3 * n, n, w_hh, NO)
    for s in range(steps):
        t = s if reverse else steps - 1 - s
        count, start = sizes[t], starts[t]
        if has_gy:
            _add(row(gy, start * n, count * n, 1), row(dh, 0, count * n, 1), count * n)
        for b in range(count):
            at = (start + b) * 3 * n
            r, z, new = row(gates, at, n, 1), row(gates, at + n, n, 1), row(gates, at + 2 * n, n, 1)
            dr, dz, dn = row(dgates, at, n, 1), row(dgates, at + n, n, 1), row(dgates, at + 2 * n, n, 1)
            kept, last = row(news, (start + b) * n, n, 1), row(before, (start + b) * n, n, 1)
            g = row(dh, b * n, n, 1)
            sr, sz, sn = row(dshare, at, n, 1), row(dshare, at + n, n, 1), row(dshare, at + 2 * n, n, 1)
            for j in range(n):
                masked()
                reset, update, fresh, by_out = r[j], z[j], new[j], g[j]
                by_new = by_out * (one - update) * (one - fresh * fresh)
                by_update = by_out * (last[j] - fresh) * update * (one - update)
                by_reset = by_new * kept[j] * reset * (one - reset)
                dr[j], dz[j], dn[j] = by_reset, by_update, by_new
                sr[j], sz[j], sn[j] = by_reset, by_update, by_new * reset
                g[j] = by_out * update
        times_panels(count, n, 3 * n, dshare[start * 3 * n :], across, dh, YES)


# ------------------------------------------------------------------------------------------------------------- RNN


def rnn(inputs, n, reverse, biased, relu, sizes, x, w_ih, w_hh, b_ih, b_hh, h0, y, h):
    """Write outputs of all rows, tanh or relu of the sums, and the last state."""
    starts = _starts(sizes)
    steps = sizes.size
    zero = y.dtype.type(0)
    rows = y.size // n
    _fill(rows, n, biased, b_ih, b_hh, YES, y)
    times_panels(rows, n, inputs, x, panels(inputs, n, w_ih, YES), y, biased)
    copy(h, h0, h.size)
    across = panels(n, n, w_hh, YES)
    for s in range(steps):
        t = steps - 1 - s if reverse else s
        size, start = sizes[t] * n, starts[t] * n
        times_panels(sizes[t], n, n, h, across, y[start:], YES)
        out = row(y, start, size, 1)
        if relu:
            for j in range(size):
                independent()
                out[j] = zero if out[j] < zero else out[j]
        else:
            _tanh(out, size)
        _copy(out, row(h, 0, size, 1), size)


def rnn_backward(n, reverse, relu, has_gy, has_gh, sizes, w_hh, h0, y, gy, gh, dgates, before, dh):
    """Write the gradients by the sums and by the first state; the states before rows."""
    starts = _starts(sizes)
    steps = sizes.size
    one, zero = dh.dtype.type(1), dh.dtype.type(0)
    _previous(sizes, starts, reverse, n, h0, y, before)
    _begin(has_gh, gh, dh)
    across = panels(n, n, w_hh, NO)
    for s in range(steps):
        t = s if reverse else steps - 1 - s
        size, start = sizes[t] * n, starts[t] * n
        g, out, step = row(dh, 0, size, 1), row(y, start, size, 1), row(dgates, start, size, 1)
        if has_gy:
            _add(row(gy, start, size, 1), g, size)
        if relu:
            for j in range(size):
                independent()
                step[j] = g[j] if out[j] > zero else zero
        else:
            for j in range(size):
                independent()
                step[j] = g[j] * (one - out[j] * out[j])
        times_panels(sizes[t], n, n, dgates[start:], across, dh, NO)
