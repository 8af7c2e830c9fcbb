"""Nonlinearities as modules.

Source: https://docs.pytorch.org/docs/stable/nn.html#non-linear-activations-weighted-sum-nonlinearity
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import warn_user
from ...tensor import Tensor
from .. import functional as F
from ..parameter import Parameter
from .attention import MultiheadAttention
from .module import Module
from .options import parameter
from .simple import declare


def _inplace(self: Any) -> str:
    return "inplace=True" if self.inplace else ""


def _and_inplace(text: str) -> Any:
    """Return ``extra_repr`` of options, with the flag at the end where it is set."""

    def shown(self: Any) -> str:
        return text.format(self=self) + (", inplace=True" if self.inplace else "")

    return shown


def _text(text: str) -> Any:
    return lambda self: text.format(self=self)


if TYPE_CHECKING:
    from .declared import (
        CELU,
        ELU,
        GELU,
        GLU,
        SELU,
        Hardshrink,
        Hardsigmoid,
        Hardswish,
        LeakyReLU,
        LogSigmoid,
        LogSoftmax,
        Mish,
        ReLU,
        Sigmoid,
        SiLU,
        Softmax,
        Softmin,
        Softplus,
        Softshrink,
        Softsign,
        Tanh,
        Tanhshrink,
        Threshold,
    )
else:
    ReLU = declare("relu", lambda inplace=False: 0, _inplace, name="ReLU", doc="max(x, 0); ReLU()([-1., 2.]) = [0., 2.].")
    SiLU = declare(
        "silu", lambda inplace=False: 0, _inplace, name="SiLU",
        doc="x · sigmoid(x); SiLU()([-1., 2.]) = [-0.2689, 1.7616].",
    )
    Mish = declare(
        "mish", lambda inplace=False: 0, _inplace, name="Mish",
        doc="x · tanh(softplus(x)); Mish()([-1., 2.]) = [-0.3034, 1.9440].",
    )
    SELU = declare(
        "selu", lambda inplace=False: 0, _inplace, name="SELU",
        doc="Scaled exponential linear unit; SELU()([-1., 2.]) = [-1.1113, 2.1014].",
    )
    Hardsigmoid = declare(
        "hardsigmoid", lambda inplace=False: 0, name="Hardsigmoid",
        doc="clamp(x / 6 + 1/2, 0, 1); Hardsigmoid()([-4., 0., 1.5]) = [0.0000, 0.5000, 0.7500].",
    )
    Hardswish = declare(
        "hardswish", lambda inplace=False: 0, name="Hardswish",
        doc="x · hardsigmoid(x); Hardswish()([-4., 0., 1.5]) = [-0.0000, 0.0000, 1.1250].",
    )
    ELU = declare(
        "elu", lambda alpha=1.0, inplace=False: 0, _and_inplace("alpha={self.alpha}"), name="ELU",
        doc="x above 0, alpha (eˣ - 1) below; ELU()([-1., 2.]) = [-0.6321, 2.0000].",
    )
    CELU = declare(
        "celu", lambda alpha=1.0, inplace=False: 0, _and_inplace("alpha={self.alpha}"), name="CELU",
        doc="max(0, x) + min(0, alpha (exp(x / alpha) - 1)); CELU()([-1., 2.]) = [-0.6321, 2.0000].",
    )  # fmt: skip
    LeakyReLU = declare(
        "leaky_relu", lambda negative_slope=1e-2, inplace=False: 0, _and_inplace("negative_slope={self.negative_slope}"), name="LeakyReLU",
        doc="x above 0, negative_slope · x below; LeakyReLU()([-1., 2.]) = [-0.0100, 2.0000].",
    )  # fmt: skip
    Threshold = declare(
        "threshold", lambda threshold, value, inplace=False: 0, _and_inplace("threshold={self.threshold}, value={self.value}"),
        name="Threshold", doc="x above the threshold, ``value`` elsewhere; Threshold(1., 0.)([0.5, 2.]) = [0., 2.].",
    )  # fmt: skip
    GELU = declare(
        "gelu", lambda approximate="none": 0, _text("approximate={self.approximate!r}"), name="GELU",
        doc="x · Φ(x), or its tanh approximation; GELU()([-1., 2.]) = [-0.1587, 1.9545].",
    )
    GLU = declare(
        "glu", lambda dim=-1: 0, _text("dim={self.dim}"), name="GLU",
        doc="The first half times the sigmoid of the second; GLU()([1., 2., 0., 0.]) = [0.5000, 1.0000].",
    )
    Hardshrink = declare(
        "hardshrink", lambda lambd=0.5: 0, _text("{self.lambd}"), name="Hardshrink",
        doc="x where |x| > lambd, else 0; Hardshrink()([0.2, 2.]) = [0., 2.].",
    )
    Softshrink = declare(
        "softshrink", lambda lambd=0.5: 0, _text("{self.lambd}"), name="Softshrink",
        doc="x moved towards 0 by lambd; Softshrink()([0.2, 2.]) = [0.0000, 1.5000].",
    )
    Softplus = declare(
        "softplus", lambda beta=1.0, threshold=20.0: 0, _text("beta={self.beta}, threshold={self.threshold}"), name="Softplus",
        doc="log(1 + exp(beta x)) / beta; Softplus()([0., 2.]) = [0.6931, 2.1269].",
    )  # fmt: skip
    Sigmoid = declare("sigmoid", lambda: 0, name="Sigmoid", doc="1 / (1 + e⁻ˣ); Sigmoid()([0., 2.]) = [0.5000, 0.8808].")
    Tanh = declare("tanh", lambda: 0, name="Tanh", doc="The hyperbolic tangent; Tanh()([0., 1.]) = [0.0000, 0.7616].")
    LogSigmoid = declare(
        "logsigmoid", lambda: 0, name="LogSigmoid",
        doc="log(sigmoid(x)); LogSigmoid()([0., 2.]) = [-0.6931, -0.1269].",
    )
    Softsign = declare("softsign", lambda: 0, name="Softsign", doc="x / (1 + |x|); Softsign()([-1., 3.]) = [-0.5000, 0.7500].")
    Tanhshrink = declare(
        "tanhshrink", lambda: 0, name="Tanhshrink",
        doc="x - tanh(x); Tanhshrink()([0., 1.]) = [0.0000, 0.2384].",
    )
    Softmin = declare(
        "softmin", lambda dim=None: 0, _text("dim={self.dim}"), name="Softmin",
        doc="softmax(-x) over ``dim``; Softmin(0)([0., 1.]) = [0.7311, 0.2689].",
    )
    Softmax = declare(
        "softmax", lambda dim=None: 0, _text("dim={self.dim}"), name="Softmax",
        doc="exp(x) / Σ exp(x) over ``dim``; Softmax(0)([0., 1.]) = [0.2689, 0.7311].",
    )
    LogSoftmax = declare(
        "log_softmax", lambda dim=None: 0, _text("dim={self.dim}"), name="LogSoftmax",
        doc="log of the softmax over ``dim``; LogSoftmax(0)([0., 1.]) = [-1.3133, -0.3133].",
    )


class Hardtanh(Module):
    """x clamped to [min_val, max_val]; Hardtanh()([-4., 0.5]) = [-1.0000, 0.5000]."""

    min_val: float
    max_val: float
    inplace: bool

    def __init__(
        self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False, min_value: float | None = None, max_value: float | None = None
    ) -> None:
        super().__init__()
        for old, value in (("min_value", min_value), ("max_value", max_value)):
            if value is not None:
                warn_user(f"keyword argument `{old}` is deprecated and rename to `{old[:-2]}`", FutureWarning)
        min_val, max_val = min_val if min_value is None else min_value, max_val if max_value is None else max_value
        self.min_val, self.max_val, self.inplace = min_val, max_val, inplace
        if self.max_val <= self.min_val:
            raise AssertionError(f"max_val must be larger than min_val, got min_val={min_val} and max_val={max_val}")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class ReLU6(Hardtanh):
    """min(max(x, 0), 6); ReLU6()([-1., 8.]) = [0., 6.]."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return _inplace(self)


class RReLU(Module):
    """Leaky ReLU whose slope is drawn from [lower, upper] while training, and their mean otherwise; RReLU().eval()([-1., 2.]) = [-0.2292, 2.0000]."""

    lower: float
    upper: float
    inplace: bool

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class PReLU(Module):
    """x above 0, a learned slope times x below; one slope for all, or one for each channel (dim 1).

    >>> torch.nn.PReLU()(torch.tensor([-1., 2.])).tolist()
    [-0.25, 2.0]
    """

    weight: Parameter
    num_parameters: int
    init: float

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = parameter((num_parameters,), dtype, device)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the slopes to their first value."""
        self.weight.data.fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W); Softmax2d()([[[0.]], [[0.]]]).flatten() = [0.5000, 0.5000]."""

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3)


def __getattr__(name: str) -> Any:
    """Return `MultiheadAttention`, which PyTorch has among the activations; here it is in a file that builds on them."""
    if name != "MultiheadAttention":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return MultiheadAttention
