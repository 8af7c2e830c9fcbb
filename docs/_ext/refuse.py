"""Find what public functions refuse: the first call in the example of a docstring is made again, with one wrong argument at a time.

``python docs/_ext/observe.py`` writes the answers to `refused.json`, from which `reference` tells them. Run by itself, this file asks again and
prints the names of the entries that answer otherwise now, as `tests/test_reference.py` has it do: examples declare classes and change switches.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import inspect
import io
import json
import re
import tempfile
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import observe
import walk

import autograd_nb as torch

FILE = Path(__file__).parent / "refused.json"
#: what a caller may expect; anything else is a fault of the library
EXPECTED = (TypeError, ValueError, IndexError, NotImplementedError, RuntimeError, KeyError, AssertionError, OSError)
#: what a wrong argument of a category is told of first, and no more than this many in all
LIMIT, WORDS = 4, 120
#: parameters that are tried although the example does not give them, and what is wrong for them
TRIED = {"dim": "9", "axis": "9", "reduction": "'no such'", "mode": "'no such'", "padding_mode": "'no such'", "ord": "'no such'", "keepdim": "'no'"}
#: what is wrong where functions of several processes are called by one
ALONE = "before init_process_group()"
#: wrong calls of what no wrong argument of its example shows
WRITTEN = {
    "Tensor.exponential_": "torch.ones(2).exponential_(-1)", "Tensor.geometric_": "torch.ones(2).geometric_(2.0)",
    "randperm": "torch.randperm(-1)", "zero_": "torch.ones(2, requires_grad=True).zero_()", "Tensor.copy_": "torch.ones(2).copy_(torch.ones(3))",
    "Tensor.is_set_to": "torch.ones(2).is_set_to(3)", "Tensor.resize": "torch.ones(2).resize(3)", "Tensor.resize_as": "torch.ones(2).resize_as(torch.ones(3))",
    "autograd.graph.increment_version": "torch.autograd.graph.increment_version(3)",
    "autograd.graph.register_multi_grad_hook": "torch.autograd.graph.register_multi_grad_hook([torch.ones(2)], print)",
    "empty_permuted": "torch.empty_permuted((2, 3), (0, 0))", "frobenius_norm": "torch.frobenius_norm(torch.ones(2), 9)",
    "func.grad": "torch.func.grad(lambda x: x * 2)(torch.ones(2))", "func.grad_and_value": "torch.func.grad_and_value(lambda x: x * 2)(torch.ones(2))",
    "func.jacrev": "torch.func.jacrev(lambda x: 3)(torch.ones(2))", "func.jacfwd": "torch.func.jacfwd(lambda x: 3)(torch.ones(2))",
    "func.hessian": "torch.func.hessian(lambda x: x, argnums=4)(torch.ones(2))", "manual_seed": "torch.manual_seed('a')",
    "nn.BCEWithLogitsLoss": "torch.nn.BCEWithLogitsLoss()(torch.ones(2), torch.ones(3))",
    "nn.KLDivLoss": "torch.nn.KLDivLoss()(torch.ones(2), torch.ones(3))", "nn.RNNCell": "torch.nn.RNNCell(2, 2)(torch.ones(1, 3))",
    "nn.init.constant_": "torch.nn.init.constant_(torch.ones(2), 'a')", "nn.utils.clip_grad_value_": "torch.nn.utils.clip_grad_value_([torch.ones(2)], 'a')",
    "nn.utils.get_total_norm": "torch.nn.utils.get_total_norm([torch.ones(2)], 'a')",
    "nn.utils.parametrizations.weight_norm": "torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(1, 1), 'no such')",
    "nn.utils.spectral_norm": "torch.nn.utils.spectral_norm(torch.nn.Linear(1, 1), 'no such')",
    "profiler.schedule": "torch.profiler.schedule(wait=-1, warmup=0, active=0)", "promote_types": "torch.promote_types(torch.float32, 'no such')",
    "result_type": "torch.result_type('no number', torch.ones(2))", "serialization.add_safe_globals": "torch.serialization.add_safe_globals(3)",
    "set_default_tensor_type": "torch.set_default_tensor_type('no such')", "set_rng_state": "torch.set_rng_state(torch.ones(2))",
    "Tensor.type": "torch.ones(2).type('no such')", "Tensor.type_as": "torch.ones(2).type_as('text')",
    "slice_copy": "torch.slice_copy(torch.ones(2), 9)", "alias_copy": "torch.alias_copy('text')",
    "norm_except_dim": "torch.norm_except_dim(torch.ones(2), 2, 9)", "nn.Module": "torch.nn.Module()(1)",
    "nn.Buffer": "torch.nn.Module().register_buffer('b', 3)",
    "nn.LinearCrossEntropyOptions": "torch.nn.LinearCrossEntropyOptions(chunks=3)",
}  # fmt: skip
#: functions that end the process, wait for input, look for a network, or change what later calls give
LEFT_OUT = re.compile(r"set_|manual_seed|seed$|use_deterministic|fork_rng|exit_dual|enter_dual|autograd_nb\.(hub|compat)|set_num|spawn|DataLoader|profil")


class Call:
    """A call in an example: its function, the arguments by the names of the parameters, and what the example's names stand for."""

    def __init__(self, thing: Any, node: ast.Call, names: dict[str, Any]):
        receiver = self.value(node.func.value, names) if isinstance(node.func, ast.Attribute) else None
        args = [self.value(a, names) for a in node.args]
        if isinstance(receiver, torch.Tensor):
            args.insert(0, receiver)
        self.thing = thing
        self.signature = inspect.signature(thing)
        self.bound = self.signature.bind(*args, **{k.arg or "": self.value(k.value, names) for k in node.keywords})
        self.names = names

    @staticmethod
    def value(node: ast.expr, names: dict[str, Any]) -> Any:
        """Return what an expression of the example gives."""
        return eval(compile(ast.Expression(node), "example", "eval"), names)

    def answer(self, changes: dict[tuple[str, int | None], Any]) -> Exception | None:
        """Return what the call raises with some arguments changed, None if nothing."""
        bound = inspect.BoundArguments(self.signature, dict(self.bound.arguments))  # type: ignore[arg-type]
        for (name, place), value in changes.items():
            if place is None:
                bound.arguments[name] = value
            else:
                whole = list(bound.arguments[name])
                whole[place] = value
                bound.arguments[name] = type(bound.arguments[name])(whole)
        order = [n for n in self.signature.parameters if n in bound.arguments]
        bound.arguments = {n: bound.arguments[n] for n in order}  # type: ignore[assignment]
        torch.manual_seed(0)
        try:
            self.thing(*bound.args, **bound.kwargs)
        except Exception as error:
            return error
        return None


