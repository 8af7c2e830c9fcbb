"""Neural networks: modules, their functions, initial weights.

Source: https://docs.pytorch.org/docs/stable/nn.html
"""

from . import attention, functional, init, modules, parallel, parameter, utils
from .modules import *  # noqa: F403
from .modules import __all__ as _modules
from .parallel import DataParallel
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer", "DataParallel", "Parameter", "UninitializedBuffer", "UninitializedParameter",
    "attention", "functional", "init", "modules", "parallel", "parameter", "utils", *_modules,
]  # fmt: skip
