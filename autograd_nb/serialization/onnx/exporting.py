"""`onnx.export`: a module or function, as it runs on examples, written as an ONNX file.

The module is run twice, with other values and, where axes are dynamic, other sizes: what differs between the runs is not fixed, and what the file
cannot tell of is refused. The package ``onnx`` writes the file: ``pip install "autograd_nb[onnx]"``.

Source: https://docs.pytorch.org/docs/stable/onnx.html
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...ops.random.draws import rand_like
from ...tensor import Tensor
from . import attention, layers, losses, pointwise, recurrent, reductions, shapes  # noqa: F401  (they enter their functions)
from .graph import OPSET, ExportError, Graph
from .recording import in_eval_mode, record


class ONNXProgram:
    """An exported module: ``model_proto`` is what the package ``onnx`` reads, ``save(path)`` writes it."""

    def __init__(self, model_proto: Any):
        self.model_proto = model_proto

    def save(self, destination: Any) -> None:
        """Write the file: a path, or something with ``write``."""
        data = self.model_proto.SerializeToString()
        if hasattr(destination, "write"):
            destination.write(data)
            return
        from ...codegen.build.files import replacing

        with replacing(destination) as file:
            file.write(data)

    def __repr__(self) -> str:
        g = self.model_proto.graph
        return f"ONNXProgram of {len(g.node)} nodes: {', '.join(i.name for i in g.input)} -> {', '.join(o.name for o in g.output)}"


def export(
    model: Callable[..., Any], args: Any = (), f: Any = None, *, kwargs: Mapping[str, Any] | None = None, input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None, opset_version: int | None = None, dynamic_axes: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None, export_params: bool = True, verbose: bool | None = None, **others: Any,
) -> ONNXProgram:  # fmt: skip
    """Write a module, in eval mode, as an ONNX file, and return it as an `ONNXProgram`.

    Args:
        args: example inputs, a Tensor or a tuple. f: the file's path; None writes none. kwargs: more inputs, by name.
        input_names, output_names: else "input", "input_1" … and "output", "output_1" ….
        dynamic_axes: {"input": {0: "batch"}} or {"input": [0]}: axes whose size may be another one later.
        opset_version: the version of ONNX's ops, 17. Others: PyTorch's options that change nothing here.

    Errors: ImportError without the package onnx; OnnxExporterError (a RuntimeError) for functions that have no nodes, ways that depend on values,
    and sizes that are dynamic where they must be known.

    Example:
        >>> program = torch.onnx.export(torch.nn.Linear(3, 2), torch.ones(4, 3), dynamic_axes={"input": {0: "batch"}})  # doctest: +SKIP
        >>> program  # doctest: +SKIP
        ONNXProgram of 3 nodes: input -> output
    """
    try:
        onnx = importlib.import_module("onnx")
    except ImportError:
        raise ImportError("onnx.export() needs the package onnx: pip install onnx (or \"autograd_nb[onnx]\")") from None
    if opset_version not in (None, OPSET, 18, 19, 20) or dynamic_shapes:
        raise ValueError(f"onnx.export(): opset_version (={opset_version}) must be {OPSET}; axes that may change are named by dynamic_axes")
    given = (args,) if isinstance(args, Tensor) else tuple(args)
    named = dict(kwargs or {})
    with in_eval_mode(model):
        first = record(model, given, named, formulas=True)
        names = _named(input_names, len(first.inputs), "input")
        axes = _axes(dynamic_axes or {})
        swap = {id(t): _another(t, axes.get(n, {})) for n, t in zip(names, first.inputs, strict=True)}
        other_given, other_named = _exchanged((given, named), swap)
        second = record(model, other_given, other_named, formulas=True)
    if len(first.calls) != len(second.calls):
        raise ExportError("onnx.export(): the module takes another way for other inputs; use where() in place of `if`")
    graph = Graph(onnx, first, second)
    for name, t in [*getattr(model, "named_parameters", dict)(), *getattr(model, "named_buffers", dict)()] if hasattr(model, "parameters") else ():
        graph.known[id(t)] = name
    for n, a, b in zip(names, first.inputs, second.inputs, strict=True):
        graph.names[id(a)] = n
        graph.pair(a, b)
    for a, b in zip(first.outputs, second.outputs, strict=True):
        graph.pair(a, b)
    for mine, theirs in zip(first.calls, second.calls, strict=True):
        graph.write(mine, theirs)
    program = ONNXProgram(_model(graph, names, _named(output_names, len(first.outputs), "output"), axes, type(model).__name__))
    onnx.checker.check_model(program.model_proto)
    if f is not None:
        program.save(f)
    return program


def _model(graph: Graph, inputs: list[str], outputs: list[str], axes: dict[str, dict[int, str]], title: str) -> Any:
    """Return the model of ONNX, with outputs under their names."""
    helper = graph.onnx.helper
    for n, t in zip(outputs, graph.record.outputs, strict=True):
        graph.nodes.append(helper.make_node("Identity", [graph.of(t)], [n]))

    def info(name: str, t: Tensor) -> Any:
        other = graph.twin(t)
        known = axes.get(name, {})
        sizes = [known.get(i, f"{name}_{i}" if n != m else n) for i, (n, m) in enumerate(zip(t.shape, other.shape, strict=True))]
        return helper.make_tensor_value_info(name, graph.kind(t.dtype), sizes)

    made = helper.make_graph(
        graph.nodes, title, [info(n, t) for n, t in zip(inputs, graph.record.inputs, strict=True)],
        [info(n, t) for n, t in zip(outputs, graph.record.outputs, strict=True)], graph.constants,
    )  # fmt: skip
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="autograd_nb", ir_version=8)


def _named(names: Sequence[str] | None, count: int, base: str) -> list[str]:
    found = list(names or ())[:count]
    return found + [base if i == 0 else f"{base}_{i}" for i in range(len(found), count)]


def _axes(axes: Mapping[str, Any]) -> dict[str, dict[int, str]]:
    return {n: dict(a) if isinstance(a, Mapping) else {i: f"{n}_{i}" for i in a} for n, a in axes.items()}


def _another(t: Tensor, axes: dict[int, str]) -> Tensor:
    """Return other values for an input: as it is, but longer by its own elements along axes that are dynamic; floats are drawn."""
    found = t.detach()
    for d in axes:
        found = found.repeat_interleave(2, dim=d) if found.shape[d] < 2 else found[_all(d, slice(0, found.shape[d] - 1))]
    if found.dtype.is_floating_point:
        drawn: Tensor = rand_like(found)
        return drawn * 0.5 + found * 0.5
    return found.flip(0).clone() if found.ndim else found.clone()


def _all(d: int, last: slice) -> tuple[slice, ...]:
    return (*[slice(None)] * d, last)


def _exchanged(value: Any, swap: dict[int, Tensor]) -> Any:
    if isinstance(value, Tensor):
        return swap[id(value)]
    if isinstance(value, dict):
        return {k: _exchanged(v, swap) for k, v in value.items()}
    return type(value)(_exchanged(v, swap) for v in value) if isinstance(value, (list, tuple)) else value


__all__ = ["ExportError", "ONNXProgram", "export"]
