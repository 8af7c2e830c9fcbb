"""Gradients of tables of rows that have only the rows that were used: ``sparse=True`` of embeddings."""

from __future__ import annotations

from typing import Any

from ..graph.modes import no_grad, state
from ..graph.ownership import handed
from ..tensor import Tensor
from .tensor import recorded
from .values import with_values


def embedding(weight: Tensor, index: Tensor, padding: int, by_frequency: bool) -> Tensor:
    """Return the rows of ``weight`` at ``index``; the gradient of the table is sparse, with a row for each use, in their order."""
    flat = index.reshape(-1).long().clone()  # the gradient keeps them, whatever becomes of the index
    shape = tuple(weight.shape)
    with no_grad():
        y = weight.detach().index_select(0, flat).reshape(*index.shape, shape[1])

    def rule(g: Any) -> Any:
        if by_frequency:  # (of which PyTorch computes the rows)
            raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
        rows, used = handed(g, state.grad).reshape(flat.numel(), shape[1]), flat
        if padding >= 0:
            keep = (flat != padding).nonzero().squeeze(1)
            rows, used = rows.index_select(0, keep), flat.index_select(0, keep)
        return with_values("coo", shape, (used.unsqueeze(0),), rows, False)

    return recorded(y, weight, rule)  # type: ignore[no-any-return]

