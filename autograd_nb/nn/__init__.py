"""Neural networks: modules, their functions, initial weights.

Source: https://docs.pytorch.org/docs/stable/nn.html
"""

from . import functional, init, modules, parameter, utils
from .modules import *  # noqa: F403
from .modules import __all__ as _modules
from .parameter import Buffer, Parameter

__all__ = ["Buffer", "Parameter", "functional", "init", "modules", "parameter", "utils", *_modules]
