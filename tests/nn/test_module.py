"""Module: registration, attributes, traversal, hooks, state_dict, conversion, text, copies."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections import OrderedDict

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb import nn


class Net(nn.Module):
    """Parameters, buffers, children, and one child under two names."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 4)
        self.b = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.register_buffer("kept", torch.zeros(2))
        self.register_buffer("not_kept", torch.ones(1), persistent=False)
        self.again = self.a
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
        return self.b(self.a(x)) * self.scale


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net()


def test_traversal(net):
    assert [n for n, _ in net.named_parameters()] == ["scale", "a.weight", "a.bias", "b.0.weight", "b.0.bias"]
    assert [n for n, _ in net.named_parameters(recurse=False)] == ["scale"]
    assert "again.weight" in dict(net.named_parameters(remove_duplicate=False))
    assert [n for n, _ in net.named_modules()] == ["", "a", "b", "b.0", "b.1"]
    assert [n for n, _ in net.named_children()] == ["a", "b"]
    assert [n for n, _ in net.named_buffers()] == ["kept", "not_kept"]
    assert len(list(net.parameters())) == 5
    assert len(list(net.modules())) == 5
    assert [n for n, _ in net.named_parameters(prefix="m")][0] == "m.scale"


def test_lookup(net):
    assert net.get_submodule("b.0") is net.b[0]
    assert net.get_submodule("") is net
    assert net.get_parameter("b.0.bias") is net.b[0].bias
    assert net.get_buffer("kept") is net.kept
    with pytest.raises(AttributeError, match=r"Sequential has no attribute `7`"):
        net.get_submodule("b.7")
    with pytest.raises(AttributeError, match=r"is not an nn.Module"):
        net.get_submodule("scale")
    with pytest.raises(AttributeError, match=r"is not an nn.Parameter"):
        net.get_parameter("kept")
    with pytest.raises(AttributeError, match="is not a buffer"):
        net.get_buffer("scale")
    net.set_submodule("b.1", nn.Tanh())
    assert isinstance(net.b[1], nn.Tanh)


def test_attributes(net):
    net.kept = torch.ones(2)
    assert net._buffers["kept"].sum().item() == 2
    net.scale = None
    assert net.scale is None
    assert "scale" in net._parameters
    net.extra = nn.Buffer(torch.zeros(1), persistent=False)
    assert "extra" in net._buffers
    assert "extra" not in net.state_dict()
    net.kept = nn.Parameter(torch.zeros(2))  # a parameter takes the buffer's place
    assert "kept" not in net._buffers
    assert "kept" in net._parameters
    del net.kept
    assert not hasattr(net, "kept")
    net.plain = 3
    assert net.__dict__["plain"] == 3
    assert {"scale", "a", "not_kept", "plain"} <= set(dir(net))


