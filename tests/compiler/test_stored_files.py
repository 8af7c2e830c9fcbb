"""Graph files that somebody else has written: refused, or harmless."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import time
import types
import zipfile
from pathlib import Path

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb.checked.counting import counted
from autograd_nb.codegen.build import compilation
from autograd_nb.compiler.trace.graph import GraphError
from autograd_nb.compiler.trace.source import SourceError, check_source, checked_source

from .damage import parts_of, zipped

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def program(x):
    return {"scaled": x.t() * torch.tensor([[1.0], [2.0], [3.0]]), "total": x.sum(0)}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "graph.zip"
    torch.trace(program, X).save(path)
    return path.read_bytes()


@pytest.fixture
def refused(saved, tmp_path):
    """Loads (and runs) a graph after a change of its head and its parts; what it is refused with."""

    def load(change) -> str:
        parts = parts_of(saved)
        head = json.loads(parts["graph.json"])
        change(head, parts)
        if "graph.json" in parts and parts["graph.json"] == parts_of(saved)["graph.json"]:
            parts["graph.json"] = json.dumps(head).encode()
        (tmp_path / "bad.zip").write_bytes(zipped(parts))
        with pytest.raises(GraphError) as caught:
            torch.load_graph(tmp_path / "bad.zip").run(x=X)
        return str(caught.value)

    return load


def test_a_loaded_graph_gives_the_same_numbers(saved, tmp_path):
    (tmp_path / "graph.zip").write_bytes(saved)
    expected = program(X)
    for trusted in (False, True):
        loaded = torch.load_graph(tmp_path / "graph.zip", trusted=trusted)
        for name, found in zip(loaded.outputs, loaded.run(x=X), strict=True):
            assert torch.equal(found, expected[name].detach())
        assert loaded.checked is not trusted


@pytest.mark.parametrize("number", ["10**6", str((1 << 62) + 1), "1 << 40"])
def test_another_range(refused, number):
    """A loop that goes on beyond its array, or for ever."""

    def change(head, parts):
        for s in head["steps"]:
            s["origin"][1] = re.sub(r"range\((?:steps\(dims, 0, [35]\)|size)\):", f"range({number}):", s["origin"][1])

    assert re.search("damaged|not a kernel", refused(change))


def test_other_sizes_and_strides(refused):
    """(Of sizes whose product is 0 in 64 bits no step is made.)"""

    def change(head, parts):
        for b in head["buffers"]:
            if b[4] == "<i8":
                parts[f"memory/{b[0]}"] = np.resize(np.array([2] * 6 + [1 << 40] * 18, np.int64), b[3]).tobytes()

    assert "damaged" in refused(change)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("steps", 0, "operands", 0, "size"), 10**6),
        (("steps", 0, "operands", 0, "offset"), -8),
        (("steps", 0, "operands", 0, "offset"), 1),
        (("steps", 0, "operands", 0, "dtype"), "<f8"),
        (("steps", 0, "operands", 0, "dtype"), "|O"),
        (("steps", 0, "operands", 0, "buffer"), 10**30),
        (("steps", 0, "operands", 0, "buffer"), -1),
        (("steps", 0, "operands", 0), 5),
        (("steps", 0, "operands"), []),
        (("steps", 0, "origin", -1, 0), "float64[:]"),
        (("steps", 0, "origin", -1, 0), "(999999999)"),
        (("steps", 0, "origin", 0), "code"),
        (("steps", 0, "origin"), ["kernel", "linalg.lapack", "geqrf", []]),
        (("steps", 0, "origin"), ["kernel", "products.blas", "limit_threads", ["int64"]]),
        (("steps", 0, "origin"), ["kernel", "..compiler.graph", "trace", ["int64"]]),
        (("steps", 0, "origin"), ["kernel", "products.tiled", "np", ["int64"]]),
        (("steps", 0, "writes"), [99]),
        (("steps", 0, "outputs"), 10**9),
        (("buffers", 0, 3), 1 << 58),
        (("buffers", 0, 3), 1 << 40),
        (("buffers", 0, 4), "|O"),
        (("buffers", 0, 1), "foreign"),
        (("values", 0, 2), 3),
        (("values", 0, 3, 0), 10**9),
        (("values", 0, 4, 0), -1),
        (("values", 0, 5), "float64"),
        (("values", 0, 5), "object"),
        (("values", 0, 6), 99),
        (("inputs",), ["nothing"]),
        (("format",), 2),
        (("format",), [[]]),
    ],
)
def test_wrong_places_types_and_sizes(refused, path, value):
    def change(head, parts):
        *inner, last = path
        for key in inner:
            head = head[key]
        head[last] = value

    refused(change)


def test_archives_that_grow(refused):
    """Each is refused by its declared sizes, before anything is read into memory."""

    def spaces(head, parts):
        parts["graph.json"] = json.dumps(head).encode() + b" " * (200 << 20)

    def zeros(head, parts):
        parts[next(n for n in parts if n.startswith("memory/"))] = bytes(300 << 20)

    def deep(head, parts):
        parts["graph.json"] = b"[" * 10**6 + b"]" * 10**6

    for change in (spaces, zeros, deep):
        refused(change)


def test_a_size_that_lies(saved, tmp_path):
    """The archive's table says that an entry is short, and it is long."""
    data = bytearray(saved)
    with zipfile.ZipFile(tmp_path / "g.zip", "w") as z:
        for n, part in parts_of(saved).items():
            z.writestr(n, part)
    data = bytearray((tmp_path / "g.zip").read_bytes())
    at = data.rindex(b"PK\x01\x02")
    data[at + 24 : at + 28] = (1 << 20).to_bytes(4, "little")
    (tmp_path / "g.zip").write_bytes(data)
    with pytest.raises(GraphError):
        torch.load_graph(tmp_path / "g.zip").run(x=X)


