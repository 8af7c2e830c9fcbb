"""Optimizer updates: one pass over parameters, their gradients and their states. What is written comes last.

Parameters have the names of the optimizer's options and states, by which it finds them (`updates` tells how the two functions of an
update become a kernel). ``step`` holds one number, the updates so far, and counts here, so that a recorded program goes on counting
when it is run again. Numbers that all elements share are computed in float64, as PyTorch does.
"""


from typing import Any

import numpy as np

from ..codegen.arrays import count, nth
from ..codegen.jit import helper, math
from ..codegen.runtime import radd
from .updates import update


def _sgd_shared(T, lr):
    return (T(lr),), ()


def _sgd(shared, d, x):
    """p -= lr · d."""
    (rate,) = shared
    return x - rate * d


def _sgd_momentum_shared(T, lr, momentum, gain, nesterov, first):
    return (T(lr), T(momentum), T(gain), nesterov, first), ()


def _sgd_momentum(shared, d, x, momentum_buffer):
    """b = momentum b + gain d (d at first), the momentum buffer; p -= lr · (b, or d + momentum b)."""
    rate, momentum, gain, nesterov, first = shared
    b = d if first else momentum * momentum_buffer + gain * d
    return x - rate * (d + momentum * b if nesterov else b), b


def _adam_shared(T, lr, beta1, beta2, eps, decoupled_weight_decay, step):
    now = step.dtype.type(step[0] + 1)
    t = np.float64(now)
    rate, root = T(lr / (1.0 - beta1**t)), T(1.0 / math.sqrt(1.0 - beta2**t))
    return (T(beta2), T(1.0 - beta1), T(1.0 - beta2), rate, root, T(eps)), (now,)


def _adam(shared, d, x, exp_avg, exp_avg_sq):
    """Update by Adam (Kingma and Ba, 2015), and AdamW (Loshchilov and Hutter, 2019) where the decay is decoupled."""
    keep2, new1, new2, rate, root, eps = shared
    a = exp_avg + (d - exp_avg) * new1
    b = exp_avg_sq * keep2 + d * d * new2
    return x - rate * a / (np.sqrt(b) * root + eps), a, b


def _adam_amsgrad(shared, d, x, exp_avg, exp_avg_sq, max_exp_avg_sq):
    """Update by `_adam` divided by the largest second moment so far (Reddi et al., 2018)."""
    keep2, new1, new2, rate, root, eps = shared
    a = exp_avg + (d - exp_avg) * new1
    b = exp_avg_sq * keep2 + d * d * new2
    c = b if b > max_exp_avg_sq or b != b else max_exp_avg_sq
    return x - rate * a / (np.sqrt(c) * root + eps), a, b, c


def _rmsprop_shared(T, lr, alpha, eps, momentum, step):
    return (T(lr), T(alpha), T(1.0 - alpha), T(eps), T(momentum)), (step.dtype.type(step[0] + 1),)


def _rmsprop(shared, d, x, square_avg):
    """p -= lr · d / (√E[d²] + eps) (Hinton, 2012)."""
    rate, keep, new, eps, _ = shared
    q = square_avg * keep + d * d * new
    return x - rate * d / (np.sqrt(q) + eps), q


def _rmsprop_momentum(shared, d, x, square_avg, momentum_buffer):
    rate, keep, new, eps, momentum = shared
    q = square_avg * keep + d * d * new
    b = momentum_buffer * momentum + d / (np.sqrt(q) + eps)
    return x - rate * b, q, b


def _rmsprop_centered(shared, d, x, square_avg, grad_avg):
    """Update by `_rmsprop` with the variance in the place of the second moment."""
    rate, keep, new, eps, _ = shared
    q = square_avg * keep + d * d * new
    a = grad_avg + (d - grad_avg) * new
    return x - rate * (d / (np.sqrt(q - a * a) + eps)), q, a


def _rmsprop_centered_momentum(shared, d, x, square_avg, momentum_buffer, grad_avg):
    rate, keep, new, eps, momentum = shared
    q = square_avg * keep + d * d * new
    a = grad_avg + (d - grad_avg) * new
    b = momentum_buffer * momentum + d / (np.sqrt(q - a * a) + eps)
    return x - rate * b, q, b, a


def _adagrad_shared(T, lr, lr_decay, eps, step):
    now = step.dtype.type(step[0] + 1)
    return (T(lr / (1.0 + (np.float64(now) - 1.0) * lr_decay)), T(eps)), (now,)


