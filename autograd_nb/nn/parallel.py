"""PyTorch's wrappers for several devices, for programs that use them on one CPU.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html
"""

from __future__ import annotations

from typing import Any

from .modules.module import Module

__path__: list[str] = []  # PyTorch has modules below this one: see compat/import_aliases.py


class DataParallel(Module):
    """Runs ``module`` on the CPU; its parameters are named ``module.…`` as in PyTorch."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0):
        super().__init__()
        self.module = module
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


class DistributedDataParallel(Module):
    """RuntimeError: there are no process groups here."""

    def __init__(self, module: Module, *args: Any, **kwargs: Any):
        raise RuntimeError("DistributedDataParallel: this library trains in one process; use the module itself")


def data_parallel(
    module: Module, inputs: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0, module_kwargs: Any = None
) -> Any:
    """Return the result of ``module(inputs)``."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*inputs, **(module_kwargs or {}))
