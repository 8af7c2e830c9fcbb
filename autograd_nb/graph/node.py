"""Nodes of the graph: what was computed, from what, which arrays its derivative needs, and where in the user's file.

An edge is what a gradient flows to: a `Node` with one output, an `Output` of a node with several, a leaf Tensor that requires
grad, or None. Edges to leaves are the tensors themselves, so that neither refers back to the
other; the `AccumulateGrad` that PyTorch shows in their place is made when someone looks.
"""

from __future__ import annotations

import itertools
import linecache
import os
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ConsumedGraphError, ModifiedError
from .collector import spare
from .hooks import NodeHooks, check_callable
from .modes import state
from .ownership import handed

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_internal: dict[str, bool] = {}

#: order of recording; an op's node is always younger than the nodes of its inputs, so sorting by it is a topological order
sequence: Callable[..., int] = itertools.count(1).__next__

#: every so many nodes (a power of two, less one, as a mask) `spare` looks at whether one graph has grown very large
MANY = (1 << 16) - 1


#: The kinds of edges that a node has, by the one that asks most of the engine, whose fast path takes all but the first: some lead to an
#: `Output`; some to leaves; all to nodes of one output, or nowhere; the only one leads to such a node. (Numbers: each node has one.)
OUTPUTS, LEAVES, NODES, ONE_NODE = range(4)


