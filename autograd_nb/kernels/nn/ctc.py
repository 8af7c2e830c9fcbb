"""Connectionist temporal classification: sums over all alignments of targets and time steps, in logarithms.

States s = 0 … 2S are blank, label, blank, label, …, blank; ``labels`` holds the targets of all samples, sample b's at ``places[b]``.
"""

from __future__ import annotations

import numpy as np

from ...codegen.jit import helper, math


@helper
def add_logs(a, b, c):
    """Return ln(eᵃ + eᵇ + eᶜ)."""
    top = max(a, b, c)
    if top == -np.inf:
        return top
    return math.log(math.exp(a - top) + math.exp(b - top) + math.exp(c - top)) + top


@helper
def label(labels, start, s, blank):
    return labels[start + s // 2] if s % 2 else blank


def forward(batch, classes, states, blank, x, labels, places, lengths, sizes, losses, alpha):
    """Write ``losses``: −ln p(targets

    ``lengths``, ``sizes``: how many steps and labels each sample has; ``states``: room for the longest.
    """
    steps = x.size // (batch * classes)
    for b in range(batch):
        last, room, start = lengths[b], 2 * sizes[b] + 1, places[b]
        if last == 0:
            losses[b] = 0 if sizes[b] == 0 else np.inf
            continue
        table = alpha[b * steps * states:(b + 1) * steps * states]
        for s in range(room):
            table[s] = -np.inf if s > 1 else x[b * classes + label(labels, start, s, blank)]
        for t in range(1, last):
            before = table[(t - 1) * states:t * states]
            row = table[t * states:(t + 1) * states]
            probs = x[(t * batch + b) * classes:(t * batch + b + 1) * classes]
            for s in range(room):
                here = label(labels, start, s, blank)
                one = np.float64(before[s])
                two = np.float64(before[s - 1]) if s > 0 else -np.inf
                skip = s > 1 and s % 2 != 0 and label(labels, start, s - 2, blank) != here
                three = np.float64(before[s - 2]) if skip else -np.inf
                row[s] = add_logs(one, two, three) + probs[here]
        row = table[(last - 1) * states:last * states]
        losses[b] = -add_logs(np.float64(row[room - 1]), np.float64(row[room - 2]) if room > 1 else -np.inf, -np.inf)


def backward(batch, classes, states, blank, zero_infinity, g, x, labels, places, lengths, sizes, losses, alpha, out):
    """Write the gradient of `forward` to x as log_softmax would pass it on: eˣ − (posterior of the class), times g.

    The part eˣ has no effect after log_softmax; with it the gradient of what went into log_softmax is right by itself.
    """
    steps = x.size // (batch * classes)
    beta = np.empty(states, np.float64)
    after = np.empty(states, np.float64)
    sums = np.empty(classes, np.float64)
    for i in range(out.size):
        out[i] = 0
    for b in range(batch):
        last, room, start = lengths[b], 2 * sizes[b] + 1, places[b]
        loss = np.float64(losses[b])
        if last == 0 or (zero_infinity and loss == np.inf):
            continue
        scale = np.float64(g[b])
        for t in range(last - 1, -1, -1):
            probs = x[(t * batch + b) * classes:(t * batch + b + 1) * classes]
            row = alpha[(b * steps + t) * states:(b * steps + t + 1) * states]
            for c in range(classes):
                sums[c] = -np.inf
            for s in range(room):
                here = label(labels, start, s, blank)
                if t == last - 1:
                    reach = 0.0 if s >= room - 2 else -np.inf
                else:
                    one = after[s]
                    two = after[s + 1] if s + 1 < room else -np.inf
                    skip = s + 2 < room and s % 2 and label(labels, start, s + 2, blank) != here
                    reach = add_logs(one, two, after[s + 2] if skip else -np.inf)
                beta[s] = reach + probs[here]
                both = row[s] + beta[s]
                sums[here] = add_logs(sums[here], both, -np.inf)
            for s in range(room):
                after[s] = beta[s]
            target = out[(t * batch + b) * classes:(t * batch + b + 1) * classes]
            for c in range(classes):
                target[c] = (math.exp(np.float64(probs[c])) - math.exp(sums[c] + loss - probs[c])) * scale
