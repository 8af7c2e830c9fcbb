"""Saving and loading: what comes back, what files refuse, and that nothing half-written is left."""

from __future__ import annotations

import copy
import gc
import io
import multiprocessing.reduction
import os
import pickle
import subprocess
import sys
import time
import zipfile
from collections import OrderedDict

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb import nn, serialization
from autograd_nb.tensor import adopt


@pytest.fixture
def path(tmp_path):
    return tmp_path / "weights.pt"


def some_object():
    base = torch.arange(10.0)
    return {
        "views": [base[2:5], base[::2]],
        "dtypes": {d.name: torch.ones(3, dtype=d) for d in (torch.float64, torch.float16, torch.int8, torch.uint8, torch.bool)},
        "matrix": torch.arange(6).reshape(2, 3).t(),
        "empty": torch.zeros(0, 3),
        "scalar": torch.tensor(3),
        "plain": (1, 2.5, "text", None, True, b"bytes", {3}, 1j),
        "size": torch.Size([1, 2]),
        "dtype": torch.float32,
        "device": torch.device("cpu"),
        "parameter": nn.Parameter(torch.ones(2)),
        "ordered": OrderedDict(a=1),
    }


def test_round_trip(path):
    x = some_object()
    torch.save(x, path)
    y = torch.load(path)
    assert list(y) == list(x)
    for name, t in x["dtypes"].items():
        assert y["dtypes"][name].dtype is t.dtype
        assert torch.equal(y["dtypes"][name], t)
    assert torch.equal(y["matrix"], x["matrix"])
    assert y["matrix"].stride() == (1, 3)
    assert y["empty"].shape == (0, 3)
    assert y["scalar"].item() == 3
    assert y["plain"] == x["plain"]
    assert y["size"] == x["size"]
    assert type(y["size"]) is torch.Size
    assert y["dtype"] is torch.float32
    assert y["device"] == torch.device("cpu")
    assert isinstance(y["parameter"], nn.Parameter)
    assert y["parameter"].requires_grad
    assert type(y["ordered"]) is OrderedDict
    y["views"][0].zero_()  # one storage, as before
    assert y["views"][1].tolist() == [0, 0, 0, 6, 8]


def test_non_leaf_becomes_leaf(path):
    w = torch.ones(2, requires_grad=True)
    torch.save(w * 2, path)
    for t in (torch.load(path), pickle.loads(pickle.dumps(w * 2))):
        assert t.is_leaf
        assert t.requires_grad
        assert t.tolist() == [2, 2]


def test_model_and_optimizer(path):
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    o = torch.optim.Adam(m.parameters())
    m(torch.randn(5, 3)).sum().backward()
    o.step()
    torch.save({"model": m.state_dict(), "optimizer": o.state_dict()}, path)
    n = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    p = torch.optim.Adam(n.parameters())
    state = torch.load(path)
    assert state["model"]._metadata["1"] == {"version": 2}
    n.load_state_dict(state["model"])
    p.load_state_dict(state["optimizer"])
    assert torch.equal(n[0].weight, m[0].weight)
    assert torch.equal(p.state[n[0].weight]["exp_avg"], o.state[m[0].weight]["exp_avg"])


def test_files_and_buffers(path):
    buffer = io.BytesIO()
    torch.save({"a": torch.ones(2)}, buffer)
    buffer.seek(0)
    assert torch.load(buffer)["a"].tolist() == [1, 1]
    with open(path, "wb") as f:
        torch.save([1], f)
    with open(path, "rb") as f:
        assert torch.load(f, map_location="cpu") == [1]
    torch.save([1], str(path))
    first = path.read_bytes()
    torch.save([1], path)
    assert path.read_bytes() == first  # equal objects, equal files


def test_a_failing_save_leaves_the_old_file(path):
    torch.save({"a": 1}, path)
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        torch.save({"a": torch.ones(1000), "b": lambda: 0}, path)
    assert torch.load(path) == {"a": 1}
    assert os.listdir(path.parent) == [path.name]
    with pytest.raises(RuntimeError, match=r"Parent directory .* does not exist"):
        torch.save(1, path.parent / "nowhere" / "x.pt")
    with pytest.raises(AttributeError, match="argument 'f' must be a path"):
        torch.save(1, 3)


def test_every_truncation_is_an_error_that_names_the_file(path):
    torch.save({"a": torch.arange(100.0), "b": [torch.ones(3)]}, path)
    data = path.read_bytes()
    for n in [*range(0, len(data), 61), len(data) - 1]:
        path.write_bytes(data[:n])
        with pytest.raises(RuntimeError, match=r"weights\.pt"):
            torch.load(path)


def test_damage_is_an_error_or_harmless(path):
    torch.save({"a": torch.arange(100.0), "b": [torch.ones(3)]}, path)
    data = path.read_bytes()
    for place in range(0, len(data), 37):
        broken = bytearray(data)
        broken[place] ^= 0x55
        path.write_bytes(broken)
        try:
            found = torch.load(path)
        except (RuntimeError, pickle.UnpicklingError) as error:
            assert "weights.pt" in str(error)  # noqa: PT017
        else:  # a byte of the archive that says nothing, such as a date
            assert found["a"].tolist() == list(range(100))


