"""The path of a call whose like was seen before, written out as text for each kind of op.

A call is known by the layouts of its operands and by its other arguments as they were written. Where its like was seen, one
lookup finds a *plan*; the plan's kernel runs on new memory, a tensor is made around it, and where something requires grad a node is
written. All that is done for each of millions of calls, so it is one function without loops or further calls, which is put together here:

- `pointwise_maker`, `inplace_maker`: the public functions of ops with a formula (`pointwise_lines` is the text);
- `known`: a decorator of all others (reductions, products, norms, losses, joins, draws …), which looks up the plan and runs it,
  and where there is none asks for one; only what has no plan goes by the long way;
- `node_lines`: the writer of nodes, which all of them and `recorders` share; `write_node` is the same as a function.

Plans are found and kept by `memo`, of which there is one for all kinds of calls.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache, wraps
from typing import Any

import numpy as np

from ... import launch
from ...dtypes import of_scalar, result_of
from ...graph.modes import state
from ...graph.node import FINISHING, Output, finishing, written
from ...tensor import Tensor, blank, refresh, rewrite_history
from .memo import Memo, indented, look_up_lines, ordinary
from .numbers import number_argument, number_as
from .recording import fitting, mark_inference, refuse_inference, store
from .registry import numpy_names

#: what the texts call
NAMES: dict[str, Any] = {
    "_new": blank, "_state": state, "_empty": np.empty, "_allocate": launch.empty, "_refresh": refresh, "_Output": Output,
    "_mark_inference": mark_inference, "_refuse_inference": refuse_inference, **FINISHING,
}  # fmt: skip


def compiled(name: str, parameters: str, lines: Sequence[str], **names: Any) -> Callable[..., Any]:
    """The function of this text."""
    return written(name, parameters, list(lines), __file__, **NAMES, **names)


# ------------------------------------------------------------------------------------------------- pieces of text


def tensor_lines(layout: str, version: str = "[0, 0]") -> list[str]:
    """``t``: a tensor outside the graph over ``data``; `tensor.make`, written out."""
    return [
        "t = _new()",
        "t._data = data",
        f"t._layout = {layout}",
        f"t._version_ = {version}",
        "t._rg = False",
        "t._edge = t._grad = t._view = t._leaf_hook_set = None",
    ]


def edge_lines(operand: str, into: str) -> list[str]:
    """``into``: where the gradient of an operand that requires grad flows; ``_plain``: see `graph.node.Node`."""
    return [
        f"{into} = {operand}._edge",
        f"if {into} is None:",
        f"    {into} = {operand}",
        "    if _plain:",
        "        _plain = 1",
        f"elif {into}.__class__ is _Output:",
        "    _plain = 0",
    ]


def single_edge_lines(operand: str) -> list[str]:
    """The only edge of a node, kept as ``edge``."""
    return [
        f"_e = {operand}._edge",
        "if _e is None:",
        f"    _node.edge = {operand}",
        "    _node.plain = 1",
        "else:",
        "    _node.edge = _e",
        "    _node.plain = 0 if _e.__class__ is _Output else 3",
    ]


def saving_lines(arrays: Sequence[str], counters: Sequence[str], fresh: int = 0, alone: bool = True) -> list[str]:
    """Write the lines that save what a node keeps: ``arrays`` as they stand, with the counters under which they were saved, the
    last ``fresh`` of which are new.

    ``alone``: a single counter stands without a tuple around it, and what keeps nothing has an empty one.
    """
    names = [f"_v{k}" for k in range(len(counters))]
    old = names[: len(names) - fresh]
    lines = [f"{v} = {c}" for v, c in zip(names, counters, strict=True)]
    if old:
        lines += ["if " + " or ".join(f"{v}[0] < 0" for v in old) + ":", "    _refuse_inference()"]
    return [
        *lines,
        f"_node.saved = ({''.join(a + ', ' for a in arrays)})" if arrays or alone else "_node.saved = None",
        "_node.versions = " + (names[0] if alone and len(names) == 1 else f"({''.join(v + ', ' for v in names)})"),
        "_node.stamp = " + (" + ".join(f"{v}[0]" for v in old) or "0"),
    ]


def node_lines(make: str, edges: Sequence[str], fill: Sequence[str], depth: str, out: str = "t") -> list[str]:
    """A node: made, given its ``edges``, filled by its kind's lines, finished; the history of ``out``, where that is named."""
    history = [f"{out}._edge = _node", f"{out}._rg = True"] if out else []
    return [f"_node = {make}", *edges, *fill, *finishing("_node", depth), *history]


