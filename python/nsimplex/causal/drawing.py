"""Pictures of causal graphs: SVG, HTML pages, PNG, PDF, and axes of matplotlib."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._arguments import checked, checked_methods, describe
from .._page import alone, counted, figure, short
from .._whole_file import require_kind, whole_file
from .columns import Columns, Names
from .graph_exports import KnownGraph, known_graph, open_edges
from .graph_page import EdgeFacts, page_text, pictures

if TYPE_CHECKING:
    from .._graph_picture import Edge

__all__ = ["GraphPicture", "draw_graph"]

_MOST_EDGES = 180
_KINDS = (".svg", ".html", ".png", ".pdf")
_DOTS = 200  # per inch of a png


@checked_methods
class GraphPicture:
    """A picture of a graph. A notebook shows it, ``save`` writes it to a file, and ``to_axes``
    draws it into a figure of matplotlib.

    ``svg`` is the picture as the text of an SVG file. ``columns`` has the numbers of the columns
    that the picture shows, ``edges`` the pairs (cause, effect), ``facts`` the names and numbers of
    these edges, and ``hidden`` the number of edges that it leaves out.
    """

    def __init__(self, sketch: Any, hidden: int, facts: Sequence[EdgeFacts]):
        self._sketch, self.hidden, self.facts = sketch, hidden, list(facts)
        self.columns = list(sketch.columns)
        self.edges = [edge.columns for edge in sketch.edges]

    @property
    def svg(self) -> str:
        return alone(self._sketch.svg())

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return (
            f"GraphPicture({len(self.columns)} columns, {len(self.edges)} edges, {self.hidden} "
            "hidden)"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture to a file; completely or not at all. The end of its name says what:
        .svg, .html, .png or .pdf. PNG and PDF need matplotlib.

        An HTML page is one file that loads nothing, light or dark. It shows the numbers of an edge
        or a column under the pointer or at a touch, lists the edges, and hides edges of a small
        weight or frequency. A narrow screen without room for the picture shows columns below each
        other, each below its causes, with edges as arcs.
        """
        kind = os.path.splitext(os.fspath(path))[1].lower()
        if kind not in _KINDS:
            require_kind(path, f"{', '.join(_KINDS[:-1])} or {_KINDS[-1]}")
        if kind in (".png", ".pdf"):
            drawn = self._figure(kind)  # before the file is begun
            with whole_file(path, binary=True) as file:
                date = {"CreationDate": None} if kind == ".pdf" else {}
                drawn.savefig(file, format=kind[1:], metadata=date, dpi=_DOTS, bbox_inches="tight")
            return
        with whole_file(path, encoding="utf-8") as file:
            page = kind == ".html"
            file.write(page_text(self._sketch, self.facts, self.hidden) if page else self.svg)

    def to_axes(self, ax: Any) -> Any:
        """Draws the picture into axes of matplotlib, with the legend below them, and returns them.

        The size of letters and lines fits the axes at the time of the call.

        Example:
            >>> figure, ax = pyplot.subplots(figsize=(6, 4))
            >>> graph.draw().to_axes(ax)
        """
        if not hasattr(ax, "add_patch"):
            raise TypeError(f"[to_axes] ax: expected axes of matplotlib, got {describe(ax)}")
        self._sketch.to_axes(ax)
        return ax

    def _figure(self, kind: str) -> Any:
        try:
            from matplotlib.figure import Figure
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"save to {kind} needs matplotlib: python -m pip install matplotlib "
                f"(the extra plots; {error})"
            ) from None
        drawn = Figure(figsize=self._sketch.inches())
        self.to_axes(drawn.add_axes((0, 0, 1, 1)))
        return drawn


