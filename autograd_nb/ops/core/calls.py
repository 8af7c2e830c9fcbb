"""The functions that users call for pointwise ops, and the methods that work in place, with the text of what is theirs; see `call_path`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dtypes import of_scalar, result_of
from ...errors import shorten
from ...graph.node import NODES, edge_lines, several_edges_lines, single_edge_lines, tensor_lines
from ...overriding import whole
from ...tensor import Tensor, make, wrap
from .call_path import generated, indented, look_up_lines, node_lines, saving_lines, unrecorded_lines  # fmt: skip
from .foreign import asked, foreign_among, is_foreign
from .marked import MARKED, computed_operand
from .numbers import number_argument, number_as
from .registry import OPS
from .scalars_first import legacy_options, scalars_first

if TYPE_CHECKING:
    from .pointwise import Pointwise

# ------------------------------------------------------------------------------------------------------------ text


def _kernel_lines(arrays: Sequence[str], operands: str) -> list[str]:
    """Return the lines that run the plan's kernel on ``arrays``; ``operands``: where numbers are among them, which may be too large."""
    given = ", ".join(arrays)
    lines = ["if plan.dims is None:", f"    plan.entry({given})", "else:", f"    plan.entry(plan.dims, {given})"]
    if not operands:
        return lines
    return ["try:", *indented(lines), "except OverflowError:", f"    return _op.run(_fitting(_op.name, ({operands})))"]


def _forward_lines(arrays: Sequence[str], operands: str) -> list[str]:
    """Return the lines that run a formula's plan on ``arrays``, and the end of a call outside the graph; ``operands``: see `_kernel_lines`."""
    return [
        "data = _allocate(plan.size, plan.carrier) if plan.big else _empty(plan.size, plan.carrier)",
        *_kernel_lines([*arrays, "data"], operands),
        *tensor_lines("plan.out"),
        *unrecorded_lines(),
    ]


#: saves what the kind of a spec says of the operands {0} and the result
_SAVE = "(_spec.kind.saver or _spec.kind.write_saver())(_node, ({0}), t)"


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
        lines += ["else:", "    " + _SAVE.format("input, other")]
    return lines


@cache
def pointwise_lines(n: int) -> list[str]:
    """Return the text of the public functions of ``n`` operands, one or two, of which the second may be a number."""
    several = n == 2
    given = "input, other" if several else "input"
    if several:
        edges = [f"_edge_kind = {NODES}", "_e = _f = None", "if mask & 1:", *indented(edge_lines("input", "_e"))]
        edges += ["if mask & 2:", *indented(edge_lines("other", "_f")), *several_edges_lines(["_e", "_f"])]
    else:
        edges = single_edge_lines("input")
    recorded = node_lines("_spec.node()", edges, ["_node.spec = _spec", "_save = _spec.save", *_saved_lines(several)], "1")
    run = [
        *(["b = other if number else other._data"] if several else []),  # not before there is a plan: batches show no memory
        *_forward_lines(["input._data", "b"] if several else ["input._data"], "input, other" if several else ""),
        "if _rules and plan.recorded:",
        *indented(_MASK_OF_TWO if several else _MASK_OF_ONE),
        "    if mask:",
        "        _spec = plan.specs[mask] or plan.spec(mask)",
        *indented(recorded, 2),
        "return t",
    ]
    return [
        *(_alpha_lines("_op.scaled(input, other, alpha, out=out)", options="{'out': out}") if several else []),
        "if out is not None:",
        f"    return (_op.into or _op.write_into(call))({given}, out=out)",
        *(_KIND_OF_SECOND if several else []),
        *look_up_lines("input._layout, k" if several else "input._layout", run, [f"return _first({given})"], _SECOND if several else ()),
    ]


