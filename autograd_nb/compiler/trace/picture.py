"""A graph as an SVG picture: columns by depth, boxes for kernels, rounded ones for inputs and outputs."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

ACROSS, DOWN = 60, 20  #: from one box to the next
LETTER, LINE = 7, 15  #: of the text in boxes, which are as large as the longest and the most lines ask for
LONGEST = 30  #: letters of a line that are shown
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
    """Return the SVG text of boxes (lines of text, kind, column), the kinds being those of COLOURS, and of lines from one to another."""
    texts = [[part if len(part) <= LONGEST else part[: LONGEST - 1] + "…" for part in text.split("\n")] for text, _, _ in boxes]
    wide = 24 + LETTER * max((len(part) for text in texts for part in text), default=0)
    high = 16 + LINE * max(map(len, texts), default=0)
    columns = [column for _, _, column in boxes]
    for k in {a for a, _ in lines} - {b for _, b in lines}:  # what is made of nothing stands right before what first needs it
        columns[k] = min(boxes[b][2] for a, b in lines if a == k) - 1
    rows: dict[int, int] = {}
    places = []
    for column in columns:
        places.append((20 + column * (wide + ACROSS), 20 + rows.get(column, 0) * (high + DOWN)))
        rows[column] = rows.get(column, 0) + 1
    width = 40 + max((x for x, _ in places), default=0) + wide
    height = 40 + max((y for _, y in places), default=0) + high
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for a, b in lines:
        (x0, y0), (x1, y1) = places[a], places[b]
        x0, y0, y1 = x0 + wide, y0 + high // 2, y1 + high // 2
        bend = max((x1 - x0) // 2, 20)
        d = f"M{x0} {y0} C{x0 + bend} {y0} {x1 - bend} {y1} {x1} {y1}"
        parts.append(f'<path data-a="{a}" data-b="{b}" d="{d}" fill="none" stroke="#888"/>')
    for (text, kind, _), shown, (x, y) in zip(boxes, texts, places, strict=True):
        middle = x + wide // 2
        top = y + high // 2 + 4 - LINE * (len(shown) - 1) // 2
        words = "".join(f'<tspan x="{middle}" y="{top + LINE * i}">{escape(part)}</tspan>' for i, part in enumerate(shown))
        parts.append(
            f'<g class="n"><title>{escape(text)}</title>'
            f'<rect x="{x}" y="{y}" width="{wide}" height="{high}" rx="{16 if kind != "kernel" else 4}" fill="{COLOURS[kind]}" stroke="#555"/>'
            f'<text text-anchor="middle">{words}</text>'
            f'<text class="mark" x="{x + wide - 4}" y="{y + 12}" text-anchor="end" font-size="10" fill="#c30"></text></g>'
        )
    return "\n".join([*parts, "</svg>", ""])
