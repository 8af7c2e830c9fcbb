"""The older place of `func.functional_call`.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.stateless.functional_call.html
"""

from __future__ import annotations

from typing import Any

from ...errors import warn_user
from ..modules.module import Module
from . import functional_call as _new

__all__ = ["functional_call"]


def functional_call(
    module: Module, parameters_and_buffers: dict[str, Any], args: Any = None, kwargs: dict[str, Any] | None = None, *,
    tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """Return ``module(*args, **kwargs)`` with other tensors in the place of its parameters and buffers; see `func.functional_call`."""
    warn_user(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future version of "
        "PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
    )
    return _new.functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)
