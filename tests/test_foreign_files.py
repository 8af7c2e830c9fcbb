"""Files of `save` and safetensors files that somebody has changed or made up: refused at once, with PyTorch's exceptions."""

from __future__ import annotations

import io
import json
import pickle
import random
import signal
import struct
import zipfile

import pytest

import autograd_nb as torch
from autograd_nb.serialization import load_safetensors, save_safetensors

REFUSED = (RuntimeError, pickle.UnpicklingError)
KNOWN = {"w": torch.arange(6.0).reshape(2, 3), "n": [1, 2.5, None], ("a", 1): torch.tensor([True, False])}


@pytest.fixture(autouse=True)
def in_time():
    signal.alarm(60)  # rather than hang
    yield
    signal.alarm(0)


def saved(value) -> dict[str, bytes]:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    with zipfile.ZipFile(buffer) as z:
        return {n: z.read(n) for n in z.namelist()}


def loaded(parts: dict[str, bytes], how: int = zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", how) as z:
        for n, data in parts.items():
            z.writestr(n, data)
    buffer.seek(0)
    return torch.load(buffer)


def pickled(code: bytes):
    return loaded({"archive/data.pkl": code})


def call(name: str, argument: bytes) -> bytes:
    """A pickle that calls a function of `builtins` (or another module) with one argument."""
    module, _, last = name.rpartition(".")
    return b"\x80\x02c" + (module or "builtins").encode() + b"\n" + last.encode() + b"\n" + argument + b"\x85R."


RANGE = b"cbuiltins\nrange\nJ\xff\xff\xff\x7f\x85R"
MANY = b"\x8a\x06\x00\x00\x00\x00\x00\x7f"  # 139,637,976,727,552


@pytest.mark.parametrize(
    "name", ["list", "tuple", "set", "frozenset", "dict", "bytearray", "collections.Counter", "collections.OrderedDict", "torch.Size"]
)
@pytest.mark.parametrize("argument", [RANGE, MANY])
def test_containers_are_made_of_data(name, argument):
    with pytest.raises(REFUSED):
        pickled(call(name, argument))


def doubled(levels: int) -> bytes:
    """A tuple of a tuple of … twice each."""
    return b")" + b"2\x86" * levels


@pytest.mark.parametrize(
    "code",
    [
        b"\x80\x02}" + doubled(60) + b"K\x01s.",
        b"\x80\x02}(" + doubled(60) + b"K\x01u.",
        b"\x80\x04\x8f(" + doubled(60) + b"\x90.",
        b"\x80\x04(" + doubled(60) + b"\x91.",
        call("set", b"]" + doubled(60) + b"a"),
        b"\x80\x05\x96" + (1 << 40).to_bytes(8, "little") + b"abc.",  # a bytearray of a terabyte
        b"\x80\x05\x8e" + (1 << 62).to_bytes(8, "little") + b"abc.",
        b"\x80\x04\x8d" + (1 << 62).to_bytes(8, "little") + b"abc.",
        b"\x80\x02cbuiltins\nbytearray\n" + MANY + b"\x85\x81.",  # __new__
        b"(" + MANY + b"ibuiltins\nbytearray\n.",
        b"(cbuiltins\nbytearray\n" + MANY + b"o.",
        b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"1",
        b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R.",
        b"\x80\x02cbuiltins\neval\nX\x01\x00\x00\x001\x85R.",
        b"\x80\x02c__builtin__\ngetattr\n.",
        b"I" + b"9" * 100_000 + b"\n.",
        b"\x82\x01.",
        b"h\x07.",
        b"\x80\xff.",
        b"R.",
        b"",
    ],
)
def test_pickles_that_run_away(code):
    with pytest.raises(REFUSED):
        pickled(code)



@pytest.mark.parametrize(
    ("offset", "size", "stride"),
    [
        (5, (2,), (1,)), (-1, (2,), (1,)), (0, (7,), (1,)), (0, (2, 3), (4, 1)), (0, (-2,), (1,)), (0, (2,), (-1,)), (0, (2,), (1, 1)),
        (0, (1 << 62, 4), (1 << 62, 1)), (1 << 63, (0,), (1,)), (0, (2, 2), (1 << 63, 1)), (0, (True,), (1,)), (0, (1.5,), (1,)), (0, 3, 1),
        (0, "ab", "cd"), (None, (2,), (1,)),
    ],
)  # fmt: skip
def test_tensors_outside_their_storage(offset, size, stride):
    parts = saved(torch.arange(6.0))
    code = parts["archive/data.pkl"]
    begin = code.index(b"Q") + 1  # behind the storage
    end = code.index(b"ccollections\nOrderedDict")
    change = pickle.dumps((offset, size, stride), 2)[2:-1]
    parts["archive/data.pkl"] = code[:begin] + change[:-1].replace(b"q\x00", b"").replace(b"q\x01", b"").replace(b"q\x02", b"") + b"\x89" + code[end:]
    with pytest.raises(REFUSED):
        loaded(parts)


def test_entries_of_other_sizes_are_not_unpacked():
    parts = saved(KNOWN)
    (name,) = (n for n in parts if n.endswith("data/0"))
    for data in (b"", parts[name][:-1], bytes(300 << 20)):
        with pytest.raises(RuntimeError, match="bytes instead of 24"):
            loaded({**parts, name: data}, zipfile.ZIP_DEFLATED)
    with pytest.raises(RuntimeError, match="would unpack"):
        loaded({**parts, "archive/data.pkl": bytes(300 << 20)}, zipfile.ZIP_DEFLATED)
    found = loaded(parts, zipfile.ZIP_DEFLATED)
    assert torch.equal(found["w"], KNOWN["w"])


def test_bytes_of_truth_values():
    parts = saved(torch.tensor([True, False, True]))
    (name,) = (n for n in parts if n.endswith("data/0"))
    parts[name] = b"\x02\x00\xff"
    found = loaded(parts)
    assert found.tolist() == [True, False, True] and (~found).tolist() == [False, True, False]
    assert found.sum().item() == 2


def test_flipped_bits_of_saved_files():
    buffer = io.BytesIO()
    torch.save(KNOWN, buffer)
    whole, rng = buffer.getvalue(), random.Random(0)
    refused = 0
    for _ in range(600):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 1, 4])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        try:
            str(torch.load(io.BytesIO(bytes(data[: rng.choice([len(data), len(data), rng.randrange(len(data))])]))))
        except REFUSED:
            refused += 1
    assert refused > 300


