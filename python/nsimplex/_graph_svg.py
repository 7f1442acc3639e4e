"""Causal graphs as SVG: rows of columns from causes down to effects, or a list with arcs for narrow
screens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np

from ._layered import bezier_pieces, causal_order, edge_curves, letters, place_nodes

__all__ = ["WIDEST", "Drawing", "Node", "Paints", "Stroke", "in_rows", "listed", "neighbourhood"]

WIDEST = 940.0  #: of rows, in pixels, where their edges leave room for that
_HEIGHT = 22.0  # of a node, in pixels
_LETTER = 7.0  # width of a letter of 12 pixels
_MARGIN = 12.0
_STEP = 20.0  # from line to line of a list
_MOST_SIGNS = 40  # edges that are marked + or −


class Node(NamedTuple):
    """A column of a drawing."""

    label: str
    title: str
    attributes: str = ""
    chosen: bool = False


@dataclass(frozen=True)
class Stroke:
    """An edge of a drawing between two of its nodes, by their numbers."""

    cause: int
    effect: int
    colour: str  #: of CSS
    width: float
    title: str
    dashes: str = ""
    opacity: float = 1.0
    head: bool = True  #: whether it has an arrow head
    sign: str = ""
    attributes: str = ""


class Paints(NamedTuple):
    """Colours of CSS."""

    ink: str
    card: str


class Drawing(NamedTuple):
    """Elements of SVG in a box from (0, 0) to (width, height)."""

    parts: list[str]
    width: float
    height: float


def neighbourhood(pairs: Sequence[tuple[int, int]], centre: Sequence[int], most: int) -> set[int]:
    """The nodes to draw: all that have edges if there are few, or the strongest part.

    Args:
        pairs: edges, the strongest first.
        centre: nodes around which to draw. They come first, and then the node with the strongest
            edge to a drawn one, as long as there is room.
    """
    nodes = set(centre)
    everything = {node for pair in pairs for node in pair} | nodes
    if not centre and len(everything) <= most:
        return everything
    if not centre:
        for pair in pairs:
            if len(nodes | set(pair)) <= most:
                nodes |= set(pair)
        return nodes
    while len(nodes) < most:
        near = next((pair for pair in pairs if (pair[0] in nodes) != (pair[1] in nodes)), None)
        if near is None:
            break
        nodes |= set(near)
    return nodes


def in_rows(nodes: Sequence[Node], strokes: Sequence[Stroke], paints: Paints) -> Drawing:
    """Every column below its causes."""
    if not nodes:
        return Drawing([], 2 * _MARGIN, 2 * _MARGIN)
    widths = [max(34.0, 14 + _LETTER * letters(node.label)) for node in nodes]
    pairs = [(stroke.cause, stroke.effect) for stroke in strokes]
    places, bends = place_nodes(pairs, widths, WIDEST - 2 * _MARGIN)
    curves = edge_curves(pairs, places, bends, widths, _HEIGHT)
    halves = np.array(widths)[:, None] / 2
    ends = [places[:, :1] - halves, places[:, :1] + halves, *(each[:, :1] for each in curves)]
    across = np.concatenate(ends)
    depth = np.concatenate([places[:, 1], *(each[:, 1] for each in curves)])
    left = float(across.min()) - _MARGIN

    def at(point: Any) -> str:
        return f"{point[0] - left:.1f} {_MARGIN + _HEIGHT / 2 - point[1]:.1f}"

    parts = []
    for stroke, points in zip(strokes, curves):
        tip, short = _head(points, stroke.width)
        line = short if stroke.head else points
        pieces = "".join(f" C {at(a)} {at(b)} {at(end)}" for a, b, end in bezier_pieces(line))
        half = (len(points) - 1) // 2
        level = points[0][1] == points[-1][1]
        middle = at(points[1] if level else (points[half] + points[half + 1]) / 2)
        corners = " L ".join(map(at, tip))
        parts.append(_edge(stroke, f"M {at(line[0])}{pieces}", corners, middle, strokes, paints))
    for node, (x, y), wide in zip(nodes, places, widths):
        corner = at((x - wide / 2, y + _HEIGHT / 2)).split()
        parts.append(
            f"<g{node.attributes}><title>{escape(node.title)}</title>"
            f'<rect class="{"chosen" if node.chosen else "node"}" x="{corner[0]}" '
            f'y="{corner[1]}" width="{wide:.1f}" height="{_HEIGHT:.0f}" rx="6" '
            f'stroke-width="{2.5 if node.chosen else 1}" '
            f"{_paint('fill', paints.card, 'stroke', paints.ink)}/>"
            + _text(node.label, x - left, _MARGIN + _HEIGHT / 2 - y + 4, "middle", paints.ink)
            + "</g>"
        )
    width = float(across.max()) - float(across.min()) + 2 * _MARGIN
    return Drawing(parts, width, _HEIGHT + 2 * _MARGIN - float(depth.min()))


def listed(
    nodes: Sequence[Node], strokes: Sequence[Stroke], paints: Paints, width: float
) -> Drawing:
    """One column a line, below its causes; edges are arcs beside the names. It is as wide as the
    screen of a phone, whatever the number of columns."""
    pairs = [(stroke.cause, stroke.effect) for stroke in strokes]
    line = _lines(len(nodes), pairs)
    names = max((_LETTER * letters(node.label) for node in nodes), default=0.0)
    x = min(names, width / 2) + 8
    longest = max((abs(line[i] - line[j]) for i, j in pairs), default=1)
    parts = []

    def level(node: int) -> float:
        return _STEP * (line[node] + 0.5)

    for stroke in strokes:
        span = abs(line[stroke.cause] - line[stroke.effect]) / longest
        bulge = (width - x - 8) * span**0.6 / 0.75  # a cubic arc reaches 3/4 of its controls
        down = 1 if line[stroke.effect] > line[stroke.cause] else -1
        begin, end = level(stroke.cause) + 3 * down, level(stroke.effect) - 3 * down
        size = 5.0 + 1.2 * stroke.width
        stop = x + size if stroke.head else x
        path = f"M {x:.1f} {begin:.1f} C {x + bulge:.1f} {begin:.1f} {x + bulge:.1f} {end:.1f} "
        path += f"{stop:.1f} {end:.1f}"
        corners = f"{x:.1f} {end:.1f} L {x + size:.1f} {end - size / 2.4:.1f} "
        corners += f"L {x + size:.1f} {end + size / 2.4:.1f}"
        middle = f"{x + 0.75 * bulge:.1f} {(begin + end) / 2:.1f}"
        parts.append(_edge(stroke, path, corners, middle, strokes, paints))
    for at, node in enumerate(nodes):
        weight = ' font-weight="bold"' if node.chosen else ""
        parts.append(
            f"<g{node.attributes}{weight}><title>{escape(node.title)}</title>"
            + _text(node.label, x - 6, level(at) + 4, "end", paints.ink)
            + f'<circle cx="{x - 1:.1f}" cy="{level(at):.1f}" r="2.5" '
            f"{_paint('fill', paints.ink)}/></g>"
        )
    return Drawing(parts, width, _STEP * len(nodes))


def _lines(count: int, pairs: Sequence[tuple[int, int]]) -> dict[int, int]:
    """The line of each node, below those of its causes: near its causes or near its effects,
    whichever makes edges shorter."""
    early = causal_order(count, list(pairs))
    late = causal_order(count, [(effect, cause) for cause, effect in pairs])[::-1]
    both = [{node: at for at, node in enumerate(order)} for order in (early, late)]
    return min(both, key=lambda line: sum(abs(line[i] - line[j]) for i, j in pairs))


def _paint(*pairs: str) -> str:
    """Properties with their colours. Variables count in a style alone."""
    both = list(zip(pairs[::2], pairs[1::2]))
    if any("var(" in colour for _, colour in both):
        return f'style="{"; ".join(f"{name}: {colour}" for name, colour in both)}"'
    return " ".join(f'{name}="{colour}"' for name, colour in both)


def _text(label: str, x: float, y: float, anchor: str, colour: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {_paint("fill", colour)}>'
        f"{escape(label)}</text>"
    )


def _edge(
    stroke: Stroke, path: str, corners: str, middle: str, all_: Sequence[Stroke], paints: Paints
) -> str:
    """An edge with its head and its sign."""
    faint = "" if stroke.opacity == 1 else f' opacity="{stroke.opacity:.3f}"'
    dashes = f' stroke-dasharray="{stroke.dashes}"' if stroke.dashes else ""
    text = (
        f"<g{stroke.attributes}{faint}><title>{escape(stroke.title)}</title>"
        f'<path class="edge" d="{path}" {_paint("fill", "none", "stroke", stroke.colour)} '
        f'stroke-width="{stroke.width:.2f}"{dashes}/>'
    )
    if stroke.head:
        text += f'<path d="M {corners} Z" {_paint("fill", stroke.colour)}/>'
    if stroke.sign and len(all_) <= _MOST_SIGNS:
        x, y = map(float, middle.split())
        text += f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" {_paint("fill", paints.card)}/>'
        text += _text(stroke.sign, x, y + 4, "middle", stroke.colour)
    return text + "</g>"


def _head(points: np.ndarray, stroke: float) -> tuple[list[np.ndarray], np.ndarray]:
    """The corners of an arrow head at the end of an edge, and the edge without it."""
    size = 5.0 + 1.6 * stroke
    end = points[-1].copy()
    level = points[0][1] == points[-1][1]
    towards = -1.0 if not level and points[-2][1] > end[1] else 1.0  # down, or up from below
    base = end - np.array([0.0, towards * size])
    side = np.array([size / 2.4, 0.0])
    points = points.copy()
    if not level:
        points[-1] = base
    return [end, base + side, base - side], points
