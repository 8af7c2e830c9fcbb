"""The place of compiled results in the graph: what `test_agreement` looks at for many functions, for the plainest of them."""

from __future__ import annotations

import contextlib
import functools

import pytest

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb import nn
from autograd_nb.compiler.run import backward, variant
from autograd_nb.compiler.run.check import CompileError
from autograd_nb.errors import ConsumedGraphError, ModifiedError

from ..functions import Double
from .common import eq, in_threads
from .test_agreement import Parted

pytestmark = pytest.mark.filterwarnings("ignore")


def leaf(*numbers):
    return torch.tensor(numbers, requires_grad=True)


def test_a_result_of_which_the_function_has_changed_what_was_saved():
    def changed(p):
        y = torch.exp(p)
        z = y * y
        y.zero_()
        return z

    compiled = torch.compile(changed, fullgraph=True)
    for k in range(3):
        p = leaf(0.5, 1.0 + k)
        z = compiled(p)
        assert z.requires_grad and z.grad_fn is not None and not z.is_leaf
        with pytest.raises(ModifiedError, match="is at version 1; expected version 0"):
            z.sum().backward()
        assert p.grad is None


def test_a_loss_of_which_the_function_has_run_the_backward_pass():
    w = leaf(1.0, 2.0)

    @torch.compile(fullgraph=True)
    def step(x):
        w.grad = None
        loss = (x * w).sum()
        loss.backward()
        return loss

    for k in range(3):
        loss = step(torch.tensor([1.0, 2.0 + k]))
        assert loss.requires_grad and loss.grad_fn.name() == "SumBackward0"
        for attempt in (loss.backward, lambda loss=loss: torch.autograd.grad(loss, w)):
            with pytest.raises(ConsumedGraphError, match=r"consumed by the backward pass at .*loss\.backward"):
                attempt()
        assert w.grad.tolist() == [1, 2 + k]
    assert step.programs[0].state.fast_path is not None


def test_results_are_consumed_as_far_as_they_have_something_in_common():
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)
    apart = torch.compile(lambda x: (x * w, x * v), fullgraph=True)
    together = torch.compile(lambda x: ((x * w).exp() * v, (x * w).exp()), fullgraph=True)

    def trunk(x):
        h = (x * w).exp()
        return h * v, h

    together = torch.compile(trunk, fullgraph=True)
    for _ in range(3):
        a, b = apart(torch.ones(2))
        a.sum().backward()
        b.sum().backward()
        with pytest.raises(ConsumedGraphError):
            a.sum().backward()
        a, b = together(torch.ones(2))
        a.sum().backward()
        with pytest.raises(ConsumedGraphError):
            b.sum().backward()


def test_hooks_and_retained_gradients_of_a_result_that_another_depends_on():
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)

    def run(x):
        y = x * w
        return (y * v).sum(), y

    compiled = torch.compile(run, fullgraph=True)
    for _ in range(3):
        found = []
        for function in (compiled, run):
            w.grad = v.grad = None
            loss, y = function(torch.ones(2))
            y.retain_grad()
            y.register_hook(lambda g: g * 10)
            (direct,) = torch.autograd.grad(loss, y, retain_graph=True)
            loss.backward()
            found.append([direct, y.grad, w.grad, v.grad])
        eq(*found)


def test_a_change_of_a_result_that_its_backward_pass_reads():
    compiled = torch.compile(lambda x: x.exp(), fullgraph=True)
    for _ in range(3):
        x = leaf(0.0, 1.0)
        y = compiled(x)
        with torch.no_grad():
            y.mul_(2)
        with pytest.raises(ModifiedError):
            y.sum().backward()
        assert x.grad is None


def test_a_missing_gradient_is_not_one_of_zeros():
    compiled = torch.compile(lambda x: (x.sqrt(), x * 2), fullgraph=True)
    for _ in range(3):
        x = leaf(0.0, 4.0)
        compiled(x)[1].sum().backward()
        assert x.grad.tolist() == [2, 2]