def unrecorded_lines() -> list[str]:
    """The end of a call outside the graph."""
    return ["if not _state.grad:", "    if _state.inference:", "        _mark_inference(t)", "    return t"]


def several_edges_lines(edges: Sequence[str]) -> list[str]:
    """The edges of a node with more than one operand."""
    return [f"_node.edges = ({''.join(e + ', ' for e in edges)})", "_node.plain = _plain"]


#: what a node of a structured op that saves nothing is given
_NOTHING_SAVED = [
    "_node.recording, _node.values, _node.made = recording, values, made",
    "_node.saved, _node.versions, _node.stamp = None, (), 0",
]

#: write_node(x, node_class, recording, values, made, depth): the node of a structured op of ``x`` that saves nothing
write_node = compiled(
    "write_node", "x, node_class, recording, values, made, depth",
    [
        *node_lines(
            "node_class()", ["_plain = 2", *edge_lines("x", "_e"), *several_edges_lines(["_e"])], _NOTHING_SAVED, "depth", ""
        ),
        "return _node",
    ],
)  # fmt: skip


# ------------------------------------------------------------------------------------------------- ops of formulas


def _kernel_lines(arrays: Sequence[str], guarded: bool) -> list[str]:
    """The plan's kernel, run on ``arrays``; ``guarded``: among them are numbers, which may be too large."""
    given = ", ".join(arrays)
    lines = ["if plan.dims is None:", f"    plan.entry({given})", "else:", f"    plan.entry(plan.dims, {given})"]
    if not guarded:
        return lines
    return ["try:", *indented(lines), "except OverflowError:", "    return _op.run(_fitting(_op.name, (input, other)))"]


def forward_lines(arrays: Sequence[str], guarded: bool) -> list[str]:
    """A formula's plan, run on ``arrays``, and the end of a call outside the graph; ``guarded``: see `_kernel_lines`."""
    return [
        "data = _allocate(plan.size, plan.carrier) if plan.big else _empty(plan.size, plan.carrier)",
        *_kernel_lines([*arrays, "data"], guarded),
        *tensor_lines("plan.out"),
        *unrecorded_lines(),
    ]


def _saved_lines(several: bool) -> list[str]:
    """Write the lines that save what a formula's derivative reads, as ``spec.save`` says: bit 0 the first operand, bit 1 the
    second, bit 2 the result.
    """
    arrays = {1: "input._data", 2: "b", 4: "data"}
    counters = {1: "input._version_", 2: "other._version_", 4: "t._version_"}
    lines: list[str] = []
    for save in (3, 1, 2, 4) if several else (4, 1, 5):
        bits = [bit for bit in (1, 2, 4) if save & bit]
        lines += [f"{'elif' if lines else 'if'} _save == {save}:"]
        lines += indented(saving_lines([arrays[b] for b in bits], [counters[b] for b in bits], bool(save & 4)))
        if several and save in (1, 4):  # the second may be a number
            lines += ["    if _spec.scalar_names:", f"        _node.saved = ({arrays[save]}, b)"]
    lines += ["elif not _save:", "    _node.saved = (b,) if _spec.scalar_names else ()" if several else "    _node.saved = ()"]
    lines += ["    _node.versions = ()", "    _node.stamp = 0"]
    if several:
        lines += ["else:", "    _op.save(_node, (input, other), t)"]
    return lines


