"""What kernels import, where it touches memory with its bounds checked; what touches none is `autograd_nb.codegen`'s own."""

import sys

from ...codegen import elementary, iterative, vectors
from ...codegen.build import compilation

for _module in (compilation, elementary, iterative, vectors):
    sys.modules[f"{__name__}.{_module.__name__.rpartition('.')[2]}"] = _module

__all__ = ["compilation", "elementary", "iterative", "vectors"]
