"""The modules of the table: importable in every way, each name with its answer."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import autograd_nb as torch
from autograd_nb.compat import stubs
from autograd_nb.compat.more import MODULES, TOP
from autograd_nb.compat.table import NoClass, Refuses, Says

NAMES = [(module, name) for module, absent in MODULES.items() for name in absent.names]


@pytest.mark.parametrize("module", MODULES)
def test_is_imported_and_found_as_an_attribute(module):
    made = importlib.import_module(f"autograd_nb.{module}")
    found = torch
    for part in module.split("."):
        found = getattr(found, part)
    assert found is made
    assert made.__doc__
    assert made.__name__ == f"autograd_nb.{module}"
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        made.nothing_of_this_name


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_answers(module, name):
    answer, made = MODULES[module].names[name], getattr(importlib.import_module(f"autograd_nb.{module}"), name)
    match answer:
        case Says(value):
            assert made() == value
            assert made.__name__ == name
            assert made.__doc__.endswith(".")
        case Refuses(error, _):
            with pytest.raises(error, match=r"this library|test |save|load"):  # the remedy
                made()
        case NoClass(refusal):
            assert isinstance(made, type)
            with pytest.raises(refusal.error):
                made()


@pytest.mark.parametrize("name", TOP)
def test_names_of_the_package_itself(name):
    made = getattr(torch, name)
    assert name in dir(torch)
    assert made.__doc__ or name == "warnings"  # Python's own, which has none from 3.14 on
    if isinstance(TOP[name], (Refuses, NoClass)):
        refusal = TOP[name] if isinstance(TOP[name], Refuses) else TOP[name].refusal
        with pytest.raises(refusal.error, match="this library"):
            made()


def test_switches_can_be_set():
    assert torch.backends.cudnn.benchmark is False
    torch.backends.cudnn.benchmark = True
    try:
        assert importlib.import_module("autograd_nb.backends.cudnn").benchmark is True
    finally:
        torch.backends.cudnn.benchmark = False
    with torch.backends.cuda.sdp_kernel(enable_flash=False):
        torch.backends.cuda.matmul.allow_tf32 = False


def test_decorators_return_what_they_decorate():
    def f(x):
        return x

    assert torch.jit.script(f) is f
    assert torch.jit.trace(f, (1,)) is f
    assert torch.jit.ignore(f) is f
    assert torch.jit.ignore()(f) is f
    assert torch.jit.ignore(drop=True)(f) is f
    assert torch.jit.annotate(int, 3) == 3


def test_refusals_name_what_was_asked_for():
    with pytest.raises(NotImplementedError, match=r"https://example.org/weights"):
        torch.hub.load_state_dict_from_url("https://example.org/weights")
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        torch.cuda.current_device()


def test_every_form_of_import_works_under_both_names():
    code = (
        "import autograd_nb.backends.cudnn, autograd_nb.cuda.amp;"
        "from autograd_nb.cuda import amp, is_available; from autograd_nb.cuda.amp import autocast, GradScaler;"
        "import autograd_nb; torch = autograd_nb.as_torch();"
        "from torch.backends import cudnn; import torch.distributed as dist; from torch.cuda.amp import GradScaler as other;"
        "from torch.amp.grad_scaler import GradScaler as third; import torch.multiprocessing as mp;"
        "cudnn.benchmark = True; assert autograd_nb.backends.cudnn.benchmark and not is_available() and mp.spawn;"
        "assert GradScaler is other and issubclass(other, third) and autocast().device == 'cuda' and not dist.is_initialized()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_stub_is_up_to_date():
    assert not stubs.outdated(), "run make stubs"


def test_what_is_imported_when_it_is_asked_for_is_listed():
    for name in ("cuda", "distributions", "multiprocessing", "nn", "save", "vmap"):
        assert name in dir(torch)
    assert [name for name in dir(torch) if not hasattr(torch, name)] == []
    assert not hasattr(torch, "nothing_of_this_name")


def test_private_names_that_stand_beside_what_they_name():
    from autograd_nb.distributions.multivariate_normal import _precision_to_scale_tril
    from autograd_nb.distributions.utils import _standard_normal, _sum_rightmost
    from autograd_nb.nn.init import _no_grad_fill_, _no_grad_normal_, _no_grad_trunc_normal_, _no_grad_uniform_, _no_grad_zero_
    from autograd_nb.nn.modules.module import _IncompatibleKeys
    from autograd_nb.serialization import FILE_LIKE, MAP_LOCATION

    assert _IncompatibleKeys([], []).missing_keys == []
    assert torch.compiler.allow_in_graph(sum) is sum
    assert torch.compiler.is_exporting() is False
    assert FILE_LIKE is MAP_LOCATION
    x = torch.ones(2, requires_grad=True)
    assert _no_grad_fill_(x, 3.0).tolist() == [3.0, 3.0]
    assert _no_grad_zero_(x).tolist() == [0.0, 0.0]
    for fill in (lambda: _no_grad_uniform_(x, 1.0, 1.0), lambda: _no_grad_normal_(x, 1.0, 0.0)):
        assert fill().tolist() == [1.0, 1.0]
    assert _no_grad_trunc_normal_(x, 0.0, 1.0, -0.5, 0.5).abs().max() <= 0.5
    assert _standard_normal((3, 2), torch.float64, None).dtype is torch.float64
    assert _sum_rightmost(torch.ones(2, 3), 1).tolist() == [3.0, 3.0]
    assert torch.allclose(_precision_to_scale_tril(torch.eye(2) * 4), torch.eye(2) / 2)


def test_what_packages_ask_of_cuda_and_of_the_past():
    """Reversible layers ask whether CUDA was begun before they keep its random state."""
    assert torch.cuda._initialized is False
    assert torch.has_cuda is False
    assert issubclass(torch.nn.ConvTranspose2d, torch.nn.modules.conv._ConvTransposeNd)


def test_what_loaders_and_launchers_of_packages_import():
    """Batches of SpeechBrain pin what they hold, and torchtnt looks for a port."""
    pin_memory = importlib.import_module("autograd_nb.utils.data._utils.pin_memory").pin_memory
    x = torch.ones(2)
    kept = pin_memory({"x": x, "names": ("a", [x])})
    assert kept["names"][0] == "a"
    assert kept["names"][1][0].tolist() == kept["x"].tolist() == [1.0, 1.0]
    assert 0 < importlib.import_module("autograd_nb.distributed.elastic.utils.distributed").get_free_port() < 65536
