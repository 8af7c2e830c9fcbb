"""Every module stands at PyTorch's place too, under this library's name and under ``torch``."""

import importlib
import subprocess
import sys

import pytest

from autograd_nb.compat.import_aliases import MOVED


@pytest.mark.parametrize("name", MOVED)
def test_is_the_module_that_it_stands_for(name):
    assert importlib.import_module(f"autograd_nb.{name}").__dict__.keys() >= {"__name__", "__doc__"}


def test_the_module_keeps_its_own_name():
    import autograd_nb.nn.modules.batchnorm as batchnorm
    import autograd_nb.nn.modules.normalization as normalization

    assert batchnorm is normalization
    assert normalization.__spec__.name == "autograd_nb.nn.modules.normalization"


def test_unknown_names_are_refused():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("autograd_nb.nn.modules.nothing")


def test_under_the_name_of_torch():
    code = (
        "import autograd_nb; autograd_nb.as_torch(); import torch;"
        "from torch.nn.modules.batchnorm import _BatchNorm; from torch.optim.adamw import AdamW;"
        "import torch.utils.model_zoo as zoo; from torch.cuda.amp.grad_scaler import GradScaler;"
        "from torch.autograd.gradcheck import gradcheck; assert torch.autograd.gradcheck is gradcheck and callable(gradcheck);"
        "x = torch.ones(2, requires_grad=True); y = x.double(); y.sum().backward(); y.sum().backward(); assert x.grad.tolist() == [2.0, 2.0];"
        "import torch.nn as nn; assert isinstance(nn.BatchNorm2d(1), _BatchNorm) and AdamW is torch.optim.AdamW"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["cudnn", "cuda", "mps", "mkl", "mkldnn", "openmp"])
def test_backends_can_be_imported_and_are_absent(name):
    assert not importlib.import_module(f"autograd_nb.backends.{name}").is_available()
