"""Causal graphs as pictures: one grammar of lines for files, pages and axes of matplotlib.

An edge is wider the larger the size of its weight is, dashed if the weight is below 0, and paler
the fewer samples of the rows have it. It has an arrow head, unless its direction is open. Beside a
known graph, colour and a mark on the line say whether it is right, reversed, extra or missing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any, NamedTuple

import numpy as np

from ._layered import bezier_points, edge_curves, letters, lines_of, place_nodes
from ._page import PHONE, colour, drawing_file, figure, short

__all__ = ["Edge", "Sketch"]

_WIDE = 760.0  # of rows, in pixels, if edges leave room; small graphs are stretched, at most
_STRETCH = (4.0, 1.4)  # factors across and down
_HEIGHT, _LETTER, _MARGIN = 22.0, 7.0, 12.0  # of a node, of a letter of 12 pixels, around all
_STEP, _PORT = 20.0, 7.0  # least height of a line of a list; room of one end of an edge there
_LINE = 20.0  # of the legend
_PALE, _MARK = 0.5, 4.5  # opacity of an edge that no sample has; half the width of a mark
_DASHES = (6, 4)

#: Colour, mark and words of the kinds of edges; "" where no graph is known.
_KINDS = {
    "": ("--edge", "", ""),
    "right": ("--series-3", "", "right: in the known graph too"),
    "reversed": ("--series-4", "D", "reversed in the known graph"),
    "extra": ("--series-2", "X", "extra: not in the known graph"),
    "missing": ("--muted", "o", "missing: in the known graph only"),
}
#: Outlines of the marks, by their names in matplotlib, from -1 to 1.
_OUTLINES = {
    "D": "M0 -1.2L1.2 0L0 1.2L-1.2 0Z",
    "X": "M-1 -1L1 1M-1 1L1 -1",
    "o": "M-1 0A1 1 0 1 1 1 0A1 1 0 1 1 -1 0Z",
}


@dataclass(frozen=True)
class Edge:
    """An edge of a picture between two of its nodes, by their numbers."""

    cause: int
    effect: int
    weight: float
    title: str  #: what it says under the pointer
    frequency: float | None = None  #: share of the samples that have it
    open: bool = False  #: whether its direction cannot be told
    kind: str = ""  #: of ``_KINDS``
    columns: tuple[int, int] = (0, 0)  #: its nodes by their numbers in the graph


class _Line(NamedTuple):
    """An edge that has a place. Points are in pixels, y down."""

    edge: Edge
    curve: np.ndarray  # [1 + 3k, 2]: cubic pieces
    head: np.ndarray | None  # [3, 2]
    middle: np.ndarray  # where its mark is
    width: float


class _Box(NamedTuple):
    """A node that has a place: a box around its name, or a dot beside it if it has no size."""

    node: int
    x: float
    y: float
    width: float


class Drawing(NamedTuple):
    lines: list[_Line]
    boxes: list[_Box]
    width: float
    height: float


class _Key(NamedTuple):
    """One entry of the legend."""

    text: str
    paint: str
    width: float = 2.0
    dashed: bool = False
    opacity: float = 1.0
    mark: str = ""


@dataclass(frozen=True)
class Sketch:
    """A graph to draw: in rows for wide screens, files and papers, and for narrow screens."""

    title: str
    names: list[str]
    edges: list[Edge]
    columns: list[int]  #: numbers of the nodes in the graph
    chosen: set[int]  #: nodes around which it is drawn
    notes: list[str]  #: lines below the legend
    kinds: Counter[str]  #: how many edges of each kind the whole graph has

    def svg(self) -> str:
        """The picture for wide screens, in the colours of its page."""
        return self._svg(self._in_rows(_WIDE))

    def narrow_svg(self) -> str:
        """The picture for a phone: rows if there is room, or else one node a line."""
        rows = self._in_rows(PHONE)
        return self._svg(rows if rows.width <= PHONE else self._listed())

    def inches(self) -> tuple[float, float]:
        """The size of a figure of matplotlib for the picture, without its legend."""
        drawing = self._in_rows(_WIDE)
        return drawing.width / 100, drawing.height / 100

    @cached_property
    def _largest(self) -> float:
        return max((abs(e.weight) for e in self.edges if e.kind != "missing"), default=0.0)

    def _width(self, edge: Edge) -> float:
        largest = self._largest
        share = abs(edge.weight) / largest if largest and edge.kind != "missing" else 0.0
        return 1.0 + 2.5 * share

    @cached_property
    def _pairs(self) -> list[tuple[int, int]]:
        return [(edge.cause, edge.effect) for edge in self.edges]

    @cached_property
    def _rows(self) -> tuple[list[float], np.ndarray, list]:
        """The widths of the nodes, and the places of nodes and edges in rows."""
        ends = Counter(effect for _, effect in self._pairs)
        widths = [
            max(34.0, 14 + _LETTER * letters(short(name, 24)), min(12.0 * ends[node], 130.0))
            for node, name in enumerate(self.names)
        ]
        return widths, *place_nodes(self._pairs, widths, _WIDE - 2 * _MARGIN)

    def _in_rows(self, target: float) -> Drawing:
        """Every node below its causes."""
        if not self.names:
            return Drawing([], [], target, 2 * _MARGIN)
        widths, places, bends = self._rows
        middles = np.concatenate([places, *(np.reshape(each, (-1, 2)) for each in bends)])
        span = np.ptp(middles[:, 0])
        halves = np.array(widths) / 2
        around = np.ptp(np.concatenate([places[:, 0] - halves, places[:, 0] + halves])) - span
        room = (target - 2 * _MARGIN - 20 - max(around, 0)) / span if span > 0 else 1.0
        across = float(np.clip(room, 1.0, _STRETCH[0]))
        scale = np.array([across, min(across, _STRETCH[1]) if target > PHONE else 1.0])
        places, bends = places * scale, [np.reshape(each, (-1, 2)) * scale for each in bends]
        curves, rooms = edge_curves(self._pairs, places, bends, widths, _HEIGHT)
        outer = [places[:, 0] - halves, places[:, 0] + halves, *(each[:, 0] for each in curves)]
        left = float(np.concatenate(outer).min()) - _MARGIN
        width = float(np.concatenate(outer).max()) - left + _MARGIN
        wide = max(width, min(target, _WIDE))
        origin = np.array([left - (wide - width) / 2, -_MARGIN - _HEIGHT / 2])
        down = np.array([1.0, -1.0])
        depth = max(float(-each[:, 1].min()) for each in [places, *curves])
        lines = [
            self._line(edge, points * down - origin, room)
            for edge, points, room in zip(self.edges, curves, rooms)
        ]
        middles = (places * down - origin).tolist()
        boxes = [_Box(node, x, y, widths[node]) for node, (x, y) in enumerate(middles)]
        return Drawing(lines, boxes, wide, depth + _HEIGHT + 2 * _MARGIN)

    def _line(self, edge: Edge, points: np.ndarray, room: float) -> _Line:
        """An edge through points; its head is no wider than the room that it has at its node."""
        width = self._width(edge)
        size = 4.5 + 1.4 * width
        level = points[0, 1] == points[-1, 1]
        towards = -1.0 if not level and points[-2, 1] < points[-1, 1] else 1.0  # from above, below
        end, side = points[-1], np.array([min(size / 2.4, room / 2 - 0.5), 0.0])
        base = end + (0.0, towards * size)
        if not edge.open and not level:
            points = np.concatenate([points[:-1], [base]])
        half = (len(points) - 1) // 2
        middle = points[1] if level else (points[half] + points[half + 1]) / 2
        head = None if edge.open else np.stack([end, base + side, base - side])
        return _Line(edge, bezier_points(points), head, middle, width)

    def _listed(self) -> Drawing:
        """One node a line, below its causes; edges are arcs beside the names, as wide as a phone,
        whatever the number of nodes."""
        pairs = self._pairs
        line = lines_of(len(self.names), pairs)
        ports: dict[int, list[tuple[float, int, int]]] = defaultdict(list)
        for number, (cause, effect) in enumerate(pairs):
            for end, (own, other) in enumerate(((cause, effect), (effect, cause))):
                step = line[other] - line[own]
                # From the top: nearest ones above to farthest, then farthest ones below to nearest.
                ports[own].append((-1 / step if step < 0 else 2 + 1 / -step, number, end))
        heights = [max(_STEP, _PORT * len(ports[node]) + 6) for node in range(len(self.names))]
        top, middles, ends = 4.0, {}, {}
        for node in sorted(range(len(self.names)), key=line.__getitem__):
            middles[node] = top + heights[node] / 2
            for at, (_, number, end) in enumerate(sorted(ports[node])):
                ends[number, end] = middles[node] + _PORT * (at - (len(ports[node]) - 1) / 2)
            top += heights[node]
        labels = [short(name) for name in self.names]
        named = max((_LETTER * letters(label) for label in labels), default=0.0)
        x = min(named, PHONE / 2) + 8
        longest = max((abs(line[i] - line[j]) for i, j in pairs), default=1.0)
        lines = []
        for number, edge in enumerate(self.edges):
            span = abs(line[edge.cause] - line[edge.effect]) / longest
            bulge = (PHONE - x - 8) * span**0.6 / 0.75  # a cubic arc reaches 3/4 of its controls
            begin, goal, width = ends[number, 0], ends[number, 1], self._width(edge)
            size = 4.5 + 1.2 * width
            side = min(size / 2.4, _PORT / 2 - 0.5)
            stop = x if edge.open else x + size
            curve = [(x, begin), (x + bulge, begin), (x + bulge, goal), (stop, goal)]
            head = None if edge.open else [(x, goal), (stop, goal - side), (stop, goal + side)]
            middle = np.array([x + 0.75 * bulge, (begin + goal) / 2])
            lines.append(
                _Line(
                    edge, np.array(curve), None if head is None else np.array(head), middle, width
                )
            )
        boxes = [_Box(node, x - 5, middles[node], 0.0) for node in range(len(self.names))]
        return Drawing(lines, boxes, PHONE, top + 4)

    def _keys(self) -> list[_Key]:
        """What lines mean; only what the picture has."""
        largest, edges = self._largest, self.edges
        plain = "--edge" if set(self.kinds) <= {""} else "--ink"
        keys = [_Key(f"wider: larger |weight|, up to {figure(largest)}", plain, 3.5)] * bool(edges)
        if any(edge.weight < 0 for edge in edges):
            keys.append(_Key("dashed: weight below 0", plain, dashed=True))
        if any(edge.frequency is not None for edge in edges):
            keys.append(_Key("strong colour: in all samples", plain))
            keys.append(_Key("pale colour: in few samples", plain, opacity=_PALE))
        if any(edge.open for edge in edges):
            keys.append(_Key("no arrow head: either direction", plain))
        for kind, (paint, mark, words) in _KINDS.items():
            if kind and self.kinds[kind]:
                keys.append(_Key(f"{words} ({self.kinds[kind]:,})", paint, mark=mark))
        return keys

    def _svg(self, drawing: Drawing) -> str:
        parts = [_svg_line(line) for line in drawing.lines]
        parts += [self._svg_box(box) for box in drawing.boxes]
        legend, height = _svg_legend(self._keys(), self.notes, drawing.width, drawing.height)
        return drawing_file(self.title, drawing.width, height, [*parts, *legend])

    def _svg_box(self, box: _Box) -> str:
        name, chosen = self.names[box.node], box.node in self.chosen
        kind = ' class="chosen"' if chosen else ' class="node"'
        text = f'<g data-column="{self.columns[box.node]}"{kind}><title>{escape(short(name, 60))}'
        text += "</title>"
        if not box.width:
            bold = ' font-weight="bold"' if chosen else ""
            return (
                f'{text}<text x="{box.x - 2:.1f}" y="{box.y + 4:.1f}" text-anchor="end"{bold} '
                f'style="fill: var(--ink)">{escape(short(name))}</text><circle '
                f'cx="{box.x + 3:.1f}" cy="{box.y:.1f}" r="2.5" style="fill: var(--ink)"/></g>'
            )
        return (
            f'{text}<rect x="{box.x - box.width / 2:.1f}" y="{box.y - _HEIGHT / 2:.1f}" '
            f'width="{box.width:.1f}" height="{_HEIGHT:.0f}" rx="6" stroke-width="'
            f'{2.5 if chosen else 1}" style="fill: var(--card); stroke: var(--ink)"/>'
            f'<text x="{box.x:.1f}" y="{box.y + 4:.1f}" text-anchor="middle" '
            f'style="fill: var(--ink)">{escape(short(name, 24))}</text></g>'
        )

    def to_axes(self, axes: Any) -> None:
        """Draws the picture for wide screens into axes of matplotlib, in the light colours."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import FancyBboxPatch, PathPatch, Polygon
        from matplotlib.path import Path

        drawing = self._in_rows(_WIDE)
        axes.set(xlim=(0, drawing.width), ylim=(drawing.height, 0), aspect="equal")
        axes.set_axis_off()
        box = axes.get_position().transformed(axes.figure.transFigure)
        point = min(box.width / drawing.width, box.height / drawing.height) * 72 / axes.figure.dpi
        for edge, curve, head, middle, width in drawing.lines:
            paint, mark, _ = _KINDS[edge.kind]
            look: dict[str, Any] = dict(color=colour(paint), alpha=_opacity(edge.frequency))
            codes = [Path.MOVETO] + [Path.CURVE4] * (len(curve) - 1)
            dashes = (0, tuple(d / width for d in _DASHES)) if edge.weight < 0 else "-"
            line: dict[str, Any] = dict(
                fill=False, linewidth=width * point, linestyle=dashes, capstyle="butt"
            )
            axes.add_patch(PathPatch(Path(curve, codes), **line, **look))
            if head is not None:
                axes.add_patch(Polygon(head, linewidth=0, **look))
            if mark:
                size = dict(markersize=2 * _MARK * point, markerfacecolor=colour("--card"))
                axes.plot(*middle, mark, **size, **look)
        ink, card = colour("--ink"), colour("--card")
        for node, x, y, width in drawing.boxes:
            corner = (x - width / 2, y - _HEIGHT / 2)
            frame: dict[str, Any] = dict(
                boxstyle="round,pad=0,rounding_size=6", facecolor=card, edgecolor=ink
            )
            thick = (2.5 if node in self.chosen else 1) * point
            axes.add_patch(FancyBboxPatch(corner, width, _HEIGHT, linewidth=thick, **frame))
            text = dict(ha="center", va="center", color=ink, fontsize=12 * point, parse_math=False)
            axes.text(x, y, short(self.names[node], 24), **text)
        keys = [
            Line2D([], [], color=colour(key.paint), linewidth=key.width * point, alpha=key.opacity,
                   linestyle=(0, _DASHES) if key.dashed else "-", marker=key.mark or None,
                   markersize=2 * _MARK * point, markerfacecolor=card, label=key.text)
            for key in self._keys()
        ]  # fmt: skip
        place = dict(loc="upper left", bbox_to_anchor=(0, 0), borderaxespad=0, frameon=False)
        axes.legend(handles=keys, ncols=2, fontsize=12 * point, labelcolor=ink, **place)


