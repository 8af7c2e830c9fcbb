"""Checkpoints in folders whose files are damaged, crafted or half written; one process, without MPI."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

import autograd_nb as torch
import autograd_nb.distributed.checkpoint as dcp

ROOT = Path(__file__).parents[2]


def state(filled=True):
    k = 1 if filled else 0
    return {
        "w": k * torch.arange(24.0).reshape(4, 6).t(), "b": torch.full((5,), k), "h": torch.full((3,), 1.5 * k, dtype=torch.bfloat16),
        "flags": torch.tensor([filled, not filled]), "nothing": torch.empty(0, 3), "n": 7 * k, "s": "name" * k,
        "list": [k, 2 * k, {"deep": torch.full((2,), 3.0 * k)}],
    }  # fmt: skip


def shown(tree):
    if isinstance(tree, torch.Tensor):
        return tree.tolist()
    return [shown(v) for v in (tree.values() if isinstance(tree, dict) else tree)] if isinstance(tree, (dict, list)) else tree


@pytest.fixture
def folder(tmp_path):
    dcp.save(state(), checkpoint_id=tmp_path / "a", no_dist=True)
    return tmp_path / "a"


def refused(folder):
    """Whether loading is refused, which must leave all as it was; otherwise all must be as it was saved."""
    found = state(False)
    inner = found["list"]
    try:
        dcp.load(found, checkpoint_id=folder, no_dist=True)
    except dcp.CheckpointException:
        assert shown(found) == shown(state(False)) and found["list"] is inner
        return True
    assert shown(found) == shown(state())
    return False


def test_what_is_written_is_read(folder):
    w = torch.zeros(6, 4, requires_grad=True)
    saved = w * w
    dcp.load({"w": w}, checkpoint_id=folder, no_dist=True)
    assert w.tolist() == state()["w"].tolist()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved.sum().backward()
    assert not refused(folder)


def test_every_flipped_byte_and_every_cut(folder):
    rng = random.Random(0)
    for file in sorted(folder.iterdir()):
        whole = file.read_bytes()
        for k in range(len(whole)):
            data = bytearray(whole)
            data[k] ^= 1 << rng.randrange(8)
            file.write_bytes(data)
            assert refused(folder), (file.name, k)
            if k % 9 == 0:
                file.write_bytes(whole[:k])
                assert refused(folder), (file.name, k)
        file.write_bytes(whole)
    assert not refused(folder)


@pytest.mark.parametrize("change", [
    ("w", 0, "../other.distcp"), ("w", 0, "/etc/hostname"), ("w", 0, ""), ("w", 0, "nowhere"), ("w", 1, -1), ("w", 1, 1 << 70), ("w", 2, 8), ("w", 2, -1),
    ("w", 3, "object"), ("w", 3, "int64"), ("w", 4, [1 << 62, 4]), ("w", 4, [6.0, 4]), ("n", 0, "."), ("n", 2, 3), ("n", 3, "float32"), ("list.2.deep", 3, ""),
])  # fmt: skip
def test_crafted_lists(folder, change):
    name, place, value = change
    found = json.loads((folder / ".metadata").read_bytes())
    found["entries"][name][place] = value
    found["sum"] = zlib.crc32(json.dumps(found["entries"]).encode())
    (folder / ".metadata").write_bytes(json.dumps(found).encode())
    assert refused(folder)


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"3", b"[" * 10**5, b"\xff", b'{"format": 2}', b'{"format": 1, "entries": 3}', b'{"format": 9}']
)
def test_lists_of_another_form(folder, text):
    (folder / ".metadata").write_bytes(text)
    assert refused(folder)


def test_checkpoints_without_sums_are_read(folder):
    found = json.loads((folder / ".metadata").read_bytes())
    entries = {name: entry[:5] for name, entry in found["entries"].items()}
    (folder / ".metadata").write_bytes(json.dumps({"format": 1, "entries": entries}).encode())
    assert not refused(folder)


WRITES = """
import sys
import autograd_nb as torch
import autograd_nb.distributed.checkpoint as dcp
k = 0
while True:
    k += 1
    dcp.save({"x": torch.full((20_000,), k), "y": torch.full((7,), k), "k": k}, checkpoint_id=sys.argv[1], no_dist=True)
    print(k, flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
def test_kill_9_leaves_the_last_checkpoint_or_the_one_before(tmp_path):
    rng, before = random.Random(1), 0
    for _ in range(8):
        writer = subprocess.Popen([sys.executable, "-c", WRITES, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        try:
            assert writer.stdout.readline()
            time.sleep(rng.uniform(0, 0.05))
        finally:
            writer.kill()
            said = writer.communicate()[0].split()
        found = {"x": torch.zeros(20_000, dtype=torch.int64), "y": torch.zeros(7, dtype=torch.int64), "k": 0}
        dcp.load(found, checkpoint_id=tmp_path, no_dist=True)
        last = int(said[-1]) if said else 1
        assert found["k"] in (last, last + 1)
        assert (found["x"] == found["k"]).all() and (found["y"] == found["k"]).all()
        before += found["k"]
    assert before >= 8
    assert len(list(tmp_path.glob("*.distcp"))) < 12  # those of killed writers are removed by the next ones
