"""What Python can read beside names, attributes and arguments is guarded too, or the call runs eagerly and says why."""

from __future__ import annotations

import array
import contextvars
import ctypes
import importlib
import operator
import os
import re
import sys
import types
import warnings
import weakref

import pytest

import autograd_nb as torch
from autograd_nb.compiler.guards import interpreter

settings = types.ModuleType("settings")
SCALE = 1.0


class Holder:
    pass


class Tagged(list):
    pass


class Name(str):
    """A text with an attribute."""


def _set(value):
    """Set what every program below reads."""
    global SCALE
    SCALE = settings.scale = held.scale = tagged.scale = weight.scale = scaled.scale = value
    os.environ["AUTOGRAD_NB_TEST_SCALE"] = str(value)
    variable.set(value)
    numbers[0] = number.value = value
    keywords.__kwdefaults__["scale"] = value
    torch.set_num_threads(int(value))


held, tagged, weight = Holder(), Tagged(), torch.ones(2)
modules, nested = [settings], types.SimpleNamespace(inner=settings)
variable: contextvars.ContextVar = contextvars.ContextVar("variable")
numbers, number, reference = array.array("d", [1.0]), ctypes.c_double(1.0), weakref.ref(held)
getter, name = operator.attrgetter("scale"), "scale"


def scaled(x):
    return x * scaled.scale


def keywords(x, *, scale=1.0):
    return x * scale


def imported(x):
    import settings_of_a_test

    return x * settings_of_a_test.scale


GUARDED = {
    "module in a list": lambda x: x * modules[0].scale,
    "module in an object": lambda x: x * nested.inner.scale,
    "module's dict": lambda x: x * settings.__dict__["scale"],
    "attrgetter": lambda x: x * getter(settings),
    "import inside": imported,
    "attribute of a function": scaled,
    "attribute of a list": lambda x: x * tagged.scale,
    "attribute of a tensor": lambda x: x * weight * weight.scale,
    "keyword default": keywords,
    "environment": lambda x: x * float(os.environ["AUTOGRAD_NB_TEST_SCALE"]),
    "getenv": lambda x: x * float(os.getenv("AUTOGRAD_NB_TEST_SCALE")),
    "context variable": lambda x: x * variable.get(),
    "threads": lambda x: x * torch.get_num_threads(),
    "weak reference": lambda x: x * reference().scale,
}
EAGER = {
    "globals": (lambda x: x * globals()["SCALE"], "globals()"),
    "eval": (lambda x: x * eval("SCALE"), "eval()"),
    "import by name": (lambda x: x * importlib.import_module("settings_of_a_test").scale, "importlib.import_module"),
    "computed attribute of a module": (lambda x: x * getattr(settings, name), "getattr() on the module settings"),
    "vars of a module": (lambda x: x * vars(settings)["scale"], "vars() on the module settings"),
    "array": (lambda x: x * numbers[0], "class array"),
    "ctypes": (lambda x: x * number.value, "class c_double"),
    "version": (lambda x: x * 0 + settings.scale + 0 * weight._version, "_version"),
}


@pytest.fixture(autouse=True)
def _restored(monkeypatch):
    monkeypatch.setitem(sys.modules, "settings_of_a_test", settings)
    monkeypatch.setenv("AUTOGRAD_NB_TEST_SCALE", "1")
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def _follows(compiled):
    """Whether each call sees the value of the time."""
    for value in (1.0, 2.0, 2.0, 3.0):
        _set(value)
        assert compiled(torch.ones(2)).tolist() == [value, value]


@pytest.mark.parametrize("what", GUARDED)
def test_a_change_means_another_program(what):
    compiled = torch.compile(GUARDED[what], fullgraph=True)
    _follows(compiled)
    assert len(compiled.programs) == 3


@pytest.mark.parametrize("what", EAGER)
def test_unseen_values_stay_eager_and_say_so(what):
    function, reason = EAGER[what]
    compiled = torch.compile(function)
    with pytest.warns(UserWarning, match=re.escape(reason)) as caught:
        _follows(compiled)
    assert len(caught) == 1


def test_settings_of_the_library():
    compiled = torch.compile(lambda x: x * (2 if torch.are_deterministic_algorithms_enabled() else 1))
    try:
        for on in (False, True, False):
            torch.use_deterministic_algorithms(on)
            assert compiled(torch.ones(1)).item() == 1 + on
    finally:
        torch.use_deterministic_algorithms(False)
    assert len(compiled.programs) == 2


