"""Parameters as one vector and back."""

from __future__ import annotations

from collections.abc import Iterable

from ...ops.core.registry import OPS
from ...tensor import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return all elements of the parameters, one after the other.

    >>> torch.nn.utils.parameters_to_vector([torch.tensor([[1., 2.]]), torch.tensor([3.])])
    tensor([1., 2., 3.])
    """
    return OPS["cat"].call([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Let the parameters take their data from slices of ``vec``. TypeError unless it is a Tensor."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__module__}.{type(vec).__name__}")
    k = 0
    for p in parameters:
        n = p._layout.size
        p.data = vec[k : k + n].view(p.shape).data
        k += n
