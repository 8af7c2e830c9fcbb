"""``layout=`` where a tensor is made: strided ones are, of another layout nothing is made of another kind without a word; `normal` of numbers."""

from __future__ import annotations

import inspect

import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ours  # noqa: E402

from .snippets import check  # noqa: E402

#: functions of these names need other arguments than a size
ARGUMENTS = {
    "arange": "3", "linspace": "0, 1, 3", "logspace": "0, 1, 3", "range": "0, 2", "full": "(2, 2), 1.", "new_full": "(2, 2), 1.", "eye": "2",
    "randint": "3, (2, 2)", "randperm": "3", "tril_indices": "2, 2", "triu_indices": "2, 2", "empty_strided": "(2,), (1,)",
    "new_empty_strided": "(2,), (1,)", "normal": "0., 1., (2,)", "scalar_tensor": "1.", "empty_permuted": "(2, 2), (0, 1)", "fftfreq": "3",
    "rfftfreq": "3", "general_cosine": "3, a=[1., 2.]", "general_hamming": "3", "sparse_coo_tensor": "(2, 2)",
}  # fmt: skip


#: tensors of zeros, which are made with a sparse layout too
OF_NOTHING = {"empty", "zeros", "zeros_like", "new_zeros", "new_empty"}


def makers(spaces):
    """(how a function with ``layout=`` is called, its arguments) for every public one of these namespaces."""
    for space in spaces:
        home = ours
        for part in filter(None, space.split(".")[1:]):
            home = getattr(home, part)
        for name in sorted(dir(home)):
            function = getattr(home, name)
            if name.startswith("_") or not callable(function) or isinstance(function, type):
                continue
            try:
                parameters = inspect.signature(function).parameters
            except ValueError:
                continue
            if "layout" in parameters and ("requires_grad" in parameters or "pin_memory" in parameters):
                first = "t.ones(2, 2)" if name.endswith("_like") else ""
                number = "1." if name == "full_like" else "3" if name == "randint_like" or "window" in name + space else ""
                yield f"{space}.{name}", ", ".join(filter(None, (first, ARGUMENTS.get(name, number or ("" if first else "2, 2")))))
    for name in ("new_zeros", "new_ones", "new_empty", "new_full", "new_empty_strided"):
        yield f"t.ones(2).{name}", ARGUMENTS.get(name, "(2, 2)")


CALLS = [call for call in makers(("t", "t.fft", "t.signal.windows")) if not call[0].startswith("t.sparse_")]


def test_the_walk_finds_them():
    assert len(CALLS) > 40


@pytest.mark.parity
@pytest.mark.parametrize("options", ("layout=t.strided", "layout=t.strided, requires_grad=False", "pin_memory=False"))
def test_strided_is_what_tensors_are(options):
    def call(name, arguments):
        return f"x = {name}({', '.join(filter(None, (arguments, options)))})\nr = tuple(x.shape), str(x.dtype), str(x.layout)"

    check({f"{name}({options})": call(name, arguments) for name, arguments in CALLS if "pin" not in options or "signal" not in name})


@pytest.mark.parametrize("layout", ("sparse_coo", "sparse_csr"))
@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=[name for name, _ in CALLS])
def test_no_other_layout_is_passed_over(name, arguments, layout):
    if name.rpartition(".")[2] == "scalar_tensor":
        return  # PyTorch makes a strided one
    if name.rpartition(".")[2] in OF_NOTHING:
        made = f"{name}({arguments}, layout=t.{layout})"
        check({made: f"r = str({made}.layout), tuple({made}.shape)"})
        return
    with pytest.raises(NotImplementedError, match="not implemented for sparse types"):
        eval(f"{name}({', '.join(filter(None, (arguments, f'layout=t.{layout}')))})", {"t": ours})


def test_what_is_no_layout():
    for lib in (ours, torch):
        with pytest.raises(TypeError, match="layout"):
            lib.zeros(2, layout="strided")


NORMALS = {
    "a mean without dims": "t.tensor(0.), 1, (10,)", "both": "t.tensor(0.), t.tensor(1.), (10,)", "float64": "t.tensor(0.).double(), 1, (10,)",
    "an int": "t.tensor(0), 1, (10,)", "with dims": "t.zeros(1), 1, (10,)", "requires grad": "t.tensor(0.).requires_grad_(), 1, (10,)",
    "below zero": "t.tensor(0.), t.tensor(-1.), (10,)", "a number below zero": "t.tensor(0.), -1",
}  # fmt: skip


@pytest.mark.parity
def test_normal_takes_tensors_without_dims_for_numbers():
    check({name: f"x = t.normal({arguments}); r = tuple(x.shape), str(x.dtype)" for name, arguments in NORMALS.items()})


GRADS = ("t.zeros(2, dtype=t.int64, requires_grad=True)", "t.ones_like(i, requires_grad=True)", "i.new_zeros(2, requires_grad=True)",
         "t.tensor([1], requires_grad=True)", "t.arange(2, requires_grad=True)", "t.randperm(2, requires_grad=True)", "nn.Parameter(i)",
         "i.requires_grad_()", "setattr(i, 'requires_grad', True)")  # fmt: skip


@pytest.mark.parametrize("call", GRADS)
def test_integers_get_no_gradients_in_pytorchs_words(call):
    said = []
    for lib in (ours, torch):
        with pytest.raises(RuntimeError) as found:
            eval(call, {"t": lib, "nn": lib.nn, "i": lib.zeros(2, dtype=lib.int64)})
        said.append(str(found.value))
    assert said[0].startswith(said[1])
