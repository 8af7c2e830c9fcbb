"""ONNX, which this library does not write: `export` tells so.

Source: https://docs.pytorch.org/docs/stable/onnx.html
"""

from __future__ import annotations

from typing import Any


def export(model: Any, *args: Any, **kwargs: Any) -> Any:
    """NotImplementedError: save the state_dict and export from PyTorch."""
    raise NotImplementedError("onnx.export(): ONNX files are not written here; save(model.state_dict(), path), and export from PyTorch")


def is_in_onnx_export() -> bool:
    """False."""
    return False
