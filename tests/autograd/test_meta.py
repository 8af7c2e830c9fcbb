"""Tensors of the device "meta": shapes without numbers, as programs make large models before a file brings the weights."""

import copy
import gc
import inspect
import pickle

import pytest

import autograd_nb as torch
from autograd_nb.autograd.torch_function import INTERCEPTION
from autograd_nb.ops.core.registry import OPS

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


X = torch.arange(6.0).reshape(2, 3)
#: what makes tensors and takes a ``device``, with arguments
CALLS = {
    **dict.fromkeys(("empty", "zeros", "ones", "rand", "randn", "tril_indices", "triu_indices"), (2, 3)),
    **dict.fromkeys(("eye", "arange", "randperm", "fft.fftfreq", "fft.rfftfreq"), (4,)),
    **{name + "_window": (4,) for name in ("bartlett", "blackman", "hamming", "hann", "kaiser")},
    **{f"signal.windows.{name}": (4,) for name in (
        "bartlett", "blackman", "cosine", "exponential", "gaussian", "hamming", "hann", "kaiser", "nuttall")},
    "signal.windows.general_cosine": (4,), "signal.windows.general_hamming": (4,), "linspace": (0, 1, 4), "logspace": (0, 1, 4), "range": (0, 3),
    "full": ((2, 3), 1.0), "full_like": (X, 1.0), "tensor": ([1.0, 2.0],), "as_tensor": ([1.0],), "asarray": ([1, 2],), "scalar_tensor": (2.0,),
    "randint": (3, (2, 2)), "randint_like": (X, 3), "normal": (0.0, 1.0, (2,)), "empty_strided": ((2, 3), (1, 2)), "empty_permuted": ((2, 3), (1, 0)),
    **{name + "_like": (X,) for name in ("empty", "zeros", "ones", "rand", "randn")}, "new_full": (X, (2,), 1.0), "new_tensor": (X, [1.0]),
    **{f"new_{name}": (X, (2,)) for name in ("empty", "zeros", "ones")}, "new_empty_strided": (X, (2,), (1,)), "new": (X, 2), "to": (X,),
}  # fmt: skip
#: what is about other devices
ABOUT = {"cuda", "mps", "mtia", "xpu", "is_pinned", "pin_memory", "from_dlpack"}


@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
@pytest.mark.parametrize("name", [n for n, op in OPS.items() if "device" in inspect.signature(op.call).parameters and n not in ABOUT])
def test_every_op_with_a_device_looks_at_it(name):
    given = {"a": [0.5, 0.5]} if name.endswith("general_cosine") else {}
    call, args = OPS[name].call, CALLS[name]
    real, t = call(*args, **given), call(*args, device="meta", **given)
    if "layout" in inspect.signature(call).parameters and not name.startswith(("sparse", "_sparse")):  # beside other options too
        assert call(*args, device="meta", layout=torch.strided, **given).shape == real.shape
    assert (t.is_meta, t.shape, t.dtype, real.is_meta) == (True, real.shape, real.dtype, False)
    with pytest.raises(RuntimeError, match="not available"):
        call(*args, device="mps", **given)


def test_the_device_where_none_is_named():
    try:
        torch.set_default_device("meta")
        made = [torch.ones(2), torch.nn.BatchNorm1d(3), torch.tensor([1.0])]
        assert torch.get_default_device() == torch.device("meta")
        assert all(t.is_meta for t in [made[0], made[2], *made[1].state_dict().values()])
        assert not torch.ones(2, device="cpu").is_meta
    finally:
        torch.set_default_device(None)
    assert not torch.ones(2).is_meta and torch.get_default_device() == torch.device("cpu")
    assert all(t.is_meta for t in torch.nn.BatchNorm1d(3, device="meta").state_dict().values())
    with pytest.raises(RuntimeError, match="not available"):
        torch.set_default_device("mps")


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
