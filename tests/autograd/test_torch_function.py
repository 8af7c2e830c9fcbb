"""``__torch_function__``: what it costs those who do not use it (nothing), and what no comparison with PyTorch shows."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import sys
import threading

import pytest

import autograd_nb as torch
from autograd_nb.autograd import torch_function
from autograd_nb.ops.core.registry import OPS
from autograd_nb.overrides import BaseTorchFunctionMode, TorchFunctionMode

F = torch.nn.functional


@pytest.fixture(autouse=True)
def _nothing_stays():
    """Classes of a test are gone after it, and with them the interception."""
    gc.collect()
    assert torch_function.INTERCEPTION.count == 0
    yield
    gc.collect()
    assert torch_function.INTERCEPTION.count == 0


def calls_of(run):
    """The Python functions that a call enters."""
    names = []

    def watch(frame, event, argument):
        if event == "call":
            names.append(frame.f_code.co_qualname)

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    return names


def subclass():
    class Kept(torch.Tensor):
        pass

    return Kept


def step():
    x, w = torch.ones(2, 3), torch.nn.Parameter(torch.ones(4, 3))
    y = F.relu(F.linear(x, w)) + 1.0
    (torch.cat([y, y]).sum() * 2).backward()
    return y.shape, w.grad[0]


def test_plain_tensors_pay_nothing():
    """Without a class or mode the functions have their own code, before and after: a step enters the same functions."""
    for _ in range(3):  # what is done at the first sight of a layout is done
        step()
    codes = {name: info.call.__code__ for name, info in OPS.items() if hasattr(info.call, "__code__") and info.call.__code__.co_name != "_first_call"}
    before = calls_of(step)
    kept = subclass()
    x = torch.ones(2).as_subclass(kept)
    assert type(x + 1) is kept
    assert torch.exp.__code__ is not codes["exp"]
    del kept, x
    gc.collect()
    assert [name for name, code in codes.items() if OPS[name].call.__code__ is not code] == []
    assert calls_of(step) == before
    assert inspect.signature(torch.cat) == inspect.signature(OPS["cat"].call)


def test_one_operation_enters_one_function():
    x, y = torch.ones(2), torch.ones(2)
    x + y, torch.exp(x), x * y
    names = calls_of(lambda: (x + y, torch.exp(x), x * y))
    assert names[1:] == ["make.<locals>.call"] * 3


def test_functions_stay_the_same_objects_with_their_signatures():
    add, signature = torch.add, inspect.signature(torch.cat)
    kept = subclass()
    assert torch_function.INTERCEPTION.count == 0  # no object of it yet
    x = kept([1.0])
    assert torch_function.INTERCEPTION.count == 1
    assert type(x.exp()) is kept
    assert torch.add is add
    assert inspect.signature(torch.cat) == signature
    assert torch.add(torch.ones(2), 1).tolist() == [2.0, 2.0]
    assert type(torch.add(torch.ones(2).as_subclass(kept), 1)) is kept


def test_classes_of_the_library_take_over_nothing():
    assert not torch_function.redefines(torch.nn.Parameter)
    x = torch.nn.Parameter(torch.ones(3))
    assert torch.func.vmap(lambda v: v * 2)(x).tolist() == [2.0] * 3
    assert torch.func.grad(lambda v: (v * v).sum())(x.detach()).tolist() == [2.0] * 3
    assert torch_function.INTERCEPTION.count == 0


class Meters:
    """No tensor, but stands for one."""

    def __init__(self, value):
        self.value = value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        assert cls in types
        plain = [a.value if isinstance(a, cls) else [b.value for b in a] if isinstance(a, list) else a for a in args]
        return cls(func(*plain, **(kwargs or {})))


@pytest.mark.parametrize(
    "code",
    [
        "torch.add(m, 1)", "torch.add(x, m)", "x + m", "x * m", "torch.exp(m)", "torch.sum(m)", "torch.mean(m, 0)", "torch.matmul(x, m)",
        "F.softmax(m, -1)", "torch.cumsum(m, dim=0)", "torch.cat([m, m])", "torch.stack([m, m], dim=1)", "torch.concat([m], 1)",
    ],
)  # fmt: skip
def test_objects_that_are_no_tensors_are_asked_the_first_time(code):
    kind = type("Metres", (Meters,), {})
    space = {"torch": torch, "F": F, "x": torch.eye(2), "m": kind(torch.full((2, 2), 3.0))}
    result = eval(code, space)
    plain = eval(code, {**space, "m": torch.full((2, 2), 3.0)})
    assert type(result) is kind
    assert torch.equal(result.value, plain)
    assert type(torch.cat([space["m"]])) is kind  # known now: every function asks it
    assert torch_function.INTERCEPTION.count == 1
    torch_function._plain.clear()


def test_who_declines_is_passed_over():
    class Declines(Meters):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match=r"no implementation found for '.*add'.*Declines"):
        torch.add(Declines(1), 1)
    with pytest.raises(TypeError, match="not object"):
        torch.add(object(), 1)


def test_subclasses_are_asked_first():
    asked = []

    class Low(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append((cls.__name__, [t.__name__ for t in types]))
            return NotImplemented if cls is High else super().__torch_function__(func, types, args, kwargs)

    class High(Low):
        pass

    low, high = torch.ones(2).as_subclass(Low), torch.ones(2).as_subclass(High)
    with pytest.raises(TypeError, match="no implementation"):
        low + high
    assert asked == [("High", ["High", "Low"]), ("Low", ["High", "Low"])]


def test_modes_see_every_call_and_nest():
    seen = []

    class Note(TorchFunctionMode):
        def __init__(self, name):
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((self.name, torch.overrides.resolve_name(func)))
            return func(*args, **(kwargs or {}))

    layer = torch.nn.Linear(2, 1)
    with Note("outer"), BaseTorchFunctionMode(), Note("inner"):
        layer(torch.ones(1, 2))
    both = [(n, f) for f in ("torch.ones", "torch.nn.functional.linear") for n in ("inner", "outer")]
    assert seen == both
    seen.clear()
    with Note("one"), torch._C.DisableTorchFunctionSubclass():
        torch.ones(1)
        with torch._C.DisableTorchFunction():
            torch.ones(1)
    assert seen == [("one", "torch.ones")]
    seen.clear()
    with Note("this thread"):
        other = threading.Thread(target=torch.ones, args=(1,))
        other.start()
        other.join()
    assert seen == []


def test_a_mode_that_raises_leaves_nothing_behind():
    class Refuse(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise ValueError("not this one")

    with pytest.raises(ValueError, match="not this one"), Refuse():
        torch.ones(1)
    assert torch_function.state.modes == ()


def test_gradients_go_through_results_of_the_class():
    kept = subclass()
    w = torch.ones(3, requires_grad=True)
    x = w.as_subclass(kept)
    assert type(x) is kept
    assert not x.is_leaf
    y = (x * 2).exp()
    y.sum().backward()
    assert torch.allclose(w.grad, 2 * torch.exp(torch.full((3,), 2.0)))
    leaf = kept([1.0, 2.0]).requires_grad_()
    (leaf * leaf).sum().backward()
    assert type(leaf.grad) is torch.Tensor
    assert leaf.grad.tolist() == [2.0, 4.0]


def test_history_of_memory_that_two_classes_share():
    """A tensor as a subclass is a view: what is written through it is known to the other."""
    kept = subclass()
    w = torch.ones(2, requires_grad=True)
    z = w * 3
    z.as_subclass(kept).mul_(2)
    z.sum().backward()
    assert w.grad.tolist() == [6.0, 6.0]


def test_parameters_of_a_class():
    kept = subclass()
    p = torch.nn.Parameter(kept([1.0, 2.0]))
    assert type(p) is kept
    assert isinstance(p, torch.nn.Parameter)
    assert not isinstance(kept([1.0]), torch.nn.Parameter)
    assert repr(p) == "Parameter(Kept([1., 2.], requires_grad=True))"
    module = torch.nn.Module()
    module.p = p
    assert [name for name, _ in module.named_parameters()] == ["p"]
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    (module.p * 2).sum().backward()
    optimizer.step()
    assert module.p.tolist() == [-1.0, 0.0]
    assert isinstance(copy.deepcopy(module).p, torch.nn.Parameter)
    assert type(copy.deepcopy(module).p) is kept


class Stays(torch.nn.Parameter):
    """A subclass of Parameter: its results are plain tensors."""

    def __new__(cls, data=None, requires_grad=True, where="plane"):
        new = super().__new__(cls, data, requires_grad)
        new.where = where
        return new


def test_subclasses_of_parameter_give_plain_results():
    p = Stays(torch.ones(2), where="sphere")
    assert type(p * 2) is type(p.detach()) is type(p[0]) is torch.Tensor
    assert p.where == "sphere"
    again = pickle.loads(pickle.dumps(p))
    assert type(again) is Stays
    assert again.where == "sphere"
    assert type(copy.deepcopy(p)) is Stays
    assert torch_function.INTERCEPTION.count == 0


def test_attributes_of_objects_stay_and_results_have_none():
    kept = subclass()
    x = torch.ones(2).as_subclass(kept)
    x.unit = "m"
    assert copy.deepcopy(x).unit == "m"
    assert type(copy.deepcopy(x)) is kept
    assert not hasattr(x + 1, "unit")


def test_what_is_refused():
    with pytest.raises(TypeError, match="must be a subclass of Tensor"):
        torch.ones(1).as_subclass(int)
    with pytest.raises(NotImplementedError, match="__torch_dispatch__"):
        torch.Tensor._make_wrapper_subclass(torch.Tensor, (2,))
    with pytest.raises(TypeError, match="must be Tensor, not list"):
        torch.Tensor._make_subclass(torch.Tensor, [1.0])


def test_what_may_be_taken_over_is_told():
    from autograd_nb import overrides

    functions = overrides.get_overridable_functions()
    assert torch.add in functions[torch]
    assert F.gelu in functions[F]
    assert torch.Tensor.add_ in functions[torch.Tensor]
    assert torch.is_tensor not in functions[torch]
    assert torch.is_tensor in overrides.get_ignored_functions()
    assert len(functions[torch]) > 400
    assert overrides.resolve_name(F.gelu) == "torch.nn.functional.gelu"
    assert overrides.resolve_name(len) is None
    dummies = overrides.get_testing_overrides()
    assert dummies[torch.mean](torch.ones(1)) == -1
    assert inspect.signature(dummies[torch.mean]) == inspect.signature(torch.mean)
    assert overrides.is_tensor_method_or_property(torch.Tensor.shape.__get__)
    assert overrides.is_tensor_like(Meters(1))
    assert not overrides.is_tensor_like(1)


def test_functions_of_programs_can_be_taken_over():
    from autograd_nb.overrides import handle_torch_function, has_torch_function, wrap_torch_function

    def scaled(a, b):
        if has_torch_function((a, b)):
            return handle_torch_function(scaled, (a, b), a, b)
        return a * b + 1

    wrapped = wrap_torch_function(lambda a, b: (a, b))(lambda a, b: a - b)
    kept = subclass()
    x = torch.full((2,), 3.0).as_subclass(kept)
    assert type(scaled(x, 2.0)) is kept
    assert type(wrapped(x, 2.0)) is kept
    assert scaled(torch.ones(1), 2.0).tolist() == [3.0]
    assert type(wrapped(torch.ones(1), 2.0)) is torch.Tensor
    assert scaled(x, 2.0).tolist() == [7.0, 7.0]


def test_a_mode_sees_attributes_as_long_as_it_lasts_and_ops_of_users():
    class Names(torch.overrides.TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.seen.append(func)
            return func(*args, **(kwargs or {}))

    own = {name: torch.Tensor.__dict__[name] for name in ("mT", "shape", "requires_grad")}

    @torch.pointwise
    def twice(x):
        return 2 * x

    x = torch.ones(2, 3, requires_grad=True)
    with Names() as mode:
        y = x.mT
        x.requires_grad = True
        z = twice(x.detach())
    assert mode.seen == [own["mT"].__get__, own["requires_grad"].__set__, torch.Tensor.detach, twice]
    assert y.shape == (3, 2) and z.tolist() == [[2.0] * 3] * 2
    assert {name: torch.Tensor.__dict__[name] for name in own} == own


def test_users_own_ops_are_asked_for_whenever_they_are_made():
    class Sub(torch.Tensor):
        seen = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.ones(3).as_subclass(Sub)  # functions are taken over from here on

    def twice(a):
        return a * 2

    def forward(x, out):
        for i in range(x.shape[0]):
            out[i] = x[i] + 1

    for op in (torch.pointwise(twice), torch.custom_op(forward, shape=lambda x: x)):
        Sub.seen.clear()
        assert type(op(x)) is Sub
        assert Sub.seen == [op.__name__]


_BETWEEN = {
    "a function in C++": lambda real, ours: real.exp(ours),
    "two arguments": lambda real, ours: real.add(real.ones(2), ours),
    "a list": lambda real, ours: real.cat([ours, ours]),
    "a function in Python": lambda real, ours: real.nn.functional.mse_loss(ours, ours),
    "a layer": lambda real, ours: real.nn.Linear(2, 2)(ours),
    "an operator on the left": lambda real, ours: ours + real.ones(2),
    "an operator on the right": lambda real, ours: real.ones(2) + ours,
    "a function of this library": lambda real, ours: torch.add(ours, real.ones(2)),
    "a parameter": lambda real, ours: torch.mul(ours, real.nn.Parameter(real.ones(2))),
    "its first call": lambda real, ours: torch.hypot(ours, real.ones(2)),
}


@pytest.mark.parametrize("name", list(_BETWEEN))
def test_tensors_of_pytorch_and_of_this_library_do_not_mix(name):
    """PyTorch's default ``__torch_function__`` and this one's do not hand a call to each other for ever: TypeError, as for any foreign class."""
    real = pytest.importorskip("torch")
    with pytest.raises(TypeError):
        _BETWEEN[name](real, torch.tensor([1.0, 2.0]))
    gc.collect()
    assert not torch_function.state.disabled and not torch_function.state.running


def test_sparse_tensors_are_asked_for_while_there_are_any():
    """Afterwards, and some calls later, functions have their own code again, and are taken once more where there is another one."""
    x = torch.ones(3)
    own = torch.exp.__code__
    for _ in range(2):
        s = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
        for _ in range(2 * torch_function.LINGER):
            torch.exp(x)
        assert torch.mul(s, 2).to_dense().sum() == 14
        del s
        gc.collect()
        assert torch_function.INTERCEPTION.count == 1  # a program with sparse gradients makes one in each step
        for _ in range(2 * torch_function.LINGER):
            torch.exp(x)
        assert torch_function.INTERCEPTION.count == 0 and torch.exp.__code__ is own


def test_sparse_gradients_and_autocast_give_places_back_together():
    x, own = torch.ones(2, 2), torch.matmul.__code__
    table = torch.nn.Embedding(4, 2, sparse=True)
    table(torch.tensor([1])).sum().backward()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.matmul(x, x).dtype is torch.bfloat16
    del table
    gc.collect()
    for _ in range(3 * torch_function.LINGER):
        torch.matmul(x, x)
    assert torch_function.INTERCEPTION.count == 0 and torch.matmul.__code__ is own
