"""Random orders and choices, from random words and numbers that the caller has drawn; Poisson numbers draw for themselves."""


import numpy as np

from ..codegen import iterative
from ..codegen.jit import helper, math


def shuffle(words, out):
    """out = a random order of 0 … n-1 (Fisher and Yates), one random 64-bit word a place."""
    for i in range(out.size):
        out[i] = i
    for i in range(out.size - 1, 0, -1):
        j = np.int64(np.uint64(words[i]) % np.uint64(i + 1))
        v = out[i]
        out[i] = out[j]
        out[j] = v


def outside_unit(x, out):
    """out[0] = how many elements are not in [0, 1]."""
    n = 0
    for i in range(x.size):
        n += np.int64(not (x[i] >= 0.0 and x[i] <= 1.0))
    out[0] = n


def least(x, out):
    """out[0] = the smallest element, NaN if there is one."""
    low = x[0]
    for i in range(x.size):
        v = x[i]
        if not (v >= low):
            low = v
    out[0] = low


@helper
def _check(row):
    """Return (status, sum): 1 for weights that are negative or not finite, 2 for a sum of 0."""
    total = 0.0
    for i in range(row.size):
        v = row[i]
        if not (v >= 0.0 and v < np.inf):
            return 1, total
        total += v
    return (0 if total > 0.0 else 2), total


