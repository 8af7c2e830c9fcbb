"""What normalisation computes once a channel: the statistics as they are used, and running ones moved towards them."""


from ...codegen.jit import FREE, helper, math


@helper
def _move(momentum, factor, now, running):
    c = running.size
    for i in range(c):
        total = 0.0
        for j in range(i, now.size, c):
            total += now[j]
        running[i] = (1.0 - momentum) * running[i] + momentum * (total * (factor * c / now.size))


@helper
def _statistics(eps, momentum, n, center, var, mean, rstd, running_mean, running_var):
    for i in range(mean.size):
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
def _sum(x):
    total = 0.0
    for i in range(x.size):
        total += x[i]
    return total


@helper(fastmath=FREE)
def _gaps(x, mean):
    total = 0.0
    for i in range(x.size):
        gap = x[i] - mean
        total += gap * gap
    return total


@helper(fastmath=FREE)
def _products(g, x, mean, rstd):
    total = 0.0
    for i in range(x.size):
        total += g[i] * ((x[i] - mean) * rstd)
    return total


@helper
def _moments(outer, c, inner, x, center, var):
    """Write mean and biased variance of each channel."""
    n = outer * inner
    center[:] = 0.0
    var[:] = 0.0
    if inner == 1:  # channels side by side
        for i in range(outer):
            row = x[i * c : (i + 1) * c]
            for j in range(row.size):
                center[j] += row[j]
        for j in range(c):
            center[j] /= n
        for i in range(outer):
            row = x[i * c : (i + 1) * c]
            for j in range(row.size):
                gap = row[j] - center[j]
                var[j] += gap * gap
    else:
        for k in range(outer * c):
            center[k % c] += _sum(x[k * inner : (k + 1) * inner])
        for j in range(c):
            center[j] /= n
        for k in range(outer * c):
            var[k % c] += _gaps(x[k * inner : (k + 1) * inner], center[k % c])
    for j in range(c):
        var[j] /= n


@helper
def _apply(outer, c, inner, x, mean, rstd, weight, bias, y):
    if inner == 1:
        for i in range(outer):
            row, made = x[i * c : (i + 1) * c], y[i * c : (i + 1) * c]
            for j in range(row.size):
                made[j] = ((row[j] - mean[j]) * rstd[j]) * weight[j] + bias[j]
    else:
        for k in range(outer * c):
            row, made = x[k * inner : (k + 1) * inner], y[k * inner : (k + 1) * inner]
            center, r, w, b = mean[k % c], rstd[k % c], weight[k % c], bias[k % c]
            for j in range(row.size):
                made[j] = ((row[j] - center) * r) * w + b


def channels(outer, c, inner, eps, momentum, x, weight, bias, work, mean, rstd, running_mean, running_var, y):
    """Compute batch norm by the statistics of the batch, which are kept; see `statistics`. ``work``: 2·c numbers."""
    center, var = work[:c], work[c:]
    _moments(outer, c, inner, x, center, var)
    _statistics(eps, momentum, outer * inner, center, var, mean, rstd, running_mean, running_var)
    _apply(outer, c, inner, x, mean, rstd, weight, bias, y)


def channels_fixed(outer, c, inner, eps, x, weight, bias, mean, var, rstd, y):
    """Compute batch norm by given statistics."""
    for j in range(c):
        rstd[j] = 1.0 / math.sqrt(var[j] + eps)
    _apply(outer, c, inner, x, mean, rstd, weight, bias, y)


def channels_back(outer, c, inner, trained, g, x, mean, rstd, weight, work, share, gw, gb, gx):
    """Write gradients of batch norm; ``trained``: the statistics are the batch's own. ``work``, ``share``: 2·c numbers."""
    total, total_x = work[:c], work[c:]
    a, b, n = share[:c], share[c:], outer * inner
    work[:] = 0.0
    if inner == 1:
        for i in range(outer):
            row, grad = x[i * c : (i + 1) * c], g[i * c : (i + 1) * c]
            for j in range(row.size):
                total[j] += grad[j]
                total_x[j] += grad[j] * ((row[j] - mean[j]) * rstd[j])
    else:
        for k in range(outer * c):
            j, row, grad = k % c, x[k * inner : (k + 1) * inner], g[k * inner : (k + 1) * inner]
            total[j] += _sum(grad)
            total_x[j] += _products(grad, row, mean[j], rstd[j])
    for j in range(c):
        gb[j] = total[j]
        gw[j] = total_x[j]
        # what the gradient loses to the mean, and to the deviation
        a[j] = total[j] / n if trained else 0.0
        b[j] = total_x[j] / n if trained else 0.0
    if inner == 1:
        for i in range(outer):
            row, grad, made = x[i * c : (i + 1) * c], g[i * c : (i + 1) * c], gx[i * c : (i + 1) * c]
            for j in range(row.size):
                hat = (row[j] - mean[j]) * rstd[j]
                made[j] = (rstd[j] * weight[j]) * (grad[j] - (a[j] + hat * b[j]))
    else:
        for k in range(outer * c):
            j, row, grad, made = (
                k % c,
                x[k * inner : (k + 1) * inner],
                g[k * inner : (k + 1) * inner],
                gx[k * inner : (k + 1) * inner],
            )
            center, r, w = mean[j], rstd[j], weight[j]
            lost, lost_x = a[j], b[j]
            for i in range(row.size):
                made[i] = (r * w) * (grad[i] - (lost + ((row[i] - center) * r) * lost_x))
