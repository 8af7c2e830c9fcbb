"""Optimizer updates: one pass over a parameter, its gradient and its state. What is written comes last.

``sign`` is 1, or -1 to maximize. ``step`` holds one number, the updates so far, and counts here, so that a recorded program
goes on counting when it is run again. Numbers that all elements share are computed in float64, as PyTorch does.
"""

import math

import numpy as np

from ..codegen.jit import helper
from ..codegen.runtime import radd


@helper
def _ascent(sign, g, decay, wd, x):
    """The gradient of one element with its decay: sign g + decay x."""
    d = sign * g
    if decay != 0.0:
        d = d + wd * x
    return d


@helper
def _decayed(sign, g, decay, wd, shrink, decoupled, x):
    """One element and its gradient, one of them with the decay."""
    d = sign * g
    if decay != 0.0:
        if decoupled:
            x = x * shrink
        else:
            d = d + wd * x
    return x, d


def sgd(lr, decay, sign, g, p):
    """p -= lr · (sign g + decay p)."""
    T = p.dtype.type
    rate, wd, s = T(lr), T(decay), T(sign)
    for i in range(p.size):
        d = _ascent(s, g[i], decay, wd, p[i])
        p[i] = p[i] - rate * d


def sgd_momentum(lr, decay, sign, momentum, gain, nesterov, first, g, p, buf):
    """buf = momentum buf + gain d (d at first); p -= lr · (buf, or d + momentum buf)."""
    T = p.dtype.type
    rate, wd, s, mom, fresh = T(lr), T(decay), T(sign), T(momentum), T(gain)
    for i in range(p.size):
        d = _ascent(s, g[i], decay, wd, p[i])
        b = d if first else mom * buf[i] + fresh * d
        buf[i] = b
        if nesterov:
            b = d + mom * b
        p[i] = p[i] - rate * b


def adam(lr, decay, sign, beta1, beta2, eps, decoupled, g, p, m, v, step):
    """Adam (Kingma and Ba, 2015), and AdamW (Loshchilov and Hutter, 2019) where the decay is ``decoupled``."""
    T = p.dtype.type
    step[0] += 1
    t = np.float64(step[0])
    rate = T(lr / (1.0 - beta1**t))
    root = T(1.0 / math.sqrt(1.0 - beta2**t))
    wd, shrink, s, e = T(decay), T(1.0 - lr * decay), T(sign), T(eps)
    keep2, new1, new2 = T(beta2), T(1.0 - beta1), T(1.0 - beta2)
    for i in range(p.size):
        x, d = _decayed(s, g[i], decay, wd, shrink, decoupled, p[i])
        a = m[i] + (d - m[i]) * new1
        b = v[i] * keep2 + d * d * new2
        m[i] = a
        v[i] = b
        p[i] = x - rate * a / (np.sqrt(b) * root + e)


def adam_amsgrad(lr, decay, sign, beta1, beta2, eps, decoupled, g, p, m, v, top, step):
    """`adam` divided by the largest second moment so far (Reddi et al., 2018)."""
    T = p.dtype.type
    step[0] += 1
    t = np.float64(step[0])
    rate = T(lr / (1.0 - beta1**t))
    root = T(1.0 / math.sqrt(1.0 - beta2**t))
    wd, shrink, s, e = T(decay), T(1.0 - lr * decay), T(sign), T(eps)
    keep2, new1, new2 = T(beta2), T(1.0 - beta1), T(1.0 - beta2)
    for i in range(p.size):
        x, d = _decayed(s, g[i], decay, wd, shrink, decoupled, p[i])
        a = m[i] + (d - m[i]) * new1
        b = v[i] * keep2 + d * d * new2
        m[i] = a
        v[i] = b
        c = top[i]
        c = b if b > c or b != b else c
        top[i] = c
        p[i] = x - rate * a / (np.sqrt(c) * root + e)


def rmsprop(lr, decay, sign, alpha, eps, g, p, square, step):
    """p -= lr · d / (√E[d²] + eps) (Hinton, 2012)."""
    T = p.dtype.type
    step[0] += 1
    rate, wd, s, keep, new, e = T(lr), T(decay), T(sign), T(alpha), T(1.0 - alpha), T(eps)
    for i in range(p.size):
        d = _ascent(s, g[i], decay, wd, p[i])
        q = square[i] * keep + d * d * new
        square[i] = q
        p[i] = p[i] - rate * d / (np.sqrt(q) + e)


