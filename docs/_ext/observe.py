"""Observe what ops do in the examples of their docstrings: which shapes give which, and what is recorded for a backward pass.

``python docs/_ext/observe.py`` writes it to `observed.json`, from which `reference` tells it; `tests/test_reference.py` observes it again.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import inspect
import io
import json
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import autograd_nb as torch
from autograd_nb.ops.core.registry import OPS

FILE = Path(__file__).parent / "observed.json"


def _calls(source: str, name: str) -> list[ast.Call]:
    """Return the calls of a function or method of this name."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [n for n in nodes if (isinstance(n.func, ast.Attribute) and n.func.attr == name) or (isinstance(n.func, ast.Name) and n.func.id == name)]


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "example", "eval"), names)


def _tensors(value: Any) -> list[Any]:
    """Return the tensors in a value, and in its lists and tuples."""
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for part in value for t in _tensors(part)] if isinstance(value, (list, tuple)) else []


def _watched(value: Any) -> Any:
    """Return the value with tensors that require gradients, where they can."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_() if value.is_floating_point() or value.is_complex() else value
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(map(_watched, value))
    return value


def _nodes(results: list[Any]) -> list[str]:
    """Return the names of the nodes that lead to results, the last first."""
    found: list[str] = []
    todo, seen = [r.grad_fn for r in results if r.grad_fn is not None], set()
    while todo:
        node = todo.pop(0)
        if node not in seen:
            seen.add(node)
            if node.name() not in found and "AccumulateGrad" not in node.name():
                found.append(node.name())
            todo += [n for n, _ in node.next_functions if n is not None]
    return found


def _shape(tensor: Any) -> str:
    return str(list(tensor.shape))


def of_call(op: Any, call: ast.Call, names: dict[str, Any]) -> dict[str, Any] | None:
    """Return what a call in an example shows: shapes of operands and results, and the nodes that were recorded, or that
    the results are the operands themselves. None where it shows nothing."""
    args = [_value(a.value if isinstance(a, ast.Starred) else a, names) for a in call.args]
    if any(isinstance(a, ast.Starred) for a in call.args):
        return None
    options = {k.arg: _value(k.value, names) for k in call.keywords if k.arg}
    receiver = _value(call.func.value, names) if isinstance(call.func, ast.Attribute) else None
    if isinstance(receiver, torch.Tensor):
        args.insert(0, receiver)
    given = _tensors([*args, *options.values()])
    if "out" in options:
        return None
    with torch.enable_grad():
        result = op.call(*map(_watched, args), **{k: _watched(v) for k, v in options.items()})
    results = _tensors(result)
    if not given or not results:
        return {"none": "result" if given else "operand"}
    watched = any(t.is_floating_point() or t.is_complex() for t in given)
    if not watched and op.differentiable:  # an example with integers, which many ops are shown with
        return {"shapes": [list(map(_shape, given)), list(map(_shape, results))]} | _with_floats(op, args, options)
    seen = {"shapes": [list(map(_shape, given)), list(map(_shape, results))]}
    if watched and all(r.requires_grad and r.grad_fn is None for r in results):
        return seen | {"same": True}  # the operands themselves
    return seen | ({"nodes": _nodes(results)} if watched else {})


def _with_floats(op: Any, args: list[Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return what a call records whose first tensor is of floats, or all of them, in place of integers; nothing where it takes none."""
    first = next((k for k, a in enumerate(args) if _tensors(a)), None)
    for places in ([first], range(len(args))):
        with contextlib.suppress(Exception), torch.enable_grad():
            floats = [_watched(_float(a)) if k in places else a for k, a in enumerate(args)]
            results = [r for r in _tensors(op.call(*floats, **options)) if r.is_floating_point()]
            if all(r.requires_grad and r.grad_fn is None for r in results) and results:
                return {"same": True}
            return {"nodes": _nodes(results)}
    return {}


def _float(value: Any) -> Any:
    """Return the value with floats in its tensors."""
    if isinstance(value, torch.Tensor):
        return value.float()
    return type(value)(map(_float, value)) if type(value) in (list, tuple) else value


@cache
def _by_text() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, op in OPS.items():
        found.setdefault(inspect.getdoc(op.call) or "", []).append(name)
    return found


def same_text(name: str) -> set[str]:
    """Return what an example may call an op: the last parts of the names of all ops that have the same docstring."""
    text = inspect.getdoc(OPS[name].call) or ""
    return {other.rsplit(".", 1)[-1] for other in (name, *(_by_text()[text] if text else ()))}


def observe(name: str) -> dict[str, Any] | None:
    """Return what the first call of an op in its example shows, or None."""
    op = OPS[name]
    shorts = sorted(same_text(name), key=lambda short: short != name.rsplit(".", 1)[-1])
    names: dict[str, Any] = {"torch": torch}
    found: dict[str, Any] | None = None
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for example in doctest.DocTestParser().get_examples(inspect.getdoc(op.call) or ""):
            for short in shorts:
                for call in _calls(example.source, short):
                    with contextlib.suppress(Exception):  # a call that shows an error, or one that is made in place of a leaf
                        if (seen := of_call(op, call, names)) and "none" not in seen:
                            return seen
                        found = found or seen
            with contextlib.suppress(Exception):
                exec(compile(example.source, "example", "single"), names)
    return found


def everything() -> dict[str, Any]:
    """Return what is observed of all ops."""
    found = {}
    for name in sorted(OPS):
        if not name.rsplit(".", 1)[-1].startswith("_") and not name.endswith("_"):
            torch.manual_seed(0)
            if seen := observe(name):
                found[name] = seen
    return found


@cache
def written() -> dict[str, Any]:
    """Return what was written of it."""
    return json.loads(FILE.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def text(found: dict[str, Any]) -> str:
    """Return the contents of the file, an op a line."""
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(seen)}" for name, seen in found.items()) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(text(everything()), encoding="utf-8")
    import refuse  # which asks here what examples may call

    refuse.FILE.write_text(refuse.text(refuse.everything()), encoding="utf-8")
