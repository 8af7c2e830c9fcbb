"""The order of what containers of parameters take over, and ensembles of modules, beside PyTorch's."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from .snippets import check  # noqa: E402

BEFORE = "from collections import OrderedDict; from types import MappingProxyType; v = lambda: nn.Parameter(t.ones(1))"
GIVEN = {
    "dict": "{'b': v(), 'a': v()}", "ordered": "OrderedDict([('b', v()), ('a', v())])", "pairs": "[('b', v()), ('a', v())]",
    "parameters": "nn.ParameterDict([('b', v()), ('a', v())])", "other mapping": "MappingProxyType({'b': v(), 'a': v()})",
}  # fmt: skip


def test_the_order_of_parameters_that_a_dict_takes_over():
    """It is the order of `Module.parameters`, and so of an optimizer's state."""
    ways = {
        "made": "d = nn.ParameterDict({})", "updated": "d = nn.ParameterDict({{'z': v()}}); d.update({})",
        "joined": "d = nn.ParameterDict({{'z': v()}}) | nn.ParameterDict({})",
    }  # fmt: skip
    check({
        f"{way}, {name}": f"{BEFORE}; {text.format(given)}; r = [n for n, _ in d.named_parameters()] + list(d) + list(d.copy())"
        for way, text in ways.items() for name, given in GIVEN.items()
    })  # fmt: skip


def test_an_ensemble_is_frozen_as_one():
    check({
        "one": "m = [nn.Linear(1, 1) for _ in range(2)]; m[1].weight.requires_grad_(False); r = t.func.stack_module_state(m)",
        "all": "m = [nn.Linear(1, 1).requires_grad_(False) for _ in range(2)]; r = [p.requires_grad for p in t.func.stack_module_state(m)[0].values()]",
        "of each a part": "m = [nn.Linear(1, 1) for _ in range(2)]\nfor x in m: x.bias.requires_grad_(False)\n"
        "r = [p.requires_grad for p in t.func.stack_module_state(m)[0].values()]",
    }, kinds=True)  # fmt: skip
