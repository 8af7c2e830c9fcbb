"""Data and files of any class, results written over what they are made of, reductions' identities: the same answers, or errors of the same class."""

from __future__ import annotations

import array
import collections
import io
import itertools
import pickle
import tempfile
import warnings

import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ours  # noqa: E402

from .snippets import check  # noqa: E402
from .test_old_programs import outcome, same  # noqa: E402


class Own:
    """A class with a length and items, and no more."""

    def __init__(self, *items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, k):
        return self.items[k]


class Named(Own):
    """One that has a mapping's method too."""

    def keys(self):
        return []


def data(t):
    return {
        "none": Own(), "ints": Own(1, 2), "floats": Own(1, 2.5), "bools": Own(True), "complex": Own(1j, 2), "nested": Own(Own(1, 2), Own(2, 3)),
        "in a list": [Own(1, 2), (3, 4)], "a list in it": Own([1], 2), "of a tensor": Own(Own(t.tensor(3), 2), Own(1, 2)), "text": Own("a"),
        "one number too few": Own(1, Own(2)), "too large": Own(2**63), "with keys": Named(1, 2), "deque": collections.deque([1, 2]),
        "array": array.array("f", [1, 2]), "user's list": collections.UserList([1, 2]), "dict": {1: 2}, "set": {1, 2}, "object": object(),
        "bytes": b"ab", "bytearray": bytearray(b"ab"),
    }  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize(
    ("maker", "dtype"), [*itertools.product(("tensor", "as_tensor", "asarray"), (None, "float64", "int64")), ("Tensor", None)]
)
def test_sequences_of_any_class(maker, dtype):
    differing = {}
    for name in data(ours):
        found = []
        for lib in (ours, torch):
            options = {"dtype": getattr(lib, dtype)} if dtype else {}
            found.append(outcome(lambda t, o=options, n=name: (lambda y: [y, y.dtype])(getattr(t, maker)(data(t)[n], **o)), lib))
        mine, theirs = found
        if not (issubclass(mine, theirs) if isinstance(mine, type) and isinstance(theirs, type) else mine == theirs):
            differing[name] = (mine, theirs)
    assert not differing


@pytest.mark.parity
def test_identities_of_reductions():
    names = ("sum", "cumsum", "norm", "prod", "cumprod", "amax", "argmax", "amin", "argmin", "median", "mean", "var", "std", "torch.sum", "x")
    kinds = ("float32", "bfloat16", "uint8", "int64", "complex64", "bool")
    # (PyTorch's TypeError for the largest complex number says that iinfo wants integers; here it is NotImplementedError, as for bools)
    check({
        f"{name} of {d}": f"r = t.masked._reduction_identity('{name}', t.ones(2, dtype=t.{d}))"
        for name, d in itertools.product(names, kinds) if not (d == "complex64" and name.endswith(("max", "min")))
    })  # fmt: skip
    same(lambda t: t.masked._reduction_identity("norm", t.ones(2), float("-inf")))


SORTS = {
    "itself": ("t.tensor([3., 1., 2.])", "x", "i"), "a view of itself": ("t.tensor([3., 1., 2.])", "x.view(3)", "i"),
    "transposed": ("t.tensor([[3., 1.], [0., 2.]])", "x.t()", "t.zeros(2, 2, dtype=t.int64)"),
    "one later": ("t.arange(4.).flip(0)[:3]", "x.as_strided((3,), (1,), 1)", "i"), "its places": ("t.tensor([3, 1, 2])", "t.zeros(3, dtype=t.int64)", "x"),
    "places of another size": ("t.tensor([3., 1., 2.])", "x", "t.zeros(0, dtype=t.int64)"), "no dims": ("t.tensor(3.)", "x", "i"),
}  # fmt: skip


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_what_is_sorted_may_be_written_over():
    check({name: f"x = {x}; i = t.zeros(3, dtype=t.int64); t.sort(x, out=({values}, {places})); r = x, i" for name, (x, values, places) in SORTS.items()})


def test_who_trusts_a_file(monkeypatch):
    """Files of modules are read where the caller says so, names a pickle module, or PyTorch's variable is set: the same in both."""
    variables = ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    ways = ({}, {"pickle_module": pickle}, {"weights_only": True}, {"weights_only": False},
            {"weights_only": True, "pickle_module": pickle}, {"weights_only": False, "pickle_module": pickle})  # fmt: skip

    def verdict(lib, way):
        file = io.BytesIO()
        lib.save({"layer": lib.nn.Linear(1, 1)}, file)
        file.seek(0)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            try:
                return sorted(lib.load(file, **way)), len(found)
            except Exception as error:
                return type(error), len(found)

    for settings in itertools.product((None, "1", "Yes", "0"), repeat=2):
        for name, value in zip(variables, settings, strict=True):
            monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
        for way in ways:
            assert verdict(ours, way) == verdict(torch, way), (settings, way)