def _names(entry: walk.Entry) -> set[str]:
    """Return what an example may call an entry's function: its names, and those of the ops that have the same docstring."""
    same = observe.same_text(entry.op) if entry.op else ()
    return {name.rsplit(".", 1)[-1] for name in (entry.name, *entry.also, *same)}


def _calls(entry: walk.Entry, node: ast.Call, names: dict[str, Any]) -> Any:
    """Return what of an entry a call in its example calls: its function or class, a module that the class makes, or None."""
    if (isinstance(node.func, ast.Attribute) and node.func.attr in _names(entry)) or (isinstance(node.func, ast.Name) and node.func.id in _names(entry)):
        return entry.thing
    if isinstance(entry.thing, type) and issubclass(entry.thing, torch.nn.Module) and isinstance(node.func, (ast.Name, ast.Call)):
        made = Call.value(node.func, names)
        return made.forward if isinstance(made, entry.thing) else None
    return None


def calls(entry: walk.Entry) -> list[Call]:
    """Return the first call of an entry's function in its example that succeeds; of a class of modules, also the first call of a module."""
    found: list[Call] = []
    names: dict[str, Any] = {"torch": torch}
    for example in doctest.DocTestParser().get_examples(entry.text):
        for node in ast.walk(ast.parse(example.source)):
            with contextlib.suppress(Exception):
                thing = _calls(entry, node, names) if isinstance(node, ast.Call) else None
                if thing is not None and all(type(thing) is not type(call.thing) for call in found):
                    call = Call(thing, node, names)
                    if call.answer({}) is None:
                        found.append(call)
        with contextlib.suppress(Exception):
            exec(compile(example.source, "example", "single"), names)
    return found


