"""What normalisation computes once a channel: the statistics as they are used, and running ones moved towards them."""

import math

from ..codegen.jit import helper


@helper
def _move(momentum, factor, now, running):
    c = running.size
    for i in range(c):
        total = 0.0
        for j in range(i, now.size, c):
            total += now[j]
        running[i] = (1.0 - momentum) * running[i] + momentum * (total * (factor * c / now.size))


def statistics(eps, momentum, n, center, var, mean, rstd, running_mean, running_var):
    """mean = center in its dtype, rstd = 1/√(var + eps); running ← (1 − momentum)·running + momentum·now.

    ``center`` and ``var`` are of each sample (instance norm) or of all together, ``n`` values each; the running statistics, of which
    either may be empty, take the mean of all samples', and the unbiased variance.
    """
    for i in range(mean.size):
        mean[i] = center[i]
        rstd[i] = 1.0 / math.sqrt(var[i] + eps)
    _move(momentum, 1.0, mean, running_mean)
    _move(momentum, n / max(n - 1, 1), var, running_var)
