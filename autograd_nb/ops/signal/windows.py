"""Window functions: weights that fade a piece of a signal in and out, for spectra (`stft`) and filters.

Each is a formula of a point's place i among the points of one period, computed in float64. PyTorch offers them twice, as
``hann_window(n, periodic)`` and ``signal.windows.hann(n, sym=)``; both are made here of the same formulas.

Sources: https://docs.pytorch.org/docs/stable/signal.html, https://docs.pytorch.org/docs/stable/torch.html
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

from ... import dtypes
from ...errors import refuse_keywords
from ...shapes import as_int
from ...tensor import Tensor
from ..core.numbers import float_argument, number_argument
from ..core.registry import OPS, public
from ..creation.cast import cast, placed
from ..creation.create import new_full
from ..creation.ranges import arange

#: the cosine sums Σₖ (−1)ᵏ aₖ cos(2πk·i/n)
HANN, HAMMING, BLACKMAN = (0.5, 0.5), (0.54, 0.46), (0.42, 0.5, 0.08)
NUTTALL = (0.3635819, 0.4891775, 0.1365995, 0.0106411)


def _window(n: int, sym: bool, d: dtypes.dtype, formula: Callable[[Tensor, float], Tensor], requires_grad: bool) -> Tensor:
    """Return ``formula(places, period)`` at the places 0 … n − 1; a period is n − 1 long for symmetric windows, else n."""
    if n < 2:
        y = new_full((n,), 1, d)
    else:
        y = cast(formula(cast(arange(0, n), dtypes.float64), float(n - 1 if sym else n)), d)
    return y.requires_grad_(requires_grad)


def _cosines(coefficients: Sequence[float]) -> Callable[[Tensor, float], Tensor]:
    def formula(i: Tensor, period: float) -> Tensor:
        y = i * 0.0 + coefficients[0]
        for k, a in enumerate(coefficients[1:], 1):
            y = y + (i * (2 * math.pi * k / period)).cos() * (a * (-1) ** k)
        return y

    return formula


def _bartlett(i: Tensor, period: float) -> Tensor:
    return 1.0 - (i * (2.0 / period) - 1.0).abs()


def _kaiser(beta: float) -> Callable[[Tensor, float], Tensor]:
    def formula(i: Tensor, period: float) -> Tensor:
        i0 = OPS["i0"].call
        x = i * (2.0 / period) - 1.0
        return i0((1.0 - x * x).clamp(min=0.0).sqrt() * beta) / i0(new_full((), beta, dtypes.float64))

    return formula


# -------------------------------------------------------------------------------------------- torch.<name>_window


def _length(name: str, n: Any, dtype: Any) -> tuple[int, dtypes.dtype]:
    d = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    if not d.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: dtype={d!r}")
    n = as_int(n, "window_length")
    if n < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={n}")
    return n, d


def _declare(name: str, formula: Callable[..., Any], doc: str) -> None:
    def call(window_length, periodic=True, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
        n, d = _length(name, window_length, dtype)
        return _window(n, not periodic, d, formula, requires_grad)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = (
        f"Return {doc}\n\n    periodic: the first n of n + 1 symmetric points, as spectra want them.\n"
        "    Errors: RuntimeError for a negative length or a dtype that is not floating.\n"
        f"    Source: https://docs.pytorch.org/docs/stable/generated/torch.{name}.html"
    )
    public(method=False, name=name)(placed(call))


_declare("hann_window", _cosines(HANN), "sin²(πi/n); hann_window(4) = [0.0000, 0.5000, 1.0000, 0.5000].")
_declare("blackman_window", _cosines(BLACKMAN), "0.42 − 0.5·cos(2πi/n) + 0.08·cos(4πi/n); blackman_window(4).sum() = 1.6800.")
_declare("bartlett_window", _bartlett, "a triangle from 0 up to 1 and down; bartlett_window(4) = [0.0000, 0.5000, 1.0000, 0.5000].")


@public(method=False)
@placed
def hamming_window(
    window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None, layout=None, device=None, requires_grad=False,
    pin_memory=False,
):  # fmt: skip
    """Return alpha − beta·cos(2πi/n). ``periodic``: the first n of n + 1 symmetric points, as spectra want them.

    Errors: RuntimeError for a negative length or a dtype that is not floating.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.hamming_window.html

    >>> torch.hamming_window(3, periodic=False)
    tensor([0.0800, 1.0000, 0.0800])
    """
    n, d = _length("hamming_window", window_length, dtype)
    return _window(n, not periodic, d, _cosines((alpha, beta)), requires_grad)


@public(method=False)
@placed
def kaiser_window(
    window_length, periodic=True, beta=12.0, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """Return I₀(beta·√(1 − x²))/I₀(beta) for x from −1 to 1. ``periodic``: the first n of n + 1 symmetric points.

    Errors: RuntimeError for a negative length or a dtype that is not floating.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.kaiser_window.html

    >>> torch.kaiser_window(3, periodic=False)
    tensor([5.2773e-05, 1.0000e+00, 5.2773e-05])
    """
    n, d = _length("kaiser_window", window_length, dtype)
    return _window(n, not periodic, d, _kaiser(float(beta)), requires_grad)


# --------------------------------------------------------------------------------------------- signal.windows


def _signal(name: str, doc: str, formula: Callable[..., Callable[..., Any]], **options: Any) -> None:
    """Return ``signal.windows.<name>(M, *, <options>, sym=True, …)``; ``formula(**options)`` checks them and gives the formula."""

    def call(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False, **given):
        refuse_keywords(name, given, ("M", *options, "sym", "dtype", "layout", "device", "requires_grad"))
        n = as_int(M, "M")
        if n < 0:
            raise ValueError(f"{name} requires non-negative window length, got M={n}")
        d = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
        if d not in (dtypes.float32, dtypes.float64):
            raise ValueError(f"{name} expects float32 or float64 dtypes, got: {d!r}")
        return _window(n, bool(sym), d, formula(n=n, sym=bool(sym), **{**options, **given}), requires_grad)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = (
        f"Return {doc}\n\n    M: the number of points. sym: symmetric (for filters), or the first M of M + 1 points (for spectra).\n"
        "    Errors: ValueError for a negative M or a dtype other than float32 and float64.\n"
        f"    Source: https://docs.pytorch.org/docs/stable/generated/torch.signal.windows.{name}.html"
    )
    first, *rest, _ = inspect.signature(call).parameters.values()
    own = [inspect.Parameter(k, inspect.Parameter.KEYWORD_ONLY, default=v) for k, v in options.items()]
    call.__signature__ = inspect.Signature([first, *own, *rest])  # type: ignore[attr-defined]
    public(method=False, namespaces=("signal.windows",), name=f"signal.windows.{name}")(placed(call))


def _fixed(formula: Callable[..., Any]) -> Callable[..., Any]:
    return lambda n, sym: formula


def _general_cosine(n: int, sym: bool, a: Any) -> Callable[..., Any]:
    if not isinstance(a, (list, tuple)):
        raise TypeError(f"Coefficients must be a list/tuple, not {type(a).__name__} (a={a!r})")
    if not a:
        raise ValueError("Coefficients cannot be empty (a=[])")
    return _cosines(a)


def _exponential(n: int, sym: bool, center: Any, tau: Any) -> Callable[..., Any]:
    tau = float_argument(tau, "exponential", "tau")
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError(f"Center must be None for symmetric windows (center={center})")
    middle = (n - 1 if sym else n) / 2 if center is None else center
    return lambda i, period: ((i - middle).abs() * (-1.0 / tau)).exp()


def _gaussian(n: int, sym: bool, std: Any) -> Callable[..., Any]:
    std = float_argument(std, "gaussian", "std")
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return lambda i, period: ((i - period / 2) * (1.0 / (std * math.sqrt(2.0)))).square().neg().exp()


def _checked_kaiser(n: int, sym: bool, beta: Any) -> Callable[..., Any]:
    beta = float_argument(beta, "kaiser", "beta")
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return _kaiser(float(beta))


_signal("bartlett", "a triangle from 0 up to 1 and down; bartlett(3) = [0., 1., 0.].", _fixed(_bartlett))
_signal("blackman", "0.42 − 0.5·cos(2πi/n) + 0.08·cos(4πi/n); blackman(3).sum() = tensor(1.).", _fixed(_cosines(BLACKMAN)))
_signal(
    "cosine",
    "sin(π(i + ½)/n), half a wave; cosine(3) = [0.5000, 1.0000, 0.5000].",
    _fixed(lambda i, period: ((i + 0.5) * (math.pi / (period + 1))).sin()),
)
_signal("exponential", "e^(−|i − center|/tau); exponential(3) = [0.3679, 1.0000, 0.3679].", _exponential, center=None, tau=1.0)
_signal("gaussian", "e^(−½((i − n/2)/std)²); gaussian(3) = [0.6065, 1.0000, 0.6065].", _gaussian, std=1.0)
_signal("general_cosine", "Σₖ (−1)ᵏ aₖ cos(2πk·i/n), ``a`` a list; general_cosine(3, a=(0.5, 0.5)) = [0., 1., 0.].", _general_cosine, a=())
_signal(
    "general_hamming",
    "alpha − (1 − alpha)·cos(2πi/n); general_hamming(3) = [0.0800, 1.0000, 0.0800].",
    lambda n, sym, alpha: _cosines((number_argument(alpha, "general_hamming", "alpha"), 1.0 - alpha)),
    alpha=0.54,
)
_signal("hamming", "0.54 − 0.46·cos(2πi/n); hamming(3) = [0.0800, 1.0000, 0.0800].", _fixed(_cosines(HAMMING)))
_signal("hann", "sin²(πi/n); hann(3) = [0., 1., 0.].", _fixed(_cosines(HANN)))
_signal(
    "kaiser",
    "I₀(beta·√(1 − x²))/I₀(beta) for x from −1 to 1; kaiser(3) = [5.2773e-05, 1.0000e+00, 5.2773e-05].",
    _checked_kaiser,
    beta=12.0,
)
_signal(
    "nuttall",
    "Nuttall's cosine sum of four terms, with sidelobes below −93 dB; nuttall(3) = [3.6280e-04, 1.0000e+00, 3.6280e-04].",
    _fixed(_cosines(NUTTALL)),
)
