"""Files that PyTorch wrote, read here, and ours read by PyTorch's safe loader."""

from __future__ import annotations

import collections
import contextlib
import io
import pickle
import sys
import warnings
from fractions import Fraction

import numpy as np
import pytest

from .compare import torch

import autograd_nb as ours  # isort: skip

DTYPES = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "complex128")


def objects(t):
    base = t.arange(12.0)
    marked = t.zeros(1)
    marked.note = "mine"
    parameter = t.nn.Parameter(t.ones(2))
    parameter.extra = 3
    return {
        "dtypes": {name: t.arange(3).to(getattr(t, name)) for name in DTYPES},
        "views": [base[2:5], base[::2], base.view(3, 4).t(), base],
        "expanded": t.ones(1).expand(3),
        "empty": t.zeros(0, 3),
        "scalar": t.tensor(2.5),
        "parameters": [parameter, t.nn.Parameter(t.zeros(1), requires_grad=False)],
        "marked": marked,
        "buffer": t.nn.Buffer(t.ones(2)),
        "plain": {
            1: "x",
            "y": (None, True, 2.5, 1j, b"raw", {1, 2}, [[]]),
            "o": collections.OrderedDict(a=1),
            "c": collections.Counter("aab"),
        },
        "storages": [base[2:]._typed_storage(), t.ones(2).half()._typed_storage(), t.ones(2).untyped_storage(), base],
        "torch": [t.Size([1, 2]), t.float32, t.device("cpu")],
    }


def same(mine, theirs):
    if isinstance(theirs, torch.Tensor):
        assert isinstance(mine, ours.Tensor)
        assert tuple(mine.shape) == tuple(theirs.shape)
        assert mine.stride() == theirs.stride()
        assert str(mine.dtype) == str(theirs.dtype)
        assert mine.requires_grad == theirs.requires_grad
        assert isinstance(mine, ours.nn.Parameter) == isinstance(theirs, torch.nn.Parameter)
        assert mine.__dict__.keys() == theirs.__dict__.keys()
        np.testing.assert_array_equal(mine.detach().numpy(), theirs.detach().numpy())
    elif isinstance(theirs, (torch.TypedStorage, torch.UntypedStorage)):
        assert isinstance(mine, ours.TypedStorage)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = theirs.untyped(), str(getattr(theirs, "dtype", torch.uint8))
        assert (mine.untyped().tolist(), str(mine.dtype)) == (theirs[0].tolist(), theirs[1])
    elif isinstance(theirs, dict):
        assert type(mine) is type(theirs)
        assert list(mine) == list(theirs)
        for k in theirs:
            same(mine[k], theirs[k])
    elif isinstance(theirs, (list, tuple)) and not isinstance(theirs, torch.Size):
        assert type(mine) is type(theirs)
        assert len(mine) == len(theirs)
        for a, b in zip(mine, theirs, strict=True):
            same(a, b)
    else:
        assert str(mine) == str(theirs)


@pytest.mark.parametrize("writer", ["ours", "theirs"])
@pytest.mark.parametrize("name", objects(torch))
def test_files_are_exchanged(name, writer):
    file = io.BytesIO()
    (ours if writer == "ours" else torch).save(objects(ours if writer == "ours" else torch)[name], file)
    file.seek(0)
    mine = ours.load(file)
    file.seek(0)
    theirs = torch.load(file, weights_only=True)
    same(mine, theirs)
    same(mine, objects(torch)[name])
    if name == "views":
        for found in (mine, theirs):
            found[3].zero_()
            assert found[0].sum().item() == 0


def test_views_that_show_conjugates(tmp_path):
    for writer, reader in ((torch, ours), (ours, torch), (ours, ours)):
        z = writer.tensor([1 + 2j, 3 - 1j])
        for marked in (z.conj(), z.conj().imag, z.conj()[1:].requires_grad_()):
            writer.save(marked, tmp_path / "z.pt")
            found = reader.load(tmp_path / "z.pt")
            assert (found.is_conj(), found.is_neg(), found.requires_grad) == (marked.is_conj(), marked.is_neg(), marked.requires_grad)
            assert found.tolist() == marked.tolist()
        writer.save((z, z.conj()[1:]), tmp_path / "z.pt")
        base, found = reader.load(tmp_path / "z.pt")
        found.mul_(1j)
        assert base.tolist() == [1 + 2j, -1 - 3j]


