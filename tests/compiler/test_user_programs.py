"""Programs as users write them, compiled, against the same programs run eagerly: results, parameters, gradients, versions."""

from __future__ import annotations

import functools
import operator
import types
import warnings

import pytest

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb import nn

from .common import eq

pytestmark = pytest.mark.slow  # many kernels

PROGRAMS = {}


def program(function):
    """``function(wrap, record)``: compiles by ``wrap`` what it compiles, and records what it sees."""
    PROGRAMS[function.__name__] = function
    return function


def seen(value):
    """What can be seen of a value now."""
    if isinstance(value, nn.Module):
        return [seen(t) for t in (*value.parameters(), *value.buffers())]
    if isinstance(value, torch.Tensor):
        grad = None if value.grad is None else value.grad.clone()
        return [value.detach().clone(), value.requires_grad, value._version if value.is_leaf else 0, grad]
    return [seen(v) for v in value] if isinstance(value, (list, tuple)) else value


def training(model, optimizer, loss):
    def step(*inputs):
        optimizer.zero_grad()
        value = loss(model(*inputs))
        value.backward()
        optimizer.step()
        return value.detach()

    return step


def mean_square(y):
    return y.pow(2).mean()


def regression(optimizer=functools.partial(torch.optim.SGD, lr=0.1)):
    model = nn.Linear(3, 2)
    return model, optimizer(model.parameters())


# ---- several models, several backward passes
@program
def generator_and_discriminator(wrap, record):
    g, d = nn.Linear(4, 3), nn.Linear(3, 1)
    og, od = (torch.optim.SGD(m.parameters(), 0.1) for m in (g, d))

    @wrap
    def step(real):
        fake = g(torch.randn(len(real), 4))
        ones = torch.ones(len(real), 1)
        od.zero_grad()
        apart = F.binary_cross_entropy_with_logits(d(real), ones) + F.binary_cross_entropy_with_logits(
            d(fake.detach()), 0 * ones
        )
        apart.backward()
        od.step()
        og.zero_grad()
        alike = F.binary_cross_entropy_with_logits(d(fake), ones)
        alike.backward()
        og.step()
        return apart.detach(), alike.detach()

    for _ in range(4):
        record(step(torch.randn(5, 3)), g, d)


@program
def penalty_on_gradients(wrap, record):
    model, optimizer = regression()

    @wrap
    def step(real, fake):
        between = torch.rand(len(real), 1)
        x = (between * real + (1 - between) * fake).requires_grad_()
        (g,) = torch.autograd.grad(model(x).tanh().sum(), x, create_graph=True)
        loss = model(fake).mean() - model(real).mean() + ((g.norm(2, dim=1) - 1) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(4):
        record(step(torch.randn(4, 3), torch.randn(4, 3)), model)


@program
def inner_steps_that_are_differentiated(wrap, record):
    model, optimizer = regression()

    @wrap
    def step(x, q):
        parameters = dict(model.named_parameters())
        for _ in range(2):
            inner = mean_square(torch.func.functional_call(model, parameters, (x,)))
            grads = torch.autograd.grad(inner, list(parameters.values()), create_graph=True)
            parameters = {n: v - 0.1 * g for (n, v), g in zip(parameters.items(), grads, strict=True)}
        outer = mean_square(torch.func.functional_call(model, parameters, (q,)))
        optimizer.zero_grad()
        outer.backward()
        optimizer.step()
        return outer.detach()

    for _ in range(4):
        record(step(torch.randn(4, 3), torch.randn(4, 3)), model)


@program
def an_epoch_in_one_call(wrap, record):
    model, optimizer = regression()
    step = training(model, optimizer, mean_square)

    @wrap
    def epoch(batches):
        return torch.stack([step(x) for x in batches])

    for _ in range(4):
        record(epoch([torch.randn(4, 3) for _ in range(3)]), model)


@program
def a_backward_pass_twice(wrap, record):
    model, _ = regression()

    @wrap
    def step(x):
        loss = mean_square(model(x))
        loss.backward(retain_graph=True)
        loss.backward()
        return loss.detach()

    for _ in range(4):
        record(step(torch.randn(4, 3)), model)


# ---- what changes between calls
@program
def every_third_step_updates(wrap, record):
    model, optimizer = regression(functools.partial(torch.optim.SGD, lr=0.1, momentum=0.9))

    @wrap
    def step(x, last):
        loss = mean_square(model(x)) / 3
        loss.backward()
        if last:
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
        return loss.detach()

    for i in range(9):
        record(step(torch.randn(4, 3), i % 3 == 2), model)


@program
def a_rate_set_inside(wrap, record):
    model, optimizer = regression()
    step = training(model, optimizer, mean_square)

    @wrap
    def warm(i, x):
        for group in optimizer.param_groups:
            group["lr"] = 0.1 * min(1.0, (i + 1) / 3)
        return step(x)

    for i in range(5):
        record(warm(i, torch.randn(4, 3)), model, optimizer.param_groups[0]["lr"])


@program
def a_rate_set_outside_and_returned(wrap, record):
    model, optimizer = regression()
    step = training(model, optimizer, mean_square)
    compiled = wrap(lambda x: (step(x), optimizer.param_groups[0]["lr"] * 2))
    for i in range(5):
        optimizer.param_groups[0]["lr"] = 0.1 * i
        record(compiled(torch.randn(4, 3)), model)


@program
def a_rate_that_falls_on_a_plateau(wrap, record):
    model, optimizer = regression()
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    step = wrap(training(model, optimizer, mean_square))
    for _ in range(6):
        loss = step(torch.randn(4, 3))
        schedule.step(loss)
        record(loss, model, optimizer.param_groups[0]["lr"])


@program
def a_layer_that_is_frozen_for_a_while(wrap, record):
    model = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 2))
    step = wrap(training(model, torch.optim.SGD(model.parameters(), 0.1), mean_square))
    for i in range(7):
        if i in (2, 5):
            model[0].requires_grad_(i == 5)
        record(step(torch.randn(4, 3)), model)


