"""What every entry of the reference has to answer: what it refuses, and what its derivative is.

An entry's docstring says it, or a rule of its kind of op, or what was observed in its example (`observe`, `refuse`), or another entry that it
is a form of. `without` counts the entries that answer neither way, which `tests/test_reference.py` allows to a short list only.
"""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any

import observe
import refuse
import walk

from autograd_nb.ops.core.pointwise import Pointwise
from autograd_nb.ops.core.reduction import ReductionOp
from autograd_nb.ops.core.registry import OPS, node_name

#: how docstrings say what is refused, and what a derivative is
ERRORS = re.compile(r"\b(Errors?|Raises):|[A-Z]\w*Error\b|\brefused\b")
DERIVATIVE = re.compile(
    r"\bd\w+\(?\w*\)?/d\w|∂|[Dd]erivative|(?<!requires_)(?<!\.)\b[Gg]radients?\b|\bd[A-Za-z]\w*(\[\w\])? (=|gathers?|scatters?)\b|\bd[A-Za-z]\w* = "
)
#: how they say that a function is another's form
FORM = re.compile(
    r"^(?:Return |Compute |Do |Call |Clip as |Pack |Fill |The )?\(?(?:what |the |the old name of |old name of )?`(?:torch\.)?(?P<first>[\w.]+)`"
    r"|(?:older form of|old name of|old name is|as|the inverse of|see) `(?:torch\.)?(?P<later>[\w.]+)`"
)


def form_of(entry: walk.Entry) -> walk.Entry | None:
    """Return the entry of which this one is a form, as the first sentence of its docstring says; None of others."""
    found = FORM.search(" ".join(entry.text.split("\n\n")[0].split()))
    if found is None:
        return None
    name = found["first"] or found["later"]
    other = by_name().get(f"autograd_nb.{name}") or by_short().get(name)
    return other if other is not None and other.thing is not entry.thing else None


@cache
def by_name() -> dict[str, walk.Entry]:
    """Return the entries by all their names."""
    return {name: entry for entry in reversed(walk.entries()) for name in (*entry.also, entry.name)}


@cache
def by_short() -> dict[str, walk.Entry]:
    """Return the entries by the last part of their names; of several, the first."""
    return {entry.name.rsplit(".", 1)[-1]: entry for entry in reversed(walk.entries())}


def _takes_something(entry: walk.Entry) -> bool:
    """Return whether there is an argument that could be wrong."""
    try:
        names = list(inspect.signature(entry.thing).parameters)
    except (TypeError, ValueError):
        return True
    method = any(name.startswith("autograd_nb.Tensor.") for name in (entry.name, *entry.also))
    return bool(set(names[method:]) - {"memory_format", "non_blocking"})


def rules(name: str) -> dict[str, str]:
    """Return what holds for an op because of its kind: of shapes, and of what is refused (`tests/test_reference.py` tries all of it)."""
    rule = OPS[name].rule
    if isinstance(rule, Pointwise):
        if len(rule.params) == 1:
            return {"Shapes": "the operand's", "Errors": "TypeError for what is no tensor"}
        return {"Shapes": "operands are broadcast to one shape, the result's", "Errors": "RuntimeError for shapes that cannot be broadcast"}
    if isinstance(rule, ReductionOp):
        kept = "; ``keepdim`` keeps them, of size 1" if "keepdim" in inspect.signature(OPS[name].call).parameters else ""
        shapes = f"the operand's without the dims of ``dim`` (all of them if it is None){kept}"
        return {"Shapes": shapes, "Errors": "IndexError for a ``dim`` that there is not"}
    return {}


def errors(entry: walk.Entry) -> dict[str, str]:
    """Return what an entry refuses beside what its docstring says: fields of the reference, none where nothing is known."""
    out = {}
    if entry.op and "Errors" in rules(entry.op) and not ERRORS.search(entry.text):
        out["Errors"] = rules(entry.op)["Errors"]
    listed = refuse.written().get(entry.name)
    if listed:
        out["Refused, for example"] = "; ".join(f"{_wrong(called, text)}: {kind}, “{_plain(says)}”" for called, text, kind, says in listed)
    elif not out and not ERRORS.search(entry.text):
        other = form_of(entry)
        if other is not None:
            out["Errors"] = f"those of :py:obj:`{other.name.removeprefix('autograd_nb.')} <{other.name}>`"
        elif not _takes_something(entry):
            out["Errors"] = "none; there is no argument that could be wrong"
        elif (function := _function_of(entry)) is not None:
            out["Errors"] = f"those of :py:obj:`{function.name.removeprefix('autograd_nb.')} <{function.name}>`"
    return out


def _function_of(entry: walk.Entry) -> walk.Entry | None:
    """Return the entry of the function that a class of modules calls: of ``MaxPool2d`` `max_pool2d`; of ``LazyConv2d`` the class that it becomes."""
    if not isinstance(entry.thing, type) or not entry.page.startswith("nn/"):
        return None
    name = entry.thing.__name__
    if name.startswith("Lazy"):
        return by_short().get(name.removeprefix("Lazy"))
    return by_short().get(re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower())