def pointwise_lines(n: int) -> list[str]:
    """The text of the public functions of ``n`` operands, one or two, of which the second may be a number."""
    several = n == 2
    given = "input, other" if several else "input"
    if several:
        edges = ["_plain = 2", "_e = _f = None", "if mask & 1:", *indented(edge_lines("input", "_e"))]
        edges += ["if mask & 2:", *indented(edge_lines("other", "_f")), *several_edges_lines(["_e", "_f"])]
        options, asked = ", *, alpha=None, out=None", _LOOK_UP_TWO
        mask = _MASK_OF_TWO
    else:
        edges, options, asked, mask = single_edge_lines("input"), ", *, out=None", _LOOK_UP_ONE, _MASK_OF_ONE
    recorded = node_lines("_spec.node()", edges, ["_node.spec = _spec", "_save = _spec.save", *_saved_lines(several)], "1")
    call = [
        *(_SCALED if several else []),
        "if out is not None:",
        f"    return _store(out, call({given}), _op.name)",
        *asked,
        *forward_lines(["input._data", "b"] if several else ["input._data"], several),
        "if rules and plan.recorded:",
        *indented(mask),
        "    if mask:",
        "        _spec = plan.specs[mask] or plan.spec(mask)",
        *indented(recorded, 2),
        "return t",
    ]
    return [f"def call({given}{options}):", *indented(call), "return call"]


_SCALED = [
    "if alpha is not None and not (alpha.__class__ is int and alpha == 1):",
    "    return _scaled(_op, scaled, input, other, alpha, out)",
]
_LOOK_UP_ONE = [
    "try:",
    "    plan = plans[input._layout]",
    "except (KeyError, AttributeError):",
    "    return first(input)",
]
_LOOK_UP_TWO = [
    "kind = other.__class__",
    "number = kind is float or kind is int",
    "try:",
    "    if number:",
    "        plan = plans[input._layout, kind]",
    "        b = other",
    "    else:",
    "        plan = plans[input._layout, other._layout]",
    "        b = other._data",
    "except (KeyError, AttributeError):",
    "    return first(input, other)",
]
_MASK_OF_ONE = ["if input._view is not None:", "    _refresh(input)", "mask = 1 if input._rg else 0"]
_MASK_OF_TWO = [
    "if input._view is not None:",
    "    _refresh(input)",
    "if number:",
    "    mask = 1 if input._rg else 0",
    "else:",
    "    if other._view is not None:",
    "        _refresh(other)",
    "    mask = (1 if input._rg else 0) | (2 if other._rg else 0)",
    "mask &= rules",
]


def _scaled(op: Any, scaled: Callable[..., Any] | None, input: Any, other: Any, alpha: Any, out: Any) -> Tensor:
    """The op with ``alpha=`` in front of its second operand."""
    if scaled is None:
        raise TypeError(f"{op.name}() got an unexpected keyword argument 'alpha'")
    return scaled(input, other, _factor(op.name, input, other, alpha), out=out)


def _factor(name: str, input: Any, other: Any, alpha: Any) -> Any:
    """``alpha`` as a number that the result's dtype has a place for."""
    alpha = number_argument(alpha, name, "alpha")
    tensors = [t for t in (input, other) if isinstance(t, Tensor)]
    if alpha.__class__ is bool and any(t.dtype.category for t in tensors):
        raise RuntimeError(f"Boolean alpha only supported for Boolean results. ({name}(): alpha={alpha})")
    if alpha.__class__ is int and not any(t.dtype.category for t in tensors) and all(isinstance(v, (Tensor, bool)) for v in (input, other)):
        return bool(alpha)
    if tensors and alpha.__class__ in (int, float) and not -100 <= alpha <= 100:
        kinds = [(t.dtype, 2 if t.ndim else 1) for t in tensors] + [(of_scalar(type(v)), 0) for v in (input, other) if not isinstance(v, Tensor)]
        kind = result_of(kinds)
        if kind.category == 2 or alpha.__class__ is int:
            number_as(alpha, kind, name)
    return alpha


@cache
def pointwise_maker(n: int) -> Callable[..., Any]:
    """make(op, plans, rules, first, scaled): the public function of a formula of ``n`` operands, one or two.

    rules: which operands have a derivative, as bits. first: what becomes of operands that have no plan yet. scaled: the op that
    serves ``alpha=``.
    """
    names = {"_store": store, "_fitting": fitting, "_scaled": _scaled}
    return compiled("pointwise", "_op, plans, rules, first, scaled", pointwise_lines(n), **names)