@program
def a_layer_that_is_exchanged(wrap, record):
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 2))
    step = wrap(lambda x: model(x).detach())
    for i in range(6):
        if i == 2:
            model[1] = nn.Tanh()
        if i == 4:
            model.insert(1, nn.LayerNorm(2))
        record(step(torch.randn(4, 3)))


@program
def a_group_of_parameters_that_is_added(wrap, record):
    a, optimizer = regression()
    b = nn.Linear(3, 2)
    step = wrap(training(lambda x: a(x) + b(x), optimizer, mean_square))
    for i in range(6):
        if i == 3:
            optimizer.add_param_group({"params": b.parameters(), "lr": 0.01})
        record(step(torch.randn(4, 3)), a, b)


@program
def weights_that_are_tied_and_cut_apart(wrap, record):
    embedding, head = nn.Embedding(7, 3), nn.Linear(3, 7, bias=False)
    head.weight = embedding.weight
    optimizer = torch.optim.SGD(embedding.parameters(), 0.1)
    step = wrap(training(lambda i: head(embedding(i).tanh()), optimizer, mean_square))
    for i in range(6):
        if i == 3:
            head.weight = nn.Parameter(head.weight.detach().clone())
            optimizer.add_param_group({"params": [head.weight]})
        record(step(torch.randint(7, (2, 3))), embedding, head)


@program
def parameters_whose_data_is_replaced(wrap, record):
    model, optimizer = regression()
    step = wrap(training(model, optimizer, mean_square))
    for i in range(6):
        record(step(torch.randn(4, 3)), model)
        if i % 2:
            model.weight.data = torch.randn(2, 3)
        if i == 3:
            model.weight.data.mul_(0.5)


@program
def parameters_that_only_some_calls_use(wrap, record):
    a, b = nn.Linear(3, 2), nn.Linear(3, 2)
    optimizer = torch.optim.Adam([*a.parameters(), *b.parameters()], 0.1)
    step = wrap(training(lambda x, both: a(x) + b(x) if both else a(x), optimizer, mean_square))
    for i in range(6):
        record(step(torch.randn(4, 3), i % 2 == 1), a, b)


@program
def gradients_given_from_outside(wrap, record):
    model, _ = regression()

    @wrap
    def accumulate(x):
        mean_square(model(x)).backward()

    for i in range(6):
        if i == 3:
            for p in model.parameters():
                p.grad = torch.ones_like(p)
        accumulate(torch.randn(4, 3))
        record(model)


# ---- modes and hooks
@program
def evaluation_inside_a_training_step(wrap, record):
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Dropout(0.5))
    train = training(model, torch.optim.SGD(model.parameters(), 0.1), mean_square)

    @wrap
    def step(x, v):
        model.train()
        loss = train(x)
        model.eval()
        with torch.no_grad():
            return loss, model(v).mean()

    for _ in range(4):
        record(step(torch.randn(4, 3), torch.randn(4, 3)), model)