def _places(call: Call) -> Iterator[tuple[tuple[str, int | None], str, Any]]:
    """Yield the arguments of a call, and the tensors in lists and in ``*args``, each with how it is called."""
    for name, value in call.bound.arguments.items():
        kind = call.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            continue
        inner = isinstance(value, (list, tuple)) and (kind is inspect.Parameter.VAR_POSITIONAL or any(isinstance(v, torch.Tensor) for v in value))
        if inner and type(value) in (list, tuple):
            yield from (((name, k), f"{name}[{k}]", v) for k, v in enumerate(value))
        else:
            yield (name, None), name, value


#: wrong arguments, as text that gives one: category -> for a tensor, a number, …
def _wrong(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield a category and the text of a wrong value for an argument that has this one."""
    if isinstance(value, torch.Tensor):
        shape = list(value.shape)
        yield "shape", f"of shape {[n + 1 for n in shape]}" if shape else "of shape [2]"
        yield "shape", f"of shape {[2, 3, 4, 1, 1, 1, 1][: 3 if len(shape) != 3 else 5]}"
        yield "shape", "of shape []"
        yield "shape", "of shape [0]"
        for kind in ("complex64", "int64", "bool", "float32"):
            if str(value.dtype) != f"torch.{kind}":
                yield "dtype", f"of {kind}"
        yield "type", "'text'"
    elif isinstance(value, bool):
        yield "flag", "'no'"
    elif isinstance(value, int) and re.search(r"dim|axis", name):
        yield "dim", "9"
        yield "type", "'text'"
    elif isinstance(value, (int, float)):
        for text in ("-3", "0", "99", "2.5") if isinstance(value, int) else ("-1.5", "0.0", "99.0"):
            yield "value", text
        yield "type", "'text'"
    elif isinstance(value, str):
        yield "value", "'no such'"
        yield "type", "7"
    elif isinstance(value, (list, tuple)) and value and all(isinstance(v, int) for v in value):
        for numbers in (([9] if re.search("dim", name) else [-3]) * len(value), [99] * len(value), [*value, 1, 1]):
            yield "value", str(tuple(numbers) if isinstance(value, tuple) else numbers)
        yield "type", "'text'"
    elif isinstance(value, torch.dtype):
        yield "value", "torch.bool"
        yield "type", "7"
    elif callable(value) or isinstance(value, (list, tuple, dict)):
        yield "type", "7"


def value(text: str, given: Any) -> Any:
    """Return the wrong value that a text stands for, in place of the given one."""
    if text.startswith("of shape "):
        return torch.ones(ast.literal_eval(text[9:]), dtype=given.dtype)
    if text.startswith("of "):
        return given.detach().to(getattr(torch, text[3:]))
    return eval(text, {"torch": torch})


def _named(call: Call) -> Iterator[tuple[str, tuple[str, int | None], Any]]:
    """Yield all arguments that may be changed: those of `_places`, and those of `TRIED`."""
    yield from ((called, place, given) for place, called, given in _places(call))
    yield from ((name, (name, None), None) for name in TRIED if name in call.signature.parameters and name not in call.bound.arguments)


def _candidates(call: Call) -> Iterator[tuple[str, tuple[str, int | None], str, str, Any]]:
    for called, place, given in _named(call):
        if given is None and place[1] is None and called in TRIED:
            yield "dim" if called in ("dim", "axis") else "flag" if called == "keepdim" else "value", place, called, TRIED[called], None
        for category, text in _wrong(place[0], given):
            yield category, place, called, text, given


def said(error: Exception) -> str:
    """Return the first sentence of an error, in one line."""
    text = " ".join(str(error.args[0] if isinstance(error, KeyError) and error.args else error).split())
    ends = [found.start() for found in re.finditer(r"(?<=[a-z\])'\d])[.;] (?=\S)", text)]
    text = text[: next((end for end in ends if text[:end].count("(") == text[:end].count(")")), None)].rstrip(".")
    return text if len(text) <= WORDS else text[:WORDS].rsplit(" ", 1)[0] + " …"


def _public_type(error: Exception) -> str:
    return next(k.__name__ for k in type(error).__mro__ if k in (*EXPECTED, Exception))


def _of_text(text: str) -> list[str]:
    """Return what a call that is written as text says."""
    try:
        eval(text, {"torch": torch})
    except EXPECTED as error:
        return [text, "", _public_type(error), said(error)]
    return [text, "", "", ""]


def _alone(entry: walk.Entry) -> list[str]:
    """Return what a function of several processes says where there is no group of them."""
    needed = [p for p in inspect.signature(entry.thing).parameters.values() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    x = torch.ones(2)
    try:
        entry.thing(*([x] if "list" in p.name or "tensors" in p.name else 0 if p.name in ("src", "dst") else x for p in needed))
    except Exception as error:
        if "process group" in str(error):
            return [ALONE, "", _public_type(error), said(error)]
    return [ALONE, "", "", ""]


def refused(entry: walk.Entry) -> list[list[str]]:
    """Return wrong arguments of an entry's function: how each is called, what is wrong, the exception, and what it says."""
    if isinstance(entry.thing, FunctionType) and entry.name.startswith("autograd_nb.distributed."):
        return [line] if (line := _alone(entry))[2] else []
    if text := WRITTEN.get(entry.name.removeprefix("autograd_nb.")):
        return [_of_text(text)]
    if LEFT_OUT.search(entry.name):
        return []
    found: dict[str, list[str]] = {}
    method = entry.name.startswith("autograd_nb.Tensor.")
    for call in calls(entry):
        for category, place, called, text, given in _candidates(call):
            if category in found or (method and category == "type" and isinstance(given, torch.Tensor)):  # a method's own tensor is one
                continue
            error = call.answer({place: value(text, given)})
            if isinstance(error, EXPECTED) and not re.search(r"0x[0-9a-f]{5}", said(error)):
                found[category] = [called, text, _public_type(error), said(error)]
    return [found[c] for c in ("shape", "dim", "value", "dtype", "flag", "type") if c in found][:LIMIT]


def ask(entry: walk.Entry, listed: list[list[str]]) -> list[list[str]]:
    """Return what a list of wrong arguments gives now: as `refused`, but for nothing else."""
    if listed[0][0] == ALONE:
        return [_alone(entry)]
    if listed[0][0] in WRITTEN.values():
        return [_of_text(listed[0][0])]
    at = {called: (call, place, given) for call in reversed(calls(entry)) for called, place, given in _named(call)}
    out = []
    for called, text, _, _ in listed:
        call, place, given = at[called]
        error = call.answer({place: value(text, given)})
        out.append([called, text, *(("", "") if error is None else (_public_type(error), said(error)))])
    return out


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Keep what examples print, warn of and write to themselves."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        warnings.simplefilter("ignore")
        yield


def everything() -> dict[str, list[list[str]]]:
    """Return what all entries refuse, by their names."""
    with quietly():
        found = {entry.name: refused(entry) for entry in walk.entries() if not isinstance(entry.thing, property)}
    return {name: listed for name, listed in sorted(found.items()) if listed}


@cache
def written() -> dict[str, list[list[str]]]:
    """Return what was written of it."""
    return json.loads(FILE.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def text(found: dict[str, list[list[str]]]) -> str:
    """Return the contents of the file, a name a line."""
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(listed, ensure_ascii=False)}" for name, listed in found.items()) + "\n}\n"


def stale() -> set[str]:
    """Return the names of the entries whose answers are others now than those that were written."""
    entries = {entry.name: entry for entry in walk.entries()}
    with quietly():
        return {name for name, listed in written().items() if name not in entries or ask(entries[name], listed) != listed}


if __name__ == "__main__":
    print(*sorted(stale()), sep="\n")
