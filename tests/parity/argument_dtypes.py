"""Two operands of any dtypes, with dims or without: the result and its dtype, or the type of the error.

``python -m tests.parity.argument_dtypes [call…]`` prints what differs; `test_walks` runs it without compiling.
"""

from __future__ import annotations

import sys
from itertools import product

from .snippets import difference

#: calls on `a` and `b`
CALLS = [
    "a << b", "a >> b", "t.bitwise_left_shift(a, b)", "a.clone().__ilshift__(b)", "a.clone().bitwise_right_shift_(b)", "a << 1", "a << True", "1 << b",
    "a << 1.5", "a & b", "a | b", "a ^ b", "t.gcd(a, b)", "t.lcm(a, b)", "t.igamma(a, b)", "t.igammac(a, b)", "t.nextafter(a, b)", "t.copysign(a, b)",
    "t.rsub(a, b)", "t.rsub(a, b, alpha=2)", "t.rsub(a, 3, alpha=2)", "t.rsub(a, b, alpha=True)", "t.rsub(a, 1.5, alpha=2.5)", "a - b", "a.sub(b, alpha=2)",
    "t.isin(a, b)", "t.isin(a, 1)", "t.lerp(a, b, 0.5)", "t.lerp(a, b, 1e40)", "t.lerp(a, a, b)", "a.clone().lerp_(a, b)", "t.ldexp(a, b)", "t.heaviside(a, b)",
    "t.atan2(a, b)", "t.hypot(a, b)", "t.logaddexp(a, b)", "t.xlogy(a, b)", "t.float_power(a, b)", "t.fmod(a, b)", "t.remainder(a, b)", "t.fmax(a, b)",
    "t.maximum(a, b)", "t.true_divide(a, b)", "t.floor_divide(a, b)", "t.trapezoid(a, b)", "t.cumulative_trapezoid(a, b)", "t.trapezoid(a)",
    "t.trapezoid(a, dx=.5)", "t.cov(a)", "t.cov(a, fweights=b)", "t.cov(a, aweights=b)", "t.bucketize(a, b)", "t.searchsorted(b, a)", "t.dot(a, b)",
    "t.outer(a, b)", "t.kron(a, b)", "t.cdist(a[None], b[None])", "F.cosine_similarity(a, b, 0)", "F.pairwise_distance(a, b)", "t.dist(a, b)",
    "t.addcmul(a, a, b)", "t.addcdiv(a, a, b)", "t.add(a, b, alpha=2)", "t.complex(a, b)", "t.polar(a, b)", "t.where(a > 0, a, b)", "t.clamp(a, min=b)",
    "a.tensor_split(b)", "a.gather(0, b)", "a.gather(0, b[:0])", "a.index_select(0, b)", "a.take(b)", "a.masked_fill(b, 1)", "a.masked_select(b)",
    "a.index_add(0, t.tensor([0, 1]), b)", "a.scatter(0, t.tensor([0]), b)", "a.new_zeros(3).copy_(b)", "t.cat([a, b])", "t.stack([a, b])",
    "t.quantile(a, b)", "t.bincount(b, a)", "t.repeat_interleave(a, b)", "t.tensordot(a, b, 1)", "t.addr(a[0], a, b)",
    "t.cross(t.cat([a, a[:1]]), t.cat([b, b[:1]]))",
    *[f"F.{loss}(a, b, reduction='{how}')" for how in ("none", "sum", "mean") for loss in (
        "l1_loss", "mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "kl_div", "poisson_nll_loss", "binary_cross_entropy_with_logits",
        "hinge_embedding_loss", "cross_entropy", "multilabel_margin_loss",
    )],
    "F.multi_margin_loss(a[None], b[:1])", "F.nll_loss(a, b[0])", "F.smooth_l1_loss(a, b, beta=0.)", "F.mse_loss(a, b, weight=b)",
]  # fmt: skip
DTYPES = ("bool", "uint8", "int64", "float16", "float32", "float64", "complex64")
PAIRS = [p for p in product(DTYPES, DTYPES) if set(p) != {"float16", "complex64"} and p != ("float16", "float16")]
#: calls whose differences are known, and why
KNOWN = {
    "t.cumulative_trapezoid(a, b)": "which of two errors",
    "t.cov(a, aweights=b)": "of integers with weights in half precision is float32",
}


def main(calls: list[str]) -> int:
    found, known = [], set()
    for d, e in PAIRS:
        for x, y in (("[1, 0]", "[1, 1]"), ("1", "[1, 1]"), ("[1, 0]", "1")):
            before = f"a = t.tensor({x}).to(t.{d}); b = t.tensor({y}).to(t.{e})"
            for call in calls or CALLS:
                if "complex64" in (d, e) and "F." in call:
                    continue
                text = difference(f"r = {call}", before, 1e-2 if "float16" in (d, e) else 1e-5, kinds="subclasses")
                if text and call in KNOWN:
                    known.add(call)
                elif text:
                    found.append(f"{before}; {text}")
    found += [f"{call}: is known to differ, and does not" for call in KNOWN if call not in known and (not calls or call in calls)]
    print("\n".join(found))
    print(f"{len(found)} differences")
    return len(found) > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
