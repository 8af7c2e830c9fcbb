"""Functions of single elements as ONNX nodes."""

from __future__ import annotations

import math
from typing import Any

from ... import dtypes
from ...ops.creation.queries import result_type
from ...tensor import Tensor
from .graph import ExportError, Graph, op
from .recording import Call

#: functions that ONNX has under another name
_SAME = {
    "relu": "Relu", "relu_": "Relu", "sigmoid": "Sigmoid", "expit": "Sigmoid",
    "tanh": "Tanh", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "erf": "Erf", "sin": "Sin",
    "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "asinh": "Asinh", "acosh": "Acosh",
    "atanh": "Atanh", "reciprocal": "Reciprocal", "hardswish": "HardSwish", "softsign": "Softsign", "abs": "Abs", "neg": "Neg", "floor": "Floor",
    "ceil": "Ceil", "round": "Round", "sign": "Sign", "isnan": "IsNaN", "logical_not": "Not", "bitwise_not": "Not", "invert": "Not", "_invert": "Not",
}  # fmt: skip
_NUMBERS = {"add": "Add", "sub": "Sub", "mul": "Mul", "pow": "Pow", "_power": "Pow", "maximum": "Max", "minimum": "Min"}
_TESTS = {"eq": "Equal", "gt": "Greater", "ge": "GreaterOrEqual", "lt": "Less", "le": "LessOrEqual", "ne": "Equal"}
_TRUTHS = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor", "bitwise_and": "And", "bitwise_or": "Or", "bitwise_xor": "Xor",
    "and": "And", "or": "Or", "xor": "Xor"}


def _operand(call: Call) -> Any:
    return next(iter(call.arguments.values()))


def _two(call: Call) -> tuple[Any, Any]:
    a, b, *_ = call.arguments.values()
    return a, b


@op(*_SAME)
def same(graph: Graph, call: Call) -> Any:
    """Write a function that ONNX has."""
    x = _operand(call)
    if _SAME[call.name] == "Not" and x.dtype is not dtypes.bool_:
        raise ExportError(f"onnx.export(): {call.name}() of {x.dtype}; ONNX has it for bool")
    return graph.node(_SAME[call.name], graph.of(x, call.result.dtype if _SAME[call.name] not in ("IsNaN", "Not") else None))


@op(*_NUMBERS, *[name + "_" for name in _NUMBERS if name[0] != "_"])
def numbers(graph: Graph, call: Call) -> Any:
    """Write a function of two numbers, in the dtype of the result."""
    a, b = _two(call)
    kind = call.result.dtype
    second = graph.of(b, kind)
    alpha = call.arguments.get("alpha", 1)
    if alpha not in (1, None):
        second = graph.node("Mul", second, graph.of(alpha, kind))
    return graph.node(_NUMBERS[call.name.rstrip("_")], graph.of(a, kind), second)


@op("div", "div_", "true_divide")
def div(graph: Graph, call: Call) -> Any:
    """Write a quotient as nodes of the graph."""
    a, b = _two(call)
    kind, mode = call.result.dtype, call.arguments.get("rounding_mode")
    if mode == "trunc" or (mode and kind.category < 2):
        raise ExportError(f"onnx.export(): div(rounding_mode={mode!r}) of {kind} cannot be written")
    q = graph.node("Div", graph.of(a, kind), graph.of(b, kind))
    return graph.node("Floor", q) if mode else q


@op("rsub", "rdiv", "rtruediv", "_rdiv", "rpow")
def turned(graph: Graph, call: Call) -> Any:
    """Write a function whose operands are the other way round."""
    a, b = _two(call)
    kind = call.result.dtype
    return graph.node("Sub" if call.name == "rsub" else "Pow" if call.name == "rpow" else "Div", graph.of(b, kind), graph.of(a, kind))


@op(*_TESTS)
def tests(graph: Graph, call: Call) -> Any:
    """Write a comparison as nodes of the graph."""
    a, b = _two(call)
    kind = result_type(a, b)
    found = graph.node(_TESTS[call.name], graph.of(a, kind), graph.of(b, kind))
    return graph.node("Not", found) if call.name == "ne" else found


@op(*_TRUTHS)
def truths(graph: Graph, call: Call) -> Any:
    """Write a function of two truth values."""
    a, b = _two(call)
    if result_type(a, b) is not dtypes.bool_ and not call.name.startswith("logical"):
        raise ExportError(f"onnx.export(): {call.name}() of integers cannot be written")
    return graph.node(_TRUTHS[call.name], graph.of(a, dtypes.bool_), graph.of(b, dtypes.bool_))


@op("where")
def where(graph: Graph, call: Call) -> Any:
    """Write a choice as nodes of the graph."""
    a = call.arguments
    kind = call.result.dtype
    return graph.node("Where", graph.of(a["condition"], dtypes.bool_), graph.of(a["input"], kind), graph.of(a["other"], kind))


@op("masked_fill", "masked_fill_")
def masked_fill(graph: Graph, call: Call) -> Any:
    """Write a number in the places of a mask."""
    a = call.arguments
    return graph.node("Where", graph.of(a["mask"], dtypes.bool_), graph.of(a["value"], call.result.dtype), graph.of(a["input"]))


