"""The switches of PyTorch's backends, for programs that set them; of which only ``opt_einsum`` does anything here.

Source: https://docs.pytorch.org/docs/stable/backends.html
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ..ops.einsum import opt_einsum as opt_einsum


def _absent(**attributes: Any) -> Any:
    return SimpleNamespace(is_available=lambda: False, is_built=lambda: False, **attributes)


class _Cudnn(SimpleNamespace):
    def flags(self, **kwargs: Any) -> Any:
        """A context in which nothing changes."""
        from contextlib import nullcontext

        return nullcontext()


cudnn = _Cudnn(
    is_available=lambda: False, version=lambda: None, enabled=False, benchmark=False, deterministic=True, allow_tf32=False,
)  # fmt: skip
cuda = _absent(matmul=SimpleNamespace(allow_tf32=False), flash_sdp_enabled=lambda: False)
mps = _absent()
mkl = _absent()
mkldnn = _absent(enabled=False)
openmp = _absent()
