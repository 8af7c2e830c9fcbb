"""HTML that notebooks show: tables, parts that fold, histograms, and pictures of graphs that fold and zoom.

What is made here needs no network and no other file. Colours are taken from the page, so that dark themes stay dark.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any


def escape(text: str) -> str:
    """Return the text with the signs that HTML has for itself written out."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


_numbers = itertools.count(1)

STYLE = (
    "<style>.agnb{font:13px/1.45 sans-serif}.agnb table{border-collapse:collapse;margin:4px 0}.agnb td,.agnb th{padding:1px 8px;text-align:right;"
    "border:0;font:12px/1.5 monospace;background:none}.agnb th{opacity:.65;font-weight:normal}.agnb td.w,.agnb th.w{text-align:left;white-space:pre;"
    "max-width:60em;overflow:hidden;text-overflow:ellipsis}"
    ".agnb details{margin-left:16px}.agnb .leaf{margin-left:28px}.agnb summary{cursor:pointer;margin-left:-4px}.agnb .dim{opacity:.65}"
    ".agnb svg.g{border:1px solid #8884;cursor:grab;max-width:100%;box-sizing:border-box;height:auto}"
    ".agnb svg.g .n{cursor:pointer}.agnb pre{margin:2px 0 2px 16px}</style>"
)


def page(*parts: str) -> str:
    """Return the parts as one block with the style of all blocks."""
    return f'<div class="agnb">{STYLE}{"".join(parts)}</div>'


def whole(title: str, body: str) -> str:
    """Return a block as a file that a browser opens."""
    return f'<!doctype html><html><head><meta charset="utf-8"><title>{escape(title)}</title></head><body>{body}</body></html>\n'


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], words: Sequence[int] = ()) -> str:
    """Return a table; the columns of numbers ``words`` stand to the left."""

    def cells(row: Sequence[Any], tag: str) -> str:
        return "".join(f'<{tag}{" class=w" if i in words else ""}>{escape(str(c))}</{tag}>' for i, c in enumerate(row))

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    first = f"<tr>{cells(head, 'th')}</tr>" if head else ""
    return f"<table>{first}{body}</table>"


def fold(summary: str, body: str, opened: bool = False) -> str:
    """Return a part that opens and closes; ``summary`` and ``body`` are HTML."""
    return f"<details{' open' if opened else ''}><summary>{summary}</summary>{body}</details>"


def histogram(counts: Sequence[float], low: float, high: float) -> str:
    """Return bars of the counts between two values as a line of SVG."""
    most, width = max([1, *counts]), 6
    bars = "".join(
        f'<rect x="{i * width}" y="{30 - 30 * c / most:.1f}" width="{width - 1}" height="{30 * c / most:.1f}" fill="#4c8bf5"><title>{c:g}</title></rect>'
        for i, c in enumerate(counts)
    )
    svg = f'<svg width="{len(counts) * width}" height="30" style="vertical-align:bottom">{bars}</svg>'
    return f'<div><span class="dim">{low:.4g}</span> {svg} <span class="dim">{high:.4g}</span></div>'


_SCRIPT = """
(function () {
  const svg = document.getElementById("ID").querySelector("svg"), nodes = [...svg.querySelectorAll(".n")], edges = [...svg.querySelectorAll("path")];
  const inputs = nodes.map(() => []), folded = new Set(), start = svg.getAttribute("viewBox").split(" ").map(Number);
  let view = start.slice(), drag = null, moved = false;
  edges.forEach(e => inputs[+e.dataset.b].push(+e.dataset.a));
  const fed = new Set(edges.map(e => +e.dataset.a)), roots = nodes.map((_, k) => k).filter(k => !fed.has(k));
  const show = () => svg.setAttribute("viewBox", view.join(" "));
  function reached(stop) {
    const seen = new Set(), stack = roots.slice();
    while (stack.length) { const k = stack.pop(); if (seen.has(k)) continue; seen.add(k); if (!stop.has(k)) stack.push(...inputs[k]); }
    return seen;
  }
  function fold() {
    const seen = reached(folded);
    nodes.forEach((n, k) => {
      n.style.display = seen.has(k) ? "" : "none";
      const mark = n.querySelector(".mark");
      if (folded.has(k)) { const only = new Set([...folded].filter(f => f !== k)); mark.textContent = "+" + (reached(only).size - seen.size); }
      else mark.textContent = "";
    });
    edges.forEach(e => e.style.display = seen.has(+e.dataset.b) && !folded.has(+e.dataset.b) ? "" : "none");
  }
  nodes.forEach((n, k) => n.addEventListener("click", () => {
    if (moved || !inputs[k].length) return;
    folded.has(k) ? folded.delete(k) : folded.add(k); fold();
  }));
  svg.addEventListener("wheel", e => {
    e.preventDefault();
    const r = svg.getBoundingClientRect(), f = e.deltaY < 0 ? 0.85 : 1 / 0.85, u = (e.clientX - r.left) / r.width, v = (e.clientY - r.top) / r.height;
    view = [view[0] + view[2] * (1 - f) * u, view[1] + view[3] * (1 - f) * v, view[2] * f, view[3] * f]; show();
  }, { passive: false });
  svg.addEventListener("pointerdown", e => { drag = [e.clientX, e.clientY, ...view]; moved = false; });
  window.addEventListener("pointermove", e => {
    if (!drag) return;
    const r = svg.getBoundingClientRect(), dx = e.clientX - drag[0], dy = e.clientY - drag[1];
    if (Math.abs(dx) + Math.abs(dy) > 4) moved = true;
    view[0] = drag[2] - dx * view[2] / r.width; view[1] = drag[3] - dy * view[3] / r.height; show();
  });
  window.addEventListener("pointerup", () => { drag = null; });
  svg.addEventListener("dblclick", () => { view = start.slice(); show(); });
})();
"""


def zoomable(svg: str) -> str:
    """Return a picture of `compiler.trace.picture.layered` that folds and zooms: the wheel zooms, dragging moves, a click folds what a node was made of."""
    name = f"agnb-graph-{next(_numbers)}"
    hint = '<div class="dim">Wheel: zoom. Drag: move. Click a box: fold what it was computed from. Double click: all of it.</div>'
    picture = svg.replace("<svg ", '<svg class="g" ', 1)
    return f'<div id="{name}">{hint}{picture}<script>{_SCRIPT.replace("ID", name)}</script></div>'


class Rows:
    """A list of a profile's events or averages that notebooks show as a table, what took longest first."""

    def _repr_html_(self) -> str:
        events: Any = self
        averages = events if all(hasattr(e, "count") for e in events) else events.key_averages()
        rows = sorted(averages, key=lambda e: -e.self_cpu_time_total)
        total = sum(e.self_cpu_time_total for e in rows) or 1
        lines = [
            (e.key, f"{e.self_cpu_time_total / total:.1%}", f"{e.self_cpu_time_total:,.0f}", f"{e.cpu_time_total:,.0f}", f"{e.count:,}")
            for e in rows[:100]
        ]
        return page(table(("name", "share", "own µs", "all µs", "calls"), lines, words=(0,)))
