"""A run of a model as the graph that TensorBoard draws: a box for each module, in it the functions that it called."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.versions_pb2 import VersionDef

from ..errors import shorten
from ..serialization.onnx.recording import Call, in_eval_mode, record, tensors
from ..tensor import Tensor


class _Drawing:
    """The nodes so far, and of each tensor the node, with the place among its results, that it comes from."""

    def __init__(self, model: Any):
        self.nodes: dict[str, NodeDef] = {}
        self.made_by: dict[int, str] = {}
        self.title = getattr(model, "__qualname__", None) or type(model).__name__

    def add(self, name: str, op: str, inputs: list[str], results: list[Tensor], **about: Any) -> str:
        """Add a node, under the name with a number behind it if there is one already; return its name."""
        own = name = re.sub(r"[^\w./-]", "_", name).lstrip("_") or "function"  # what TensorBoard takes as names
        n = 0
        while own in self.nodes:
            n += 1
            own = f"{name}_{n}"
        node = self.nodes[own] = NodeDef(name=own, op=op, input=list(dict.fromkeys(inputs)))
        shapes = [TensorShapeProto(dim=[TensorShapeProto.Dim(size=s) for s in t.shape]) for t in results]
        node.attr["_output_shapes"].CopyFrom(AttrValue(list=AttrValue.ListValue(shape=shapes)))
        for key, value in about.items():
            node.attr[key].CopyFrom(AttrValue(s=str(value).encode()))
        for i, t in enumerate(results):
            self.made_by[id(t)] = own if i == 0 else f"{own}:{i}"
        return own

    def within(self, scope: str, name: str) -> str:
        """Return the name of what stands in the module of this path."""
        return "/".join([self.title, *scope.split("."), name] if scope else [self.title, name])

    def call(self, call: Call) -> None:
        """Add the node of a call of a public function, and of the tensors among its arguments that nothing made."""
        given = tensors(call.arguments)
        for t in given:
            if id(t) not in self.made_by:
                self.add(self.within(call.scope, "constant"), "Constant", [], [t], dtype=t.dtype)
        inputs = [self.made_by[id(t)] for t in given]
        about = {k: shorten(v) for k, v in call.arguments.items() if v is not None and not tensors(v)}
        results = call.results()
        self.add(self.within(call.scope, call.name), call.name, inputs, results, dtype=results[0].dtype, **about)


def graph_of(model: Callable[..., Any], given: tuple[Any, ...]) -> GraphDef:
    """Return the graph of one run, in eval mode and without gradients, on these inputs."""
    with in_eval_mode(model):
        run = record(model, given, {})
    drawing = _Drawing(model)
    named: list[tuple[str, Any]] = [*model.named_parameters(), *model.named_buffers()] if hasattr(model, "named_parameters") else []
    for i, t in enumerate(run.inputs):
        drawing.add(f"input_{i}" if i else "input", "Input", [], [t], dtype=t.dtype)
    used = {id(t) for call in run.calls for t in tensors(call.arguments)} | {id(t) for call in run.calls if call.module for t in call.module.parameters()}
    for name, t in named:
        if id(t) in used:
            scope, _, own = name.rpartition(".")
            drawing.add(drawing.within(scope, own), "Parameter", [], [t], dtype=t.dtype)
    for call in run.calls:
        if call.module is not None:
            call.arguments |= dict(call.module.named_parameters())
            call.name = type(call.module).__name__
        drawing.call(call)
    for i, t in enumerate(run.outputs):
        if id(t) in drawing.made_by:
            drawing.add(f"output_{i}" if i else "output", "Output", [drawing.made_by[id(t)]], [t], dtype=t.dtype)
    return GraphDef(node=list(drawing.nodes.values()), versions=VersionDef(producer=22))
