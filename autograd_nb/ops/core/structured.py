"""Structured ops: a forward function on tensors that launches kernels, and derivative rules written with other ops.

    @structured(a=lambda g, b: g @ b.mT, b=lambda g, a: a.mT @ g)
    def mm(a, b): ...

The forward function takes its operands by position (the public wrappers normalise arguments first) and runs with recording
off. A rule's parameter names say what it needs: ``g`` (the incoming gradient; a list for several outputs), an operand (saved;
numbers and tuples are kept as they are), ``<operand>_shape``, ``<operand>_edge`` (under ``create_graph`` its place in the graph, where
something else is saved in its stead; else None), ``out`` (the output, a list of several), ``out1`` (of several outputs
only that one). What a rule names may not be changed in place before the backward pass, so rules name what PyTorch saves, also
where they do not read it (and `recording.guarded` adds what is no operand). ``every=`` gives one rule for all operands together,
returning a dict by operand; it may ask for ``needs``, the set of operands that want a gradient. An operand may be a tuple of
tensors; its rule returns a tuple.

Rules run on tensors: recorded under ``create_graph``, so every derivative is there as far as the ops it is written in have one.

A declaration answers two more questions, which transforms ask:

- ``linear``: "jointly", when the op is linear in all its tensor operands together (forward mode applies it to the tangents); "each",
  when it is linear in each of the first two; "lying", when it reads memory by strides, and so is linear jointly where a tangent lies as its
  operand does; "no" otherwise (two passes over the op's own rules give the tangent).
- ``batch``: what `vmap` makes of it. "shift": any dims may stand in front, so it is enough to move the dims among its arguments by
  one; which arguments are dims, shapes and so on is told by their names (`SHIFTED`). "samples": one sample after the other. A rule
  of its own stands under the declaration:

      @_mv.batched
      def _mv_of_batch(op, args, batch): ...

  It is given the arguments as the op sees them, samples, and returns tensors with the batch in dim 0, or None to leave it to
  "samples". ``batch.size`` is the number of samples, ``batch.of(x)`` gives (what x holds, whether its dim 0 is the batch), and
  ``batch.whole(x)`` the same stretched along the batch where it is not.

And it says with what it is tested:

- ``samples``: calls that run the op, as a user writes them: "x(3, 4).cumsum(1)". ``x(…)`` stands for a tensor of that shape, ``pos(…)``
  for one of positive numbers, ``spd(n)`` for a positive definite matrix, ``index(n, …)`` for indices below n and ``mask(…)`` for truth
  values. The tests run each with all layouts and dtypes, differentiate it twice and forward, map it over a batch, compile it, give it
  ``out=`` where its function takes that, and run the same text in PyTorch. An op that the samples of others run, as do most that are
  derivatives, needs none of its own.
- ``dtypes``: the kinds of numbers that its samples may have, of `DTYPES`; all of them unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

from ...graph import recurring
from ...graph.modes import state
from ...graph.node import Node, Output, finish
from ...graph.noted import DRAWN, fixed, told
from ...graph.ownership import handed, settle
from ...overriding import overridable
from ...shapes import Layout
from ...tensor import Tensor, make
from .foreseen import note_op
from .history import attach, share_view
from .known_calls import LAYOUTS, Known
from .memo import Memo
from .recorders import MANY, recorder, runner
from .recording import (
    BAREBONE_STRUCTURED,
    CHALF_STRUCTURED,
    conjugated,
    gather,
    has_no_history,
    mark_inference,
    refuse_inference,
    refuse_limited,
    tensor_type,
)
from .registry import DTYPES, node_name, parameters_of
from .views import look, recipe_from, recipe_of

_SEQUENCES = (tuple, list)
NAMED: WeakValueDictionary[tuple[str, str, str], Structured] = WeakValueDictionary()  #: all ops, by module and names

#: how an argument of an op on samples is moved by a batch in front, by the argument's name: (value, number of samples) -> value
SHIFTED: dict[str, Callable[[Any, int], Any]] = {
    **dict.fromkeys(("d", "a", "b"), lambda d, size: d + 1),
    **dict.fromkeys(("dims", "wdims"), lambda dims, size: tuple(d + 1 for d in dims)),
    **dict.fromkeys(("shape", "base_shape", "x_shape"), lambda shape, size: (size, *shape)),
    "order": lambda order, size: (0, *[d + 1 for d in order]),
    "places": lambda places, size: (0, *places),
    "recipe": lambda recipe, size: ((0, size, 1), *recipe),
}


class StructuredNode(Node):
    """A recorded structured op; subclasses are named per op.

    ``out_layout``: the layout of the output, or a tuple of those of several. ``values``: what the rules take that is no tensor.
    """

    __slots__ = ("out_layout", "recording", "values")
    op: Structured

    @property
    def alike(self) -> Any:  # type: ignore[override]
        """Return the recording."""
        return self.recording if self.op.ours else None

    def tell(self, graph: Any, n: str) -> None:
        graph.differs(f"{n}.recording", "is not", self.recording)
        graph.differs(f"{n}.out_layout", "!=", self.out_layout)
        if self.saved:
            for part, (_, array, layout, _) in zip(graph.saved(n, self.saved), self.saved, strict=True):
                graph.differs(f"{part}[2]", "is not", layout)
                graph.array(f"{part}[1]", array)
        for name, value in self.values.items():
            graph.same(f"{n}.values[{name!r}]", value)

    def again(self, text: Any, n: str) -> list[str]:
        kept = ", ".join(f"({text.constant(p)}, {text.array(data)}, {text.constant(layout)}, {first})" for p, data, layout, first in self.saved or ())
        draws = "".join(f", {p!r}: {text.turn(v)}" for p, v in self.values.items() if isinstance(v, DRAWN))
        told([v for v in self.values.values() if not isinstance(v, DRAWN)])
        recording, values, layout = map(text.constant, (self.recording, self.values, self.out_layout))
        values = f"{{**{values}{draws}}}" if draws else values
        return [f"{n}.recording, {n}.values, {n}.out_layout = {recording}, {values}, {layout}", f"{n}.saved = {f'({kept},)' if kept else 'None'}"]

    def run(self, g: Any) -> tuple[Any, ...]:
        return self.op.gradients(self, g)

    run_graph = run

    def saved_arrays(self) -> list[tuple[Any, ...]]:
        return [
            (s[2].shape, tensor_type(s[2].dtype), self if s[0][:3] == "out" else None if s[3] is None else self.edges[s[3]])
            for s in self.saved or ()
        ]


class SeveralNode(StructuredNode):
    """One of an op with several outputs."""

    __slots__ = ()
    several = True

    @property
    def shown(self) -> int:
        """Return all but indices and the like, which stand last."""
        count = len(self.out_layout)
        while count > 1 and self.out_layout[count - 1].dtype.category < 2:
            count -= 1
        return count

    @property
    def outputs(self) -> int:  # type: ignore[override]
        return len(self.out_layout)


class Recording:
    """A recording says what is saved and which rules run, for one combination of operands that are tensors and that require
    grad.

    ``rules``: for each operand with edges (rule or None where it needs no gradient, its names, edges of a tuple or -1).
    ``saved``: (operand, its index, its first edge) of what the rules read; ``shapes``: (name, index) of shapes; ``edges``: (name, edge). ``run``: the rules
    as one function (see `recorders.runner`), made when it is first asked for, where every operand is one tensor.
    """

    __slots__ = ("edges", "every", "needed", "out", "outs", "present", "rules", "run", "saved", "shapes", "simple", "unsaved")
    every: tuple[Callable[..., Any], tuple[str, ...]] | None
    out: bool
    outs: tuple[int, ...]
    saved: list[tuple[str, int, int | None]]
    shapes: list[tuple[str, int]]
    edges: list[tuple[str, int]]
    present: int
    simple: bool
    unsaved: bool  #: whether the rules read neither the first operand nor the output

    def __init__(self, op: Structured, mask: int, present: int, lengths: tuple[Any, ...]):
        counts = dict(zip(lengths[::2], lengths[1::2], strict=True))
        first: dict[str, int] = {}  # operand -> its first edge
        self.needed: set[str] = set()
        self.rules: list[tuple[Any, ...]] = []
        self.every = op.every
        wanted: set[str] = set(op.every[1]) - {"g", "needs"} if op.every else set()
        edge = 0
        for i, p in enumerate(op.params):
            if not present >> i & 1 or i not in op.operands:
                continue
            first[p] = edge
            count = counts.get(i, 1)
            needs = bool(mask >> edge & ((1 << count) - 1))
            edge += count
            rule, names = op.rules.get(p, (None, ()))
            if needs:
                self.needed.add(p)
                wanted.update(names)
            self.rules.append((rule if needs else None, names, counts.get(i, -1), p))
        #: which outputs are kept: all, or those of several that are asked for by their number
        self.out = "out" in wanted
        self.outs = tuple(sorted(int(n[3:]) for n in wanted if n[:3] == "out" and n[3:].isdigit() and n not in op.params))
        self.saved = [(p, i, first.get(p)) for i, p in enumerate(op.params) if p in wanted]
        self.shapes = [(p + "_shape", i) for i, p in enumerate(op.params) if p + "_shape" in wanted]
        self.edges = [(p + "_edge", first[p]) for p in op.params if p + "_edge" in wanted]
        self.simple, self.present = not lengths, present
        self.unsaved = not self.out and all(i for _, i, _ in self.saved)
        self.run: Callable[..., Any] | None = None

    def constants(self, layout: Layout, args: Sequence[Any]) -> dict[str, Any]:
        """Return what the rules read where that is no tensor: of a first operand of this layout and the other ``args``."""
        values = {}
        for p, i, _ in self.saved:
            values[p] = args[i - 1]
        for name, _ in self.shapes:
            values[name] = layout.shape
        return values


class Structured:
    """A structured op, as it was declared."""

    dtypes: str
    samples: tuple[str, ...]
    holomorphic: bool
    name: str
    params: tuple[str, ...]
    rules: dict[str, tuple[Callable[..., Any], tuple[str, ...]]]
    every: tuple[Callable[..., Any], tuple[str, ...]] | None
    operands: list[int]
    node_name: str
    node: type[StructuredNode]
    recipes: Memo

    def __init__(
        self, forward: Callable[..., Any], rules: dict[str, Callable[..., Any]], every: Callable[..., Any] | None, view: bool,
        node: str, holomorphic: bool = True, linear: str | None = None, batch: str | None = None, dtypes: str = DTYPES,
        samples: str | tuple[str, ...] = (),
    ):  # fmt: skip
        assert linear in (None, "no", "jointly", "each", "lying") and batch in (None, "samples", "shift"), (linear, batch)
        assert set(dtypes.split()) <= set(DTYPES.split()), dtypes
        self.dtypes, self.samples = dtypes, (samples,) if isinstance(samples, str) else samples
        self.holomorphic, self.linear = holomorphic, linear
        self.batch: str | Callable[..., Any] | None = batch
        self.ours = True  # whether the rules are this library's: a user's may keep what they get and give
        self.forward = forward
        self.geometry: Callable[..., Any] | None = getattr(forward, "geometry", None)  # of a view, see `views.geometry`
        self.name = forward.__name__.strip("_")
        self.params = parameters_of(forward)
        self.rules = {p: (r, parameters_of(r)) for p, r in rules.items()}
        unknown = set(self.rules) - set(self.params)
        assert not unknown, f"{self.name}: rules for {unknown}, which are not operands"
        self.every = (every, parameters_of(every)) if every else None
        self.operands = [i for i, p in enumerate(self.params) if every or p in self.rules]
        self.view = view
        self.node_name = node or node_name(self.name)
        self.node = self._node_class(StructuredNode)
        self._recordings: dict[tuple[Any, ...], Recording] = {}
        self._recorders: dict[tuple[Any, ...], Callable[..., Any]] = {}  # by the classes of the arguments
        self._known: dict[Any, Known | None] = {}  # by the first operand's layout; None: seen once
        recurring.tables.append(self._known)
        self.recipes = Memo()  # of views, see `ops.core.views`
        NAMED[forward.__module__, self.name, self.node_name] = self

    def _node_class(self, base: type[StructuredNode]) -> type[StructuredNode]:
        return type(self.node_name, (base,), {"__slots__": (), "op": self})

    @cached_property
    def several_node(self) -> type[StructuredNode]:
        """Return the class of the op's nodes where it has several outputs."""
        return self._node_class(SeveralNode)

    def variant(self, node: str, forward: Callable[..., Any] | None = None, samples: str | tuple[str, ...] = (), **rules: Callable[..., Any]) -> Structured:
        """Return the same computation under another grad_fn, with another forward function or other derivatives if any are given."""
        rules = rules or {p: r for p, (r, _) in self.rules.items()}
        op = Structured(
            forward or self.forward, rules, None, self.view, node, self.holomorphic, self.linear, dtypes=self.dtypes, samples=samples,
        )  # fmt: skip
        op.batch = self.batch
        return op

    def batched(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: the op's rule for batches, ``rule(op, args, batch)`` (see the module's text)."""
        self.batch = rule
        return rule

    @overridable
    def __call__(self, *args: Any) -> Any:
        if not self.view:
            return self._call(args)
        key = (args[0]._layout, *args[1:])
        try:
            recipe = self.recipes.plans.get(key)
        except TypeError:  # an argument that cannot be a key
            recipe = None
        if recipe is not None:
            return look(args[0], recipe)
        if self.geometry is not None:
            return look(args[0], self.recipes.keep(key, recipe_from(self, args[0]._layout, args[1:])))
        out = self._call(args)
        recipe = recipe_of(self, args, out)
        if recipe is not None:
            self.recipes.keep(key, recipe)
        return out

    def _call(self, args: tuple[Any, ...]) -> Any:
        if not state.grad:
            out = self._forward(args)
            if self.view:
                self._share(args[0], out)
                return out
            for t in out if isinstance(out, _SEQUENCES) else (out,):
                if t.__class__ is Tensor and (t._view is not None or t._version_[0]):
                    self._plain(args, t)
                if state.inference:
                    mark_inference(t)
            return out
        previous = True  # (a signal handler is told of it: `autograd.handlers`)
        state.grad = False
        try:
            out = self._forward(args)
        finally:
            state.grad = previous
        if self.view:
            self._share(args[0], out)
            if has_no_history(args[0]):
                return out
        elif out.__class__ is Tensor:
            if out._view is not None or out._version_[0]:
                self._plain(args, out)
        elif isinstance(out, _SEQUENCES):
            for t in out:
                if t.__class__ is Tensor and (t._view is not None or t._version_[0]):
                    self._plain(args, t)
        if self.rules or self.every:
            self.record(args, out, 3)
        return out

    def _forward(self, args: tuple[Any, ...]) -> Any:
        """Return what the forward function makes of these arguments; calls that recur launch only."""
        if self.view or not self.ours:
            return self.forward(*args)
        try:
            known = self._known[args[0]._layout]
        except KeyError:
            if len(self._known) >= LAYOUTS:
                self._known.clear()
            if args[0]._layout.dtype.is_limited:
                refuse_limited(self.name, args[0]._layout.dtype, BAREBONE_STRUCTURED, CHALF_STRUCTURED)
            self._known[args[0]._layout] = None  # what is seen once may be of ever new sizes
            return self.forward(*args)
        except (AttributeError, IndexError):  # no tensor
            return self.forward(*args)
        if known is None:
            known = self._known[args[0]._layout] = Known()
        return known.run(self.forward, args)

    def _plain(self, args: tuple[Any, ...], out: Tensor) -> None:
        """Forget that a result is a view of a tensor which the op made for itself, and what the op wrote: nobody else knows of it."""
        given = [t for a in args for t in (a if isinstance(a, _SEQUENCES) else (a,)) if isinstance(t, Tensor)]
        if not any(t._version_ is out._version_ for t in given):
            out._view, out._view_kind = None, ""
            out._version_[0] = min(out._version_[0], 0)

    def _share(self, source: Tensor, out: Any) -> None:
        if isinstance(out, (tuple, list)):
            for o in out:
                share_view(source, o, f"multi:{self.node_name}" if state.grad else "")
        else:
            share_view(source, out)

    def recording(self, mask: int, present: int, lengths: tuple[Any, ...] = ()) -> Recording:
        """Return a `Recording`. ``mask``: which edges need a gradient; ``present``: which arguments are tensors; ``lengths``: index and length of tuples."""
        key = (mask, present, lengths)
        found = self._recordings.get(key)
        if found is None:
            found = self._recordings[key] = Recording(self, mask, present, lengths)
        return found

    @overridable
    def record(self, args: tuple[Any, ...], out: Any, depth: int = 1) -> None:
        """Give ``out``, computed from ``args``, its history, if an operand has one. The user's frame is ``depth`` above, or further up."""
        several = min(len(out), MANY) if isinstance(out, _SEQUENCES) else 0
        classes: tuple[Any, ...] = (several, *map(type, args))
        found = self._recorders.get(classes)
        if found is None:
            classes = (several, *[Tensor if hasattr(type(a), "of_program") else type(a) for a in args])  # which is not to be kept alive
            found = self._recorders.get(classes)
        if found is None:
            found = self._recorders[classes] = recorder(self, classes[1:], several)
            note_op("structured", self, self.forward, list(args))
        found(args, out, depth + 1)

    def record_any(self, args: tuple[Any, ...], out: Any) -> None:
        """Do what `record` does for any number of outputs and tuples of tensors among the operands."""
        present = sum([1 << i for i, a in enumerate(args) if isinstance(a, Tensor)])
        lengths: tuple[Any, ...] = ()
        for i, a in enumerate(args):
            if isinstance(a, _SEQUENCES) and a and isinstance(a[0], Tensor):
                present |= 1 << i
                lengths += (i, len(a))
        operands: list[Tensor] = []
        for i in self.operands:
            a = args[i]
            if isinstance(a, Tensor):
                operands.append(a)
            elif i in lengths[::2]:
                operands.extend(a)
        mask, edge_kind, edges = gather(operands)
        if not mask:
            return
        recording = self._recordings.get((mask, present, lengths))
        if recording is None:
            recording = self.recording(mask, present, lengths)
            note_op("structured", self, self.forward, list(args))
        several = isinstance(out, _SEQUENCES)
        node = (self.several_node if several else self.node)()
        node.edges, node.edge_kind, node.recording = edges, edge_kind, recording
        values, saved, versions = self._kept(recording, args, out if several else (out,))
        stamp = 0
        for version in versions:
            stamp += version[0]
            if version[0] < 0:
                refuse_inference(node.edges)
        node.values, node.saved, node.versions, node.stamp = values, saved or None, tuple(versions), stamp
        finish(node)
        if several:
            node.out_layout = tuple([o._layout for o in out])
            for index, o in enumerate(out):
                if o._layout.dtype.category >= 2:
                    o._edge = Output(node, index)
                    o._rg = True
        else:
            node.out_layout = out._layout
            out._edge = node
            out._rg = True

    @staticmethod
    def _kept(recording: Recording, args: tuple[Any, ...], outs: Sequence[Tensor]) -> tuple[dict[str, Any], list[tuple[Any, ...]], list[Any]]:
        """Return what the rules read: (values that are no tensors, arrays of tensors, the versions of these)."""
        saved: list[tuple[Any, ...]] = []
        versions = []
        values: dict[str, Any] = {}
        for p, i, first in recording.saved:
            a = args[i]
            if isinstance(a, Tensor):
                saved.append((p, a._data, a._layout, first))
                versions.append(a._version_)
            elif isinstance(a, _SEQUENCES) and a and isinstance(a[0], Tensor):
                for k, t in enumerate(a):
                    saved.append((f"{p}/", t._data, t._layout, None if first is None else first + k))
                    versions.append(t._version_)
            else:
                values[p] = a
        for name, i in recording.shapes:
            a = args[i]
            values[name] = a._layout.shape if isinstance(a, Tensor) else tuple([t.shape for t in a])
        for name, o in [("out", o) for o in outs if recording.out] + [(f"out{k}", outs[k]) for k in recording.outs]:
            saved.append((name, o._data, o._layout, None))
            versions.append(o._version_)
        return values, saved, versions

    def _conjugate(self, g: Any, values: dict[Any, Any], node: StructuredNode) -> None:
        """Conjugate what the rules read of complex operands: so they give g · conj(dy/dx) (see `pointwise_backward.Spec.factors`)."""
        if not any(t is not None and t._layout.dtype.is_complex for t in (g if node.several else (g,))):
            return  # a real function of complex numbers: its rule is written for them
        for p in {s[0].removesuffix("/") for s in node.saved}:
            value = values[p]
            values[p] = [conjugated(t) for t in value] if isinstance(value, list) else conjugated(value)

    @overridable
    def gradients(self, node: StructuredNode, g: Any) -> tuple[Any, ...]:
        recording = node.recording
        if state.grad or node.several or not recording.simple or not self.ours:
            return self.gradients_any(node, g)
        run = recording.run
        if run is None:
            run = recording.run = runner(self, recording)
        return run(node, g)

    @staticmethod
    def _output(t: Tensor, node: StructuredNode, index: int, graph: bool) -> Tensor:
        """Return a saved output of several in its place in the graph."""
        if t._layout.dtype.category < 2:
            t._edge, t._rg = None, False
        elif graph:
            t._edge = Output(node, index)
        return t

    def gradients_any(self, node: StructuredNode, g: Any) -> tuple[Any, ...]:
        """Return `gradients` of any kind of op and pass."""
        values = dict(node.values)
        values["g"] = g
        conjugate, graph = False, state.grad
        for name, e in node.recording.edges:
            values[name] = node.edges[e] if graph else None
        for (p, data, layout, e), version in zip(node.saved or (), node.counters(), strict=False):
            t = make(data, layout, version)
            if layout.dtype.category == 3:
                conjugate = True
            if graph:
                target: Any = node if p[:3] == "out" and p not in self.params else (None if e is None else node.edges[e])
                if target is not None:
                    if (
                        target.__class__ is not Output
                        and target.is_leaf_edge
                        and target._layout is layout
                        and target._data is data
                    ):
                        t = target
                    else:
                        attach(t, target)
            if p in self.params:
                values[p] = t
            elif p[:3] == "out" and p[3:]:
                values[p] = self._output(t, node, int(p[3:]), graph)
            elif p != "out":
                values.setdefault(p[:-1], []).append(t)
            elif node.several:
                outs = values.setdefault("out", [])
                outs.append(self._output(t, node, len(outs), graph))
            else:
                values["out"] = t
        if conjugate and self.holomorphic:
            self._conjugate(g, values, node)
        if not self.ours:
            values["g"] = handed(g, graph)
        grads = self._apply(node.recording, values)
        if self.ours and not graph:
            settle(grads, g if node.several else (g,), node.counters())
        return grads

    def _apply(self, recording: Recording, values: dict[Any, Any]) -> tuple[Any, ...]:
        """Return what the rules make of their arguments."""
        if recording.every is not None:
            values["needs"] = recording.needed
            rule, names = recording.every
            found = rule(*[values[n] for n in names])
            return tuple([found.get(p) for *_, p in recording.rules])
        grads: list[Any] = []
        for rule, names, count, _ in recording.rules:
            if rule is None:
                grads.extend([None] * abs(count))
            elif count < 0:
                grads.append(rule(*[values[n] for n in names]))
            else:
                grads.extend(rule(*[values[n] for n in names]))
        return tuple(grads)


