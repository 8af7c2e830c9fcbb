"""Layers as ONNX nodes: linear ones, convolutions, pools, normalisations, resizing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .graph import ExportError, Graph, op
from .recording import Call


def _each(value: Any, n: int) -> list[int]:
    """Return an option for every dim."""
    return [int(v) for v in value] * (n if len(value) == 1 else 1) if isinstance(value, Sequence) else [int(value)] * n


@op("linear")
def linear(graph: Graph, call: Call) -> Any:
    """Write x Wᵀ + b as nodes of the graph."""
    a = call.arguments
    found = graph.node("MatMul", a["input"], graph.node("Transpose", a["weight"], perm=[1, 0]))
    return found if a["bias"] is None else graph.node("Add", found, a["bias"])


@op("conv1d", "conv2d", "conv3d")
def conv(graph: Graph, call: Call) -> Any:
    """Write a convolution as nodes of the graph."""
    a = call.arguments
    n = int(call.name[4])
    x = _batched(graph, a["input"], n)
    options: dict[str, Any] = {"strides": _each(a["stride"], n), "dilations": _each(a["dilation"], n), "group": int(a["groups"])}
    if isinstance(a["padding"], str):
        total = [d * (k - 1) if a["padding"] == "same" else 0 for d, k in zip(options["dilations"], a["weight"].shape[2:], strict=True)]
        options["pads"] = [t // 2 for t in total] + [t - t // 2 for t in total]
    else:
        options["pads"] = _each(a["padding"], n) * 2
    found = graph.node("Conv", x, a["weight"], *([] if a["bias"] is None else [a["bias"]]), kernel_shape=list(a["weight"].shape[2:]), **options)
    return found if a["input"].ndim == n + 2 else graph.node("Squeeze", found, graph.ints([0]))


@op("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(graph: Graph, call: Call) -> Any:
    """Write a transposed convolution."""
    a = call.arguments
    n = int(call.name[-2])
    found = graph.node(
        "ConvTranspose", _batched(graph, a["input"], n), a["weight"], *([] if a["bias"] is None else [a["bias"]]),
        strides=_each(a["stride"], n), dilations=_each(a["dilation"], n), group=int(a["groups"]), pads=_each(a["padding"], n) * 2,
        output_padding=_each(a["output_padding"], n), kernel_shape=list(a["weight"].shape[2:]),
    )  # fmt: skip
    return found if a["input"].ndim == n + 2 else graph.node("Squeeze", found, graph.ints([0]))


def _batched(graph: Graph, x: Any, n: int) -> str:
    return graph.of(x) if x.ndim == n + 2 else str(graph.node("Unsqueeze", x, graph.ints([0])))


@op("max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d")
def pool(graph: Graph, call: Call) -> Any:
    """Write a pool of windows as nodes of the graph."""
    a, n, largest = call.arguments, int(call.name[-2]), call.name.startswith("max")
    if a.get("return_indices") or a.get("divisor_override"):
        raise ExportError(f"onnx.export(): {call.name}() with return_indices or divisor_override cannot be written")
    kernel = _each(a["kernel_size"], n)
    stride = _each(a["stride"], n) if a.get("stride") not in (None, ()) else kernel
    options: dict[str, Any] = {"kernel_shape": kernel, "strides": stride, "pads": _each(a["padding"], n) * 2, "ceil_mode": int(bool(a.get("ceil_mode")))}
    if largest:
        options["dilations"] = _each(a.get("dilation", 1), n)
    else:
        options["count_include_pad"] = int(bool(a.get("count_include_pad", True)))
    found = graph.node("MaxPool" if largest else "AveragePool", _batched(graph, a["input"], n), **options)
    return found if a["input"].ndim == n + 2 else graph.node("Squeeze", found, graph.ints([0]))


@op("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive(graph: Graph, call: Call) -> Any:
    """Write a pool to given sizes, which must divide those that there are."""
    x, n, largest = call.arguments["input"], int(call.name[-2]), "max" in call.name
    out = list(call.results()[0].shape[-n:])
    if out == [1] * n:
        return graph.node("GlobalMaxPool" if largest else "GlobalAveragePool", _batched(graph, x, n))
    sizes = list(x.shape[-n:])
    if sizes != list(graph.twin(x).shape[-n:]) or any(s % o for s, o in zip(sizes, out, strict=True)):
        raise ExportError(f"onnx.export(): {call.name}() of {sizes} to {out}: only sizes that divide, and are not dynamic, can be written")
    kernel = [s // o for s, o in zip(sizes, out, strict=True)]
    return graph.node("MaxPool" if largest else "AveragePool", x, kernel_shape=kernel, strides=kernel)


@op("batch_norm", "instance_norm")
def batch_norm(graph: Graph, call: Call) -> Any:
    """Write a normalisation by statistics that were kept, or of each sample and channel."""
    a, x = call.arguments, call.arguments["input"]
    own = call.name == "instance_norm"
    if (a.get("training") and not own) or (a["running_mean"] is None and not own):
        raise ExportError("onnx.export(): batch_norm() in training mode cannot be written; export in eval mode")
    channels = x.shape[1]
    scale = a["weight"] if a["weight"] is not None else graph.constant(np.ones(channels), x.dtype)
    shift = a["bias"] if a["bias"] is not None else graph.constant(np.zeros(channels), x.dtype)
    if own:
        return graph.node("InstanceNormalization", x, scale, shift, epsilon=float(a["eps"]))
    return graph.node("BatchNormalization", x, scale, shift, a["running_mean"], a["running_var"], epsilon=float(a["eps"]))


@op("layer_norm")
def layer_norm(graph: Graph, call: Call) -> Any:
    """Write a normalisation over the last dims."""
    a, x = call.arguments, call.arguments["input"]
    shape = tuple(x.shape[-len(a["normalized_shape"]) :]) if isinstance(a["normalized_shape"], Sequence) else (x.shape[-1],)
    scale = a["weight"] if a["weight"] is not None else graph.constant(np.ones(shape), x.dtype)
    more = [] if a["bias"] is None else [a["bias"]]
    return graph.node("LayerNormalization", x, scale, *more, axis=-len(shape), epsilon=float(a["eps"]))


@op("rms_norm")
def rms_norm(graph: Graph, call: Call) -> Any:
    """Write a division by the root of the mean square."""
    a, x = call.arguments, call.arguments["input"]
    eps = a["eps"] if a["eps"] is not None else float(np.finfo(x.dtype.carrier).eps)
    square = graph.node("ReduceMean", graph.node("Mul", x, x), axes=list(range(-len(a["normalized_shape"]), 0)), keepdims=1)
    found = graph.node("Div", x, graph.node("Sqrt", graph.node("Add", square, graph.constant(eps, x.dtype))))
    return found if a["weight"] is None else graph.node("Mul", found, a["weight"])


@op("group_norm")
def group_norm(graph: Graph, call: Call) -> Any:
    """Write a normalisation of groups of channels, as that of samples of a tensor with a channel for each group."""
    a, x = call.arguments, call.arguments["input"]
    groups, kind = int(a["num_groups"]), x.dtype
    grouped = graph.node("Reshape", x, graph.ints([0, groups, -1]))
    ones, zeros = graph.constant(np.ones(groups), kind), graph.constant(np.zeros(groups), kind)
    normal = graph.node("InstanceNormalization", grouped, ones, zeros, epsilon=float(a["eps"]))
    found = graph.node("Reshape", normal, graph.node("Shape", x))
    shape = graph.ints([-1, *[1] * (x.ndim - 2)])
    if a["weight"] is not None:
        found = graph.node("Mul", found, graph.node("Reshape", a["weight"], shape))
    return found if a["bias"] is None else graph.node("Add", found, graph.node("Reshape", a["bias"], shape))


@op("interpolate", "upsample")
def interpolate(graph: Graph, call: Call) -> Any:
    """Write an image's other size, by the nearest pixel, linear or cubic."""
    a, x, out = call.arguments, call.arguments["input"], call.result
    mode = {"nearest": "nearest", "linear": "linear", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}.get(a["mode"])
    if mode is None or a.get("antialias"):
        raise ExportError(f"onnx.export(): interpolate(mode={a['mode']!r}, antialias={a.get('antialias')}) cannot be written")
    way = "asymmetric" if mode == "nearest" else "align_corners" if a["align_corners"] else "half_pixel"
    scales = [1.0, 1.0, *[m / n for n, m in zip(x.shape[2:], out.shape[2:], strict=True)]]
    return graph.node(
        "Resize", graph.of(x), "", graph.constant(np.array(scales, np.float32)), mode=mode, coordinate_transformation_mode=way,
        nearest_mode="floor", cubic_coeff_a=-0.75,
    )  # fmt: skip


@op("normalize")
def normalize(graph: Graph, call: Call) -> Any:
    """Write a division by the norm along a dim."""
    a = call.arguments
    if a["p"] != 2:
        raise ExportError(f"onnx.export(): normalize(p={a['p']}) cannot be written")
    length = graph.node("ReduceL2", a["input"], axes=[int(a["dim"])], keepdims=1)
    return graph.node("Div", a["input"], graph.node("Max", length, graph.constant(a["eps"], call.result.dtype)))