def test_globals_and_modules_that_a_function_sets():
    def step(x):
        global MADE
        MADE = x * 2
        setattr(settings, name + "d", x * 3)
        return x

    compiled = torch.compile(step)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(6):
            compiled(torch.full((1,), float(k)))
            assert (MADE.item(), settings.scaled.item()) == (2 * k, 3 * k)


def test_hooks_that_stay_with_a_result():
    def step(b):
        v = b * 1
        v.register_hook(lambda g: g * 2)
        return v.detach_()

    compiled = torch.compile(step)
    b = torch.ones(3, requires_grad=True)
    with pytest.warns(UserWarning, match="leaves a hook on a result; register it on what the call returns"):
        compiled(b)
    for _ in range(2):
        v = compiled(b).requires_grad_()
        v.sum().backward()
        assert v.grad.tolist() == [2.0] * 3


def test_attributes_of_arguments_and_results():
    compiled = torch.compile(lambda x: x * getattr(x, "factor", 1.0))
    tagged = torch.ones(1)
    tagged.factor = 5.0
    assert [compiled(x).item() for x in (torch.ones(1), torch.ones(1), tagged, torch.ones(1))] == [1, 1, 5, 1]
    with pytest.warns(UserWarning, match="argument 0 has attributes of its own"):
        assert torch.compile(lambda x: x * x.factor)(tagged).item() == 5

    def mark(x):
        y = x * 2
        x.seen = y.kind = True
        return y

    compiled = torch.compile(mark)
    x = torch.ones(1)
    with pytest.warns(UserWarning, match="sets an attribute"):
        assert compiled(x).kind
    again = torch.ones(1)
    assert compiled(again).kind and again.seen and x.seen


def test_an_attribute_that_a_function_gives_a_tensor():
    weight = torch.ones(1)

    def count(x):
        weight.calls = getattr(weight, "calls", 0) + 1
        return x * weight

    compiled = torch.compile(count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(6):
            compiled(torch.ones(1))
            assert weight.calls == k + 1


def test_which_tensor_an_argument_is():
    first, second = torch.ones(1), torch.ones(1)
    by_identity = torch.compile(lambda x, w: x * (2 if w is first else 3))
    factors = {first: 2, second: 3}
    by_hash = torch.compile(lambda x, w: x * factors[w])
    for w, factor in ((first, 2), (second, 3), (first, 2), (second, 3)):
        assert by_identity(torch.ones(1), w).item() == by_hash(torch.ones(1), w).item() == factor
    twice = torch.compile(lambda x, y: x * (2 if x is y else 3))
    for _ in range(2):
        x = torch.ones(1)
        assert (twice(x, x).item(), twice(x, torch.ones(1)).item(), twice(x, x.view(1)).item()) == (2, 3, 3)


def test_keys_and_texts_among_arguments():
    compiled = torch.compile(lambda x, d: x * (2 if next(iter(d)) is True else 3))
    assert [compiled(torch.ones(1), {k: 0}).item() for k in (1, True, 1.0)] == [3, 2, 3]
    compiled = torch.compile(lambda x, text: x * text.factor)
    for factor in (1.0, 2.0):
        text = Name("a")
        text.factor = factor
        assert compiled(torch.ones(1), text).item() == factor


def test_an_object_that_answers_for_any_attribute():
    values = {"scale": 1.0}

    class Any:
        def __getattr__(self, name):
            return values[name]

    settings = Any()
    compiled = torch.compile(lambda x: x * settings.scale, fullgraph=True)
    for values["scale"] in (1.0, 2.0):
        assert compiled(torch.ones(1)).item() == values["scale"]


def test_warnings_are_given_by_every_call():
    def careful(x):
        warnings.warn("careful with that", RuntimeWarning)
        return x * 2

    compiled = torch.compile(careful)
    for _ in range(3):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            compiled(torch.ones(1))
        assert [w.filename for w in caught if w.category is RuntimeWarning] == [__file__]


def test_what_is_watched_is_as_it_was_afterwards():
    before = print, open, input, vars, getattr, setattr, hasattr, delattr, warnings.warn, torch.Tensor.__hash__
    torch.compile(lambda x: x * 2)(torch.ones(1))
    assert before == (print, open, input, vars, getattr, setattr, hasattr, delattr, warnings.warn, torch.Tensor.__hash__)
    assert "__getattr__" not in vars(torch.Tensor)


def test_what_the_standard_library_does_inside_itself_is_its_own_affair():
    import inspect

    def step(x):
        return x * len(inspect.signature(keywords).parameters)  # it evaluates texts, and asks for modules by name

    assert torch.compile(step, fullgraph=True)(torch.ones(1)).item() == 2


@pytest.mark.parametrize("words", [True, False])
def test_methods_of_tensors_that_a_program_replaces(monkeypatch, words):
    """Also where words of memory tell nothing, as of another interpreter."""
    if not words:
        monkeypatch.setattr(interpreter, "_offsets", {})
    factor = torch.tensor(3.0)
    layer = torch.nn.Flatten()
    named = torch.compile(lambda x: x.sin() + 1, fullgraph=True)
    operator = torch.compile(lambda x: x + 1, fullgraph=True)
    within = torch.compile(lambda x: layer(x) * 1, fullgraph=True)
    x = torch.ones(2, 2)
    plain = [f(x) for f in (named, operator, within) for _ in range(2)][1::2]
    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "sin", lambda t: t * factor)
        patch.setattr(torch.Tensor, "__add__", lambda t, other: torch.sub(t, other))
        patch.setattr(torch.Tensor, "flatten", lambda t, *dims: t.reshape(-1))
        for _ in range(3):
            assert named(x).tolist() == [[2.0, 2.0]] * 2
            assert operator(x).tolist() == [[0.0, 0.0]] * 2
            assert within(x).shape == (4,)
        assert named.programs[0].reason == "a method of Tensor has changed"
        factor.fill_(5)  # what a replaced method reads is as what the function reads
        assert named(x).tolist() == [[4.0, 4.0]] * 2
    for f, before in zip((named, operator, within), plain, strict=True):
        assert f(x).tolist() == before.tolist()
        assert len(f.programs) == 2


