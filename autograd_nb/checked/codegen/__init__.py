"""What kernels import, where it touches memory with its bounds checked; what touches none is `autograd_nb.codegen`'s own."""

import sys

from ...codegen import build, elementary, iterative, vectors

for _module in (build, elementary, iterative, vectors):
    sys.modules[f"{__name__}.{_module.__name__.rpartition('.')[2]}"] = _module

__all__ = ["build", "elementary", "iterative", "vectors"]
