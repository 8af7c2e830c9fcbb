"""What a second thread gains: ``python -m bench.threads [--threads 2] [--torch] [name …]``.

Each row runs one step on one thread and on several in turn, in blocks, and prints the median of the ratios; the target is 1.7 on
two threads. Results must have the same bits. Wants a machine with nothing else to do: the first line says what two threads gain
on it where nothing is shared, which is the most that any row can.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

BLOCKS = 9  #: rounds of each number of threads, in turn
SIZE = 1 << 24
TARGET = 1.7


def numbers(lib: Any, *shape: int, seed: int = 0) -> Any:
    """Normal float32 numbers, the same for every library."""
    return lib.tensor(np.random.default_rng(seed).standard_normal(shape, dtype=np.float32))


def gradients(y: Any, *leaves: Any) -> list:
    """The output and the leaves' gradients, which are then forgotten."""
    y.backward()
    found = [y.detach(), *[p.grad for p in leaves]]
    for p in leaves:
        p.grad = None
    return found


def chain(lib: Any) -> Callable:
    """Forward and backward of a chain of pointwise ops."""
    x, y = numbers(lib, SIZE).requires_grad_(), numbers(lib, SIZE, seed=1)
    return lambda: gradients(((x * y).tanh() + x.exp() * 0.5).sigmoid().sum(), x)


def add(lib: Any) -> Callable:
    """One op that only moves memory."""
    x, y = numbers(lib, SIZE), numbers(lib, SIZE, seed=1)
    return lambda: [x + y]


def transposed(lib: Any) -> Callable:
    """Pointwise on operands of different strides."""
    x, y = numbers(lib, 4096, 4096), numbers(lib, 4096, seed=1)
    return lambda: [x.t() * y + x]


def total(lib: Any) -> Callable:
    """The sum of everything, of rows and of columns."""
    x = numbers(lib, 4096, 4096)
    return lambda: [x.sum(), x.sum(0), x.sum(1)]


def softmax(lib: Any) -> Callable:
    """Forward and backward."""
    x, g = numbers(lib, 16384, 1024).requires_grad_(), numbers(lib, 16384, 1024, seed=1)
    return lambda: [lib.autograd.grad(y := x.softmax(1), x, g)[0], y.detach()]


def cross_entropy(lib: Any) -> Callable:
    """With a large vocabulary."""
    x = numbers(lib, 512, 32000).requires_grad_()
    target = lib.arange(512) * 61
    return lambda: gradients(lib.nn.functional.cross_entropy(x, target), x)


def layer_norm(lib: Any) -> Callable:
    """Forward and backward."""
    x, w, b = numbers(lib, 16384, 1024).requires_grad_(), lib.ones(1024).requires_grad_(), lib.zeros(1024).requires_grad_()
    g = numbers(lib, 16384, 1024, seed=1)
    return lambda: list(lib.autograd.grad(lib.nn.functional.layer_norm(x, (1024,), w, b), (x, w, b), g))


def convolution(channels: int, size: int, images: int) -> Callable:
    """3 × 3, forward and backward."""

    def build(lib: Any) -> Callable:
        x = numbers(lib, images, channels, size, size).requires_grad_()
        w, b = (
            (numbers(lib, channels, channels, 3, 3, seed=1) * 0.05).requires_grad_(),
            numbers(lib, channels, seed=2).requires_grad_(),
        )
        g = numbers(lib, images, channels, size, size, seed=3)
        return lambda: list(lib.autograd.grad(lib.nn.functional.conv2d(x, w, b, padding=1), (x, w, b), g))

    return build


def product(n: int) -> Callable:
    """A product of square matrices."""

    def build(lib: Any) -> Callable:
        a, b = numbers(lib, n, n), numbers(lib, n, n, seed=1)
        return lambda: [a @ b]

    return build


def step(lib: Any, model: Any, x: Any, target: Any) -> Callable:
    """A training step from the same weights each time."""
    optimizer = lib.optim.SGD(model.parameters(), lr=0.0)

    def run() -> list:
        optimizer.zero_grad()
        loss = lib.nn.functional.cross_entropy(model(x), target)
        loss.backward()
        found = [loss.detach(), *[p.grad for p in model.parameters()]]
        optimizer.step()
        return found

    return run


def mlp(lib: Any) -> Callable:
    """A training step of a wide MLP: products."""
    lib.manual_seed(0)
    n = lib.nn
    model = n.Sequential(n.Linear(784, 2048), n.ReLU(), n.Linear(2048, 2048), n.ReLU(), n.Linear(2048, 10))
    return step(lib, model, numbers(lib, 512, 784), lib.arange(512) % 10)


