"""Distances and similarities of pairs of vectors."""

from __future__ import annotations

from ...tensor import Tensor
from .. import functional as F
from .module import Module


class PairwiseDistance(Module):
    """‖x₁ - x₂ + eps‖ₚ over the last dim; PairwiseDistance(eps=0)([3., 4.], [0., 0.]) = tensor(5.)."""

    norm: float
    eps: float
    keepdim: bool

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """x₁·x₂ / max(‖x₁‖‖x₂‖, eps) over ``dim``."""

    dim: int
    eps: float

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