@pytest.mark.parametrize("name", ["Adam", "SGD", "LBFGS", "RMSprop", "Adafactor", "ASGD"])
def test_checkpoints_go_on_in_the_other_library(tmp_path, name):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6, 3))
    start = rng.normal(size=(2, 3))
    options = {"momentum": 0.9} if name == "SGD" else {}

    def make(t):
        m = t.nn.Linear(3, 2, bias=False, dtype=t.float64)
        with t.no_grad():
            m.weight.copy_(t.tensor(start))
        return m, getattr(t.optim, name)(m.parameters(), lr=0.05, **options)

    def train(t, m, o, n):
        def closure():
            o.zero_grad()
            loss = (m(t.tensor(x)) ** 2 + m(t.tensor(x)) ** 4).mean()
            loss.backward()
            return loss

        for _ in range(n):
            o.step(closure)
        return m.weight.detach().numpy().copy()

    whole = train(torch, *make(torch), 6)
    for first, second in ((ours, torch), (torch, ours)):
        m, o = make(first)
        train(first, m, o, 3)
        first.save({"m": m.state_dict(), "o": o.state_dict()}, tmp_path / "c.pt")
        n, p = make(second)
        found = second.load(tmp_path / "c.pt", **({"weights_only": True} if second is torch else {}))
        n.load_state_dict(found["m"])
        p.load_state_dict(found["o"])
        np.testing.assert_allclose(train(second, n, p, 3), whole, rtol=1e-6)


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        (torch.ones(2).to(torch.float8_e5m2), "a dtype that this library lacks"),
        (torch.nn.Linear(1, 1), r"whole module \(Linear\)"),
        ({"x": np.float64(1)}, "NumPy values"),
    ],
    ids=["float8", "module", "numpy"],
)
def test_refusals(tmp_path, obj, text):
    torch.save(obj, tmp_path / "x.pt")
    with pytest.raises(pickle.UnpicklingError, match=text):
        ours.load(tmp_path / "x.pt")


def test_safetensors(tmp_path):
    theirs = pytest.importorskip("safetensors.torch")
    tensors = {
        name: getattr(torch, "arange")(6).to(getattr(torch, name)).reshape(2, 3) for name in DTYPES if name != "complex128"
    }
    theirs.save_file(tensors, tmp_path / "a.safetensors", {"made": "there"})
    mine = ours.serialization.load_safetensors(tmp_path / "a.safetensors")
    for k, v in tensors.items():
        same(mine[k], v)
    ours.serialization.save_safetensors(mine, tmp_path / "b.safetensors")
    for k, v in theirs.load_file(tmp_path / "b.safetensors").items():
        assert torch.equal(v, tensors[k])
    theirs.save_file({"x": torch.ones(2, dtype=torch.bfloat16)}, tmp_path / "c.safetensors")
    assert ours.serialization.load_safetensors(tmp_path / "c.safetensors")["x"].dtype is ours.bfloat16
    theirs.save_file({"x": torch.ones(2).to(torch.float8_e5m2)}, tmp_path / "c.safetensors")
    with pytest.raises(RuntimeError, match="'x' has dtype F8_E5M2, which this library lacks"):
        ours.serialization.load_safetensors(tmp_path / "c.safetensors")