def test_missing_and_foreign_files(path):
    with pytest.raises(FileNotFoundError):
        torch.load(path)
    path.write_bytes(b"not a zip file at all")
    with pytest.raises(RuntimeError, match=r"weights\.pt' is truncated, damaged, or not a file"):
        torch.load(path)
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("readme", "hello")
    with pytest.raises(RuntimeError, match=r"lacks data.pkl"):
        torch.load(path)


def archive(path, pickled, storages=()):
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("archive/data.pkl", pickled)
        for key, data in storages:
            z.writestr(f"archive/data/{key}", data)


class Evil:
    def __reduce__(self):
        return os.system, ("exit 1",)


def test_no_code_is_run(path):
    archive(path, pickle.dumps(Evil(), 2))
    with pytest.raises(pickle.UnpicklingError, match=r"Weights only load failed: the file wants (posix|nt)\.system"):
        torch.load(path)
    for attack in (
        b"cbuiltins\neval\n(X\x04\x00\x00\x001+1qtR.",  # a global that is not known
        b"cbuiltins\ngetattr\n.",
        b"ctorch._utils\n_rebuild_tensor_v2\n(K\x01K\x00K\x01\x85K\x01\x85\x89tR.",  # a tensor without a storage
    ):
        archive(path, attack)
        with pytest.raises((pickle.UnpicklingError, RuntimeError), match=r"weights\.pt"):
            torch.load(path)


def test_tensors_cannot_reach_outside_their_storage(path):
    torch.save(torch.arange(4.0), path)
    with zipfile.ZipFile(path) as z:
        entries = {n: z.read(n) for n in z.namelist()}
    name = next(n for n in entries if n.endswith("data.pkl"))
    good = entries[name]
    assert good.count(b"K\x04\x85") == 1  # the shape (4,)
    for bad in (good.replace(b"K\x04\x85", b"K\x09\x85"), good.replace(b"K\x04\x85", b"J\xff\xff\xff\xff\x85")):
        with zipfile.ZipFile(path, "w") as z:
            for n, data in entries.items():
                z.writestr(n, bad if n == name else data)
        with pytest.raises(pickle.UnpicklingError, match="a tensor of shape"):
            torch.load(path)


class Kept:
    def __init__(self):
        self.x = torch.ones(2)


def test_trusted_classes(path):
    torch.save(Kept(), path)
    with pytest.raises(pickle.UnpicklingError, match="Kept"):
        torch.load(path)
    assert torch.load(path, weights_only=False).x.tolist() == [1, 1]
    with serialization.safe_globals([Kept]):
        assert torch.load(path).x.tolist() == [1, 1]
    assert serialization.get_safe_globals() == []


def test_deepcopy_and_save_keep_sharing_and_pickle_does_not():
    base = torch.arange(6.0)
    buffer = io.BytesIO()
    torch.save([base[1:3], base], buffer)
    buffer.seek(0)
    for a, b in (copy.deepcopy([base[1:3], base]), torch.load(buffer)):
        a.fill_(9)
        assert b.tolist() == [0, 9, 9, 3, 4, 5]
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        a, b, c = pickle.loads(pickle.dumps([base[1:3], base, base], protocol))
        a.fill_(9)
        assert b is c and b.tolist() == [0, 1, 2, 3, 4, 5]
    t = torch.ones(2)
    t.note = "mine"
    assert pickle.loads(pickle.dumps(t)).note == "mine"


def test_other_processes_get_leaves_only():
    w = torch.ones(2, requires_grad=True)
    dumps = multiprocessing.reduction.ForkingPickler.dumps
    assert pickle.loads(dumps(w)).requires_grad
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        dumps(w * 2)


def test_safetensors(tmp_path):
    path = tmp_path / "w.safetensors"
    tensors = {
        "a": torch.arange(6.0).reshape(2, 3).t(),
        "b": torch.ones(2, dtype=torch.float16),
        "c": torch.zeros(0, 2),
        "d": torch.tensor(True),
    }
    serialization.save_safetensors(tensors, path, {"made": "here"})
    found = serialization.load_safetensors(path)
    assert all(torch.equal(found[k], v) and found[k].dtype is v.dtype for k, v in tensors.items())
    data = path.read_bytes()
    for n in (0, 5, 40, len(data) - 1):
        path.write_bytes(data[:n])
        with pytest.raises(RuntimeError, match=r"w\.safetensors"):
            serialization.load_safetensors(path)
    with pytest.raises(TypeError, match="'a' must be a Tensor"):
        serialization.save_safetensors({"a": 3}, path)
    other = pytest.importorskip("safetensors.numpy")
    path.write_bytes(data)
    np.testing.assert_array_equal(other.load_file(path)["a"], tensors["a"].numpy())


@pytest.fixture
def marked():
    """A subclass of Tensor that pickle finds, and that is gone afterwards, as such classes take over calls while they are there."""

    class Marked(torch.Tensor):
        pass

    Marked.__qualname__ = "Marked"
    globals()["Marked"] = Marked
    yield Marked
    del globals()["Marked"], Marked
    gc.collect()


