"""The path of a call whose like was seen before, written out as text for each kind of op.

A call is known by the layouts of its operands and by its other arguments as they were written. Where its like was seen, one
lookup finds a *plan*; the plan's kernel runs on new memory, a tensor is made around it, and where something requires grad a node is
written. All that is done for each of millions of calls, so it is one function without loops or further calls, which is put together here:

- `generated` makes functions of text;
- `shortcut` writes a function that looks up the plan of a call and runs it, with another for calls whose like was not seen; what users call
  is compiled when they do;
- `known`, a decorator, is this for ops whose arguments are known by name, `planned` for what makes a plan and is no call of its own,
  `calls` for ops of formulas;
- `node_lines` is the writer of nodes, which all of them and `recorders` share; `write_node` is the same as a function.

Plans are found and kept by `memo`, of which there is one for all kinds of calls.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from functools import cache, cached_property, wraps
from types import FunctionType
from typing import Any

import numpy as np

from ... import launch
from ...dtypes import dtype
from ...graph.modes import state
from ...graph.node import FINISHING, NODES, Output, edge_lines, finishing, several_edges_lines, tensor_lines, written
from ...graph.versions import SEVERAL_LISTS, same_storage
from ...shapes import Size
from ...tensor import Tensor, blank, refresh
from .foreign import asked, foreign_among
from .history import rewrite_history
from .marked import MARKED, computed_operand
from .memo import Memo, ordinary
from .numbers import bool_argument
from .recording import fitting, mark_inference, refuse_inference
from .registry import flags_of, numpy_names, parameters_of
from .repeated import repeated


def _without_lists(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a key with what can be one in the place of lists."""
    return tuple([(list, *a) if a.__class__ is list else a for a in key])


#: what the texts call
NAMES: dict[str, Any] = {
    "_new": blank, "_state": state, "_empty": np.empty, "_allocate": launch.empty, "_refresh": refresh, "_Output": Output,
    "_mark_inference": mark_inference, "_refuse_inference": refuse_inference, "_rewrite_history": rewrite_history,
    "_fitting": fitting, "_several_lists": SEVERAL_LISTS, "_same_storage": same_storage,
    "_Tensor": Tensor, "_Size": Size, "_dtype": dtype, "_are_ints": frozenset((int,)).issuperset,
    "_without_lists": _without_lists, **FINISHING,
}  # fmt: skip


def indented(lines: Sequence[str], by: int = 1) -> list[str]:
    """Return the lines further to the right."""
    return ["    " * by + line for line in lines]


@cache
def _maker(name: str, parameters: str, lines: tuple[str, ...], names: tuple[str, ...]) -> Callable[..., Any]:
    text = [f"def {name}({parameters}):", *indented(lines), f"return {name}"]
    return written("make", ", ".join(names), text, __file__, **NAMES)  # type: ignore[no-any-return]


def generated(name: str, parameters: str, lines: Sequence[str], many: bool = False, **names: Any) -> Callable[..., Any]:
    """Return the function of this text, which calls `NAMES` and ``names``.

    many: it is one of many functions with the same text, which is compiled once for all; of one alone ``names`` are found quicker.
    """
    if many:
        return _maker(name, parameters, tuple(lines), tuple(names))(*names.values())  # type: ignore[no-any-return]
    return written(name, parameters, list(lines), __file__, **NAMES, **names)  # type: ignore[no-any-return]


def _first_call(*args: Any, **options: Any) -> Any:
    return _write()(*args, **options)  # type: ignore[name-defined] # noqa: F821 (each has its own)


def generated_later(function: Callable[..., Any], parameters: str, lines: Callable[[], list[str]], **names: Any) -> Callable[..., Any]:
    """Return the function of the text that ``lines`` gives, to be called in the place of ``function``, whose name and signature it has.

    The text is written at the first call: a program calls few of the functions that there are.
    """
    space = {"__builtins__": builtins, **NAMES, **names}  # where C code that imports something looks for the function to do so
    call = FunctionType(_first_call.__code__, space)

    def write() -> Callable[..., Any]:
        made = written("call", parameters, lines(), __file__, **space)
        call.__defaults__, call.__kwdefaults__, call.__code__ = made.__defaults__, made.__kwdefaults__, made.__code__
        return call

    space["_write"] = write
    wraps(function)(call)
    call.written = True  # type: ignore[attr-defined]
    return call


# ------------------------------------------------------------------------------------------------------ look-ups


