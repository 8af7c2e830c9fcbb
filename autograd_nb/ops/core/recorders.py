"""What recording a structured op and running its rules comes to, written out for one kind of call.

Which operands are tensors, which of them need gradients and what the rules read is the same in call after call. So the loops over
operands that `structured.Structured` would go through each time are unrolled into the text of three functions:

- `recorder`, for the classes of a call's arguments, finds which operands need gradients, and makes the node where there is but
  one to ask, else calls
- `writer`, for one `Recording`, which makes it;
- `runner`, for one `Recording`, makes the arguments of the rules from a node, in a pass that is not recorded itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...graph.node import NODES, edge_lines, several_edges_lines
from ...graph.ownership import OURS
from ...tensor import Tensor, make
from .call_path import generated, node_lines, saving_lines

#: from so many outputs on no text is written that names each
MANY = 64


def _unpacked(op: Any) -> str:
    return ", ".join(op.params) + ", = _args"


def recorder(op: Any, classes: tuple[type, ...], several: int) -> Callable[..., Any]:
    """Return ``record(args, out, depth)`` for arguments of these classes; what has tuples of tensors goes to ``op.record_any``.

    several: how many outputs there are, if not one (`MANY`: or more). The user's frame is ``depth`` above, or further up.
    """
    lines = [_unpacked(op)]
    for p, kind in zip(op.params, classes, strict=True):
        if issubclass(kind, (tuple, list)):
            lines += [f"if {p} and isinstance({p}[0], _Tensor):", "    return _op.record_any(_args, out)"]
    tensors = [i for i, kind in enumerate(classes) if issubclass(kind, Tensor)]
    operands = [op.params[i] for i in op.operands if i in tensors]
    for p in operands:
        lines += [f"if {p}._view is not None:", f"    _refresh({p})"]
    if several == MANY:
        return generated("record", "_args, out, _depth", [*lines, "_op.record_any(_args, out)"], _op=op)
    present = sum(1 << i for i in tensors)
    if len(operands) == 1:
        written, names = _writing(op, op.recording(1, present), "_depth", several)
        lines += [f"if {operands[0]}._rg:", *(f"    {line}" for line in written)]
        return generated("record", "_args, out, _depth", lines, _op=op, **names)
    lines.append("_mask = " + (" | ".join(f"{p}._rg << {edge}" for edge, p in enumerate(operands)) or "0"))
    lines += ["if _mask:", "    (_writers.get(_mask) or _write(_mask))(_args, out, _depth)"]
    writers: dict[int, Callable[..., Any]] = {}

    def write(mask: int) -> Callable[..., Any]:
        writers[mask] = found = writer(op, op.recording(mask, present), several)
        return found

    return generated(
        "record", "_args, out, _depth", lines, _op=op, _writers=writers, _write=write
    )


def writer(op: Any, recording: Any, several: int) -> Callable[..., Any]:
    """Return ``write(args, out, depth)``: the node of an op whose operands are tensors."""
    lines, names = _writing(op, recording, "_depth + 1", several)
    return generated("write", "_args, out, _depth", [_unpacked(op), *lines], **names)


def _writing(op: Any, recording: Any, depth: str, several: int) -> tuple[list[str], dict[str, Any]]:
    """Return the text of a writer, and the names that it uses; ``depth``: how far above the user's frame is."""
    edges, lines = [], [f"_edge_kind = {NODES}"]
    outs = [f"_o{k}" for k in range(several)]
    for *_, p in recording.rules:
        if p in recording.needed:
            edges.append(f"_e{len(edges)}")
            lines += edge_lines(p, edges[-1])
        else:
            edges.append("None")
    saved, counters, values = [], [], []
    for p, i, first in recording.saved:
        if recording.present >> i & 1:
            saved.append(f"({p!r}, {p}._data, {p}._layout, {first})")
            counters.append(f"{p}._version_")
        else:
            values.append(f"{p!r}: {p}")
    for name, i in recording.shapes:
        values.append(f"{name!r}: {op.params[i]}._layout.shape")
    for name, o in [("out", o) for o in outs or ["out"] if recording.out] + [(f"out{k}", outs[k]) for k in recording.outs if several]:
        saved.append(f"({name!r}, {o}._data, {o}._layout, None)")
        counters.append(f"{o}._version_")
    fill = [
        *saving_lines(saved, counters, alone=False),
        "_node.recording = _recording",
        f"_node.values = {{{', '.join(values)}}}",
        f"_node.out_layout = ({', '.join(f'{o}._layout' for o in outs)},)" if several else "_node.out_layout = out._layout",
    ]
    node = node_lines("_class()", [*lines, *several_edges_lines(edges)], fill, depth, "" if several else "out")
    for k, o in enumerate(outs):
        node += [f"if {o}._layout.dtype.category >= 2:", f"    {o}._edge = _Output(_node, {k})", f"    {o}._rg = True"]
    first = [f"{', '.join(outs)}, = out"] if several else []
    return [*first, *node], {"_class": op.several_node if several else op.node, "_recording": recording}


