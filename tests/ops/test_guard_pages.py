"""No kernel reads or writes beside its arrays: they are laid against memory that may not be touched, on either side.

The inner loops of products and convolutions are written as vectors (`codegen.lanes`, `tiles`, `vectors`), and none of them looks
at bounds, so a step too far would be a crash once in a thousand runs. Here it is one each time, in a process of its own.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb import launch

from . import test_convolution, walk

pytestmark = pytest.mark.slow

PAGE = mmap.PAGESIZE
SIZES = (1, 3, 8, 9, 17, 33, 65, 130)  #: around those of tiles and vectors, and across them


class Guarded:
    """An observer of launches which runs each kernel on copies of its arrays that end, or begin, where a forbidden page does."""

    def __init__(self, at_end: bool):
        self.at_end = at_end
        self.protect = ctypes.CDLL(None, use_errno=True).mprotect
        self.protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

    def block(self, size: int) -> np.ndarray:
        room = max(PAGE, -(-size // PAGE) * PAGE)
        memory = np.frombuffer(mmap.mmap(-1, room + 2 * PAGE), np.uint8)
        for forbidden in (0, PAGE + room):
            assert self.protect(memory.ctypes.data + forbidden, PAGE, 0) == 0
        start = PAGE + (room - size if self.at_end else 0)
        return memory[start : start + size]

    def __call__(self, call, args):
        arrays = [a for given in args for a in (given if isinstance(given, list) else [given]) if isinstance(a, np.ndarray)]
        blocks: list[list] = []  # first and last address, the copy; arrays that overlap share one
        for array in sorted(arrays, key=lambda a: a.ctypes.data):
            begin, end = array.ctypes.data, array.ctypes.data + array.nbytes
            if blocks and begin < blocks[-1][1]:
                blocks[-1][1] = max(end, blocks[-1][1])
            else:
                blocks.append([begin, end])
        for block in blocks:
            block.append(self.block(block[1] - block[0]))
            ctypes.memmove(block[2].ctypes.data, block[0], block[2].size)

        def moved(array):
            begin, _, copy = max((b for b in blocks if b[0] <= array.ctypes.data), key=lambda b: b[:2])
            place = array.ctypes.data - begin
            return copy[place : place + array.nbytes].view(array.dtype)

        call.entry(*[[moved(a) for a in x] if isinstance(x, list) else moved(x) if isinstance(x, np.ndarray) else x for x in args])
        for begin, _, copy in blocks:
            ctypes.memmove(begin, copy.ctypes.data, copy.size)


def convolutions() -> Iterator[tuple[str, Callable, tuple]]:
    for name, (x, w, options) in test_convolution.CASES.items():
        dims = len(x) - 2
        yield name, lambda a, b, c, d=dims, o=options: getattr(F, f"conv{d}d")(a, b, c, **o), (x, w, (w[0],))
        if x[0] * x[1] and "padding" not in options:
            turned = getattr(F, f"conv_transpose{dims}d")
            yield f"{name}, transposed", lambda a, b, f=turned, o=options: f(a, b, **o), ((x[0], w[0], *x[2:]), w)


def products() -> Iterator[tuple[str, Callable, tuple]]:
    rng = np.random.default_rng(0)
    for _ in range(40):
        m, k, n = (int(s) for s in rng.choice(SIZES, 3))
        yield f"{m} × {k} × {n}, plain", lambda a, b: a @ b, ((m, k), (k, n))
        yield f"{m} × {k} × {n}, batch", lambda a, b: a @ b, ((2, m, k), (2, k, n))
        yield f"{m} × {k} × {n}, linear", F.linear, ((m, k), (n, k), (n,))
        yield f"{m} × {k} × {n}, turned", lambda a, b: a.mT @ b, ((k, m), (k, n))
        yield f"{m} × {k}, vector", lambda a, b: a @ b, ((m, k), (k,))


def attention() -> Iterator[tuple[str, Callable, tuple]]:
    rng = np.random.default_rng(0)
    for causal in (False, True) * 12:
        targets, sources, width, out = (int(s) for s in rng.choice(SIZES, 4))
        shapes = ((2, 2, targets, width), (2, 2, sources, width), (2, 2, sources, out))
        name = f"{targets} of {sources}, {width} to {out}"
        yield name, lambda q, k, v, c=causal: F.scaled_dot_product_attention(q, k, v, is_causal=c), shapes
        yield f"{name}, masked", F.scaled_dot_product_attention, (*shapes, (targets, sources))


def pools() -> Iterator[tuple[str, Callable, tuple]]:
    for x, size in itertools.product([(2, 3, 9), (1, 1, 3), (2, 3, 9, 8), (1, 1, 5, 70), (2, 1, 5, 4, 6)], [1, 2, 3]):
        for kind, stride in itertools.product(("max", "avg"), (1, 2)):
            pool = getattr(F, f"{kind}_pool{len(x) - 2}d")
            yield f"{kind} {size} by {stride} of {x}", lambda a, f=pool, k=size, s=stride: f(a, k, s, k // 2), (x,)


FAMILIES = {"convolutions": convolutions, "products": products, "attention": attention, "pools": pools}


def calls(family: str) -> Iterator[tuple[str, Callable, list]]:
    if family == "all ops":
        yield from walk.cases()
        return
    for name, function, shapes in FAMILIES[family]():
        for dtype in ("float32", "float64"):
            rng = np.random.default_rng(0)
            yield f"{name}, {dtype}", function, [rng.standard_normal(s).astype(dtype) for s in shapes]


def main(family: str) -> None:
    warnings.simplefilter("ignore")
    for name, function, arrays in calls(family):
        try:
            torch.manual_seed(0)
            walk.results(function, arrays)
        except RuntimeError:
            continue  # a window that is larger than what it looks at
        for at_end in (True, False):
            print(name, "at the end" if at_end else "at the beginning", flush=True)
            with launch.observe(Guarded(at_end)):
                walk.results(function, arrays)


@pytest.mark.skipif(os.name != "posix", reason="protects pages")
@pytest.mark.parametrize("family", [*FAMILIES, "all ops"])
def test_no_kernel_leaves_its_arrays(family):
    command = [sys.executable, "-m", "tests.ops.test_guard_pages", family]
    run = subprocess.run(command, env={**os.environ, "NUMBA_BOUNDSCHECK": "0"}, capture_output=True, text=True)
    last = "".join(run.stdout.splitlines(keepends=True)[-1:])
    assert run.returncode == 0, f"{last}{run.stderr[-2000:]}"
    assert len(run.stdout.splitlines()) > 60


if __name__ == "__main__":
    main(sys.argv[1])
