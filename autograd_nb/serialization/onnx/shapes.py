"""Functions that move elements as ONNX nodes: shapes, dims, parts, joins."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from .graph import ExportError, Graph, op
from .recording import Call

_END = 2**62  # the end of whatever size a dim has


def _operand(call: Call) -> Tensor:
    found = next(iter(call.arguments.values()))
    return found  # type: ignore[no-any-return]


@op("view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as", "reshape_as", "atleast_1d", "atleast_2d", "ravel")
def reshape(graph: Graph, call: Call) -> Any:
    """Write another shape for the same elements."""
    x = _operand(call)
    if call.arguments.get("dtype") is not None:
        raise ExportError("onnx.export(): view(dtype) cannot be written")
    return graph.reshape(graph.of(x), x, call.result)


@op("permute", "transpose", "t", "swapaxes", "swapdims", "movedim", "moveaxis", "adjoint", "mT", "mH", "T", "H")
def permute(graph: Graph, call: Call) -> Any:
    """Write another order of dims, found from what the function makes of the dims' sizes."""
    x, out, a = _operand(call), call.result, call.arguments
    n = x.ndim
    match call.name:
        case "permute":
            dims = a.get("axes") or a.get("dims")
            order = [d % n for d in (dims[0] if isinstance(dims[0], (list, tuple)) else dims)]
        case "transpose" | "swapaxes" | "swapdims":
            d0, d1 = (v % n for v in list(a.values())[1:3])
            order = list(range(n))
            order[d0], order[d1] = d1, d0
        case "T":
            order = list(reversed(range(n)))
        case "t" | "adjoint" | "mT" | "mH" | "H":
            order = [*range(n - 2), *reversed(range(n)[-2:])]
        case _:
            source, target = list(a.values())[1:3]
            sources, targets = ([v] if isinstance(v, int) else list(v) for v in (source, target))
            rest = [d for d in range(n) if d not in [s % n for s in sources]]
            order = rest
            for s, d in sorted(zip(sources, targets, strict=True), key=lambda pair: pair[1] % n):
                order.insert(d % n, s % n)
    assert [x.shape[d] for d in order] == list(out.shape)
    return graph.node("Transpose", x, perm=order)


@op("expand", "expand_as", "broadcast_to")
def expand(graph: Graph, call: Call) -> Any:
    """Write a broadcast; a size that is dynamic stays as it is."""
    x, out = _operand(call), call.result
    x2, out2 = graph.twin(x), graph.twin(out)
    new = len(out.shape) - x.ndim
    sizes = []
    for i, (n, m) in enumerate(zip(out.shape, out2.shape, strict=True)):
        if n == m:
            sizes.append(n)
        elif i >= new and x.shape[i - new] == n and x2.shape[i - new] == m:
            sizes.append(1)
        else:
            raise ExportError(f"onnx.export(): expand() to {list(out.shape)}, where a new size is dynamic; add or multiply by a tensor of that shape")
    return graph.node("Expand", x, graph.ints(sizes))


@op("cat", "concat", "concatenate")
def cat(graph: Graph, call: Call) -> Any:
    """Write a concatenation as nodes of the graph."""
    kind = call.result.dtype
    parts = [t for t in call.arguments["tensors"] if t.numel() or t.ndim == call.result.ndim]
    return graph.node("Concat", *[graph.of(t, kind) for t in parts], axis=int(call.arguments["dim"] or 0))


@op("stack")
def stack(graph: Graph, call: Call) -> Any:
    """Write tensors beside one another along a new dim."""
    d = int(call.arguments["dim"] or 0) % call.result.ndim
    parts = [graph.node("Unsqueeze", graph.of(t, call.result.dtype), graph.ints([d])) for t in call.arguments["tensors"]]
    return graph.node("Concat", *parts, axis=d)


@op("chunk", "split", "tensor_split", "unbind", "split_with_sizes")
def split(graph: Graph, call: Call) -> Any:
    """Write the parts of a tensor along a dim."""
    x = _operand(call)
    d = int(call.arguments.get("dim") or 0) % x.ndim
    name, begin, found = graph.of(x), 0, []
    if x.shape[d] != graph.twin(x).shape[d]:
        raise ExportError(f"onnx.export(): {call.name}() along dim {d}, whose size is dynamic")
    for t in call.results():
        size = 1 if call.name == "unbind" else t.shape[d]
        part = graph.node("Slice", name, graph.ints([begin]), graph.ints([begin + size]), graph.ints([d]))
        found.append(graph.node("Squeeze", part, graph.ints([d])) if call.name == "unbind" else part)
        begin += size
    return found


@op("select", "narrow")
def part(graph: Graph, call: Call) -> Any:
    """Write a part along one dim."""
    x, a = _operand(call), list(call.arguments.values())
    d, start = int(a[1]) % x.ndim, int(a[2])
    if call.name == "select":
        return graph.node("Gather", x, graph.constant(start), axis=d)
    length = int(a[3])
    end = _END if start + length == x.shape[d] else start + length
    return graph.node("Slice", x, graph.ints([start]), graph.ints([end]), graph.ints([d]))