def test_changed_pickles():
    """The archive's checksums agree; what stands in the pickle is another."""
    parts, rng = saved(KNOWN), random.Random(1)
    whole = parts["archive/data.pkl"]
    for _ in range(2000):
        code = bytearray(whole)
        for _ in range(rng.choice([1, 1, 2, 5])):
            code[rng.randrange(len(code))] = rng.randrange(256)
        try:
            str(loaded({**parts, "archive/data.pkl": bytes(code)}))
        except REFUSED:
            pass


def test_safetensors(tmp_path):
    path = tmp_path / "x.safetensors"
    save_safetensors({"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([True])}, path)
    whole, rng = path.read_bytes(), random.Random(2)
    n = struct.unpack_from("<Q", whole)[0]
    head = json.loads(whole[8 : 8 + n])

    def refused(header, data=whole[8 + n :]) -> None:
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + data)
        with pytest.raises(RuntimeError, match="safetensors"):
            load_safetensors(path)

    for key, value in (
        ("shape", [6, 2]), ("shape", [-2, -3]), ("shape", [2.0, 3]), ("shape", "ab"), ("shape", None), ("shape", [1 << 62, 1 << 62]),
        ("data_offsets", [0, 25]), ("data_offsets", [8, 0]), ("data_offsets", [-24, 0]), ("data_offsets", [0]), ("data_offsets", [0.0, 24.0]),
        ("data_offsets", [1 << 70, (1 << 70) + 24]), ("dtype", 3), ("dtype", []),
    ):  # fmt: skip
        refused({**head, "a": {**head["a"], key: value}})
    for text in (b"[" * 10**5, b"{" * 10**5, b"[]", b"3", b"", b"\xff\xfe", b'{"a": 1}', b'{"a": []}'):
        refused(text)
    path.write_bytes(struct.pack("<Q", 1 << 63) + b"{}")
    with pytest.raises(RuntimeError, match="safetensors"):
        load_safetensors(path)
    for _ in range(500):
        data = bytearray(whole)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        try:
            str(load_safetensors(path))
        except RuntimeError:
            pass


def test_every_flipped_byte_of_a_saved_file():
    """Refused, or it does not matter: never another value."""
    buffer = io.BytesIO()
    torch.save(KNOWN, buffer)
    whole, known = buffer.getvalue(), str(KNOWN)
    refused = 0
    for k in range(len(whole)):
        data = bytearray(whole)
        data[k] ^= 1 << k % 8
        try:
            assert str(torch.load(io.BytesIO(bytes(data)))) == known, k
        except REFUSED:
            refused += 1
    assert refused > len(whole) // 2
