"""Updates as functions: what a class does to parameters and states, each of them does to the lists that it is given."""

import inspect

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb.optim import functional

NUMBERS = {"betas": ("beta1", "beta2"), "etas": ("etaminus", "etaplus"), "step_sizes": ("step_size_min", "step_size_max")}
CASES = [(name, {}) for name in functional._FORMS] + [
    ("adam", {"amsgrad": True, "weight_decay": 0.1}), ("adamw", {"weight_decay": 0.2, "maximize": True}), ("rmsprop", {"centered": True, "momentum": 0.5}),
]  # fmt: skip


def tensors(seed):
    g = np.random.default_rng(seed)
    return [torch.from_numpy(g.standard_normal(shape)).float() for shape in ((3,), (2, 4), ())]


def options_of(cls, given):
    """Options as the function takes them: pairs as two numbers."""
    found = {**{n: v for n, v in cls.options.items() if n not in ("foreach", "fused", "capturable", "differentiable")}, **given}
    found.pop("initial_accumulator_value", None)
    for pair, parts in NUMBERS.items():
        if pair in found:
            found.update(zip(parts, found.pop(pair), strict=True))
    return found


@pytest.mark.parametrize(("name", "given"), CASES)
def test_each_does_what_its_class_does(name, given):
    cls, words = functional._FORMS[name]
    params = [p.clone().requires_grad_() for p in tensors(0)]
    optimizer = cls(params, **given)
    plain, lists, steps = tensors(0), {}, 3
    for k in range(steps):
        for p, g in zip(params, tensors(k + 1), strict=True):
            p.grad = g
        if not k:  # states that begin with what the class begins them with
            for p in params:
                if not optimizer.state[p]:
                    optimizer._begin(p, optimizer.state[p], optimizer.param_groups[0])
            for listed, state in zip(words.split()[::2], words.split()[1::2], strict=True):
                lists[listed] = [optimizer.state[p][state].clone() for p in params if state in optimizer.state[p]]
        optimizer.step()
        getattr(functional, name)(plain, tensors(k + 1), *lists.values(), **options_of(cls, given))
    for p, q in zip(params, plain, strict=True):
        assert torch.equal(p.detach(), q)
    for listed, state in zip(words.split()[::2], words.split()[1::2], strict=True):
        for p, value in zip(params, lists[listed], strict=False):
            assert torch.equal(optimizer.state[p][state], value), state
    assert all(t.item() == steps for t in lists["state_steps"])


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sgd_begins_the_averages_that_are_missing(momentum):
    params = [p.clone().requires_grad_() for p in tensors(0)]
    optimizer, plain, buffers = torch.optim.SGD(params, lr=0.1, momentum=momentum, dampening=0.2), tensors(0), [None] * 3
    for k in range(2):
        for p, g in zip(params, tensors(k + 1), strict=True):
            p.grad = g
        optimizer.step()
        functional.sgd(plain, tensors(k + 1), buffers, weight_decay=0, momentum=momentum, lr=0.1, dampening=0.2, nesterov=False)
    assert all(torch.equal(p.detach(), q) for p, q in zip(params, plain, strict=True))
    assert all((b is None) == (not momentum) for b in buffers)


def test_what_is_refused():
    p, zero = torch.ones(2), torch.zeros(2)
    with pytest.raises(RuntimeError, match="singleton tensors"):
        functional.adamax([p], [p], [zero], [zero], [0], lr=0.1)
    with pytest.raises(TypeError, match="without 'exp_infs'"):
        functional.adamax([p], [p], [zero], lr=0.1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'rate'"):
        functional.adamax([p], [p], [zero], [zero], [torch.zeros(())], rate=0.1)
    with pytest.raises(NotImplementedError, match="capturable"):
        functional.adamax([p], [p], [zero], [zero], [torch.zeros(())], lr=0.1, capturable=True)
    with pytest.raises(RuntimeError, match="lists of one length"):
        functional.adamax([p, p], [p, p], [zero], [zero, zero], [torch.zeros(())] * 2, lr=0.1)
    assert torch.equal(p, torch.ones(2))
    assert inspect.getdoc(functional.rprop).startswith("Update ``params`` in place as `Rprop`")
