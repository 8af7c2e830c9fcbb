"""Static graphs: feed and fetch, derivatives, files; functions for the user's own Numba code."""

from __future__ import annotations

import ctypes
import json
import xml.etree.ElementTree as ElementTree
import zipfile

import numba
import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb.compiler.trace.graph import GraphError, label
from autograd_nb.compiler.trace.source import SourceError, check_source

W = torch.tensor([1.0, 2.0], requires_grad=True)


def function(x, b):
    h = label(torch.tanh(x * W), "h")
    return {"loss": (h * b).sum(), "double": h * 2}


@pytest.fixture
def graph():
    return torch.trace(function, torch.zeros(2), torch.ones(2))


X, B = torch.tensor([0.3, 0.4]), torch.tensor([1.0, -1.0])


def test_feed_and_fetch(graph):
    loss, double = graph.run(feed={"x": X, "b": B})
    expected = function(X, B)
    torch.testing.assert_close(loss, expected["loss"].detach())
    torch.testing.assert_close(double, expected["double"].detach())
    assert graph.inputs == ["x", "b"] and graph.outputs == ["loss", "double"]
    torch.testing.assert_close(graph.run("h", x=X), torch.tanh(X * W).detach())


def test_only_what_is_needed_runs(graph):
    graph.run("double", x=X)  # b is not needed
    program = graph._programs[("double",), ("x",)][0]
    assert "sum" not in str(program)
    with pytest.raises(GraphError, match="input b must be fed"):
        graph.run("loss", x=X)


def test_a_value_in_the_middle_is_taken_as_given(graph):
    assert graph.run("loss", h=torch.ones(2), b=B).item() == 0
    assert graph.run(["double", "loss"], h=torch.full((2,), 3.0), b=B)[0].tolist() == [6, 6]


def test_parameters_are_read_as_they_are_now(graph):
    before = W.detach().clone()
    try:
        with torch.no_grad():
            W.fill_(0.5)
        torch.testing.assert_close(graph.run("h", x=X), torch.tanh(X * 0.5))
    finally:
        with torch.no_grad():
            W.copy_(before)


def test_gradients_of_any_order(graph):
    names = graph.grad("loss", ["x", "W", "h"])
    found = graph.run(names, x=X, b=B)
    x = X.clone().requires_grad_()
    loss = function(x, B)["loss"]
    for a, b in zip(found[:2], torch.autograd.grad(loss, [x, W]), strict=True):
        torch.testing.assert_close(a, b)
    torch.testing.assert_close(found[2], B)
    square = torch.trace(lambda x: (x**3).sum(), torch.ones(()))
    (first,) = square.grad("output", "x")
    (second,) = square.grad(first, "x")
    assert square.run([first, second], x=torch.tensor(2.0)) == [12, 12]


def test_wrong_feeds_are_refused(graph):
    with pytest.raises(KeyError, match="no value 'y'"):
        graph.run("loss", y=X)
    with pytest.raises(TypeError, match="float32"):
        graph.run("h", x=X.double())
    with pytest.raises(RuntimeError, match=r"shape \[2\]"):
        graph.run("h", x=torch.zeros(3))
    with pytest.raises(KeyError, match="cannot be differentiated"):
        graph.grad("loss", "mul")
    with pytest.raises(GraphError, match="2 elements"):
        graph.grad("h", "x")
    with pytest.raises(GraphError, match="item"):
        torch.trace(lambda x: x * x.sum().item(), torch.ones(2))


