"""Drawing a graph, and counting what it holds."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree

import pytest

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb import nn

from .functions import Double


def first_words(drawing):
    return [line.split("  float")[0].rstrip() for line in str(drawing).splitlines()]


def test_tree_shows_ops_shapes_and_lines():
    w = torch.ones(2, 3, requires_grad=True)
    loss = (w * 2).exp().sum()
    text = str(torch.viz.graph(loss, params={"w": w}))
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["SumBackward0", "ExpBackward0", "MulBackward0"]
    assert lines[3].split() == ["└─", "w", "float32[2,", "3]"]
    assert "float32[]" in lines[0] and "float32[2, 3]" in lines[1]
    assert all("test_viz.py" in line and "loss = (w * 2).exp().sum()" in line for line in lines[:3])


def test_a_node_met_twice_is_named():
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    drawing = torch.viz.graph(y * y.sin())
    words = first_words(drawing)
    assert words == ["MulBackward0", "├─ ExpBackward0 #1", "│  └─ leaf", "└─ SinBackward0", "   ExpBackward0 (see #1)"]
    assert len(drawing) == 4


def test_shapes_of_reductions_views_and_several_outputs():
    x = torch.ones(4, requires_grad=True)
    b = x.clone()
    b[1:3].mul_(2)
    first, second = b.split(2)
    text = str(torch.viz.graph([(first * second).mean(0, keepdim=True), b.max()]))
    assert "MeanBackward1            float32[1]" in text or "float32[1]" in text.splitlines()[0]
    assert "float32[2], float32[2]" in text
    assert any(line.strip("├─└ │").startswith("CopySlices") and "float32[4]" in line for line in text.splitlines())


def test_users_function_is_drawn():
    text = str(torch.viz.graph(Double.apply(torch.ones(3, requires_grad=True))))
    assert "DoubleBackward" in text
    assert "float32[3]" in text


def test_a_deep_chain():
    y = torch.ones(1, requires_grad=True)
    for _ in range(2000):
        y = y.sin()
    assert len(str(torch.viz.graph(y)).splitlines()) == 2001


def test_files(tmp_path):
    model = nn.Linear(3, 2)
    loss = model(torch.ones(1, 3)).sum()
    for ending in ("svg", "dot", "txt"):
        torch.viz.graph(loss, tmp_path / f"graph.{ending}", model)
    assert ElementTree.parse(tmp_path / "graph.svg").getroot().tag.endswith("svg")
    assert '"weight\\nfloat32[2, 3]"' in (tmp_path / "graph.dot").read_text()
    assert "AddmmBackward0" in (tmp_path / "graph.txt").read_text()
    with pytest.raises(ValueError, match="its ending must be"):
        torch.viz.graph(loss, tmp_path / "graph.doc")


def test_dot_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    loss = torch.ones(1, requires_grad=True).exp()
    with pytest.raises(RuntimeError, match="Graphviz"):
        torch.viz.graph(loss, tmp_path / "graph.png")
    assert not list(tmp_path.iterdir())


def test_errors():
    with pytest.raises(RuntimeError, match="has no graph"):
        torch.viz.graph(torch.ones(1))
    with pytest.raises(RuntimeError, match="has no graph"):
        torch.memory(torch.ones(1, requires_grad=True))
    with pytest.raises(TypeError, match="must be Tensor, not float"):
        torch.memory(1.0)


def test_memory_counts_shared_arrays_once():
    w = torch.ones(1000, requires_grad=True)
    e = w.exp()
    table = torch.memory((e * w + e.sin()).sum())
    assert (table.total, table.parameters, table.activations) == (8000, 4000, 4000)
    assert table.by("op") == {"ExpBackward0": 4000, "MulBackward0": 4000}
    assert [r.op for r in table.rows if r.parameters] == ["MulBackward0"]
    assert "8,000" in str(table) and "test_viz.py" in str(table)


def test_memory_of_a_module_and_after_backward():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    x = torch.ones(32, 8)
    loss = F.cross_entropy(model(x), torch.zeros(32, dtype=torch.int64))
    table = torch.memory(loss, model)
    assert table.parameters == 16 * 4 * 4  # the second layer's weight; the first one's is not needed
    assert table.activations >= 32 * (8 + 16) * 4
    assert sum(table.by("line").values()) == table.total
    loss.backward()
    assert torch.memory(loss).total == 0
    assert "was consumed by the backward pass at test_viz.py" in str(torch.memory(loss))


def test_a_view_counts_with_the_block_it_keeps():
    x = torch.ones(100, requires_grad=True)
    y = x.clone()
    assert torch.memory(y[:10].exp() * y[:10]).total == 400 + 40


def test_what_a_function_keeps_on_ctx_counts():
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            ctx.table = [torch.ones(10)]
            return x * y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0], None

    x = torch.ones(5, requires_grad=True)
    assert torch.memory(Scale.apply(x, torch.ones(5)).sum()).total == 4 * (5 + 10)


def test_a_compiled_function_in_the_graph():
    f = torch.compile(lambda x: (x.exp() * x).sum())
    x = torch.ones(1000, requires_grad=True)
    f(x)
    loss = f(x) * 2
    assert str(torch.viz.graph(loss)).splitlines()[-1].startswith("└─ leaf")
    table = torch.memory(loss)
    assert table.parameters == 4000
    assert table.activations >= 4000


# ------------------------------------------------------------------------------------------------ figures of training


def test_figures_of_training(tmp_path):
    pytest.importorskip("matplotlib", reason="needs the package matplotlib")
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    x = torch.rand(8, 2)
    model(x).sum().backward()
    step = torch.compile(lambda x: (x.exp() * 2).sum())
    step(x)
    viz = torch.viz
    viz.curves({"loss": [torch.tensor(2.0), 1.0, 0.5], "other": [1.0, 1.0, 1.0]}, tmp_path / "curves.png", smooth=0.5, log=True)
    viz.histograms(model, tmp_path / "histograms.png")
    viz.histograms(viz.activations(model, x), tmp_path / "activations.svg")
    viz.confusion(model(x), torch.arange(8) % 2, path=tmp_path / "confusion.png")
    viz.time_map(step.profile(x), tmp_path / "time.png")
    with pytest.raises(TypeError, match=r"'profile' must be what step\.profile"):
        viz.time_map(torch.profiler.profile())
    assert all((tmp_path / name).stat().st_size > 1000 for name in ("curves.png", "histograms.png", "activations.svg", "confusion.png", "time.png"))
    assert not any(m._forward_hooks for m in model.modules())


def test_figures_refuse_what_they_cannot_show(monkeypatch):
    pytest.importorskip("matplotlib", reason="needs the package matplotlib")
    with pytest.raises(ValueError, match=r"smooth \(=1\)"):
        torch.viz.curves({"loss": [1.0]}, smooth=1)
    with pytest.raises(ValueError, match="3 predictions for 2 targets"):
        torch.viz.confusion([1, 0, 1], [1, 0])
    with pytest.raises(ValueError, match="no tensor to show"):
        torch.viz.histograms({})
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"viz.curves\(\) needs the package matplotlib: pip install matplotlib"):
        torch.viz.curves({"loss": [1.0]})


def test_boxes_of_a_picture_hold_their_text_and_lines_go_from_one_to_the_next():
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    loss = net(torch.ones(3, 4)).logsumexp(1).sum()
    svg = ElementTree.fromstring(torch.viz.graph(loss, params=net)._layered())
    space = "{http://www.w3.org/2000/svg}"
    places = []
    for box in svg.iter(space + "g"):
        rect, lines = box.find(space + "rect"), list(box.iter(space + "tspan"))
        x, y, width, height = (int(rect.get(name)) for name in ("x", "y", "width", "height"))
        places.append(x)
        assert len(lines) >= 2 and re.search(r"float32\[[\d, ]*\]$", lines[1].text)
        assert all(len(line.text) * 7 < width and y < int(line.get("y")) < y + height for line in lines)
    gaps = {places[int(path.get("data-b"))] - places[int(path.get("data-a"))] for path in svg.iter(space + "path")}
    assert len(gaps) == 1 and gaps.pop() > width  # no line passes behind a box