fixed.add(Structured)


def structured(
    every: Callable[..., Any] | None = None, *, view: bool = False, node: str = "", holomorphic: bool = True,
    linear: str | None = None, batch: str | None = None, dtypes: str = DTYPES, samples: str | tuple[str, ...] = (),
    **rules: Callable[..., Any],
) -> Callable[[Callable[..., Any]], Structured]:  # fmt: skip
    """Declare a structured op from its forward function (see the module's text for ``linear``, ``batch``, ``dtypes``, ``samples``).

    view: the result reads the first operand's memory. node: the name of its grad_fn, else made of the function's name.
    holomorphic: the rules are derivatives in the complex sense (complex operands are conjugated before they read them).
    """

    def declare(forward: Callable[..., Any]) -> Structured:
        return Structured(forward, rules, every, view, node, holomorphic, linear, batch, dtypes, samples)

    return declare


#: what `torch.tensor` makes a tensor of
_PLAIN = (list, tuple, int, float, complex)


def tensor_argument(value: Any, op: str, name: str = "input") -> Tensor:
    """Return ``value`` if it is a Tensor, else TypeError."""
    if not isinstance(value, Tensor):
        remedy = " (use torch.from_numpy())" if type(value).__name__ == "ndarray" else " (use torch.tensor())" if isinstance(value, _PLAIN) else ""
        raise TypeError(f"{op}(): argument '{name}' must be Tensor, not {type(value).__name__}{remedy}")
    return value