def look_up_lines(key: str, run: Sequence[str], miss: Sequence[str], before: Sequence[str] = ()) -> list[str]:
    """Return the lines that set ``plan`` to that of calls like this one, and what follows; see `shortcut`."""
    return [
        "try:",
        *indented(before),
        f"    plan = plans[{key}]",
        "except KeyError:",
        "    plan = None",  # what the function raises is not raised in here
        "except (TypeError, ValueError, AttributeError):",
        "    plan = key = None",
        "if plan is None:",
        *indented(miss),
        *run,
    ]


def shortcut(
    parameters: str, key: str, run: Sequence[str], miss: Sequence[str], *, memo: Memo, name: str = "call", first: Sequence[str] = (),
    before: Sequence[str] = (), function: Callable[..., Any] | None = None, **space: Any,
) -> Callable[..., Any]:  # fmt: skip
    """Return a function that runs the plan of calls like those that were seen.

    - key: what a call is known by, as text over the ``parameters`` and what the lines ``before`` set; what they raise means that there
      is none. ``key``, if that is made before, is None then.
    - run: the lines that make the result of ``plan``.
    - miss: what becomes of other calls: lines that return a result, or set a ``plan`` for ``run``. They keep it in ``memo``.
    - first: what is done before all that.
    - function: what users know it as, if it is called by them, see `generated_later`.
    - space: what the text refers to.
    """

    def lines() -> list[str]:
        return [*first, *look_up_lines(key, run, miss, before)]

    if function is None:
        return generated(name, parameters, lines(), plans=memo.plans, **space)
    return generated_later(function, parameters, lines, plans=memo.plans, **space)


