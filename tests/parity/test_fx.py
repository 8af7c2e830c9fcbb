"""Graphs of programs beside PyTorch's: the same steps, the same code, the same results."""

from __future__ import annotations

import copy
import dataclasses
import enum
import math
import operator
import pickle

import pytest

torch = pytest.importorskip("torch")
import torch.fx  # noqa: E402

import autograd_nb as ours  # noqa: E402
import autograd_nb.fx  # noqa: E402

PROGRAMS = {
    "operators": "lambda x, y: (x + 1) * -y / 2 - x @ y.t() + x ** 2 // 3",
    "methods": "lambda x, y: x.relu().sum(dim=-1, keepdim=True).clamp(min=0)[0, :]",
    "functions": "lambda x, y: torch.cat([torch.relu(x), torch.exp(y)], dim=0)",
    "attributes": "lambda x, y: x.reshape(x.shape[0], -1) + y.size(0)",
    "containers": "lambda x, y: {'a': (x, y), 'b': [x + y]}",
    "reflected": "lambda x, y: 1 - x + 2 / (y * y + 1)",
    "unpacked": "lambda x, y: sum_of(x)",
    "starred": "lambda x, *rest: x + rest[0]",
    "dtypes": "lambda x, y: x.to(torch.float64) + y",
    "in place": "lambda x, y: x.clone().add_(y)",
}


