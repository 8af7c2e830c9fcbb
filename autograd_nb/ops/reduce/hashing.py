"""A hash of the elements."""

from __future__ import annotations

from ... import dtypes
from ...tensor import Tensor
from ..core.marked import resolved
from ..core.numbers import int_argument
from ..core.recording import scalar_type, store
from ..core.reduction import check_not_empty, reduction
from ..core.registry import public
from ..core.structured import tensor_argument
from ..creation.cast import cast
from ..shape.shape import view

_xor = reduction(lambda a, x: a ^ x, init=0, name="xor_sum", public=False)(lambda x: x)


@public(dtypes="half float integer bool", differentiable=False)
def hash_tensor(input, dim=(), *, keepdim=False, mode: int = 0, out=None):
    """Return the exclusive or of the bits of all elements, or of those along ``dim``, each as float64 or int64, in uint64.

    Errors: RuntimeError for another ``mode`` than 0; NotImplementedError for unsigned integers of more than 8 bits and complex numbers.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.hash_tensor.html

    >>> torch.hash_tensor(torch.tensor([[1, 3], [4, 5]]), 1)
    tensor([2, 1], dtype=torch.uint64)
    """
    x: Tensor = tensor_argument(input, "hash_tensor")
    if int_argument(mode, "hash_tensor", "mode") != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if out is not None and out.dtype is not dtypes.uint64:
        raise RuntimeError(f"Expected result to be of dtype uint64, but got {scalar_type(out.dtype)}")
    dims = _xor.dims(dim, x.ndim)
    check_not_empty(x, None if isinstance(dim, (tuple, list)) and not dim else dim, dims, "hash_tensor")
    if x.dtype.is_complex or x.dtype.is_barebone:
        raise NotImplementedError(f"\"xor_sum_cpu\" not implemented for '{scalar_type(x.dtype)}'")
    x = resolved(x.detach())
    bits = view(cast(x, dtypes.float64), dtype=dtypes.int64) if x.dtype.is_floating_point else cast(x, dtypes.int64)
    y = view(_xor(bits, dims, bool(keepdim)), dtype=dtypes.uint64)
    return y if out is None else store(out, y, "hash_tensor")
