"""Numbers beyond what a dtype holds, as arguments of ops: converted, wrapped or refused.

``python -m tests.parity.number_arguments`` prints what differs; `test_walks` runs it without compiling.
"""

from __future__ import annotations

import sys

from .snippets import difference

#: numbers beyond what the dtype of `x`, [1, 100, 100, 3], holds, as arguments of ops
ARGUMENTS = [
    "x.clamp(-1, 300)", "x.clamp_(-1, 300)", "x.clamp(0.5, 300)", "x.clamp_(-300, 2.5)",
    "x.clamp(max=1e40)", "x.clamp_(max=1e40)", "x.clamp_min(300)", "x.clamp(2**63)", "x.clamp(max=float('inf'))",
    "x + 2**63", "x * 2**63", "2**63 - x", "x < 2**63", "x == 2**64", "x - 2**64", "x.add_(2**63)", "x ** 2**63", "x.add(1, alpha=300)", "x.add(1, alpha=True)",
    "x.add(1., alpha=1e40)", "t.where(x > 1, x, 300)", "t.where(x > 1, x, 2.5)", "F.threshold(x, 2, 300)", "F.threshold(x, 1e40, 3)",
    "F.hardtanh(x, -300, 300)",
    "t.addcmul(x, x, x, value=300)", "t.addcmul(x, x, x, value=2.5)", "t.tensor([2**63])", "t.tensor(2**63)", "t.tensor([300], dtype=x.dtype)",
    "t.tensor([2**70, 1.0])", "t.tensor([2**70, True], dtype=t.float32)",
    "t.tensor(-1, dtype=x.dtype)", "t.tensor([-1], dtype=x.dtype)", "t.tensor(300, dtype=x.dtype)", "t.tensor([2.7, 1], dtype=x.dtype)",
    "F.pad(x, (1, 1), value=300)", "x.masked_fill(x > 1, 2**63)", "x.fill_(2**63)", "x.fill_(2**64)", "t.full((2,), 2**63)", "t.full_like(x, 2**63)",
    "t.addbmm(x.reshape(2, 2), x.reshape(1, 2, 2), x.reshape(1, 2, 2))", "t.addmm(x.reshape(2, 2), x.reshape(2, 2), x.reshape(2, 2), alpha=1e40)",
    *(f"x[{k}] = {v}; r = x" for k in ("0", "...", "1:", "x > 1", "[0]", "True") for v in (7e4, -1e39, 10**6, "float('nan')", 300)),
    *(f"F.{name}" for e in ("7e4", "1e39", "-1e39", "1e-8", "-1e-8") for name in (
        f"hardtanh(x, -1e5, {e})", f"hardtanh(x, {e}, 1e6)", f"cosine_similarity(x, x + 1, 0, {e})", f"threshold(x, {e}, 7)", f"threshold(x, 7, {e})",
        f"gaussian_nll_loss(x, x, x * 0 + 1, eps={e})", f"gaussian_nll_loss(x, x, x * 0, eps={e})")),
    *(f"{call}{e})" for e in ("7e4", "1e39", "-1e39", "1e-8") for call in ("t.logit(x / 200, ", "(x / 200).logit_(", "t.special.logit(x / 200, ")),
    "F.instance_norm(x.reshape(2, 1, 2) * 0, eps=0.0)",
    "x.cumsum(0)", "x.cumsum_(0)", "x.cumprod(0)", "x.cumprod_(0)", "x.sum()", "x.prod()", "t.fmod(x, 300)",
]  # fmt: skip
DTYPES = ("uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32")


def main() -> int:
    found = []
    for dtype in DTYPES:
        before = f"x = t.tensor([1, 100, 100, 3]).to(t.{dtype}); kept = x"
        found += [f"{before}\n{text}" for call in ARGUMENTS if (text := difference(f"r = {call}", before, 1e-2 if dtype.endswith("float16") else 1e-5))]
    print("\n".join(found))
    print(f"{len(found)} differences")
    return len(found) > 0


if __name__ == "__main__":
    sys.exit(main())
