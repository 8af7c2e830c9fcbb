"""Losses as ONNX nodes, for modules that compute them on their way."""

from __future__ import annotations

from typing import Any

from .graph import ExportError, Graph, op
from .recording import Call
from .reductions import fold


def _reduced(graph: Graph, call: Call, name: str) -> Any:
    """Return the loss of every element, summed or meant as the call asks."""
    a = call.arguments
    if a.get("weight") is not None or a.get("pos_weight") is not None or a.get("size_average") is not None or a.get("reduce") is not None:
        raise ExportError(f"onnx.export(): {call.name}() with weights, size_average or reduce cannot be written as ONNX nodes; write it as a formula")
    kind = a["reduction"]
    return name if kind == "none" else fold(graph, "ReduceMean" if kind == "mean" else "ReduceSum", name, None, False)


@op("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss")
def distances(graph: Graph, call: Call) -> Any:
    """Write a loss of the difference of two tensors."""
    a, kind, node = call.arguments, call.result.dtype, graph.node
    gap = node("Sub", graph.of(a["input"], kind), graph.of(a["target"], kind))
    size = node("Abs", gap)
    bend = a.get("delta", a.get("beta", 0.0))
    if call.name == "mse_loss":
        found = node("Mul", gap, gap)
    elif not bend:
        found = size
    else:  # half the square of what is below the bend, and all of what is above it
        below = node("Min", size, graph.constant(bend, kind))
        square = node("Mul", node("Mul", below, below), graph.constant(0.5 / bend, kind))
        found = node("Add", square, node("Sub", size, below))
        if call.name == "huber_loss":
            found = node("Mul", found, graph.constant(bend, kind))
    return _reduced(graph, call, found)


@op("binary_cross_entropy_with_logits")
def logits(graph: Graph, call: Call) -> Any:
    """Write max(x, 0) − x·y + log(1 + exp(−|x|))."""
    a, kind, node = call.arguments, call.result.dtype, graph.node
    x, y = graph.of(a["input"], kind), graph.of(a["target"], kind)
    rest = node("Softplus", node("Neg", node("Abs", x)))
    return _reduced(graph, call, node("Add", node("Sub", node("Relu", x), node("Mul", x, y)), rest))


@op("cross_entropy", "nll_loss")
def classes(graph: Graph, call: Call) -> Any:
    """Write a loss of the classes that the targets number."""
    a, kind = call.arguments, call.result.dtype
    if a["target"].dtype.category == 2 or a.get("label_smoothing") or a["input"].ndim == 1:
        raise ExportError(f"onnx.export(): {call.name}() is written for batches and targets that are numbers of classes, without label_smoothing")
    if a.get("size_average") is not None or a.get("reduce") is not None:
        raise ExportError(f"onnx.export(): {call.name}() with size_average or reduce cannot be written; give reduction")
    given = [graph.of(a["input"], kind), graph.of(a["target"]), *([graph.of(a["weight"], kind)] if a["weight"] is not None else [])]
    name = "SoftmaxCrossEntropyLoss" if call.name == "cross_entropy" else "NegativeLogLikelihoodLoss"
    return graph.node(name, *given, ignore_index=int(a["ignore_index"]), reduction=a["reduction"])
