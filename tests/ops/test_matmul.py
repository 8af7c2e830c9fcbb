"""Matrix products of every size around the blocks of the kernels, on strided operands, against NumPy."""

import os
import subprocess
import sys

import numpy as np
import pytest

import autograd_nb as torch

RNG = np.random.default_rng(3)


def strided(x):
    """The same numbers, each time standing differently in memory."""
    yield torch.tensor(x)
    yield torch.tensor(np.ascontiguousarray(np.swapaxes(x, -1, -2))).mT
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    wide[..., ::2] = x
    yield torch.tensor(wide)[..., ::2]
    larger = np.zeros((*x.shape[:-2], x.shape[-2] + 1, x.shape[-1] + 3), x.dtype)
    larger[..., 1:, 3:] = x
    yield torch.tensor(larger)[..., 1:, 3:]


SIZES = [
    (1, 1, 1, 1), (1, 5, 7, 1), (1, 1, 7, 5), (3, 1, 300, 40), (3, 40, 300, 1), (2, 4, 4, 4), (2, 9, 3, 17), (2, 33, 257, 65),
    (1, 300, 70, 20), (1, 20, 70, 600), (2, 3, 0, 4), (1, 0, 3, 2), (16, 8, 16, 16), (1, 70, 2100, 40), (9, 80, 80, 80),
]  # fmt: skip


@pytest.mark.parametrize("d", [np.float32, np.float64, np.complex64, np.int64])
def test_products_of_strided_matrices(d):
    for batch, m, k, n in SIZES:
        a, b = RNG.normal(size=(batch, m, k)) * 5, RNG.normal(size=(batch, k, n)) * 5
        a, b = (a.astype(d), b.astype(d)) if d is not np.complex64 else ((a + 1j * a[::-1]).astype(d), (b - 2j * b).astype(d))
        wide = np.result_type(d, np.float64) if d is not np.int64 else d
        expected = a.astype(wide) @ b.astype(wide)
        tolerance = (
            {"rtol": 1e-11, "atol": 1e-11} if d in (np.float64, np.int64) else {"rtol": 1e-4, "atol": 3e-6 * 25 * (k + 1)}
        )
        for x in strided(a):
            for y in strided(b):
                np.testing.assert_allclose(torch.bmm(x, y).numpy(), expected, **tolerance)
                np.testing.assert_allclose((x[0] @ y[0]).numpy(), expected[0], **tolerance)
                if d is np.float32:
                    np.testing.assert_allclose(
                        torch.nn.functional.linear(x[0], y[0].t(), torch.ones(n)).numpy(), expected[0] + 1, **tolerance
                    )


def test_an_element_does_not_depend_on_its_neighbours():
    a, b = torch.tensor(RNG.normal(size=(70, 300)), dtype=torch.float32), torch.tensor(RNG.normal(size=(300, 90)), dtype=torch.float32)
    whole = (a @ b).numpy()
    assert (whole[13:55, 2:37] == (a[13:55] @ b[:, 2:37]).numpy()).all()
    assert (whole == (b.t() @ a.t()).t().numpy()).all()


def test_vectors_with_steps():
    a, v = RNG.normal(size=(11, 13)), RNG.normal(size=26)
    x = torch.tensor(v)[::2]
    np.testing.assert_allclose((torch.tensor(a) @ x).numpy(), a @ v[::2])
    np.testing.assert_allclose((x @ torch.tensor(a.T.copy())).numpy(), a @ v[::2])
    np.testing.assert_allclose((torch.tensor(a.T.copy()).t() @ x).numpy(), a @ v[::2])
    np.testing.assert_allclose(torch.dot(x, x).item(), v[::2] @ v[::2])


def test_without_compilation():
    code = """
import numpy as np
import autograd_nb as torch
a, b = np.arange(63.0).reshape(9, 7) % 11, np.arange(126.0).reshape(7, 18) % 13
y = torch.nn.functional.linear(torch.tensor(a), torch.tensor(b.T.copy()), torch.tensor(b[1]))
print([(torch.tensor(x).mT @ y == torch.tensor(a @ b)).all().item() for x in [a.T.copy()] for y in (torch.tensor(b), torch.tensor(b.T.copy()).t())],
      (torch.tensor(a) @ torch.tensor(b[:, 0])).tolist() == (a @ b[:, 0]).tolist(), y.tolist() == (a @ b + b[1]).tolist())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}
    )
    assert done.stdout.strip() == "[True, True] True True", done.stderr


def test_linear_with_weights_that_are_parts_of_one_array():
    every, x = torch.randn(20), torch.randn(2, 3)
    weight, bias = every[:9].view(3, 3), every[9:12]
    expected = x.numpy() @ weight.numpy().T + bias.numpy()
    for _ in range(3):  # what is remembered of the first call serves the others
        np.testing.assert_allclose(torch.nn.functional.linear(x, weight, bias).numpy(), expected, rtol=1e-5, atol=1e-6)