@cache
def _into_lines(n: int) -> list[str]:
    """Return the text of the functions of ``n`` operands, one or two, that write into ``out``: at once where there is a plan and no more to it."""
    names = ["input", "other"][:n]
    tensors = ["input", *["(input if number else other)"] * (n - 1)]
    grown = "".join(f" or len({x}._version_) > 2" for x in tensors)
    shared = "".join(f" or version is {x}._version_" for x in tensors)
    recorded = "".join(f" or {x}._rg or {x}._view is not None" for x in tensors)
    long = f"return _long({', '.join(names)}, out=out)"
    run = [
        "if out.__class__ is not _Tensor:", f"    {long}",
        "data, version = out._data, out._version_",
        f"if out._layout is not plan.out or len(data) != plan.size or version[0] < 0 or _state.inference{shared} or (",
        f"    _several_lists and (len(version) > 2{grown})",
        f") or (_state.grad and (out._rg or out._view is not None{recorded})):",
        f"    {long}",
        "try:",
        *indented(_kernel_lines(["input._data", *["other if number else other._data"] * (n - 1), "data"], "")),
        "except OverflowError:",
        f"    {long}",
        "version[0] += 1",
        "return out",
    ]
    look_up = look_up_lines("input._layout, k" if n == 2 else "input._layout", run, [long], _SECOND if n == 2 else ())
    return [*(_KIND_OF_SECOND if n == 2 else []), *look_up]