def runner(op: Any, recording: Any) -> Callable[..., Any]:
    """Return ``run(node, g)``: gradients for the node's edges, outside any graph, for operands that are tensors."""
    lines, names = ["_values = _node.values"], {"g": "g"}
    tensors = [p for p, i, _ in recording.saved if recording.present >> i & 1] + ["out"] * recording.out
    if tensors:
        lines += ["_saved = _node.saved", "_versions = _node.versions"]
    for k, p in enumerate(tensors):
        lines += [f"_, _data, _lay, _ = _saved[{k}]", f"_v{k} = _versions[{k}]"]
        if op.holomorphic:
            lines += ["if _lay.dtype.category == 3:", "    return _op.gradients_any(_node, g)"]
        lines.append(f"{p} = _make(_data, _lay, _v{k})")
        names[p] = p
    for p, i, _ in recording.saved:
        names.setdefault(op.params[i], f"_values[{p!r}]")
    names.update({name: f"_values[{name!r}]" for name, _ in recording.shapes})
    names.update({name: "None" for name, _ in recording.edges})
    rules: dict[str, Any] = {}
    if recording.every is not None:
        rules["_rule"], asked = recording.every
        names["needs"] = "_recording.needed"
        lines.append(f"_found = _rule({', '.join(names[n] for n in asked)})")
        results = [f"_found.get({p!r})" for *_, p in recording.rules]
    else:
        results = []
        for k, (rule, asked, _, _) in enumerate(recording.rules):
            rules[f"_rule{k}"] = rule
            results.append("None" if rule is None else f"_rule{k}({', '.join(names[n] for n in asked)})")
    lines += _settling(results, [f"_v{k}" for k in range(len(tensors))])
    return generated("run", "_node, g", lines, _op=op, _make=make, _recording=recording, _OURS=OURS, **rules)


def _settling(results: list[str], versions: list[str]) -> list[str]:
    """Return the text of `ownership.settle` for the results of a runner, and of the end."""
    lines, earlier = [], []
    for k, result in enumerate(results):
        if result == "None":
            continue
        r, w = f"_r{k}", f"_w{k}"
        known = " and ".join(f"{w} is not {v}" for v in ["g._version_", *versions])
        mark = [f"{w} = {r}._version_", f"if {known}:", f"    {w}[1] = _OURS"]
        if earlier:
            same = " or ".join(f"{w} is {e}" for e in earlier)
            mark = [mark[0], f"if {same}:", f"    if {w}[1] == _OURS:", f"        {w}[1] = 0", "el" + mark[1], mark[2]]
        lines += [f"{r} = {result}"]
        if k < len(results) - 1:  # for those after it to compare with
            lines += [f"{w} = None"]
        lines += [f"if {r}.__class__ is _Tensor:", *(f"    {line}" for line in mark)]
        earlier.append(w)
    return [*lines, f"return ({''.join('None, ' if r == 'None' else f'_r{k}, ' for k, r in enumerate(results))})"]