def _inplace(n: int) -> Callable[..., Any]:
    """The maker of the in-place functions of ``n`` operands, all but the first of which may be numbers."""
    names = [["input"], ["input", "other"], ["input", "b", "c"]][n - 1]
    others = names[1:]
    given = ", ".join(names)
    lines = [f"def call({given}{', *, alpha=None' if n == 2 else ''}):"]
    call = []
    if n == 2:
        call += [
            "if alpha is not None and not (alpha.__class__ is int and alpha == 1):",
            "    return _scaled_inplace(_op, scaled, input, other, alpha)",
        ]
    for k, p in enumerate(others):
        call += [f"k{k} = {p}.__class__", f"n{k} = k{k} is float or k{k} is int"]
    key = ["input._layout", *[f"k{k} if n{k} else {p}._layout" for k, p in enumerate(others)]]
    arrays = [f"{p} if n{k} else {p}._data" for k, p in enumerate(others)]
    aliased = "".join(f" or (not n{k} and {p}._version_ is version)" for k, p in enumerate(others))
    asked = "".join(f" or (not n{k} and ({p}._rg or {p}._view is not None))" for k, p in enumerate(others))
    needs = "".join(f" or (not n{k} and {p}.requires_grad)" for k, p in enumerate(others))
    run = [f"plan.write({', '.join(['data', *arrays])})"]
    if n < 3:
        quick = ", ".join([*arrays, "data"])
        run = ["if len(data) != plan.size:", *indented(run), "elif plan.reads:", f"    plan.entry({', '.join(['data', *arrays])})"]
        run += ["else:", f"    plan.entry({quick})"]
    if n > 1:
        run = ["try:", *indented(run), "except OverflowError:", f"    return _op.inplace(_fitting(_op.name + '_', [{given}]))"]
    call += [
        "try:",
        f"    plan = plans[{', '.join(key)}]",
        "except (KeyError, AttributeError):",
        f"    return first({given})",
        "version = input._version_",
        f"if version[0] < 0{aliased}:",
        f"    return _op.inplace([{given}])",
        "node = False",
        f"if (input._rg or input._view is not None{asked}) and _state.grad and (",
        f"    input._rg or (input._view is not None and input._view._rg){needs}",
        "):",
        "    if input._view is not None or (input._rg and input._edge is None):",
        f"        return _op.inplace([{given}])",
        f"    node = _op.record_in_place(plan, ({given},))",
        "data = input._data",
        *run,
        "version[0] += 1",
        "if node is not False:",
        "    _rewrite_history(input, node)",
        "return input",
    ]
    lines += [*indented(call), "return call"]
    return compiled(
        "inplace", "_op, plans, first, scaled", lines, _fitting=fitting, _rewrite_history=rewrite_history, _scaled_inplace=_scaled_inplace
    )


def _scaled_inplace(op: Any, scaled: Any, input: Any, other: Any, alpha: Any) -> Tensor:
    if scaled is None:
        raise TypeError(f"{op.name}_() got an unexpected keyword argument 'alpha'")
    return scaled.inplace(input, other, _factor(op.name + "_", input, other, alpha))


@cache
def inplace_maker(n: int) -> Callable[..., Any]:
    """make(op, plans, first, scaled): the in-place function of a formula of one to three operands, see `pointwise_maker`."""
    return _inplace(n)


# ------------------------------------------------------------------------------------------------------- all others


def result_lines(entry: str, recorded: Sequence[str]) -> list[str]:
    """A plan with one kernel, run on new memory; ``entry``: its call, ``recorded``: what follows where calls are recorded."""
    return [
        "data = _empty(plan.size, plan.carrier)",
        entry,
        *tensor_lines("plan.layout"),
        *unrecorded_lines(),
        *recorded,
        "return t",
    ]


def recorded_lines(operands: Sequence[str], args: str) -> list[str]:
    """The result's history as a structured op writes it, where one of the operands may have one."""
    some = " or ".join([f"{p}._rg" for p in operands] + [f"{p}._view is not None" for p in operands])
    return [f"if {some}:", f"    _op.record(({args}), t, 2)"]


