"""The dropout family.

Source: https://docs.pytorch.org/docs/stable/nn.html#dropout-layers
"""

from __future__ import annotations

from ...tensor import Tensor
from .. import functional as F
from .module import Module


class _Dropout(Module):
    p: float
    inplace: bool
    function: str  #: of `nn.functional`

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self.function)(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Zeroes elements with probability ``p`` while training, and divides the others by 1 - p."""

    function = "dropout"


class Dropout1d(_Dropout):
    """Dropout of whole channels of (N, C, L) or (C, L); Dropout1d().eval()([[1., 2.]]) = [[1., 2.]]."""

    function = "dropout1d"


class Dropout2d(_Dropout):
    """Dropout of whole channels of (N, C, H, W); Dropout2d().eval()([[[[1., 2.]]]]) = [[[[1., 2.]]]]."""

    function = "dropout2d"


class Dropout3d(_Dropout):
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W); Dropout3d().eval()([[[[1., 2.]]]]) = [[[[1., 2.]]]]."""

    function = "dropout3d"


class AlphaDropout(_Dropout):
    """Dropout that keeps mean 0 and variance 1, for SELU networks; AlphaDropout().eval()([1., 2.]) = [1., 2.]."""

    function = "alpha_dropout"


class FeatureAlphaDropout(_Dropout):
    """Alpha dropout of whole channels; FeatureAlphaDropout().eval()([[1., 2.]]) = [[1., 2.]]."""

    function = "feature_alpha_dropout"