def _adagrad(shared, d, x, sum):
    """p -= lr / (1 + (t - 1) lr_decay) · d / (√Σd² + eps) (Duchi et al., 2011)."""
    rate, eps = shared
    q = sum + d * d
    return x - rate * d / (np.sqrt(q) + eps), q


def _adadelta_shared(T, lr, rho, eps, step):
    return (T(lr), T(rho), T(1.0 - rho), T(eps)), (step.dtype.type(step[0] + 1),)


def _adadelta(shared, d, x, square_avg, acc_delta):
    """Update by steps in the units of the parameter (Zeiler, 2012)."""
    rate, keep, new, eps = shared
    q = square_avg * keep + d * d * new
    u = np.sqrt(acc_delta + eps) / np.sqrt(q + eps) * d
    return x - rate * u, q, acc_delta * keep + u * u * new


def _adamax_shared(T, lr, beta1, beta2, eps, step):
    now = step.dtype.type(step[0] + 1)
    return (T(lr / (1.0 - beta1 ** np.float64(now))), T(eps), T(beta2), T(1.0 - beta1)), (now,)


def _adamax(shared, d, x, exp_avg, exp_inf):
    """Update by Adam with the infinity norm (Kingma and Ba, 2015)."""
    rate, eps, keep2, new1 = shared
    a = exp_avg + (d - exp_avg) * new1
    old = exp_inf * keep2
    now = abs(d) + eps
    c = now if now > old or now != now else old
    return x - rate * a / c, a, c


def _nadam_shared(T, lr, beta1, beta2, eps, momentum_decay, decoupled_weight_decay, mu_product, step):
    now = step.dtype.type(step[0] + 1)
    t = np.float64(now)
    mu = beta1 * (1.0 - 0.5 * 0.96 ** (t * momentum_decay))
    following = beta1 * (1.0 - 0.5 * 0.96 ** ((t + 1.0) * momentum_decay))
    kept = mu_product.dtype.type(mu_product[0] * mu)
    done = np.float64(kept)
    here, then = T(lr * (1.0 - mu) / (1.0 - done)), T(lr * following / (1.0 - done * following))
    return (T(beta2), T(1.0 - beta1), T(1.0 - beta2), here, then, T(1.0 / (1.0 - beta2**t)), T(eps)), (kept, now)


def _nadam(shared, d, x, exp_avg, exp_avg_sq):
    """Update by Adam with Nesterov's momentum (Dozat, 2016)."""
    keep2, new1, new2, here, then, square, eps = shared
    a = exp_avg + (d - exp_avg) * new1
    b = exp_avg_sq * keep2 + d * d * new2
    return x - (here * d + then * a) / (np.sqrt(b * square) + eps), a, b


def _radam_shared(T, lr, beta1, beta2, eps, decoupled_weight_decay, step):
    now = step.dtype.type(step[0] + 1)
    t = np.float64(now)
    correction2 = 1.0 - beta2**t
    limit = 2.0 / (1.0 - beta2) - 1.0
    length = limit - 2.0 * t * beta2**t / correction2
    rate = lr / (1.0 - beta1**t)
    adaptive = length > 5.0
    if adaptive:
        rectified = math.sqrt((length - 4.0) * (length - 2.0) * limit / ((limit - 4.0) * (limit - 2.0) * length))
        rate = rate * rectified * math.sqrt(correction2)
    return (T(beta2), T(1.0 - beta1), T(1.0 - beta2), T(rate), adaptive, T(eps)), (now,)


def _radam(shared, d, x, exp_avg, exp_avg_sq):
    """Update by Adam whose adaptive rate is rectified, or left out, while its variance is large (Liu et al., 2019)."""
    keep2, new1, new2, rate, adaptive, eps = shared
    a = exp_avg + (d - exp_avg) * new1
    b = exp_avg_sq * keep2 + d * d * new2
    u = rate * a
    if adaptive:
        u = u / (np.sqrt(b) + eps)
    return x - u, a, b


def _rprop_shared(T, lr, shrink, grow, least, most, step):
    return (T(shrink), T(grow), T(least), T(most), T(1), T(0)), (step.dtype.type(step[0] + 1),)


def _rprop(shared, d, x, prev, step_size):
    """Update by step sizes that grow while the gradient keeps its sign and shrink where it turns (Riedmiller and Braun, 1993)."""
    down, up, low, high, one, zero = shared
    turn = d * prev
    w = step_size * (up if turn > zero else down if turn < zero else one)
    w = low if w < low else high if w > high else w
    d = zero if turn < zero else d
    return x - w * (one if d > zero else -one if d < zero else zero), d, w