def planned(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: what a function makes of layouts and constants, which is made once. It is called by position."""
    names, memo = ", ".join(parameters_of(function)), Memo()
    miss = [f"return _keep(({names},), _make({names}))"]
    return shortcut(names, names + ",", ["return plan"], miss, memo=memo, function=function, _keep=memo.keep, _make=function)


def written_lines(args: str, numbers: bool = False) -> list[str]:
    """Return the lines that set ``key``, which tells the arguments in the tuple of that name from all others.

    It tells them also from those that are equal to them: 1.0 and True are keys of 1 too.

    TypeError where they do not tell by themselves what they ask for: tensors, whose values may change, what must be converted, and
    zeros that have a sign. ``numbers``: floats and bools may be among them.
    """
    equal = [
        "elif kind is float:",
        "    if a.is_integer():",  # no other is equal to an int
        "        if not a:",
        "            raise TypeError",
        "        key += (n, kind)",
        "elif kind is bool:",
        "    key += (n, kind)",
    ]
    return [
        f"key{', n' if numbers else ''} = {args}{', 0' if numbers else ''}",
        f"for a in {args}:",
        *(["    n += 1"] if numbers else []),
        "    kind = a.__class__",
        "    if kind is int or kind is _Size:",
        "        continue",
        "    if kind is tuple:",
        "        if not _are_ints(map(type, a)):",
        "            raise TypeError",
        "    elif kind is list and _are_ints(map(type, a)):",
        "        key = _without_lists(key)",
        *(indented(equal) if numbers else []),
        "    elif a is not None and kind is not _dtype:",
        "        raise TypeError",
    ]


# ------------------------------------------------------------------------------------------------- pieces of text


def saving_lines(arrays: Sequence[str], counters: Sequence[str], fresh: int = 0, alone: bool = True) -> list[str]:
    """Write the lines that save what a node keeps: ``arrays`` as they stand, with the counters under which they were saved, the
    last ``fresh`` of which are new.

    ``alone``: a single counter stands without a tuple around it, and what keeps nothing has an empty one.
    """
    names = [f"_v{k}" for k in range(len(counters))]
    old = names[: len(names) - fresh]
    lines = [f"{v} = {c}" for v, c in zip(names, counters, strict=True)]
    if old:
        lines += ["if " + " or ".join(f"{v}[0] < 0" for v in old) + ":", "    _refuse_inference(_node.edges)"]
    return [
        *lines,
        f"_node.saved = ({''.join(a + ', ' for a in arrays)})" if arrays or alone else "_node.saved = None",
        "_node.versions = " + (names[0] if alone and len(names) == 1 else f"({''.join(v + ', ' for v in names)})"),
        "_node.stamp = " + (" + ".join(f"{v}[0]" for v in old) or "0"),
    ]


def node_lines(make: str, edges: Sequence[str], fill: Sequence[str], depth: str, out: str = "t") -> list[str]:
    """Return the lines of a node: made, given its ``edges``, filled by its kind's lines, finished; the history of ``out``, where that is named."""
    history = [f"{out}._edge = _node", f"{out}._rg = True"] if out else []
    return [f"_node = {make}", *edges, *fill, *finishing("_node", depth), *history]


def unrecorded_lines() -> list[str]:
    """Return the lines of the end of a call outside the graph."""
    return ["if not _state.grad:", "    if _state.inference:", "        _mark_inference(t)", "    return t"]


#: what a node of a structured op that saves nothing is given
_NOTHING_SAVED = [
    "_node.recording, _node.values, _node.out_layout = recording, values, out_layout",
    "_node.saved, _node.versions, _node.stamp = None, (), 0",
]

#: write_node(x, node_class, recording, values, out_layout, depth): the node of a structured op of ``x`` that saves nothing
write_node = generated(
    "write_node", "x, node_class, recording, values, out_layout, depth",
    [
        *node_lines(
            "node_class()", [f"_edge_kind = {NODES}", *edge_lines("x", "_e"), *several_edges_lines(["_e"])], _NOTHING_SAVED, "depth", ""
        ),
        "return _node",
    ],
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------- ops


def result_lines(entry: str, recorded: Sequence[str]) -> list[str]:
    """Return the lines that run a plan's one kernel on new memory; ``entry``: its call, ``recorded``: what follows where calls are recorded."""
    return [
        "data = _empty(plan.size, plan.carrier)",
        entry,
        *tensor_lines("plan.layout"),
        *unrecorded_lines(),
        *recorded,
        "return t",
    ]


def recorded_lines(operands: Sequence[str], args: str, op: str = "_op") -> list[str]:
    """Return the lines that write the result's history as a structured op writes it, where one of the operands may have one."""
    some = " or ".join([f"{p}._rg" for p in operands] + [f"{p}._view is not None" for p in operands])
    return [f"if {some}:", f"    {op}.record(({args}), t, 2)"]


def unsaved_lines(operand: str) -> list[str]:
    """Return the lines that do the same for an op of one operand that saves nothing, where the plan says so."""
    fill = [
        "_node.recording, _node.values, _node.out_layout = plan.recording, plan.values, plan.layout",
        "_node.saved, _node.versions, _node.stamp = None, (), 0",
    ]
    node = node_lines("_op.node()", [f"_edge_kind = {NODES}", *edge_lines(operand, "_e"), *several_edges_lines(["_e"])], fill, "1")
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


_ABSENT: Any = object()  #: stands for what is not given by its own name, as it may come by NumPy's
_OURS: frozenset[type] = frozenset((Tensor, int, float, bool, str, type(None)))  #: among which there is no object of another library
_NONE: Any = object()  #: the plan of calls that have none, and go the long way


class _Known:
    """A public function whose calls are `known`: its plans, its long way, and the text of what stands before that."""

    public: Callable[..., Any]  #: as users know it

    def __init__(self, function: Any, key: str, plan: Callable[..., Any], takes: Sequence[str], reads: bool):
        self.reads = reads
        self.long, self.memo, self.plan, self.key = repeated(numpy_names(function, everywhere=True)), Memo(), plan, key
        assert not hasattr(function, "__wrapped__")
        code = function.__code__
        self.names = list(code.co_varnames[: code.co_argcount])
        self.by_name = frozenset(code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount])
        given = function.__defaults__ or ()
        self.defaults = dict(zip(self.names[len(self.names) - len(given) :], given, strict=True))
        self.read = list(takes) or self.names
        self.by_place = next((n for n in range(len(self.read)) if self.read[n] != self.names[n]), len(self.read))  # as many by place
        self.open = [n for n in self.names if n not in self.defaults]
        self.name, self.flags = function.__name__.removeprefix("_f_"), flags_of(function).keys() & set(self.read)
        self.function = function

    @cached_property
    def key_of(self) -> Callable[..., Any]:
        """Return the function from a call's arguments to what it is known by."""
        return generated("key_of", ", ".join(self.read), [f"return ({self.key},)"])

    def first(self, *args: Any) -> tuple[Any, Any]:
        """Return (the plan of a call whose like was not seen, None), or (None, the result)."""
        if self.open:
            for a in args:
                if a is _ABSENT:
                    return None, self.long(**{n: a for n, a in zip(self.read, args, strict=True) if a is not _ABSENT})
        usual = False
        try:
            found = self.key_of(*args)
            usual = ordinary(*found)
        except AttributeError:  # no tensor, which the function says
            if foreign_among(args):
                return None, asked.redefined(self.public, *self.sent(self.read, args))
        except TypeError:  # what is no key
            pass
        if not usual and self.reads and any(a.__class__ in MARKED for a in args):
            return None, self.public(*[computed_operand(a) for a in args])
        if usual:
            made = self.plan(False, *args)
            if made is not None:
                return self.memo.keep(found, made), None
        n = self.by_place
        out = self.long(*args[:n], **dict(zip(self.read[n:], args[n:], strict=True)))
        if usual:
            made = self.plan(True, *args)
            self.memo.remember(found, _NONE if made is None else made)
        return None, out

    def slow(self, values: Sequence[Any], options: dict[Any, Any]) -> Any:
        """Return the result of a call with other arguments than the plans know; what is left out may come under another name."""
        for v in values:
            if v.__class__ not in _OURS:
                break
        else:
            for n, v in options.items():
                if v.__class__ not in _OURS or n not in self.by_name:
                    break
            else:
                return self.long(*values, **options)
        args, sent = self.sent(self.names, values)
        if foreign_among(args):
            return asked.redefined(self.public, args, sent | options)
        return self.long(*args, **sent, **options)

    def sent(self, names: Sequence[str], values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a call by position, and those by name that are not left at their defaults."""
        defaults = self.defaults
        given = {n: v for n, v in zip(names, values, strict=True) if n not in defaults or v is not defaults[n]}
        if self.open and any(v is _ABSENT for v in values):
            return (), {n: v for n, v in given.items() if v is not _ABSENT}
        return tuple([given.pop(n) for n in names if n not in defaults]), given

    def call(self, run: Callable[..., Any] | Sequence[str], space: dict[str, Any]) -> Callable[..., Any]:
        """Return the public function; parameters that are passed by name only go on to the long way."""
        optional = {**dict.fromkeys(self.open, _ABSENT), **self.defaults}
        parameters = ", ".join([f"{n}=_default_{n}" if n in optional else n for n in self.names] + ["**_options"])
        given = ", ".join(self.read)
        passed = ", ".join([*self.read[: self.by_place], *[f"{n}={n}" for n in self.read[self.by_place :]]])
        others = [f"{n} is not _default_{n}" for n in self.names if n not in self.read]
        only_out = ["len(_options) == 1", "_options.get('out').__class__ is _Tensor", *[f"{n} is _default_{n}" for n in self.names if n not in self.read]]
        only_out += [f"{n} is not _default_{n}" for n in self.open]
        flags = [f"if {n} is not False and {n} is not True: _flag({n}, _name, {n!r})" for n in sorted(self.flags)]
        return shortcut(
            parameters, self.key + ",",
            ["if plan is _NONE:", f"    return _whole({passed})", *([f"return _run(plan, {given})"] if callable(run) else run)],
            [f"plan, out = _first({given})", "if plan is None:", "    return out"], memo=self.memo, function=self.function,
            first=[
                f"if {' or '.join(['_options', *others])}:",
                f"    if {' and '.join(only_out)}:", f"        return _whole({passed}, **_options)",
                f"    return _slow(({', '.join(self.names)},), _options)", *flags,
            ],
            _flag=bool_argument, _name=self.name,
            _first=self.first, _slow=self.slow, _whole=self.long, _NONE=_NONE, _run=run, **space, **{f"_default_{n}": d for n, d in optional.items()},
        )  # fmt: skip


def known(
    key: str, plan: Callable[..., Any], run: Callable[..., Any] | Sequence[str], *, takes: Sequence[str] = (),
    public: Callable[..., Any] | None = None, reads: bool = False, **space: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator of a public function: a call whose like was seen runs its plan, and the function itself is not called.

    - key: what calls are known by, as text over the names of arguments: layouts of operands, and constants as they were written (with
      their class where 1, 1.0 and True are not the same).
    - plan(checked, *arguments): the plan of such a call; None where there is more to it. It is asked first with ``checked`` False, and
      must then be sure that nothing is to be refused; again with True when the function has gone through. Operands have plain layouts.
    - run: from (plan, *arguments) to the result, or the lines of text that do so.
    - takes: the arguments that key, plan and run know, by default all that can be given by position. With others the function itself is called.
    - public: what other classes' ``__torch_function__`` is asked for, if not the function itself: that of an operator.
    - reads: whether all arguments are by place, and operands that are read only: those that show conjugates are computed before all else.
    - space: what the text refers to.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        made = _Known(function, key, plan, takes, reads)
        call = made.call(run, space)
        made.public = public or call
        return call

    return decorate
