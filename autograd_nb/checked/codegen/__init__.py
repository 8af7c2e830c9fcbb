"""What kernels import, where it touches memory with its bounds checked; what touches none is `autograd_nb.codegen`'s own."""

import sys
from importlib.util import module_from_spec, spec_from_file_location

from ...codegen import build, elementary, processor, vectors
from ...codegen import iterative as plain
from ...codegen.build import compilation, linking

for _module in (build, compilation, elementary, linking, processor, vectors):
    sys.modules[__name__ + _module.__name__.removeprefix("autograd_nb.codegen")] = _module

# its loops end by what they compute: the same file once more, over this folder's `jit`, which counts them
_spec = spec_from_file_location(f"{__name__}.iterative", plain.__file__)
assert _spec is not None and _spec.loader is not None
iterative = sys.modules[_spec.name] = module_from_spec(_spec)
_spec.loader.exec_module(iterative)

__all__ = ["build", "compilation", "elementary", "iterative", "linking", "processor", "vectors"]
