"""Memory handed from one library to another as DLPack capsules. Source: https://docs.pytorch.org/docs/stable/dlpack.html"""

from __future__ import annotations

from ..ops.creation.dlpack import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
