"""Compiled training steps leave parameters, gradients and optimizers as eager ones do, however the step is written."""

from __future__ import annotations

import copy

import pytest

import autograd_nb as torch
from autograd_nb import nn
from autograd_nb.utils.checkpoint import checkpoint

from .common import eq, in_threads, same, train_beside_eager

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # many kernels


def test_accumulate_zero_outside():
    w = torch.ones(3, requires_grad=True)

    def step(x):
        (w * x).sum().backward()

    c = torch.compile(step)
    for i in range(8):
        if i % 2 == 0:
            w.grad = None
        c(torch.full((3,), float(i + 1)))
        if i % 2 == 1:
            assert w.grad.tolist() == [float(2 * i + 1)] * 3, (i, w.grad)
        else:
            assert w.grad.tolist() == [float(i + 1)] * 3, (i, w.grad)
    w.grad = torch.full((3,), 100.0)
    c(torch.ones(3))
    assert w.grad[0] == 101


def layer(optimizer=torch.optim.SGD):
    torch.manual_seed(0)
    model = nn.Linear(3, 3)
    return model, optimizer(model.parameters(), 0.1)


def accumulating():
    """Gradients of three calls are summed before each step."""
    model, optimizer = layer(torch.optim.Adam)

    def step(x, last):
        (model(x).square().sum() / 3).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()

    return model, step


def delayed():
    """A step is made with the gradients of the call before."""
    model, optimizer = layer()

    def step(x):
        optimizer.step()
        optimizer.zero_grad()
        model(x).square().sum().backward()

    return model, step


def set_to_zero():
    """Gradients are filled with zeros, not forgotten."""
    model, optimizer = layer()

    def step(x):
        optimizer.zero_grad(set_to_none=False)
        model(x).square().sum().backward()
        optimizer.step()
        return model.weight.grad.norm()

    return model, step


def averaged():
    """A second model follows the first one's parameters."""
    model, optimizer = layer()
    average = copy.deepcopy(model)

    def step(x):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()
        with torch.no_grad():
            for p, q in zip(average.parameters(), model.parameters(), strict=True):
                p.mul_(0.9).add_(q, alpha=0.1)

    return nn.ModuleList([model, average]), step


def forget_before_the_seventh(k, model):
    if k == 6:
        model.zero_grad()


#: name -> (what makes model and step, further arguments of each call, what happens before a call)
STEPS = {
    "accumulating": (accumulating, [(i % 3 == 2,) for i in range(12)], {}),
    "delayed": (delayed, [()] * 9, {"before": forget_before_the_seventh}),
    "set to zero": (set_to_zero, [()] * 6, {}),
    "averaged": (averaged, [()] * 5, {}),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_leaves_what_the_eager_one_leaves(name):
    make, calls, options = STEPS[name]
    train_beside_eager(make, *calls, **options)


def test_scheduler_inside():
    for mk in (
        lambda o: torch.optim.lr_scheduler.StepLR(o, 2),
        lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 5),
        lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda e: 0.9**e),
        lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=20),
    ):
        out = []
        for comp in (0, 1):
            torch.manual_seed(0)
            m = nn.Linear(3, 2)
            o = torch.optim.SGD(m.parameters(), 0.1, momentum=0.9)
            s = mk(o)

            def step(x):
                o.zero_grad()
                m(x).square().sum().backward()
                o.step()
                s.step()

            f = torch.compile(step) if comp else step
            for i in range(8):
                f(torch.full((1, 3), i / 8))
                assert type(o.param_groups[0]["lr"]) is float
            out.append((m.weight.detach().clone(), o.param_groups[0]["lr"]))
        eq(out[0][0], out[1][0])
        assert out[0][1] == out[1][1]


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointed_step(reentrant):
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5))
    n = copy.deepcopy(m)

    def make(m):
        o = torch.optim.SGD(m.parameters(), 0.01)

        def step(x):
            o.zero_grad()
            # the reentrant form has gradients only where its arguments require one
            y = checkpoint(m, m[0](x) if reentrant else x, use_reentrant=reentrant)
            loss = (y + torch.rand(1)).square().sum()
            loss.backward()
            o.step()
            return loss.detach()

        return step

    c, e = torch.compile(make(m)), make(n)
    for i in range(5):
        x = torch.randn(4, 8)
        results = []
        for f in (c, e):
            torch.manual_seed(i)
            results.append((f(x), torch.rand(1)))
        eq(*results)
    same(m, n)


def test_checkpointed_result():
    m = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5))
    f = lambda x: checkpoint(m, x, use_reentrant=False)
    c = torch.compile(f)
    for i in range(4):
        x = torch.randn(4, 8)
        torch.manual_seed(i)
        g = torch.autograd.grad(c(x).square().sum(), m[0].weight)
        torch.manual_seed(i)
        eq(g, torch.autograd.grad(f(x).square().sum(), m[0].weight))


def test_a_checkpoint_reads_what_tensors_hold_when_a_pass_runs():
    w = torch.ones(8, requires_grad=True)
    f = lambda: checkpoint(lambda q: q.sin() * w, w, use_reentrant=False)
    c = torch.compile(f)
    for _ in range(3):
        found = []
        for run in (f, c):
            w.data.fill_(0.5)
            y = run()
            w.data.mul_(2)
            found.append(torch.autograd.grad(y.square().sum(), w))
        eq(*found)