def test_old_names_that_warn_and_marks_that_are_none():
    """What was given no input is not dirty, which is said in a warning; so is that `volatile` and `_aminmax` are old."""

    def mark(t):
        class Doubled(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                y = x * 2
                ctx.mark_dirty(y)
                return y

            @staticmethod
            def backward(ctx, g):
                return g * 2

        x = t.ones(2, requires_grad=True)
        y = Doubled.apply(x)
        y.sum().backward()
        return [y, x.grad]

    for program, message in (
        (mark, "not an input"), (lambda t: t.ones(1).volatile, "volatile was removed"), (lambda t: t._aminmax(t.arange(3.0)), "_aminmax is deprecated"),
    ):  # fmt: skip
        found = []
        for lib in (ours, torch):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                found.append(outcome(program, lib))
            assert any(message in str(w.message) for w in said) or (lib is torch and not said), (lib, message)
        assert found[0] == found[1]


def test_names_of_switches_and_marks():
    same(lambda t: t._C._get_deterministic_algorithms())
    with ours.profiler.itt.range("a part"):
        ours.profiler.itt.mark("here")
    assert ours.profiler.itt.is_available() is False
    assert ours.cuda.amp.common.amp_definitely_not_available() is True


def test_slopes_below_zero_in_place_name_the_remedy():
    for lib in (ours, torch):
        y = lib.nn.functional.leaky_relu_(lib.ones(2, requires_grad=True) * 1, -2.0)
        with pytest.raises(RuntimeError, match="call out-of-place version"):
            y.sum().backward()


PARTS = ("inf + 1j", "1 + inf * 1j", "-inf", "nan + 1j", "1e308 + 1e308j", "2 - 3j", "complex(inf, inf)")


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ("complex64", "complex128"))
def test_means_of_complex_infinities_are_complex_quotients(dtype):
    """A mean is a total over a complex count: an infinite part makes nan of the other, in one number as in rows of several."""
    before = "inf, nan = float('inf'), float('nan')"
    check({
        f"{how} of {n} times {part}": f"x = t.tensor([{part}] * {n}, dtype=t.{dtype}).reshape({n}, 1); r = {how}"
        for part in PARTS for n in (1, 2, 17) for how in ("x.mean()", "x.mean(0)", "x.mean(1)", "x.T.mean((0, 1), keepdim=True)")
    }, before)  # fmt: skip


def test_a_temporary_file_that_is_open_has_what_is_saved():
    for lib in (ours, torch):
        with tempfile.NamedTemporaryFile() as file:
            lib.save({"x": lib.ones(2)}, file.name)
            assert lib.load(io.BytesIO(file.read()))["x"].tolist() == [1, 1]


def test_an_empty_file_stays_empty_where_saving_fails(tmp_path):
    path = tmp_path / "empty.pt"
    path.touch()
    with pytest.raises((pickle.PicklingError, AttributeError)):
        ours.save({"f": lambda: 0}, path)
    assert path.read_bytes() == b""


def test_warnings_that_programs_leave_out_by_name():
    """A scheduler that is given an epoch says what `EPOCH_DEPRECATION_WARNING` holds, so that tests can tell it from others."""
    for lib in (ours, torch):
        optimizer = lib.optim.SGD([lib.ones(1, requires_grad=True)], 0.1)
        scheduler = lib.optim.lr_scheduler.StepLR(optimizer, 2)
        optimizer.step()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            scheduler.step(3)
        assert [str(w.message) for w in said] == [lib.optim.lr_scheduler.EPOCH_DEPRECATION_WARNING]


@pytest.mark.parametrize("n", (1, 2, 3))
def test_dims_of_what_has_no_batch(n):
    same(lambda t: getattr(t.nn, f"InstanceNorm{n}d")(2)._get_no_batch_dim())


@pytest.mark.parametrize("name", ("atan", "atanh", "asin", "acos", "asinh", "acosh"))
def test_inverse_functions_of_complex_numbers_near_their_branch_points(name):
    """Near ±1 and ±i no digits are lost, on either side: the same numbers in double precision, rounded."""
    steps = torch.tensor([0, 1e-6, -1e-6, 3e-5, -3e-5, 1e-3, -1e-3, 0.1])
    offsets = torch.complex(steps.repeat_interleave(len(steps)), steps.repeat(len(steps)))[1:]
    points = torch.cat([offsets + z for z in (1, -1, 1j, -1j)]).to(torch.complex64)
    points = points[(points.real.abs() != 1) | (points.imag != 0)]
    exact = getattr(points.to(torch.complex128), name)()
    mine = torch.tensor(getattr(ours.tensor(points.numpy()), name)().numpy()).to(torch.complex128)
    kept = torch.isfinite(exact.real) & torch.isfinite(exact.imag)
    assert (mine - exact)[kept].abs().max().item() < 5e-6