@pytest.fixture(params=[True, False], ids=["words", "no words"])
def words(request, monkeypatch):
    """Whether words of memory tell of changes; where they do not, Python compares everything."""
    if not request.param:
        monkeypatch.setattr(interpreter, "_offsets", {})


class Base:
    size = 2.0


def new_attribute_in_between(derived, thing):
    derived.size = 5.0


def other_class(derived, thing):
    thing.__class__ = type("Other", (Base,), {"size": 5.0})


def other_bases(derived, thing):
    derived.__bases__ = (type("Other", (Base,), {"size": 5.0}),)


def other_attributes(derived, thing):
    thing.__dict__ = {"size": 5.0}


def attribute_for_attribute(derived, thing):
    del thing.other
    thing.size = 5.0


@pytest.mark.parametrize("change", [new_attribute_in_between, other_class, other_bases, other_attributes, attribute_for_attribute])
def test_an_attribute_that_is_another_by_another_way(change, words):
    derived = type("Derived", (Base,), {})
    thing = derived()
    thing.other = 1
    step = torch.compile(lambda x: x * thing.size, fullgraph=True)
    x = torch.ones(2)
    for _ in range(3):
        assert step(x).tolist() == [2.0, 2.0]
    change(derived, thing)
    for _ in range(3):
        assert step(x).tolist() == [5.0, 5.0]
    assert len(step.programs) == 2


def test_a_function_that_gets_other_code(words):
    def helper(x):
        return x * 2

    step = torch.compile(lambda x: helper(x), fullgraph=True)
    x = torch.ones(2)
    for _ in range(3):
        assert step(x).tolist() == [2.0, 2.0]
    helper.__code__ = (lambda x: x * 5).__code__
    assert step(x).tolist() == [5.0, 5.0]


@pytest.mark.filterwarnings("ignore:The .grad attribute")
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize(
    "make",
    [lambda x, w: x * w, lambda x, w: x * 2, lambda x, w: (x * 2)[1:], lambda x, w: x[1:], lambda x, w: (x * 2).requires_grad_()],
    ids=["of a parameter", "constant", "a part", "a part of an argument", "a leaf"],
)
def test_gradients_that_results_are_given(make, kept):
    """What is left in a place counts as a result; those that stay within are the function's own."""
    w, box = torch.ones(3, requires_grad=True), {}

    def step(x):
        v = make(x, w)
        v.grad = v.detach() * 3
        if kept:
            box["v"] = v
            return v.grad * 1
        return v

    def within(x):
        v = make(x, w)
        v.grad = v.detach() * 3
        return v.grad * 1

    compiled, alone = torch.compile(step), torch.compile(within, fullgraph=True)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for k in range(4):
            x = torch.arange(3.0) + k
            found = compiled(x)
            assert (box["v"] if kept else found).grad.tolist() == (make(x, w) * 3).tolist() == alone(x).tolist()
    assert any(re.search("leaves a gradient in a result; return the gradient beside it|requires grad", str(t.message)) for t in told)
