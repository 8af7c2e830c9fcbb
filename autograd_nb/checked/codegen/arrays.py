"""`autograd_nb.codegen.arrays` with bounds checked."""

from ...codegen.arrays import Arrays, count
from ...codegen.arrays import nth as _nth
from .jit import helper

__all__ = ["Arrays", "count", "nth"]


@helper
def nth(arrays, k):
    if k < 0 or k >= count(arrays):
        raise IndexError("a kernel of a file asks for an array that it was not given")
    return _nth(arrays, k)