def rmsprop_full(lr, decay, sign, alpha, eps, momentum, centered, g, p, square, mean, buf, step):
    """`rmsprop` with momentum, and with the variance in the place of the second moment if ``centered``.

    ``mean`` and ``buf`` are empty where they are not used.
    """
    T = p.dtype.type
    step[0] += 1
    rate, wd, s, keep, new, e, mom = T(lr), T(decay), T(sign), T(alpha), T(1.0 - alpha), T(eps), T(momentum)
    for i in range(p.size):
        d = _ascent(s, g[i], decay, wd, p[i])
        q = square[i] * keep + d * d * new
        square[i] = q
        if centered:
            a = mean[i] + (d - mean[i]) * new
            mean[i] = a
            q = q - a * a
        d = d / (np.sqrt(q) + e)
        if momentum > 0.0:
            d = buf[i] * mom + d
            buf[i] = d
        p[i] = p[i] - rate * d


def adagrad(lr, decay, sign, lr_decay, eps, g, p, total, step):
    """p -= lr / (1 + (t - 1) lr_decay) · d / (√Σd² + eps) (Duchi et al., 2011)."""
    T = p.dtype.type
    step[0] += 1
    rate = T(lr / (1.0 + (np.float64(step[0]) - 1.0) * lr_decay))
    wd, s, e = T(decay), T(sign), T(eps)
    for i in range(p.size):
        d = _ascent(s, g[i], decay, wd, p[i])
        q = total[i] + d * d
        total[i] = q
        p[i] = p[i] - rate * d / (np.sqrt(q) + e)


def adadelta(lr, decay, sign, rho, eps, g, p, square, delta, step):
    """Steps in the units of the parameter (Zeiler, 2012)."""
    T = p.dtype.type
    step[0] += 1
    rate, wd, s, keep, new, e = T(lr), T(decay), T(sign), T(rho), T(1.0 - rho), T(eps)
    for i in range(p.size):
        d = _ascent(s, g[i], decay, wd, p[i])
        q = square[i] * keep + d * d * new
        square[i] = q
        u = np.sqrt(delta[i] + e) / np.sqrt(q + e) * d
        delta[i] = delta[i] * keep + u * u * new
        p[i] = p[i] - rate * u


def adamax(lr, decay, sign, beta1, beta2, eps, g, p, m, top, step):
    """Adam with the infinity norm (Kingma and Ba, 2015)."""
    T = p.dtype.type
    step[0] += 1
    rate = T(lr / (1.0 - beta1 ** np.float64(step[0])))
    wd, s, e, keep2, new1 = T(decay), T(sign), T(eps), T(beta2), T(1.0 - beta1)
    for i in range(p.size):
        d = _ascent(s, g[i], decay, wd, p[i])
        a = m[i] + (d - m[i]) * new1
        m[i] = a
        old = top[i] * keep2
        now = abs(d) + e
        c = now if now > old or now != now else old
        top[i] = c
        p[i] = p[i] - rate * a / c


def nadam(lr, decay, sign, beta1, beta2, eps, momentum_decay, decoupled, g, p, m, v, product, step):
    """Adam with Nesterov's momentum (Dozat, 2016)."""
    T = p.dtype.type
    step[0] += 1
    t = np.float64(step[0])
    mu = beta1 * (1.0 - 0.5 * 0.96 ** (t * momentum_decay))
    following = beta1 * (1.0 - 0.5 * 0.96 ** ((t + 1.0) * momentum_decay))
    product[0] = product[0] * mu
    done = np.float64(product[0])
    now, then = T(lr * (1.0 - mu) / (1.0 - done)), T(lr * following / (1.0 - done * following))
    square = T(1.0 / (1.0 - beta2**t))
    wd, shrink, s, e = T(decay), T(1.0 - lr * decay), T(sign), T(eps)
    keep2, new1, new2 = T(beta2), T(1.0 - beta1), T(1.0 - beta2)
    for i in range(p.size):
        x, d = _decayed(s, g[i], decay, wd, shrink, decoupled, p[i])
        a = m[i] + (d - m[i]) * new1
        b = v[i] * keep2 + d * d * new2
        m[i] = a
        v[i] = b
        p[i] = x - (now * d + then * a) / (np.sqrt(b * square) + e)


def radam(lr, decay, sign, beta1, beta2, eps, decoupled, g, p, m, v, step):
    """Adam whose adaptive rate is rectified, or left out, while its variance is large (Liu et al., 2019)."""
    T = p.dtype.type
    step[0] += 1
    t = np.float64(step[0])
    correction2 = 1.0 - beta2**t
    limit = 2.0 / (1.0 - beta2) - 1.0
    length = limit - 2.0 * t * beta2**t / correction2
    rate = lr / (1.0 - beta1**t)
    adaptive = length > 5.0
    if adaptive:
        rectified = math.sqrt((length - 4.0) * (length - 2.0) * limit / ((limit - 4.0) * (limit - 2.0) * length))
        rate = rate * rectified * math.sqrt(correction2)
    r = T(rate)
    wd, shrink, s, e = T(decay), T(1.0 - lr * decay), T(sign), T(eps)
    keep2, new1, new2 = T(beta2), T(1.0 - beta1), T(1.0 - beta2)
    for i in range(p.size):
        x, d = _decayed(s, g[i], decay, wd, shrink, decoupled, p[i])
        a = m[i] + (d - m[i]) * new1
        b = v[i] * keep2 + d * d * new2
        m[i] = a
        v[i] = b
        u = r * a
        if adaptive:
            u = u / (np.sqrt(b) + e)
        p[i] = x - u