def test_text_source_and_picture(graph, tmp_path):
    text = str(graph)
    assert text.startswith("graph function(x: float32[2]") and "tanh" in text and "return loss" in text
    assert "def kernel" in graph.source["tanh"]
    picture = graph.svg(tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").read_text() == picture
    assert ElementTree.fromstring(picture).tag.endswith("svg")


def test_files(graph, tmp_path):
    names = graph.grad("loss", ["x", "W"])
    path = tmp_path / "graph.zip"
    graph.save(path)
    loaded = torch.load_graph(path)
    for a, b in zip(loaded.run(["loss", *names], x=X, b=B), graph.run(["loss", *names], x=X, b=B), strict=True):
        assert torch.equal(a, b)
    with pytest.raises(GraphError, match="no derivatives"):
        loaded.grad("loss", "x")


def test_files_from_before_kernels_had_rooms(tmp_path):
    """They name a kernel's module alone, without its room."""
    graph = torch.trace(lambda x: {"y": x.cumsum(0)}, X)
    graph.save(tmp_path / "new.zip")
    with zipfile.ZipFile(tmp_path / "new.zip") as z, zipfile.ZipFile(tmp_path / "old.zip", "w") as old:
        parts = {n: z.read(n) for n in z.namelist()}
        head = json.loads(parts["graph.json"])
        by_hand = [s["origin"] for s in head["steps"] if s["origin"][0] == "kernel"]
        for origin in by_hand:
            origin[1] = origin[1].rpartition(".")[2]
        for n, data in (parts | {"graph.json": json.dumps(head).encode()}).items():
            old.writestr(n, data)
    assert by_hand
    assert torch.equal(torch.load_graph(tmp_path / "old.zip").run("y", x=X), X.cumsum(0))


def test_files_are_not_trusted(graph, tmp_path):
    path = tmp_path / "graph.zip"
    graph.save(path)

    def changed(change):
        with zipfile.ZipFile(path) as z:
            parts = {n: z.read(n) for n in z.namelist()}
        head = json.loads(parts["graph.json"])
        change(head)
        parts["graph.json"] = json.dumps(head).encode()
        bad = tmp_path / "bad.zip"
        with zipfile.ZipFile(bad, "w") as z:
            for n, data in parts.items():
                z.writestr(n, data)
        return bad

    def run_code(head):
        head["steps"][0]["origin"] = ["source", "import os\ndef kernel(a, b, c):\n    os.system('true')\n", ["float32[:]"] * 3]

    def outside(head):
        head["steps"][0]["operands"][0]["size"] = 10**6

    def other_module(head):
        head["steps"][0]["origin"] = ["kernel", "os", "system", ["float32[:]"] * 3]

    for change in (run_code, outside, other_module):
        with pytest.raises((GraphError, SourceError)):
            torch.load_graph(changed(change)).run("h", x=X)
    (tmp_path / "short.zip").write_bytes(path.read_bytes()[:100])
    with pytest.raises(GraphError, match="not a graph"):
        torch.load_graph(tmp_path / "short.zip")
    written, draws = path.read_bytes(), np.random.RandomState(0)
    refused = 0
    for _ in range(40):
        damaged = bytearray(written)
        damaged[draws.randint(len(damaged))] ^= 1 << draws.randint(8)
        (tmp_path / "damaged.zip").write_bytes(damaged)
        try:
            torch.load_graph(tmp_path / "damaged.zip")
        except GraphError:
            refused += 1
    assert refused > 20  # what remains are bits that nothing is read from, as times and attributes of the zip file


@pytest.mark.parametrize(
    "text",
    ["import os", "x = __import__('os')", "def kernel(a):\n    a.__class__", "def kernel(a):\n    open('x')", "def kernel(a=1):\n    pass", "exec('1')",
     "def kernel(a):\n    np.load(a)", "from os import path", "def kernel(a):\n    'text'.join(a)"],
)  # fmt: skip
def test_only_kernels_pass_for_kernels(text):
    with pytest.raises(SourceError):
        check_source(text)


def test_generated_kernels_pass(graph):
    graph.grad("loss", ["x", "W"])
    for text in graph.source.values():
        check_source(text)


# ------------------------------------------------------------------------------------------------ in Numba code


def test_value_and_gradient_in_numba_code():
    f = torch.numba_callable(lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum(), np.zeros(4))
    optimize = pytest.importorskip("scipy.optimize")
    x, g = np.array([1.3, 0.7, 0.8, 1.9]), np.empty(4)
    assert f(x, g) == pytest.approx(optimize.rosen(x))
    np.testing.assert_allclose(g, optimize.rosen_der(x))

    @numba.njit
    def descend(x, steps):
        g = np.empty_like(x)
        for _ in range(steps):
            f(x, g)
            x -= 1e-3 * g
        return x

    np.testing.assert_allclose(descend(x.copy(), 50_000), 1.0, atol=1e-3)
    with pytest.raises(ValueError, match="size of the example"):
        f(np.zeros(3), np.zeros(3))
    c = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p)(f.address)
    assert c(x.ctypes.data, g.ctypes.data) == pytest.approx(optimize.rosen(x))


