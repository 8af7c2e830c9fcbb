"""Complex tensors: arithmetic against NumPy, gradients in PyTorch's convention, views of the parts, what is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import autograd_nb as torch

pytestmark = pytest.mark.slow  # many kernels

Z = np.array([[1 + 2j, 3 - 1j], [0.5j, -2 + 0.1j]])
W = np.array([[0.5 - 1j, 2 + 1j], [-1 + 1j, 0.3 + 0.2j]])

UNARY = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "log2": np.log2, "log10": np.log10,
    "sqrt": np.sqrt, "rsqrt": lambda z: 1 / np.sqrt(z), "square": np.square, "reciprocal": lambda z: 1 / z, "neg": np.negative,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "abs": np.abs,
    "angle": np.angle, "conj": np.conj, "sigmoid": lambda z: 1 / (1 + np.exp(-z)), "sgn": lambda z: z / np.abs(z),
}  # fmt: skip
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power}


def leaf(values, dtype=torch.complex128):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_complex_numbers_against_numpy(name):
    z = leaf(Z)
    np.testing.assert_allclose(getattr(z, name)().detach().resolve_conj().numpy(), UNARY[name](Z), rtol=1e-12, atol=1e-14)
    assert torch.autograd.gradcheck(getattr(torch, name), (z,))
    assert torch.autograd.gradgradcheck(getattr(torch, name), (z,))
    single = getattr(torch.tensor(Z, dtype=torch.complex64), name)()
    assert single.dtype in (torch.complex64, torch.float32)
    np.testing.assert_allclose(single.resolve_conj().numpy(), UNARY[name](Z), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_complex_numbers_against_numpy(name):
    op = getattr(torch, name)
    z, w, x = leaf(Z), leaf(W), leaf([0.7, 1.2], torch.float64)
    np.testing.assert_allclose(op(z, w).detach().numpy(), BINARY[name](Z, W), rtol=1e-12)
    np.testing.assert_allclose(op(z, 1 + 2j).detach().numpy(), BINARY[name](Z, 1 + 2j), rtol=1e-12)
    np.testing.assert_allclose(op(x, z).detach().numpy(), BINARY[name](x.detach().numpy(), Z), rtol=1e-12)
    for inputs in ((z, w), (x, z), (z, x)):  # a real operand that is broadcast gets the real part, summed
        assert torch.autograd.gradcheck(op, inputs)
        assert torch.autograd.gradgradcheck(op, inputs)


def test_division_does_not_overflow():
    big = torch.tensor([1e200 + 1e200j], dtype=torch.complex128)
    assert (big / big).item() == 1
    assert torch.isinf(torch.tensor([1j]) / 0).item() or torch.isnan(torch.tensor([1j]) / 0).item()


def test_complex_operands_promote_as_in_pytorch():
    single, double = torch.ones(2), torch.ones(2, dtype=torch.float64)
    assert (single * 1j).dtype is torch.complex64
    assert (double * 1j).dtype is torch.complex128
    assert (torch.tensor([1, 2]) * 1j).dtype is torch.complex64
    assert (single + torch.ones(2, dtype=torch.complex128)).dtype is torch.complex128
    assert (single + torch.tensor(1j, dtype=torch.complex128)).dtype is torch.complex64
    assert (torch.ones(2, dtype=torch.complex64) + double).dtype is torch.complex128
    assert torch.tensor([1j]).dtype is torch.complex64 and torch.tensor(1j).item() == 1j


def test_gradient_is_the_conjugate_wirtinger_derivative():
    z = leaf([1 + 2j])
    (z * (2 - 1j)).abs().pow(2).sum().backward()
    assert z.grad.item() == pytest.approx(2 * (1 + 2j) * 5)
    with pytest.raises(RuntimeError, match=r"only for real scalar outputs but got torch\.complex128"):
        z.sum().backward()
    x = leaf([1.0, 2.0], torch.float64)
    (x * z).sum().abs().backward()
    assert x.grad.dtype is torch.float64


def test_products_of_complex_operands():
    z, w = leaf(Z), leaf(W)
    np.testing.assert_allclose((z @ w).detach().numpy(), Z @ W)
    assert torch.autograd.gradcheck(torch.matmul, (z, w))
    np.testing.assert_allclose(torch.vdot(z[0], w[0]).item(), np.vdot(Z[0], W[0]))
    n = 24  # large enough for BLAS
    a = np.arange(n * n).reshape(n, n) / n + 1j
    for d, tolerance in ((torch.complex64, 1e-5), (torch.complex128, 1e-12)):
        x = torch.tensor(a, dtype=d)
        np.testing.assert_allclose((x @ x.mH).numpy(), a @ a.conj().T, rtol=tolerance)


def test_reductions_of_complex_numbers():
    z = leaf(Z)
    for name, reference in {"sum": np.sum, "mean": np.mean, "prod": np.prod}.items():
        np.testing.assert_allclose(getattr(z, name)().item(), reference(Z))
        np.testing.assert_allclose(getattr(z, name)(1).detach().numpy(), reference(Z, 1))
    for name, reference in {"cumsum": np.cumsum, "cumprod": np.cumprod}.items():
        np.testing.assert_allclose(getattr(z, name)(1).detach().numpy(), reference(Z, 1))
        assert torch.autograd.gradcheck(lambda z, name=name: getattr(z, name)(1), (z,))
    np.testing.assert_allclose(z.norm().item(), np.linalg.norm(Z))
    np.testing.assert_allclose(z.std().item(), Z.std(ddof=1))
    assert torch.autograd.gradcheck(lambda z: (z.prod(), z.std(), z.norm()), (z,))


def test_parts_are_views():
    z = torch.tensor(Z)
    z.real = 7
    z.imag[0] = torch.tensor([8.0, 9.0], dtype=torch.float64)
    assert z.tolist() == [[7 + 8j, 7 + 9j], [7 + 0.5j, 7 + 0.1j]]
    pairs = torch.view_as_real(z)
    assert pairs.shape == (2, 2, 2) and torch.view_as_complex(pairs).data_ptr() == z.data_ptr()
    x = leaf(Z)
    y = x * 1
    y.real.mul_(2)  # in place through a view of the other dtype: the history of the whole follows
    torch.view_as_real(y)[..., 1] *= 3
    y.abs().pow(2).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * (4 * Z.real + 9j * Z.imag))
    r = leaf([[1.0, 2.0], [3.0, 4.0]], torch.float64)
    s = r * 1
    torch.view_as_complex(s).mul_(1j)
    (s * torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)).sum().backward()
    assert r.grad.tolist() == [[2, -1], [4, -3]]


def test_from_parts():
    a, b = leaf([1.0, 2.0], torch.float64), leaf([0.5, -1.0], torch.float64)
    np.testing.assert_allclose(torch.complex(a, b).detach().numpy(), [1 + 0.5j, 2 - 1j])
    np.testing.assert_allclose(torch.polar(a, b).detach().numpy(), np.array([1, 2]) * np.exp(1j * np.array([0.5, -1])))
    for op in (torch.complex, torch.polar):
        assert torch.autograd.gradcheck(op, (a, b)) and torch.autograd.gradgradcheck(op, (a, b))
    with pytest.raises(RuntimeError, match="Expected both inputs to be Half, Float or Double"):
        torch.complex(torch.tensor([1]), torch.tensor([2]))
    with pytest.raises(RuntimeError, match="Expected object of scalar type"):
        torch.polar(a, b.float())


def test_casts_to_and_from_complex():
    z = torch.tensor([1 + 2j])
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        assert z[:1].reshape(1, 1, 1).to(torch.float64).tolist() == [[[1.0]]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert z.to(torch.complex128).dtype is torch.complex128
        assert z.to(torch.bool).tolist() == [True]
        assert torch.tensor([1, 2]).to(torch.complex64).tolist() == [1, 2]
    x = leaf([1.0], torch.float64)
    x.to(torch.complex128).mul(1 + 1j).abs().sum().backward()
    assert x.grad.item() == pytest.approx(2**0.5)


#: name -> function of a complex tensor
REFUSED = {
    "order": lambda z: z < z,
    "max": lambda z: z.max(),
    "sort": lambda z: z.sort(),
    "floor": lambda z: z.floor(),
    "clamp": lambda z: z.clamp(0, 1),
    "sign": lambda z: z.sign(),
    "maximum": lambda z: torch.maximum(z, z),
    "erf": lambda z: z.erf(),
    "softmax": lambda z: z.softmax(0),
    "floor division": lambda z: z // 2,
    "arange": lambda z: torch.arange(3, dtype=torch.complex64),
    "abs in place": lambda z: z.abs_(),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_complex_values_is_refused(name):
    call = REFUSED[name]
    z = torch.tensor([1 + 1j, 2.0])
    with pytest.raises(RuntimeError, match=r"complex|Complex") as error:
        call(z)
    assert len(str(error.value)) < 200
    assert z.tolist() == [1 + 1j, 2]


def test_refused_views():
    for call, text in (
        (lambda: torch.view_as_real(torch.ones(2)), "only supported for complex"),
        (lambda: torch.view_as_complex(torch.ones(3)), "last dimension of size 2"),
        (lambda: torch.view_as_complex(torch.ones(2, 4)[:, ::2]), "stride 1"),
        (lambda: torch.view_as_complex(torch.ones(2, 3)[:, :2]), "stride divisible by 2"),
        (lambda: torch.view_as_complex(torch.ones(5)[1:3]), "storage_offset"),
        (lambda: torch.imag(torch.ones(2)), "non-complex"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()


def test_random():
    z = torch.randn(20000, dtype=torch.complex128)
    assert abs(z.abs().pow(2).mean().item() - 1) < 0.05 and abs(z.mean().item()) < 0.03
    u = torch.rand(1000, dtype=torch.complex64)
    assert u.real.min().item() >= 0 and u.imag.max().item() < 1


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop"])
def test_optimizers_step_both_parts(name):
    z, x = leaf(Z), leaf(np.stack([Z.real, Z.imag], -1), torch.float64)
    for p in (z, x):
        optimizer = getattr(torch.optim, name)([p], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (p * 1.5).abs().pow(2).sum().backward()
            optimizer.step()
    np.testing.assert_allclose(torch.view_as_real(z.detach()).numpy(), x.detach().numpy(), rtol=1e-9)