def page_parts(picture: GraphPicture) -> str:
    """A picture as a part of a page with the style of :mod:`nsimplex._page`."""
    return pictures(picture._sketch)


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
    reversible: Sequence[tuple[int, int]] | None = None,
    truth: Any = None,
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
            (:attr:`CausalLimits.reversible`). None: those that ``cpdag_`` of an estimator leaves
            open.
        truth: [M, M], a known graph to compare with. Colours and marks then say which edges are
            right, reversed or extra, and its missing edges are drawn, too.

    Raises:
        ValueError, TypeError: the message names the argument.

    O(edges^2) at worst for the layers.
    """
    given = dict(scores=scores, frequencies=frequencies, low=low, high=high, truth=truth)
    whole = known_graph("draw_graph", graph, names, given)
    if most < 2:
        raise ValueError(f"[draw_graph] most: expected at least 2, got {most}")
    known = Columns(whole.names, len(whole.names))
    centre = [_column(known, column) for column in columns]
    kinds = _kinds(whole)
    strongest = sorted(kinds, key=lambda p: _strength(whole, p[0], p[1], kinds[p]), reverse=True)
    nodes = neighbourhood(strongest, centre, most)
    shown = [pair for pair in strongest if pair[0] in nodes and pair[1] in nodes][:_MOST_EDGES]
    drawn = sorted({*centre, *(node for pair in shown for node in pair)})
    lone = len(whole.names) - len({node for pair in kinds for node in pair} | set(drawn))
    notes = [] if shown else ["no edges"]
    if len(shown) < len(kinds):
        notes.append(f"{len(shown):,} of {counted(len(kinds), 'edges')} shown")
    if lone:
        notes.append(f"{counted(lone, 'columns')} {'has' if lone == 1 else 'have'} no edges")
    from .._graph_picture import Sketch  # needs numpy

    place = {node: at for at, node in enumerate(drawn)}
    if reversible is None:
        reversible = [(i, j) for i, j in open_edges(graph, whole).nonzero().tolist()]
    loose = {(i, j) for i, j in reversible}
    sketch = Sketch(
        f"Causal graph of {counted(len(drawn), 'columns')} with {counted(len(shown), 'edges')}, "
        "causes above effects",
        [whole.names[node] for node in drawn],
        [_edge(whole, i, j, kinds[i, j], (i, j) in loose, place) for i, j in shown],
        drawn,
        {place[node] for node in centre},
        ["; ".join(notes)] if notes else [],
        Counter(kinds.values()),
    )
    return GraphPicture(
        sketch, len(kinds) - len(shown), [_facts(whole, *pair, kinds[pair]) for pair in shown]
    )


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


def _kinds(graph: KnownGraph) -> dict[tuple[int, int], str]:
    """The edges and what the known graph says of each; "" without one. The edges come with those
    of the known graph that are missing."""
    there = graph.adjacency != 0
    if (truth := graph.figures.get("truth")) is None:
        return dict.fromkeys(map(tuple, there.nonzero().tolist()), "")
    true = truth.nan_to_num().fill_diagonal_(0) != 0
    found = {}
    for i, j in (there | (true & ~there.T)).nonzero().tolist():
        right = "right" if true[i, j] else "reversed" if true[j, i] else "extra"
        found[i, j] = right if there[i, j] else "missing"
    return found


def _weight(graph: KnownGraph, i: int, j: int, kind: str) -> float:
    """Of an edge; of a missing one the true weight."""
    return (graph.figures["truth"] if kind == "missing" else graph.adjacency)[i, j].item()


def _known(graph: KnownGraph, i: int, j: int) -> dict[str, float]:
    """The numbers of an edge that are known."""
    return {name: own for name, own in graph.said(i, j).items() if own == own}


def _edge(graph: KnownGraph, i: int, j: int, kind: str, loose: bool, place: dict[int, int]) -> Edge:
    from .._graph_picture import Edge

    own, weight = _known(graph, i, j), _weight(graph, i, j, kind)
    frequency = own.get("frequencies")
    text = f"{short(graph.names[i], 60)} → {short(graph.names[j], 60)}: "
    text += f"{'true weight' if kind == 'missing' else 'weight'} {figure(weight)}"
    if "low" in own and "high" in own:
        text += f" [{figure(own['low'])}, {figure(own['high'])}]"
    if frequency is not None:
        text += f", in {frequency:.0%} of the samples"
        if "connected" in own:
            text += f", and in {own['connected']:.0%} in either direction"
    if "scores" in own:
        text += f", score {figure(own['scores'])}"
    text += f", {kind}" if kind else ""
    text += "; the direction cannot be told" if loose else ""
    return Edge(place[i], place[j], weight, text, frequency, loose, kind, (i, j))


def _facts(graph: KnownGraph, i: int, j: int, kind: str) -> EdgeFacts:
    own, weight = _known(graph, i, j), graph.adjacency[i, j].item()
    score, frequency = own.get("scores"), own.get("frequencies")
    interval = own.get("low"), own.get("high")
    return EdgeFacts(
        graph.names[i], graph.names[j], weight, score, frequency, *interval, kind or None
    )


def _column(columns: Columns, column: str | int) -> int:
    found = columns.find(column)
    if found is None:
        known = columns.expected() if not isinstance(column, str) else "names of columns"
        raise ValueError(f"[draw_graph] columns: expected {known}, got {describe(column)}")
    return found


def _strength(graph: KnownGraph, i: int, j: int, kind: str) -> tuple[float, ...]:
    own = _known(graph, i, j)
    ranks = [own.get(name, 0.0) for name in ("frequencies", "scores")]
    return (kind != "missing", *ranks, abs(_weight(graph, i, j, kind)))
