"""A grid of single operations and short chains: function × size × layout × dtype × with which gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Step = Callable[[], Any]
Function = Callable[..., Any]  #: of the library and its tensors

SIDES = {"small": 8, "middling": 100, "large": 700}  #: of square operands: 64, 10,000 and 490,000 elements
WAYS = ("forward", "fresh gradient", "added gradient")

POINTWISE: dict[str, Function] = {
    "exp": lambda lib, a: a.exp(),
    "sin": lambda lib, a: a.sin(),
    "tanh": lambda lib, a: a.tanh(),
    "sigmoid": lambda lib, a: a.sigmoid(),
    "relu": lambda lib, a: a.relu(),
    "gelu": lambda lib, a: lib.nn.functional.gelu(a),
    "sqrt of abs": lambda lib, a: a.abs().sqrt(),
    "power 3": lambda lib, a: a**3,
    "where": lambda lib, a: lib.where(a > 0, a, 0.1 * a),
    "dropout": lambda lib, a: a + 0.0 * lib.nn.functional.dropout(a, 0.5),  # (libraries draw different numbers)
    "add": lambda lib, a, b: a + b,
    "multiply": lambda lib, a, b: a * b,
    "divide": lambda lib, a, b: a / (b * b + 1),
    "sigmoid * tanh + exp": lambda lib, a: a.sigmoid() * a.tanh() + a.exp(),
    "polynomial of two": lambda lib, a, b: a * a * b - 3 * a + b,
}
FOLDS: dict[str, Function] = {
    "sum": lambda lib, a: a.sum(),
    "sum of columns": lambda lib, a: a.sum(0),
    "sum of rows": lambda lib, a: a.sum(1),
    "mean of rows": lambda lib, a: a.mean(1),
    "maximum of rows": lambda lib, a: a.max(1).values,
    "variance of rows": lambda lib, a: a.var(1),
    "norm": lambda lib, a: a.norm(),
    "norm p = 3": lambda lib, a: a.norm(p=3),
    "softmax": lambda lib, a: a.softmax(1),
    "log-softmax of columns": lambda lib, a: a.log_softmax(0),
    "logsumexp": lambda lib, a: a.logsumexp(1),
    "cumsum": lambda lib, a: a.cumsum(1),
    "layer norm": lambda lib, a: lib.nn.functional.layer_norm(a, a.shape[-1:]),
    "layer norm by hand": lambda lib, a: (a - a.mean(1, keepdim=True)) / (a.var(1, keepdim=True) + 1e-5).sqrt(),
    "mean squared error": lambda lib, a, b: lib.nn.functional.mse_loss(a, b),
    "cross entropy": lambda lib, a: lib.nn.functional.cross_entropy(a, lib.arange(len(a)) % a.shape[1]),
}
BROADCASTS: dict[str, Function] = {
    "plus a row": lambda lib, a, b: a + b[0],
    "times a column": lambda lib, a, b: a * b[:, :1],
    "row and column": lambda lib, a, b: (a[0] + b[:, :1]).tanh(),
}
PRODUCTS: dict[str, Function] = {
    "a @ b": lambda lib, a, b: a @ b,
    "a @ b.T": lambda lib, a, b: a @ b.t(),
    "matrix @ vector": lambda lib, a, b: a @ b[0],
    "outer": lambda lib, a, b: lib.outer(a[0], b[0]),
    "thin product": lambda lib, a, b: a[:, :2] @ b[:2],
    "linear with relu": lambda lib, a, b: lib.nn.functional.linear(a, b, b[0]).relu(),
    "batched": lambda lib, a, b: lib.bmm(a.expand(4, *a.shape), b.expand(4, *b.shape)),
}
MOVES: dict[str, Function] = {
    "rows picked": lambda lib, a: a.index_select(0, (lib.arange(len(a)) * 7) % len(a)),
    "columns picked": lambda lib, a: a.index_select(1, (lib.arange(len(a)) * 7) % len(a)),
    "gather": lambda lib, a: a.gather(1, (lib.arange(len(a)) * 7 % len(a)).expand(len(a), len(a))),
    "index_add": lambda lib, a, b: a.index_add(0, (lib.arange(len(a)) * 7) % 5, b),
    "rows added": lambda lib, a, b: a.scatter_add(0, (lib.arange(len(a)) * 7 % len(a)).view(-1, 1).expand_as(b), b),
    "greatest of rows": lambda lib, a, b: a.scatter_reduce(0, (lib.arange(len(a)) * 7 % len(a)).view(-1, 1).expand_as(b), b, "amax"),
    "mask picked": lambda lib, a: a[a > 0.5],
    "cat": lambda lib, a, b: lib.cat([a, b], 1),
    "stack": lambda lib, a, b: lib.stack([a, b], 1),
    "transposed copy": lambda lib, a: a.t().contiguous(),
    "flip": lambda lib, a: a.flip(1),
    "roll": lambda lib, a: a.roll(1, 1),
    "pad": lambda lib, a: lib.nn.functional.pad(a, (1, 1)),
    "repeat_interleave": lambda lib, a: a.repeat_interleave(2, 0),
    "middle slice": lambda lib, a: a[:, 1:-1] * 2,
    "sort": lambda lib, a: a.sort(1).values,
    "topk": lambda lib, a: a.topk(3, 1).values,
    "searched": lambda lib, a: a * lib.searchsorted(a.detach()[0].sort().values, a.detach()),
}
#: name -> function, the shapes of its operands
IMAGES: dict[str, tuple[Function, list[tuple[int, ...]]]] = {
    "conv 3×3, 8 channels of 28×28": (lambda lib, x, w: lib.nn.functional.conv2d(x, w, padding=1), [(8, 8, 28, 28), (16, 8, 3, 3)]),
    "conv 3×3, 64 channels of 7×7": (lambda lib, x, w: lib.nn.functional.conv2d(x, w, padding=1), [(8, 64, 7, 7), (64, 64, 3, 3)]),
    "conv 3×3, 256 channels of 4×4": (lambda lib, x, w: lib.nn.functional.conv2d(x, w, padding=1), [(4, 256, 4, 4), (256, 256, 3, 3)]),
    "conv 1×1, 512 channels of 7×7": (lambda lib, x, w: lib.nn.functional.conv2d(x, w), [(2, 512, 7, 7), (128, 512, 1, 1)]),
    "depthwise 7×7": (lambda lib, x, w: lib.nn.functional.conv2d(x, w, padding=3, groups=32), [(4, 32, 14, 14), (32, 1, 7, 7)]),
    "conv of one channel 64×64": (lambda lib, x, w: lib.nn.functional.conv2d(x, w), [(8, 1, 64, 64), (16, 1, 5, 5)]),
    "patches": (lambda lib, x, w: lib.nn.functional.conv2d(x, w, stride=4), [(8, 3, 32, 32), (64, 3, 4, 4)]),
    "max_pool2d": (lambda lib, x: lib.nn.functional.max_pool2d(x, 2), [(8, 16, 28, 28)]),
    "avg_pool2d": (lambda lib, x: lib.nn.functional.avg_pool2d(x, 2), [(8, 16, 28, 28)]),
    "adaptive_avg_pool2d": (lambda lib, x: lib.nn.functional.adaptive_avg_pool2d(x, 1), [(8, 64, 7, 7)]),
    "batch_norm": (lambda lib, x: lib.nn.functional.batch_norm(x, None, None, training=True), [(8, 16, 28, 28)]),
    "reflection pad": (lambda lib, x: lib.nn.functional.pad(x, (2, 2, 2, 2), mode="reflect"), [(8, 16, 28, 28)]),
    "bilinear": (lambda lib, x: lib.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"), [(4, 8, 14, 14)]),
    "attention": (lambda lib, q, k, v: lib.nn.functional.scaled_dot_product_attention(q, k, v), [(4, 4, 64, 32)] * 3),
    "attention, one query": (lambda lib, q, k, v: lib.nn.functional.scaled_dot_product_attention(q, k, v), [(4, 4, 1, 32), *[(4, 4, 64, 32)] * 2]),
    "attention, one query, many keys": (
        lambda lib, q, k, v: lib.nn.functional.scaled_dot_product_attention(q, k, v),
        [(2, 12, 1, 64), *[(2, 12, 512, 64)] * 2],
    ),
    "cholesky": (lambda lib, a: lib.linalg.cholesky(a @ a.mT + 32 * lib.eye(32)), [(32, 32)]),
    "solve": (lambda lib, a, b: lib.linalg.solve(a @ a.mT + 32 * lib.eye(32), b), [(32, 32), (32, 4)]),
    "batched qr": (lambda lib, a: lib.linalg.qr(a).R, [(16, 12, 8)]),
    "fft2": (lambda lib, a: lib.fft.fft2(a).abs(), [(64, 64)]),
    "median": (lambda lib, a: a.median(1).values, [(100, 100)]),
    "sum of a middle dimension": (lambda lib, a: a.sum(1), [(32, 64, 48)]),
    "maximum of two columns": (lambda lib, a: a.max(1).values, [(5000, 2)]),
}


def operands(lib: Any, shapes: list[tuple[int, ...]], dtype: str, layout: str) -> list[Any]:
    """Return leaves' values with the given memory's order."""
    generator = lib.Generator().manual_seed(0)
    found = []
    for shape in shapes:
        kind = getattr(lib, dtype)
        if layout == "transposed":
            found.append(lib.randn(shape[::-1], dtype=kind, generator=generator).permute(*reversed(range(len(shape)))))
        elif layout == "sliced":
            found.append(lib.randn((*shape[:-1], shape[-1] + 3), dtype=kind, generator=generator)[..., : shape[-1]])
        else:
            found.append(lib.randn(shape, dtype=kind, generator=generator))
    return found


def step(lib: Any, function: Function, given: list[Any], way: str) -> Step:
    """Return the case: forward alone, with gradients that are made, or with gradients that are added to."""
    if way == "forward":

        def forward() -> Any:
            with lib.no_grad():
                return function(lib, *given)

        return forward
    leaves = [t.requires_grad_() for t in given]
    result = function(lib, *given).detach()
    seed = lib.arange(result.numel()).sin().to(result.dtype).reshape(result.shape)
    fresh = way == "fresh gradient"

    def backward() -> None:
        if fresh:
            for t in leaves:
                t.grad = None
        function(lib, *given).backward(seed)

    return backward


def grid() -> Iterator[tuple[str, Function, list[tuple[int, ...]], str, str, str]]:
    """Yield name, function, shapes, dtype, layout and way of every case."""
    square = {**POINTWISE, **FOLDS, **BROADCASTS, **PRODUCTS, **MOVES}
    for name, function in square.items():
        count = function.__code__.co_argcount - 1
        for size, side in SIDES.items():
            for way in WAYS:
                yield f"{name}, {size}, {way}", function, [(side, side)] * count, "float32", "contiguous", way
    for name, function in {**POINTWISE, **FOLDS, **BROADCASTS}.items():
        count = function.__code__.co_argcount - 1
        for layout in ("transposed", "sliced"):
            yield f"{name}, middling, {layout}, fresh gradient", function, [(100, 100)] * count, "float32", layout, "fresh gradient"
        yield f"{name}, middling, float64, fresh gradient", function, [(100, 100)] * count, "float64", "contiguous", "fresh gradient"
    for name, (function, shapes) in IMAGES.items():
        for way in WAYS:
            yield f"{name}, {way}", function, shapes, "float32", "contiguous", way


def cases(lib: Any) -> Iterator[tuple[str, Callable[[Any], Step]]]:
    """Yield the name of every case, and what makes its step for a library."""
    for name, function, shapes, dtype, layout, way in grid():

        def make(
            lib: Any, function: Function = function, shapes: Any = shapes, dtype: str = dtype, layout: str = layout, way: str = way
        ) -> Step:
            return step(lib, function, operands(lib, shapes, dtype, layout), way)

        yield name, make