def _opacity(frequency: float | None) -> float:
    return 1.0 if frequency is None else _PALE + (1 - _PALE) * frequency**2


def _at(point: np.ndarray) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"


def _svg_line(line: _Line) -> str:
    edge = line.edge
    paint, mark, _ = _KINDS[edge.kind]
    i, j = edge.columns
    data = f'data-edge="" data-cause="{i}" data-effect="{j}" data-weight="{edge.weight:.6g}"'
    data += "" if edge.frequency is None else f' data-frequency="{edge.frequency:.6g}"'
    faint = _opacity(edge.frequency)
    faded = "" if faint == 1 else f' opacity="{faint:.3f}"'
    dashes = f' stroke-dasharray="{_DASHES[0]} {_DASHES[1]}"' if edge.weight < 0 else ""
    pieces = line.curve[1:].reshape(-1, 3, 2)
    path = f"M {_at(line.curve[0])}" + "".join(f" C {' '.join(map(_at, p))}" for p in pieces)
    text = (
        f"<g {data}{faded}><title>{escape(edge.title)}</title>"
        f'<path class="edge" d="{path}" style="fill: none; stroke: var({paint})" '
        f'stroke-width="{line.width:.2f}"{dashes}/>'
    )
    if line.head is not None:
        corners = " L ".join(map(_at, line.head))
        text += f'<path class="head" d="M {corners} Z" style="fill: var({paint})"/>'
    return text + _svg_mark(mark, paint, *line.middle.tolist()) + "</g>"


