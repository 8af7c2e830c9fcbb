"""uint16, uint32 and uint64 beside PyTorch's: every op of PyTorch's database takes them or refuses them as there; numbers, files, texts.

A sample of the ops is walked over; BAREBONE_EVERY=1 walks over all.
"""

from __future__ import annotations

import io
import os
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

import autograd_nb as ag  # noqa: E402

from . import opdb  # noqa: E402
from .snippets import check  # noqa: E402

NAMES = ("uint16", "uint32", "uint64")
OPS = [op for op in op_db if not opdb.outside(opdb.title(op)) and not any(r in op.name for r in opdb.RANDOM) and op.supported_dtypes("cpu") & {torch.int64}]
EVERY = int(os.environ.get("BAREBONE_EVERY", "8"))
SAMPLES = 5  #: of an op
#: what does not agree, and why
KNOWN: dict[str, str] = {
    "combinations": "PyTorch's reads by a mask, which it refuses; here it takes elements by places",
    "cov": "weights of another dtype are turned into floats here",
    "flip": "PyTorch flips along some dims only",
    "index_select": "PyTorch selects along some dims only",
    "count_nonzero": "PyTorch counts along dims only",
    "isin": "PyTorch looks among many numbers only",
    "sort": "the order of equal numbers is free without stable=True",
    "argsort": "the order of equal numbers is free without stable=True",
    "index_reduce (prod)": "PyTorch multiplies along the first of two dims only",
    "masked.sum": "sums are int64 here, as those of sum()",
    "masked.prod": "products are int64 here, as those of prod()",
    "masked.logsumexp": "computed in floats here, as logsumexp()",
}


def called(function, args, kwargs):
    """The result of a call, or the kind of its exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args, **kwargs), None
        except (NotImplementedError, RuntimeError, TypeError, ValueError, IndexError) as error:
            return None, error


def trivial(operands, results):
    """Whether an operand or the result has nothing that had to be computed: there PyTorch does not ask what the dtype is."""
    return any(t.numel() <= 1 for t in opdb.leaves(operands)) or all(t.numel() <= 1 for t in opdb.leaves(results))


def disagreements(op, name):
    """What differs between the libraries for samples of an op in this dtype: one line each."""
    d, base, function = getattr(torch, name), torch.uint8 if torch.uint8 in op.supported_dtypes("cpu") else torch.int64, opdb.find(op)
    for sample in list(op.sample_inputs("cpu", base))[:SAMPLES]:
        given = sample.transform(lambda x: x.to(d) if isinstance(x, torch.Tensor) and x.dtype is base else d if x is base else x)
        try:
            args, kwargs = opdb.ours(((given.input, *given.args), given.kwargs))
        except opdb.Unsupported:
            continue
        theirs, error = called(op, (given.input, *given.args), given.kwargs)
        mine, own = called(function, args, kwargs)
        if error is not None or own is not None:
            if (error is None) != (own is None) and not (error is None and trivial((given.input, given.args), theirs)):
                yield f"{own!r:.150} instead of {error!r:.150}"
            continue
        try:
            opdb.compare(mine, theirs, name)
        except AssertionError as difference:
            yield str(difference)[:200]


@pytest.mark.parity
@pytest.mark.parametrize("op", OPS[::EVERY], ids=opdb.title)
def test_op(op):
    """An op takes a barebone dtype, with PyTorch's values, or refuses it."""
    found = [line for name in NAMES[:: 1 if opdb.title(op) in CLAIMED else 2] for line in disagreements(op, name)]
    if opdb.title(op) in KNOWN:
        assert found, f"agrees now, so it is no longer known: {KNOWN[opdb.title(op)]}"
    else:
        assert not found, "\n".join(found)


CLAIMED = {opdb.title(op) for op in OPS if torch.uint32 in op.supported_dtypes("cpu")}