class _Thing:
    """What is no tensor and takes over functions, which PyTorch takes for a buffer."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return function.__name__


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("thing", [_Thing(), _Thing, None])
def test_a_buffer_may_be_what_takes_over_functions(thing, persistent):
    m = nn.Module()
    m.register_buffer("kept", torch.zeros(2), persistent)
    m.kept = thing
    assert m._buffers["kept"] is thing and m.kept is thing and ("kept" in m._non_persistent_buffers_set) != persistent


@pytest.mark.parametrize("value", [[1.0], 1, 1.0, "a", True, {}, int, np.zeros(2), len], ids=str)
def test_a_buffer_is_nothing_else(value):
    m = nn.Module()
    m.register_buffer("kept", torch.zeros(2))
    before = m.kept
    with pytest.raises(TypeError, match=rf"cannot assign '{torch.typename(value)}' as buffer 'kept'"):
        m.kept = value
    assert m.kept is before and "kept" not in m.__dict__


def test_buffers_are_registered_by_the_class():
    """A ``register_buffer`` of a program's is given ``persistent`` where it takes it, whatever its default is."""

    class Old(nn.Module):
        def register_buffer(self, name, tensor):
            super().register_buffer(name, tensor)

    class Other(nn.Module):
        def register_buffer(self, name, tensor, persistent=False):
            super().register_buffer(name, tensor, persistent)

    m = Old()
    m.kept = nn.Buffer(torch.zeros(2))
    assert list(m.state_dict()) == ["kept"]
    with pytest.raises(RuntimeError, match=r"without the persistent argument is not allowed.*'other'"):
        m.other = nn.Buffer(torch.zeros(2), persistent=False)
    m = Other()
    m.kept, m.other = nn.Buffer(torch.zeros(2)), nn.Buffer(torch.zeros(2), persistent=False)
    assert list(m.state_dict()) == ["kept"] and list(m._buffers) == ["kept", "other"]


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda m: setattr(m, "scale", torch.zeros(4)), TypeError, r"cannot assign 'torch.FloatTensor' as parameter 'scale'"),
        (lambda m: setattr(m, "a", 3), TypeError, r"cannot assign 'int' as child module 'a'"),
        (lambda m: setattr(m, "kept", 3), TypeError, r"cannot assign 'int' as buffer 'kept'"),
        (lambda m: m.register_buffer("x.y", None), KeyError, r"buffer name can.*t contain"),
        (lambda m: m.register_buffer("a", None), KeyError, r"attribute 'a' already exists"),
        (lambda m: m.register_buffer("n", 3), TypeError, r"cannot assign 'int' object to buffer 'n'"),
        (lambda m: m.register_parameter("", None), KeyError, r"parameter name can.*t be empty"),
        (lambda m: m.register_parameter("n", torch.zeros(1)), TypeError, r"cannot assign 'torch.FloatTensor' object to parameter 'n'"),
        (lambda m: m.register_parameter(3, None), TypeError, r"parameter name should be a string"),
        (lambda m: m.add_module("n", 3), TypeError, r"int is not a Module subclass"),
        (lambda m: m.nothing, AttributeError, r"'Net' object has no attribute 'nothing'"),
        (lambda m: m.train(1), ValueError, r"training mode is expected to be boolean"),
        (lambda m: m.to(torch.int32), TypeError, r"only accepts floating point or complex"),
        (lambda m: m.to("cuda"), RuntimeError, r"cuda"),
        (lambda m: nn.Module()(1), NotImplementedError, r'Module \[Module\] is missing the required "forward" function'),
        (lambda m: nn.Module(1), TypeError, r"takes 1 positional argument but 2 were given"),
        (lambda m: m.register_forward_hook(3), TypeError, r"hook must be callable"),
        (lambda m: nn.Parameter(3), TypeError, r"'data' must be a Tensor, not int"),
        (lambda m: nn.Parameter(torch.zeros(2, dtype=torch.int64)), RuntimeError, r"floating point"),
    ],
)
def test_errors(net, call, kind, text):
    with pytest.raises(kind, match=text):
        call(net)


def test_what_is_no_hook_is_refused_at_once():
    """Whatever registers a hook refuses an object that cannot be called, and leaves the module as it was."""
    m = nn.Linear(1, 1)
    for name in sorted(n for n in dir(m) if n.startswith(("register_", "_register_")) and "hook" in n):
        before = {k: v.copy() if isinstance(v, dict) else v for k, v in vars(m).items()}
        with pytest.raises(TypeError, match="must be callable"):
            getattr(m, name)(object())
        assert vars(m) == before


def test_before_init():
    class NoInit(nn.Module):
        def __init__(self, value):
            self.x = value

    with pytest.raises(AttributeError, match=r"cannot assign module before Module.__init__"):
        NoInit(nn.ReLU())
    with pytest.raises(AttributeError, match=r"cannot assign parameters before Module.__init__"):
        NoInit(nn.Parameter(torch.zeros(1)))


# -------------------------------------------------------------------------------------------------- state_dict


def test_state_dict(net):
    state = net.state_dict()
    assert list(state) == ["scale", "kept", "a.weight", "a.bias", "b.0.weight", "b.0.bias", "again.weight", "again.bias"]
    assert isinstance(state, OrderedDict)
    assert state._metadata[""] == {"version": 1}
    assert not state["scale"].requires_grad
    assert net.state_dict(keep_vars=True)["scale"] is net.scale
    state["scale"].fill_(7)  # the memory is the module's
    assert (net.scale == 7).all()
    assert list(net.b.state_dict(prefix="b.")) == ["b.0.weight", "b.0.bias"]


