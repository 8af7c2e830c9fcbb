"""What users find in public modules can be pickled and copied where PyTorch's can, and comes back as the same object."""

from __future__ import annotations

import copy
import pickle
import types

import pytest

from .compare import torch

import autograd_nb as ours  # isort: skip

pytestmark = pytest.mark.parity


def modules(own, other, path="", seen=None):
    """(path, module, PyTorch's) for every public module that both have, and for Tensor."""
    seen = set() if seen is None else seen
    seen.add(id(own))
    yield path, own, other
    for name in dir(own):
        if name.startswith("_") or not hasattr(other, name) or path + name == "ops":  # another thing in PyTorch, no module of its own
            continue
        value, twin = getattr(own, name), getattr(other, name)
        if isinstance(value, types.ModuleType) and isinstance(twin, types.ModuleType) and id(value) not in seen:
            if value.__name__.startswith("autograd_nb") and twin.__name__.startswith("torch"):
                yield from modules(value, twin, f"{path}{name}.", seen)
    if not path:
        yield "Tensor.", own.Tensor, other.Tensor


def same(a, b):
    return a == b if isinstance(b, types.MethodType) else a is b


def comes_back(value):
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        try:
            if not same(pickle.loads(pickle.dumps(value, protocol)), value):
                return False
        except (pickle.PicklingError, AttributeError, TypeError, ImportError):
            return False
    return same(copy.deepcopy(value), value) and same(copy.copy(value), value)


@pytest.mark.filterwarnings("ignore")  # PyTorch warns of names that are old
def test_public_functions_and_classes_can_be_pickled():
    seen, lost = 0, []
    for path, own, other in modules(ours, torch):
        for name in dir(own):
            value = getattr(own, name)
            public = not name.startswith("_") and hasattr(other, name)
            if not public or not isinstance(value, (type, types.FunctionType, types.MethodType)):
                continue
            seen += 1
            if not comes_back(value) and comes_back(getattr(other, name)):
                lost.append(path + name)
    assert not lost
    assert seen > 2000


@pytest.mark.parametrize("name", ["nn.functional.softmax", "cumsum", "nn.functional.max_pool2d", "fft.rfft", "Tensor.add_", "FloatTensor"])
def test_a_function_is_the_same_object_within_what_holds_it(name):
    value = ours
    for part in name.split("."):
        value = getattr(value, part)
    held = {"f": [value, value]}
    for result in (pickle.loads(pickle.dumps(held)), copy.deepcopy(held)):
        assert result["f"][0] is result["f"][1] is value