@program
def hooks_that_come_and_go(wrap, record):
    model, optimizer = regression()
    kept = {}
    model.register_forward_hook(lambda module, inputs, output: kept.__setitem__("output", output.detach()))
    model.weight.register_hook(lambda g: g * 2)
    step = wrap(training(model, optimizer, mean_square))
    for i in range(9):
        if i == 3:
            handle = model.bias.register_hook(lambda g: g * 0)
        if i == 6:
            handle.remove()
        record(step(torch.randn(4, 3)), model, kept["output"])


@program
def transforms_inside_and_outside(wrap, record):
    w = torch.randn(3, 3)

    def f(x):
        return (x @ w).tanh().sum()

    inside, outside = wrap(lambda xs: torch.func.vmap(torch.func.grad(f))(xs)), wrap(f)
    for _ in range(3):
        x = torch.randn(2, 3)
        record(inside(x), outside(x[0]), torch.func.vmap(outside)(x), torch.func.grad(outside)(x[0]))
        record(torch.autograd.functional.jacobian(outside, x[1]))


# ---- where values come from
@program
def values_of_objects(wrap, record):
    class Slots:
        __slots__ = ("k",)

    class Plain:
        k = 1.0

        def scaled(self, x):
            return x * self.k

    slots, plain, numbers, x = Slots(), Plain(), {"a": 1.0, "b": 2.0}, torch.ones(2)
    slots.k = 1.0

    def named(x, *, k=1.0):
        return x * k

    functions = [
        wrap(lambda x: x * slots.k),
        wrap(functools.partial(operator.methodcaller("scaled", x), plain)),
        wrap(lambda x: x * sum(numbers.values())),
        wrap(functools.partial(lambda x, n: x * n["a"], n=numbers)),
        wrap(named),
    ]
    for i in range(4):
        record([f() if f is functions[1] else f(x) for f in functions])
        slots.k += 1
        plain.k += 1
        numbers["a"] += 1
        numbers.pop("b", None)
        named.__kwdefaults__["k"] = float(i)


@program
def globals_of_another_module(wrap, record):
    module = types.ModuleType("settings_of_a_program")
    exec("scale = 1.0\ndef scaled(x): return x * scale", module.__dict__)
    compiled = wrap(lambda x: module.scaled(x))
    for _ in range(4):
        record(compiled(torch.ones(2)))
        module.scale += 1


@program
def arguments_of_any_number_and_name(wrap, record):
    compiled = wrap(lambda *values, **named: sum(values) + sum(named.values()))
    x = torch.ones(2)
    for _ in range(2):
        record(compiled(x, x), compiled(x, y=x), compiled(x, z=x, y=3), compiled(x, y=3, z=x))


@program
def tables_in_a_dict_by_size(wrap, record):
    tables = {}

    def positions(n):
        if n not in tables:
            tables[n] = torch.arange(float(n))
        return tables[n]

    compiled = wrap(lambda x: x + positions(len(x)))
    for n in (2, 2, 3, 3, 2, 3, 4, 4):
        record(compiled(torch.ones(n)))


# ---- what stays eager, and is right
@program
def counters_and_histories(wrap, record):
    calls, history, x = {"n": 0}, [], torch.ones(2)

    def count(x):
        calls["n"] += 1
        return x * calls["n"]

    def remember(x):
        history.append(x.sum())
        return x * len(history)

    functions = [wrap(count), wrap(remember)]
    for _ in range(6):
        record([f(x) for f in functions], dict(calls)["n"], history)


@program
def branches_on_values(wrap, record):
    model, optimizer = regression()

    def finite(x):
        optimizer.zero_grad()
        loss = mean_square(model(x))
        if not torch.isfinite(loss):
            return None
        loss.backward()
        optimizer.step()
        return loss.detach()

    def halve(x):
        n = 0
        while x.abs().max() > 0.1:
            x, n = x * 0.5, n + 1
        return x, n

    finite, halve = wrap(finite), wrap(halve)
    for value in (1.0, float("nan"), 2.0):
        record(finite(torch.full((4, 3), value)), model)
    record(halve(torch.ones(2)), halve(torch.full((2,), 3.0)))


def recorded(name, wrap):
    torch.manual_seed(0)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # why a function stays eager
        PROGRAMS[name](wrap, lambda *values: found.append(seen(values)))
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_as_eager(name):
    eager = recorded(name, lambda f: f)
    eq(recorded(name, torch.compile), eager, nan=True)
    eq(recorded(name, functools.partial(torch.compile, check=True)), eager, nan=True)