def test_load_state_dict(net):
    other = Net()
    result = other.load_state_dict(net.state_dict())
    assert str(result) == "<All keys matched successfully>"
    assert torch.equal(other.a.weight, net.a.weight)
    assert other.a.weight is other.again.weight
    state = net.state_dict()
    del state["scale"]
    state["foo"] = torch.zeros(1)
    result = other.load_state_dict(state, strict=False)
    assert result.missing_keys == ["scale"]
    assert result.unexpected_keys == ["foo"]
    state["a.weight"] = torch.zeros(2, 2)
    with pytest.raises(RuntimeError) as error:
        other.load_state_dict(state)
    assert str(error.value) == (
        'Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "scale". \n\tUnexpected key(s) in state_dict: "foo". '
        "\n\tsize mismatch for a.weight: copying a param with shape torch.Size([2, 2]) from checkpoint, the shape in current model is "
        "torch.Size([4, 3])."
    )
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like"):
        other.load_state_dict([])


def test_load_casts_and_assign_does_not(net):
    state = {k: v.double() for k, v in net.state_dict().items()}
    net.load_state_dict(state)
    assert net.scale.dtype is torch.float32
    net.load_state_dict(state, assign=True)
    assert net.scale.dtype is torch.float64
    assert isinstance(net.scale, nn.Parameter)
    assert net.scale.requires_grad
    assert isinstance(net.kept, torch.Tensor)


def test_state_dict_hooks(net):
    log = []
    net._register_state_dict_hook(lambda m, state, prefix, meta: {**state, "more": 1})
    net.register_state_dict_pre_hook(lambda m, prefix, keep: log.append("pre"))
    state = net.state_dict()
    assert state["more"] == 1
    net.register_load_state_dict_pre_hook(lambda m, s, *rest: s.pop("more"))
    net.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    del state["scale"]
    net.load_state_dict(state)
    assert log == ["pre"]


def test_extra_state():
    class Extra(nn.Module):
        value = 3

        def get_extra_state(self):
            return {"value": self.value}

        def set_extra_state(self, state):
            self.value = state["value"]

    m = Extra()
    state = m.state_dict()
    assert state == {"_extra_state": {"value": 3}}
    m.value = 5
    m.load_state_dict(state)
    assert m.value == 3
    with pytest.raises(RuntimeError, match="Missing key"):
        m.load_state_dict({})


# ------------------------------------------------------------------------------------------------------- hooks


def test_forward_hooks(net):
    log = []
    handles = [
        net.a.register_forward_pre_hook(lambda m, args: log.append(("pre", m is net.a, len(args)))),
        net.a.register_forward_hook(lambda m, args, out: log.append(("post", tuple(out.shape)))),
        net.register_forward_hook(lambda m, args, kwargs, out: out * 0 + len(kwargs), with_kwargs=True),
        net.register_forward_pre_hook(lambda m, args, kwargs: ((), {"x": args[0] * 2}), with_kwargs=True),
    ]
    y = net(torch.ones(5, 3))
    assert (y == 1).all()
    assert log == [("pre", True, 1), ("post", (5, 4))]
    for h in handles:
        h.remove()
        h.remove()
    assert not net._forward_hooks_with_kwargs
    net(torch.ones(5, 3))
    assert len(log) == 2
    order = []
    net.register_forward_hook(lambda *_: order.append(1))
    net.register_forward_hook(lambda *_: order.append(0), prepend=True)
    net(torch.ones(5, 3))
    assert order == [0, 1]


def test_always_called_hook():
    class Broken(nn.Module):
        def forward(self, x):
            raise ValueError("broken")

    m, log = Broken(), []
    m.register_forward_hook(lambda *_: log.append("never"))
    m.register_forward_hook(lambda *_: log.append("always"), always_call=True)
    with pytest.raises(ValueError, match="broken"):
        m(1)
    assert log == ["always"]


def test_full_backward_hooks(net):
    log = []
    net.b.register_full_backward_pre_hook(lambda m, go: log.append(("pre", tuple(go[0].shape))))
    handle = net.b.register_full_backward_hook(lambda m, gi, go: (gi[0] * 0,))
    x = torch.ones(5, 3, requires_grad=True)
    net(x).sum().backward()
    assert (x.grad == 0).all()
    assert log == [("pre", (5, 4))]
    assert (net.b[0].bias.grad != 0).any()
    handle.remove()
    x.grad = None
    net(x).sum().backward()
    assert (x.grad != 0).any()
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full backward hooks"):
        net.b.register_backward_hook(lambda *_: None)


