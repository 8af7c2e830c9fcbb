"""Fourier transforms and windows against NumPy and SciPy, with their derivatives."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal

import autograd_nb as torch

pytestmark = pytest.mark.slow  # many kernels

RNG = np.random.default_rng(0)
REAL = RNG.standard_normal((3, 6))
COMPLEX = REAL + 1j * RNG.standard_normal((3, 6))
ONE = {"fft": COMPLEX, "ifft": COMPLEX, "rfft": REAL, "irfft": COMPLEX, "hfft": COMPLEX, "ihfft": REAL}
MANY = {"fftn": COMPLEX, "ifftn": COMPLEX, "rfftn": REAL, "irfftn": COMPLEX, "fft2": COMPLEX, "ifft2": COMPLEX,
        "rfft2": REAL, "irfft2": COMPLEX, "hfftn": COMPLEX, "ihfftn": REAL, "hfft2": COMPLEX, "ihfft2": REAL}  # fmt: skip


def reference(name):
    return getattr(scipy.fft, name)


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("name", ONE)
def test_one_dim(name, norm):
    for n, dim in ((None, -1), (4, -1), (9, 1), (5, 0)):
        y = getattr(torch.fft, name)(torch.from_numpy(ONE[name]), n, dim, norm)
        np.testing.assert_allclose(y.numpy(), reference(name)(ONE[name], n, dim, norm), atol=1e-12)


@pytest.mark.parametrize("name", MANY)
def test_several_dims(name):
    for s, dim in ((None, None), ((4, 5), None), ((5,), (0,)), (None, (1, 0)), ((2, -1), (0, 1))):
        if name.endswith("2") and dim is None:
            dim = (-2, -1)
        if s is not None and -1 in s:
            expected = reference(name)(MANY[name][:2], axes=dim)
        else:
            expected = reference(name)(MANY[name], s, dim)
        np.testing.assert_allclose(getattr(torch.fft, name)(torch.from_numpy(MANY[name]), s, dim).numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("name", [*ONE, "rfftn", "irfftn", "hfft2", "ihfft2"])
def test_derivatives_of_transforms(name):
    x = torch.tensor(({**ONE, **MANY}[name])[:2, :4], requires_grad=True)
    f = getattr(torch.fft, name)
    for options in ({}, {"norm": "ortho"}, {"n": 5} if name in ONE else {"s": (3, 5)}):
        assert torch.autograd.gradcheck(lambda x, o=options: f(x, **o), (x,))
        assert torch.autograd.gradgradcheck(lambda x, o=options: f(x, **o), (x,))


def test_dtypes():
    assert torch.fft.fft(torch.ones(4)).dtype is torch.complex64
    assert torch.fft.rfft(torch.tensor([1, 2, 3])).dtype is torch.complex64
    assert torch.fft.irfft(torch.ones(3, dtype=torch.complex128)).dtype is torch.float64
    x = torch.ones(4, requires_grad=True)
    torch.fft.fft(x).abs().sum().backward()
    assert x.grad.dtype is torch.float32


#: PyTorch's key phrase -> (call, type of the error)
REFUSED = {
    "Invalid number of data points": (lambda: torch.fft.fft(torch.ones(4), 0), RuntimeError),
    "Invalid normalization mode": (lambda: torch.fft.fft(torch.ones(4), norm="both"), RuntimeError),
    "no dimensions": (lambda: torch.fft.fft(torch.tensor(1.0)), IndexError),
    "Dimension out of range": (lambda: torch.fft.fft(torch.ones(4), dim=1), IndexError),
    "expects a real input": (lambda: torch.fft.rfft(torch.ones(4) * 1j), RuntimeError),
    "must be unique": (lambda: torch.fft.fftn(torch.ones(2, 2), dim=(0, 0)), RuntimeError),
    "same length": (lambda: torch.fft.fftn(torch.ones(2, 2), s=(1, 2), dim=(0,)), RuntimeError),
    "only has 1 dimensions": (lambda: torch.fft.fftn(torch.ones(2), s=(1, 2)), RuntimeError),
    "at least one axis": (lambda: torch.fft.rfftn(torch.ones(2), dim=()), RuntimeError),
    "Unsupported dtype": (lambda: torch.fft.fft(torch.ones(2).half()), RuntimeError),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_no_transform_takes_is_refused(text):
    call, kind = REFUSED[text]
    with pytest.raises(kind, match=text):
        call()


def test_frequencies_and_shifts():
    for n in (1, 4, 5):
        np.testing.assert_allclose(torch.fft.fftfreq(n, 0.5, dtype=torch.float64).numpy(), np.fft.fftfreq(n, 0.5))
        np.testing.assert_allclose(torch.fft.rfftfreq(n, 0.5, dtype=torch.float64).numpy(), np.fft.rfftfreq(n, 0.5))
    x = torch.from_numpy(REAL)
    np.testing.assert_array_equal(torch.fft.fftshift(x).numpy(), np.fft.fftshift(REAL))
    np.testing.assert_array_equal(torch.fft.ifftshift(x, 1).numpy(), np.fft.ifftshift(REAL, 1))


def test_launches_are_observed():
    seen = []

    def observer(call, args):
        seen.append((call.name, call.outputs))
        call.entry(*args)

    with torch.launch.observe(observer):
        y = torch.fft.rfft(torch.from_numpy(REAL))
    assert seen == [("r2c", 1)]
    np.testing.assert_allclose(y.numpy(), np.fft.rfft(REAL))


@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize("name", ["bartlett", "blackman", "cosine", "hamming", "hann", "nuttall"])
def test_windows_against_scipy(name, sym):
    window = getattr(torch.signal.windows, name)
    for n in (0, 1, 2, 7):
        np.testing.assert_allclose(
            window(n, sym=sym, dtype=torch.float64).numpy(), getattr(scipy.signal.windows, name)(n, sym), atol=1e-12
        )
    if hasattr(torch, f"{name}_window"):
        assert getattr(torch, f"{name}_window")(7, not sym).tolist() == window(7, sym=sym).tolist()
    with pytest.raises(ValueError, match="non-negative window length"):
        window(-1)


def test_windows_with_options():
    w, s = torch.signal.windows, scipy.signal.windows
    double = {"dtype": torch.float64}
    np.testing.assert_allclose(w.gaussian(6, std=2.0, **double).numpy(), s.gaussian(6, 2.0))
    np.testing.assert_allclose(w.exponential(6, tau=2.0, **double).numpy(), s.exponential(6, tau=2.0))
    np.testing.assert_allclose(w.general_cosine(6, a=[0.5, 0.3, 0.2], **double).numpy(), s.general_cosine(6, [0.5, 0.3, 0.2]))
    np.testing.assert_allclose(w.general_hamming(6, alpha=0.6, **double).numpy(), s.general_hamming(6, 0.6))


def test_stft_and_back():
    window = torch.hann_window(8, dtype=torch.float64)
    x = torch.tensor(RNG.standard_normal(40), requires_grad=True)
    y = torch.stft(x, 8, 2, window=window, return_complex=True)
    assert y.shape == (5, 21)
    np.testing.assert_allclose(y[:, 3].detach().numpy(), np.fft.rfft(x.detach().numpy()[2:10] * window.numpy()), atol=1e-12)
    np.testing.assert_allclose(torch.istft(y, 8, 2, window=window).detach().numpy(), x.detach().numpy(), atol=1e-12)
    short = torch.tensor(RNG.standard_normal(10), requires_grad=True)
    w = torch.hamming_window(4, dtype=torch.float64).requires_grad_()

    def there_and_back(x, w):
        return torch.istft(torch.stft(x, 4, 2, window=w, return_complex=True) * (1 + 1j), 4, 2, window=w * w)

    assert torch.autograd.gradcheck(there_and_back, (short, w))
    with pytest.raises(RuntimeError, match="return_complex parameter be given"):
        torch.stft(x, 8)
    with pytest.raises(RuntimeError, match="window overlap add"):
        torch.istft(y, 8, 2, window=window, center=False)


def test_recorded_gradients_of_padded_operands_are_contiguous():
    """They are cut out of a wider one, as in PyTorch into memory of their own, so that they can be viewed as they are."""
    x = torch.rand(2, 3, 4, dtype=torch.float64, requires_grad=True)
    for y in (torch.fft.fft2(x, (4, 6)), torch.fft.fftn(x, (3, 2, 5)), torch.fft.rfft(x, 6), torch.fft.ihfft(x, 7), torch.fft.rfft2(x, (4, 3))):
        (g,) = torch.autograd.grad(y.abs().square().sum(), x, create_graph=True)
        assert g.view(-1).shape == (24,)
        torch.autograd.grad(g.square().sum(), x)
