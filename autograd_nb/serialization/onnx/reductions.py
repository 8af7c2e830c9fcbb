"""Sums, extremes and products of matrices as ONNX nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from .graph import ExportError, Graph, op
from .recording import Call

_FOLDS = {"mean": "ReduceMean", "prod": "ReduceProd", "amax": "ReduceMax", "amin": "ReduceMin", "logsumexp": "ReduceLogSumExp", "sum": "ReduceSum"}


def _dims(call: Call) -> list[int] | None:
    d = call.arguments.get("dim")
    return None if d is None or d == () else [d] if isinstance(d, int) else list(d)


def fold(graph: Graph, kind: str, name: str, dims: list[int] | None, keepdim: bool) -> str:
    """Return a reduction along dims; in this version of ONNX a sum takes them as an input, others as an attribute."""
    if kind == "ReduceSum":
        return str(graph.node(kind, name, *([graph.ints(dims)] if dims is not None else []), keepdims=int(keepdim)))
    options: dict[str, Any] = {"axes": dims} if dims is not None else {}
    return str(graph.node(kind, name, keepdims=int(keepdim), **options))


@op(*_FOLDS)
def reduction(graph: Graph, call: Call) -> Any:
    """Write a reduction as nodes of the graph."""
    x = graph.of(call.arguments["input"], call.result.dtype)
    return fold(graph, _FOLDS[call.name], x, _dims(call), bool(call.arguments.get("keepdim")))


@op("max", "min")
def extreme(graph: Graph, call: Call) -> Any:
    """Write an extreme of all elements, along a dim with its index, or of two tensors."""
    a, largest = call.arguments, call.name == "max"
    d, other = a.get("dim"), a.get("other")
    if other is not None or hasattr(d, "dtype"):
        return graph.node("Max" if largest else "Min", a["input"], other if other is not None else d)
    kind = "ReduceMax" if largest else "ReduceMin"
    if d is None:
        return fold(graph, kind, graph.of(a["input"]), None, False)
    keep = bool(a["keepdim"])
    index = graph.node("ArgMax" if largest else "ArgMin", a["input"], axis=int(d), keepdims=int(keep))
    return [fold(graph, kind, graph.of(a["input"]), [int(d)], keep), index]


@op("argmax", "argmin")
def place_of_extreme(graph: Graph, call: Call) -> Any:
    """Write the index of an extreme."""
    a, kind = call.arguments, "ArgMax" if call.name == "argmax" else "ArgMin"
    if a["dim"] is None:
        return graph.node(kind, graph.node("Reshape", a["input"], graph.ints([-1])), axis=0, keepdims=0)
    return graph.node(kind, a["input"], axis=int(a["dim"]), keepdims=int(bool(a["keepdim"])))


@op("var", "std")
def spread(graph: Graph, call: Call) -> Any:
    """Write a variance, or its root."""
    a, x = call.arguments, call.arguments["input"]
    dims = _dims(call)
    correction = a.get("correction")
    correction = 1 if correction is None and a.get("unbiased") is not False else int(correction or 0)
    sizes = [n for i, n in enumerate(x.shape) if dims is None or i in [d % x.ndim for d in dims]]
    if correction and [*x.shape] != [*graph.twin(x).shape] and dims is None:
        raise ExportError(f"onnx.export(): {call.name}() over dynamic dims needs correction=0")
    count = int(np.prod(sizes))
    centred = graph.node("Sub", x, fold(graph, "ReduceMean", graph.of(x), dims, True))
    found = fold(graph, "ReduceMean", graph.node("Mul", centred, centred), dims, bool(a.get("keepdim")))
    if correction:
        found = graph.node("Mul", found, graph.constant(count / max(count - correction, 1), x.dtype))
    return graph.node("Sqrt", found) if call.name == "std" else found


@op("norm", "vector_norm")
def norm(graph: Graph, call: Call) -> Any:
    """Write a norm of order 1 or 2."""
    p = call.arguments.get("p", call.arguments.get("ord", 2))
    if p not in (1, 2, "fro", None):
        raise ExportError(f"onnx.export(): a norm of order {p} cannot be written")
    return fold(graph, "ReduceL1" if p == 1 else "ReduceL2", graph.of(next(iter(call.arguments.values()))), _dims(call), bool(call.arguments["keepdim"]))


@op("cumsum")
def cumsum(graph: Graph, call: Call) -> Any:
    """Write running sums as nodes of the graph."""
    return graph.node("CumSum", graph.of(call.arguments["input"], call.result.dtype), graph.constant(int(call.arguments["dim"])))


@op("matmul", "mm", "bmm", "mv", "dot")
def matmul(graph: Graph, call: Call) -> Any:
    """Write a product of matrices."""
    a, b, *_ = call.arguments.values()
    return graph.node("MatMul", a, b)


@op("addmm", "baddbmm", "addbmm")
def addmm(graph: Graph, call: Call) -> Any:
    """Write a product that is added to something."""
    x, a, b, *_ = call.arguments.values()
    kind = call.result.dtype
    product = graph.node("MatMul", a, b)
    if call.arguments.get("alpha", 1) != 1:
        product = graph.node("Mul", product, graph.of(call.arguments["alpha"], kind))
    added = graph.of(x, kind)
    if call.arguments.get("beta", 1) != 1:
        added = graph.node("Mul", added, graph.of(call.arguments["beta"], kind))
    return graph.node("Add", added, product)


@op("einsum")
def einsum(graph: Graph, call: Call) -> Any:
    """Write a sum of products by its formula."""
    text, *operands = [v for a in call.arguments.values() for v in (a if isinstance(a, (tuple, list)) else [a])]
    return graph.node("Einsum", *operands, equation=text)


@op("one_hot")
def one_hot(graph: Graph, call: Call) -> Any:
    """Write indices as rows with a one."""
    n = call.result.shape[-1]
    return graph.node("OneHot", next(iter(call.arguments.values())), graph.ints([n]), graph.constant([0, 1], dtypes.int64), axis=-1)