class Node:
    """A recorded op; ``tensor.grad_fn``. Subclasses carry PyTorch's names (``MulBackward0``) and know their rule.

    ``edges``: where the gradient of each input flows. ``saved``: the arrays that the rule needs, with ``versions`` the
    version counters they were saved under and ``stamp`` the sum of the counts at that time (counts only grow). ``edge_kind``: one of
    the kinds of edges above; where it is `ONE_NODE` the edge is kept as ``edge``. Few objects are kept per node, and one counter
    stands in ``versions`` without a tuple: what the garbage collector has to visit is what a graph of a million nodes costs.

    >>> x = torch.ones(1, requires_grad=True)
    >>> (x * 2).grad_fn.name()
    'MulBackward0'
    """

    __slots__ = (
        "__dict__", "__weakref__", "code", "consumed", "edge_kind", "edges", "hooks", "lasti", "saved", "seq", "stamp", "versions",
    )  # fmt: skip

    edges: tuple[Any, ...]
    saved: Any
    versions: Any
    stamp: int
    consumed: tuple[Any, ...] | None
    hooks: Any
    edge_kind: int
    seq: int
    code: Any
    lasti: int

    is_leaf_edge = False
    outputs = 1
    several = False  # whether gradients come as a list, one for each output
    of_none = False  # whether it is run although no gradient has come: other nodes have none to pass on then
    takes_detached = False  # whether it may use what it has saved of a result that was detached in place
    for_many = False  # whether it stands for several recorded ops, whose gradients flow from one to the other within
    alike: Any = None  #: what all nodes recorded in the same way have in common, where their passes may be replayed (see `graph.recurring`)
    #: how PyTorch shows the edges: for each the edge's number, and whether a TBackward0 stands before it; None: as they are
    shown_edges: tuple[tuple[int, bool], ...] | None = None

    @property
    def shown(self) -> int | None:
        """Return how many of the outputs have a gradient that the node's hooks see; None for all."""
        return None

    def counters(self) -> tuple[Any, ...]:
        """Return ``versions`` as a tuple."""
        return (self.versions,) if self.versions.__class__ is list else self.versions

    def saved_arrays(self) -> list[tuple[Any, ...]]:
        """Return (shape, tensor type's name, the edge of what was saved) for each counter, for messages."""
        return []

    def tell(self, graph: Any, n: str) -> None:
        """Tell a graph that is noted all that the rule of this node, called ``n``, depends on, and the arrays that it reads."""
        raise NotImplementedError

    def again(self, text: Any, n: str) -> list[str]:
        """Return the lines that give a node called ``n``, of a call like the one that recorded this, what the rule reads (see `ops.core.repeated`)."""
        raise NotImplementedError

    def name(self) -> str:
        """Return the name of this kind of node, e.g. "MulBackward0"."""
        return type(self).__name__

    # ---- what the engine calls
    def run(self, g: Any) -> tuple[Any, ...]:
        """Return the gradients for ``edges`` from the gradient of the output (a list of them for several outputs)."""
        raise NotImplementedError

    def run_graph(self, g: Any) -> tuple[Any, ...]:
        """Return the same, recorded, so that it can be differentiated again."""
        return self.run(g)

    # ---- what users look at
    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """Return ((node, output index), …) of the inputs; (None, 0) where an input needs no gradient."""
        if self.shown_edges is None:
            return tuple(_public_edge(e) for e in self.edges)
        return tuple(self._turned(i) if turned else _public_edge(self.edges[i]) for i, turned in self.shown_edges)

    def _turned(self, i: int) -> tuple[Any, int]:
        """Return what stands for the transpose of an operand: there is no such node, as kernels read matrices both ways."""
        if self.edges[i] is None:
            return (None, 0)
        return (self.__dict__.setdefault("_shown", Turned((_public_edge(self.edges[i]),))), 0)

    @property
    def metadata(self) -> dict[Any, Any]:
        """Return a dict for users' notes."""
        return self.__dict__.setdefault("_metadata", {})

    def _sequence_nr(self) -> int:
        return self.seq

    def _hooks(self) -> Any:
        if self.hooks is None:
            self.hooks = NodeHooks()
        return self.hooks

    def register_hook(self, hook: Any) -> Any:
        """Call ``hook(grad_inputs, grad_outputs)`` after the node ran; it may return replacement grad_inputs."""
        return self._hooks().add("post", hook if self.shown_edges is None else _reordered(hook, self.shown_edges))

    def register_prehook(self, hook: Any) -> Any:
        """Call ``hook(grad_outputs)`` before the node runs; it may return replacement grad_outputs."""
        return self._hooks().add("pre", hook)

    def __call__(self, *gradients: Any) -> Any:
        """Return the gradients of the inputs for those of the outputs: one, or a tuple. Hooks are not called, and nothing is consumed."""
        if self.consumed is not None:
            raise consumed_error(self)
        counters = self.counters()
        if sum(v[0] for v in counters) != self.stamp:
            raise modified_error(self)
        if not self.several and len(gradients) != 1:
            raise TypeError(f"expected 1 arguments, got {len(gradients)} arguments instead ({self.name()} takes the gradient of its output)")
        g = list(gradients) if self.several else gradients[0]
        result = tuple([handed(r, state.grad) for r in (self.run_graph(g) if state.grad else self.run(g))])
        result = result if self.shown_edges is None else _as_shown(result, self.shown_edges)
        return result[0] if len(result) == 1 else result

    def __repr__(self) -> str:
        return f"<{self.name()} object at {hex(id(self))}>"

    def __lt__(self, other: Node) -> bool:
        return self.seq < other.seq


class Turned:
    """Stands, as in PyTorch's graphs, between a product and an operand that it reads transposed, such as the weight of a linear layer."""

    def __init__(self, next_functions: tuple[tuple[Any, int], ...]):
        self.next_functions = next_functions

    def name(self) -> str:
        return "TBackward0"

    @property
    def metadata(self) -> dict[Any, Any]:
        return self.__dict__.setdefault("_metadata", {})

    def __repr__(self) -> str:
        return f"<TBackward0 object at {hex(id(self))}>"


Turned.__name__ = Turned.__qualname__ = "TBackward0"  # which is what drawings of graphs read


def _as_shown(grads: Sequence[Any], shown: tuple[tuple[int, bool], ...]) -> tuple[Any, ...]:
    return tuple([grads[i].t() if turned and grads[i] is not None else grads[i] for i, turned in shown])


def _reordered(hook: Any, shown: tuple[tuple[int, bool], ...]) -> Callable[..., Any]:
    """Return a hook of a node that sees the gradients as PyTorch shows the edges."""
    check_callable(hook)

    def reordered(grads: tuple[Any, ...], outputs: Any) -> Any:
        found = hook(_as_shown(grads, shown), outputs)
        if not isinstance(found, tuple) or len(found) != len(shown):
            return found  # nothing, or refused
        new = list(grads)
        for (i, turned), g in zip(shown, found, strict=True):
            new[i] = g.t() if turned and g is not None else g
        return tuple(new)

    reordered.__name__ = getattr(hook, "__name__", type(hook).__name__)  # which errors tell
    return reordered