@op("getitem")
def getitem(graph: Graph, call: Call) -> Any:
    """Write what an index picks: numbers, slices, None, …, and one tensor of integers."""
    x, index = call.arguments["self"], call.arguments["index"]
    items = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(i, Tensor) and i.dtype.name == "bool" for i in items):
        raise ExportError("onnx.export(): a mask as an index, whose result has a size that depends on values; use where()")
    used = sum(i is not None and i is not Ellipsis for i in items)
    at = next((k for k, i in enumerate(items) if i is Ellipsis), len(items))
    items[at : at + 1] = [slice(None)] * (x.ndim - used)
    name, d = graph.of(x), 0
    new: list[Any] = []
    for i in items:
        dim = x.shape[d] if i is not None and d < x.ndim else 0
        if i is None:
            new.append(("new", d))
            continue
        if isinstance(i, slice):
            name = _sliced(graph, name, i, dim, d)
        else:
            new.append(("gather", d, i))
        d += 1
    return _picked(graph, name, new)


def _sliced(graph: Graph, name: str, i: slice, size: int, d: int) -> str:
    begin, end, step = i.indices(size)
    if (begin, end, step) == (0, size, 1):
        return name
    last = _END if i.stop is None else i.stop if i.stop < 0 else end
    first = i.start if i.start is not None and i.start < 0 else begin
    return str(graph.node("Slice", name, graph.ints([first]), graph.ints([last]), graph.ints([d]), graph.ints([step])))


def _picked(graph: Graph, name: str, changes: list[Any]) -> str:
    """Return a value after picks and new dims, from the last dim to the first, so that places stay true."""
    if sum(c[0] == "gather" and isinstance(c[2], Tensor) and c[2].ndim > 0 for c in changes) > 1:
        raise ExportError("onnx.export(): an index of several tensors cannot be written; use gather() or index_select()")
    for change in reversed(changes):
        if change[0] == "new":
            name = graph.node("Unsqueeze", name, graph.ints([change[1]]))
        else:
            name = graph.node("Gather", name, graph.of(change[2]) if isinstance(change[2], Tensor) else graph.constant(int(change[2])), axis=change[1])
    return name


@op("pad")
def pad(graph: Graph, call: Call) -> Any:
    """Write a border as nodes of the graph."""
    x, a = call.arguments["input"], call.arguments
    sizes = list(a["pad"])
    before, after = [0] * x.ndim, [0] * x.ndim
    for k in range(len(sizes) // 2):
        before[x.ndim - 1 - k], after[x.ndim - 1 - k] = sizes[2 * k], sizes[2 * k + 1]
    mode = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}[a.get("mode") or "constant"]
    if mode == "wrap":
        raise ExportError("onnx.export(): pad(mode='circular') needs a later version of ONNX's ops; use cat() of parts")
    more = [graph.of(a.get("value") or 0, x.dtype)] if mode == "constant" else []
    return graph.node("Pad", x, graph.ints([*before, *after]), *more, mode=mode)


@op("flip", "roll")
def turned(graph: Graph, call: Call) -> Any:
    """Write the elements in another order along dims."""
    x, a = _operand(call), call.arguments
    name = graph.of(x)
    if call.name == "flip":
        dims = a.get("dims") or a.get("axes")
        for d in dims[0] if isinstance(dims[0], (list, tuple)) else dims:
            name = graph.node("Slice", name, graph.ints([-1]), graph.ints([-_END]), graph.ints([d % x.ndim]), graph.ints([-1]))
        return name
    shifts, dims = a["shifts"], a["dims"]
    if dims is None:
        raise ExportError("onnx.export(): roll() without dims cannot be written; give them")
    for s, d in zip([shifts] if isinstance(shifts, int) else shifts, [dims] if isinstance(dims, int) else dims, strict=True):
        last = graph.node("Slice", name, graph.ints([-s]), graph.ints([_END]), graph.ints([d]))
        first = graph.node("Slice", name, graph.ints([0]), graph.ints([-s]), graph.ints([d]))
        name = graph.node("Concat", last, first, axis=d)
    return name


@op("tril", "triu")
def triangle(graph: Graph, call: Call) -> Any:
    """Write a triangle of matrices."""
    return graph.node("Trilu", _operand(call), graph.constant(int(call.arguments.get("diagonal") or 0)), upper=int(call.name == "triu"))


@op("gather", "index_select", "embedding", "take_along_dim")
def gather(graph: Graph, call: Call) -> Any:
    """Write elements, or rows, by indices."""
    a = call.arguments
    if call.name == "embedding":
        return graph.node("Gather", a["weight"], a["input"], axis=0)
    x = _operand(call)
    if call.name == "index_select":
        return graph.node("Gather", x, a["index"], axis=int(a["dim"]))
    return graph.node("GatherElements", x, a.get("index", a.get("indices")), axis=int(a["dim"]))


@op("repeat", "tile")
def repeat(graph: Graph, call: Call) -> Any:
    """Write copies along dims as nodes of the graph."""
    x, out = _operand(call), call.result
    counts = list(call.arguments.get("counts") or call.arguments.get("repeats") or call.arguments.get("dims") or ())
    counts = list(counts[0]) if counts and isinstance(counts[0], (list, tuple)) else counts
    counts = [1] * (out.ndim - len(counts)) + counts
    name = graph.node("Unsqueeze", x, graph.ints(range(out.ndim - x.ndim))) if out.ndim > x.ndim else graph.of(x)
    return graph.node("Tile", name, graph.ints(counts))
