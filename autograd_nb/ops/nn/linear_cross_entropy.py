"""A linear map and the cross entropy of its output.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.linear_cross_entropy.html
"""

from __future__ import annotations

from ... import dtypes
from ...errors import warn_user
from ..core.numbers import int_argument
from ..core.recording import guarded
from ..core.registry import public
from ..core.structured import tensor_argument
from ..products.matmul import linear
from .cross_entropy import cross_entropy


@public(method=False, namespaces=("nn.functional",))
def linear_cross_entropy(
    input, linear_weight, target, *, linear_bias=None, weight=None, reduction="mean", ignore_index=None, label_smoothing=0.0, options=None
):
    """Return `cross_entropy` of `linear(input, linear_weight, linear_bias)`: input (N, in) or (in), weights (C, d…, in), bias (C, d…).

    target: class indices (N, d…), or probabilities (N, C, d…). options: accepted, as the result does not depend on them.

    Errors: RuntimeError for shapes that do not fit, or for ``ignore_index`` with probabilities.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.linear_cross_entropy.html

    >>> torch.nn.functional.linear_cross_entropy(torch.ones(1, 2), torch.zeros(3, 2), torch.tensor([0]))
    tensor(1.0986)
    """
    op = "linear_cross_entropy"
    x, w, t = tensor_argument(input, op), tensor_argument(linear_weight, op, "linear_weight"), tensor_argument(target, op, "target")
    if x.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {x.ndim}")
    if w.ndim < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {w.ndim}")
    if x.shape[-1] != w.shape[-1]:
        raise RuntimeError(
            f"expected equal input and linear_weight last dimensions (in_features), got {x.shape[-1]} and {w.shape[-1]}, respectively"
        )
    sizes = tuple(w.shape[:-1])
    if linear_bias is not None and tuple(linear_bias.shape) != sizes:
        raise RuntimeError(f"expected linear_bias shape {sizes}, got {tuple(linear_bias.shape)}")
    if len(sizes) > 1 and x.ndim == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(w.shape)} requires batched input, (N, {x.shape[-1]}), got unbatched "
            f"input with shape {tuple(x.shape)}"
        )
    ignore_index = None if ignore_index is None else int_argument(ignore_index, op, "ignore_index")
    if options is not None and not hasattr(options, "batch_chunk_size"):
        raise TypeError(f"{op}(): argument 'options' must be LinearCrossEntropyOptions, not {type(options).__name__}")
    logits_shape = (*x.shape[:-1], *sizes)
    if ignore_index is not None and tuple(t.shape) == logits_shape:
        raise RuntimeError(f"ignore_index cannot be specified when target contains probabilities (ignore_index={ignore_index})")
    chunked = options is not None and len(sizes) == 1 and not label_smoothing and t.dtype is dtypes.int64 and reduction in ("mean", "sum", "none")
    if options is not None and not chunked:
        warn_user(
            "linear_cross_entropy: ``options`` ignored; chunked path needs reduction in {'mean','sum','none'}, label_smoothing == 0, "
            f"target.dtype == int64, out_features == (). Got reduction={reduction!r}, label_smoothing={label_smoothing}, "
            f"target.dtype={t.dtype}, out_features={sizes[1:]}.",
        )
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = linear(x, w.reshape(-1, w.shape[-1]) if len(sizes) > 1 else w, bias).reshape(logits_shape)
    loss = cross_entropy(
        logits, t, weight=weight, reduction=reduction, ignore_index=-100 if ignore_index is None else ignore_index,
        label_smoothing=label_smoothing,
    )  # fmt: skip
    if chunked and reduction == "none":  # PyTorch computes the chunks anew in the backward pass, and so keeps all of this
        guarded(loss, x, w, t, bias, weight)
    return loss