@pytest.mark.parametrize("pair", [lambda a: Parted.apply(a * 2), pytest.param(torch.linalg.qr, marks=pytest.mark.slow)])
def test_outputs_of_one_node_that_are_missing(pair):
    def run(a):
        q, r = pair(a)
        return q, r

    compiled = torch.compile(run, fullgraph=True)
    for _ in range(3):
        for which in ([0], [1], [0, 1]):
            found = []
            for function in (compiled, run):
                a = torch.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
                out = function(a)
                sum((out[k] * torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum() for k in which).backward()
                found.append(a.grad)
            eq(*found)


def test_grad_mode_is_that_of_the_function():
    w = leaf(1.0, 2.0)

    def run(x):
        with torch.enable_grad():
            return x * w

    compiled = torch.compile(run, fullgraph=True)
    for _ in range(3):
        with torch.no_grad():
            y = compiled(torch.ones(2))
        assert y.requires_grad
        y.sum().backward()
    assert w.grad.tolist() == [3, 3]


def test_derivatives_of_derivatives_of_several_results():
    w = leaf(1.0, 2.0)

    def run(x):
        y = (x * w).exp()
        return y, (y * w).sum()

    compiled = torch.compile(run, fullgraph=True)
    for _ in range(3):
        found = []
        for function in (compiled, run):
            x = leaf(0.5, 0.25)
            y, z = function(x * 1)
            (g,) = torch.autograd.grad([y.sum(), z], w, create_graph=True)
            found.append([g, *torch.autograd.grad(g.sum(), [w, x])])
        eq(*found)


def test_derivatives_of_derivatives_draw_the_numbers_of_the_call():
    w = leaf(*map(float, range(1, 21)))

    def run(x):
        return (F.dropout(x * w, 0.5) * torch.rand(20)) ** 2

    def second(function, x):
        torch.manual_seed(4)
        y, other = function(x), function(x)
        (g,) = torch.autograd.grad(y.sum(), w, create_graph=True)
        return torch.autograd.grad(g.sum(), w)[0], other.detach(), torch.rand(3)

    compiled = torch.compile(run, fullgraph=True)
    for _ in range(3):
        eq(second(compiled, torch.ones(20)), second(run, torch.ones(20)))


class Momentum(nn.Module):
    """Changes in all ways: memory of its own, a gradient, a place where it leaves a tensor that the next call reads."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, 2.0]))
        self.register_buffer("seen", torch.zeros(2))
        self.last = torch.ones(2, dtype=torch.float64)

    def forward(self, x):
        self.seen.mul_(0.5).add_(x.detach())
        self.weight.grad = None
        (self.weight * x.detach() * self.seen).sum().backward()
        y = (x * self.weight * (self.seen * 1)).exp() * self.last * (1 + self.weight.grad)
        self.last = y.detach() * 0.5
        return y


@pytest.mark.parametrize("make", [lambda: nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Tanh()), Momentum])
def test_derivatives_of_derivatives_of_a_function_that_changes_tensors(make):
    found = []
    for compiling in (False, True):
        torch.manual_seed(0)
        model = make().double()
        function = torch.compile(model, fullgraph=True) if compiling else model
        mine = []
        for k in range(5):
            x = torch.arange(2).double() / 3 + k / 8
            if make is not Momentum:
                x = x * torch.linspace(1, 2, 4)[:, None] ** 2
            x.requires_grad_()
            first, second = function(x), function(x)
            (g,) = torch.autograd.grad(second.sum(), x, create_graph=True)
            model.zero_grad()
            ((g**2).sum() + first.sum()).backward()
            mine += [g.detach(), x.grad, *[p.grad for p in model.parameters()], *[b.clone() for b in model.buffers()]]
            mine += [b._version for b in model.buffers()]
        found.append(mine)
    eq(*found)


def test_derivatives_of_derivatives_through_an_earlier_call_begin_where_that_began():
    model = nn.BatchNorm1d(2)
    total = torch.zeros(2)

    def run(x):
        total.add_(x.detach().sum(0))
        return (model(x) * total).tanh()

    compiled = torch.compile(run, fullgraph=True)
    x = torch.tensor([[1.0, 2.0], [4.0, -1.0], [0.5, 0.5]], requires_grad=True)
    found = []
    for function in (run, compiled):
        total.zero_()
        model.reset_running_stats()
        for _ in range(3):
            y = function(x)
        z = function(x * 2)
        total_then = total.clone()
        with pytest.raises(ModifiedError):  # total is saved, and not what it was
            torch.autograd.grad(y.sum(), x, create_graph=True)
        (g,) = torch.autograd.grad(z.sum(), x, create_graph=True)
        found.append([g.detach(), *torch.autograd.grad((g * g).sum(), [x, *model.parameters()]), model.running_mean.clone(), total_then])
        eq(total, total_then)
    eq(*found)


def changed(t):
    with torch.no_grad():
        t.add_(1)


@pytest.mark.parametrize("change", [changed, lambda t: t.data.add_(1)], ids=["in place", "data"])
@pytest.mark.parametrize("which", range(3))
def test_derivatives_of_derivatives_after_what_is_only_read_has_changed(which, change):
    def run(s, x):
        return (x + s[0]).exp(), s[0] * s[1], (x * s[1]).sin()  # each saves something else

    found = []
    for compiles in (False, True):
        state = [leaf(1.0, 2.0), leaf(0.5, 0.25)]
        function = functools.partial(run, state)
        function = torch.compile(function, fullgraph=True) if compiles else function
        mine = []
        for _ in range(3):
            x = leaf(0.5, -1.0)
            ys = function(x)
            change([*state, x][which])
            for y in ys:
                try:
                    gs = torch.autograd.grad(y.sum(), [*state, x], create_graph=True, retain_graph=True, allow_unused=True)
                    total = sum((g * g).sum() for g in gs if g is not None)
                    more = torch.autograd.grad(total, [*state, x], allow_unused=True) if total.requires_grad else ()
                    mine += [None if g is None else g.detach() for g in (*gs, *more)]
                except ModifiedError:
                    mine.append("refused")
        found.append(mine)
    assert "refused" in found[0] or change is not changed
    eq(*found)


def large(*numbers):
    """A leaf too large to be copied at each call, in case that another run needs it."""
    return torch.tensor([number for number in numbers for _ in range(5000)]).requires_grad_()


@pytest.mark.parametrize("change", [changed, lambda t: t.data.add_(1)], ids=["in place", "data"])
def test_what_is_gone_of_large_values_is_found_in_what_the_call_has_left(change):
    """The first such pass too: no call before it has kept what it read."""
    found = []
    for compiles in (False, True):
        w, x = large(0.25), torch.ones(5000)
        run = lambda x, w=w: (x + w).exp().sum()
        function = torch.compile(run, fullgraph=True) if compiles else run
        for _ in range(3):
            y = function(x)
            change(w), change(x)
        (g,) = torch.autograd.grad(y, w, create_graph=True)
        found.append([g.detach(), *torch.autograd.grad((g * g).sum(), w), w.detach(), w._version, x])
    eq(*found)


def test_what_is_gone_of_large_values_is_refused_where_eager_nodes_have_saved_it():
    found = []
    for compiles in (False, True):
        w, v = large(0.25), large(0.5)
        run = lambda x, w=w, v=v: ((x + w).sin(), (x * v).sin() * w)
        function = torch.compile(run, fullgraph=True) if compiles else run
        for _ in range(3):
            y, z = function(torch.ones(5000))
        changed(w)
        (g,) = torch.autograd.grad(y.sum(), w, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), w)
        with pytest.raises(ModifiedError):
            torch.autograd.grad(z.sum(), v, create_graph=True)
        found.append([g.detach(), h])
    eq(*found)


def test_what_is_gone_of_large_values_and_left_by_a_consumed_pass():
    found = []
    for compiles in (False, True):
        w = large(0.25)
        run = lambda x, w=w: ((x + w).sin(), (x - w).exp())
        function = torch.compile(run, fullgraph=True) if compiles else run
        for _ in range(3):
            y, z = function(torch.ones(5000))
        y.sum().backward()
        changed(w)
        (g,) = torch.autograd.grad(z.sum(), w, create_graph=True)
        found.append([w.grad, g.detach(), *torch.autograd.grad(g.sum(), w)])
    eq(*found)


def test_what_is_gone_of_large_values_may_be_saved_where_no_derivative_reads_it():
    """That of a maximum reads where it was."""
    found = []
    for compiles in (False, True):
        w = large(0.25)
        run = lambda x, w=w: F.max_pool2d(((x + w) * 1).view(1, 1, 50, 100), 2)
        function = torch.compile(run, fullgraph=True) if compiles else run
        for _ in range(3):
            y = function(torch.arange(5000.0))
        loss = (y * y).sum()
        changed(w)
        (g,) = torch.autograd.grad(loss, w, create_graph=True)
        found.append([g.detach(), *torch.autograd.grad((g * g).sum(), w)])
    eq(*found)


def test_a_large_value_of_which_a_part_is_small():
    found = []
    for compiles in (False, True):
        w = large(0.25)
        part = w.detach()[:4]
        run = lambda x, w=w, part=part: ((x + w).exp() * part.sum()).sum()
        function = torch.compile(run, fullgraph=True) if compiles else run
        for _ in range(2):
            y = function(torch.ones(5000))
        changed(w)
        try:
            (g,) = torch.autograd.grad(y, w, create_graph=True)
            found.append([g.detach(), *torch.autograd.grad(g.sum(), w)])
        except ModifiedError:
            found.append("refused")
    eq(*found)


def test_a_result_on_which_one_operand_of_a_shared_node_has_no_influence():
    """The weights of an attention depend on its values nowhere, though one node makes both: their gradient is None and not 0."""
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(4, 2)
    found = []
    for compiles in (False, True):
        function = torch.compile(lambda q, k, v: attention(q, k, v), fullgraph=True) if compiles else attention
        mine = []
        for _ in range(3):
            inputs = [torch.linspace(-1, 1, 24).view(3, 2, 4).add(i).requires_grad_() for i in range(3)]
            out, weights = function(*inputs)
            for result, again in ((weights, True), (out, False)):
                gs = torch.autograd.grad(result.square().sum(), [*inputs, *attention.parameters()], retain_graph=again, allow_unused=True)
                mine += [None if g is None else g.detach() for g in gs]
        found.append(mine)
    assert found[0][2] is None
    eq(*found)


@pytest.mark.parametrize("made", ["(x * 2).mT", "(x.mT + 1).exp()", "(x * w).permute(1, 0) * 2", "x.reshape(3, 2).t().exp()"])
def test_strides_of_gradients_that_come_in_another_order(made):
    found = []
    for compiles in (False, True):
        w, x = torch.ones(2, 3).requires_grad_(), torch.arange(6.0).view(2, 3).requires_grad_()
        function = eval(f"lambda x: {made}", {"w": w, "torch": torch})
        function = torch.compile(function, fullgraph=True) if compiles else function
        mine = []
        for k in range(4):
            y = function(x)
            rows, columns = y.shape
            g = torch.ones(rows, columns) if k % 2 else torch.ones(columns, rows).mT
            first, second = torch.autograd.grad(y, [x, w], g, allow_unused=True)
            mine += [first.stride(), first, None if second is None else second.stride()]
        found.append(mine)
    assert found[0][0] != found[0][3] or "reshape" in made
    eq(*found)


I = torch.arange(4)

VIEWS = {
    "view": lambda y: y.view(2, 2),
    "transposed": lambda y: y.view(2, 2).t(),
    "a part": lambda y: y[1:3],
    "repeated": lambda y: y[1:2].expand(3),
    "one of several": lambda y: y.chunk(2)[1],
    "one of them all": lambda y: y.unbind(0)[2],
    "not recorded": lambda y: torch.no_grad()(lambda: y.view(2, 2))(),
    "none": lambda y: y * 1,
}


def changed_behind(t):
    t.detach().add_(1)
    t.requires_grad_()


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("look", VIEWS)
def test_results_that_are_views(look, recorded):
    """What they refuse: to be detached in place, and some of them to be changed; and their base, which nobody else has."""
    w = leaf(1.0, 2.0, 3.0, 4.0)
    view = VIEWS[look]
    eager = lambda x: view(x * w)
    compiled = torch.compile(eager)

    def seen(function):
        def attempt(f, *args):
            try:
                f(*args)
            except RuntimeError as error:
                found.append(type(error))
            found.append([t.detach().clone() for t in args])
            base = args[0]._base
            found.append((args[0]._is_view(), base is None, base is args[0]._base))
            if base is not None:
                found.append((base.detach().clone(), base.stride(), base.requires_grad))

        found = []
        changes = (lambda t: t.detach_(), lambda t: t.mul_(2), lambda t: t.mul_(w[0]), lambda t: t.requires_grad_(), changed_behind)
        for what in (*changes, lambda t: t.sum().backward()):
            w.grad = None
            with contextlib.nullcontext() if recorded else torch.no_grad():
                t = function(torch.ones(4))
            found += [t.requires_grad, t.grad_fn is not None, t.is_leaf]
            attempt(what, t)
            attempt(lambda t: found.extend([t.requires_grad, t.is_leaf]), t)
            if t.requires_grad:
                attempt(lambda t: t.sum().backward(), t)
            found.append(None if w.grad is None else w.grad.clone())
        return found

    for _ in range(3):
        eq(seen(compiled), seen(eager))
    assert compiled.programs or (look == "not recorded" and recorded)


@pytest.mark.parametrize("view", [lambda b: b.split(1, -1)[0], lambda b: b.view(1, 2), lambda b: b.unbind()[1]])
def test_views_of_what_a_function_reaches_made_without_recording(view):
    b = leaf(1.0, 2.0)
    compiled = torch.compile(lambda: view(b))
    for recorded in (True, False, False):
        with torch.set_grad_enabled(recorded):
            found = [(t.requires_grad, t.grad_fn is None, t._is_view()) for t in (compiled(), view(b))]
        assert found[0] == found[1]


def test_a_gradient_with_a_graph_that_a_function_leaves():
    w = leaf(1.0, 2.0)
    compiled = torch.compile(lambda: w.pow(3).sum().backward(create_graph=True))
    for _ in range(3):
        w.grad = None
        compiled()
        (h,) = torch.autograd.grad(w.grad.sum(), w)
        assert h.tolist() == [6.0, 12.0]


def test_the_base_of_a_view_that_was_not_returned_has_no_history():
    compiled = torch.compile(lambda x: (x * 2)[1:])
    for k in range(2):
        t = compiled(leaf(1.0, 2.0))
    with pytest.raises(RuntimeError, match="return the base too"):
        t._base.sum().backward()
    t.sum().backward()


def test_backward_passes_that_raise_do_so_when_they_run():
    class Refusing(Double):
        @staticmethod
        def backward(ctx, g):
            raise KeyError("no")

    compiled = torch.compile(lambda x: Refusing.apply(x))
    for _ in range(3):
        y = compiled(leaf(1.0, 2.0))
        with pytest.raises(KeyError):
            y.sum().backward()


def test_what_a_backward_pass_prints_is_printed(capsys):
    class Telling(Double):
        @staticmethod
        def backward(ctx, g):
            print("told")
            return g * 2

    compiled = torch.compile(lambda x: Telling.apply(x))
    for _ in range(3):
        y = compiled(leaf(1.0, 2.0))
        capsys.readouterr()
        y.sum().backward()
        assert capsys.readouterr().out == "told\n"


def test_hooks_on_arguments_of_later_calls():
    """A call in which the function, for the first time, hooks on a computed argument of a kind that was captured before."""
    seen = []
    hooking = [False]

    def run(x):
        if hooking[0]:
            x.register_hook(seen.append)
        return x * 2

    compiled = torch.compile(run)
    for k in range(4):
        hooking[0] = k > 1
        p = leaf(1.0, 2.0)
        x = p * 1
        (compiled(x).sum() + x.sum()).backward()
        assert p.grad.tolist() == [3, 3]
    assert [g.tolist() for g in seen] == [[3, 3]] * 2


def test_backward_passes_into_a_graph_that_was_made_before():
    hidden = leaf(1.0, 2.0)

    def run(x):
        (x * 2).sum().backward(retain_graph=True)
        return x.detach() * 3

    compiled = torch.compile(run)
    for k in range(3):
        compiled(hidden.exp())
        eq(hidden.grad, 2 * (k + 1) * hidden.detach().exp())
    hidden.grad = None
    reached = hidden.exp()
    compiled = torch.compile(lambda x: (x * reached).sum().backward(retain_graph=True))
    for k in range(3):
        compiled(torch.ones(2))
        eq(hidden.grad, (k + 1) * hidden.detach().exp())


def test_an_argument_is_the_result_on_the_first_call_too():
    compiled = torch.compile(lambda x: (x, x * 2))
    for _ in range(3):
        x = leaf(1.0, 2.0) * 1
        assert compiled(x)[0] is x


def test_results_in_threads():
    w = leaf(1.0, 2.0)
    compiled = torch.compile(lambda x: (x * w, x.exp()))

    def work(k):
        for _ in range(20):
            x = leaf(0.5, float(k))
            a, b = compiled(x)
            (g,) = torch.autograd.grad(a.sum() + b.sum(), x)
            eq(g, w.detach() + x.detach().exp())

    in_threads(4, work)


# ---------------------------------------------------------------------------------------------------- check=True


@pytest.mark.parametrize("wrong", [lambda g: g * 2, lambda g: g + 0.01, lambda g: None], ids=["twice", "a little", "lost"])
@pytest.mark.parametrize("which", range(3))
def test_checked_calls_compare_the_gradients_of_results(monkeypatch, which, wrong):
    w, v = leaf(1.0, 2.0), leaf(0.5, -0.5)
    compiled = torch.compile(lambda x: (x.detach() * 2, (x * w + v).exp()), check=True, fullgraph=True)
    for _ in range(2):
        compiled(leaf(0.5, 1.0))
    right = backward.Run.__call__

    def run(*args):
        found = right(*args)
        at = [k for k, g in enumerate(found) if g is not None][which]
        return [wrong(g) if k == at else g for k, g in enumerate(found)]

    monkeypatch.setattr(backward.Run, "__call__", run)
    with pytest.raises(CompileError, match="differ in the gradient of a result"):
        compiled(leaf(0.5, 1.0))


def test_checked_calls_compare_strides(monkeypatch):
    compiled = torch.compile(lambda x: x.exp().t(), check=True, fullgraph=True)
    compiled(torch.ones(2, 2))
    compiled(torch.ones(2, 2))
    right = variant.Variant._results
    monkeypatch.setattr(variant.Variant, "_results", lambda *args: [t.contiguous() for t in right(*args)])
    monkeypatch.setattr(compiled.programs[0].state, "fast_path", None)
    monkeypatch.setattr(compiled.programs[0].state, "call", None)
    with pytest.raises(CompileError, match="differ in the strides of a result"):
        compiled(torch.ones(2, 2))


def test_checked_calls_compare_what_autograd_knows_of_results(monkeypatch):
    compiled = torch.compile(lambda x: x.exp(), check=True, fullgraph=True)
    compiled(leaf(0.5, 1.0))
    monkeypatch.setattr(backward.Back, "attach", lambda *args: None)
    with pytest.raises(CompileError, match="requires_grad"):
        compiled(leaf(0.5, 1.0))


def test_checked_calls_leave_hooks_alone():
    seen = []
    w = leaf(1.0, 2.0)
    w.register_hook(seen.append)
    compiled = torch.compile(lambda x: x * w, check=True, fullgraph=True)
    for k in range(4):
        x = leaf(0.5, 1.0) * 1
        x.register_hook(seen.append)
        y = compiled(x)
        assert len(seen) == 2 * k
        y.sum().backward()
        assert len(seen) == 2 * k + 2


# ---------------------------------------------------------------------------------------------------- what programs replace


def test_a_function_of_the_library_that_is_replaced(monkeypatch):
    compiled = torch.compile(lambda x: F.relu(x), fullgraph=True)
    x = torch.tensor([-1.0, 2.0])
    for _ in range(2):
        assert compiled(x).tolist() == [0, 2]
    with monkeypatch.context() as m:
        m.setattr(F, "relu", lambda x: x * 3)
        for _ in range(2):
            assert compiled(x).tolist() == [-3, 6]
        assert "F.relu has changed" in [p.reason for p in compiled.programs]
    assert compiled(x).tolist() == [0, 2]
    assert len(compiled.programs) == 2


def test_a_function_that_a_module_of_the_library_uses_is_replaced(monkeypatch):
    compiled = torch.compile(nn.PReLU())
    x = torch.tensor([-1.0, 2.0])
    assert compiled(x).tolist() == compiled(x).tolist() == [-0.25, 2]
    monkeypatch.setattr(F, "prelu", lambda x, weight: x * 3)
    assert compiled(x).tolist() == [-3, 6]


def branches(w, v, u, x):
    h, k = (x * w).exp(), (x * v).exp()
    return h * k, h + k


def chained(w, v, u, x):
    h, k = w * v * x, v * u * x
    return h * k, h + k


def inner(w, v, u, x):
    h = w * x
    k = v * h
    return k * u, k + u, h


@pytest.mark.parametrize("function", [branches, chained, inner])
def test_what_passes_towards_some_inputs_consume(function):
    def outcome(run, order):
        ends = [leaf(1.0, 2.0), leaf(3.0, 4.0), leaf(5.0, 6.0)]
        results = run(*ends, torch.ones(2) / 2)
        ends += results
        told = []
        for i, j in order:
            try:
                told.append(torch.autograd.grad(results[i].sum(), ends[j], allow_unused=True)[0])
            except ConsumedGraphError:
                told.append("consumed")
        return told

    compiled = torch.compile(function, fullgraph=True)
    for order in [((0, i), (1, j), (1, k)) for i in range(3) for j in range(3) for k in (0, 2, 5)] + [((1, 5), (0, 0)), ((0, 5), (1, 5))]:
        if function is inner or max(j for _, j in order) < 5:
            eq(outcome(compiled, order), outcome(function, order))


def test_hooks_of_several_results_run_in_the_eager_order():
    def run(x):
        a, b, c = x * 2, x.exp(), x.sin()
        return b, a * c, a, c

    compiled = torch.compile(run, fullgraph=True)
    found = []
    for function in (run, compiled):
        for _ in range(3):
            x, order = leaf(0.5, 0.25), []
            results = function(x)
            for k, y in enumerate(results):
                y.register_hook(lambda g, k=k, order=order: order.append(k))
            torch.autograd.backward([y.sum() for y in results])
            found.append(order)
    assert all(order == found[0] for order in found)


@pytest.mark.parametrize("write", [lambda a, b: a.add_(b), lambda a, b: a.copy_(b), lambda a, b: torch.mul(b, 2.0, out=a), lambda a, b: a.index_add_(0, I, b)])
def test_arguments_that_overlap_in_part_are_refused_by_every_call(write):
    """Also where the program was made by calls whose arguments lie apart; nothing is changed."""
    compiled = torch.compile(write)
    for _ in range(3):
        expected = write(torch.zeros(4), torch.arange(4.0))
        assert torch.equal(compiled(torch.zeros(4), torch.arange(4.0)), expected)
        x = torch.arange(8.0)
        with pytest.raises(RuntimeError, match="refer"):
            compiled(x[1:5], x[:4])
        assert torch.equal(x, torch.arange(8.0))


TURNED = {
    "turned": lambda y: y.mT,
    "turned and computed": lambda y: y.mT * 2,
    "two results": lambda y: (y.mT, y.exp()),
    "one through the other": lambda y: ((z := y.mT * 2), z.exp().mT),
    "a part": lambda y: y.mT[1:],
    "turned twice": lambda y: (y.mT * 2).mT,
    "outer dim last": lambda y: y[None].movedim(0, -1) + 1,
    "one row": lambda y: y[:1].mT,
    "copied": lambda y: y.mT.contiguous(),
    "an order of its own": lambda y: y.view(1, 3, 2, 2).to(memory_format=torch.channels_last),
}


@pytest.mark.parametrize("made", TURNED)
def test_strides_of_gradients(made):
    """A gradient lies as the eager one does, where the incoming one lies as the result."""
    w = torch.arange(12.0).view(3, 4).requires_grad_()
    eager = lambda: TURNED[made](w * 1.5)
    compiled = torch.compile(eager, fullgraph=True)
    found = []
    for f in (eager, compiled, compiled):
        results = r if isinstance(r := f(), tuple) else (r,)
        (g,) = torch.autograd.grad(sum((t * t).sum() for t in results), w)
        found.append((g.tolist(), g.stride()))
    assert found[0] == found[1] == found[2]


PASSED_ON = {
    "stacked": lambda w: torch.stack([torch.ones(3, 4), w]).exp(),
    "joined": lambda w: torch.cat([torch.ones(1, 4), w]).exp(),
    "expanded": lambda w: w[:, None].expand(3, 2, 4) * 2,
    "padded": lambda w: torch.nn.functional.pad(w, (1, 0)).exp(),
    "selected": lambda w: w[1:, ::2].exp(),
    "reduced": lambda w: w.exp().sum(1),
    "turned": lambda w: w.mT.exp(),
    "computed": lambda w: w.exp(),
}


@pytest.mark.parametrize("made", PASSED_ON)
def test_strides_of_gradients_that_come_in_turned(made):
    w = torch.arange(12.0).view(3, 4).requires_grad_()
    eager = lambda: PASSED_ON[made](w)
    compiled = torch.compile(eager, fullgraph=True)
    found = []
    for f in (eager, compiled, compiled):
        r = f()
        (g,) = torch.autograd.grad(r, w, torch.arange(1.0, r.numel() + 1).view(r.shape[::-1]).permute(*range(r.dim())[::-1]))
        found.append((g.tolist(), g.stride()))
    assert found[0] == found[1] == found[2]


def test_a_program_that_is_only_a_test_of_values():
    """What the op gives is not used, but an index may be out of range."""

    @torch.compile
    def f(x):
        x.gather(1, torch.tensor([[0, 2], [1, 1]]))
        return x

    for _ in range(3):
        x = torch.ones(2, 3)
        assert f(x) is x


@pytest.mark.parametrize("other", [lambda v, x: v.set_(x.detach()), lambda v, x: setattr(v, "data", x.detach() * 2), lambda v, x: v.set_(x * 2)])
@pytest.mark.filterwarnings("ignore:compile")
def test_a_view_of_what_has_other_memory_by_now(other):
    """What is changed in place later, and gets a history by it, gives its views one, wherever they lie."""
    b = torch.ones(4, requires_grad=True)

    def step(x, y):
        v = y * 2
        part = v[..., :1]
        other(v, x)
        return part + 0, part, v

    compiled = torch.compile(step)
    for k in range(3):
        seen = []
        for f in (compiled, step):
            copy, part, v = f(torch.full((3, 4), k + 1.0), torch.ones(3, 4))
            v.mul_(b.sum())
            seen.append((copy.tolist(), v.tolist(), v.requires_grad, part.requires_grad, part._is_view()))
        assert seen[0] == seen[1]


#: results that are views of what lies elsewhere by now: of an argument, of what the function reaches, of what it made
ELSEWHERE = {
    "a view of an argument": lambda y, w: (v := y.reshape(-1), setattr(v, "data", (v + v).detach()))[0],
    "an argument": lambda y, w: (y.reshape(-1), setattr(y, "data", y.detach() * 2))[0],
    "a view of what is reached": lambda y, w: (v := w.reshape(-1), setattr(v, "data", (v * y.detach()).detach()))[0],
    "a view of what is made": lambda y, w: (v := (y * 2).reshape(-1), setattr(v, "data", y.detach() * 1))[0],
    "in the memory of an argument": lambda y, w: (v := (y.detach() * 2).reshape(-1), setattr(v, "data", y.detach()))[0],
}  # fmt: skip


@pytest.mark.parametrize("name", ELSEWHERE)
@pytest.mark.filterwarnings("ignore:compile")
def test_a_result_whose_base_lies_elsewhere(name):
    """It is changed in place as the view that it is: refused where its base is a leaf that requires grad, else with the base's history."""
    def outcome(compiled):
        w, b, found = torch.ones(4, requires_grad=True), torch.full((4,), 2.0, requires_grad=True), []

        def step(y):
            return ELSEWHERE[name](y, w)

        step = torch.compile(step) if compiled else step
        for k in range(3):
            v = step(torch.full((4,), k + 1.0, requires_grad=True))
            try:
                v.mul_(b.sum())
            except RuntimeError as error:
                found.append(str(error)[:60])
            found.append((v.tolist(), v.requires_grad, v.is_leaf, v._is_view(), v._base is None))
        return found

    assert outcome(True) == outcome(False)