def test_arrays_that_a_callable_does_not_take():
    f = torch.numba_callable(lambda x: ((x - 3) ** 2).sum(), np.zeros(2))
    run = numba.njit(lambda f, x, g: f(x, g))
    x, g = np.zeros(2), np.zeros(2)
    fixed = np.zeros(2)
    fixed.setflags(write=False)
    for call in (f, lambda x, g: run(f, x, g)):
        for bad, said in (
            ((x.astype(np.float32), g), "x must be a C-contiguous array of float64, it is array.float32"),
            ((x, g.astype(np.int64)), "g must be a C-contiguous array of float64, it is array.int64"),
            ((np.zeros(4)[::2], g), "x must be a C-contiguous array"),
            ((x, np.zeros(4)[::2]), "g must be a C-contiguous array"),
            (([0.0, 0.0], g), "x must be a C-contiguous array"),
            ((x, fixed), "g is read-only"),
        ):
            with pytest.raises(TypeError, match=said):
                call(*bad)
        assert call(fixed, g) == 18 and g.tolist() == [-6, -6]
    with pytest.raises(TypeError, match="expected a function, got int"):
        torch.numba_callable(3, x)


def test_a_callable_with_data_and_threads():
    data, target = torch.randn(50, 3), torch.randint(0, 2, (50,)).float()
    loss = lambda w: torch.nn.functional.binary_cross_entropy_with_logits(data @ w, target)
    f = torch.numba_callable(loss, np.zeros(3, np.float32))
    x, g = np.array([0.1, -0.2, 0.3], np.float32), np.empty(3, np.float32)
    w = torch.from_numpy(x.copy()).requires_grad_()
    expected = loss(w)
    expected.backward()
    assert f(x, g) == pytest.approx(expected.item(), rel=1e-5)
    np.testing.assert_allclose(g, w.grad.numpy(), rtol=1e-4, atol=1e-6)
    with pytest.raises(GraphError, match="one number"):
        torch.numba_callable(lambda x: x * 2, np.zeros(2))


def test_a_graph_with_lists_of_arrays_is_saved(tmp_path):
    def clipped(x, y):
        x, y = (v.requires_grad_() for v in (x * 2, y * 3))
        x.grad, y.grad = x.detach() * 1, y.detach() * 1
        torch.nn.utils.clip_grad_norm_([x, y], 1.0)
        return x.grad, y.grad

    graph = torch.trace(clipped, torch.ones(3), torch.ones(2))
    graph.save(tmp_path / "clipped")
    given = torch.arange(3.0), torch.arange(2.0)
    for found in (graph, torch.load_graph(tmp_path / "clipped")):
        for a, b in zip(found.run(x=given[0], y=given[1]), clipped(*given), strict=True):
            assert torch.equal(a, b)


def test_graphs_that_read_memory_of_half_precision_from_numpy(tmp_path):
    """Such memory keeps NumPy's dtype, where kernels see bits."""
    w, x = torch.from_numpy(np.array([1.0, 0.5, -2.0], np.float16)), torch.tensor([3.0, 1.0, 4.0], dtype=torch.float16)
    graph = torch.trace(lambda x: (x * w, w), x)
    graph.save(tmp_path / "g")
    for trusted in (False, True):
        loaded = torch.load_graph(tmp_path / "g", trusted=trusted)
        assert all(map(torch.equal, loaded.run(x=x), graph.run(x=x)))


def test_results_that_are_views_of_what_is_fed(tmp_path):
    """They are results of one's own, with what is fed: of the example there is nothing in them."""
    x, fed = torch.ones(2, 3), torch.arange(6.0).reshape(2, 3)
    graph = torch.trace(lambda x: {"turned": x.t(), "parts": [x[0], (x[1:],)], "more": x + 1}, x)
    graph.save(tmp_path / "graph")
    for g in (graph, torch.load_graph(tmp_path / "graph")):
        assert g.outputs == ["turned", "parts.0", "parts.1.0", "more"]
        found = g.run(x=fed)
        for mine, wanted in zip(found, (fed.t(), fed[0], fed[1:], fed + 1), strict=True):
            assert mine.tolist() == wanted.tolist() and mine.stride() == wanted.stride()
            mine.zero_()
        assert fed.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_reports_of_matrices_without_elements():
    compiled = torch.compile(lambda x: torch.linalg.inv_ex(x).info)
    for _ in range(5):
        found = compiled(torch.zeros(3, 0, 0))
        assert found.tolist() == [0, 0, 0]
        found.add_(7)
