"""Tensors that a function leaves in attributes, dicts, lists and variables: each run leaves new ones, from the last ones if it
reads them."""

from __future__ import annotations

import gc
import warnings
import weakref

import pytest

import autograd_nb as torch
from autograd_nb import nn
from autograd_nb.nn import functional as F


class ContentLoss(nn.Module):
    """A layer that passes on what it is given, and keeps how far it is from a target."""

    def __init__(self, target):
        super().__init__()
        self.target = target.detach()
        self.loss = None

    def forward(self, x):
        self.loss = F.mse_loss(x, self.target)
        return x


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), ContentLoss(torch.ones(2, 4)), nn.Tanh(), ContentLoss(torch.zeros(2, 4)))


def test_losses_that_layers_keep(model):
    compiled = torch.compile(model, fullgraph=True)
    earlier = []
    for i in range(5):
        x = torch.full((2, 3), float(i), requires_grad=True)
        model(x)
        wanted = [model[1].loss, model[3].loss]
        (g,) = torch.autograd.grad(wanted[0] + 2 * wanted[1], x)
        y = compiled(x)
        kept = [model[1].loss, model[3].loss]
        torch.testing.assert_close(y, model[2](model[0](x)))
        for a, b in zip(kept, wanted, strict=True):
            assert a is not b
            torch.testing.assert_close(a, b)
        (h,) = torch.autograd.grad(kept[0] + 2 * kept[1], x)
        torch.testing.assert_close(h, g)
        earlier.append((kept[0], wanted[0].item()))
    assert len(compiled.programs) == 1
    assert all(t.item() == pytest.approx(v) for t, v in earlier)  # each run leaves a tensor of its own


def follows(make, inputs, programs, **options):
    """Compiled and eager from the same start, call by call: results, and what ``make`` says is kept (result, kept → tensors)."""
    torch.manual_seed(0)
    eager, kept_eager = make()
    torch.manual_seed(0)
    function, kept = make()
    compiled = torch.compile(function, fullgraph=True, **options)
    for x in inputs:
        torch.testing.assert_close(compiled(x), eager(x))
        for a, b in zip(kept(), kept_eager(), strict=True):
            torch.testing.assert_close(a.detach(), b.detach())
            assert a._version == b._version
    assert len(compiled.programs) == programs


INPUTS = [torch.tensor([1.0, float(i)]) for i in range(7)]


@pytest.mark.parametrize("check", [False, True])
def test_a_buffer_that_is_replaced_by_its_average(check):
    class Average(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(2))

        def forward(self, x):
            self.mean = 0.5 * self.mean + 0.5 * x
            return self.mean * 2

    def make():
        m = Average()
        return m.forward, lambda: [m.mean]

    follows(make, INPUTS, 1, check=check)


def test_a_number_that_becomes_a_tensor():
    def make():
        state = {"average": 0.0}

        def step(x):
            state["average"] = 0.9 * state["average"] + 0.1 * x.sum()
            return x * state["average"]

        return step, lambda: [torch.as_tensor(state["average"])]

    follows(make, INPUTS, 1)


def test_a_variable_of_a_closure_that_holds_a_tuple():
    def make():
        cell = nn.LSTMCell(2, 3)
        state = (torch.zeros(3), torch.zeros(3))

        def step(x):
            nonlocal state
            h, c = cell(x, state)
            state = (h.detach(), c.detach())
            return h.sum().detach()

        return step, lambda: state

    follows(make, INPUTS, 1)


def test_items_of_a_list_of_which_one_reads_the_other():
    def make():
        layers = [torch.zeros(2), torch.ones(2)]

        def step(x):
            layers[0] = torch.tanh(layers[0] + x)
            layers[1] = layers[1] - layers[0]
            return layers[1] * 2

        return step, lambda: layers

    follows(make, INPUTS, 1)


def test_the_last_result_and_the_last_argument():
    def make():
        last = {"x": torch.zeros(2), "y": torch.ones(2)}

        def step(x):
            change, before = x - last["x"], last["y"]
            last["x"], last["y"] = x, x * 2
            return change, before

        return step, lambda: last.values()

    follows(make, INPUTS, 1)
    follows(make, INPUTS[:1] * 7, 1)  # the argument is what it has kept


def test_what_is_made_once_and_changed_in_place_is_state():
    def make():
        state = {"sum": None}

        def step(x):
            if state["sum"] is None:
                state["sum"] = torch.zeros(2)
            state["sum"].mul_(0.5).add_(x)
            return state["sum"] * 1

        return step, lambda: [state["sum"]]

    follows(make, INPUTS, 1)


