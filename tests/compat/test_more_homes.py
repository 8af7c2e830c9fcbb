"""Modules that packages take names from while they are imported, and what is used as a context or a decorator and does nothing."""

from __future__ import annotations

import importlib

import pytest

import autograd_nb as torch


@pytest.mark.parametrize("home", ["quantization", "ao.quantization"])
def test_observers_and_settings_of_quantization_are_names(home):
    observer, qconfig = (importlib.import_module(f"autograd_nb.{home}.{name}") for name in ("observer", "qconfig"))
    for kind in (observer.PerChannelMinMaxObserver, observer.HistogramObserver, qconfig.QConfig):
        assert isinstance(kind, type)
        with pytest.raises(NotImplementedError, match="quantized"):
            kind()


def test_what_sets_nothing_decorates_too():
    """As `torch.cuda.nvtx.range` is used by asdl, which laplace-torch imports."""

    @torch.cuda.nvtx.range("step")
    def step(x):
        return x + 1

    with torch.cuda.nvtx.range("step"):
        assert step(1) == 2
    assert step.__name__ == "step"


def test_a_context_that_is_not_here_says_so():
    """Also a subclass that does not call its ``__init__``, as a counter of ptflops does."""
    from autograd_nb.utils._python_dispatch import TorchDispatchMode

    class Counter(TorchDispatchMode):
        def __init__(self):
            self.count = 0

        def __enter__(self):
            super().__enter__()

    with pytest.raises(NotImplementedError), Counter():
        pass


@pytest.mark.parametrize("home", ["_dynamo.config", "_inductor.config"])
def test_switches_of_compilers_are_patched_for_a_while(home):
    config = importlib.import_module(f"autograd_nb.{home}")
    with config.patch(verbose=True):
        assert config.patch({"verbose": True})(abs)(-1) == 1
