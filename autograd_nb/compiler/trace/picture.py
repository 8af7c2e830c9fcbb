"""A graph as an SVG picture: columns by depth, boxes for kernels, rounded ones for inputs and outputs."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

WIDTH, HEIGHT, ACROSS, DOWN = 150, 34, 210, 54  #: of a box, and from one to the next
COLOURS = {"input": "#d8ecff", "kernel": "#f4f4f4", "output": "#dff5dc"}


def picture(graph: Any) -> str:
    """Return the picture of a graph as SVG text."""
    boxes: list[tuple[str, str, int]] = []  # (text, kind, column)
    writer: dict[int, int] = {}  # buffer -> box
    lines: list[tuple[int, int]] = []
    for name in graph.inputs:
        writer[graph.values[name].buffer.number] = len(boxes)
        boxes.append((repr(graph.values[name]), "input", 0))
    for step in graph.steps:
        if step.check is not None:
            continue
        sources = sorted({writer[u.buffer.number] for u, _ in step.uses() if u.buffer.number in writer})
        me = len(boxes)
        boxes.append((step.name, "kernel", 1 + max((boxes[s][2] for s in sources), default=0)))
        lines += [(s, me) for s in sources]
        for u, written in step.uses():
            if written:
                writer[u.buffer.number] = me
    for name in graph.outputs:
        source = writer.get(graph.values[name].buffer.number)
        boxes.append((repr(graph.values[name]), "output", 1 + (boxes[source][2] if source is not None else 0)))
        if source is not None:
            lines.append((source, len(boxes) - 1))
    return layered(boxes, lines)


def layered(boxes: list[tuple[str, str, int]], lines: list[tuple[int, int]]) -> str:
    """Return the SVG text of boxes (text, kind, column), the kinds being those of COLOURS, and of lines from one to another."""
    rows: dict[int, int] = {}
    places = []
    for _, _, column in boxes:
        places.append((20 + column * ACROSS, 20 + rows.get(column, 0) * DOWN))
        rows[column] = rows.get(column, 0) + 1
    width = 40 + max((x for x, _ in places), default=0) + WIDTH
    height = 40 + max((y for _, y in places), default=0) + HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for a, b in lines:
        (x0, y0), (x1, y1) = places[a], places[b]
        x0, y0, y1 = x0 + WIDTH, y0 + HEIGHT // 2, y1 + HEIGHT // 2
        bend = max((x1 - x0) // 2, 20)
        d = f"M{x0} {y0} C{x0 + bend} {y0} {x1 - bend} {y1} {x1} {y1}"
        parts.append(f'<path data-a="{a}" data-b="{b}" d="{d}" fill="none" stroke="#888"/>')
    for (text, kind, _), (x, y) in zip(boxes, places, strict=True):
        shown = text if len(text) <= 22 else text[:21] + "…"
        round_ = 16 if kind != "kernel" else 4
        parts.append(
            f'<g class="n"><title>{escape(text)}</title>'
            f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="{round_}" fill="{COLOURS[kind]}" stroke="#555"/>'
            f'<text x="{x + WIDTH // 2}" y="{y + HEIGHT // 2 + 4}" text-anchor="middle">{escape(shown)}</text>'
            f'<text class="mark" x="{x + WIDTH - 4}" y="{y + 12}" text-anchor="end" font-size="10" fill="#c30"></text></g>'
        )
    return "\n".join([*parts, "</svg>", ""])