def convnet(lib: Any) -> Callable:
    """A training step of conv, batch norm, ReLU and pooling."""
    lib.manual_seed(0)
    n = lib.nn
    model = n.Sequential(
        n.Conv2d(3, 32, 3, padding=1), n.BatchNorm2d(32), n.ReLU(), n.MaxPool2d(2), n.Conv2d(32, 64, 3, padding=1), n.BatchNorm2d(64),
        n.ReLU(), n.MaxPool2d(2), n.Flatten(), n.Linear(64 * 8 * 8, 10),
    )  # fmt: skip
    return step(lib, model, numbers(lib, 128, 3, 32, 32), lib.arange(128) % 10)


def attention(lib: Any) -> Callable:
    """Scaled dot products, forward and backward."""
    q, k, v = (numbers(lib, 8, 8, 512, 64, seed=i).requires_grad_() for i in range(3))
    g = numbers(lib, 8, 8, 512, 64, seed=3)
    return lambda: list(
        lib.autograd.grad(lib.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True), (q, k, v), g)
    )


def adam(lib: Any) -> Callable:
    """An update of 16M parameters."""
    p = lib.nn.Parameter(numbers(lib, SIZE))
    optimizer = lib.optim.AdamW([p], lr=0.0, weight_decay=0.0)
    p.grad = numbers(lib, SIZE, seed=1)

    def run() -> list:
        optimizer.step()
        return [p.detach()]

    return run


CASES: dict[str, Callable] = {
    "pointwise chain 16M": chain, "add 16M": add, "transposed 16M": transposed, "sums 16M": total, "softmax 16M": softmax,
    "layer norm 16M": layer_norm, "cross entropy 512 x 32000": cross_entropy, "conv 64 x 56 x 56": convolution(64, 56, 16),
    "conv 256 x 14 x 14": convolution(256, 14, 32), "conv 16 x 28 x 28": convolution(16, 28, 64), "product 512": product(512),
    "product 2048": product(2048), "attention": attention, "AdamW 16M": adam, "MLP step": mlp, "conv net step": convnet,
}  # fmt: skip


def compare(lib: Any, build: Callable, threads: int) -> tuple[float, float, float, bool]:
    """(median seconds on one thread, on several, median ratio, whether the results are the same)."""
    run = build(lib)
    ones, many, ratios = [], [], []
    first = None
    same = True
    for block in range(-1, BLOCKS):
        pair = []
        for count in (1, threads):
            lib.set_num_threads(count)
            begin = time.perf_counter()
            found = run()
            pair.append(time.perf_counter() - begin)
            if block < 1:  # compiled, and compared
                got = [t.numpy().tobytes() for t in found]
                first = first or got
                same = same and got == first
            del found
        if block >= 0:
            ones.append(pair[0])
            many.append(pair[1])
            ratios.append(pair[0] / pair[1])
    return statistics.median(ones), statistics.median(many), statistics.median(ratios), same


def most(threads: int) -> float:
    """What threads that share nothing gain here."""
    import autograd_nb
    from autograd_nb.codegen import threads as pool
    from autograd_nb.launch import entry

    x = autograd_nb.randn(4096)
    source = (
        "def kernel(a, o):\n    for k in range(2000):\n        for i in range(o.size):\n            o[i] = a[i] * o[i] + a[i]\n"
    )
    kernel = entry(source, "kernel", ("float32[:]", "float32[:]"))
    outs = [x.clone()._data for _ in range(threads)]
    ratios = []
    for _ in range(BLOCKS):
        begin = time.perf_counter()
        for o in outs:
            kernel(x._data, o)
        middle = time.perf_counter()
        autograd_nb.set_num_threads(threads)
        pool.run(kernel, [(x._data, o) for o in outs])
        ratios.append((middle - begin) / (time.perf_counter() - middle))
    return statistics.median(ratios)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="only rows whose name contains one of these")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--torch", action="store_true", help="PyTorch beside it")
    args = parser.parse_args()
    libs = ["autograd_nb"] + (["torch"] if args.torch else [])
    print(f"threads that share nothing: ×{most(args.threads):.2f}")
    print(f"{'':28s}" + "".join(f"{name:>14s} 1   {args.threads:9d}    gain" for name in libs))
    missed = 0
    for name, build in CASES.items():
        if args.names and not any(n in name for n in args.names):
            continue
        line = f"{name:28s}"
        for library in libs:
            one, several, ratio, same = compare(importlib.import_module(library), build, args.threads)
            line += f"{one * 1e3:13.2f} ms {several * 1e3:9.2f} ms  ×{ratio:.2f}"
            if library == "autograd_nb":
                line += "" if same else "  OTHER BITS"
                missed += not same or (args.threads == 2 and ratio < TARGET)
        print(line, flush=True)
    print(f"{missed} rows below ×{TARGET} or with other bits")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