EXPRESSIONS = [
    "t.tensor([1, 2], dtype=d)", "t.tensor([70000], dtype=d)", "t.tensor([-1], dtype=d)", "t.arange(5, dtype=d)", "t.zeros(2, dtype=d)",
    "t.full((2,), -1, dtype=d)", "t.eye(2, dtype=d)", "t.randperm(5, dtype=d)", "t.linspace(0, 4, 5, dtype=d)", "a + b", "a - 1", "1 - a", "a * b",
    "2 * a", "a * 2.5", "a * (1 + 2j)", "a / b", "a // b", "a % b", "a ** 2", "-a", "~a", "a & b", "a | 1", "5 ^ a", "a << 1", "a == b", "a != 1", "a < b",
    "a >= 1", "a + f", "a < f", "a * u8", "i64 + a", "a == i64", "a & True", "a * t.tensor(2)", "t.tensor(2).to(d) * i64", "t.tensor(2).to(d) * m",
    "t.result_type(a, 1)", "t.result_type(a, 1.5)", "t.can_cast(t.int64, d)", "t.can_cast(t.float32, d)", "t.can_cast(t.int64, t.uint8)", "a.sum(0)",
    "a.sum(dtype=d)", "a.prod()", "a.cumsum(0)", "a.mean()", "a.mean(dtype=t.float32)", "a.max()", "a.max(0)", "a.amin(0)", "a.argmax(0)", "a.any(0)",
    "a.std()", "a.abs()", "a.sqrt()", "a.sort()", "v.unique()", "v.topk(2)", "a[0]", "a[i]", "a[m]", "a[:, 1].tolist()", "a.gather(0, i64)",
    "a.scatter(0, i64, b)", "a.masked_fill(m, 3)", "a.masked_select(m)", "a.take(i)", "a.__setitem__(0, 5)", "a.__setitem__(m, 5)",
    "a.__setitem__(i, 5)", "a.__setitem__(slice(None), b)", "a.index_put_((i,), v[:2], accumulate=True)", "a.nonzero()", "a.tril()", "t.where(m, a, b)",
    "t.where(m, a, i64)", "t.cat([a, b])", "t.cat([a, u8])", "a.clamp(1, 3)", "a @ b", "a.repeat(2, 1)", "a.view(t.uint8)", "a.bool()", "repr(a)",
    "repr(t.iinfo(d))", "repr(t.finfo(t.float16))", "a.type()", "a.numpy().dtype.name", "t.from_numpy(a.numpy())", "t.from_dlpack(a)", "f[v]", "f[v[0]]",
    "t.bincount(v)", "t.triu_indices(2, 2, dtype=d)", "a.mul_(i64)", "a.mul_(1.5)", "a.copy_(f - 2)", "a.requires_grad_()", "a.random_()",
    "t.searchsorted(v, v)", "a.half()", "(f * -1.5).to(d)", "t.tensor([70000.5, -7e4]).to(d)", "t.tensor([2**63, 1], dtype=d)", "t.tensor(2**63)",
    "t.tensor([2**64 - 1, 1])", "t.promote_types(d, t.int64)", "t.promote_types(d, t.uint8)", "t.promote_types(d, t.bfloat16)", "t.promote_types(d, d)",
    "a.argmax(1)", "a[:1].argmax(0)", "a[:, :1].argmin(1, keepdim=True)", "a[:, :0].argmin(0)", "a[:0].argmax(0)", "a.count_nonzero(0)",
    "a.count_nonzero((0, 1))", "t.isin(u8, t.tensor(2).to(d))", "t.isin(i64, t.tensor(1).to(d))", "t.isin(t.tensor(3).to(d), i64)",
    "t.isin(i64, a)", "t.isin(a[:0], i64)", "t.isin(i64, v[:0])", "t.isin(f, t.tensor(1).to(d))", "t.isin(a, 2.5)",
]  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("name", NAMES)
def test_expressions(name):
    before = f"""d = t.{name}
a, b, v = t.tensor([[3, 1], [2, 7]]).to(d), t.tensor([[1, 1], [5, 7]]).to(d), t.tensor([1, 1, 1]).to(d)
i, m, f = t.tensor([0, 1]), t.tensor([[True, False], [False, True]]), t.ones(2, 2)
u8, i64 = t.ones(2, 2, dtype=t.uint8), t.ones(2, 2, dtype=t.int64)"""
    check({code: f"r = {code}" for code in EXPRESSIONS}, before, kinds=True)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:Casting complex")
@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16", "complex64", "int64", "bool"])
def test_casts_wrap_as_there(name):
    numbers = [-2.3, -1.0, 0.0, 3.7, 70000.5, 5e9, -7e4, 1e15, 1.5e19] if name.startswith("float") and name != "float16" else [-2.0, 0.0, 3.0, 300.0]
    for many in (numbers, numbers * 9):
        for d in NAMES:
            wide = [x if d == "uint64" or abs(x) < 2**31 else 0.0 for x in many]  # (beyond, PyTorch's results vary with the place)
            mine, theirs = ag.tensor(wide, dtype=getattr(ag, name)), torch.tensor(wide, dtype=getattr(torch, name))
            assert mine.to(getattr(ag, d)).tolist() == theirs.to(getattr(torch, d)).tolist(), d


@pytest.mark.parity
@pytest.mark.parametrize("name", NAMES)
def test_files_of_each_are_the_others(name, tmp_path):
    def content(lib):
        x = lib.tensor([[1, 2, 3], [4, 5, 60000]], dtype=getattr(lib, name))
        return {"x": x, "view": x[:, 1], "p": lib.nn.Parameter(x, requires_grad=False)}

    for saver, loader in ((ag, torch), (torch, ag), (ag, ag)):
        file = io.BytesIO()
        saver.save(content(saver), file)
        file.seek(0)
        found = loader.load(file)
        for key, x in content(loader).items():
            assert found[key].dtype is x.dtype and found[key].tolist() == x.tolist() and type(found[key]) is type(x)
        found["x"][0] = 9
        assert found["view"].tolist() == [9, 5]
    path = tmp_path / "x.safetensors"
    ag.serialization.save_safetensors({"x": content(ag)["x"]}, path)
    assert ag.serialization.load_safetensors(path)["x"].tolist() == content(ag)["x"].tolist()
    assert ag.serialization.load_safetensors(path)["x"].dtype is getattr(ag, name)
    exchanged = np.from_dlpack(content(ag)["x"])
    assert exchanged.dtype.name == name and exchanged.tolist() == content(ag)["x"].tolist()
    assert ag.from_dlpack(content(torch)["x"]).tolist() == torch.from_dlpack(content(ag)["x"]).tolist() == content(ag)["x"].tolist()


@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
def test_what_copies_or_asks_for_sameness(name):
    def found(lib):
        x, many = (lib.tensor(v, dtype=getattr(lib, name)) for v in ([[1, 2, 60000], [4, 5, 1]], [*range(40), 60000]))
        results = lib.isin(x, many), lib.isin(x, many, invert=True), lib.isin(x, 4), lib.isin(x.t(), many)
        padded = lib.nn.functional.pad(x[None], (1, 2), mode="circular")
        return [(str(r.dtype), r.tolist()) for r in (*results, padded)]

    assert found(ag) == found(torch)
