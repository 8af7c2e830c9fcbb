"""Recurrent modules as ONNX nodes, taken as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np

from .graph import ExportError, Graph, op
from .recording import Call

#: the order of gates in ONNX, by their places here
_GATES = {"LSTM": [0, 3, 1, 2], "GRU": [1, 0, 2], "RNN": [0]}


@op("recurrent")
def recurrent(graph: Graph, call: Call) -> Any:
    """Write the layers of an LSTM, GRU or RNN, which begin from zeros."""
    m, x = call.module, call.arguments["input"]
    kind = next((k for k in _GATES if m.mode.startswith(k)), "")
    if call.arguments["state"] is not None or x.ndim != 3 or getattr(m, "proj_size", 0) or not kind:
        raise ExportError(f"onnx.export(): {type(m).__name__} with a given state, proj_size, or an input without a batch cannot be written")
    name = graph.of(x)
    if m.batch_first:
        name = graph.node("Transpose", name, perm=[1, 0, 2])
    ways = 2 if m.bidirectional else 1
    states: list[list[str]] = []
    for layer in range(m.num_layers):
        weights = [_weights(graph, m, f"l{layer}{'_reverse' * way}", kind) for way in range(ways)]
        given = [graph.constant(np.stack(parts), x.dtype) for parts in zip(*weights, strict=True)]
        options: dict[str, Any] = {"hidden_size": int(m.hidden_size), "direction": "bidirectional" if ways == 2 else "forward"}
        if kind == "GRU":
            options["linear_before_reset"] = 1
        if kind == "RNN" and m.mode == "RNN_RELU":
            options["activations"] = ["Relu"] * ways
        y, *last = graph.node(kind, name, *given, outputs=3 if kind == "LSTM" else 2, **options)
        states.append(last)  # y: (L, ways, N, hidden)
        name = graph.node("Reshape", graph.node("Transpose", y, perm=[0, 2, 1, 3]), graph.ints([0, 0, -1]))
    if m.batch_first:
        name = graph.node("Transpose", name, perm=[1, 0, 2])
    ends = [graph.node("Concat", *column, axis=0) for column in zip(*states, strict=True)]
    return [name, *ends]


def _weights(graph: Graph, m: Any, suffix: str, kind: str) -> list[np.ndarray]:
    """Return a direction's weights and bias in ONNX's order of gates."""
    n = m.hidden_size

    def ordered(array: np.ndarray) -> np.ndarray:
        return np.concatenate([array[g * n : (g + 1) * n] for g in _GATES[kind]])

    found = [ordered(getattr(m, f"weight_{w}_{suffix}").detach().numpy()) for w in ("ih", "hh")]
    biases = [ordered(getattr(m, f"bias_{w}_{suffix}").detach().numpy()) for w in ("ih", "hh")] if m.bias else [np.zeros(len(found[0]))] * 2
    return [*found, np.concatenate(biases)]