@op("clamp", "clip", "hardtanh", "relu6", "clamp_min", "clamp_max")
def clamp(graph: Graph, call: Call) -> Any:
    """Write bounds as nodes of the graph."""
    a, kind = call.arguments, call.result.dtype
    low, high = a.get("min", a.get("min_val", 0.0 if call.name == "relu6" else None)), a.get("max", a.get("max_val", 6.0 if call.name == "relu6" else None))
    found = graph.of(_operand(call), kind)
    if low is not None:
        found = graph.node("Max", found, graph.of(low, kind))
    return graph.node("Min", found, graph.of(high, kind)) if high is not None else found


@op("square", "rsqrt", "expm1", "log1p", "silu", "mish", "log2", "log10", "softplus", "logsigmoid", "exp2", "tanhshrink", "hardsigmoid")
def formulas(graph: Graph, call: Call) -> Any:
    """Write what ONNX has no node for, as a formula of nodes."""
    kind, name, node = call.result.dtype, call.name, graph.node
    x = graph.of(_operand(call), kind)

    def number(v: float) -> str:
        return graph.constant(v, kind)

    match name:
        case "square": return node("Mul", x, x)
        case "rsqrt": return node("Reciprocal", node("Sqrt", x))
        case "expm1": return node("Sub", node("Exp", x), number(1))
        case "log1p": return node("Log", node("Add", x, number(1)))
        case "silu": return node("Mul", x, node("Sigmoid", x))
        case "mish": return node("Mul", x, node("Tanh", node("Softplus", x)))
        case "log2": return node("Mul", node("Log", x), number(1 / math.log(2)))
        case "log10": return node("Mul", node("Log", x), number(1 / math.log(10)))
        case "exp2": return node("Exp", node("Mul", x, number(math.log(2))))
        case "softplus": return _softplus(graph, call, x)
        case "tanhshrink": return node("Sub", x, node("Tanh", x))
        case "hardsigmoid": return node("HardSigmoid", x, alpha=1 / 6, beta=0.5)
    return node("Neg", node("Softplus", node("Neg", x)))


def _softplus(graph: Graph, call: Call, x: str) -> Any:
    beta = call.arguments.get("beta", 1)
    kind = call.result.dtype
    if beta == 1:
        return graph.node("Softplus", x)
    return graph.node("Div", graph.node("Softplus", graph.node("Mul", x, graph.constant(beta, kind))), graph.constant(beta, kind))


@op("gelu")
def gelu(graph: Graph, call: Call) -> Any:
    """Write x · Φ(x), exact or by tanh."""
    kind, node = call.result.dtype, graph.node
    x = graph.of(_operand(call))

    def number(v: float) -> str:
        return graph.constant(v, kind)

    if call.arguments.get("approximate") == "tanh":
        cube = node("Mul", node("Mul", x, x), node("Mul", x, number(0.044715)))
        inner = node("Tanh", node("Mul", node("Add", x, cube), number(math.sqrt(2 / math.pi))))
    else:
        inner = node("Erf", node("Mul", x, number(math.sqrt(0.5))))
    return node("Mul", node("Mul", x, number(0.5)), node("Add", inner, number(1)))


@op("leaky_relu", "elu", "selu", "celu", "prelu")
def bent(graph: Graph, call: Call) -> Any:
    """Write an activation with a slope or scale of its own."""
    a, x = call.arguments, graph.of(_operand(call))
    match call.name:
        case "leaky_relu": return graph.node("LeakyRelu", x, alpha=float(a["negative_slope"]))
        case "selu": return graph.node("Selu", x)
        case "prelu": return _prelu(graph, _operand(call), a["weight"])
    return graph.node("Elu" if call.name == "elu" else "Celu", x, alpha=float(a["alpha"]))


def _prelu(graph: Graph, x: Tensor, weight: Tensor) -> Any:
    slope = graph.node("Reshape", weight, graph.ints([-1, *[1] * (x.ndim - 2)])) if x.ndim > 1 else graph.of(weight)
    return graph.node("PRelu", x, slope)


@op("dropout", "alpha_dropout", "feature_dropout", "dropout1d", "dropout2d", "dropout3d", "contiguous", "clone", "detach", "identity", "alias", "data")
def nothing(graph: Graph, call: Call) -> Any:
    """Write what changes no value; dropout in training is refused."""
    if call.arguments.get("training") and call.arguments.get("p"):
        raise ExportError(f"onnx.export(): {call.name}() in training mode draws random numbers; export in eval mode")
    return graph.of(_operand(call))


@op("to", "type", "type_as", "float", "double", "half", "long", "int", "bool")
def to(graph: Graph, call: Call) -> Any:
    """Write a conversion as nodes of the graph."""
    return graph.of(_operand(call), call.result.dtype)


@op("softmax", "log_softmax")
def softmax(graph: Graph, call: Call) -> Any:
    """Write softmax, or its logarithm."""
    x, d = _operand(call), call.arguments.get("dim")
    if d is None:
        d = 0 if x.ndim in (0, 1, 3) else 1
    return graph.node("Softmax" if call.name == "softmax" else "LogSoftmax", graph.of(x, call.result.dtype), axis=int(d))
