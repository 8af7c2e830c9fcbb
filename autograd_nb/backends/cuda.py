"""Switches of CUDA's libraries, which are not there: they can be set, and have no effect."""

from __future__ import annotations

from types import SimpleNamespace

from .absent import is_available, is_built
from .absent import is_available as flash_sdp_enabled
from .absent import is_available as mem_efficient_sdp_enabled
from .absent import setting as enable_cudnn_sdp
from .absent import setting as enable_flash_sdp
from .absent import setting as enable_math_sdp
from .absent import setting as enable_mem_efficient_sdp
from .absent import setting as preferred_linalg_library
from .absent import setting as sdp_kernel

__all__ = [
    "enable_cudnn_sdp", "enable_flash_sdp", "enable_math_sdp", "enable_mem_efficient_sdp", "flash_sdp_enabled", "is_available", "is_built",
    "math_sdp_enabled", "matmul", "mem_efficient_sdp_enabled", "preferred_linalg_library", "sdp_kernel",
]  # fmt: skip

matmul = SimpleNamespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=False, allow_bf16_reduced_precision_reduction=False)


def math_sdp_enabled() -> bool:
    """True: attention is computed by its formula."""
    return True
