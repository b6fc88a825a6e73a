"""A recorded graph as a file for other programs: DOT, Mermaid, SVG, and HTML with the SVG in it.

The SVG is laid out here, so that nothing has to be installed: the result at the top, each node a
row below the lowest of those that use it.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from tensorcli.render.lines import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from tensorcli.findings import GraphDocument, GraphNode


def document(result: Any) -> dict[str, object]:
    """The fields of a graph that was asked for as a document."""
    return {"format": result.format, "text": text(result), "omitted": result.omitted}


def text(result: GraphDocument) -> str:
    """The file's text, with its final newline."""
    return WRITERS[result.format](list(_nodes(result.rows)))


def _nodes(rows: Iterable[GraphNode]) -> Iterable[GraphNode]:
    """Each node once; inputs that were cut off are left out."""
    return (row for row in rows if not row.repeated)


def _words(row: GraphNode) -> list[str]:
    """What stands in a node's box, line by line."""
    shape = "" if row.shape is None else str(list(row.shape))
    dtype = "" if row.dtype in (None, "float32") else str(row.dtype)
    name = "" if row.name is None else visible(row.name)
    if row.operation == "leaf":
        return [" ".join(filter(None, [name or "leaf", shape, dtype]))]
    lines = [row.operation, " ".join(filter(None, [name, shape, dtype]))]
    if row.line is not None:
        lines.append(f"line {row.line}")
    kept = list(dict.fromkeys(kept.name or kept.role for kept in row.saved))
    if kept:
        lines.append("keeps " + ", ".join(map(visible, kept)))
    return lines


def _edges(rows: Sequence[GraphNode]) -> list[tuple[int, int]]:
    known = {row.number for row in rows}
    return [(row.number, target) for row in rows for target in row.inputs if target in known]


def dot(rows: Sequence[GraphNode]) -> str:
    lines = ["digraph {", '  node [shape=box, fontname="monospace"];']
    for row in rows:
        label = "\\n".join(_dot_text(word) for word in _words(row))
        leaf = ", style=filled, fillcolor=lightblue" if row.operation == "leaf" else ""
        lines.append(f'  n{row.number} [label="{label}"{leaf}];')
    lines += [f"  n{source} -> n{target};" for source, target in _edges(rows)]
    return "\n".join([*lines, "}"]) + "\n"


def _dot_text(word: str) -> str:
    return word.replace("\\", "\\\\").replace('"', '\\"')


def mermaid(rows: Sequence[GraphNode]) -> str:
    lines = ["graph TD"]
    for row in rows:
        label = "<br/>".join(escape(word).replace("#", "&#35;") for word in _words(row))
        opening, closing = ("([", "])") if row.operation == "leaf" else ("[", "]")
        lines.append(f'  n{row.number}{opening}"{label}"{closing}')
    lines += [f"  n{source} --> n{target}" for source, target in _edges(rows)]
    return "\n".join(lines) + "\n"


CHARACTER, LINE_HEIGHT, PADDING, GAP_X, GAP_Y = 7.3, 16, 8, 24, 34


def svg(rows: Sequence[GraphNode]) -> str:
    words = {row.number: _words(row) for row in rows}
    widths = {n: max(map(len, w)) * CHARACTER + 2 * PADDING for n, w in words.items()}
    heights = {n: len(w) * LINE_HEIGHT + 2 * PADDING for n, w in words.items()}
    edges = _edges(rows)
    levels = _levels(rows, edges)
    across = max(
        sum(widths[n] for n in level) + GAP_X * (len(level) - 1) for level in levels if level
    )
    places: dict[int, tuple[float, float]] = {}
    top = float(GAP_X)
    for level in levels:
        taken = sum(widths[n] for n in level) + GAP_X * (len(level) - 1)
        left = GAP_X + (across - taken) / 2
        for number in level:
            places[number] = (left, top)
            left += widths[number] + GAP_X
        top += max(heights[n] for n in level) + GAP_Y
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{across + 2 * GAP_X:.0f}" '
        f'height="{top:.0f}" font-family="monospace" font-size="12">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>',
    ]
    for source, target in edges:
        (x1, y1), (x2, y2) = places[source], places[target]
        parts.append(
            f'<line x1="{x1 + widths[source] / 2:.1f}" y1="{y1 + heights[source]:.1f}" '
            f'x2="{x2 + widths[target] / 2:.1f}" y2="{y2:.1f}" stroke="black" '
            'marker-end="url(#tip)"/>'
        )
    for row in rows:
        x, y = places[row.number]
        fill = "#cfe8ff" if row.operation == "leaf" else "#ffffff"
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{widths[row.number]:.1f}" '
            f'height="{heights[row.number]}" rx="4" fill="{fill}" stroke="black"/>'
        )
        for at, word in enumerate(words[row.number]):
            parts.append(
                f'<text x="{x + PADDING:.1f}" y="{y + PADDING + 12 + at * LINE_HEIGHT:.1f}">'
                f"{escape(word)}</text>"
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _levels(rows: Sequence[GraphNode], edges: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The nodes by rows of the picture: each below all that use it."""
    users: dict[int, int] = dict.fromkeys((row.number for row in rows), 0)
    targets: dict[int, list[int]] = {}
    for source, target in edges:
        users[target] += 1
        targets.setdefault(source, []).append(target)
    depth = dict.fromkeys(users, 0)
    ready = [number for number, count in users.items() if count == 0]
    while ready:
        number = ready.pop()
        for target in targets.get(number, ()):
            depth[target] = max(depth[target], depth[number] + 1)
            users[target] -= 1
            if users[target] == 0:
                ready.append(target)
    levels: list[list[int]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
    for row in rows:
        levels[depth[row.number]].append(row.number)
    return levels


def html(rows: Sequence[GraphNode]) -> str:
    return (
        '<!DOCTYPE html>\n<html>\n<head><meta charset="utf-8"><title>graph</title></head>\n'
        f"<body>\n{svg(rows)}</body>\n</html>\n"
    )


WRITERS = {"dot": dot, "mermaid": mermaid, "svg": svg, "html": html}
