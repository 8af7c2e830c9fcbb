"""The stubs of the ops are those of the table as it is, and say what the ops do."""

from __future__ import annotations

import ast

import pytest

import autograd_nb as torch
from autograd_nb.nn.modules import stubs as modules
from autograd_nb.ops.core.registry import OPS
from autograd_nb.ops.signatures import stubs

TEXTS = stubs.texts()
pytestmark = pytest.mark.usefixtures("nobody_takes_calls_over")


def test_stubs_are_up_to_date():
    assert stubs.outdated() == [], "run make stubs"
    assert not modules.outdated(), "run make stubs"


def definitions(name: str) -> dict[str, list[ast.FunctionDef]]:
    found: dict[str, list[ast.FunctionDef]] = {}
    for node in ast.walk(ast.parse(TEXTS[name])):
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(node)
    return found


@pytest.mark.parametrize("namespace", stubs.NAMESPACES)
def test_every_op_of_a_namespace_has_a_stub(namespace):
    found = definitions(f"{stubs.NAMESPACES[namespace]}.pyi")
    offered = {name.removeprefix(namespace + ".") for name, op in OPS.items() if namespace in op.namespaces}
    assert offered <= set(found)


def test_every_method_has_a_stub():
    found = definitions("tensor.pyi")
    assert {name for name, op in OPS.items() if op.method and hasattr(torch.Tensor, name)} <= set(found)


def test_no_parameter_is_left_without_a_type():
    """Only data that may be anything is Any; ``**kw`` takes what other frameworks' callers pass along."""
    anything = {"data", "obj", "ext_tensor", "buffer", "index", "value", "other", "options", "names", "args", "t", "memo"}
    bare = [
        f"{name}: {node.name}({arg.arg})"
        for name in TEXTS
        for nodes in definitions(name).values()
        for node in nodes
        if not node.name.startswith("__")
        for arg in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        if isinstance(arg.annotation, ast.Name) and arg.annotation.id == "Any" and arg.arg not in anything
    ]
    assert bare == [], "name their types in ops/signatures/parameters.py, or annotate the functions"


#: a call -> the type of its result in the stubs
RESULTS = {
    "tanh()": (lambda x: x.tanh(), "Tensor"),
    "size()": (lambda x: x.size(), "Size"),
    "size(0)": (lambda x: x.size(0), "_int"),
    "split(1)": (lambda x: x.split(1), "tuple[Tensor, ...]"),
    "sort()": (lambda x: x.sort(), "_return_types.sort"),
    "max(0)": (lambda x: x.max(0), "_return_types.max"),
    "is_contiguous()": (lambda x: x.is_contiguous(), "_bool"),
}


@pytest.mark.parametrize("text", RESULTS)
def test_results_are_what_the_stubs_say(text):
    call, said = RESULTS[text]
    name = call.__code__.co_names[0]
    assert said in {ast.unparse(node.returns) for node in definitions("tensor.pyi")[name]}
    kind = said.partition("[")[0].rpartition(".")[2].lstrip("_")
    assert type(call(torch.ones(2, 2))).__name__ == kind
