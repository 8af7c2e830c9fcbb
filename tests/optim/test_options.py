"""Options and states are spelled once: what kernels ask for by name is there, and no option goes unread."""

from __future__ import annotations

import inspect
import re

import pytest

import autograd_nb as torch
from autograd_nb.optim import adam, adaptive, fused, matrices, sgd

MODULES = (adam, adaptive, matrices, sgd)
CLASSES = [c for m in MODULES for c in (getattr(m, n) for n in m.__all__)]
KERNELS = {n: k for m in MODULES for n, k in vars(m).items() if isinstance(k, fused.Update)}
#: how PyTorch does its work, which makes no difference here
IMPLEMENTATION = {"foreach", "fused", "capturable", "differentiable"}
STEP = {"first"}  # what only a step knows


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_a_kernels_numbers_are_options(name):
    kernel = KERNELS[name]
    owner = next(m for m in MODULES if name in vars(m))
    users = [c for c in CLASSES if c.__module__ == owner.__name__ and re.search(rf"\b{name}\b", inspect.getsource(c))]
    assert users
    for optimizer in users:
        given = inspect.signature(kernel.reader(optimizer.options)).parameters
        assert set(given) <= {"group", *STEP}, f"{optimizer.__name__} has no option for these numbers of its kernel"
        group = optimizer([torch.nn.Parameter(torch.ones(2, 2))]).param_groups[0]
        found = kernel.reader(optimizer.options)(group, **dict.fromkeys(set(given) & STEP, True))
        assert len(found) == len(kernel.numbers)
        assert all(type(v) in (float, bool) for v in found)


@pytest.mark.parametrize("optimizer", CLASSES)
def test_every_option_is_read(optimizer):
    own = {p for p in inspect.signature(optimizer.__init__).parameters if p not in ("self", "params")}
    given = optimizer([torch.nn.Parameter(torch.ones(2, 2))])
    assert own <= set(given.defaults) == set(given.param_groups[0]) - {"params"}
    text = inspect.getsource(inspect.getmodule(optimizer))
    unread = {n for n in own - IMPLEMENTATION - {"betas"} if f'group["{n}"]' not in text and f'"{n}"' not in text}
    for kernel in KERNELS.values():
        unread -= set(kernel.numbers)
    assert not unread


def test_options_that_a_checkpoint_does_not_have():
    p = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([p], maximize=True)
    saved = optimizer.state_dict()
    for name in ("maximize", "amsgrad", "decoupled_weight_decay"):
        del saved["param_groups"][0][name]
    saved["state"] = {0: {"step": 3, "exp_avg": torch.zeros(2), "exp_avg_sq": torch.zeros(2)}}
    optimizer.load_state_dict(saved)
    group = optimizer.param_groups[0]
    assert (group["maximize"], group["amsgrad"], group["decoupled_weight_decay"]) == (False, False, False)
    assert optimizer.state[p]["step"].item() == 3
    p.grad = torch.ones(2)
    optimizer.step()
    assert optimizer.state[p]["step"].item() == 4


def test_an_optimizer_of_its_own():
    """What CONTRIBUTING.md says an optimizer comes to, on a kernel that is there."""

    class Momentum(fused.Fused):
        def __init__(self, params, lr: float = 0.1, momentum: float = 0.9, weight_decay: float = 0.0):
            super().__init__(params, locals())

        def _kernel(self, group):
            return KERNEL

    KERNEL = fused.Update("sgd_momentum", gain=lambda g: 1.0, nesterov=lambda g: False, first=lambda g: False)
    p = torch.nn.Parameter(torch.ones(3))
    optimizer = Momentum([p], lr=0.5)
    for _ in range(2):
        p.grad = torch.ones(3)
        optimizer.step()
    assert torch.allclose(p, torch.full((3,), 1 - 0.5 - 0.5 * 1.9))
    assert set(optimizer.state[p]) == {"momentum_buffer"}
    with pytest.raises(ValueError, match="Invalid momentum value: -1"):
        Momentum([p], momentum=-1)