def test_full_backward_hook_where_no_input_needs_grad(net):
    log = []
    net.a.register_full_backward_hook(lambda m, gi, go: log.append((gi, tuple(go[0].shape))))
    with pytest.warns(UserWarning, match="since no inputs require gradients"):
        net(torch.ones(5, 3)).sum().backward()
    assert log == [((None,), (5, 4))]


def test_backward_hook_values(net):
    seen = {}
    net.a.register_full_backward_hook(lambda m, gi, go: seen.update(gi=gi[0], go=go[0]))
    x = torch.randn(5, 3, requires_grad=True)
    net(x).sum().backward()
    assert torch.equal(seen["gi"], x.grad)
    assert torch.allclose(seen["go"] @ net.a.weight, x.grad, atol=1e-6)
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        net.a(x).add_(1)


def test_global_hooks(net):
    log = []
    handles = [
        nn.modules.module.Global and nn.modules.hooks.register_module_forward_hook(lambda m, a, o: log.append(type(m).__name__)),
        nn.modules.hooks.register_module_forward_pre_hook(lambda m, a: log.append("pre")),
    ]
    try:
        net.b(torch.ones(2, 4))
    finally:
        for h in handles:
            h.remove()
    assert log == ["pre", "pre", "Linear", "pre", "ReLU", "Sequential"]
    net.b(torch.ones(2, 4))
    assert len(log) == 6


# ------------------------------------------------------------------------------------------------------ changes


def test_conversion(net):
    p, version = net.scale, net.a.weight
    net(torch.ones(5, 3)).sum().backward()
    assert net.double() is net
    assert net.scale is p
    assert net.a.weight is version
    assert net.scale.dtype is torch.float64
    assert net.scale.grad.dtype is torch.float64
    assert net.kept.dtype is torch.float64
    assert net.half().scale.dtype is torch.float16
    assert net.float().to("cpu", torch.float64).scale.dtype is torch.float64
    assert net.to(torch.zeros(1)).scale.dtype is torch.float32
    net.register_buffer("count", torch.tensor(0))
    assert net.double().count.dtype is torch.int64


def test_train_and_grad(net):
    assert net.training
    net.eval()
    assert not any(m.training for m in net.modules())
    assert net.train().b[0].training
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())
    net.requires_grad_()
    net(torch.ones(2, 3)).sum().backward()
    grad = net.scale.grad
    net.zero_grad(set_to_none=False)
    assert net.scale.grad is grad
    assert (grad == 0).all()
    net.zero_grad()
    assert net.scale.grad is None
    names = []
    net.apply(lambda m: names.append(type(m).__name__))
    assert names == ["Linear", "Linear", "ReLU", "Sequential", "Net"]


def test_copies(net):
    net(torch.ones(2, 3)).sum().backward()
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(other.a.weight, net.a.weight)
        assert other.a.weight is not net.a.weight
        assert other.again is other.a
        assert isinstance(other.scale, nn.Parameter)
        assert other.scale.requires_grad
        with torch.no_grad():
            other.scale.fill_(9)
        assert not (net.scale == 9).any()
        assert repr(other) == repr(net)


def test_repr(net):
    assert repr(net) == (
        "Net(\n  (a): Linear(in_features=3, out_features=4, bias=True)\n  (b): Sequential(\n"
        "    (0): Linear(in_features=4, out_features=4, bias=True)\n    (1): ReLU()\n  )\n"
        "  (again): Linear(in_features=3, out_features=4, bias=True)\n)"
    )
    assert repr(nn.Parameter(torch.ones(1))) == "Parameter containing:\ntensor([1.], requires_grad=True)"


# --------------------------------------------------------------------------------------------------- containers