def _wrong(called: str, text: str) -> str:
    """Return what was wrong with an argument, as a reader says it."""
    return f"``{called}`` {text}" if text.startswith("of ") else f"``{called}={text}``" if text else called if called == refuse.ALONE else f"``{called}``"


def _plain(text: str) -> str:
    """Return a message as it can stand in a page: what is markup there is escaped."""
    return re.sub(r"([\\*`|_])", r"\\\1", text)


# ---- derivatives
@cache
def owners() -> dict[str, walk.Entry]:
    """Return the entries whose docstrings tell the derivative of a node, by the node's name: of several the one whose example records least."""
    found: dict[str, tuple[int, walk.Entry]] = {}
    ops = walk.op_entries()
    for name, entry in ops.items():
        if not told(entry):
            continue
        own = node_name(name.rsplit(".", 1)[-1])
        nodes = [*(observe.written().get(name, {}).get("nodes") or []), own]
        for node in nodes:
            cost = 0 if node == own else len(nodes)
            if node not in found or found[node][0] > cost:
                found[node] = (cost, entry)
    return {node: entry for node, (_, entry) in found.items()}


def told(entry: walk.Entry) -> bool:
    """Return whether an op's docstring or its declaration tells its derivative."""
    return bool(DERIVATIVE.search(entry.text.split(">>>")[0])) or (bool(entry.op) and isinstance(OPS[entry.op].rule, Pointwise) and bool(_declared(entry)))


@cache
def _lambdas(path: str) -> list[ast.Lambda]:
    return [node for node in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8"))) if isinstance(node, ast.Lambda)]


def _text(function: Any) -> str:
    """Return what a lambda of a declaration gives, as it is written; "" for what is no lambda."""
    if getattr(function, "__name__", "") != "<lambda>":
        return ""
    code = function.__code__
    places = {(line, column) for line, _, column, _ in code.co_positions() if column}
    for node in _lambdas(code.co_filename):
        within = (node.body.lineno, node.body.col_offset) in places or any(
            (n.lineno, n.col_offset) in places for n in ast.walk(node.body) if isinstance(n, ast.expr)
        )
        if node.lineno == code.co_firstlineno and within and [a.arg for a in node.args.args] == list(code.co_varnames[: code.co_argcount]):
            return ast.unparse(node.body)
    return ""


def _declared(entry: walk.Entry) -> str:
    """Return the derivatives of a pointwise op as it declares them: a factor of the incoming gradient, or with ``g`` the whole."""
    rule = OPS[entry.op].rule
    texts = {param: _text(function) for param, function in zip(rule.params, rule.given, strict=False)}
    said = "; ".join(f"by ``{param}``: ``{text}``" for param, text in texts.items() if text)
    other = [name for name in texts if name not in inspect.signature(OPS[entry.op].call).parameters and name != "self"]
    return f"{', '.join(f'``{name}``' for name in texts)} being the operands, {said}" if said and other else said


def derivative(entry: walk.Entry) -> str:
    """Return the derivative of an op where its docstring does not say it; "" where there is nothing to say."""
    if not entry.op or DERIVATIVE.search(entry.text.split(">>>")[0]) or not OPS[entry.op].differentiable:
        return ""
    if isinstance(OPS[entry.op].rule, Pointwise) and (said := _declared(entry)):
        return said
    seen = observe.written().get(entry.op, {})
    nodes = seen.get("nodes")
    if "none" in seen:
        return f"none; no {seen['none']} is a tensor"
    if seen.get("same"):
        return "the gradient itself, as the result is the operand"
    if nodes == []:
        return "none; nothing is recorded"
    if seen and nodes is None:
        return "none; integers have none"
    if nodes and all(node in owners() for node in nodes):
        through = dict.fromkeys(owners()[node].name for node in nodes)
        return "by the chain rule, through " + ", ".join(f":py:obj:`{name.removeprefix('autograd_nb.')} <{name}>`" for name in through)
    other = form_of(entry)
    if entry.text.startswith("Raise "):
        return "none; it only raises"
    return f"that of :py:obj:`{other.name.removeprefix('autograd_nb.')} <{other.name}>`" if other is not None and other.op else ""


def without() -> tuple[set[str], set[str]]:
    """Return the names of the entries that do not say what they refuse, and of the ops that do not say their derivative."""
    entries = [e for e in walk.entries() if not isinstance(e.thing, property) and not e.page.endswith("answers")]
    called = [e for e in entries if not isinstance(e.thing, type) or (e.page.startswith("nn/") and not e.text.startswith("The base"))]
    no_errors = {e.name for e in called if not ERRORS.search(e.text) and not errors(e)}
    ops = [e for e in entries if e.op and OPS[e.op].differentiable and not DERIVATIVE.search(e.text.split(">>>")[0])]
    return no_errors, {e.name for e in ops if not derivative(e)}