def optional_tensor(value: Any, op: str, name: str) -> Tensor | None:
    """Return ``value`` if it is a Tensor or None, else TypeError."""
    return None if value is None else tensor_argument(value, op, name)


def none_given(tensors: tuple[Any, ...]) -> bool:
    """Return whether a function of tensors, given one by one or as one list, was given none."""
    return not tensors or (len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) and not tensors[0])


def tensors_argument(values: Any, op: str, name: str = "tensors") -> tuple[Tensor, ...]:
    """Return a non-empty list or tuple of Tensors, else TypeError, RuntimeError or (of `cat`, as in PyTorch) ValueError."""
    if values.__class__ is not list and values.__class__ is not tuple and (isinstance(values, Tensor) or not isinstance(values, Sequence)):
        remedy = f" (put them in a list: {op}([a, b]))" if isinstance(values, Tensor) else ""
        raise TypeError(f"{op}(): argument '{name}' must be tuple of Tensors, not {type(values).__name__}{remedy}")
    for i, t in enumerate(values):
        if not isinstance(t, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0 ({name}) of {op}(), but got {type(t).__name__}")
    if not values:
        kind = ValueError if op == "cat" else RuntimeError
        raise kind(f"{op}(): expected a non-empty list of Tensors ({name}=[])")
    return tuple(values)
