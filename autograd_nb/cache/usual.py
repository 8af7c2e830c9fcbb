"""The usual kernels: what ``python -m autograd_nb cache warm`` compiles before a program needs it.

A kernel's types do not depend on shapes, so running each op once on a few numbers puts into the cache what a program with
tensors of any size will load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

POINTWISE = (
    "exp", "log", "tanh", "sigmoid", "relu", "sqrt", "abs", "neg", "square", "sin", "cos", "reciprocal", "rsqrt", "erf",
)  # fmt: skip
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "pow")
TENSORS = ("maximum", "minimum")  # which take no numbers


def usual_kernels() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield (what it is, a call that compiles it) for the ops of ordinary training programs."""
    import autograd_nb as ag
    from autograd_nb.nn import functional as F

    for name in ("float32", "float64"):
        d = getattr(ag, name)

        def leaf(*shape: int, d: Any = d) -> Any:
            return ag.full(shape, 0.5, dtype=d, requires_grad=True)

        for op in POINTWISE:
            yield f"{op} {name}", partial(_unary, op, leaf)
        for op in BINARY:

            def binary(op: str = op, leaf: Any = leaf) -> None:
                one = ag.ones(4, 3, dtype=leaf(1).dtype)
                pairs: list[tuple[Any, Any]] = [(leaf(4, 3), leaf(4, 3)), (leaf(4, 3), leaf(3))]
                for a, b in pairs if op in TENSORS else [*pairs, (leaf(4, 3), 2.5)]:
                    getattr(ag, op)(a, b).backward(one)

            yield f"{op} {name}", binary
        for op in ("sum", "mean", "amax", "softmax", "log_softmax"):
            for dim in (0, 1):
                yield f"{op} {name}, dim {dim}", partial(_along, op, dim, leaf)

        def mlp(leaf: Any = leaf) -> None:
            loss = F.cross_entropy(F.relu(F.linear(leaf(4, 8), leaf(16, 8), leaf(16))), ag.zeros(4, dtype=ag.int64))
            loss.backward()

        def images(leaf: Any = leaf) -> None:
            y = F.max_pool2d(F.relu(F.conv2d(leaf(2, 3, 8, 8), leaf(4, 3, 3, 3), leaf(4), padding=1)), 2)
            y.flatten(1).sum().backward()

        def matmul(leaf: Any = leaf) -> None:
            (leaf(2, 3, 4) @ leaf(4, 5)).sum().backward()
            F.mse_loss(leaf(4, 3) @ leaf(3, 2), ag.zeros(4, 2, dtype=leaf(1).dtype)).backward()

        yield f"linear, cross entropy {name}", mlp
        yield f"conv2d, max_pool2d {name}", images
        yield f"matmul, mse_loss {name}", matmul
    yield "optimizers", _optimizers
    yield "random numbers", lambda: (ag.rand(4), ag.randn(4), ag.randperm(4), ag.randint(0, 4, (4,)))


def _unary(op: str, leaf: Any) -> None:
    import autograd_nb as ag

    getattr(ag, op)(leaf(8)).backward(ag.ones(8, dtype=leaf(1).dtype))


def _along(op: str, dim: int, leaf: Any) -> None:
    import autograd_nb as ag

    getattr(ag, op)(leaf(4, 9), dim).sum().backward()


def _optimizers() -> None:
    import autograd_nb as ag

    for make in (lambda p: ag.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: ag.optim.Adam(p), lambda p: ag.optim.AdamW(p)):
        w = ag.ones(3, requires_grad=True)
        optimizer = make([w])
        (w * w).sum().backward()
        optimizer.step()
