"""The last of the tables: its names are found, refuse with the remedy, or do what they mean."""

from __future__ import annotations

import importlib
import warnings

import pytest

import autograd_nb as torch
from autograd_nb import nn
from autograd_nb.compat.beside import BESIDE
from autograd_nb.compat.documented import MEANT, MODULES, REFUSED, answers
from autograd_nb.compat.table import NoClass, Refuses, Says

PLACES = sorted({*MEANT, *REFUSED})


@pytest.mark.parametrize("place", PLACES)
def test_answers(place):
    module = importlib.import_module(f"autograd_nb.{place}")
    for name, answer in answers(place).items():
        in_front = name in vars(module) or name in BESIDE.get(place, {})
        made = getattr(module, name)
        assert getattr(module, name) is made
        if in_front:
            continue
        match answer:
            case Says(value):
                assert made() == value
            case Refuses(error, _) | NoClass(Refuses(error, _)):
                with pytest.raises(error, match="this library"):
                    made()


@pytest.mark.parametrize("name", MODULES)
def test_modules(name):
    module = importlib.import_module(f"autograd_nb.{name}")
    found = torch
    for part in name.split("."):
        found = getattr(found, part)
    assert found is module and module.__doc__
    with pytest.raises(AttributeError):
        module.nothing_of_this_name


def test_containers_and_weights_of_other_layouts():
    with pytest.warns(UserWarning, match="deprecated"):
        box = nn.Container(a=nn.Linear(2, 3))
    assert box.a.out_features == 3
    net = nn.utils.convert_conv2d_weight_memory_format(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Linear(2, 2)), torch.channels_last)
    assert net[0].weight.is_contiguous(memory_format=torch.channels_last) and not net[0].weight.is_contiguous()
    state = {"module.a": 1, "b": 2}
    importlib.import_module("autograd_nb.nn.modules.utils").consume_prefix_in_state_dict_if_present(state, "module.")
    assert state == {"a": 1, "b": 2}
    assert nn.factory_kwargs({"dtype": torch.float64, "factory_kwargs": {"device": "cpu"}}) == {"dtype": torch.float64, "device": "cpu"}
    with pytest.raises(TypeError, match="unexpected"):
        nn.factory_kwargs({"size": 3})


def test_masks_that_begin_in_a_corner():
    bias = importlib.import_module("autograd_nb.nn.attention.bias")
    assert bias.causal_upper_left(2, 3).tolist() == [[True, False, False], [True, True, False]]
    low = bias.causal_lower_right(2, 3)
    assert low.tolist() == [[True, True, False], [True, True, True]]
    assert isinstance(low, bias.CausalBias) and low.variant is bias.CausalVariant.LOWER_RIGHT
    q, k = torch.randn(1, 1, 2, 4), torch.randn(1, 1, 3, 4)
    torch.testing.assert_close(
        nn.functional.scaled_dot_product_attention(q, k, k, attn_mask=low),
        nn.functional.scaled_dot_product_attention(q, k, k, attn_mask=torch.tensor(low.tolist())),
    )


def test_helpers_of_checkpoints_and_hooks():
    from autograd_nb.utils.checkpoint import check_backward_validity, detach_variable, noop_context_fn

    x = (torch.ones(2, requires_grad=True) * 2, 3)
    y = detach_variable(x)
    assert y[0].grad_fn is None and y[0].requires_grad and y[1] == 3
    with pytest.warns(UserWarning, match="requires_grad=True"):
        check_backward_validity((torch.ones(2),))
    with warnings.catch_warnings(), noop_context_fn()[0]:
        warnings.simplefilter("error")
        check_backward_validity(y)


def test_running_modules_are_tracked():
    from autograd_nb.utils.module_tracker import ModuleTracker

    seen = []

    class Look(nn.Module):
        def forward(self, x):
            seen.append(set(tracker.parents))
            return x

    net = nn.Sequential(nn.Linear(2, 2), Look())
    with ModuleTracker() as tracker:
        net(torch.ones(1, 2))
    assert seen == [{"Global", "Sequential", "Sequential.1"}] and tracker.parents == {"Global"}