def test_attributes_and_classes_of_tensors(path, marked):
    p, t, s = nn.Parameter(torch.ones(2)), torch.zeros(1), adopt(marked, torch.ones(3))
    p.extra, t.note, s.unit = "mine", {"a": [1, torch.ones(1)]}, "m"
    b = nn.Buffer(torch.ones(1))
    torch.save([p, t, b], path)
    q, u, c = torch.load(path)
    assert isinstance(q, nn.Parameter)
    assert isinstance(c, nn.Buffer)
    assert (q.extra, u.note["a"][0]) == ("mine", 1)
    torch.save(s, path)
    with pytest.raises(pickle.UnpicklingError, match="Marked"):
        torch.load(path)
    with serialization.safe_globals([marked]):
        found = torch.load(path)
    assert type(found) is marked
    assert found.unit == "m"


def test_links_devices_and_plain_writers(path, tmp_path):
    link = tmp_path / "latest.pt"
    torch.save([1], path)
    link.symlink_to(path)
    torch.save([2], link)
    assert link.is_symlink()
    assert torch.load(path) == [2]
    torch.save([3], os.devnull)
    assert os.path.exists(os.devnull)
    assert not os.path.isfile(os.devnull)

    class Writer:
        data = b""

        def write(self, part):
            self.data += bytes(part)

    w = Writer()
    torch.save({"a": torch.ones(2)}, w)
    assert torch.load(io.BytesIO(w.data))["a"].tolist() == [1, 1]


KILLED = """
import sys, autograd_nb as torch
path = sys.argv[1]
big = torch.arange(500_000.0)
torch.save({"n": 0, "w": big}, path)
print("saved", flush=True)
n = 0
while True:
    n += 1
    torch.save({"n": n, "w": big + n}, path)
"""


def test_kill_9_leaves_a_whole_file(path):
    for wait in (0.0, 0.011, 0.023):
        child = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"saved\n"
        time.sleep(wait)
        child.kill()
        child.wait()
        child.stdout.close()
        found = torch.load(path)
        assert torch.equal(found["w"], torch.arange(500_000.0) + found["n"])


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "it is empty"),
        (pickle.dumps([1], 2), "it is a bare pickle"),
        (b"\x80\0\0\0\0\0\0\0{" + b" " * 126 + b"}", r"it is a safetensors file, which serialization\.load_safetensors\(\) reads"),
        (b"\x93NUMPY\x01\0v\0" + b" " * 118, r"from_numpy\(numpy\.load"),
        (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.", "is damaged"),
    ],
)
def test_other_formats(path, content, text):
    path.write_bytes(content)
    with pytest.raises(RuntimeError, match=text):
        torch.load(path)


def test_refusals_say_what_to_do(path):
    for obj, text in (
        ({"a": np.float32(1)}, "the file has NumPy values: save tensors, and plain numbers"),
        (np.ones(2), "the file has NumPy values"),
        (nn.Linear(1, 1), r"the file has a whole module \(Linear\): save its state_dict"),
    ):
        torch.save(obj, path)
        with pytest.raises(pickle.UnpicklingError, match=text):
            torch.load(path)
        assert type(torch.load(path, weights_only=False)) is type(obj)
    torch.save(torch.ones(1), path)
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
        torch.load(path, map_location="cuda")
    for place in ("cpu", torch.device("cpu"), {"cuda:0": "cpu"}, lambda storage, location: storage):
        assert torch.load(path, map_location=place).item() == 1
    with pytest.raises(AttributeError, match="argument 'f' must be a path or a file open for reading, not int"):
        torch.load(3)
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("m/constants.pkl", b"")
    with pytest.raises(RuntimeError, match="TorchScript archive"):
        torch.load(path)


def test_optimizers_and_schedules(path):
    """A checkpoint of everything a training loop keeps; training goes on from it as if it had not been interrupted."""

    def make():
        torch.manual_seed(0)
        m = nn.Linear(3, 2)
        o = torch.optim.AdamW(m.parameters(), lr=0.1, amsgrad=True)
        return m, o, torch.optim.lr_scheduler.CosineAnnealingLR(o, 5)

    def train(m, o, s, n):
        for _ in range(n):
            o.zero_grad()
            (m(torch.rand(4, 3)) ** 2).sum().backward()
            o.step()
            s.step()

    m, o, s = make()
    train(m, o, s, 3)
    torch.save({"m": m.state_dict(), "o": o.state_dict(), "s": s.state_dict(), "rng": torch.get_rng_state(), "epoch": 3}, path)
    train(m, o, s, 3)
    n, p, r = make()
    found = torch.load(path)
    n.load_state_dict(found["m"])
    p.load_state_dict(found["o"])
    r.load_state_dict(found["s"])
    torch.set_rng_state(found["rng"])
    train(n, p, r, 3)
    assert torch.equal(n.weight, m.weight)
    assert r.get_last_lr() == s.get_last_lr()
