"""Softmax over many classes, the rare ones in clusters with smaller projections.

Source: Grave et al., Efficient softmax approximation for GPUs (ICML 2017)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ...ops.core.registry import OPS
from ...tensor import Tensor
from .. import functional as F
from .container import ModuleList
from .container import Sequential as Stack
from .linear import Linear
from .module import Module


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of targets, and their mean loss, over classes ordered from frequent to rare.

    cutoffs: the first classes (below ``cutoffs[0]``) and one entry per cluster are in the head; cluster i has classes from
    ``cutoffs[i]`` on, projected to in_features / div_value^(i + 1) features. Shapes: (N, in_features) and (N) of class indices →
    ``output`` (N), log-probabilities of the targets, and ``loss``, their negative mean; or without the batch dim.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveLogSoftmaxWithLoss.html

    >>> m = torch.nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2, 4], div_value=2.0)
    >>> m(torch.ones(2, 4), torch.tensor([0, 5])).output.shape
    torch.Size([2])
    """

    in_features: int
    n_classes: int
    div_value: float
    head_bias: bool
    cutoffs: list[int]
    shortlist_size: int
    n_clusters: int
    head_size: int
    head: Linear
    tail: ModuleList

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(set(cutoffs))
            or cutoffs[0] <= 0
            or cutoffs[-1] > n_classes - 1
            or any(int(c) != c for c in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is between 1 "
                f"and n_classes-1 (cutoffs={cutoffs}, n_classes={n_classes})"
            )
        self.in_features, self.n_classes, self.div_value, self.head_bias = in_features, n_classes, div_value, head_bias
        self.cutoffs = [*cutoffs, n_classes]
        self.shortlist_size = cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            width = int(in_features // div_value ** (i + 1))
            self.tail.append(
                Stack(
                    Linear(in_features, width, bias=False, device=device, dtype=dtype),
                    Linear(width, high - low, bias=False, device=device, dtype=dtype),
                )
            )

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.head.reset_parameters()
        for projection in self.tail:
            for linear in projection:
                linear.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        single = target_.ndim == 0
        if target_.ndim > 1:
            raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported (target of {target_.ndim} dims)")
        if input_.ndim != (1 if single else 2):
            raise RuntimeError(
                f"{target_.ndim}D target tensor expects {target_.ndim + 1}D input tensors, but found inputs with size {input_.size()}"
            )
        x, target = (input_.unsqueeze(0), target_.unsqueeze(0)) if single else (input_, target_)
        if x.shape[0] != target.shape[0]:
            raise RuntimeError(
                f"Input and target should have the same size in the batch dimension. (input {list(x.shape)}, target {list(target.shape)})"
            )
        if target.numel() and not 0 <= (low := target.min().item()) <= (high := target.max().item()) < self.n_classes:
            raise RuntimeError(f"Target values should be in [0, {self.n_classes - 1}], but values in range [{low}, {high}] were found. ")
        head = F.log_softmax(self.head(x), dim=1)
        places = target.clone()  # of each target in the head: itself, or its cluster's entry
        output = x.new_zeros(x.shape[0])
        for i, (start, stop) in enumerate(pairwise(self.cutoffs)):
            inside = (target >= start) & (target < stop)
            rows = inside.nonzero().squeeze(1)
            if not rows.numel():
                continue
            cluster = F.log_softmax(self.tail[i](x.index_select(0, rows)), dim=1)
            own = cluster.gather(1, (target[rows] - start).unsqueeze(1)).squeeze(1)
            output = output.index_copy(0, rows, own)
            places = places.index_fill(0, rows, self.shortlist_size + i)
        output = output + head.gather(1, places.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if single else output, loss)

    def _all(self, x: Tensor, head_output: Tensor) -> Tensor:
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i in range(self.n_clusters):
            cluster = F.log_softmax(self.tail[i](x), dim=1)
            parts.append(cluster + head[:, self.shortlist_size + i].unsqueeze(1))
        return OPS["cat"].call(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """Return log-probabilities of all classes: (N, in_features) → (N, n_classes)."""
        return self._all(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """Return the likeliest class of each row: (N, in_features) → (N)."""
        head = self.head(input)
        output = head.argmax(dim=1)
        rows = (output >= self.shortlist_size).nonzero().squeeze(1)
        if rows.numel():  # only where a cluster wins are its classes looked at
            best = self._all(input[rows], head[rows]).argmax(dim=1)
            output = output.index_copy(0, rows, best)
        return output