def choose_with_replacement(k, n, weights, uniforms, out, status):
    """Write the inverse of the cumulative sum of each row of k weights, at n uniform numbers."""
    status[0] = 0
    cumulative = np.empty(k, np.float64)
    for r in range(weights.size // k):
        row = weights[r * k : r * k + k]
        code, _total = _check(row)
        if code:
            status[0] = code
            return
        c = 0.0
        last = 0
        for i in range(k):
            c += row[i]
            cumulative[i] = c
            if row[i] > 0.0:
                last = i
        for s in range(n):
            u = uniforms[r * n + s] * c
            lo = 0
            hi = last
            while lo < hi:
                mid = (lo + hi) // 2
                if cumulative[mid] > u:
                    hi = mid
                else:
                    lo = mid + 1
            out[r * n + s] = lo


def race(k, n, weights, times, out, status):
    """Write the n first of k runners whose times are exponential with the weights as rates: a draw without replacement.

    A heap keeps the n best so far, the slowest at its top.
    """
    status[0] = 0
    heap = np.empty(n, np.float64)
    who = np.empty(n, np.int64)
    for r in range(weights.size // k):
        row = weights[r * k : r * k + k]
        code, _ = _check(row)
        if code:
            status[0] = code
            return
        runners = 0
        for i in range(k):
            runners += np.int64(row[i] > 0.0)
        if runners < n:
            status[0] = 2
            return
        size = 0
        for i in range(k):
            if not row[i] > 0.0:
                continue
            t = times[r * k + i] / row[i]
            if size < n:
                j = size
                size += 1
                while j > 0 and heap[(j - 1) // 2] < t:
                    heap[j] = heap[(j - 1) // 2]
                    who[j] = who[(j - 1) // 2]
                    j = (j - 1) // 2
                heap[j] = t
                who[j] = i
            elif t < heap[0]:
                _sink(heap, who, n, t, i)
        for place in range(n - 1, -1, -1):  # the slowest comes off first
            out[r * n + place] = who[0]
            _sink(heap, who, place, heap[place], who[place])


@helper
def _sink(heap, who, size, t, i):
    """Replace the top by (t, i) and restore the order of the heap's first ``size`` entries."""
    j = 0
    while True:
        child = 2 * j + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= t:
            break
        heap[j] = heap[child]
        who[j] = who[child]
        j = child
    heap[j] = t
    who[j] = i


@helper
def _philox(seed, call, element, attempt):
    """Return two uniform float64 on (0, 1): draw number ``attempt`` of an element."""
    k0, k1 = np.uint32(seed), np.uint32(seed >> 32)
    c0, c1 = np.uint32(element), np.uint32(attempt)
    c2, c3 = np.uint32(call), np.uint32(call >> 32) ^ np.uint32(element >> 32)
    for _ in range(10):
        p0 = np.uint64(c0) * np.uint64(0xD2511F53)
        p1 = np.uint64(c2) * np.uint64(0xCD9E8D57)
        c0 = np.uint32(p1 >> np.uint64(32)) ^ c1 ^ k0
        c2 = np.uint32(p0 >> np.uint64(32)) ^ c3 ^ k1
        c1, c3 = np.uint32(p1), np.uint32(p0)
        k0 = np.uint32(k0 + np.uint32(0x9E3779B9))
        k1 = np.uint32(k1 + np.uint32(0xBB67AE85))
    return (np.float64(c0) * 2.0**-32 + np.float64(c1 >> np.uint32(11)) * 2.0**-53 + 2.0**-54,
            np.float64(c2) * 2.0**-32 + np.float64(c3 >> np.uint32(11)) * 2.0**-53 + 2.0**-54)  # fmt: skip


def poisson(seed, call, rate, out):
    """Draw Poisson numbers: by multiplication below 10, above by Hörmann's transformed rejection (PTRS, 1993)."""
    for i in range(out.size):
        lam = rate[i]
        attempt = 0
        if lam < 10.0:
            limit = math.exp(-lam)
            product = 1.0
            count = -1
            while product > limit:
                u, v = _philox(seed, call, i, attempt)
                attempt += 1
                product *= u
                count += 1
                if product > limit:
                    product *= v
                    count += 1
            out[i] = max(count, 0)  # (−1 where the limit is rounded to 1)
            continue
        root = math.sqrt(lam)
        b = 0.931 + 2.53 * root
        a = -0.059 + 0.02483 * b
        inverse = 1.1239 + 1.1328 / (b - 3.4)
        vr = 0.9277 - 3.6224 / (b - 2.0)
        while True:
            u, v = _philox(seed, call, i, attempt)
            attempt += 1
            u -= 0.5
            us = 0.5 - abs(u)
            k = math.floor((2.0 * a / us + b) * u + lam + 0.43)
            if us >= 0.07 and v <= vr:
                break
            if k < 0 or (us < 0.013 and v > us):
                continue
            if math.log(v) + math.log(inverse) - math.log(a / (us * us) + b) <= -lam + k * math.log(lam) - math.lgamma(k + 1.0):
                break
        out[i] = k


@helper
def _stirling_rest(k):
    """Return ln k! − (k + ½) ln(k + 1) + k + 1 − ½ ln 2π, which falls to 0 as k grows."""
    n = k + 1.0
    if k < 10.0:
        return math.lgamma(n) - (k + 0.5) * math.log(n) + n - 0.5 * math.log(2.0 * math.pi)
    return (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / (n * n)) / (n * n)) / n


def binomial(seed, call, count, probability, out):
    """Draw binomial numbers: by the gaps between successes where few are expected, else by transformed rejection (BTRS, Hörmann 1993)."""
    for i in range(out.size):
        n = count[i]
        p = probability[i]
        if n != n or p != p:
            out[i] = np.nan
            continue
        if n <= 0.0 or p <= 0.0:
            out[i] = 0.0
            continue
        if p >= 1.0:
            out[i] = n
            continue
        q = min(p, 1.0 - p)
        attempt = 0
        if n * q < 10.0:
            k = -1.0
            reached = 0.0
            scale = math.log1p(-q)
            while reached <= n:
                u, v = _philox(seed, call, i, attempt)
                attempt += 1
                reached += np.ceil(math.log(u) / scale)  # (as floats: as integers large ones go round, and never get there)
                k += 1.0
        else:
            root = math.sqrt(n * q * (1.0 - q))
            b = 1.15 + 2.53 * root
            a = -0.0873 + 0.0248 * b + 0.01 * q
            vr = 0.92 - 4.2 / b
            alpha = (2.83 + 5.1 / b) * root
            top = np.floor((n + 1.0) * q)
            slope = math.log((n - top + 1.0) / (top + 1.0) * (q / (1.0 - q)))
            rest = _stirling_rest(top) + _stirling_rest(n - top)
            while True:
                u, v = _philox(seed, call, i, attempt)
                attempt += 1
                u -= 0.5
                us = 0.5 - abs(u)
                k = np.floor((2.0 * a / us + b) * u + n * q + 0.5)
                if k < 0.0 or k > n:
                    continue
                if us >= 0.07 and v <= vr:
                    break
                # the logarithm of how much less likely k is than top, from their distance: of 10¹⁸ trials the factorials' cancel
                far = k - top
                weight = far * slope + rest - _stirling_rest(k) - _stirling_rest(n - k)
                weight -= (k + 0.5) * math.log1p(far / (top + 1.0)) + (n - k + 0.5) * math.log1p(-far / (n - top + 1.0))
                if math.log(v * alpha / (a / (us * us) + b)) <= weight:
                    break
        out[i] = k if p <= 0.5 else n - k


@helper
def _normal_pair(seed, call, element, attempt):
    """Return a standard normal number and a uniform one."""
    u, v = _philox(seed, call, element, 2 * attempt)
    w, _rest = _philox(seed, call, element, 2 * attempt + 1)
    return math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v), w


def gamma(seed, call, smallest, shape, out):
    """Draw Gamma numbers of the given shapes and scale 1 (Marsaglia and Tsang 2000; below 1 by the power of a uniform number), none of them
    less than ``smallest``, and that where the shape is 0."""
    for i in range(out.size):
        a = shape[i]
        if not a > 0.0:
            out[i] = smallest if a == 0.0 else np.nan
            continue
        if a == np.inf:
            out[i] = a
            continue
        boost = 1.0
        attempt = 0
        if a < 1.0:
            u, _v = _philox(seed, call, i, 1 << 20)
            boost = u ** (1.0 / a)
            a += 1.0
        d = a - 1.0 / 3.0
        c = 1.0 / math.sqrt(9.0 * d)
        while True:
            z, u = _normal_pair(seed, call, i, attempt)
            attempt += 1
            v = 1.0 + c * z
            if v <= 0.0:
                continue
            v = v * v * v
            if math.log(u) < 0.5 * z * z + d - d * v + d * math.log(v):
                break
        x = d * v * boost
        out[i] = max(x, smallest)


def gamma_slope(shape, sample, out):
    """Write d sample / d shape at a fixed place of the distribution: −(∂P/∂a) / p, the slope of P by central differences."""
    for i in range(out.size):
        a, x = shape[i], sample[i]
        h = 1e-5 * max(a, 1e-2)
        if h > 0.5 * a:
            h = 0.5 * a
        if x > a:
            slope = -(iterative.igammac(a + h, x) - iterative.igammac(a - h, x)) / (2.0 * h)
        else:
            slope = (iterative.igamma(a + h, x) - iterative.igamma(a - h, x)) / (2.0 * h)
        logarithm = (a - 1.0) * math.log(x) - x - math.lgamma(a)
        density = math.exp(logarithm)
        if density > 1e-280:
            out[i] = -slope / density
        else:  # where x is tiny, x ~ (u a Γ(a))^(1/a), whose slope in a this is
            out[i] = -x * math.log(x) / a if x < a else 1.0


def onto_simplex(n, smallest, largest, x, out):
    """Divide rows of ``n`` by their sums, no element less than ``smallest`` or greater than ``largest``."""
    for i in range(0, out.size, n):
        total = 0.0
        for j in range(i, i + n):
            total += x[j]
        for j in range(i, i + n):
            out[j] = min(max(x[j] / total, smallest), largest)


@helper
def _digamma(x):
    """Return ψ(x) for x > 0: from 8 on by its asymptotic series."""
    shift = 0.0
    while x < 8.0:
        shift -= 1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    series = r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r * (1.0 / 132 - r * (691.0 / 32760))))))
    return shift + math.log(x) - 0.5 / x - series


