"""What notebooks show: HTML of tensors, modules, graphs, profiles and compiled functions; pictures that fold and zoom in a real browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from xml.etree import ElementTree

import pytest

import autograd_nb as torch
from autograd_nb.graph import markup


def made():
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(4, 2, bias=False)))
    return net, net(torch.ones(2, 3)).sum()


def test_a_tensor_shows_what_it_is_and_where_it_was_made():
    w = torch.tensor([[1.0, 2.0], [3.0, 4.5]], requires_grad=True)
    html = (w * 2)._repr_html_()
    assert "Tensor [2, 2]" in html
    assert "float32" in html
    assert "cpu" in html
    assert re.search(r'made by MulBackward0</span> at <a href="file:///[^"]*/test_notebooks.py#L(\d+)">test_notebooks.py:\1', html), html
    typed: dict[str, object] = {"torch": torch}
    exec(compile("y = torch.ones(1, requires_grad=True) * 2", "<typed>", "exec"), typed)
    assert "made by MulBackward0</span> at &lt;typed&gt;:1" in typed["y"]._repr_html_()
    assert "(html = (w * 2)._repr_html_())" in html
    assert re.findall(r"<td>([\d.]+)</td>", html) == ["2.", "4.", "6.", "9."]
    assert "a leaf that requires grad" in w._repr_html_()


def test_a_large_tensor_shows_its_edges_and_how_its_values_are_spread():
    x = torch.arange(1000.0).reshape(20, 50)
    x[0, 0] = torch.nan
    html = x._repr_html_()
    assert html.count("<tr>") == 10  # the numbers of columns, four rows, dots, four rows
    assert html.count("<rect") == 40
    assert "1 value is nan or infinite" in html
    ElementTree.fromstring(re.search(r"<svg.*</svg>", html)[0])


def test_what_has_no_dense_memory_is_shown_as_it_is_printed():
    for x in (torch.eye(2).to_sparse(), torch.eye(2).to_sparse_csr(), torch.nn.LazyLinear(3).weight):
        assert "<pre>" in x._repr_html_() and markup.escape(repr(x)) in x._repr_html_()
    net = torch.nn.Sequential(torch.nn.LazyLinear(3), torch.nn.Linear(3, 2))
    assert "8 parameters, 2 without a shape yet" in net._repr_html_()
    net(torch.ones(1, 2))
    assert "17 parameters<" in net._repr_html_()


def test_a_module_with_others_inside_shows_its_own_parameters():
    html = torch.nn.MultiheadAttention(4, 2)._repr_html_()
    assert "in_proj_weight [12, 4]" in html and "NonDynamicallyQuantizableLinear" in html
    assert html.count("<details") == html.count("</details>")


@pytest.mark.parametrize("x", [torch.ones(0), torch.ones(2, 3, 4), torch.tensor(True), torch.ones(3, dtype=torch.complex64), torch.ones(70).half()])
def test_every_tensor_shows_something(x):
    assert str(list(x.shape)) in x._repr_html_()
    assert x.bfloat16()._repr_html_() if x.dtype.is_floating_point else True


def test_a_module_is_a_tree_with_numbers_of_parameters():
    net, _ = made()
    net[0].bias.requires_grad_(False)
    html = net._repr_html_()
    assert "24 parameters, 4 of them fixed" in html
    assert "8 parameters" in html
    assert "weight [4, 3], bias [4]" in html
    assert html.count("<details") == html.count("</details>") == 4


def test_tables_and_programs():
    net, loss = made()
    assert "AddmmBackward0" in torch.memory(loss, net)._repr_html_()

    @torch.compile
    def step(x):
        return (x * 2).sum()

    assert "nothing captured yet" in step._repr_html_()
    step(torch.ones(3))
    assert "return (x * 2).sum()" in step._repr_html_()
    assert "Program 1" in step.programs[0]._repr_html_()
    times = step.profile(torch.ones(3))._repr_html_()
    assert "100.0%" in times and "Each step in turn" in times and "return (x * 2).sum()" in times
    assert "Program 1" in step.programs._repr_html_() and "return (x * 2).sum()" in step.programs._repr_html_()
    with torch.profiler.profile() as prof:
        torch.ones(3).exp()
    assert "aten::exp" in prof._repr_html_()
    assert "aten::exp" in prof.key_averages()._repr_html_()
    assert torch.trace(lambda x: x.exp(), torch.ones(3))._repr_html_().count('class="n"') == 3


#: what a visitor does: folds a box, zooms, unfolds
VISIT = """<script>onload = () => {
  const boxes = [...document.querySelectorAll(".n")], seen = () => boxes.filter(b => b.style.display != "none").length, svg = document.querySelector("svg");
  const told = [seen()], root = boxes[0];
  root.dispatchEvent(new MouseEvent("click", { bubbles: true })); told.push(seen(), root.querySelector(".mark").textContent);
  const before = svg.getAttribute("viewBox");
  svg.dispatchEvent(new WheelEvent("wheel", { deltaY: -100, clientX: 50, clientY: 50, bubbles: true, cancelable: true }));
  told.push(before != svg.getAttribute("viewBox"));
  root.dispatchEvent(new MouseEvent("click", { bubbles: true })); told.push(seen());
  document.body.innerHTML = "<p>" + told.join(" ") + "</p>";
}</script></body>"""


def test_a_graph_is_a_file_that_needs_no_other(tmp_path):
    net, loss = made()
    torch.viz.graph(loss, tmp_path / "graph.html", net)
    text = (tmp_path / "graph.html").read_text()
    assert not re.search(r"(src|href)=|https?://(?!www.w3.org/2000/svg)", text)
    ElementTree.fromstring(re.search(r"<svg.*</svg>", text, re.DOTALL)[0])


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs a browser: apt-get install chromium")
def test_a_graph_folds_and_zooms_in_a_browser(tmp_path):
    net, loss = made()
    drawing = torch.viz.graph(loss, tmp_path / "graph.html", net)
    page = tmp_path / "visit.html"
    page.write_text((tmp_path / "graph.html").read_text().replace("</body>", VISIT))
    options = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync"
    command = ["chromium", *options.split(), f"--user-data-dir={tmp_path / 'user'}", "--dump-dom", page.as_uri()]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    n = len(drawing)
    assert f"<p>{n} 1 +{n - 1} true {n}</p>" in run.stdout