def rprop(sign, shrink, grow, least, most, g, p, previous, size, step):
    """Step sizes that grow while the gradient keeps its sign and shrink where it turns (Riedmiller and Braun, 1993)."""
    T = p.dtype.type
    step[0] += 1
    s, down, up, low, high, one, zero = T(sign), T(shrink), T(grow), T(least), T(most), T(1), T(0)
    for i in range(p.size):
        d = s * g[i]
        turn = d * previous[i]
        w = size[i] * (up if turn > zero else down if turn < zero else one)
        w = low if w < low else high if w > high else w
        size[i] = w
        d = zero if turn < zero else d
        p[i] = p[i] - w * (one if d > zero else -one if d < zero else zero)
        previous[i] = d


def asgd(lr, decay, sign, lambd, alpha, start, g, p, average, eta, mu, step):
    """Gradient descent with a decaying rate, and the average of the parameters from ``start`` on (Polyak and Juditsky, 1992)."""
    T = p.dtype.type
    step[0] += 1
    t = np.float64(step[0])
    rate, kept = T(eta[0]), T(1.0 - lambd * np.float64(eta[0]))
    wd, s, part = T(decay), T(sign), T(mu[0])
    whole = mu[0] == 1
    for i in range(p.size):
        d = _ascent(s, g[i], decay, wd, p[i])
        x = p[i] * kept - rate * d
        p[i] = x
        average[i] = x if whole else average[i] + (x - average[i]) * part
    eta[0] = np.float32(lr / (1.0 + lambd * lr * t) ** alpha)
    mu[0] = np.float32(1.0 / max(1.0, t - start))


@helper
def _adafactor_rates(lr, beta2_decay, eps2, t, p):
    """The weight of the new second moment, and the step before it is clipped: relative to the parameter's root mean square."""
    size = math.sqrt(_squares(p) / p.size)
    return t**beta2_decay, max(eps2, size) * min(lr, 1.0 / math.sqrt(t))


def adafactor(lr, decay, beta2_decay, clip, eps1, eps2, sign, rows, columns, g, p, u, row_var, col_var, step):
    """Adafactor (Shazeer and Stern, 2018) for matrices of ``rows`` × ``columns``; ``u`` is room for the update."""
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
    """`adafactor` for parameters that are no matrices: with all second moments."""
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
    shrink, rate = T(1.0 - lr * decay), T(alpha / max(1.0, math.sqrt(_squares(u) / u.size) / clip))
    for i in range(p.size):
        p[i] = p[i] * shrink - rate * u[i]


def muon_average(momentum, nesterov, g, u, buf):
    """buf averages the gradient; u = buf, or a step further along it."""
    T = u.dtype.type
    keep, new = T(momentum), T(1.0 - momentum)
    for i in range(u.size):
        b = buf[i] + (g[i] - buf[i]) * new
        buf[i] = b
        u[i] = g[i] + (b - g[i]) * keep if nesterov else b


def round_to_bfloat16(x):
    """float32 numbers to the nearest that have 8 bits of mantissa, ties to even."""
    bits = x.view(np.uint32)
    for i in range(x.size):
        n = bits[i]
        bits[i] = (n + np.uint32(0x7FFF) + ((n >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)


@helper
def _squares(row):
    """Σ row²; in any order, so vectorised."""
    total = 0.0
    for i in range(row.size):
        v = np.float64(row[i])
        total = radd(total, v * v)
    return total


def sum_of_powers(x, p, first, out):
    """out[0] = (unless ``first``, what it was, and) Σ |x|^p in float64; the largest |x| for p = inf, the nonzeros for p = 0."""
    total = 0.0 if first else out[0]
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


def scale(factor, x):
    """x *= factor[0], unless that is 1."""
    f = x.dtype.type(factor[0])
    if factor[0] == 1.0:
        return
    for i in range(x.size):
        x[i] = x[i] * f


def clamp(limit, x):
    """x clamped to [-limit, limit]; NaN stays."""
    T = x.dtype.type
    high, low = T(limit), T(-limit)
    for i in range(x.size):
        v = x[i]
        x[i] = high if v > high else low if v < low else v