@helper
def _beta_fraction(p, q, x, by_first):
    """Return the continued fraction of I_x(p, q), and the slope of its logarithm in ``p`` or in ``q`` (Lentz's method, differentiated)."""
    first = 1.0 if by_first else 0.0
    second = 1.0 - first
    c, c_slope = 1.0, 0.0
    value = (p + q) * x / (p + 1.0)
    d = 1.0 / (1.0 - value)
    d_slope = d * d * value * (1.0 / (p + q) - first / (p + 1.0))
    h, slope = d, d_slope / d
    for m in range(1, 20000):
        before = slope
        share = m * x / ((p + 2.0 * m - 1.0) * (p + 2.0 * m))
        value = share * (q - m)
        value_slope = share * second - first * value * (1.0 / (p + 2.0 * m - 1.0) + 1.0 / (p + 2.0 * m))
        for _half in range(2):
            d_new = 1.0 / (1.0 + value * d)
            d_slope = -d_new * d_new * (value_slope * d + value * d_slope)
            c_slope = value_slope / c - value * c_slope / (c * c)
            c = 1.0 + value / c
            d = d_new
            step = c * d
            h *= step
            slope += d_slope / d + c_slope / c
            value = -(p + m) * (p + q + m) * x / ((p + 2.0 * m) * (p + 2.0 * m + 1.0))
            shares = 1.0 / (p + m) - 1.0 / (p + 2.0 * m) - 1.0 / (p + 2.0 * m + 1.0)
            value_slope = value * (first * shares + 1.0 / (p + q + m))
        if abs(step - 1.0) < 1e-14 and abs(slope - before) <= 1e-12 * abs(slope) + 1e-15:
            break
    return h, slope


def dirichlet_slope(x, alpha, total, out):
    """Write how fast a beta number ``x`` of the parameters alpha and total − alpha moves with alpha where its place in the distribution is
    kept, divided by 1 − x: −(∂I/∂alpha) / p / (1 − x), where I = p · x(1 − x) / alpha · the continued fraction."""
    for i in range(out.size):
        v, a = x[i], alpha[i]
        b = total[i] - a
        if not (v > 0.0 and b > 0.0):
            out[i] = 0.0
        elif v < (a + 1.0) / (a + b + 2.0):
            fraction, slope = _beta_fraction(a, b, v, True)
            out[i] = -v / a * fraction * (math.log(v) + _digamma(a + b) - _digamma(a + 1.0) + slope)
        else:
            fraction, slope = _beta_fraction(b, a, 1.0 - v, False)
            out[i] = v / b * fraction * (math.log(v) + _digamma(a + b) - _digamma(a) + slope)