def into_call(op: Pointwise, long: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of one or two operands and ``out=``; ``long`` is asked where there is more to it."""
    n = len(op.params)
    return generated("into", "input, other, *, out" if n == 2 else "input, *, out", _into_lines(n), True, plans=op.memo.plans, _long=long)


def kind_lines(operands: Sequence[str]) -> list[str]:
    """Return the lines that set, for each operand x, ``n_x``: whether it is a number, and ``k_x``: what plans know it by, if it is one."""
    return [line for x in operands for line in (f"k_{x} = {x}.__class__", f"n_{x} = k_{x} is float or k_{x} is int")]


def layout_lines(operands: Sequence[str]) -> list[str]:
    """Return the lines that set ``k_x`` for each operand that is no number."""
    return [line for x in operands for line in (f"if not n_{x}:", f"    k_{x} = {x}._layout")]


def _derived_edges(operands: Mapping[str, bool], number: Callable[[str], str]) -> list[str]:
    """Return the lines that set ``mask`` and an edge ``_e_x`` for each operand: whether it has a derivative. ``number``: the test that x is none."""
    lines = ["mask = 0", f"_edge_kind = {NODES}"]
    for bit, (x, derived) in enumerate(operands.items()):
        lines.append(f"_e_{x} = None")
        if derived:
            edge = [f"if {x}._view is not None:", f"    _refresh({x})", f"if {x}._rg:", f"    mask |= {1 << bit}", *indented(edge_lines(x, f"_e_{x}"))]
            test = number(x)
            lines += [f"if {test}:", *indented(edge)] if test else edge
    return lines


def many_lines(operands: Mapping[str, bool], numbers: Sequence[str]) -> list[str]:
    """Return the lines that run the plan of an op of many ``operands``: whether each has a derivative. ``numbers``: which may be such, see `kind_lines`."""
    given = ", ".join(operands)
    recorded = node_lines(
        "_spec.node()", several_edges_lines([f"_e_{x}" for x in operands]), ["_node.spec = _spec", _SAVE.format(given)], "1"
    )  # fmt: skip
    return [
        *_forward_lines([f"{x} if n_{x} else {x}._data" if x in numbers else f"{x}._data" for x in operands], given),
        "if plan.recorded:",
        *indented(_derived_edges(operands, lambda x: f"not n_{x}" if x in numbers else "")),
        "    if mask:",
        "        _spec = plan.specs[mask] or plan.spec(mask)",
        *indented(recorded, 2),
        "return t",
    ]


@cache
def _call_of_many_lines(derived: tuple[bool, ...]) -> list[str]:
    """Return the text of the public functions of operands that may be tensors or numbers, and have a derivative or not."""
    names = {f"a{k}": rule for k, rule in enumerate(derived)}
    known = look_up_lines(
        ", ".join(f"k_{x}" for x in names), many_lines(names, (*names,)), ["return _first(args)"],
        [f"{', '.join(names)} = args", *kind_lines((*names,)), *layout_lines((*names,))],
    )  # fmt: skip
    return ["if out is not None:", "    return (_op.into or _op.write_into(call))(*args, out=out)", *known]


def _alpha_lines(call: str, suffix: str = "''", options: str = "{}") -> list[str]:
    """Return the beginning of an op that may be called with ``alpha=`` in front of its second operand, or as of old with alpha as its
    second operand and one more, ``legacy``; usual calls have neither.
    """
    return [
        "if legacy is not None or alpha is not None:",
        "    if legacy is not None:",
        f"        return _scalars_first(_op.name + {suffix}, (input, other, legacy), _legacy_options(alpha=alpha, **{options}))",
        "    if not (alpha.__class__ is int and alpha == 1):",
        "        plain = alpha.__class__ is float or (alpha.__class__ is int and input.__class__ is _Tensor and input._layout.dtype.category)",
        "        if _op.scaled is None or not plain or not -100 <= alpha <= 100:",
        f"            alpha = _alpha_of(_op, {suffix}, input, other, alpha)",
        f"        return {call}",
    ]


_KIND_OF_SECOND = ["k = other.__class__", "number = k is float or k is int"]
_SECOND = ["if not number:", "    k = other._layout"]
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
    "mask &= _rules",
]


@cache
def inplace_lines(n: int) -> list[str]:
    """Return the text of the in-place functions of ``n`` operands, one to three, all but the first of which may be numbers."""
    names = ["input", *_OTHERS[n]]
    others = list(enumerate(names[1:]))
    given = ", ".join(names)
    key = ["input._layout", *[f"k{k} if n{k} else {p}._layout" for k, p in others]]
    arrays = ["data", *[f"{p} if n{k} else {p}._data" for k, p in others]]
    aliased = "".join(  # memory of the target's, but not by the very same view
        f" or (not n{k} and {p} is not input and ({p}._version_ is version or (_several_lists and (len(version) > 2 or len({p}._version_) > 2) and "
        f"_same_storage({p}._version_, version))))"
        for k, p in others
    )
    asked = "".join(f" or (not n{k} and ({p}._rg or {p}._view is not None))" for k, p in others)
    needs = "".join(f" or (not n{k} and {p}.requires_grad)" for k, p in others)
    run = [
        "if len(data) != plan.size:", f"    plan.write({', '.join(arrays)})",
        "elif plan.reads:", f"    plan.entry({', '.join(arrays)})",
        "else:", f"    plan.entry({', '.join([*arrays[1:], 'data'])})",
    ]  # fmt: skip
    if n > 1:
        run = ["try:", *indented(run), "except OverflowError:", f"    return _op.inplace(_fitting(_op.name + '_', [{given}]))"]
    found = [
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
    return [
        *(_alpha_lines("_op.scaled.inplace(input, other, alpha)", "'_'") if n == 2 else []),
        *[line for k, p in others for line in (f"k{k} = {p}.__class__", f"n{k} = k{k} is float or k{k} is int")],
        *look_up_lines(", ".join(key), found, [f"return _first({given})"]),
    ]


@cache
def _inplace_node_lines(derived: tuple[bool, ...]) -> list[str]:
    """Return the text that records a write over the first operand, where the operands ``derived`` have a derivative."""
    names = [f"_a{k}" for k in range(len(derived))]
    lines = [
        f"{', '.join(names)}, = args",
        *_derived_edges(
            dict(zip(names, derived, strict=True)), lambda x: "" if x == names[0] else f"{x}.__class__ is not float and isinstance({x}, _Tensor)"
        ),
    ]
    edges = [f"_e_{x}" for x in names]
    fill = [
        "_save = _spec.save",
        "if _save & 1:",  # the old values are needed: a copy of them is kept
        "    args = _with_copy(args)",
        "    _spec = record.kept(_spec)",
        "_node.spec = _spec",
        "if not _save:",
        "    _node.saved = tuple([args[i] for i in _spec.scalar_names]) if _spec.scalar_names else ()",
        "    _node.versions = ()",
        "    _node.stamp = 0",
        "elif _save == 4 and not _spec.scalar_names:",
        "    _node.saved = (_a0._data,)",
        "    _node.versions = _a0._version_",
        "    _node.stamp = _a0._version_[0] + 1",
        "else:",
        "    _op.save(_node, args, _a0)",
        "    if _save & 4:",
        "        _node.stamp += 1",  # the output is the new contents
    ]
    return [
        *lines,
        "record = plan.record",
        "if not mask or not record.recorded:",
        "    return None",
        "_spec = record.specs[mask] or record.spec(mask)",
        *node_lines("_spec.node()", single_edge_lines("_a0") if len(names) == 1 else several_edges_lines(edges), fill, "3", ""),
        "return _node",
    ]


def _with_copy(args: Sequence[Any]) -> tuple[Any, ...]:
    x = args[0]
    return (make(x._data, x._layout, x._version_).clone(), *args[1:])


def inplace_recorder(op: Pointwise) -> Callable[..., Any]:
    """Return ``record(plan, args)``, which makes the node of a write over the first operand, called by what the user's function calls."""
    lines = _inplace_node_lines(tuple([r is not None for r in op.rules]))
    return generated("record", "plan, args", lines, True, _op=op, _with_copy=_with_copy)


#: the operands after the first of functions in place
_OTHERS = {1: (), 2: ("other",), 3: ("b", "c")}


def _alpha_of(op: Pointwise, suffix: str, input: Any, other: Any, alpha: Any) -> Any:
    """Return ``alpha`` as a number that the result's dtype has a place for, as every float near 0 is; TypeError where the op takes none."""
    name = op.name + suffix
    if op.scaled is None:
        raise TypeError(f"{name}() got an unexpected keyword argument 'alpha'")
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


# ------------------------------------------------------------------------------------------------------- functions


def _named(call: Callable[..., Any], name: str) -> Callable[..., Any]:
    call.__name__ = call.__qualname__ = name
    return call


def _pointwise_call(op: Pointwise, first: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of an op of one or two operands; ``first`` is asked where these have no plan yet."""
    n = len(op.params)
    call = generated(
        "call", "input, other, legacy=None, *, alpha=None, out=None" if n == 2 else "input, *, out=None", pointwise_lines(n), True, plans=op.memo.plans,
        _op=op, _rules=sum(1 << i for i, rule in enumerate(op.rules) if rule is not None), _first=first, _alpha_of=_alpha_of,
        _scalars_first=scalars_first, _legacy_options=legacy_options,
    )  # fmt: skip
    op.quick = op.quick or call
    return _named(call, op.name)


def unary_call(op: Pointwise) -> Callable[..., Any]:
    """Return the public function of an op of one operand."""

    def first(input: Any) -> Any:
        if not isinstance(input, Tensor) and not hasattr(input, "_decide"):
            if is_foreign(input) and op.name in OPS:
                return asked.redefined(OPS[op.name].call, (input,), {})
            only_tensors(op.name, input, None)
        return op.slow((input,)) if input.__class__ not in MARKED else call(computed_operand(input))

    call = _pointwise_call(op, first)
    return call


def of_array(other: Any, beside: Tensor, quotient: bool = False) -> Any:
    """Return a NumPy array of numbers as a tensor of the dtype that NumPy gives its result with the tensor ``beside`` it; all else as it is."""
    if not isinstance(other, np.ndarray) or other.dtype.kind not in "biufc":
        return other
    kind = other.dtype if beside.dtype.name == "bfloat16" else np.result_type(beside.dtype.np, other.dtype)
    if quotient and kind.kind in "biu":
        kind = np.dtype(np.float64)
    return wrap(other.astype(kind, copy=False))


def binary_call(op: Pointwise, operator: bool = False, arrays: bool = False) -> Callable[..., Any]:
    """Return the public function of an op of two operands; as an ``operator`` it leaves operands that are not ours to Python.

    arrays: whether the operator takes NumPy's arrays.
    """

    def first(input: Any, other: Any) -> Any:
        if not operator and (input.__class__ is float or input.__class__ is int) and isinstance(other, Tensor) and other.__class__ not in MARKED:
            only_tensors(op.name, input, other, op.numbers)
            return of_number(op)(input, other)
        if not (isinstance(input, Tensor) and isinstance(other, (Tensor, float, int))) and op.name in OPS and foreign_among((input, other)):
            return asked.redefined(OPS[op.name].call, (input, other), {})
        if operator and not acceptable(other):
            taken = of_array(other, input, op.name == "div") if arrays else other
            return NotImplemented if taken is other else op.slow((input, taken))
        if input.__class__ in MARKED or other.__class__ in MARKED:
            return call(computed_operand(input), computed_operand(other))
        only_tensors(op.name, input, other, "second" if operator else op.numbers)
        return op.slow((input, other))

    call = _pointwise_call(op, first)
    return call


def only_tensors(name: str, input: Any, other: Any, numbers: str = "none", second: str = "other") -> None:
    """Raise TypeError for a number where PyTorch takes a tensor.

    ``numbers``: which operands may be one: "none", "second", "either" (but one is a tensor) or "both".
    """
    first = isinstance(input, Tensor)
    if numbers == "both" or (first and (isinstance(other, Tensor) or (numbers != "none" and not isinstance(other, str)))):
        return
    if not first and numbers == "either" and isinstance(other, Tensor) and not isinstance(input, str):
        return
    which, value = (second, other) if first else ("input", input)
    remedy = "" if isinstance(value, str) or value is None else f"; use tensor({shorten(value)})"
    raise TypeError(f"{name}(): argument '{which}' must be Tensor, not {type(value).__name__} (got {shorten(value)}{remedy})")


def acceptable(other: Any) -> bool:
    """Return whether a binary operator takes this operand, or leaves it to the operand's own method."""
    if isinstance(other, (Tensor, int, float, complex)):
        return True
    return hasattr(other, "__array__") and not isinstance(other, np.ndarray)  # NumPy comes back with a tensor made of it


def operator_of(call: Callable[..., Any], arrays: bool = False) -> Callable[..., Any]:
    """Return a two-operand op's function as an operator method; see `binary_call`."""
    method = binary_call(call.op, True, arrays)  # type: ignore[attr-defined]
    method.op = call.op  # type: ignore[attr-defined]
    return method


def _counted(op: Pointwise, args: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(args) != len(op.params):
        raise TypeError(f"{op.name}() takes {len(op.params)} arguments ({', '.join(op.params)}) but got {len(args)}")
    return args


@cache
def of_number(op: Pointwise) -> Callable[..., Any]:
    """Return the function of an op of two operands for a number and a tensor."""
    return call_of_many(op)


def call_of_many(op: Pointwise) -> Callable[..., Any]:
    """Return the function of an op of operands that are all tensors or numbers, the public one of three operands or more."""

    def first(args: tuple[Any, ...]) -> Any:
        return op.slow(_counted(op, args))

    lines = _call_of_many_lines(tuple([rule is not None for rule in op.rules]))
    return _named(generated("call", "*args, out=None", lines, True, plans=op.memo.plans, _op=op, _first=first), op.name)


def inplace_call(op: Pointwise, operator: bool = False) -> Callable[..., Any]:
    """Return the function ``<name>_`` of an op; as an ``operator`` it leaves operands that are not ours to Python."""
    n = len(op.params)

    def first(*args: Any) -> Any:
        if operator and not (acceptable(args[1]) or is_foreign(args[1])):
            return NotImplemented
        if n == 2 and op.numbers == "none":
            only_tensors(op.name + "_", *args)
        return op.inplace(args)

    if n <= 3:
        parameters = ", ".join(["input", *_OTHERS[n], *(["legacy=None", "*", "alpha=None"] if n == 2 else [])])
        call = generated(
            "call", parameters, inplace_lines(n), True, plans=op.inplace_memo.plans, _op=op, _first=first, _alpha_of=_alpha_of,
            _scalars_first=scalars_first, _legacy_options=legacy_options,
        )  # fmt: skip
    else:
        call = lambda *args: op.inplace(_counted(op, args))
    call.__doc__ = f"Compute `{op.name}` in place and return the tensor."
    return _named(whole(call), op.name + "_")
