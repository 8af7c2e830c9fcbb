"""Compiled calls agree with eager ones in everything that autograd knows of their results, on every call.

Each kind of function is called again and again with leaves, computed tensors, other shapes and modes, and after each call
something is done with the results: backward passes, hooks, changes. Two worlds that begin alike are compared after each step.
"""

from __future__ import annotations

import contextlib

import pytest

import autograd_nb as torch

from ..functions import Square

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


class World:
    """Parameters and a buffer."""

    def __init__(self):
        self.w = torch.tensor([0.5, 1.5], requires_grad=True)
        self.v = torch.tensor([2.0, -1.0], requires_grad=True)
        self.b = torch.tensor([0.25, 4.0])

    @property
    def all(self):
        return [self.w, self.v, self.b]


class Refusing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x

    @staticmethod
    def backward(ctx, g):
        raise KeyError("no derivative")


class Parted(torch.autograd.Function):
    """Two results, one of which can be missing."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, g, h):
        return g * 2 if h is None else h * 5 if g is None else g + h


CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


# ---- one result
@case
def plain(s, x):
    return (x * s.w).exp()


@case
def saved_result_changed(s, x):
    y = x / (x + 3)
    y.clamp_(-1, 1)
    return y


@case
def saved_operand_changed(s, x):
    y = (x * s.w).exp()
    z = y * y
    y.zero_()
    return z


@case
def saved_operand_changed_unseen(s, x):
    y = x * s.w
    z = y * y
    y.data.mul_(2)
    return z


@case
def one_branch_changed(s, x):
    y = (x * s.w).exp()
    z = y * y
    y.zero_()
    return z * s.v


@case
def result_changed(s, x):
    y = x * s.w
    y.mul_(s.v)
    return y


@case
def view_changed(s, x):
    y = x * s.w
    y[0].mul_(3)
    return y


@case
def view_returned(s, x):
    return (x * s.w)[:1]


@case
def view_of_changed(s, x):
    y = x * s.w
    z = y[:1]
    y.mul_(s.v)
    return z


@case
def parameter_changed(s, x):
    y = x * s.w
    with torch.no_grad():
        s.w.add_(0.5)
    return y


@case
def parameter_changed_before(s, x):
    with torch.no_grad():
        s.w.add_(0.5)
    return x * s.w


@case
def buffer_changed(s, x):
    y = x * s.w * s.b
    s.b.add_(1)
    return y


@case
def parameter_refused(s, x):
    s.w.add_(1)
    return x * s.w


@case
def gradient_made(s, x):
    loss = (x.detach() * s.w).sum()
    loss.backward()
    return loss


@case
def gradient_made_and_graph_kept(s, x):
    y = x.detach() * s.w
    y.sum().backward(retain_graph=True)
    return y


@case
def gradient_made_behind_the_argument(s, x):
    y = (x * s.w).sum()
    if y.requires_grad:
        y.backward(retain_graph=True)
    return y


@case
def trunk_used_up(s, x):
    h = x.detach() * s.w
    h.sum().backward()
    return h * s.v


@case
def trunk_used_up_partly(s, x):
    h = (x.detach() * s.w).exp()
    g = torch.autograd.grad(h.sum(), h)[0]
    return h * s.v * g


@case
def inner_gradient(s, x):
    y = (x * s.w).exp()
    (g,) = torch.autograd.grad(y.sum(), s.w, create_graph=True)
    return g * s.v


@case
def twice_backward(s, x):
    y = (x.detach() * s.w).sum()
    y.backward()
    y.backward()
    return y


@case
def detached(s, x):
    return (x * s.w).detach()


@case
def through_data(s, x):
    return (x * s.w).data * s.v


@case
def partly_without_grad(s, x):
    with torch.no_grad():
        y = x * s.w
    return y * s.v


@case
def grad_enabled_inside(s, x):
    with torch.enable_grad():
        return x.detach() * s.w


@case
def grad_mode_left(s, x):
    torch.set_grad_enabled(False)
    return x * s.w


@case
def user_function(s, x):
    return Square.apply(x * s.w) * s.v


@case
def function_without_derivative(s, x):
    return Refusing.apply(x * s.w)


@case
def inference(s, x):
    with torch.inference_mode():
        return x * s.b


@case
def hook_inside(s, x):
    y = x * s.w
    if y.requires_grad:
        y.register_hook(lambda g: g * 2)
    return y * s.v


@case
def hook_on_argument(s, x):
    if x.requires_grad:
        x.register_hook(lambda g: g * 2)
    return x * s.w


@case
def retained_inside(s, x):
    y = x * s.w
    if y.requires_grad:
        y.retain_grad()
    return y * s.v


@case
def requires_grad_inside(s, x):
    y = (x * s.b).detach().requires_grad_()
    return y * y


@case
def leaf_made(s, x):
    return (x * s.b).detach().requires_grad_()


# ---- arguments and state among results
@case
def argument_returned(s, x):
    return x, x * s.w


@case
def parameter_returned(s, x):
    return s.w, x * s.w


@case
def argument_view_returned(s, x):
    return x[:1], (x * s.b).detach()


@case
def argument_detached(s, x):
    return x.detach()


@case
def argument_data(s, x):
    return x.data


@case
def argument_changed(s, x):
    x.mul_(2)
    return x


@case
def argument_changed_by_parameter(s, x):
    x.mul_(s.w)
    return x * 2


@case
def argument_changed_without_grad(s, x):
    y = x * s.w
    with torch.no_grad():
        x.mul_(2)
    return y


@case
def argument_shaped(s, x):
    x.unsqueeze_(0)
    return x * 2


@case
def argument_given_memory(s, x):
    x.data = x.data * 2
    return x * s.w


# ---- several results
@case
def two(s, x):
    return x * s.w, x * s.v


@case
def two_of_a_trunk(s, x):
    h = (x * s.w).exp()
    return h * s.v, h + 1


@case
def one_from_the_other(s, x):
    y = x * s.w
    return (y * s.v).sum(), y


@case
def chain(s, x):
    a = x * s.w
    b = a * s.v
    return [a, b, b.exp()]


@case
def some_without_grad(s, x):
    y = x * s.w
    return {"y": y, "n": (y > 0), "d": y.detach() * 2}


@case
def same_twice(s, x):
    y = x * s.w
    return y, [y, y * 2]


@case
def result_and_its_view(s, x):
    y = x * s.w
    return y, y[:1]


@case
def views_without_grad(s, x):
    y = x.detach() * s.b
    return y, y[:1], y[1:]


@case
def parted_views_without_grad(s, x):
    y = x.detach() * s.b
    return y[:1], y[1:]


@case
def result_and_its_detached(s, x):
    y = (x * s.w).detach()
    return y, y.detach(), y.data


@case
def two_with_one_used_up(s, x):
    y = x.detach() * s.w
    y.sum().backward()
    return y, x * s.v


@case
def loss_and_output(s, x):
    y = x.detach() * s.w
    loss = (y * y).sum()
    loss.backward()
    return loss, y


@case
def parted(s, x):
    a, b = Parted.apply(x * s.w)
    return a * s.v, b


@case
def steep_and_flat(s, x):
    """The derivative of one result is infinite at 0."""
    y = (x - x.detach()) * s.w
    return y.sqrt(), y * 2


# ---------------------------------------------------------------------------------------------------- what follows a call


def cotangents(results):
    return [torch.arange(1.0, 1 + r.numel()).reshape(r.shape) for r in results]


def wanted(results):
    return [r for r in results if r.requires_grad]


def backward(s, results, x):
    out = wanted(results)
    torch.autograd.backward(out, cotangents(out))
    torch.autograd.backward(out, cotangents(out))


def each(s, results, x):
    errors = []
    for r in wanted(results):
        try:
            r.backward(torch.ones_like(r))
        except Exception as error:
            errors.append(type(error).__name__)
    return errors


def last_first(s, results, x):
    return each(s, results[::-1], x)


def kept(s, results, x):
    out = wanted(results)
    for k in range(3):
        torch.autograd.backward(out, cotangents(out), retain_graph=k < 1)


def gradients(s, results, x):
    found = []
    for r in wanted(results):
        for t in (s.w, s.v, x):
            if t.requires_grad:
                try:
                    found.append(torch.autograd.grad(r, t, torch.ones_like(r), allow_unused=True, retain_graph=True)[0])
                except Exception as error:
                    found.append(type(error).__name__)
    return found


def among(s, results, x):
    found = []
    for r in wanted(results):
        for t in wanted(results):
            if r is not t:
                try:
                    found.append(torch.autograd.grad(r, t, torch.ones_like(r), retain_graph=True)[0])
                except Exception as error:
                    found.append(type(error).__name__)
    return found


def twice(s, results, x):
    out = wanted(results)
    to = [t for t in (s.w, s.v, *([x] if x.requires_grad else [])) if t.requires_grad]
    first = torch.autograd.grad(out, to, cotangents(out), create_graph=True, allow_unused=True)
    again = [g for g in first if g is not None and g.requires_grad]
    found = [g.detach() for g in first if g is not None]
    if again:
        found += torch.autograd.grad(again, to, cotangents(again), allow_unused=True)
    return found


def hooked(s, results, x):
    seen = []

    def hook(g):
        seen.append(g.clone())
        return g * 2

    out = wanted(results)
    for r in out:
        if not r.is_leaf:
            r.retain_grad()
        r.register_hook(hook).remove() if r.is_leaf else r.register_hook(hook)
    if out:
        out[0].backward(torch.ones_like(out[0]))
    for r in out:
        seen.append(r.grad if r.is_leaf or r.retains_grad else None)
        if r.is_leaf:
            r.grad = None
    return seen


def results_changed(s, results, x):
    with torch.no_grad():
        for r in results:
            if r.dtype.is_floating_point:
                r.mul_(2)
    return each(s, results, x)


def results_changed_in_the_graph(s, results, x):
    results[0].mul_(s.v.sum())
    return [r.requires_grad for r in results], each(s, results, x)


def everything_changed(s, results, x):
    with torch.no_grad():
        x.mul_(2)
        s.w.add_(0.125)
        s.b.add_(1)
    return each(s, results, x)


def nothing(s, results, x):
    return None


DEEDS = [nothing, backward, each, last_first, kept, gradients, among, twice, hooked, results_changed, results_changed_in_the_graph, everything_changed]


def argument(kind, k):
    """The argument of a call, the leaf that it comes from, and the context of the call."""
    numbers = [0.5 + k, 1.0 - k] if kind != "other shape" else [[0.5, 1.0 - k], [k, 2.0]]
    x = torch.tensor(numbers, requires_grad=kind in ("leaf", "other shape", "without grad"))
    leaf = x
    if kind == "computed":
        leaf = torch.tensor(numbers, requires_grad=True)
        x = leaf * 1
    if kind == "view of a computed":
        leaf = torch.tensor([*numbers, 7.0], requires_grad=True)
        x = (leaf * 1)[:2]
    if kind == "view":
        x = torch.tensor([*numbers, 7.0])[:2]
    if kind == "untracked view":
        leaf = torch.tensor([*numbers, 7.0], requires_grad=True)
        with torch.no_grad():
            x = leaf[:2]
    if kind == "made in inference mode":
        with torch.inference_mode():
            x = leaf = torch.tensor(numbers)
    return x, leaf, torch.no_grad() if kind == "without grad" else contextlib.nullcontext()


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in flat(v)] if isinstance(value, (list, tuple)) else []


def told(value):
    """A value in comparable form."""
    if isinstance(value, torch.Tensor):
        return "tensor", [round(float(v), 4) if v == v else "nan" for v in value.detach().double().reshape(-1)], list(value.shape)
    if isinstance(value, (list, tuple)):
        return [told(v) for v in value]
    if isinstance(value, dict):
        return {k: told(v) for k, v in value.items()}
    return value


def look(results, x, s):
    """What can be seen of results without touching them."""
    known = [x, *s.all, *results]
    return [
        (
            told(r), str(r.dtype), r.requires_grad, r.grad_fn is None, r.is_leaf, r.is_inference() or r._version, r.is_inference(), r.retains_grad,
            [k for k, t in enumerate(known) if t is r], [k for k, t in enumerate(known) if t.data_ptr() == r.data_ptr()],
            [k for k, t in enumerate(known) if r._base is t], [k for k, t in enumerate(known) if t._version_ is r._version_],
        )
        for r in results
    ]  # fmt: skip


def outcome(function, s, kind, k, deed):
    """Everything that a call and what follows it do."""
    x, leaf, mode = argument(kind, k)
    found = [deed.__name__, kind]
    try:
        with mode:
            results = function(s, x)
    except Exception as error:
        found.append(("the call raises", type(error).__name__, str(error)[:60]))
    else:
        out = flat(results)
        found += [type(results).__name__, look(out, x, s)]
        try:
            found.append(told(deed(s, out, x)))
        except Exception as error:
            found.append(("then raises", type(error).__name__, str(error)[:60]))
    torch.set_grad_enabled(True)
    found.append([(told(t), t.is_inference() or t._version, told(t.grad), t.requires_grad) for t in (*s.all, leaf)])
    found.append((told(x), x.is_inference() or x._version, x.requires_grad, list(x.shape)))
    for t in s.all:
        t.grad = None
    return found


KINDS = ["leaf", "leaf", "computed", "plain", "other shape", "without grad", "view of a computed", "made in inference mode", "view", "untracked view"]


def calls(first):
    """(kind of argument, number, what follows): every deed after calls with the first kind of argument, some after others."""
    for k, kind in enumerate((first, *KINDS)):
        for deed in DEEDS if k == 1 else (nothing, DEEDS[1 + k], DEEDS[1 + (k + 5) % 10]):
            yield kind, k, deed


@pytest.mark.parametrize("first", ["leaf", "plain"])
@pytest.mark.parametrize("name", CASES)
def test_a_compiled_call_agrees_with_an_eager_one(name, first):
    function = CASES[name]
    mine, theirs = World(), World()
    compiled = torch.compile(lambda x: function(mine, x))
    for kind, k, deed in calls(first):
        a = outcome(lambda s, x: compiled(x), mine, kind, k, deed)
        b = outcome(function, theirs, kind, k, deed)
        assert a == b
