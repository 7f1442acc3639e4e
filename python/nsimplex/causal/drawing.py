"""Pictures of causal graphs as SVG, alone or in an HTML page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from typing import Any

import torch

from .._arguments import checked, describe
from .._hints import Numbers
from .._printable import printable
from .._whole_file import require_kind, whole_file
from .graph_exports import KnownGraph, known_graph
from .graph_page import EdgeFacts, page_text

__all__ = ["GraphPicture", "draw_graph"]

_HEIGHT = 22.0  # of a node, in pixels
_LONGEST = 24  # letters of a name
_MOST_EDGES = 180
_MARGIN = 12.0
_LEGEND = 46.0
#: Colours from frequency 0 to 1 (on white at least 2.5 : 1), and of edges without a frequency.
_RARE, _SURE, _PLAIN = (0x7F, 0xA6, 0xC9), (0x08, 0x30, 0x6B), "#1f4e79"
_STYLE = (
    "text { font-family: system-ui, sans-serif; font-size: 12px; fill: #1a1a1a; } "
    ".small { font-size: 11px; fill: #555; } "
    ".edge:hover { stroke: #d95f02; } .chosen { stroke-width: 2.5; }"
)


class GraphPicture:
    """An SVG picture. A notebook shows it, and ``save`` writes it to a file.

    ``columns`` has the numbers of the columns that the picture shows, ``edges`` the pairs (cause,
    effect), ``facts`` the names and numbers of these edges, and ``hidden`` the number of edges that
    it leaves out.
    """

    def __init__(
        self,
        svg: str,
        columns: list[int],
        edges: list[tuple[int, int]],
        hidden: int,
        facts: Sequence[EdgeFacts] = (),
    ):
        self.svg, self.columns, self.edges, self.hidden = svg, columns, edges, hidden
        self.facts = list(facts)

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return (
            f"GraphPicture({len(self.columns)} columns, {len(self.edges)} edges, {self.hidden} "
            "hidden)"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture to an SVG file, or to an HTML page if the name ends in .html;
        completely or not at all.

        The page is one file and loads nothing. It shows the numbers of an edge or a column under
        the pointer or at a touch, lists the edges, and hides edges of a small weight or frequency.
        """
        page = str(os.fspath(path)).lower().endswith(".html")
        if not page and not str(os.fspath(path)).lower().endswith(".svg"):
            require_kind(path, ".svg or .html")
        with whole_file(path, encoding="utf-8") as file:
            file.write(self._page() if page else self.svg)

    def _page(self) -> str:
        return page_text(self.svg, self.facts, "Causal graph")


@checked
def draw_graph(
    graph: Any,
    names: Sequence[str] | None = None,
    *,
    columns: Sequence[str | int] = (),
    most: int = 60,
    scores: Numbers | None = None,
    frequencies: Numbers | None = None,
    low: Numbers | None = None,
    high: Numbers | None = None,
    reversible: Sequence[tuple[int, int]] = (),
) -> GraphPicture:
    """Draws a causal graph in layers, from causes at the top down to effects.

    An edge is wider the larger its |weight| is, and dashed if the weight is negative. With
    frequencies it is darker the surer it is. The title of an edge, which a browser shows under the
    pointer, has its numbers. Columns without edges are counted, not drawn.

    Args:
        graph: a fitted :class:`CausalGraph` or :class:`CausalPipeline`, or an adjacency matrix
            [M, M].
        names: of the columns; None: those of the estimator, or x0, x1, ..
        columns: names or numbers of columns around which to draw. They come first, and then the
            column with the strongest edge to a drawn one, as long as there is room.
        most: largest number of columns of the picture. Without ``columns``, a larger graph is
            reduced to its strongest edges. Strong means frequent, then of a high score, then of a
            large |weight|.
        scores, frequencies, low, high: [M, M], facts about the edges; an estimator has its own.
        reversible: edges that are drawn without a head, because their direction cannot be told
            (:attr:`CausalLimits.reversible`).

    Raises:
        ValueError, TypeError: the message names the argument.

    O(edges^2) at worst for the layers.
    """
    given = dict(scores=scores, frequencies=frequencies, low=low, high=high)
    whole = known_graph("draw_graph", graph, names, given)
    if most < 2:
        raise ValueError(f"[draw_graph] most: expected at least 2, got {most}")
    centre = [_column(whole.names, column) for column in columns]
    pairs = [(i, j) for i, j in whole.adjacency.nonzero().tolist()]
    strength = {(i, j): _strength(whole, i, j) for i, j in pairs}
    nodes = _neighbourhood(pairs, strength, centre, most)
    shown = [pair for pair in pairs if pair[0] in nodes and pair[1] in nodes]
    shown = sorted(shown, key=lambda pair: strength[pair], reverse=True)[:_MOST_EDGES]
    drawn = sorted({*centre, *(node for pair in shown for node in pair)})
    joined = {node for pair in pairs for node in pair}
    lone = len(whole.names) - len(joined | set(drawn))
    svg = _svg(whole, drawn, shown, set(centre), {(i, j) for i, j in reversible}, pairs, lone)
    facts = [_facts(whole, i, j) for i, j in shown]
    return GraphPicture(svg, drawn, shown, len(pairs) - len(shown), facts)