def test_sequential():
    s = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    assert len(s) == 3
    assert isinstance(s[1], nn.ReLU)
    assert isinstance(s[-1], nn.Linear)
    assert len(s[1:]) == 2
    s[1] = nn.Tanh()
    assert isinstance(s[1], nn.Tanh)
    s.append(nn.ReLU()).insert(0, nn.Identity())
    assert [type(m).__name__ for m in s] == ["Identity", "Linear", "Tanh", "Linear", "ReLU"]
    del s[0]
    assert list(s._modules) == ["0", "1", "2", "3"]
    assert isinstance(s.pop(-1), nn.ReLU)
    assert len(s + nn.Sequential(nn.ReLU())) == 4
    assert s(torch.ones(4, 2)).shape == (4, 1)
    named = nn.Sequential(OrderedDict(first=nn.Linear(2, 2), second=nn.ReLU()))
    assert isinstance(named.second, nn.ReLU)
    with pytest.raises(IndexError, match="index 5 is out of range"):
        s[5]


def test_module_list_and_dict():
    m = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    m.append(nn.ReLU())
    m.extend([nn.Tanh()])
    m.insert(0, nn.Identity())
    assert [type(x).__name__ for x in m] == ["Identity", "Linear", "Linear", "Linear", "ReLU", "Tanh"]
    assert len(m[2:4]) == 2
    assert len(list(m.parameters())) == 6
    del m[0]
    assert isinstance(m.pop(-1), nn.Tanh)
    assert "(0-2): 3 x Linear(" in repr(m)
    with pytest.raises(NotImplementedError):
        m(1)
    d = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Linear(1, 1)})
    d["c"] = nn.Tanh()
    d.update([("e", nn.ReLU())])
    assert list(d) == ["a", "b", "c", "e"]
    assert "a" in d
    assert isinstance(d.pop("a"), nn.ReLU)
    assert [k for k, _ in d.items()] == ["b", "c", "e"]
    d.clear()
    assert len(d) == 0


def test_parameter_list_and_dict():
    p = nn.ParameterList([torch.zeros(2), nn.Parameter(torch.ones(3))])
    p.append(torch.zeros(1))
    assert len(p) == 3
    assert all(isinstance(x, nn.Parameter) for x in p)
    assert [n for n, _ in p.named_parameters()] == ["0", "1", "2"]
    p[0] = torch.ones(4)
    assert p[0].shape == (4,)
    d = nn.ParameterDict({"a": torch.zeros(2)})
    d["b"] = torch.ones(1)
    assert list(d.keys()) == ["a", "b"]
    assert [n for n, _ in d.named_parameters()] == ["a", "b"]
    assert d.get("z") is None
    d.pop("a")
    assert "a" not in d
    with pytest.raises(RuntimeError, match="should not be called"):
        d(1)


def test_no_warnings_when_used(net):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net(torch.ones(2, 3)).sum().backward()


def test_script_modules_are_modules():
    class Scale(torch.jit.ScriptModule):
        __constants__ = ["by"]

        def __init__(self, by):
            super().__init__()
            self.by, self.weight = by, nn.Parameter(torch.ones(2))

        @torch.jit.script_method
        def forward(self, x):
            return x * self.weight * self.by

    model = nn.Sequential(Scale(3.0), torch.jit.script(nn.Identity()))
    assert model(torch.ones(2)).tolist() == [3.0, 3.0]
    assert list(model.state_dict()) == ["0.weight"]
    assert [isinstance(m, torch.jit.ScriptModule) for m in model] == [True, False]


def test_functions_in_the_class_are_not_methods():
    """PyTorch's functions are called as they are, wherever they stand; functions of the class are its methods."""

    class Activated(torch.nn.Module):
        act, conv, norm = torch.tanh, torch.conv2d, torch.nn.functional.layer_norm
        halved = lambda self, x: x / 2
        extra_state = torch.nn.Linear.extra_repr

        def forward(self, x):
            return self.norm(self.halved(self.act(self.conv(x, weight=torch.ones(1, 1, 1, 1)))), (2,))

    class Other(Activated):
        act = torch.sigmoid

    x = torch.tensor([[[[1.0, 2.0]]]])
    expected = torch.nn.functional.layer_norm(torch.tanh(x) / 2, (2,))
    assert Activated()(x).equal(expected) and Other().act(x).equal(torch.sigmoid(x))
    assert Activated.act(x).equal(torch.tanh(x))
