"""The package that ``import torch`` finds where no `as_torch` was called before: it makes autograd_nb stand under its name."""

import sys

from autograd_nb.compat.as_torch import as_torch

del sys.modules[__name__]  # the import system takes what stands there afterwards
as_torch()
