"""Seeing a recorded graph: `graph` draws it, `memory` says what it holds. Seeing training: `curves`, `histograms`, `confusion`, `time_map` are
figures of matplotlib, where that is installed.

The first two read the nodes that a backward pass would walk; nothing is changed, and nothing is kept alive once the result is dropped.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import launch
from .codegen.build.files import replacing
from .graph import markup
from .graph.node import Node, Output, place
from .ops.core.reduction import reduced_shape
from .shapes import Layout, layout_of
from .tensor import Tensor, edge

__all__ = ["Drawing", "Held", "MemoryTable", "activations", "confusion", "curves", "graph", "histograms", "memory", "time_map"]


def graph(loss: Any, path: Any = None, params: Any = None) -> Drawing:
    """Return the graph that a tensor (or several) was computed by, as a tree of text, and as a picture if a ``path`` is given.

    Each node is shown with the shape and dtype of what it computed and the line of the program where it was recorded; below it
    stand its inputs. A node of one input has it on the next line; a node that is met again is named by its number. Nodes that a
    backward pass consumed are still shown, marked so.

    Args:
        path: a file to write, by its ending: ``.svg``, ``.html`` (which folds and zooms), ``.dot``/``.gv`` and ``.txt`` need nothing; ``.png`` and ``.pdf`` are
            drawn by Graphviz, and so is ``.svg`` where the program ``dot`` is installed.
        params: names for leaves: a module, a dict of tensors, or (name, tensor) pairs.

    Errors: TypeError for what is no tensor, RuntimeError for a tensor without a graph, and where ``dot`` is needed and missing.

    Example:
        >>> w = torch.ones(3, requires_grad=True)
        >>> drawing = torch.viz.graph((w * 2).sum(), params={"w": w})
        >>> [line.split("  ")[0] for line in str(drawing).splitlines()]
        ['SumBackward0', 'MulBackward0', '└─ w']
    """
    drawing = Drawing(*_walk(loss, "graph"), _names(params))
    if path is not None:
        drawing.save(path)
    return drawing


def memory(loss: Any, params: Any = None) -> MemoryTable:
    """Return what the graph of a tensor (or several) holds for the backward pass, in bytes, by op and line.

    An array that several ops keep is counted once, for the op that was recorded first; an array that is part of a larger block
    counts with the whole block, which it keeps alive. Leaves that require grad are "parameters": they would live without the
    graph as well. A graph that was consumed holds nothing.

    Args:
        params: a module, a dict of tensors, or (name, tensor) pairs: these are parameters too, also where they are frozen.

    Errors: TypeError for what is no tensor, RuntimeError for a tensor without a graph.

    Example:
        >>> w = torch.ones(1000, requires_grad=True)
        >>> table = torch.memory((w.exp() * w).sum())
        >>> table.total, table.parameters, table.activations
        (8000, 4000, 4000)
    """
    nodes, _ = _walk(loss, "memory")
    own = {_block(t._data)[0] for t in _names(params, tensors=True)}
    for node in nodes:
        own |= {_block(e._data)[0] for e in node.edges if e is not None and e.is_leaf_edge}
    seen: set[int] = set()
    rows: dict[tuple[str, str], Held] = {}
    consumed = None
    for node in sorted(nodes, key=lambda n: n.seq):
        consumed = consumed or node.consumed
        for data in _arrays(node):
            block, size = _block(data)
            if block in seen:
                continue
            seen.add(block)
            key = (node.name(), place(node.code, node.lasti))
            row = rows.setdefault(key, Held(*key))
            row.arrays += 1
            row.bytes += size
            if block in own:
                row.parameters += size
    return MemoryTable(sorted(rows.values(), key=lambda r: -r.bytes), len(nodes), place(*consumed) if consumed else "")


# ------------------------------------------------------------------------------------------------------- the walk


def _walk(loss: Any, function: str) -> tuple[list[Node], list[Any]]:
    """Return (every node, the roots' edges); nodes in the order in which they are met."""
    losses = list(loss) if isinstance(loss, (tuple, list)) else [loss]
    for t in losses:
        if not isinstance(t, Tensor):
            raise TypeError(f"{function}(): argument 'loss' must be Tensor, not {type(t).__name__}")
    roots = [edge(t) for t in losses]
    if not losses or any(e is None or e.is_leaf_edge for e in roots):
        raise RuntimeError(
            f"{function}(): the tensor has no graph: it was computed under no_grad(), from inputs that do not require grad, or it "
            "is a leaf. Compute it from a tensor with requires_grad=True, and ask before detach()"
        )
    nodes: list[Node] = []
    seen: set[int] = set()
    stack = [_node(e) for e in reversed(roots)]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        nodes.append(node)
        stack.extend(_node(e) for e in reversed(node.edges) if e is not None and not e.is_leaf_edge)
    return nodes, roots


def _node(e: Any) -> Any:
    return e.node if e.__class__ is Output else e


def _names(params: Any, tensors: bool = False) -> Any:
    """id of a tensor -> its name; or the tensors."""
    if params is None:
        pairs: Iterable[Any] = ()
    elif hasattr(params, "named_parameters"):
        pairs = params.named_parameters()
    else:
        pairs = params.items() if isinstance(params, Mapping) else params
    named = [(name, t) for name, t in pairs if isinstance(t, Tensor)]
    return [t for _, t in named] if tensors else {id(t): name for name, t in named}


def _layouts(node: Any) -> tuple[Layout | None, ...]:
    """Return the layout of each output, where the node knows it."""
    if hasattr(node, "spec"):
        out = node.spec.out
        if not hasattr(node, "place"):
            return (out,)
        dims, keepdim = node.place  # a sum or mean of a formula, whose spec is the formula's
        return (layout_of(reduced_shape(out.shape, dims, keepdim), None, out.dtype),)
    if hasattr(node, "out_layout"):
        return node.out_layout if isinstance(node.out_layout, tuple) else (node.out_layout,)
    if hasattr(node, "_input_layouts"):  # a user's Function
        return tuple([layout for layout, _ in node._layouts])
    if node.name() == "CopySlices":
        return (node.base_layout,)
    return (node.view_layout,) if hasattr(node, "view_layout") else ()


def _kind(layouts: Iterable[Layout | None]) -> str:
    return ", ".join([f"{layout.dtype.name}{list(layout.shape)}" for layout in layouts if layout is not None])


def _arrays(node: Any) -> Iterator[np.ndarray]:
    """Yield the arrays that a node saved. What hooks packed is no longer the graph's, unless it is a tensor."""
    saved = node.saved
    if hasattr(saved, "bound"):  # of a compiled function
        yield from saved.bound
        return
    for item in getattr(saved, "items", saved) or ():
        if hasattr(item, "packed"):
            item = item.packed
        if isinstance(item, Tensor):
            yield item._data
        elif isinstance(item, np.ndarray):
            yield item
        elif isinstance(item, tuple):  # (operand, array, …) of structured ops, (array, …) of Functions
            yield from [part for part in item[:2] if isinstance(part, np.ndarray)]
    if hasattr(node, "_input_layouts") and node.consumed is None:  # what a user's Function put on ctx
        yield from _inside([value for name, value in vars(node).items() if name[0] != "_"])


def _inside(value: Any, depth: int = 4) -> Iterator[np.ndarray]:
    """Yield the arrays in nested containers."""
    if isinstance(value, Tensor):
        yield value._data
    elif isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (list, tuple, dict)) and depth:
        for v in value.values() if isinstance(value, dict) else value:
            yield from _inside(v, depth - 1)


