"""Static SVG of tuples of tokens: arcs, triangles, polygons, and the attention graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from .._page import drawing_file, short
from .heaviest import LEFT_OUT

INK, MUTED, _LINE = "var(--ink)", "var(--muted)", "var(--line)"
QUERY, TUPLE, _NEGATIVE = "var(--series-2)", "var(--series-1)", "var(--bad)"
LONGEST = 12  #: letters of a label
_STEP, _MARGIN = 46, 60
_DARKEST = 0.75  # opacity of a square, on which numbers stay readable in light and dark
_MOST_NUMBERS = 16  # rows of a matrix whose numbers are written
RING = 9  #: radius of a ring around a node
Point = tuple[float, float]
_Tuple = tuple[tuple[int, ...], float]
_Label = Callable[[int], str]


def tuples_svg(query: int, tuples: Sequence[_Tuple], label: _Label) -> str:
    """The drawing of the heaviest tuples of one query."""
    nodes = sorted({query, *(key for keys, _ in tuples for key in keys)} - {LEFT_OUT})
    order = len(tuples[0][0]) if tuples else 1
    title = f"heaviest tuples of query {query}, order {order}"
    return (
        _arcs(
            title,
            nodes,
            [(query, keys[0], weight, TUPLE) for keys, weight in tuples],
            label,
            query,
        )
        if order == 1
        else _circle(title, query, nodes, tuples, label)
    )


def graph_svg(
    edges: Sequence[Sequence[int]],
    weights: Sequence[float],
    curvatures: Sequence[float],
    label: _Label,
) -> str:
    """The attention graph: arcs from queries to keys, red where the curvature is negative."""
    nodes = sorted({node for edge in edges for node in edge})
    colours = [_NEGATIVE if curvature < 0 else TUPLE for curvature in curvatures]
    arcs = [(e[0], e[1], w, c) for e, w, c in zip(edges, weights, colours, strict=True)]
    notes = ["" if math.isnan(c) else f", curvature {c:g}" for c in curvatures]
    return _arcs("attention graph", nodes, arcs, label, None, notes)


def matrix_svg(
    title: str,
    values: Sequence[Sequence[float]],
    notes: Sequence[str],
    layers: Sequence[int],
) -> str:
    """Numbers from 0 to 1 of every two heads as squares, with lines between the layers. `layers`
    has the number of heads of each layer. Heads are named layer.head, and many of them by their
    layers alone."""
    count = len(notes)
    few = count <= _MOST_NUMBERS
    side = 34 if few else 13
    ends = [sum(layers[: at + 1]) for at in range(len(layers))]
    if few:
        names = [f"{at}.{head}" for at, own in enumerate(layers) for head in range(own)]
        middles = [side * (at + 0.5) for at in range(count)]
    else:
        names = [f"layer {at}" for at in range(len(layers))]
        middles = [side * (end - own / 2) for end, own in zip(ends, layers, strict=True)]
    left, top = 12 + 7 * max(map(len, names)), 22
    parts = []
    for row, numbers in enumerate(values):
        for column, value in enumerate(numbers):
            known = not math.isnan(value)
            x, y = left + side * column, top + side * row
            said = f"{value:.2f}" if known else "none"
            paint = (
                f"fill: {TUPLE}; fill-opacity: {_DARKEST * value:.3f}" if known else "fill: none"
            )
            parts.append(
                f'<rect x="{x}" y="{y}" width="{side}" height="{side}" style="stroke: {_LINE}; '
                f'{paint}"><title>{escape(f"{notes[row]} and {notes[column]}: {said}")}</title>'
                "</rect>"
            )
            if known and few:
                centre = (x + side / 2, y + side / 2 + 4)
                parts.append(text(said, *centre, INK, "middle", ' pointer-events="none"'))
    for name, middle in zip(names, middles, strict=True):
        parts.append(text(name, left - 6, top + middle + 4, INK, "end"))
        if few:
            parts.append(text(name, left + middle, top - 7, INK, "middle"))
    length = side * count
    for end in ends[:-1]:
        at = side * end
        parts.append(
            f'<path d="M{left} {top + at}h{length}M{left + at} {top}v{length}" '
            f'style="stroke: {INK}; stroke-width: 2px"/>'
        )
    return drawing_file(title, left + length + 10, top + length + 10, parts)


def text(
    words: str, x: float, y: float, colour: str, anchor: str = "middle", more: str = ""
) -> str:
    """Words at a point. ``more``: other attributes."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more} style="fill: {colour}">'
        f"{escape(words)}</text>"
    )


