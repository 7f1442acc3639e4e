"""Pictures of causal graphs as SVG, alone or in an HTML page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from .._arguments import checked, checked_methods, describe
from .._printable import printable
from .._whole_file import require_kind, whole_file
from .columns import Columns, Names
from .graph_exports import KnownGraph, known_graph
from .graph_page import EdgeFacts, page_text

__all__ = ["GraphPicture", "draw_graph"]

_LONGEST, _LONGEST_LISTED = 24, 18  # letters of a name
_MOST_EDGES = 180
_MARGIN = 12.0
_LEGEND, _LINE = 46.0, 18.0  # height of one line of it with the notes, and of another line
_PHONE = 340.0  # width of a picture for a phone, in pixels
#: Colours from frequency 0 to 1 (on white at least 2.5 : 1), and of edges without a frequency.
_RARE, _SURE, _PLAIN = (0x7F, 0xA6, 0xC9), (0x08, 0x30, 0x6B), "#1f4e79"
_INK, _CARD = "#1a1a1a", "#fff"
_STYLE = (
    "text { font-family: system-ui, sans-serif; font-size: 12px; } "
    ".small { font-size: 11px; fill: #555; } "
    ".edge:hover { stroke: #d95f02; }"
)


@checked_methods
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
        narrow: str = "",
    ):
        self.svg, self.columns, self.edges, self.hidden = svg, columns, edges, hidden
        self.facts, self._narrow = list(facts), narrow

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
        A narrow screen shows columns below each other, each below its causes, with edges as arcs,
        if it has no room for the picture.
        """
        page = str(os.fspath(path)).lower().endswith(".html")
        if not page and not str(os.fspath(path)).lower().endswith(".svg"):
            require_kind(path, ".svg or .html")
        with whole_file(path, encoding="utf-8") as file:
            file.write(self._page() if page else self.svg)

    def _page(self) -> str:
        return page_text(self.svg, self._narrow, self.facts, "Causal graph")