def finishing(node: str, depth: str, first: bool = True) -> list[str]:
    """Return the text that gives the node of this name its age, the user's place, and no hooks; ``depth``: how far above the user's frame is.

    All that records a node ends so: `finish`, and what `ops.core.call_path` writes out for the calls that are made most. ``first``: of
    several nodes, which are at one place.
    """
    place = [f"_frame = _getframe({depth})", "if _internal.get(_frame.f_code.co_filename, True):", "    _frame = _user_frame(_frame)"]
    return [
        f"{node}.consumed = {node}.hooks = None",
        f"{node}.seq = _seq = _sequence()",
        "if not _seq & _MANY:",
        f"    _spare({node})",
        *(place if first else []),
        f"{node}.code = _frame.f_code",
        f"{node}.lasti = _frame.f_lasti",
    ]


def edge_lines(operand: str, into: str) -> list[str]:
    """Return the lines that set ``into``: where the gradient of an operand that requires grad flows; ``_edge_kind``: see `graph.node.Node`."""
    return [
        f"{into} = {operand}._edge",
        f"if {into} is None:",
        f"    {into} = {operand}",
        f"    if _edge_kind != {OUTPUTS}:",
        f"        _edge_kind = {LEAVES}",
        f"elif {into}.__class__ is _Output:",
        f"    _edge_kind = {OUTPUTS}",
    ]


def tensor_lines(layout: str, version: str = "[0, 0]", t: str = "t", data: str = "data") -> list[str]:
    """Return the lines that make ``t``, a tensor outside the graph over ``data``: `tensor.make`, written out."""
    return [
        f"{t} = _new()",
        f"{t}._data = {data}",
        f"{t}._layout = {layout}",
        f"{t}._version_ = {version}",
        f"{t}._rg = False",
        f"{t}._edge = {t}._grad = {t}._view = {t}._leaf_hook_set = None",
    ]


def single_edge_lines(operand: str) -> list[str]:
    """Return the lines that set ``edge``, the only one of a node."""
    return [
        f"_e = {operand}._edge",
        "if _e is None:",
        f"    _node.edge = {operand}",
        f"    _node.edge_kind = {LEAVES}",
        "else:",
        "    _node.edge = _e",
        f"    _node.edge_kind = {OUTPUTS} if _e.__class__ is _Output else {ONE_NODE}",
    ]


def several_edges_lines(edges: Sequence[str]) -> list[str]:
    """Return the lines that collect the edges of a node with more than one operand."""
    return [f"_node.edges = ({''.join(e + ', ' for e in edges)})", "_node.edge_kind = _edge_kind"]


def written(name: str, parameters: str, lines: list[str], file: str = __file__, **names: Any) -> Any:
    """Return the function of this text, whose frames count as the library's and not as the user's."""
    text = "\n    ".join([f"def {name}({parameters}):", *lines])
    exec(compile(text, f"{file} <{name}>", "exec"), names)
    return names.pop(name)  # (it would hold itself)


def set_edges(node: Node, edges: tuple[Any, ...]) -> None:
    """Give a node its edges, and note of what kind they are."""
    node.edges = edges
    node.edge_kind = NODES
    for e in edges:
        if e.__class__ is Output:
            node.edge_kind = OUTPUTS
            return
        if e is not None and e.is_leaf_edge:
            node.edge_kind = LEAVES


class Output:
    """The edge to one output of a node with several."""

    node: Node

    index: int

    __slots__ = ("index", "node")
    is_leaf_edge = False

    def __init__(self, node: Node, index: int):
        self.node, self.index = node, index


def expect(edge: Any, shape: tuple[int, ...], dtype: Any) -> None:
    """Let gradients through a node's edge fit this shape and dtype, those of the result: what holds it now has others."""
    if edge is not None and not edge.is_leaf_edge and edge.__class__ is not Nowhere:
        node, index = (edge.node, edge.index) if edge.__class__ is Output else (edge, 0)
        node._hooks().expected.setdefault(index, (shape, dtype))
        NodeHooks.fitting = True


