"""PyTorch's wrappers for several devices, for programs that use them on one CPU, and for several processes.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ..modules.module import Module

if TYPE_CHECKING:
    from .distributed import DistributedDataParallel as DistributedDataParallel
else:

    def __getattr__(name: str) -> Any:
        """Import what only programs of several processes need when it is asked for."""
        if name == "DistributedDataParallel":
            from .distributed import DistributedDataParallel

            return DistributedDataParallel
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class DataParallel(Module):
    """Runs ``module`` on the CPU; its parameters are named ``module.…`` as in PyTorch."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0):
        super().__init__()
        self.module = module
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module, inputs: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0, module_kwargs: Any = None
) -> Any:
    """Return the result of ``module(inputs)``."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*inputs, **(module_kwargs or {}))


# an import of PyTorch's module of that name leaves the function alone: it finds this module
sys.modules.setdefault(f"{__name__}.data_parallel", sys.modules[__name__])