def _asgd_shared(T, lr, lambd, alpha, t0, eta, mu, step):
    now = step.dtype.type(step[0] + 1)
    t = np.float64(now)
    shared = T(eta[0]), T(1.0 - lambd * np.float64(eta[0])), T(mu[0]), mu[0] == 1
    return shared, (np.float32(lr / (1.0 + lambd * lr * t) ** alpha), np.float32(1.0 / max(1.0, t - t0)), now)


def _asgd(shared, d, x, ax):
    """Update by gradient descent with a decaying rate, and the average of the parameters from ``t0`` on (Polyak and Juditsky, 1992)."""
    rate, kept, part, whole = shared
    y = x * kept - rate * d
    return y, y if whole else ax + (y - ax) * part


def _muon_average_shared(T, lr, momentum, nesterov):
    return (T(momentum), T(1.0 - momentum), nesterov), ()


def _muon_average(shared, d, x, momentum_buffer):
    """Average the gradient in the momentum buffer; return it, or a step further along it."""
    keep, new, nesterov = shared
    b = momentum_buffer + (d - momentum_buffer) * new
    return d + (b - d) * keep if nesterov else b, b


sgd: Any = update(_sgd_shared, _sgd)
sgd_momentum: Any = update(_sgd_momentum_shared, _sgd_momentum)
adam: Any = update(_adam_shared, _adam, counters=1)
adam_amsgrad: Any = update(_adam_shared, _adam_amsgrad, counters=1)
rmsprop: Any = update(_rmsprop_shared, _rmsprop, counters=1)
rmsprop_momentum: Any = update(_rmsprop_shared, _rmsprop_momentum, counters=1)
rmsprop_centered: Any = update(_rmsprop_shared, _rmsprop_centered, counters=1)
rmsprop_centered_momentum: Any = update(_rmsprop_shared, _rmsprop_centered_momentum, counters=1)
adagrad: Any = update(_adagrad_shared, _adagrad, counters=1)
adadelta: Any = update(_adadelta_shared, _adadelta, counters=1)
adamax: Any = update(_adamax_shared, _adamax, counters=1)
nadam: Any = update(_nadam_shared, _nadam, counters=2)
radam: Any = update(_radam_shared, _radam, counters=1)
rprop: Any = update(_rprop_shared, _rprop, counters=1)
asgd: Any = update(_asgd_shared, _asgd, counters=3)
muon_average: Any = update(_muon_average_shared, _muon_average)


@helper
def _adafactor_rates(lr, beta2_decay, eps2, t, p):
    """Return the weight of the new second moment, and the step before it is clipped: relative to the parameter's root mean square."""
    size = math.sqrt(_squares(p) / p.size)
    return t**beta2_decay, max(eps2, size) * min(lr, 1.0 / math.sqrt(t))


