"""Norms of no channels, of empty batches, of one value, of wrong numbers of features: values, shapes and errors.

``python -m tests.parity.norm_shapes`` prints what differs; `test_walks` runs it without compiling.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from .snippets import difference

SHAPES = [(2, 3), (0, 3), (2, 0), (1, 3), (2, 3, 4), (0, 3, 4), (2, 0, 4), (2, 3, 0), (2, 3, 1), (1, 3, 1), (0,), (), (2, 4, 3),
          (2, 3, 2, 2), (0, 3, 2, 2), (2, 0, 2, 2), (2, 3, 0, 2), (2, 3, 1, 1), (2, 3, 2, 1, 2), (0, 0), (0, 0, 0)]  # fmt: skip
FUNCTIONS = [
    "F.batch_norm(x, None, None, training=True)", "F.batch_norm(x, o(3), o(3))", "F.batch_norm(x, o(3), o(3), o(3), o(3), True)",
    "F.batch_norm(x, o(0), o(0))", "F.batch_norm(x, o(0), o(0), o(0), o(0), True)", "F.batch_norm(x, o(2), o(3))", "F.batch_norm(x, o(3), o(2))",
    "F.batch_norm(x, o(3), o(3), o(2))", "F.batch_norm(x, o(3), o(3), o(3), o(2))", "F.batch_norm(x, o(3), None)", "F.batch_norm(x, None, None)",
    "F.batch_norm(x, o(3, 1), o(3))", "F.batch_norm(x, o(3), o(3), o(3, 1))",
    "F.instance_norm(x)", "F.instance_norm(x, weight=o(3), bias=o(3))", "F.instance_norm(x, o(3), o(3))",
    "F.instance_norm(x, o(3), o(3), use_input_stats=False)",
    "F.instance_norm(x, weight=o(2))", "F.instance_norm(x, o(2), o(2))", "F.instance_norm(x, weight=o(0), bias=o(0))",
    "F.group_norm(x, 1)", "F.group_norm(x, 3)", "F.group_norm(x, 2)", "F.group_norm(x, 3, o(3), o(3))", "F.group_norm(x, 1, o(2), o(3))",
    "F.group_norm(x, 1, o(3), o(2))", "F.group_norm(x, 1, o(0), o(0))",
    "F.layer_norm(x, x.shape[-1:])", "F.layer_norm(x, (3,))", "F.layer_norm(x, (3,), o(3), o(3))", "F.layer_norm(x, (3,), o(2))", "F.layer_norm(x, ())",
    "F.layer_norm(x, x.shape)", "F.layer_norm(x, (0,), o(0), o(0))", "F.rms_norm(x, x.shape[-1:])", "F.rms_norm(x, (3,), o(3))", "F.rms_norm(x, (3,), o(2))",
    "F.local_response_norm(x, 2)",
]  # fmt: skip
MODULES = [
    f"nn.{name}{d}d({arguments})"
    for name in ("BatchNorm", "InstanceNorm")
    for d in (1, 2, 3)
    for arguments in ("3", "0", "2", "3, affine=False", "3, track_running_stats=False", "3, affine=True, track_running_stats=True")
] + ["nn.GroupNorm(1, 3)", "nn.GroupNorm(3, 3)", "nn.GroupNorm(1, 0)", "nn.GroupNorm(1, 2)", "nn.LayerNorm(3)", "nn.LayerNorm(0)", "nn.RMSNorm(3)"]


def programs() -> Iterator[tuple[str, str]]:
    for shape in SHAPES:
        before = f"x = (t.arange({max(1, _count(shape))}.) ** 1.5)[:{_count(shape)}].reshape({shape}).requires_grad_(); o = lambda *s: t.ones(s)"
        after = "\ng = t.autograd.grad(y.sum(), x, allow_unused=True) if y.requires_grad else None; r = y, g"
        for call in FUNCTIONS:
            yield f"y = {call}{after}", before
        for module in MODULES:
            for mode in ("train", "eval"):
                yield f"m = {module}.{mode}(); y = m(x){after}, getattr(m, 'running_mean', None), getattr(m, 'running_var', None)", before


def _count(shape: tuple) -> int:
    n = 1
    for s in shape:
        n *= s
    return n


def main() -> int:
    found = [f"{before}\n{text}" for code, before in programs() if (text := difference(code, before, 1e-4, kinds=True))]
    print("\n".join(found))
    print(f"{len(found)} differences")
    return len(found) > 0


if __name__ == "__main__":
    sys.exit(main())
