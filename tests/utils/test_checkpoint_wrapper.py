"""Modules whose activations are computed again: names, states and gradients of those that they wrap."""

from __future__ import annotations

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb import nn
from autograd_nb.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    CheckpointWrapper,
    apply_activation_checkpointing,
    checkpoint_wrapper,
    offload_wrapper,
)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.calls, self.width = nn.Linear(3, 3), 0, 3

    def forward(self, x, scale=1):
        self.calls += 1
        return self.linear(x).tanh() * scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())
        self.last = Block()

    def forward(self, x):
        return self.last(self.blocks(x), scale=x.sum())


def made():
    torch.manual_seed(0)
    return Net().double()


@pytest.mark.parametrize("wrapper", [checkpoint_wrapper, offload_wrapper, lambda m: checkpoint_wrapper(m, CheckpointImpl.REENTRANT)])
def test_wrapped_modules_have_the_names_states_and_gradients_of_others(wrapper):
    plain, model = made(), made()
    apply_activation_checkpointing(model, wrapper, lambda m: isinstance(m, Block))
    assert model.blocks[0].width == 3
    assert list(model.state_dict()) == list(plain.state_dict())
    assert [n for n, _ in model.last.named_parameters()] == ["linear.weight", "linear.bias"]
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    slopes = []
    for net in (plain, model):
        net(x).square().sum().backward()
        slopes.append([x.grad.numpy(), *[p.grad.numpy() for p in net.parameters()]])
        x.grad = None
    for found, wanted in zip(*slopes, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert model.last.calls == (2 if isinstance(model.last, CheckpointWrapper) else 1)
    other = made()
    apply_activation_checkpointing(other, wrapper, lambda m: m is other.last)
    state = {name: value * 2 for name, value in plain.state_dict().items()}
    assert str(other.load_state_dict(state)) == "<All keys matched successfully>"
    assert torch.equal(other.last.linear.weight, 2 * plain.last.linear.weight)


def test_options_reach_the_function():
    seen = []

    def again(function, *args, **options):
        seen.append(options)
        return function(*args)

    wrapped = checkpoint_wrapper(nn.Linear(2, 2), checkpoint_fn=again, preserve_rng_state=False)
    wrapped(torch.ones(1, 2))
    assert seen == [{"preserve_rng_state": False}]
