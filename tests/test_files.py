"""Files that are written and read by name: whole or as before, whatever stands in their place."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import autograd_nb as torch
from autograd_nb import viz
from autograd_nb.profiler import profile
from autograd_nb.serialization import load_safetensors, save_safetensors

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes, limits and signals are POSIX's")
ROOT = Path(__file__).parents[1]
GRAPH = torch.trace(lambda x: x * 2, torch.zeros(2))
LOSS = (torch.ones(2, requires_grad=True) * 2).sum()
STATE = {"w": torch.arange(2000.0)}


def events():
    with profile() as p:
        torch.ones(2) * 2
    return p


EVENTS = events()
READERS = {"load": torch.load, "load_graph": torch.load_graph, "load_safetensors": load_safetensors}
#: what writes -> the ending of its files
WRITERS = {
    "save": (lambda path: torch.save(STATE, path), "pt"),
    "save_safetensors": (lambda path: save_safetensors(STATE, path), "safetensors"),
    "Graph.save": (GRAPH.save, "zip"),
    "Graph.svg": (GRAPH.svg, "svg"),
    "viz.graph": (lambda path: viz.graph(LOSS, path), "dot"),
    "a trace": (EVENTS.export_chrome_trace, "json"),
    "a packed trace": (EVENTS.export_chrome_trace, "json.gz"),
}


@pytest.fixture
def no_waiting():
    signal.alarm(20)
    yield
    signal.alarm(0)


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@pytest.mark.parametrize("kind", ["pipe", "a link to a pipe", "/dev/zero", "/dev/null", "/dev/tty", "socket", "folder", "itself", "nothing", "empty"])
def test_what_is_no_file_is_not_read(tmp_path, no_waiting, reader, kind):
    path = tmp_path / "file"
    if kind in ("pipe", "a link to a pipe"):
        os.mkfifo(path if kind == "pipe" else tmp_path / "pipe")
    if kind == "a link to a pipe":
        path.symlink_to(tmp_path / "pipe")
    elif kind.startswith("/dev"):
        path = Path(kind)
        if not path.exists():
            pytest.skip(f"there is no {kind}")
    elif kind == "socket":
        import socket

        with socket.socket(socket.AF_UNIX) as server, pytest.MonkeyPatch.context() as patch:
            patch.chdir(tmp_path)  # a socket's path may not be long
            server.bind(path.name)
    elif kind == "folder":
        path.mkdir()
    elif kind == "itself":
        path.symlink_to(path)
    elif kind == "empty":
        path.touch()
    with pytest.raises((OSError, RuntimeError), match="file") as caught:
        reader(path)
    assert "no file" in str(caught.value) or not kind.endswith(("pipe", "zero", "null", "socket"))


@pytest.mark.parametrize(("write", "ending"), WRITERS.values(), ids=WRITERS)
def test_a_file_stays_where_a_new_one_cannot_be_written(tmp_path, monkeypatch, write, ending):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python itself keeps the half that it could write of a compiled module
    path = tmp_path / f"file.{ending}"
    path.write_bytes(b"before")
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30, limits[1]))  # as a full disk
    try:
        with pytest.raises(OSError, match="large"):
            write(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == b"before" and list(tmp_path.iterdir()) == [path]
    write(path)
    assert path.read_bytes() != b"before" and list(tmp_path.iterdir()) == [path]


def test_names_as_long_as_they_may_be(tmp_path):
    path = tmp_path / ("ü" * 126 + ".pt")
    torch.save(STATE, path)
    torch.save(STATE, path)
    assert torch.equal(torch.load(path)["w"], STATE["w"]) and len(list(tmp_path.iterdir())) == 1


KILLED = """
import sys
import autograd_nb as torch
from autograd_nb.serialization import save_safetensors
graph = torch.trace(lambda x: x * torch.zeros(2000), torch.zeros(2000))
print("ready", flush=True)
while True:
    state = {"w": torch.arange(2000.0)}
    torch.save(state, "file.pt")
    save_safetensors(state, "file.safetensors")
    graph.save("file.zip")
"""


@pytest.mark.slow
def test_writers_of_one_file_that_are_killed(tmp_path):
    """Two at once, killed at any moment: what is read is whole."""
    readers = {"pt": torch.load, "safetensors": load_safetensors, "zip": torch.load_graph}
    for k in range(5):
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", KILLED], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE
            )
            for _ in range(2)
        ]
        for w in writers:
            assert w.stdout is not None and w.stdout.readline() == b"ready\n"
        time.sleep(0.2 + 0.013 * k)
        for w in writers:
            w.kill()
            w.communicate()
        for ending, read in readers.items():
            found = read(tmp_path / f"file.{ending}")
            assert ending == "zip" or torch.equal(found["w"], STATE["w"])