def _block(array: np.ndarray) -> tuple[int, int]:
    """Return (address, bytes) of the block of memory that an array is part of."""
    array = launch.memory.root(array)
    return launch.memory.address(array), array.nbytes


# -------------------------------------------------------------------------------------------------------- drawing


class Drawing:
    """A graph to be looked at: ``str()`` is a tree of text, ``svg()`` and ``dot()`` give pictures, `save` writes a file."""

    def __init__(self, nodes: list[Node], roots: list[Any], names: dict[int, str]):
        self._facts: list[tuple[str, str, str]] = []  # (what, kind, where) by number
        self._inputs: list[list[int]] = []
        self._leaf: list[bool] = []
        numbers: dict[int, int] = {}
        for node in nodes:
            numbers[id(node)] = self._add(node.name(), _kind(_layouts(node)), place(node.code, node.lasti), node.consumed is not None)
        for node in nodes:
            for e in node.edges:
                if e is None:
                    continue
                target = _node(e)
                if id(target) not in numbers:
                    kind = _kind([target._layout])
                    name = names.get(id(target)) or getattr(target, "name", None)
                    numbers[id(target)] = self._add(name if isinstance(name, str) else "leaf", kind, "", False, leaf=True)
                self._inputs[numbers[id(node)]].append(numbers[id(target)])
        self._roots = list(dict.fromkeys(numbers[id(_node(e))] for e in roots))

    def _add(self, what: str, kind: str, where: str, consumed: bool, leaf: bool = False) -> int:
        self._facts.append((what + (" (consumed)" if consumed else ""), kind, where))
        self._inputs.append([])
        self._leaf.append(leaf)
        return len(self._facts) - 1

    def __len__(self) -> int:
        """Return how many nodes and leaves there are."""
        return len(self._facts)

    # ---- text
    def __str__(self) -> str:
        rows: list[tuple[str, int]] = []  # (indentation, number), or -number-1 for one that is shown elsewhere
        met: set[int] = set()
        again: set[int] = set()
        stack = [("", "", k) for k in reversed(self._roots)]
        while stack:
            before, below, k = stack.pop()
            if k in met and not self._leaf[k]:
                again.add(k)
                rows.append((before, -k - 1))
                continue
            met.add(k)
            rows.append((before, k))
            inputs = self._inputs[k]
            if len(inputs) == 1 and not self._leaf[inputs[0]]:
                stack.append((below, below, inputs[0]))  # straight on, without moving to the right
                continue
            for i, source in reversed(list(enumerate(inputs))):
                last = i == len(inputs) - 1
                stack.append((below + ("└─ " if last else "├─ "), below + ("   " if last else "│  "), source))
        number = {k: i + 1 for i, k in enumerate(k for _, k in rows if k in again)}
        lines = []
        for before, k in rows:
            if k < 0:
                lines.append((f"{before}{self._facts[-k - 1][0]} (see #{number[-k - 1]})", "", ""))
            else:
                what, kind, where = self._facts[k]
                lines.append((before + what + (f" #{number[k]}" if k in again else ""), kind, where))
        # columns are as wide as most lines need; a few long ones stick out
        width = [sorted(len(line[i]) for line in lines)[(len(lines) - 1) * 9 // 10] for i in (0, 1)]
        return "\n".join(f"{a:<{width[0]}}  {b:<{width[1]}}  {c}".rstrip() for a, b, c in lines)

    def __repr__(self) -> str:
        return str(self)

    # ---- pictures
    def dot(self) -> str:
        """Return the graph in Graphviz's language, inputs at the bottom."""

        def quoted(text: str) -> str:
            return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'

        lines = ["digraph {", '  node [shape=box, style="rounded,filled", fillcolor="#f4f4f4", fontname=sans, fontsize=10];']
        for k, (what, kind, where) in enumerate(self._facts):
            text = "\n".join(part for part in (what, kind, where.partition(" (")[0]) if part)
            more = ', fillcolor="#d8ecff"' if self._leaf[k] else ', fillcolor="#dff5dc"' if k in self._roots else ""
            lines.append(f"  n{k} [label={quoted(text)}, tooltip={quoted(where or what)}{more}];")
        for k, inputs in enumerate(self._inputs):
            lines += [f"  n{k} -> n{source};" for source in inputs]
        return "\n".join([*lines, "}", ""])

    def svg(self) -> str:
        """Return an SVG picture, by Graphviz where it is installed."""
        return self._drawn("svg").decode() if shutil.which("dot") else self._layered()

    def _layered(self) -> str:
        """Return an SVG picture of our own drawing."""
        from .compiler.trace.picture import layered

        column = [0] * len(self)
        for k in self._upwards():
            column[k] = 1 + max([column[source] for source in self._inputs[k]], default=-1)
        boxes = []
        for k, (what, kind, where) in enumerate(self._facts):
            text = "\n".join(filter(None, (what, kind, where)))
            boxes.append((text, "input" if self._leaf[k] else "output" if k in self._roots else "kernel", column[k]))
        return layered(boxes, [(source, k) for k, inputs in enumerate(self._inputs) for source in inputs])

    def html(self) -> str:
        """Return a picture that folds and zooms in a browser, as one block of HTML that needs nothing else."""
        return markup.page(markup.zoomable(self._layered()), markup.fold("As text", f"<pre>{markup.escape(str(self))}</pre>"))

    _repr_html_ = html  # notebooks show this

    def _upwards(self) -> Iterator[int]:
        """Return all numbers, inputs before what is computed from them."""
        done: set[int] = set()
        stack = [(k, False) for k in self._roots]
        while stack:
            k, ready = stack.pop()
            if ready:
                yield k
            elif k not in done:
                done.add(k)
                stack.append((k, True))
                stack += [(source, False) for source in self._inputs[k]]

    def _repr_svg_(self) -> str:  # for pages that show no HTML
        return self.svg()

    def _file(self) -> str:
        return markup.whole("The graph", self.html())

    def _drawn(self, kind: str) -> bytes:
        try:
            return subprocess.run(["dot", f"-T{kind}"], input=self.dot().encode(), stdout=subprocess.PIPE, check=True).stdout
        except FileNotFoundError:
            raise RuntimeError(
                f"graph(): a .{kind} picture is drawn by Graphviz, whose program `dot` was not found; install it "
                "(apt install graphviz, brew install graphviz), or give a path ending in .svg, .dot or .txt"
            ) from None

    def save(self, path: Any) -> None:
        """Write a file; its ending says what (see `graph`). ValueError for another ending."""
        kind = os.path.splitext(os.fspath(path))[1].lstrip(".").lower()
        makers: dict[str, Callable[[], str]] = {"svg": self.svg, "html": self._file, "dot": self.dot, "gv": self.dot, "txt": lambda: str(self) + "\n"}
        if kind in makers:
            content = makers[kind]().encode()
        elif kind in ("png", "pdf", "jpg", "jpeg", "gif", "ps", "eps"):
            content = self._drawn(kind)
        else:
            raise ValueError(f"graph(): cannot write {os.fspath(path)!r}: its ending must be .svg, .html, .png, .pdf, .dot, .gv or .txt")
        with replacing(path) as file:
            file.write(content)


# --------------------------------------------------------------------------------------------------------- memory


@dataclass
class Held:
    """The things that the nodes of one op and line keep: how many arrays, their bytes, and how many of these are parameters'."""

    op: str
    line: str
    arrays: int = 0
    bytes: int = 0
    parameters: int = 0

    @property
    def activations(self) -> int:
        """Bytes that live because of the graph."""
        return self.bytes - self.parameters


@dataclass
class MemoryTable:
    """The things that a graph holds: ``rows`` (`Held`, largest first) of ``nodes`` nodes; ``str()`` is a table."""

    rows: list[Held]
    nodes: int
    consumed: str = field(default="", repr=False)

    @property
    def total(self) -> int:
        """Bytes held."""
        return sum(r.bytes for r in self.rows)

    @property
    def parameters(self) -> int:
        """Those of them that are parameters'."""
        return sum(r.parameters for r in self.rows)

    @property
    def activations(self) -> int:
        """Those that live because of the graph."""
        return self.total - self.parameters

    def by(self, what: str) -> dict[str, int]:
        """Bytes by "op" or by "line", largest first."""
        if what not in ("op", "line"):
            raise ValueError(f"by(): expected 'op' or 'line', got {what!r}")
        found: dict[str, int] = {}
        for r in self.rows:
            key = getattr(r, what)
            found[key] = found.get(key, 0) + r.bytes
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    def __str__(self) -> str:
        lines = [("bytes", "parameters", "arrays", "op", "line")]
        lines += [(f"{r.bytes:,}", f"{r.parameters:,}" if r.parameters else "", str(r.arrays), r.op, r.line) for r in self.rows]
        arrays = sum(r.arrays for r in self.rows)
        lines.append((f"{self.total:,}", f"{self.parameters:,}", str(arrays), "total", f"{self.nodes} nodes"))
        width = [max(len(line[i]) for line in lines) for i in range(4)]
        text = [f"{a:>{width[0]}}  {b:>{width[1]}}  {c:>{width[2]}}  {d:<{width[3]}}  {e}".rstrip() for a, b, c, d, e in lines]
        text.insert(1, "-" * max(map(len, text)))
        if self.rows:
            text.insert(-1, text[1])
        if self.consumed:
            text.append(f"The graph was consumed by the backward pass at {self.consumed}: what that pass ran holds nothing any more.")
        return "\n".join(text)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [(f"{r.bytes:,}", f"{r.parameters:,}", r.arrays, r.op, r.line) for r in self.rows]
        total = (f"{self.total:,}", f"{self.parameters:,}", sum(r.arrays for r in self.rows), "total", f"{self.nodes} nodes")
        text = f"<p>The graph was consumed by the backward pass at {markup.escape(self.consumed)}.</p>" if self.consumed else ""
        return markup.page(markup.table(("bytes", "parameters", "arrays", "op", "line"), [*rows, total], words=(3, 4)), text)


# ---------------------------------------------------------------------------------------------- figures of training


def _figure(function: str, width: float, height: float) -> Any:
    """Return an empty figure; it belongs to no window, so that it works where there is no screen."""
    try:
        figure = importlib.import_module("matplotlib.figure")
    except ImportError:
        raise ImportError(f"viz.{function}() needs the package matplotlib: pip install matplotlib") from None
    return figure.Figure(figsize=(width, height), layout="constrained")


def _finished(figure: Any, path: Any) -> Any:
    if path is not None:
        figure.savefig(path)
    return figure


def _numbers(values: Any) -> np.ndarray:
    return np.asarray(values.detach().float().numpy() if isinstance(values, Tensor) else [float(v) for v in values])


def curves(history: Mapping[str, Any], path: Any = None, smooth: float = 0.0, log: bool = False) -> Any:
    """Return a figure of numbers over steps, such as losses; written to ``path`` if given.

    Args:
        history: name -> numbers (or 0-d tensors). smooth: from 0 to 1, how much of the running mean each point keeps; the numbers themselves stand
            pale behind. log: whether the axis of the numbers is logarithmic.

    Errors: ImportError without matplotlib, ValueError for a ``smooth`` outside of [0, 1).

    Example:
        >>> figure = torch.viz.curves({"train": [3.0, 2.0, 1.5], "held out": [3.1, 2.4, 2.2]})
        >>> [line.get_label() for line in figure.axes[0].lines]
        ['train', 'held out']
    """
    if not 0 <= smooth < 1:
        raise ValueError(f"curves(): smooth (={smooth}) must be in [0, 1)")
    figure = _figure("curves", 7, 4)
    axes = figure.add_subplot()
    for k, (name, values) in enumerate(history.items()):
        numbers = _numbers(values)
        if smooth:
            axes.plot(numbers, color=f"C{k % 10}", alpha=0.25)
            kept = numbers[:1].tolist()
            for v in numbers[1:]:
                kept.append(smooth * kept[-1] + (1 - smooth) * v)
            numbers = np.asarray(kept)
        axes.plot(numbers, color=f"C{k % 10}", label=name)
    axes.set_xlabel("step")
    axes.set_yscale("log" if log else "linear")
    axes.legend()
    return _finished(figure, path)


def activations(model: Any, *inputs: Any) -> dict[str, Tensor]:
    """Return what the innermost modules of a model compute for inputs, by their names, for `histograms`.

    Errors: those of the model.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
        >>> {name: tuple(t.shape) for name, t in torch.viz.activations(model, torch.ones(4, 2)).items()}
        {'0': (4, 3), '1': (4, 3)}
    """
    found: dict[str, Tensor] = {}

    def noting(name: str) -> Callable[..., None]:
        def note(module: Any, given: Any, result: Any) -> None:
            if isinstance(result, Tensor):
                found[name] = result.detach().clone()

        return note

    handles = [m.register_forward_hook(noting(n)) for n, m in model.named_modules() if not m._modules]
    try:
        model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return found


def histograms(tensors: Any, path: Any = None, bins: int = 40) -> Any:
    """Return a figure of how values are spread, a row for each tensor; of a module its parameters, and beside them their gradients.

    Args:
        tensors: a module, or name -> Tensor (`activations` gives those of the layers). bins: bars of each histogram.

    Errors: ImportError without matplotlib, ValueError where there is no tensor.

    Example:
        >>> model = torch.nn.Linear(2, 3)
        >>> model(torch.ones(4, 2)).sum().backward()
        >>> [axes.get_title() for axes in torch.viz.histograms(model).axes]
        ['weight', 'gradient of weight', 'bias', 'gradient of bias']
    """
    module = hasattr(tensors, "named_parameters")
    named: dict[str, Any] = dict(tensors.named_parameters() if module else tensors)
    if not named:
        raise ValueError("histograms(): there is no tensor to show")
    columns = 2 if module else 1
    figure = _figure("histograms", 4 * columns, 1.5 * len(named))
    for row, (name, t) in enumerate(named.items()):
        for column, shown in enumerate((t, t.grad) if module else (t,)):
            axes = figure.add_subplot(len(named), columns, row * columns + column + 1)
            axes.set_title(f"gradient of {name}" if column else name, fontsize=9)
            if shown is not None:
                values = _numbers(shown).reshape(-1)
                axes.hist(values[np.isfinite(values)], bins=bins)
                axes.locator_params(axis="x", nbins=5)  # more labels run into one another
                axes.ticklabel_format(axis="x", scilimits=(-3, 4))  # small gradients: 2.5 and below the axis ×10⁻⁴
    return _finished(figure, path)


def confusion(predicted: Any, target: Any, names: Iterable[str] | None = None, path: Any = None) -> Any:
    """Return a figure of how often each class was taken for each: a row for each true class, a column for each predicted one.

    Args:
        predicted: classes (N), or scores (N, classes), the largest of which counts. target: the true classes (N). names: of the classes.

    Errors: ImportError without matplotlib, ValueError where the lengths differ.

    Example:
        >>> figure = torch.viz.confusion(torch.tensor([0, 1, 1, 1]), torch.tensor([0, 1, 0, 1]), names=["cat", "dog"])
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['1', '1', '', '2']
    """
    found = np.asarray(predicted.argmax(-1).numpy() if isinstance(predicted, Tensor) and predicted.ndim == 2 else predicted, dtype=np.int64)
    true = np.asarray(target, dtype=np.int64)
    if found.shape != true.shape:
        raise ValueError(f"confusion(): there are {found.size} predictions for {true.size} targets")
    labels = list(names or ())
    n = max([len(labels), *(int(a.max()) + 1 for a in (found, true) if a.size)])
    counts = np.zeros((n, n), np.int64)
    np.add.at(counts, (true, found), 1)
    figure = _figure("confusion", 1.5 + 0.5 * n, 1.2 + 0.5 * n)
    axes = figure.add_subplot()
    axes.imshow(counts, cmap="Blues")
    for i in range(n):
        for j in range(n):
            dark = counts[i, j] > counts.max() / 2
            axes.text(j, i, str(counts[i, j]) if counts[i, j] else "", ha="center", va="center", color="white" if dark else "black")
    axes.set(xlabel="predicted", ylabel="true")
    axes.set_xticks(range(n), labels or range(n))
    axes.set_yticks(range(n), labels or range(n))
    return _finished(figure, path)


def time_map(profile: Any, path: Any = None, most: int = 20) -> Any:
    """Return a figure of where the time of a compiled program goes: a bar for each kernel, above them all steps one behind the other.

    Args:
        profile: what `profile` of a compiled function gave. most: kernels that are shown.

    Errors: ImportError without matplotlib, TypeError for profiles of another kind.

    Example:
        step = torch.compile(training_step)
        torch.viz.time_map(step.profile(x), "times.svg")
    """
    if not hasattr(profile, "by_name"):
        raise TypeError(f"time_map(): argument 'profile' must be what step.profile(...) of a compiled function gives, not {type(profile).__name__}")
    rows = profile.by_name()[:most]
    colours = {name: f"C{k % 10}" for k, (name, _, _) in enumerate(rows)}
    figure = _figure("time_map", 8, 1.5 + 0.25 * len(rows))
    above, below = figure.subplots(2, 1, height_ratios=[1, max(len(rows), 2)])
    begin = 0.0
    for i, t in sorted(profile.times.items()):
        above.barh(0, t, left=begin, color=colours.get(profile._program.steps[i].name, "#bbb"), edgecolor="white", linewidth=0.3)
        begin += t
    above.set_yticks([])
    above.set_title(f"{profile.total:.1f} µs in {len(profile.times)} steps", fontsize=9)
    below.barh([f"{count} × {name}" for name, count, _ in rows], [t for _, _, t in rows], color=list(colours.values()))
    below.set(xlabel="µs", ylim=below.get_ylim()[::-1])
    return _finished(figure, path)