class Nowhere(Node):
    """The end of the way for the gradient of a loose view, which is lost.

    A view without a history of a base that requires grad (made before the base did, or without recording) says that it requires
    grad too and is a leaf, but is none that a gradient would reach.
    """

    __slots__ = ()

    @property
    def consumed(self) -> None:  # type: ignore[override]
        """Return None: it may be run by any number of passes."""
        return None

    @consumed.setter
    def consumed(self, value: Any) -> None: ...

    def run(self, g: Any) -> tuple[Any, ...]:
        return ()

    run_graph = run


class Within(Node):
    """Stands before what a transform gives its function: a leaf to that, though others differentiate by what is behind."""

    consumed = property(lambda self: None, lambda self, by: None, doc="What consumed it: nothing does.")  # type: ignore[assignment]

    def run(self, g: Any) -> tuple[Any, ...]:
        return (g,)

    run_graph = run


#: nodes of tensors that say that they are leaves
ENDS = frozenset({Nowhere, Within})


class AccumulateGrad:
    """The end of a path in the graph: adds the gradient to ``variable.grad``. ``grad_fn.next_functions`` shows it for leaves."""

    def __init__(self, variable: Any):
        self.variable = variable

    next_functions: tuple[Any, ...] = ()

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    @property
    def metadata(self) -> dict[Any, Any]:
        return self.__dict__.setdefault("_metadata", {})

    def register_hook(self, hook: Any) -> Any:
        """Call ``hook(grad_inputs, grad_outputs)`` after accumulation (both hold nothing but the gradient)."""
        return self.variable._leaf_hooks().add("post", hook)

    def register_prehook(self, hook: Any) -> Any:
        """Call ``hook((grad,))`` before accumulation; it may return a replacement."""
        return self.variable._leaf_hooks().add("pre", hook)

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {hex(id(self))}>"


_accumulators: weakref.WeakValueDictionary[int, AccumulateGrad] = weakref.WeakValueDictionary()


def accumulator(leaf: Any) -> AccumulateGrad:
    """Return the `AccumulateGrad` of a leaf: the same object as long as someone holds it."""
    node = _accumulators.get(id(leaf))
    if node is None or node.variable is not leaf:
        node = _accumulators[id(leaf)] = AccumulateGrad(leaf)
    return node


def _public_edge(edge: Any) -> tuple[Any, int]:
    if edge is None or edge.__class__ is Nowhere:
        return (None, 0)
    if isinstance(edge, Output):
        return (edge.node, edge.index)
    if edge.is_leaf_edge:
        return (accumulator(edge), 0)
    return (edge, 0)


# ---------------------------------------------------------------------------------------------------- locations


def user_frame(frame: Any) -> Any:
    """Return the innermost frame at or above ``frame`` outside this package (``frame`` itself when all are inside)."""
    first = frame
    while frame is not None:
        name = frame.f_code.co_filename
        inside = _internal.get(name)
        if inside is None:
            inside = _internal[name] = name.startswith(_PACKAGE)
        if not inside:
            return frame
        frame = frame.f_back
    return first


def here(depth: int = 1) -> tuple[Any, int]:
    """Return (code, instruction offset) of the user's line that is running."""
    frame = sys._getframe(depth)
    if _internal.get(frame.f_code.co_filename, True):
        frame = user_frame(frame)
    return frame.f_code, frame.f_lasti


def line_of(code: Any, lasti: int) -> int:
    for index, (line, *_) in enumerate(code.co_positions()):
        if index == lasti // 2 and line is not None:
            return line
    return code.co_firstlineno


