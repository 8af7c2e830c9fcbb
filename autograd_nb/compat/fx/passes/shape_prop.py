"""`ShapeProp`: notes at every step what shape and dtype its result has."""

from __future__ import annotations

from typing import Any, NamedTuple

from ....ops.creation.device import contiguous_format
from ....tensor import Tensor
from ..interpreter import Interpreter
from ..node import Node, map_aggregate


class TensorMetadata(NamedTuple):
    """The shape, dtype and layout of a tensor, without its elements."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """Return what is known of a tensor."""
    layout = contiguous_format if result.is_contiguous() else None
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), layout, False, {})


class ShapeProp(Interpreter):
    """Runs a graph on inputs; each step has ``meta["tensor_meta"]`` and ``meta["type"]`` then.

    >>> traced = torch.fx.symbolic_trace(lambda x: x.sum(0))
    >>> _ = torch.fx.passes.shape_prop.ShapeProp(traced).propagate(torch.ones(2, 3))
    >>> [tuple(n.meta["tensor_meta"].shape) for n in traced.graph.nodes]
    [(2, 3), (3,), (3,)]
    """

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)

    def run_node(self, n: Node) -> Any:
        """Return the result of a step, and note of what kind it is."""
        result = super().run_node(n)
        tensors: list[Tensor] = []

        def note(a: Any) -> Any:
            if isinstance(a, Tensor):
                tensors.append(a)
                return _extract_tensor_metadata(a)
            return a

        meta = map_aggregate(result, note)
        if tensors:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph, and return its result."""
        return super().run(*args)
