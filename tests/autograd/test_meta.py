"""Tensors of the device "meta": shapes without numbers, as programs make large models before a file brings the weights."""

import copy
import gc
import pickle

import pytest

import autograd_nb as torch
from autograd_nb.autograd.torch_function import INTERCEPTION

MAKERS = {
    "empty": (2, 3), "zeros": (2, 3), "ones": (2, 3), "rand": (2, 3), "randn": (2, 3), "full": ((2, 3), 1.0),
    "eye": (3,), "arange": (5,), "linspace": (0, 1, 4),
    "randperm": (4,), "tensor": ([1.0, 2.0],), "as_tensor": ([1, 2],), "hann_window": (4,), "tril_indices": (3, 3),
}  # fmt: skip


@pytest.mark.parametrize("name", MAKERS)
def test_makers_inside_of_the_device_make_no_numbers(name):
    expected = getattr(torch, name)(*MAKERS[name])
    with torch.device("meta"):
        t, real = getattr(torch, name)(*MAKERS[name]), torch.ones(2, device="cpu")
    assert (t.device.type, t.is_meta, t.is_cpu, t.shape, t.dtype) == ("meta", True, False, expected.shape, expected.dtype)
    assert not real.is_meta and not getattr(torch, name)(*MAKERS[name]).is_meta


@pytest.mark.parametrize("name", ["empty", "zeros", "ones", "rand", "randn"])
def test_the_device_can_be_an_argument(name):
    t = getattr(torch, name)(2, 3, device="meta", dtype=torch.float64)
    assert t.is_meta and t.dtype is torch.float64 and tuple(t.shape) == (2, 3)
    like = getattr(torch, name + "_like")(torch.ones(4)) if name + "_like" in dir(torch) else t
    assert like is t or not like.is_meta
    assert torch.ones(2).to("meta").is_meta and torch.zeros_like(torch.ones(2), device="meta").is_meta


def test_ops_find_shapes_and_record_a_graph():
    x = torch.ones(2, 3, device="meta", requires_grad=True)
    y = (x @ x.T + 1).sum(0)
    assert y.is_meta and tuple(y.shape) == (2,) and y.requires_grad and x.view(6).is_meta and x.split(1)[1].is_meta
    assert x.to(torch.float64).dtype is torch.float64 and x.half().is_meta
    assert x.detach().fill_(3.0).is_meta and repr(torch.zeros(2, device="meta")) == "tensor(..., device='meta', size=(2,))"
    assert not torch.empty_like(x, device="cpu").is_meta and pickle.loads(pickle.dumps(x)).is_meta


@pytest.mark.parametrize(
    ("read", "error"),
    [(lambda x: x.sum().item(), RuntimeError), (lambda x: bool(x.sum() > 0), RuntimeError), (lambda x: x.numpy(), TypeError),
     (lambda x: x.to("cpu"), NotImplementedError), (lambda x: x.cpu(), NotImplementedError), (lambda x: torch.ones(2, 3).copy_(x), NotImplementedError),
     (lambda x: x.tolist(), RuntimeError)],
)  # fmt: skip
def test_nobody_reads_numbers_that_are_not_there(read, error):
    with pytest.raises(error, match="meta"):
        read(torch.ones(2, 3, device="meta"))


def test_a_module_without_numbers_gets_them():
    with torch.device("meta"):
        m = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4), torch.nn.LSTM(4, 2))
        m.register_buffer("places", torch.arange(4), persistent=False)
    assert all(p.is_meta and isinstance(p, torch.nn.Parameter) and p.requires_grad for p in m.parameters()) and m.places.is_meta
    assert copy.deepcopy(m)[0].weight.is_meta and tuple(m[0](torch.ones(2, 3, device="meta")).shape) == (2, 4)
    with pytest.raises(NotImplementedError, match="to_empty"):
        m.to("cpu")
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        m[0].weight.data = torch.ones(4, 3)
    whole = torch.nn.Linear(3, 4).state_dict()
    with pytest.warns(UserWarning, match="assign=True"):
        m[0].load_state_dict(whole)
    assert m[0].weight.is_meta
    m[0].load_state_dict(whole, assign=True)
    assert type(m[0].weight) is torch.nn.Parameter and torch.equal(m[0].weight, whole["weight"]) and m[0].weight.requires_grad
    m.to_empty(device="cpu")
    assert not any(t.is_meta for t in [*m.parameters(), *m.buffers()]) and type(m[1].weight) is torch.nn.Parameter
    assert torch.nn.Linear(2, 3, device="meta").bias.is_meta and torch.nn.Linear(2, 3).to("meta").weight.is_meta


def test_a_program_puts_parameters_in_their_places():
    with torch.device("meta"):
        m = torch.nn.Linear(2, 2)
    kind, old = type(m.weight), m.weight
    m._parameters["weight"] = kind(torch.ones(2, 2), requires_grad=old.requires_grad)
    m.bias = torch.nn.Parameter(torch.zeros(2))
    assert torch.equal(m(torch.ones(1, 2)), torch.full((1, 2), 2.0))


def test_large_models_take_no_memory():
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with torch.device("meta"):
        m = torch.nn.Linear(30_000, 10_000)  # 1.2 GB
        torch.nn.init.normal_(m.weight)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000


def test_calls_are_free_again_when_the_last_is_gone():
    gc.collect()
    before = INTERCEPTION.count
    t = torch.ones(3, device="meta") + 1
    assert INTERCEPTION.count > before
    del t
    gc.collect()
    assert INTERCEPTION.count == before