def older(value) -> bytes:
    """The object as PyTorch wrote it before 1.6."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.save(value, buffer, _use_new_zipfile_serialization=False)
    return buffer.getvalue()


@pytest.mark.parity
@pytest.mark.parametrize("name", list(objects(ours)))
def test_files_from_before_1_6(name):
    theirs = objects(torch)[name]
    theirs = theirs[:2] if name == "storages" else theirs  # (there were none of bytes then)
    data = older(theirs)
    for trusting in (False, True):
        same(ours.load(io.BytesIO(data), weights_only=not trusting), theirs)
    mine, written = objects(ours)[name], io.BytesIO()
    mine = mine[:2] if name == "storages" else mine
    ours.save(mine, written, _use_new_zipfile_serialization=False)
    written.seek(0)
    same(mine, torch.load(written, weights_only=False))
    same(ours.load(io.BytesIO(written.getvalue())), theirs)
    behind = io.BytesIO(b"first" + data)
    behind.seek(5)
    same(ours.load(behind), theirs)


@pytest.mark.parity
def test_several_objects_of_the_old_format_in_one_file(tmp_path):
    """What is read leaves the file behind it, whoever wrote it."""
    for writer in (ours, torch):
        for reader in (ours, torch):
            with open(tmp_path / "several", "w+b") as file:
                for k in range(3):
                    pickle.dump(k, file)
                    writer.save({"w": writer.ones(2, k), "b": [writer.arange(k)]}, file, _use_new_zipfile_serialization=False)
                file.seek(0)
                for k in range(3):
                    assert pickle.load(file) == k
                    found = reader.load(file)
                    assert found["w"].shape == (2, k) and found["b"][0].tolist() == list(range(k))
                assert file.read() == b""
    ours.save([ours.ones(2)], tmp_path / "alone", _use_new_zipfile_serialization=False)
    assert torch.load(tmp_path / "alone")[0].tolist() == [1, 1] == ours.load(tmp_path / "alone")[0].tolist()
    shared = ours.load(io.BytesIO(older([torch.arange(6.0).as_strided((3,), (2,)), *[torch.ones(2)] * 2])))
    shared[1][0] = 7
    assert shared[2][0] == 7


@pytest.mark.parity
def test_damaged_files_from_before_1_6():
    data = older({"w": torch.arange(100.0), "b": torch.ones(3, dtype=torch.bool)})
    for n in range(0, len(data) - 1, 7):
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            ours.load(io.BytesIO(data[:n] if n else b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."))
    rng = np.random.default_rng(0)
    for _ in range(300):
        changed = bytearray(data)
        changed[int(rng.integers(len(data)))] = int(rng.integers(256))
        with contextlib.suppress(RuntimeError, pickle.UnpicklingError):
            ours.load(io.BytesIO(bytes(changed)))
    with pytest.raises(pickle.UnpicklingError, match="whole module"):
        ours.load(io.BytesIO(older(torch.nn.Linear(1, 1))))


def test_classes_are_found_by_a_pickle_module(tmp_path):
    import pickle

    class Renaming(pickle.Unpickler):
        def find_class(self, module, name):
            return super().find_class("fractions" if module == "numbers_of_old" else module, name)

    class Module:
        Unpickler, load = Renaming, staticmethod(pickle.load)

    Fraction.__module__ = "numbers_of_old"
    try:
        sys.modules["numbers_of_old"] = sys.modules["fractions"]
        ours.save({"a": ours.ones(2), "b": Fraction(1, 3)}, tmp_path / "z.pt")
    finally:
        Fraction.__module__ = "fractions"
        del sys.modules["numbers_of_old"]
    for library in (ours, torch):
        found = library.load(tmp_path / "z.pt", pickle_module=Module, weights_only=False)
        assert found["a"].tolist() == [1, 1] and found["b"] == Fraction(1, 3)


@pytest.mark.parametrize("place", ["cuda:0", "mps", "foo", {"cpu": "cuda:1"}, 3])
def test_places_that_are_not_there(tmp_path, place):
    torch.save(torch.ones(2), tmp_path / "z.pt")
    for library in (ours, torch):
        with pytest.raises(TypeError if place == 3 else RuntimeError):
            library.load(tmp_path / "z.pt", map_location=place)


#: where a file's storages were, and where they are to be
PLACES = {
    "as saved": {},
    "the CPU": {"map_location": "cpu"},
    "a device": {"map_location": "device"},
    "the GPU": {"map_location": "cuda:0"},
    "that one to the CPU": {"map_location": {"cuda:0": "cpu"}},
    "another one to the CPU": {"map_location": {"cuda:1": "cpu"}},
    "a function": {"map_location": lambda storage, location: storage},
    "a function that leaves it": {"map_location": lambda storage, location: None},
    "a function that looks": {"map_location": lambda storage, location: storage if location == "cuda:0" else None},
}


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("location", ["cpu", "cuda:0", "cuda:1", "xla:0"])
@pytest.mark.parametrize("place", PLACES)
def test_places_of_storages(tmp_path, monkeypatch, place, location, zipped):
    monkeypatch.setattr(torch.serialization, "location_tag", lambda storage: location)
    torch.save({"a": [torch.ones(2), torch.arange(3)]}, tmp_path / "z.pt", _use_new_zipfile_serialization=zipped)
    found = []
    for library in (ours, torch):
        options = {k: library.device("cpu") if v == "device" else v for k, v in PLACES[place].items()}
        try:
            found.append([t.tolist() for t in library.load(tmp_path / "z.pt", **options)["a"]])
        except RuntimeError as error:
            found.append(str(error)[:50])
    assert found[0] == found[1]


def shapes(t, tree):
    return {k: ("Parameter" in type(v).__name__, str(v.device), tuple(v.shape), v.stride(), str(v.dtype), v.requires_grad) for k, v in tree.items()}


@pytest.mark.parity
@pytest.mark.parametrize("older", (False, True))
def test_tensors_of_the_device_meta(older):
    """They are saved as shapes, which each library reads from the other's files; others are read as shapes where that is asked for."""
    files, found = {}, {}
    for t in (torch, ours):
        x = t.empty(1000, 100, device="meta")
        tree = {
            "x": x, "part": x[:3], "turned": t.empty(3, 4, dtype=t.int8, device="meta").t(), "leaf": t.empty(2, device="meta", requires_grad=True),
            "parameter": t.nn.Parameter(x[:2]), "frozen": t.nn.Parameter(x, requires_grad=False), **t.nn.Linear(2, 3, device="meta").state_dict(),
        }  # fmt: skip
        there = {"y": t.ones(3, 4).t(), "z": t.nn.Parameter(t.ones(2)), "half": t.ones(2).bfloat16()}
        for name, content in (("shapes", tree), ("numbers", there)):
            file = files[t, name] = io.BytesIO()
            t.save(content, file, _use_new_zipfile_serialization=not older)
    assert len(files[ours, "shapes"].getvalue()) < 5000
    for t in (torch, ours):
        for writer in (torch, ours):
            for name, options in (("shapes", {}), ("shapes", {"weights_only": False}), ("numbers", {"map_location": "meta"})):
                files[writer, name].seek(0)
                found[t, writer, name, *options] = shapes(t, t.load(files[writer, name], **options))
    for (_, _, *which), content in found.items():
        assert content == found[torch, torch, *which]