@checked
def draw_graph(
    graph: Any,
    names: Names | None = None,
    *,
    columns: Sequence[str | int] = (),
    most: int = 60,
    scores: Any = None,
    frequencies: Any = None,
    low: Any = None,
    high: Any = None,
    reversible: Sequence[tuple[int, int]] = (),
) -> GraphPicture:
    """Draws a causal graph in rows, from causes at the top down to effects.

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
    known = Columns(whole.names, len(whole.names))
    centre = [_column(known, column) for column in columns]
    pairs = [(i, j) for i, j in whole.adjacency.nonzero().tolist()]
    strength = {(i, j): _strength(whole, i, j) for i, j in pairs}
    from .._graph_svg import neighbourhood  # needs numpy

    strongest = sorted(pairs, key=lambda pair: strength[pair], reverse=True)
    nodes = neighbourhood(strongest, centre, most)
    shown = [pair for pair in strongest if pair[0] in nodes and pair[1] in nodes][:_MOST_EDGES]
    drawn = sorted({*centre, *(node for pair in shown for node in pair)})
    joined = {node for pair in pairs for node in pair}
    lone = len(whole.names) - len(joined | set(drawn))
    loose = {(i, j) for i, j in reversible} & set(shown)
    svg, narrow = _pictures(whole, drawn, shown, set(centre), loose, len(pairs), lone)
    facts = [_facts(whole, i, j) for i, j in shown]
    return GraphPicture(svg, drawn, shown, len(pairs) - len(shown), facts, narrow)


def _facts(graph: KnownGraph, i: int, j: int) -> EdgeFacts:
    own, weight = graph.said(i, j), graph.adjacency[i, j].item()
    known = [own.get(name) for name in ("scores", "frequencies", "low", "high")]
    return EdgeFacts(graph.names[i], graph.names[j], weight, *known)


def _column(columns: Columns, column: str | int) -> int:
    found = columns.find(column)
    if found is None:
        known = columns.expected() if not isinstance(column, str) else "names of columns"
        raise ValueError(f"[draw_graph] columns: expected {known}, got {describe(column)}")
    return found


def _strength(graph: KnownGraph, i: int, j: int) -> tuple[float, float, float]:
    own = graph.said(i, j)
    score = own.get("scores", 0.0)
    return (
        own.get("frequencies", 0.0),
        score if score == score else 0.0,
        abs(graph.adjacency[i, j].item()),
    )


def _short(name: str, longest: int) -> str:
    text = printable(name) or '""'
    return (
        text
        if len(text) <= longest
        else f"{text[: longest - longest // 3 - 1]}…{text[-(longest // 3) :]}"
    )


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


def _pictures(
    graph: KnownGraph,
    drawn: list[int],
    edges: list[tuple[int, int]],
    centre: set[int],
    loose: set[tuple[int, int]],
    count: int,
    lone: int,
) -> tuple[str, str]:
    """The picture in rows, and one for narrow screens; empty if the first one is narrow enough."""
    from .._graph_svg import Node, Paints, Stroke, in_rows, listed

    known = "frequencies" in graph.figures
    largest = max((abs(graph.adjacency[i, j].item()) for i, j in edges), default=0.0)
    place = {node: at for at, node in enumerate(drawn)}
    strokes = []
    for i, j in edges:
        weight = graph.adjacency[i, j].item()
        frequency = graph.figures["frequencies"][i, j].item() if known else None
        strokes.append(
            Stroke(
                place[i],
                place[j],
                _colour(frequency),
                1.0 + 4.0 * abs(weight) / largest,
                _title(graph, i, j, (i, j) in loose),
                dashes="6 4" if weight < 0 else "",
                head=(i, j) not in loose,
                attributes=_data(i, j, weight, frequency),
            )
        )

    def nodes(longest: int) -> list[Node]:
        named = [(node, graph.names[node]) for node in drawn]
        return [
            Node(_short(name, longest), printable(name), f' data-column="{at}"', at in centre)
            for at, name in named
        ]

    notes = [] if edges else ["no edges"]
    if len(edges) < count:
        notes.append(f"{len(edges)} of {count} edges shown")
    if lone:
        notes.append(f"{lone} column{'s have' if lone > 1 else ' has'} no edges")
    paints, keys = Paints(_INK, _CARD), _keys(known, largest, bool(loose))
    what = f"Causal graph of {len(drawn)} columns with {len(edges)} edges, causes above effects"
    wide = in_rows(nodes(_LONGEST), strokes, paints)
    width = max(wide.width, min(_room(keys), _PHONE))
    svg = _svg(wide.parts, width, wide.height, keys, notes, what)
    if width <= _PHONE:
        return svg, ""
    small = listed(nodes(_LONGEST_LISTED), strokes, paints, _PHONE)
    return svg, _svg(small.parts, _PHONE, small.height + _MARGIN, keys, notes, what)


def _svg(
    drawing: list[str], width: float, height: float, keys: list[_Key], notes: list[str], what: str
) -> str:
    """A picture with what its strokes mean, and notes, below."""
    legend, lines = _legend(keys, width, height + 12)
    whole = height + _LEGEND + _LINE * (lines - 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {whole:.0f}" '
        f'width="{width:.0f}" height="{whole:.0f}" role="img" aria-label="{what}">',
        f"<title>{what}</title><style>{_STYLE}</style>",
        f'<rect width="{width:.0f}" height="{whole:.0f}" fill="{_CARD}"/>',
        *drawing,
        *legend,
    ]
    if notes:
        parts.append(
            f'<text class="small" x="{_MARGIN}" y="{whole - 8:.0f}">{"; ".join(notes)}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _data(i: int, j: int, weight: float, frequency: float | None) -> str:
    """Attributes of an edge, by which the scripts of a page find and hide it."""
    text = f' data-edge="" data-cause="{i}" data-effect="{j}" data-weight="{weight:.6g}"'
    return text if frequency is None else f'{text} data-frequency="{frequency:.6g}"'


class _Key(NamedTuple):
    """What a stroke means."""

    stroke: float
    colour: str
    text: str
    dashes: str = ""

    def room(self) -> float:
        return 44 + 6.4 * len(self.text)


def _keys(known: bool, largest: float, loose: bool) -> list[_Key]:
    keys = [_Key(5, _PLAIN, f"|weight| {_number(largest)}"), _Key(2, _PLAIN, "below 0", "6 4")]
    if known:
        keys += [_Key(3, _colour(0.0), "rare"), _Key(3, _colour(1.0), "sure")]
    return keys + [_Key(2, _PLAIN, "no head: either way")] * loose


def _room(keys: list[_Key]) -> float:
    return _MARGIN + sum(key.room() for key in keys)


def _legend(keys: list[_Key], width: float, y: float) -> tuple[list[str], int]:
    """What width, colour and dashes mean, from the height y on, and the number of lines."""
    x, lines, parts = _MARGIN, 1, []
    for key in keys:
        if x + key.room() > width and x > _MARGIN:
            x, y, lines = _MARGIN, y + _LINE, lines + 1
        marks = f' stroke-dasharray="{key.dashes}"' if key.dashes else ""
        parts.append(
            f'<line x1="{x:.0f}" y1="{y:.0f}" x2="{x + 24:.0f}" y2="{y:.0f}" stroke="{key.colour}" '
            f'stroke-width="{key.stroke}"{marks}/><text class="small" x="{x + 29:.0f}" '
            f'y="{y + 4:.0f}">{key.text}</text>'
        )
        x += key.room()
    return parts, lines