def file_name(path: str) -> str:
    """Return the name of a file as messages show it: a notebook's cell, whose file has a number for a name, is ``In[3]``."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    cell = getattr(getattr(shell, "compile", None), "format_code_name", lambda path: None)(path)
    return cell[1] if cell else os.path.basename(path)


def place(code: Any, lasti: int) -> str:
    """Return the line of the user's program as ``file.py:12 in train: y = x * w``."""
    if code is None:
        return "an unknown place"
    line = line_of(code, lasti)
    text = linecache.getline(code.co_filename, line).strip()
    name = file_name(code.co_filename)
    inside = "" if code.co_name == "<module>" else f" in {code.co_name}"
    return f"{name}:{line}{inside}" + (f" ({text})" if text else "")


def recorded_at(node: Node) -> str:
    return f"{node.name()}, recorded at {place(node.code, node.lasti)}"


#: what the text of `finishing` calls
FINISHING: dict[str, Any] = {
    "_sequence": sequence, "_MANY": MANY, "_spare": spare, "_getframe": sys._getframe, "_internal": _internal, "_user_frame": user_frame,
}  # fmt: skip

#: finish(node, depth): `finishing` as a function
finish = written("finish", "node, depth=2", finishing("node", "depth"), **FINISHING)


# ----------------------------------------------------------------------------------------------------- errors


#: ops whose numbers, by which they weigh a sum, are no tensors in PyTorch's nodes, as those of a product are
_WEIGHED = frozenset(["AddBackward0", "SubBackward0", "LerpBackward0"])
#: nodes of which PyTorch frees what these here have not saved: the change of a view, and the mask
_FREED = frozenset(["CopySlices", "NativeDropoutBackward0"])


def keeps(node: Node) -> bool:
    """Return whether a node has saved what a pass frees, so that it cannot run again."""
    return bool(node.versions) or (node.name() not in _WEIGHED if node.saved else node.name() in _FREED)


def consumed_error(node: Node) -> ConsumedGraphError:
    again = " This node saved nothing: autograd.set_graph_reuse('torch') lets such nodes run again, as PyTorch does."
    if node.versions or node.name() in _FREED:
        again = ""
    return ConsumedGraphError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
        f"freed). {recorded_at(node)}, was consumed by the backward pass at {place(*(node.consumed or (None, 0)))}. "
        "Specify retain_graph=True in that first backward pass if you need another one, add the losses and call backward "
        "once, or compute the forward pass again. Nothing was changed by this call." + again
    )


def modified_error(node: Node) -> ModifiedError:
    detail = ""
    k, expected = changed(node.counters(), node.stamp)
    arguments = isinstance(node.saved, Sequence) and k >= len(node.saved)  # of a checkpoint: they are counted behind what is saved
    described = [] if arguments else node.saved_arrays()
    if k < len(described):
        shape, kind, edge = described[k]
        made = ""
        if edge is not None and not edge.is_leaf_edge:
            made = f", which is output {edge.index if edge.__class__ is Output else 0} of {_plain_name(edge)},"
        detail = (
            f"[torch.{kind} {list(shape)}]{made} is at version {node.counters()[k][0]}; expected version {expected} instead. "
        )
    return ModifiedError(
        f"one of the variables needed for gradient computation has been modified by an inplace operation: {detail}"
        f"It was saved by {recorded_at(node)}. Replace the in-place operation after that line by an out-of-place one "
        "(x = x + 1 for x += 1), or clone() the tensor first. Hint: enable anomaly detection to find the operation that "
        "failed to compute its gradient, with torch.autograd.set_detect_anomaly(True)."
    )


def _plain_name(edge: Any) -> str:
    """Return the op's name of an edge: "Mul" of a MulBackward0."""
    return getattr(edge, "node", edge).name().rstrip("0123456789").removesuffix("Backward")


def changed(counters: tuple[Any, ...], stamp: int) -> tuple[int, int]:
    """Return (index of the counter that was moved on, the count it had): only the sum of the counts was kept at recording.

    A counter may stand for several of the arrays (b * b), and then counts as often. Where several were moved on the one with
    the highest count is named.
    """
    surplus = sum(v[0] for v in counters) - stamp
    best = (0, counters[0][0] if counters else 0)
    for k, v in sorted(enumerate(counters), key=lambda pair: pair[1][0]):
        times = sum(v is w for w in counters)
        if surplus % times == 0 and v[0] >= surplus // times:
            best = (k, v[0] - surplus // times)
    return best