def running(x):
    return {"columns": x.cumsum(0), "rows": x.cumsum(1), "spectrum": torch.fft.rfft(x).abs(), "sorted": x.sort(1).values}


@pytest.fixture(scope="module")
def saved_running(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "graph.zip"
    graph = torch.trace(running, X)
    graph.save(path)
    loaded = torch.load_graph(path)
    for found, expected in zip(loaded.run(x=X), graph.run(x=X), strict=True):
        assert torch.equal(found, expected)
    return parts_of(path.read_bytes())


@pytest.mark.parametrize("number", [1 << 31, (1 << 40) - 1, -(1 << 39)])
def test_hand_written_kernels_end_whatever_numbers_they_are_given(saved_running, tmp_path, number):
    """Each number in turn: loops over no elements (slices are cut off at an array's end) would go on for hours."""
    head = json.loads(saved_running["graph.json"])
    places = [
        (i, k) for i, s in enumerate(head["steps"]) if s["origin"][0] == "kernel" for k, o in enumerate(s["operands"]) if type(o) in (int, list)
    ]  # fmt: skip
    assert len(places) > 10
    refused = 0
    for i, k in places:
        changed = json.loads(saved_running["graph.json"])
        o = changed["steps"][i]["operands"][k]
        changed["steps"][i]["operands"][k] = [number] * len(o) if isinstance(o, list) else number
        (tmp_path / "bad.zip").write_bytes(zipped({**saved_running, "graph.json": json.dumps(changed).encode()}))
        begin = time.process_time()
        try:
            torch.load_graph(tmp_path / "bad.zip").run(x=X)
        except GraphError:
            refused += 1
        assert time.process_time() - begin < 30, (head["steps"][i]["name"], k)
    assert refused >= len(places) // 3  # of a negative number a loop takes no steps


def test_transforms_whose_shapes_do_not_belong_together(tmp_path):
    """SciPy's transforms look at no sizes of what they write to."""
    path = tmp_path / "graph.zip"
    torch.trace(lambda x: (torch.fft.rfft(x).abs(), torch.fft.irfft(torch.complex(x, x))), X).save(path)
    parts = parts_of(path.read_bytes())
    head = json.loads(parts["graph.json"])
    found = [(s["name"], s["operands"][:3]) for s in head["steps"] if s["origin"][1] == "fft"]
    assert found == [("r2c", [[2, 3], [2, 2], [1]]), ("c2r", [[2, 3], [2, 4], [1]])]
    steps = [i for i, s in enumerate(head["steps"]) if s["origin"][1] == "fft"]
    for i, changes in zip(steps, [[(2, [0]), (1, [4, 1]), (0, [3, 2])], [(2, [0]), (1, [1, 4]), (1, [4, 2]), (0, [3, 2])]], strict=True):
        for k, value in changes:
            changed = json.loads(parts["graph.json"])
            changed["steps"][i]["operands"][k] = value
            path.write_bytes(zipped({**parts, "graph.json": json.dumps(changed).encode()}))
            with pytest.raises(GraphError, match="no half of shape"):
                torch.load_graph(path).run(x=X)


def test_errors_of_other_libraries_are_those_of_the_file(tmp_path):
    """SciPy's of a result of another dtype is a RuntimeError that names no file."""
    path = tmp_path / "graph.zip"
    torch.trace(lambda x: torch.fft.rfft(x).abs(), X).save(path)
    parts = parts_of(path.read_bytes())
    head = json.loads(parts["graph.json"])
    step = head["steps"][0]
    assert step["name"] == "r2c" and step["operands"][-1]["dtype"] == "<c8"
    step["origin"][3][-1] = "float32[:]"
    step["operands"][-1].update(dtype="<f4", size=4)
    path.write_bytes(zipped({**parts, "graph.json": json.dumps(head).encode()}))
    with pytest.raises(GraphError, match="is damaged: "):
        torch.load_graph(path).run(x=X)


def test_the_loops_of_every_hand_written_kernel_are_counted():
    """None walks what its count cannot be made of, and the counted one is the same function."""
    root, found = Path(torch.__file__).parent / "kernels", 0
    for path in sorted(root.rglob("*.py")):
        module = importlib.import_module(".".join(["autograd_nb.checked.kernels", *path.relative_to(root).with_suffix("").parts]))
        for name, function in list(vars(module).items()):
            if isinstance(function, types.FunctionType) and function.__module__ == module.__name__ and not hasattr(function, "foreign"):
                made = counted(function, ["int64"] * function.__code__.co_argcount)
                assert made.__code__.co_varnames[: made.__code__.co_argcount] == function.__code__.co_varnames[: made.__code__.co_argcount], name
                found += 1
    assert found > 100


def test_a_scalar_function_whose_loop_does_not_end():
    """A polynomial of degree 10¹⁵, by its recurrence."""
    text = "from autograd_nb.codegen import iterative\ndef kernel(a):\n    a[0] = iterative.legendre_p(a[0], a[1])"
    entry = compilation.build(checked_source(text, ("float64[:]",)), "kernel", ("float64[:]",), checked=True)
    with pytest.raises(IndexError, match="more steps"):
        entry(np.array([0.5, 1e15]))
    values = np.array([0.5, 2.0])
    entry(values)
    assert abs(values[0] + 0.125) < 1e-15  # (3 x² - 1) / 2


KERNEL = "import math\nimport numpy as np\nfrom autograd_nb.codegen.runtime import advance, entry, pack, position, row, scratch, start, steps\n"


@pytest.mark.parametrize(
    "text",
    [
        "x = 9 ** 9 ** 9\ndef kernel(a):\n    pass",
        "x = [0] * 10 ** 12\ndef kernel(a):\n    pass",
        "x = max(range(10 ** 15))\ndef kernel(a):\n    pass",
        "x = np.zeros(10 ** 12)\ndef kernel(a):\n    pass",
        "range = np.float64(1.0)\ndef kernel(a):\n    pass",
        "def kernel(a):\n    while True:\n        pass",
        "def kernel(a):\n    kernel(a)",
        "def other(a):\n    pass\ndef kernel(a):\n    other(a)",
        "def kernel(a):\n    def inner(b):\n        pass",
        "def kernel(*a):\n    pass",
        "def kernel(a: int):\n    pass",
        "def kernel(a) -> int:\n    pass",
        "def kernel(a):\n    for i in a:\n        pass",
        "def kernel(a):\n    a <<= 70",
        "def kernel(a):\n    np.empty(10 ** 12)",
        "def kernel(a):\n    a[0] = 10 ** 400 + " + "1" * 300,
        "def kernel(a):\n    lambda: 1",
        "def kernel(a):\n    [b for b in a]",
        "def kernel(a):\n    row = a",
        "def kernel(a):\n    (a.view)(np.float64).ctypes",
        "def kernel(a):\n    iterative.__loader__",
        "def kernel(a):\n    scratch(10 ** 9, np.float64)",
        "def kernel(a):\n    scratch(a, np.float64)",
        "def kernel(a):\n    p = start(2)\n    position(p, 2)",
        "def kernel(a):\n    p = start(10 ** 9)",
        "def kernel(a):\n    p = start(2)\n    advance(p, a, 3, 0, 5)",
        "def kernel(a):\n    p = start(2)\n    advance(p, a, 2, 0, 7)",
        "def kernel(a):\n    p = start(2)\n    p = a",
        "def kernel(a):\n    p = start(2)\n    p[0] = 5",
        "def kernel(a):\n    p = start(2)\n    q = p",
        "def kernel(a):\n    position(a, 0)",
        "def kernel(a):\n    entry(a, -1)",
        "def kernel(a):\n    b = a\n    entry(b, 1)",
        "def kernel(a):\n    a = a[1:]\n    entry(a, 1)",
        "def kernel(a):\n    steps(a, 0, 100)",
        "def kernel(a, b):\n    pass",
        "def kernel(a):\n    " + "-" * 100_000 + "1",
        "def kernel(a):\n    a[0] = " + "(" * 5_000 + "1" + ")" * 5_000,
        "def kernel(a):\n    a[0] = " + " + ".join(["1"] * 60_000),
        "def kernel(a):\n    pass\n#" + "x" * (1 << 19),
    ],
)  # fmt: skip
def test_texts_that_the_generator_does_not_write(text):
    with pytest.raises((SourceError, RecursionError)):
        checked_source(KERNEL + text, ("int64[:]",))


def test_the_step_of_a_walk_is_checked_once_and_indices_as_they_are_used():
    text = KERNEL + "def kernel(dims, a, o):\n    p = start(2)\n    for i in range(steps(dims, 0, 5)):\n"
    text += "        o[i] = np.int32(a[position(p, 1)])\n        advance(p, dims, 2, 0, 5)\n"
    check_source(text)
    found = checked_source(text, ("int64[:]", "float32[:]", "int32[:]"))
    assert "_needs(dims, 18)" in found and "_settled(np.int32(" in found and "_spent(0, steps(dims, 0, 5), 1)" in found
    assert "autograd_nb.codegen" not in found


def test_every_generated_kernel_passes():
    """Texts of all pointwise ops, reductions and row kernels, as their tests make them, in plain Python."""
    code = """
import sys, pytest
from autograd_nb.codegen.build import compilation
texts = {}
build_ = compilation.build
def noted(source, name, argtypes, checked=False):
    texts[source] = argtypes
    return build_(source, name, argtypes, checked)
compilation.build = noted
files = ["tests/ops/test_pointwise_table.py", "tests/ops/test_softmax.py"]
pytest.main(["-q", "-p", "no:cacheprovider", "--maxfail=100000", *files, "-k", "value or grad or soft"])
from autograd_nb.compiler.trace.source import checked_source
for text, argtypes in texts.items():
    checked_source(text, argtypes)
print("passed", len(texts))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)}, capture_output=True,
        text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(re.search(r"passed (\d+)", done.stdout)[1]) > 100


@pytest.mark.skipif(sys.platform != "linux", reason="closes pages")
@pytest.mark.parametrize("first", [0, 100])
def test_damaged_files(tmp_path, first):
    """A hundred files each: no signal, no error but GraphError, nothing that takes long."""
    command = [sys.executable, str(Path(__file__).with_name("damage.py")), str(tmp_path), str(first), str(first + 100)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, (done.returncode, done.stdout[-500:], done.stderr[-3000:])
    said = [line.split(maxsplit=2) for line in done.stdout.splitlines()[:-1]]
    assert [int(seed) for seed, _, _ in said] == list(range(first, first + 100))
    assert said[0][2] == "ran" and sum("refused" in text for _, _, text in said) > 30
    assert int(done.stdout.split()[-1]) > 1  # some changes make no difference