def unsaved_lines(operand: str) -> list[str]:
    """The same of an op of one operand that saves nothing, where the plan says so."""
    fill = [
        "_node.recording, _node.values, _node.made = plan.recording, plan.values, plan.layout",
        "_node.saved, _node.versions, _node.stamp = None, (), 0",
    ]
    node = node_lines("_op.node()", ["_plain = 2", *edge_lines(operand, "_e"), *several_edges_lines(["_e"])], fill, "1")
    return [
        "if plan.recorded:",
        f"    if {operand}._view is not None:",
        f"        _refresh({operand})",
        f"    if {operand}._rg:",
        "        if plan.recording is None:",
        f"            _op.record(({operand}, *plan.args), t, 2)",
        "        else:",
        *indented(node, 3),
    ]


@cache
def _known_maker(parameters: str, lines: tuple[str, ...], names: tuple[str, ...]) -> Callable[..., Any]:
    body = [f"def call({parameters}):", *indented(lines), "return call"]
    return compiled("known", ", ".join(names), body)


class _Known:
    """A public function whose calls are `known`: its plans, its long way, and the text of what stands before that."""

    def __init__(self, function: Callable[..., Any], key: str, plan: Callable[..., Any], takes: Sequence[str]):
        self.long, self.memo, self.plan, self.key = numpy_names(function), Memo(), plan, key
        ordered = [p for p in inspect.signature(function).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        self.names = [p.name for p in ordered]
        self.defaults = {p.name: p.default for p in ordered if p.default is not p.empty}
        self.read = list(takes) or self.names
        self.by = written("key", ", ".join(self.read), [f"return ({key},)"], __file__)

    def first(self, *args: Any) -> tuple[Any, Any]:
        """(the plan of a call whose like was not seen, None), or (None, the result)."""
        try:
            found = self.by(*args)
            usual = ordinary(*found)
        except AttributeError:  # no tensor, which the function says
            usual = False
        if usual:
            made = self.plan(False, *args)
            if made is not None:
                return self.memo.keep(found, made), None
        out = self.long(**dict(zip(self.read, args, strict=True)))
        if usual:
            made = self.plan(True, *args)
            if made is not None:
                self.memo.remember(found, made)
        return None, out

    def rest(self, values: Sequence[Any], options: dict[Any, Any]) -> Any:
        """A call with other arguments than the plans know; what is left out may come under another name."""
        defaults = self.defaults
        sent = {n: v for n, v in zip(self.names, values, strict=True) if n not in defaults or v is not defaults[n]}
        return self.long(*[sent.pop(n) for n in self.names if n not in defaults], **sent, **options)

    def lines(self, run: Callable[..., Any] | Sequence[str]) -> list[str]:
        """The text of the function."""
        given = ", ".join(self.read)
        others = [f"{n} is not _default_{n}" for n in self.names if n not in self.read]
        return [
            f"if {' or '.join(['_options', *others])}:",
            f"    return _rest(({', '.join(self.names)},), _options)",
            *look_up_lines(self.key + ","),
            "if plan is None:",
            f"    plan, out = _first({given})",
            "    if plan is None:",
            "        return out",
            *([f"return _run(plan, {given})"] if callable(run) else run),
        ]

    def parameters(self) -> str:
        """Its parameters; those that are passed by name only go on to the long way."""
        return ", ".join([f"{n}=_default_{n}" if n in self.defaults else n for n in self.names] + ["**_options"])


def known(
    key: str, plan: Callable[..., Any], run: Callable[..., Any] | Sequence[str], *, takes: Sequence[str] = (), **space: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator of a public function: a call whose like was seen runs its plan, and the function itself is not called.

    - key: what calls are known by, as text over the names of arguments: layouts of operands, and constants as they were written (with
      their class where 1, 1.0 and True are not the same).
    - plan(checked, *arguments): the plan of such a call; None where there is more to it. It is asked first with ``checked`` False, and
      must then be sure that nothing is to be refused; again with True when the function has gone through. Operands have plain layouts.
    - run: from (plan, *arguments) to the result, or the lines of text that do so.
    - takes: the arguments that key, plan and run know, by default all that can be given by position. With others the function itself is called.
    - space: what the text refers to.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        of = _Known(function, key, plan, takes)
        used = {"plans": of.memo.plans, "_first": of.first, "_rest": of.rest, "_run": run, **space}
        used.update({f"_default_{n}": d for n, d in of.defaults.items()})
        return wraps(function)(_known_maker(of.parameters(), tuple(of.lines(run)), tuple(used))(*used.values()))

    return decorate
