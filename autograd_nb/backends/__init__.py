"""The switches of PyTorch's backends, for programs that set them; of which only ``opt_einsum`` does anything here.

Source: https://docs.pytorch.org/docs/stable/backends.html
"""

from __future__ import annotations

from ..ops.products.einsum import opt_einsum as opt_einsum
from . import cuda, cudnn, mkl, mkldnn, mps, openmp

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]
