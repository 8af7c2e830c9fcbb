"""Attention as ONNX nodes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import dtypes
from .graph import ExportError, Graph, op
from .recording import Call


def _attention(graph: Graph, parts: list[str], scale: float, mask: Any, causal: bool, kind: Any) -> str:
    """Return softmax(scale · q kᵀ + mask) v, for q, k and v of four dims."""
    node, (q, k, v) = graph.node, parts
    scores = node("MatMul", node("Mul", q, graph.constant(scale, kind)), node("Transpose", k, perm=[0, 1, 3, 2]))
    if causal:
        ones = node("ConstantOfShape", node("Slice", node("Shape", scores), graph.ints([2]), graph.ints([4])), value=_one(graph))
        seen = node("Cast", node("Trilu", ones, upper=0), to=graph.kind(dtypes.bool_))
        scores = node("Where", seen, scores, graph.constant(-math.inf, kind))
    if mask is not None:
        if mask.dtype is dtypes.bool_:
            scores = node("Where", graph.of(mask), scores, graph.constant(-math.inf, kind))
        else:
            scores = node("Add", scores, graph.of(mask, kind))
    return str(node("MatMul", node("Softmax", scores, axis=-1), v))


def _one(graph: Graph) -> Any:
    return graph.onnx.numpy_helper.from_array(np.ones(1, np.float32))


@op("scaled_dot_product_attention")
def scaled_dot_product_attention(graph: Graph, call: Call) -> Any:
    """Write attention of queries to keys."""
    a = call.arguments
    q = a["query"]
    if a["dropout_p"] or a["enable_gqa"]:
        raise ExportError("onnx.export(): scaled_dot_product_attention() with dropout_p or enable_gqa cannot be written")
    scale = a["scale"] if a["scale"] is not None else 1 / math.sqrt(q.shape[-1])
    names = [graph.of(a[n]) for n in ("query", "key", "value")]
    if q.ndim not in (3, 4):
        raise ExportError(f"onnx.export(): scaled_dot_product_attention() of tensors with {q.ndim} dims; 3 or 4 can be written")
    if q.ndim == 3:
        names = [graph.node("Unsqueeze", n, graph.ints([0])) for n in names]
    found = _attention(graph, names, scale=scale, mask=a["attn_mask"], causal=a["is_causal"], kind=q.dtype)
    return graph.node("Squeeze", found, graph.ints([0])) if q.ndim == 3 else found


@op("multi_head_attention_forward")
def multi_head_attention(graph: Graph, call: Call) -> Any:
    """Write attention with projections and heads, for batches, without masks of keys and without weights as a result."""
    a = call.arguments
    q, weight, bias = a["query"], a["in_proj_weight"], a["in_proj_bias"]
    heads = int(a["num_heads"])
    absent = ("bias_k", "bias_v", "add_zero_attn", "key_padding_mask", "use_separate_proj_weight", "static_k", "static_v")
    refused = [n for n in absent if a[n] is not None and a[n] is not False]
    if refused or q.ndim != 3 or call.results()[1:] or (a["training"] and a["dropout_p"]):
        why = ", ".join(refused) or "need_weights, training, or an input without a batch"
        raise ExportError(f"onnx.export(): multi-head attention with {why} cannot be written (need_weights=False, and eval mode)")
    width = q.shape[-1]
    parts = []
    for i, name in enumerate(("query", "key", "value")):
        rows = [graph.ints([i * width]), graph.ints([(i + 1) * width]), graph.ints([0])]
        found = graph.node("MatMul", a[name], graph.node("Transpose", graph.node("Slice", weight, *rows), perm=[1, 0]))
        if bias is not None:
            found = graph.node("Add", found, graph.node("Slice", bias, *rows))
        found = graph.node("Reshape", found, graph.ints([0, 0, heads, width // heads]))  # (L, N, heads, width of a head)
        parts.append(graph.node("Transpose", found, perm=[1, 2, 0, 3]))
    causal, mask = bool(a["is_causal"]), a["attn_mask"]
    if mask is not None and mask.dtype is dtypes.bool_:
        mask = ~mask  # there it says which are hidden
    found = _attention(graph, parts, scale=1 / math.sqrt(width // heads), mask=mask, causal=causal and mask is None, kind=q.dtype)
    found = graph.node("Reshape", graph.node("Transpose", found, perm=[2, 0, 1, 3]), graph.ints([0, 0, width]))
    found = graph.node("MatMul", found, graph.node("Transpose", a["out_proj_weight"], perm=[1, 0]))
    return found if a["out_proj_bias"] is None else graph.node("Add", found, a["out_proj_bias"])