def adafactor(lr, decay, beta2_decay, clip, eps1, eps2, sign, rows, columns, g, p, u, row_var, col_var, step):
    """Update by Adafactor (Shazeer and Stern, 2018) for matrices of ``rows`` × ``columns``; ``u`` is room for the update."""
    T = p.dtype.type
    if p.size == 0:
        return
    step[0] += 1
    new, alpha = _adafactor_rates(lr, beta2_decay, eps2, np.float64(step[0]), p)
    part, s, least, floor = T(new), T(sign), T(eps1), T(eps1 * eps1)
    area = rows * columns
    sums = np.empty(columns, np.float64)
    for b in range(p.size // area):
        rv, cv = row_var[b * rows : (b + 1) * rows], col_var[b * columns : (b + 1) * columns]
        sums[:] = 0.0
        total = 0.0
        for i in range(rows):
            row = g[b * area + i * columns : b * area + (i + 1) * columns]
            for j in range(columns):
                sums[j] += np.float64(row[j]) * np.float64(row[j])
            rv[i] = rv[i] + (T(_squares(row) / columns) - rv[i]) * part
            total += np.float64(rv[i])
        for j in range(columns):
            cv[j] = cv[j] + (T(sums[j] / rows) - cv[j]) * part
        mean = T(total / rows)
        mean = least if mean < least else mean
        for i in range(rows):
            row = g[b * area + i * columns : b * area + (i + 1) * columns]
            out = u[b * area + i * columns : b * area + (i + 1) * columns]
            r = rv[i]
            for j in range(columns):
                v = r * cv[j] / mean
                v = floor if v < floor else v
                out[j] = s * row[j] / np.sqrt(v)
    _adafactor_apply(lr, decay, clip, alpha, p, u)


def adafactor_vector(lr, decay, beta2_decay, clip, eps1, eps2, sign, g, p, u, variance, step):
    """Update by `adafactor` for parameters that are no matrices: with all second moments."""
    T = p.dtype.type
    if p.size == 0:
        return
    step[0] += 1
    new, alpha = _adafactor_rates(lr, beta2_decay, eps2, np.float64(step[0]), p)
    part, s, floor = T(new), T(sign), T(eps1 * eps1)
    for i in range(p.size):
        d = s * g[i]
        v = variance[i] + (d * d - variance[i]) * part
        variance[i] = v
        v = floor if v < floor else v
        u[i] = d / np.sqrt(v)
    _adafactor_apply(lr, decay, clip, alpha, p, u)


@helper
def _adafactor_apply(lr, decay, clip, alpha, p, u):
    """p = p (1 - lr decay) - alpha u, u's root mean square clipped."""
    T = p.dtype.type
    shrink, rate = T(1.0 - lr * decay if decay != 0.0 else 1.0), T(alpha / max(1.0, math.sqrt(_squares(u) / u.size) / clip))
    for i in range(p.size):
        p[i] = p[i] * shrink - rate * u[i]


def round_to_bfloat16(x):
    """Round float32 numbers to the nearest that have 8 bits of mantissa, ties to even."""
    bits = x.view(np.uint32)
    for i in range(x.size):
        n = bits[i]
        bits[i] = (n + np.uint32(0x7FFF) + ((n >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)


@helper
def _squares(row):
    """Return Σ row²; in any order, so vectorised."""
    total = 0.0
    for i in range(row.size):
        v = np.float64(row[i])
        total = radd(total, v * v)
    return total


@helper
def _power_sum(x, p, total):
    """Return ``total`` and Σ |x|^p; the larger of it and |x| for p = inf, and the nonzeros for p = 0."""
    for c in range(0, x.size, 1024):
        row = x[c : c + 1024]
        part = 0.0
        if p == 2.0:
            part = _squares(row)
        elif p == 1.0:
            for i in range(row.size):
                part += abs(np.float64(row[i]))
        elif p == np.inf:
            for i in range(row.size):
                a = abs(np.float64(row[i]))
                part = a if a > part or a != a else part
        elif p == 0.0:
            for i in range(row.size):
                part += 1.0 if row[i] != 0 else 0.0
        else:
            for i in range(row.size):
                part += abs(np.float64(row[i])) ** p
        if p == np.inf:
            total = part if part > total or part != part else total
        else:
            total += part
    return total


def sum_of_powers(p, first, xs, out):
    """out[0] = (unless ``first``, what it was, and) the `_power_sum` of all arrays, in float64."""
    total = 0.0 if first else out[0]
    for k in range(count(xs)):
        total = _power_sum(nth(xs, k), p, total)
    out[0] = total


def root(p, nothing, out):
    """out[0] = out[0]^(1/p), the norm of a sum of powers; 0 if ``nothing`` was summed."""
    if nothing:
        out[0] = 0.0
    elif p == 2.0:
        out[0] = math.sqrt(out[0])
    elif p != np.inf and p != 0.0 and p != 1.0 and np.isfinite(out[0]):
        out[0] = out[0] ** (1.0 / p)


def clip_factor(most, total, out):
    """out[0] = min(1, most / (total + 1e-6)); NaN stays, so that it spreads."""
    f = most / (total[0] + 1e-6)
    out[0] = 1.0 if f >= 1.0 else f


def scale(factor, xs):
    """Multiply each x by factor[0], unless that is 1."""
    if factor[0] == 1.0:
        return
    for k in range(count(xs)):
        x = nth(xs, k)
        f = x.dtype.type(factor[0])
        for i in range(x.size):
            x[i] = x[i] * f


def clamp(limit, xs):
    """Clamp each x to [-limit, limit]; NaN stays."""
    for k in range(count(xs)):
        x = nth(xs, k)
        T = x.dtype.type
        high, low = T(limit), T(-limit)
        for i in range(x.size):
            v = x[i]
            x[i] = high if v > high else low if v < low else v
