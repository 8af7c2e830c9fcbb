"""Connectionist temporal classification: sums over all alignments of targets and time steps, in logarithms.

States s = 0 … 2S are blank, label, blank, label, …, blank; ``labels`` holds the targets of all samples, sample b's at ``places[b]``.
"""

from __future__ import annotations

import numpy as np

from ...codegen.elementary import exp, log
from ...codegen.jit import helper

EDGE = 2  #: states of no weight beside the first and the last


@helper
def add_logs(a, b, c, plus, out):
    """Write out = ln(eᵃ + eᵇ + eᶜ) + plus, element by element."""
    for s in range(out.size):
        top = max(a[s], b[s], c[s])
        least = top if top > -np.inf else 0.0
        out[s] = log(exp(a[s] - least) + exp(b[s] - least) + exp(c[s] - least)) + least + plus[s]


@helper
def read_states(labels, start, blank, here, again):
    """Write the class of each state, and 0 where the one two states on is another label, −∞ where none may be skipped: added to a logarithm."""
    for s in range(here.size):
        here[s] = labels[start + s // 2] if s % 2 else blank
    for s in range(again.size):
        again[s] = 0.0 if s % 2 and here[s] != here[s + 2] else -np.inf


def forward(batch, classes, states, blank, x, labels, places, lengths, sizes, losses, alpha):
    """Write ``losses``: −ln p(targets

    ``lengths``, ``sizes``: how many steps and labels each sample has; ``states``: room for the longest.
    """
    steps = x.size // (batch * classes)
    here, again = np.empty(states, np.int64), np.empty(states, np.float64)
    past = np.empty(states + EDGE, np.float64)  # those of the step before, behind two that are none
    skipped, chance, now = np.empty(states, np.float64), np.empty(states, np.float64), np.empty(states, np.float64)
    for b in range(batch):
        last, room = lengths[b], 2 * sizes[b] + 1
        table = alpha[b * steps * states:(b + 1) * steps * states]
        if last < steps or room < states:  # where no path leads
            table[:] = -np.inf
        if last == 0:
            losses[b] = 0 if sizes[b] == 0 else np.inf
            continue
        read_states(labels, places[b], blank, here[:room], again[:max(0, room - EDGE)])
        past[:] = -np.inf
        for s in range(min(2, room)):
            past[s + EDGE] = x[b * classes + here[s]]
        table[:room] = past[EDGE:room + EDGE]
        for t in range(1, last):
            probs = x[(t * batch + b) * classes:(t * batch + b + 1) * classes]
            skipped[:min(EDGE, room)] = -np.inf
            for s in range(room - EDGE):
                skipped[np.uintp(s + EDGE)] = past[np.uintp(s + EDGE)] + again[s]
            for s in range(room):
                chance[s] = probs[here[s]]
            add_logs(past[EDGE:room + EDGE], past[EDGE - 1:room + EDGE - 1], skipped, chance, now[:room])
            row = table[t * states:t * states + room]
            for s in range(room):
                row[s] = now[s]
            for s in range(room):
                past[np.uintp(s + EDGE)] = row[s]
        end, before = past[room + EDGE - 1], past[room + EDGE - 2]
        top = max(end, before)
        losses[b] = np.inf if top == -np.inf else -(log(exp(end - top) + exp(before - top)) + top)


def backward(batch, classes, states, blank, zero_infinity, g, x, labels, places, lengths, sizes, losses, alpha, out):
    """Write the gradient of `forward` to x as log_softmax would pass it on: eˣ − (posterior of the class), times g.

    The part eˣ has no effect after log_softmax; with it the gradient of what went into log_softmax is right by itself.
    """
    steps = x.size // (batch * classes)
    here, again = np.empty(states, np.int64), np.empty(states, np.float64)
    after = np.empty(states + EDGE, np.float64)  # those of the step behind, before two that are none
    skipped, chance, beta = np.empty(states, np.float64), np.empty(states, np.float64), np.empty(states, np.float64)
    sums = np.empty(classes, np.float64)
    for i in range(out.size):
        out[i] = 0
    for b in range(batch):
        last, room = lengths[b], 2 * sizes[b] + 1
        loss = np.float64(losses[b])
        if last == 0 or (zero_infinity and loss == np.inf):
            continue
        read_states(labels, places[b], blank, here[:room], again[:max(0, room - EDGE)])
        scale = np.float64(g[b])
        after[:] = -np.inf
        for t in range(last - 1, -1, -1):
            probs = x[(t * batch + b) * classes:(t * batch + b + 1) * classes]
            row = alpha[(b * steps + t) * states:(b * steps + t) * states + room]
            skipped[max(0, room - EDGE):room] = -np.inf
            for s in range(room - EDGE):
                skipped[s] = after[np.uintp(s + EDGE)] + again[s]
            for s in range(room):
                chance[s] = probs[here[s]]
            if t == last - 1:
                beta[:room] = -np.inf
                for s in range(max(0, room - EDGE), room):
                    beta[s] = chance[s]
            else:
                add_logs(after[:room], after[1:room + 1], skipped, chance, beta[:room])
            sums[:] = 0.0 if loss < np.inf else np.nan
            for s in range(room):
                after[s] = beta[s]
                beta[s] = exp(row[s] + beta[s] + loss - chance[s])
            for s in range(room):
                sums[here[s]] += beta[s]
            target = out[(t * batch + b) * classes:(t * batch + b + 1) * classes]
            for c in range(classes):
                target[c] = (exp(np.float64(probs[c])) - sums[c]) * scale