def _arcs(
    title: str,
    nodes: list[int],
    arcs: Sequence[tuple[int, int, float, str]],
    label: _Label,
    query: int | None,
    notes: Sequence[str] | None = None,
) -> str:
    """Tokens on a line, with an arc for each pair."""
    at = {node: _MARGIN + _STEP * place for place, node in enumerate(nodes)}
    width = 2 * _MARGIN + _STEP * max(len(nodes) - 1, 0)
    spans = [abs(at[a] - at[b]) for a, b, *_ in arcs]
    ground = 30 + min(max(spans, default=0) / 2, 260)
    most = max((weight for _, _, weight, _ in arcs), default=0.0)
    parts = []
    for place, ((a, b, weight, colour), span) in enumerate(zip(arcs, spans, strict=True)):
        note = _note(label, (a, b), weight) + (notes[place] if notes else "")
        style = (
            f'style="fill: none; stroke: {colour}" stroke-opacity="{_strength(weight, most):.2f}" '
            f'stroke-width="{1 + 4 * _strength(weight, most):.1f}" class="arc"'
        )
        if a == b:
            drawn = f'<circle cx="{at[a]:.0f}" cy="{ground - 9:.0f}" r="8" {style}>'
            parts.append(f"{drawn}<title>{escape(note)}</title></circle>")
            continue
        height = min(span / 2, 260)
        drawn = (
            f'<path d="M{at[a]:.0f} {ground:.0f}A{span / 2:.1f} {height:.1f} 0 0 '
            f'{int(at[a] < at[b])} {at[b]:.0f} {ground:.0f}" {style}>'
        )
        parts.append(f"{drawn}<title>{escape(note)}</title></path>")
    for node in nodes:
        colour = QUERY if node == query else INK
        parts.append(dot(at[node], ground, f"fill: {colour}"))
        parts.append(text(short(label(node), LONGEST), at[node], ground + 18, colour))
        parts.append(text(str(node), at[node], ground + 33, MUTED))
    return drawing_file(title, width, ground + 44, parts)


def dot(x: float, y: float, style: str, radius: int = 4, note: str = "") -> str:
    """A node; the note is its title."""
    title = f"<title>{escape(note)}</title>" if note else ""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" style="{style}">{title}</circle>'


def _circle(
    title: str, query: int, nodes: list[int], tuples: Sequence[_Tuple], label: _Label
) -> str:
    """Tokens on a circle, with a polygon for each tuple and its query."""
    radius = max(110.0, len(nodes) * 13.0)
    centre = radius + 90
    angle = {n: 2 * math.pi * i / max(len(nodes), 1) - math.pi / 2 for i, n in enumerate(nodes)}

    def point(node: int, length: float) -> tuple[float, float]:
        return (
            centre + length * math.cos(angle[node]),
            centre + length * math.sin(angle[node]),
        )

    most = max((weight for _, weight in tuples), default=0.0)
    parts = []
    for keys, weight in reversed(tuples):  # the heaviest on top
        corners = sorted({query, *keys} - {LEFT_OUT}, key=angle.__getitem__)
        strength = _strength(weight, most)
        kind = ("loop", "edge", "triangle")[len(corners) - 1] if len(corners) < 4 else "hyperedge"
        style = (
            f"fill: {TUPLE}; fill-opacity: {0.45 * strength:.2f}; stroke: {TUPLE}; "
            f"stroke-opacity: {strength:.2f}; stroke-width: {1 + 2 * strength:.1f}px"
        )
        points = [point(node, radius) for node in corners]
        parts.append(shape(points, style, kind, _note(label, (query, *keys), weight)))
    for node in nodes:
        colour = QUERY if node == query else INK
        (x, y), (u, v) = point(node, radius), point(node, radius + 14)
        side = math.cos(angle[node])
        anchor = "middle" if abs(side) < 0.2 else ("start" if side > 0 else "end")
        parts.append(dot(x, y, f"fill: {colour}"))
        parts.append(text(f"{short(label(node), LONGEST)} {node}", u, v + 4, colour, anchor))
    return drawing_file(title, 2 * centre, 2 * centre, parts)


def shape(points: Sequence[Point], style: str, kind: str, note: str) -> str:
    """Nodes joined: a ring around one, a line between two, or a polygon."""
    title = f"<title>{escape(note)}</title>" if note else ""
    if len(points) == 1:
        ((x, y),) = points
        shape = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RING}"'
        end = "circle"
    elif len(points) == 2:
        (a, b), (c, d) = points
        shape = f'<line x1="{a:.1f}" y1="{b:.1f}" x2="{c:.1f}" y2="{d:.1f}"'
        end = "line"
    else:
        x, y = (sum(each) / len(points) for each in zip(*points))
        around = sorted(points, key=lambda own: math.atan2(own[1] - y, own[0] - x))
        shape = '<polygon points="' + " ".join(f"{a:.1f},{b:.1f}" for a, b in around) + '"'
        end = "polygon"
    return f'{shape} class="{kind}" stroke-linejoin="round" style="{style}">{title}</{end}>'


def _strength(weight: float, most: float) -> float:
    return 0.15 + 0.85 * weight / most if most > 0 else 0.15


def _note(label: _Label, nodes: Sequence[int], weight: float) -> str:
    names = ", ".join(
        label(node) if node == LEFT_OUT else f"{short(label(node), LONGEST)} {node}"
        for node in nodes
    )
    return f"({names}): {100 * weight:.2f} %"
