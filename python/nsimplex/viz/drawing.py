"""Static SVG of tuples of tokens: arcs, triangles, polygons, and the attention graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from .._printable import printable
from .heaviest import LEFT_OUT

_INK, _MUTED, _QUERY, _TUPLE, _NEGATIVE = "#171a21", "#667085", "#d9580d", "#2563eb", "#c0262d"
_STEP, _MARGIN, _LONGEST = 46, 60, 12
_MOST_NUMBERS = 16  # rows of a matrix whose numbers are written
_Tuple = tuple[tuple[int, ...], float]
_Label = Callable[[int], str]


def short_label(label: str) -> str:
    """A label on one line of at most 12 letters."""
    text = printable(label) or '""'
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def tuples_svg(query: int, tuples: Sequence[_Tuple], label: _Label) -> str:
    """The drawing of the heaviest tuples of one query."""
    nodes = sorted({query, *(key for keys, _ in tuples for key in keys)} - {LEFT_OUT})
    order = len(tuples[0][0]) if tuples else 1
    title = f"heaviest tuples of query {query}, order {order}"
    return (
        _arcs(
            title,
            nodes,
            [(query, keys[0], weight, _TUPLE) for keys, weight in tuples],
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
    colours = [_NEGATIVE if curvature < 0 else _TUPLE for curvature in curvatures]
    arcs = [(e[0], e[1], w, c) for e, w, c in zip(edges, weights, colours, strict=True)]
    notes = ["" if math.isnan(c) else f", curvature {c:g}" for c in curvatures]
    return _arcs("attention graph", nodes, arcs, label, None, notes)


def matrix_svg(
    title: str,
    names: Sequence[str],
    values: Sequence[Sequence[float]],
    notes: Sequence[str],
    ends: Sequence[int],
) -> str:
    """Numbers from 0 to 1 of every two entries as squares; lines after the entries ``ends``."""
    count = len(names)
    side = 34 if count <= _MOST_NUMBERS else 16
    left, top = 12 + 7 * max(map(len, names)), 22
    parts = []
    for row, numbers in enumerate(values):
        for column, value in enumerate(numbers):
            known = not math.isnan(value)
            x, y = left + side * column, top + side * row
            said = f"{value:.2f}" if known else "none"
            paint = f'fill="{_TUPLE}" fill-opacity="{value:.2f}"' if known else 'fill="none"'
            parts.append(
                f'<rect x="{x}" y="{y}" width="{side}" height="{side}" stroke="#e3e6eb" {paint}>'
                f"<title>{escape(f'{notes[row]} and {notes[column]}: {said}')}</title></rect>"
            )
            if known and count <= _MOST_NUMBERS:
                ink = "#fff" if value > 0.55 else _INK
                parts.append(
                    f'<text x="{x + side // 2}" y="{y + side // 2 + 4}" fill="{ink}" '
                    f'font-size="11" text-anchor="middle" pointer-events="none">{said}</text>'
                )
    for place, name in enumerate(names):
        middle = side * place + side // 2
        parts.append(
            f'<text x="{left - 6}" y="{top + middle + 4}" fill="{_INK}" font-size="11" '
            f'text-anchor="end">{escape(name)}</text>'
        )
        if count <= _MOST_NUMBERS:
            parts.append(
                f'<text x="{left + middle}" y="{top - 7}" fill="{_INK}" font-size="11" '
                f'text-anchor="middle">{escape(name)}</text>'
            )
    length = side * count
    for end in ends:
        at = side * end
        parts.append(
            f'<path d="M{left} {top + at}h{length}M{left + at} {top}v{length}" stroke="{_INK}" '
            'stroke-width="2"/>'
        )
    return _file(title, left + length + 10, top + length + 10, parts)


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
            f'fill="none" stroke="{colour}" stroke-opacity="{_strength(weight, most):.2f}" '
            f'stroke-width="{1 + 4 * _strength(weight, most):.1f}" class="arc"'
        )
        if a == b:
            shape = f'<circle cx="{at[a]:.0f}" cy="{ground - 9:.0f}" r="8" {style}>'
            parts.append(f"{shape}<title>{note}</title></circle>")
            continue
        height = min(span / 2, 260)
        shape = (
            f'<path d="M{at[a]:.0f} {ground:.0f}A{span / 2:.1f} {height:.1f} 0 0 '
            f'{int(at[a] < at[b])} {at[b]:.0f} {ground:.0f}" {style}>'
        )
        parts.append(f"{shape}<title>{note}</title></path>")
    for node in nodes:
        colour = _QUERY if node == query else _INK
        parts.append(f'<circle cx="{at[node]:.0f}" cy="{ground:.0f}" r="4" fill="{colour}"/>')
        parts.append(
            f'<text x="{at[node]:.0f}" y="{ground + 18:.0f}" fill="{colour}" '
            f'text-anchor="middle">{escape(short_label(label(node)))}</text>'
            f'<text x="{at[node]:.0f}" y="{ground + 32:.0f}" fill="{_MUTED}" font-size="9" '
            f'text-anchor="middle">{node}</text>'
        )
    return _file(title, width, ground + 44, parts)


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
        points = [point(node, radius) for node in corners]
        strength = _strength(weight, most)
        note = f"<title>{_note(label, (query, *keys), weight)}</title>"
        kind = ("loop", "edge", "triangle")[len(corners) - 1] if len(corners) < 4 else "hyperedge"
        paint = (
            f'class="{kind}" fill="{_TUPLE}" fill-opacity="{0.45 * strength:.2f}" '
            f'stroke="{_TUPLE}" stroke-opacity="{strength:.2f}" stroke-linejoin="round" '
            f'stroke-width="{1 + 2 * strength:.1f}"'
        )
        if len(points) == 1:
            ((x, y),) = points
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="10" {paint}>{note}</circle>')
        elif len(points) == 2:
            (a, b), (c, d) = points
            parts.append(
                f'<line x1="{a:.1f}" y1="{b:.1f}" x2="{c:.1f}" y2="{d:.1f}" {paint}>{note}</line>'
            )
        else:
            corner = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            parts.append(f'<polygon points="{corner}" {paint}>{note}</polygon>')
    for node in nodes:
        colour = _QUERY if node == query else _INK
        (x, y), (u, v) = point(node, radius), point(node, radius + 14)
        side = math.cos(angle[node])
        anchor = "middle" if abs(side) < 0.2 else ("start" if side > 0 else "end")
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
        parts.append(
            f'<text x="{u:.1f}" y="{v + 4:.1f}" fill="{colour}" text-anchor="{anchor}">'
            f'{escape(short_label(label(node)))} <tspan fill="{_MUTED}" font-size="9">{node}'
            "</tspan></text>"
        )
    return _file(title, 2 * centre, 2 * centre, parts)


def _strength(weight: float, most: float) -> float:
    return 0.15 + 0.85 * weight / most if most > 0 else 0.15


def _note(label: _Label, nodes: Sequence[int], weight: float) -> str:
    names = ", ".join(
        label(node) if node == LEFT_OUT else f"{short_label(label(node))} {node}" for node in nodes
    )
    return escape(f"({names}): {100 * weight:.2f} %")


def _file(title: str, width: float, height: float, parts: list[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{escape(title)}" '
        'font-family="sans-serif" font-size="12">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>\n"
    )
