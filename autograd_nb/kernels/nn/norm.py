"""What normalisation computes once a channel: the statistics as they are used, and running ones moved towards them."""


from ...codegen.jit import FREE, helper, math
from ...codegen.runtime import row
from ...codegen.vectors import independent, rolled


@helper
def _move(momentum, factor, now, running):
    c = running.size
    for i in range(c):
        total = 0.0
        for j in range(i, now.size, c):
            rolled()
            total += now[j]
        running[i] = (1.0 - momentum) * running[i] + momentum * (total * (factor * c / now.size))


@helper
def _statistics(eps, momentum, n, center, var, mean, rstd, running_mean, running_var):
    for i in range(mean.size):
        independent()
        mean[i] = center[i]
        rstd[i] = 1.0 / math.sqrt(var[i] + eps)
    _move(momentum, 1.0, mean, running_mean)
    _move(momentum, n / max(n - 1, 1), var, running_var)


def statistics(eps, momentum, n, center, var, mean, rstd, running_mean, running_var):
    """mean = center in its dtype, rstd = 1/√(var + eps); running ← (1 − momentum)·running + momentum·now.

    ``center`` and ``var`` are of each sample (instance norm) or of all together, ``n`` values each; the running statistics, of which
    either may be empty, take the mean of all samples', and the unbiased variance.
    """
    _statistics(eps, momentum, n, center, var, mean, rstd, running_mean, running_var)


# ------------------------------------------------------- small batches, of (outer, c, inner) elements, in one launch each


@helper(fastmath=FREE)
def _sum(x, n):
    total = 0.0
    for i in range(n):
        total += x[i]
    return total


@helper(fastmath=FREE)
def _gaps(x, n, mean):
    total = 0.0
    for i in range(n):
        gap = x[i] - mean
        total += gap * gap
    return total


@helper(fastmath=FREE)
def _products(g, x, n, mean, rstd):
    total = 0.0
    for i in range(n):
        total += g[i] * ((x[i] - mean) * rstd)
    return total


@helper
def _moments(outer, c, inner, x, center, var):
    """Write mean and biased variance of each channel."""
    n = outer * inner
    for j in range(c):
        independent()
        center[j] = 0.0
        var[j] = 0.0
    if inner == 1:  # channels side by side
        for i in range(outer):
            line = x[i * c : (i + 1) * c]
            for j in range(line.size):
                independent()
                center[j] += line[j]
        for j in range(c):
            independent()
            center[j] /= n
        for i in range(outer):
            line = x[i * c : (i + 1) * c]
            for j in range(line.size):
                independent()
                gap = line[j] - center[j]
                var[j] += gap * gap
    else:
        for k in range(outer * c):
            center[k % c] += _sum(row(x, k * inner, inner, 1), inner)
        for j in range(c):
            independent()
            center[j] /= n
        for k in range(outer * c):
            var[k % c] += _gaps(row(x, k * inner, inner, 1), inner, center[k % c])
    for j in range(c):
        independent()
        var[j] /= n


@helper
def _apply(outer, c, inner, x, mean, rstd, weight, bias, y):
    if inner == 1:
        for i in range(outer):
            line, made = row(x, i * c, c, 1), row(y, i * c, c, 1)
            for j in range(c):
                independent()
                made[j] = ((line[j] - mean[j]) * rstd[j]) * weight[j] + bias[j]
    else:
        for k in range(outer * c):
            line, made = row(x, k * inner, inner, 1), row(y, k * inner, inner, 1)
            center, r, w, b = mean[k % c], rstd[k % c], weight[k % c], bias[k % c]
            for j in range(inner):
                independent()
                made[j] = ((line[j] - center) * r) * w + b


def channels(outer, c, inner, eps, momentum, x, weight, bias, work, mean, rstd, running_mean, running_var, y):
    """Compute batch norm by the statistics of the batch, which are kept; see `statistics`. ``work``: 2·c numbers."""
    center, var = work[:c], work[c:]
    _moments(outer, c, inner, x, center, var)
    _statistics(eps, momentum, outer * inner, center, var, mean, rstd, running_mean, running_var)
    _apply(outer, c, inner, x, mean, rstd, weight, bias, y)


def channels_fixed(outer, c, inner, eps, x, weight, bias, mean, var, rstd, y):
    """Compute batch norm by given statistics."""
    for j in range(c):
        independent()
        rstd[j] = 1.0 / math.sqrt(var[j] + eps)
    _apply(outer, c, inner, x, mean, rstd, weight, bias, y)


def channels_back(outer, c, inner, trained, g, x, mean, rstd, weight, work, share, gw, gb, gx):
    """Write gradients of batch norm; ``trained``: the statistics are the batch's own. ``work``, ``share``: 2·c numbers."""
    total, total_x = row(work, 0, c, 1), row(work, c, c, 1)
    a, b, n = row(share, 0, c, 1), row(share, c, c, 1), outer * inner
    for j in range(c):
        independent()
        total[j] = 0.0
        total_x[j] = 0.0
    if inner == 1:
        for i in range(outer):
            line, grad = row(x, i * c, c, 1), row(g, i * c, c, 1)
            for j in range(c):
                independent()
                total[j] += grad[j]
                total_x[j] += grad[j] * ((line[j] - mean[j]) * rstd[j])
    else:
        for k in range(outer * c):
            j, line, grad = k % c, row(x, k * inner, inner, 1), row(g, k * inner, inner, 1)
            total[j] += _sum(grad, inner)
            total_x[j] += _products(grad, line, inner, mean[j], rstd[j])
    for j in range(c):
        independent()
        gb[j] = total[j]
        gw[j] = total_x[j]
        # what the gradient loses to the mean, and to the deviation
        a[j] = total[j] / n if trained else 0.0
        b[j] = total_x[j] / n if trained else 0.0
    if inner == 1:
        for i in range(outer):
            line, grad, made = row(x, i * c, c, 1), row(g, i * c, c, 1), row(gx, i * c, c, 1)
            for j in range(c):
                independent()
                hat = (line[j] - mean[j]) * rstd[j]
                made[j] = (rstd[j] * weight[j]) * (grad[j] - (a[j] + hat * b[j]))
    else:
        for k in range(outer * c):
            j, line, grad, made = k % c, row(x, k * inner, inner, 1), row(g, k * inner, inner, 1), row(gx, k * inner, inner, 1)
            center, r, w = mean[j], rstd[j], weight[j]
            lost, lost_x = a[j], b[j]
            for i in range(inner):
                independent()
                made[i] = (r * w) * (grad[i] - (lost + ((line[i] - center) * r) * lost_x))
