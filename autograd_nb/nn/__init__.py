"""Neural networks: modules, their functions, initial weights.

Source: https://docs.pytorch.org/docs/stable/nn.html
"""

import typing as _typing

from . import (
    attention as attention, functional as functional, init as init, modules as modules, parallel as parallel,
    parameter as parameter, utils as utils,
)
from .modules import *  # noqa: F403
from .modules import __all__ as _modules
from .parallel import DataParallel as DataParallel
from .parameter import (
    Buffer as Buffer, Parameter as Parameter, UninitializedBuffer as UninitializedBuffer,
    UninitializedParameter as UninitializedParameter,
)

if not _typing.TYPE_CHECKING:  # a checker goes by the imports
    __all__ = [
        "Buffer", "DataParallel", "Parameter", "UninitializedBuffer", "UninitializedParameter",
        "attention", "functional", "init", "modules", "parallel", "parameter", "utils", *_modules,
    ]  # fmt: skip