def test_backpropagation_through_time_in_pieces():
    """A hidden state that begins as None, is cut from its graph after each piece, and begins anew now and then."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.hidden = nn.RNNCell(3, 4), None

        def forward(self, x):
            for row in x:
                self.hidden = self.cell(row, self.hidden)
            return self.hidden

    def training(compiled):
        torch.manual_seed(1)
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), 0.1)

        def step(x):
            loss = net(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            net.hidden = net.hidden.detach()
            return loss.detach()

        return net, torch.compile(step, fullgraph=True) if compiled else step

    (net, step), (wanted, expected) = training(True), training(False)
    for i in range(12):
        if i % 4 == 3:
            net.hidden = wanted.hidden = None
        x = torch.randn(2, 5, 3)
        torch.testing.assert_close(step(x), expected(x))
        torch.testing.assert_close(net.hidden, wanted.hidden)
    for p, q in zip(net.parameters(), wanted.parameters(), strict=True):
        torch.testing.assert_close(p, q)
    assert [p.reason for p in step.programs] == ["first call of its kind", "net.hidden is None and was a Tensor"]


def test_a_table_that_is_made_anew_for_another_size():
    def make():
        table = {"mask": None}

        def step(x):
            if table["mask"] is None or table["mask"].size(0) != x.size(0):
                table["mask"] = torch.tril(torch.ones(x.size(0), x.size(0)))
            return table["mask"] @ x

        return step, lambda: [table["mask"]]

    follows(make, [torch.ones(2 + i % 2) for i in range(8)], 2)


def test_a_graph_that_goes_on_through_what_is_kept():
    def make():
        w, state = torch.ones(2, requires_grad=True), {"h": torch.zeros(2)}

        def step(x):
            state["h"] = torch.tanh(state["h"] * w + x)
            return state["h"].sum()

        return w, state, step

    (w, state, step), (v, wanted, eager) = make(), make()
    step = torch.compile(step, fullgraph=True)
    for i in range(9):
        loss, expected = step(INPUTS[i % 7]), eager(INPUTS[i % 7])
        torch.testing.assert_close(loss, expected)
        if i % 3 == 2:
            loss.backward()
            expected.backward()
            torch.testing.assert_close(w.grad, v.grad)
            for s in (state, wanted):
                s["h"] = s["h"].detach()
    assert step.programs


def test_a_leaf_made_inside_stays_eager():
    def step(x):
        return (x + 1).detach().requires_grad_()

    compiled = torch.compile(step)
    with pytest.warns(UserWarning, match="it makes a leaf that requires grad"):
        assert compiled(INPUTS[0]).is_leaf
    assert compiled(INPUTS[1]).is_leaf


def test_branches_on_what_is_kept():
    class First(nn.Module):
        def __init__(self):
            super().__init__()
            self.seen = None

        def forward(self, x):
            y = x * 2 if self.seen is None else x * 3
            self.seen = x + 1
            return y

    m, e = First(), First()
    compiled = torch.compile(m)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(12):
            if i in (6, 9):
                m.seen = e.seen = None
            x = torch.tensor([float(i)])
            assert compiled(x).item() == e(x).item()
            assert m.seen.item() == e.seen.item()


def test_kept_only_sometimes():
    class Sometimes(nn.Module):
        def __init__(self):
            super().__init__()
            self.keep, self.last = True, None

        def forward(self, x):
            if self.keep:
                self.last = x * 5
            return x + 1

    m, e = Sometimes(), Sometimes()
    compiled = torch.compile(m)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(16):
            m.keep = e.keep = i % 8 < 5
            x = torch.tensor([float(i)])
            assert compiled(x).item() == e(x).item()
            assert m.last.item() == e.last.item()


def test_results_in_a_dict():
    out: dict = {}

    @torch.compile(fullgraph=True)
    def f(x):
        out["square"] = x * x
        return x + 1

    for i in range(6):
        assert f(torch.tensor([float(i)])).item() == i + 1
        assert out["square"].item() == i * i
    assert len(f.programs) == 1


@pytest.mark.parametrize("size", [2, 3])
def test_earlier_calls_are_let_go(size):
    """What is kept has a graph, is reset by the user or begins with another size: no call keeps the one before it alive."""

    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.loss = nn.Linear(3, 2), None

        def forward(self, x):
            y = self.linear(x)
            self.loss = y.square().mean(0 if size == 3 else None)
            return y

    m = Loss()
    compiled = torch.compile(m, fullgraph=True)

    def call(i):
        if size == 2:
            m.loss = None
        y = compiled(torch.ones(2 + i % size, 3))
        return weakref.ref(y.grad_fn)

    nodes = [call(i) for i in range(20)]
    gc.collect()
    assert compiled.programs and sum(n() is not None for n in nodes) <= 2