def _facts(graph: KnownGraph, i: int, j: int) -> EdgeFacts:
    own, weight = graph.said(i, j), graph.adjacency[i, j].item()
    known = [own.get(name) for name in ("scores", "frequencies", "low", "high")]
    return EdgeFacts(graph.names[i], graph.names[j], weight, *known)


def _column(names: list[str], column: str | int) -> int:
    if isinstance(column, str):
        if column not in names:
            raise ValueError(
                f"[draw_graph] columns: expected names of columns, got {describe(column)}"
            )
        return names.index(column)
    if not 0 <= column < len(names):
        raise ValueError(
            f"[draw_graph] columns: expected numbers below {len(names)}, got {describe(column)}"
        )
    return int(column)


def _strength(graph: KnownGraph, i: int, j: int) -> tuple[float, float, float]:
    own = graph.said(i, j)
    score = own.get("scores", 0.0)
    return (
        own.get("frequencies", 0.0),
        score if score == score else 0.0,
        abs(graph.adjacency[i, j].item()),
    )


def _neighbourhood(
    pairs: list[tuple[int, int]],
    strength: dict[tuple[int, int], tuple[float, float, float]],
    centre: list[int],
    most: int,
) -> set[int]:
    """The columns to draw: all that have edges, if there are few, or the strongest part."""
    nodes = set(centre)
    everything = {node for pair in pairs for node in pair} | nodes
    if not centre and len(everything) <= most:
        return everything
    waiting = sorted(pairs, key=lambda pair: strength[pair], reverse=True)
    if not centre:
        for pair in waiting:
            if len(nodes | set(pair)) <= most:
                nodes |= set(pair)
        return nodes
    while len(nodes) < most:
        near = next((pair for pair in waiting if (pair[0] in nodes) != (pair[1] in nodes)), None)
        if near is None:
            break
        nodes |= set(near)
    return nodes


def _short(name: str) -> str:
    text = printable(name) or '""'
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 9]}…{text[-8:]}"


def _number(value: float) -> str:
    return f"{value:.3g}".replace("-", "−")


def _colour(frequency: float | None) -> str:
    if frequency is None or frequency != frequency:
        return _PLAIN
    parts = (round(a + (b - a) * frequency) for a, b in zip(_RARE, _SURE))
    return "#" + "".join(f"{part:02x}" for part in parts)


def _title(graph: KnownGraph, i: int, j: int, loose: bool) -> str:
    own = graph.said(i, j)
    text = f"{printable(graph.names[i])} → {printable(graph.names[j])}: weight "
    text += _number(graph.adjacency[i, j].item())
    if all(own.get(end, torch.nan) == own.get(end) for end in ("low", "high")):
        text += f" [{_number(own['low'])}, {_number(own['high'])}]"
    if "frequencies" in own:
        text += f", in {own['frequencies']:.0%} of the samples"
    if "scores" in own:
        text += f", score {_number(own['scores'])}"
    return text + ("; the direction cannot be told" if loose else "")