def test_threads_capture_opt():
    m = nn.Linear(4, 4)
    o = torch.optim.SGD(m.parameters(), 0.1)

    def step(x):
        o.zero_grad()
        m(x).sum().backward()
        o.step()

    c = torch.compile(step)
    before = m.bias.detach().clone()
    in_threads(3, lambda _: [c(torch.ones(k, 4)) for k in range(1, 5)])
    assert type(o.param_groups[0]["lr"]) is float
    assert (m.bias < before).all()


def test_gradients_that_were_none_are_forgotten_in_every_call():
    w, x = torch.ones(3, requires_grad=True), torch.ones(3)
    optimizer = torch.optim.SGD([w], 0.1)

    @torch.compile
    def forward(x):
        optimizer.zero_grad()
        return (w * x).sum()

    for _ in range(3):
        forward(x).backward()
        assert w.grad.tolist() == [1, 1, 1]
    assert len(forward.programs) == 1


def test_a_result_without_a_gradient_gives_none_to_what_only_it_depends_on():
    v, w = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    both = torch.compile(lambda x: (v * x, w * x, v * w))
    for _ in range(3):
        first, _, third = both(torch.full((3,), 2.0))
        first.sum().backward(retain_graph=True)
        assert v.grad.tolist() == [2, 2, 2] and w.grad is None
        third.sum().backward()
        assert v.grad.tolist() == [3, 3, 3] and w.grad.tolist() == [1, 1, 1]
        v.grad = w.grad = None


@pytest.mark.parametrize("apart", [True, False])
def test_one_program_takes_lengths_of_any_values(apart):
    """Those of `ctc_loss`: the states are as many as there could be."""

    def loss(x, labels, steps, sizes):
        return nn.functional.ctc_loss(x.log_softmax(2), labels, steps, sizes)

    compiled = torch.compile(loss, fullgraph=True)
    torch.manual_seed(0)
    for steps, sizes in (([7, 6, 7], [2, 1, 3]), ([5, 6, 7], [1, 3, 2]), ([7, 6, 3], [3, 3, 0])):
        x = torch.randn(7, 3, 5, requires_grad=True)
        labels = torch.randint(1, 5, (3, 4) if apart else (6,))
        args = x, labels, torch.tensor(steps), torch.tensor(sizes)
        want = loss(*args)
        found = compiled(*args)
        assert torch.allclose(found, want)
        assert torch.allclose(*[torch.autograd.grad(y, x)[0] for y in (found, want)])
    assert len(compiled.programs) == 1


def test_the_mean_of_all_batches_is_compiled():
    """BatchNorm with momentum=None weighs a batch by how many there were."""
    torch.manual_seed(0)
    layers = [nn.BatchNorm1d(3, momentum=None) for _ in range(2)]
    compiled = torch.compile(layers[0], fullgraph=True)
    for _ in range(5):
        x = torch.randn(6, 3)
        assert torch.allclose(compiled(x), layers[1](x), atol=1e-6)
        for mine, own in zip(layers[0].buffers(), layers[1].buffers(), strict=True):
            assert torch.allclose(mine, own, atol=1e-6)
            assert mine._version == own._version
    assert len(compiled.programs) == 1 and layers[0].num_batches_tracked == 5
    for results in [layer(torch.randn(6, 3, requires_grad=True)) for layer in (compiled, layers[1])]:
        for layer in layers:
            layer.reset_running_stats()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            results.sum().backward()


@pytest.mark.parametrize("shape", [(0, 3), (3, 0, 4), (0, 3, 2)])
def test_a_batch_of_nothing_moves_no_mean_of_all_batches(shape):
    """It is counted, and its result may be differentiated after the statistics were reset."""
    torch.manual_seed(0)
    layers = [nn.BatchNorm1d(3, momentum=None) for _ in range(2)]
    compiled = torch.compile(layers[0], fullgraph=True)
    for _ in range(2):
        x, means = torch.randn(6, 3), []
        for layer, f in zip(layers, (compiled, layers[1]), strict=True):
            f(x)
            y = f(torch.ones(shape))
            means.append(layer.running_mean.clone())
            layer.reset_running_stats()
            y.sum().backward()
        assert torch.allclose(*means, atol=1e-6)
        for mine, own in zip(layers[0].buffers(), layers[1].buffers(), strict=True):
            assert torch.allclose(mine, own, atol=1e-6) and mine._version == own._version


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("shared", ["[w, w]", "[w, b, w, b, b]"])
@pytest.mark.parametrize(
    "clip",
    [
        lambda ps: torch.nn.utils.clip_grad_norm_(ps, 0.1),
        lambda ps: torch.nn.utils.clip_grad_value_(ps, 0.3),
        lambda ps: torch.nn.utils.clip_grads_with_norm_(ps, 0.1, 2.0),
    ],
)
def test_gradients_that_a_list_names_twice_are_clipped_twice(clip, shared, kept):
    """They are the program's own, or were there before it."""

    def made():
        w, b = (torch.full((3,), v, requires_grad=True) for v in (1.0, 2.0))
        parameters = eval(shared, {"w": w, "b": b})

        def step(x):
            if not kept:
                w.grad = b.grad = None
            ((w + b * 2) * x).sum().backward()
            clip(parameters)
            return w.grad * 1, b.grad * 1

        return step

    eager, compiled = made(), torch.compile(made(), fullgraph=True)
    for k in range(4):
        x = torch.arange(3.0) + k
        for a, b in zip(compiled(x), eager(x), strict=True):
            torch.testing.assert_close(a, b)
