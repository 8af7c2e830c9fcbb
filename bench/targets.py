"""The ratios to PyTorch that are aimed at, by suite and group: (geometric mean, worst row)."""

from __future__ import annotations

#: (suite, group) -> targets; a group that is not named falls under its suite's (suite, "")
TARGETS: dict[tuple[str, str], tuple[float | None, float | None]] = {
    ("overhead", ""): (0.6, 0.9),
    ("kernels", "pointwise, cheap"): (0.6, None),
    ("kernels", "pointwise"): (0.6, None),
    ("kernels", "pointwise, chain"): (0.6, None),
    ("kernels", "pointwise, strided"): (0.6, None),
    ("kernels", "reduction"): (0.8, None),
    ("kernels", "softmax"): (0.8, None),
    ("kernels", "norm"): (0.8, None),
    ("kernels", "cross entropy"): (0.8, None),
    ("kernels", "indexing"): (0.9, None),
    ("kernels", "GEMM"): (1.05, None),
    ("kernels", "convolution"): (1.2, 1.6),
    ("kernels", ""): (None, None),
    ("models", ""): (0.75, 1.1),
}


def target(suite: str, group: str) -> tuple[float | None, float | None]:
    return TARGETS.get((suite, group), (None, None))