def _svg(
    graph: KnownGraph,
    drawn: list[int],
    edges: list[tuple[int, int]],
    centre: set[int],
    reversible: set[tuple[int, int]],
    pairs: list[tuple[int, int]],
    lone: int,
) -> str:
    import numpy

    from .._layered import bezier_pieces, edge_curves, letters, place_nodes

    labels = [_short(graph.names[node]) for node in drawn]
    widths = [max(34.0, 14 + 7.0 * letters(label)) for label in labels]
    place = {node: at for at, node in enumerate(drawn)}
    own = [(place[i], place[j]) for i, j in edges]
    places, bends = place_nodes(own, widths) if drawn else (numpy.zeros((0, 2)), [])
    curves = edge_curves(own, places, bends, widths, _HEIGHT)
    halves = numpy.array(widths)[:, None] / 2
    across = [*(places[:, :1] - halves), *(places[:, :1] + halves), *(c[:, 0] for c in curves)]
    across = numpy.concatenate([numpy.zeros(1), *(numpy.ravel(each) for each in across)])
    depth = numpy.concatenate([numpy.zeros(1), places[:, 1], *(c[:, 1] for c in curves)])
    left, width = across.min() - _MARGIN, across.max() - across.min() + 2 * _MARGIN
    height = -depth.min() + _HEIGHT + 2 * _MARGIN + _LEGEND
    known = "frequencies" in graph.figures
    largest = max((abs(graph.adjacency[i, j].item()) for i, j in edges), default=0.0)
    loose_edges = bool(reversible & set(edges))
    legend, needed = _legend(height - _LEGEND + 12, known, largest, loose_edges)
    width = max(width, needed)

    def at(point: Any) -> str:
        return f"{point[0] - left:.1f} {_MARGIN + _HEIGHT / 2 - point[1]:.1f}"

    alt = f"Causal graph of {len(drawn)} columns with {len(edges)} edges, causes above effects"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{alt}">',
        f"<title>{alt}</title><style>{_STYLE}</style>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fff"/>',
    ]
    for (i, j), points in zip(edges, curves):
        weight = graph.adjacency[i, j].item()
        frequency = graph.figures["frequencies"][i, j].item() if known else None
        colour, loose = _colour(frequency), (i, j) in reversible
        stroke = 1.0 + 4.0 * abs(weight) / largest
        tip, short = _head(points, stroke)
        points = points if loose else short
        pieces = "".join(f" C {at(a)} {at(b)} {at(end)}" for a, b, end in bezier_pieces(points))
        dashes = ' stroke-dasharray="6 4"' if weight < 0 else ""
        parts.append(
            f"<g{_data(i, j, weight, frequency)}>"
            f"<title>{escape(_title(graph, i, j, loose))}</title>"
            f'<path class="edge" '
            f'd="M {at(points[0])}{pieces}" fill="none" stroke="{colour}" '
            f'stroke-width="{stroke:.2f}"{dashes}/>'
            + (
                ""
                if loose
                else f'<path d="M {" L ".join(at(corner) for corner in tip)} Z" fill="{colour}"/>'
            )
            + "</g>"
        )
    for node, label, (x, y), wide in zip(drawn, labels, places, widths):
        corner = at((x - wide / 2, y + _HEIGHT / 2)).split()
        parts.append(
            f'<g data-column="{node}"><title>{escape(printable(graph.names[node]))}</title>'
            f'<rect class="{"chosen" if node in centre else "node"}" x="{corner[0]}" '
            f'y="{corner[1]}" width="{wide:.1f}" height="{_HEIGHT:.0f}" rx="6" fill="#fff" '
            f'stroke="#1a1a1a"/><text x="{x - left:.1f}" y="{_MARGIN + _HEIGHT / 2 - y + 4:.1f}" '
            f'text-anchor="middle">{escape(label)}</text></g>'
        )
    parts += legend
    notes = [] if edges else ["no edges"]
    if len(edges) < len(pairs):
        notes.append(f"{len(edges)} of {len(pairs)} edges shown")
    if lone:
        notes.append(f"{lone} column{'s have' if lone > 1 else ' has'} no edges")
    if notes:
        parts.append(
            f'<text class="small" x="{_MARGIN}" y="{height - 8:.0f}">{"; ".join(notes)}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _data(i: int, j: int, weight: float, frequency: float | None) -> str:
    """Attributes of an edge, by which the scripts of a page find and hide it."""
    text = f' data-edge="" data-cause="{i}" data-effect="{j}" data-weight="{weight:.6g}"'
    return text if frequency is None else f'{text} data-frequency="{frequency:.6g}"'


def _head(points: Any, stroke: float) -> tuple[list[Any], Any]:
    """The corners of an arrow head at the end of an edge, and the edge without it."""
    import numpy

    size = 5.0 + 1.6 * stroke
    end = points[-1].copy()
    level = points[0][1] == points[-1][1]
    towards = -1.0 if not level and points[-2][1] > end[1] else 1.0  # down, or up from below
    base = end - numpy.array([0.0, towards * size])
    side = numpy.array([size / 2.4, 0.0])
    points = points.copy()
    if not level:
        points[-1] = base
    return [end, base + side, base - side], points


def _legend(y: float, known: bool, largest: float, loose: bool) -> tuple[list[str], float]:
    """What width, colour and dashes mean, and the room that it takes."""
    x, parts = _MARGIN, []

    def key(stroke: float, colour: str, text: str, dashes: str = "") -> None:
        nonlocal x
        parts.append(
            f'<line x1="{x:.0f}" y1="{y:.0f}" x2="{x + 24:.0f}" y2="{y:.0f}" stroke="{colour}" '
            f'stroke-width="{stroke}"{dashes}/><text class="small" x="{x + 29:.0f}" '
            f'y="{y + 4:.0f}">{text}</text>'
        )
        x += 44 + 6.4 * len(text)

    key(5, _PLAIN, f"|weight| {_number(largest)}")
    key(2, _PLAIN, "below 0", ' stroke-dasharray="6 4"')
    if known:
        key(3, _colour(0.0), "rare")
        key(3, _colour(1.0), "sure")
    if loose:
        key(2, _PLAIN, "no head: either way")
    return parts, x
