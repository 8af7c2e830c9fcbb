"""Generated loops: operands that lie in any order, and machine code that works on vectors."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb import launch
from autograd_nb.codegen import vectors
from autograd_nb.codegen.build import compilation
from autograd_nb.codegen.processor import features
from autograd_nb.codegen.templates import loops

DTYPES = ["float32", "float64", "int16", "uint8", "bool", "complex64", "complex128"]


def numbers(*shape: int, dtype: str = "float32") -> np.ndarray:
    return (np.random.default_rng(0).standard_normal(shape) * 50).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(33, 47), (128, 130), (300, 17)])
def test_operands_across(dtype, shape):
    x = numbers(*shape, dtype=dtype)
    y = torch.tensor(x)
    assert np.array_equal(y.t().contiguous().numpy(), x.T)
    assert np.array_equal((y.t() == y.t().contiguous()).numpy(), np.ones(x.T.shape, bool))


@pytest.mark.parametrize("step", [2, 3])
def test_strided_operands(step):
    x = numbers(20, 2500)
    y = torch.tensor(x)
    assert np.array_equal((y[:, ::step] * 2).numpy(), x[:, ::step] * 2)
    assert np.array_equal(y[::2, ::step].t().clone().numpy(), x[::2, ::step].T)
    assert np.allclose(y[:, ::step].sum().numpy(), x[:, ::step].sum(dtype=np.float64))


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_permuted_operands(order):
    x, z = numbers(2, 18, 19, 20), numbers(*[(2, 18, 19, 20)[d] for d in order])
    assert np.array_equal((torch.tensor(x).permute(*order) + torch.tensor(z)).numpy(), x.transpose(order) + z)


def test_a_short_inner_loop_goes_out():
    x = numbers(2, 3, 16, 17)
    y = torch.tensor(x).permute(0, 2, 3, 1)
    assert np.array_equal((y.contiguous() + torch.tensor(x[0, :, 0, 0])).numpy(), x.transpose(0, 2, 3, 1) + x[0, :, 0, 0])
    sizes, steps = [1, 1, 1, 1, 500, 3], [[0, 0, 0, 0, 3, 1], [0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 3, 1]]
    assert loops.arrange(sizes, steps, 2) == "s0s"
    assert sizes[-1] == 500


def test_operands_across_on_threads():
    x = torch.tensor(numbers(1500, 2100))
    before = torch.get_num_threads()
    try:
        found = []
        for count in (1, 3):
            torch.set_num_threads(count)
            found.append((x.t().exp() + x.t()).numpy().tobytes())
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_what_is_unusual_changes_no_bit_beside_it(name, dtype):
    op = getattr(torch, name)
    x = np.random.default_rng(0).uniform(-50, 50, (3, 2 * loops.CHUNK)).astype(dtype)
    alone = op(torch.tensor(x)).numpy()
    for huge in (1e20, np.finfo(dtype).max, np.inf, np.nan):
        y = x.copy()
        y[1, 6] = huge
        own = op(torch.tensor(y[1, 6])).item()
        t = torch.tensor(y)
        for found, step in ((op(t), 1), (op(t.t()).t(), 1), (op(t[:, ::2]), 2)):
            want = alone[:, ::step].copy()
            want[1, 6 // step] = own
            assert np.array_equal(found.numpy(), want, equal_nan=True)


def test_long_bodies_use_whole_registers():
    if vectors.BYTES < 64:
        pytest.skip("the processor's registers have no halves that LLVM prefers")
    x = torch.rand(100)
    assert "%zmm" in machine_code(lambda: torch.tanh(x))[0]


# ---------------------------------------------------------------------------------------------- machine code


def machine_code(f: Callable[[], Any]) -> list[str]:
    """The assembly of each kernel that ``f`` launches."""
    origins: list[tuple] = []

    def see(call: Any, args: tuple) -> None:
        origins.append(call.origin)
        call.entry(*args)

    with launch.observe(see):
        f()
    texts = []
    for origin in origins:
        if origin[0] == "source":
            function = compilation.defined(("machine code", *origin), origin[1], "kernel")
        else:
            function = getattr(import_module(f"autograd_nb.kernels.{origin[1]}"), origin[2])
        texts.append(compilation._compile(function, origin[-1], None, origin[0] == "source").library.get_asm_str())  # one from disk has no text
    return texts


CHANGES = """
import autograd_nb as torch
from tests.codegen.test_loops import machine_code, rows
F, index = torch.nn.functional, torch.zeros(32, 100, dtype=torch.int64)
changes = dict(
    relu_=lambda: rows().relu_(), leaky_relu_=lambda: F.leaky_relu_(rows()), threshold_=lambda: F.threshold_(rows(), 0.1, 0.2),
    clamp_=lambda: rows().clamp_(min=0.5), scatter_reduce=lambda: rows().scatter_reduce(0, index, rows(), "amax"),
)
for name, change in changes.items():
    text = "".join(machine_code(change))
    assert "ymm" in text and "vmaskmov" not in text, name
print("looked at", len(changes))
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="it is about AVX2")
def test_changes_in_place_store_whole_vectors():
    """Not under a mask where an element stays as it is: on some processors with AVX2 such a store takes as long as ten."""
    level = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": features("x86-64-v3")}
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", CHANGES], cwd=root, env={**os.environ, **level, "PYTHONPATH": str(root)}, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("looked at"), done.stderr[-2000:]


def rows() -> torch.Tensor:
    return torch.tensor(numbers(32, 100))


@pytest.mark.parametrize(
    "instruction, f",
    [
        ("addps", lambda: rows() + rows()),
        (r"maxps|cmp\w+ps|blendmps|andps", lambda: rows().relu()),
        ("fmadd...ps", lambda: rows().exp()),
        ("fmadd...ps", lambda: rows()[:, ::2].tanh()),
        (r"(unpck|perm|shuf)\w+", lambda: rows().t().contiguous()),
        ("add(ps|pd)", lambda: rows().sum()),
        ("addpd", lambda: rows().sum(0)),
        ("fmadd...ps", lambda: rows().softmax(1)),
        ("fmadd...ps", lambda: rows().softmax(0)),
        ("(sub|mul|fmadd...|fmsub...)ps", lambda: torch.nn.functional.layer_norm(rows(), (100,))),
    ],
    ids=["add", "relu", "exp", "strided", "turned", "sum", "sum of columns", "softmax", "softmax of columns", "layer norm"],
)
def test_packed_instructions(instruction, f):
    from numba import config

    if config.DISABLE_JIT or config.BOUNDSCHECK or platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("other machine code, or none")
    assert any(re.search(rf"\bv?({instruction})\s.*[xyz]mm", text) for text in machine_code(f))