def model(lib):
    class Block(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = lib.nn.Linear(3, 3)
            self.w = lib.nn.Parameter(lib.full((3,), 0.5))
            self.register_buffer("b", lib.arange(3.0))
            self.seq = lib.nn.Sequential(lib.nn.ReLU(), lib.nn.Linear(3, 2))
            with lib.no_grad():
                for k, p in enumerate(self.parameters()):
                    p.fill_(0.1 * (k + 1))

        def forward(self, x, flag=True):
            y = self.lin(x) * self.w + self.b
            return self.seq(y) if flag else y

    return Block()


def sum_of(x):
    a, b = x
    return a + b


@pytest.mark.parametrize("program", PROGRAMS)
def test_graphs_and_code_are_pytorchs(program):
    found = []
    for lib in (ours, torch):
        traced = lib.fx.symbolic_trace(eval(PROGRAMS[program], {"torch": lib, "sum_of": sum_of}))
        traced.graph.lint()
        x, y = lib.arange(4.0).reshape(2, 2), lib.ones(2, 2)
        found.append([traced.code, str(traced.graph), str(traced(x, y)).replace("torch.", "")])
    assert found[0] == found[1]


def test_modules_are_traced_copied_and_pickled():
    found = []
    for lib in (ours, torch):
        x = lib.arange(6.0).reshape(2, 3)
        m = model(lib)
        traced = lib.fx.symbolic_trace(m, concrete_args={"flag": True})
        again = pickle.loads(pickle.dumps(traced))
        outs = [f(x).tolist() for f in (m, lambda x, t=traced: t(x, True), lambda x, t=copy.deepcopy(traced): t(x, True), lambda x, t=again: t(x, True))]
        assert all(o == outs[0] for o in outs)
        found.append([sorted(traced.state_dict()), outs[0], [(n.op, getattr(n.target, "__name__", n.target)) for n in traced.graph.nodes]])
    assert found[0][0] == found[1][0] and found[0][2] == found[1][2]
    assert all(a == pytest.approx(b) for a, b in zip(found[0][1], found[1][1], strict=True))


def test_graphs_are_written_and_rewritten():
    found = []
    for lib in (ours, torch):
        graph = lib.fx.Graph()
        x = lib.fx.Proxy(graph.placeholder("x"))
        y = lib.relu(x) + math.pi
        graph.output((y * 2).node)
        gm = lib.fx.GraphModule({}, graph, class_name="Made")
        for node in gm.graph.nodes:
            if node.target is operator.add:
                with gm.graph.inserting_after(node):
                    new = gm.graph.call_function(lib.neg, (node.args[0],))
                node.replace_all_uses_with(new)
        gm.graph.eliminate_dead_code()
        gm.recompile()
        text = gm.code
        done = lib.fx.replace_pattern(gm, lambda x: lib.neg(lib.relu(x)), lambda x: x.sigmoid())
        found.append([text, gm.code, len(done), str(gm.graph), gm(lib.tensor(0.0)).item(), type(gm).__name__])
    assert found[0] == found[1]


def test_interpreters_and_shapes():
    found = []
    for lib in (ours, torch):
        traced = lib.fx.symbolic_trace(eval("lambda x: torch.relu(x).sum(0)", {"torch": lib}))

        class Swap(lib.fx.Transformer):
            def call_function(self, target, args, kwargs, lib=lib):
                return super().call_function(lib.neg if target is lib.relu else target, args, kwargs)

        from importlib import import_module

        shapes = import_module(f"{lib.__name__}.fx.passes.shape_prop").ShapeProp(traced)
        shapes.propagate(lib.ones(2, 3))
        metas = [(n.name, tuple(n.meta["tensor_meta"].shape)) for n in traced.graph.nodes]
        found.append([lib.fx.Interpreter(traced).run(lib.ones(2, 3)).tolist(), Swap(traced).transform().code, metas])
    assert found[0] == found[1]


class Way(enum.Enum):
    UP, DOWN = 1, -1


@dataclasses.dataclass
class Parts:
    left: object
    ways: list
    deeper: object = None


@pytest.mark.parametrize("program", (
    "lambda x: Parts(x, [1], Way.DOWN)", "lambda x: Parts(x + 1, [3, x])", "lambda x: (Parts(x, [], Parts(x * 2, [x])), 1)",
    "lambda x: towards(Parts(x, [3]).left, Way.UP)",
))  # fmt: skip
def test_enumerations_and_dataclasses_are_in_graphs(program):
    """An enumeration's member is a value; a dataclass is a call of it, with its fields."""
    found = []
    for lib in (torch, ours):
        def towards(x, way):
            return x * way.value

        known = {"Way": Way, "Parts": Parts, "towards": towards}
        traced = lib.fx.symbolic_trace(eval(program, known))
        result = traced(lib.ones(2))
        found.append([[(n.op, n.name, str(n.args), str(n.kwargs)) for n in traced.graph.nodes], traced.code, str(result).replace("autograd_nb", "torch")])
    assert found[0] == found[1]


def test_an_enumeration_is_an_argument():
    found = []
    for lib in (torch, ours):
        graph = lib.fx.Graph()
        tracer = lib.fx.Tracer()
        tracer.graph = graph
        x = lib.fx.Proxy(graph.placeholder("x"), tracer)
        y = tracer.create_proxy("call_function", turned, (x, Way.DOWN), {"also": Way.UP})
        graph.output(y.node)
        module = lib.fx.GraphModule({}, graph)
        found.append([module.code, module(lib.ones(2)).tolist(), copy.deepcopy(module)(lib.ones(2)).tolist()])
    assert found[0] == found[1]


def turned(x, way, also):
    return x * way.value + also.value


@pytest.mark.parametrize("program", ["lambda x: x if x.sum() > 0 else -x", "lambda x: [v for v in x]", "lambda x: len(x)"])
def test_what_cannot_be_traced_is_refused(program):
    for lib in (torch, ours):
        with pytest.raises((RuntimeError, ValueError)) as error:
            lib.fx.symbolic_trace(eval(program))
        assert type(error.value).__name__ in ("TraceError", "RuntimeError")


def test_graphs_are_checked():
    for lib in (torch, ours):
        graph = lib.fx.Graph()
        x = graph.placeholder("x")
        y = graph.call_function(lib.relu, (x,))
        with pytest.raises(RuntimeError, match="still had 1 users"):
            graph.erase_node(x)
        y.append(x)
        with pytest.raises(RuntimeError, match="was used before it has been defined"):
            graph.lint()
        with pytest.raises(TypeError, match="does not support mutation"):
            graph.call_function(lib.cat, ([y, y],)).args[0].append(y)