def _svg_mark(mark: str, paint: str, x: float, y: float) -> str:
    if not mark:
        return ""
    fill = "none" if mark == "X" else "var(--card)"
    return (
        f'<path class="mark" transform="translate({x:.1f} {y:.1f}) scale({_MARK})" d="'
        f'{_OUTLINES[mark]}" style="fill: {fill}; stroke: var({paint}); stroke-width: 0.5"/>'
    )


def _svg_legend(
    keys: list[_Key], notes: list[str], width: float, top: float
) -> tuple[list[str], float]:
    """What lines mean, from a height on, then notes, and the height of it all."""
    parts, x, y = [], _MARGIN, top + 8
    for key in keys:
        room = 46 + 6.6 * len(key.text)
        if x + room > width and x > _MARGIN:
            x, y = _MARGIN, y + _LINE
        dashes = f' stroke-dasharray="{_DASHES[0]} {_DASHES[1]}"' if key.dashed else ""
        parts.append(
            f'<g class="key"><line x1="{x:.0f}" y1="{y:.0f}" x2="{x + 26:.0f}" y2="{y:.0f}" '
            f'stroke-width="{key.width}" opacity="{key.opacity}"{dashes} style="stroke: '
            f'var({key.paint})"/>{_svg_mark(key.mark, key.paint, x + 13, y)}'
            f'<text x="{x + 32:.0f}" y="{y + 4:.0f}" style="fill: var(--muted)">{escape(key.text)}'
            "</text></g>"
        )
        x += room
    y += _LINE if keys else 0
    for note in notes:
        parts.append(
            f'<text x="{_MARGIN}" y="{y + 4:.0f}" style="fill: var(--muted)">{escape(note)}</text>'
        )
        y += _LINE
    return parts, y
