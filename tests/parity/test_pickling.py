"""What users find in public modules can be pickled and copied where PyTorch's can, and comes back as the same object."""

from __future__ import annotations

import copy
import io
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


def with_state(t):
    """Return objects of classes that keep things in slots, or say themselves what they keep."""

    class Slots(t.Tensor):
        __slots__ = ["elem", "other"]

    class Said(t.Tensor):
        def __getstate__(self):
            return ("mine", self.__dict__)

        def __setstate__(self, state):
            self.mark = state[0]
            self.__dict__.update(state[1])

    class Named(t.nn.Parameter):
        __slots__ = ["elem"]

    for cls in (Slots, Said, Named):
        cls.__qualname__ = cls.__name__ = f"{cls.__name__}_of_{t.__name__}"
        cls.__module__, globals()[cls.__name__] = __name__, cls
    slots, said, named = t.ones(2).as_subclass(Slots), t.ones(2).as_subclass(Said), Named(t.ones(2))
    slots.elem, slots.extra, said.extra, named.elem = t.ones(3), [1], 5, 7
    return slots, said, named


@pytest.mark.parametrize("way", ("pickle", "save", "older", "copy"))
def test_what_stands_in_slots_and_what_a_class_says_are_kept(way):
    def again(t, x):
        if way == "copy":
            return copy.copy(x)
        if way == "pickle":
            return pickle.loads(pickle.dumps(x))
        file = io.BytesIO()
        t.save(x, file, _use_new_zipfile_serialization=way == "save")
        file.seek(0)
        return t.load(file, weights_only=False)

    found = []
    for t in (torch, ours):
        slots, said, named = (again(t, x) for x in with_state(t))
        found.append((
            slots.tolist(), slots.elem.tolist(), slots.extra, hasattr(slots, "other"), said.tolist(), said.extra, getattr(said, "mark", None),
            named.tolist(), named.elem if way != "pickle" else None, type(slots).__name__.partition("_of_")[0],
        ))  # fmt: skip
    assert found[0] == found[1]


def test_deep_copies_have_copies_of_what_stands_in_slots():
    slots = with_state(ours)[0]
    other = copy.deepcopy(slots)
    assert other.elem.tolist() == [1, 1, 1] and other.elem is not slots.elem and other.extra == [1] and not hasattr(other, "other")
