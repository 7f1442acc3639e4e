"""Sections about causal graphs of tables: an answer beside those that know nothing, graphs in the
ball, and what the steps cost."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from .._page import section, table
from .elements import (
    INK,
    LINE,
    MUTED,
    SERIES,
    STYLE,
    amount,
    finish,
    legend_below,
    new_axes,
    spread_labels,
    svg,
    whole,
)
from .learned import Ball
from .run import Folder, Row, number

_FIGURES = ("shd", "sid", "f1", "precision", "recall", "auroc", "auprc")

_TITLES = {"empty": "empty graph", "variance_sort": "sorted by variance", "r2_sort": "sorted by R²"}


def _cells(row: Row, figures: Sequence[str]) -> list[str]:
    return [
        whole(row, "edges"),
        *(whole(row, f) if f in ("shd", "sid") else amount(number(row, f), 3) for f in figures),
    ]


def _baselines(row: Row) -> dict[str, Row]:
    found = row.get("baselines")
    return (
        {name: each for name, each in found.items() if isinstance(each, dict)}
        if isinstance(found, dict)
        else {}
    )


def answers_figure(row: Row, name: str) -> str:
    """AUPRC and F1 of the answer and of the baselines, as bars."""
    answers = {
        str(row.get("estimator")): row,
        **{_TITLES.get(n, n): each for n, each in _baselines(row).items()},
    }
    with matplotlib.rc_context(STYLE):
        drawing, axes = new_axes(height=0.8 + 0.42 * len(answers))
        for shift, key, alpha in ((-0.19, "f1", 1.0), (0.19, "auprc", 0.55)):
            for at, each in enumerate(answers.values()):
                value, color = number(each, key) or 0.0, SERIES[0] if at == 0 else MUTED
                label = key.upper() if at == 0 else None
                axes.barh(at + shift, value, 0.34, color=color, alpha=alpha, label=label)
                axes.text(value + 0.01, at + shift, f"{value:.2f}", va="center", fontsize=9)
        axes.set_yticks(range(len(answers)), list(answers))
        axes.invert_yaxis()
        axes.set_xlim(0, 1.15)  # also a narrow chart has room for the numbers
        finish(axes, "", "")
        legend_below(axes)
        return svg(
            drawing,
            f"fit-{name}",
            "F1 and AUPRC of the estimator and of the baselines",
            "See how much longer the blue bars of the estimator are than the grey ones of the "
            "baselines. F1 compares the edges with the true graph, and AUPRC, paler, the order of "
            "their scores.",
        )


def _remark(row: Row) -> str:
    by = "the true graph" if row.get("sortability_of") == "truth" else "the learned graph"
    text = (
        f"By {by}, varsortability {amount(number(row, 'varsortability'), 3)} and R²-sortability "
        f"{amount(number(row, 'r2_sortability'), 3)}: how far the columns' scales alone tell the "
        "order; 0.5 is chance. "
        f"Columns were {'' if row.get('standardise') else 'not '}standardised."
    )
    removed = row.get("removed")
    if isinstance(removed, list) and removed:
        text += f" Removed, because they closed cycles: {escape(', '.join(map(str, removed)))}."
    return f'<p class="muted">{text}</p>'


def _fit(row: Row, name: str) -> str:
    known = number(row, "shd") is not None
    figures = _FIGURES if known else ()
    answers = [(f"{row.get('estimator')} ({row.get('model')})", row)]
    for key, title in (("at_0.3", "cut at 0.3"), ("at_best", "cut at the best threshold")):
        if isinstance(row.get(key), dict):
            answers.append((title, row[key]))
    answers += [(_TITLES.get(n, n), each) for n, each in _baselines(row).items()]
    distances = [number(each, "shd") for _, each in answers]
    least = min((distance for distance in distances if distance is not None), default=None)
    best = [at for at, distance in enumerate(distances) if distance == least]
    header = [
        "graph",
        "edges",
        *(f.upper() if f != "precision" and f != "recall" else f for f in figures),
    ]
    seconds = amount(number(row, "seconds"), 3, " s")
    beside = "Beside the known graph" if known else "Beside graphs that know nothing"
    return section(
        f"{beside}: {row.get('table', name)}".replace("\\", "/"),
        f'<p class="muted">{whole(row, "observations")} observations of {whole(row, "features")} '
        f"columns; the fit took {seconds}.</p>",
        answers_figure(row, name) if known else "",
        table(
            header,
            [[title, *_cells(each, figures)] for title, each in answers],
            strong=2 if known else None,
            good=best,
        ),
        _remark(row),
    )


def _simulated(rows: list[Row]) -> str:
    header = [
        "table",
        "columns",
        "edges",
        "observations",
        "seed",
        "varsortability",
        "R²-sortability",
    ]
    body = [
        [
            str(row.get("table", "")),
            *(whole(row, key) for key in ("nodes", "edges", "observations", "seed")),
            *(amount(number(row, key), 3) for key in ("varsortability", "r2_sortability")),
        ]
        for row in rows
    ]
    return section("Made-up tables", table(header, body))


def _embedded(rows: list[Row]) -> str:
    header = [
        "graph",
        "nodes",
        "edges",
        "dimension",
        "optimiser",
        "hops",
        "mean rank",
        "MAP",
        "seconds",
    ]
    body = [
        [
            str(row.get("graph", "")),
            *(whole(row, key) for key in ("nodes", "edges", "dimension")),
            str(row.get("optimiser", "")),
            whole(row, "hops"),
            *(amount(number(row, key), 3) for key in ("mean_rank", "map", "seconds")),
        ]
        for row in rows
    ]
    note = (
        "Mean rank and mean average precision of every node’s ancestors by distance; 1 is perfect "
        "for both."
    )
    return section("Embedded graphs", f'<p class="muted">{note}</p>', table(header, body))


def _predicted(rows: list[Row], name: str) -> str:
    """How often each class was the likeliest one, or the range of numbers."""
    numbers = [value for row in rows if (value := number(row, "number")) is not None]
    if numbers:
        body = [
            [
                amount(value, 4)
                for value in (min(numbers), sum(numbers) / len(numbers), max(numbers))
            ]
        ]
        return section(f"Answers for new rows: {name}", table(["least", "mean", "largest"], body))
    labels = [str(row["label"]) for row in rows if row.get("label") is not None]
    body = [[label, str(labels.count(label))] for label in sorted(set(labels))]
    return section(f"Answers for new rows: {name}", table(["class", "rows"], body)) if body else ""


def fit_headline(row: Row) -> tuple[str, str]:
    """The title of the page about one learned graph, and the result in a sentence."""
    title = f"Causal graph of {whole(row, 'features')} columns"
    lead = f"{whole(row, 'edges')} edges, learned from {whole(row, 'observations')} rows."
    if (own := number(row, "f1")) is None:
        return title, lead
    others = {_TITLES.get(n, n): number(each, "f1") or 0.0 for n, each in _baselines(row).items()}
    lead += f" F1 against the known graph is {own:.2f}"
    if others:
        best = max(others, key=others.__getitem__)
        lead += f"; the best that knows nothing, {best}, reaches {others[best]:.2f}"
    return title, lead + "."


def fit_sections(folders: list[Folder]) -> list[str]:
    return [_fit(row, folder.name) for folder in folders for row in folder.rows]


def _findings(row: Row) -> str:
    found = row.get("findings")
    said = [str(each) for each in found] if isinstance(found, list) else []
    return "".join(f"<li>{escape(each)}.</li>" for each in said)


def certainty_sections(folders: list[Folder]) -> list[str]:
    """How sure the edges of a graph are, and what the table cannot tell about them."""
    sections = []
    for folder in folders:
        if said := "".join(map(_findings, folder.rows)):
            sections.append(section(f"How sure the graph is: {folder.name}", f"<ul>{said}</ul>"))
    return sections


def simulated_sections(folders: list[Folder]) -> list[str]:
    return [_simulated([row for folder in folders for row in folder.rows])]


def embedded_sections(folders: list[Folder]) -> list[str]:
    return [_embedded([row for folder in folders for row in folder.rows])]


def predicted_sections(folders: list[Folder]) -> list[str]:
    return [_predicted(folder.rows, folder.name) for folder in folders]


_MOST_NAMES, _MOST_ARROWS, _MOST_EDGES = 40, 80, 1500

_STEPS = 24  # of a drawn geodesic


def geodesic(radii: tuple[float, float], directions: np.ndarray, steps: int = _STEPS) -> np.ndarray:
    """Points [steps, d] of the ball on the geodesic between two points given by radius and
    direction.

    On the hyperboloid it is (sinh((1 - t) D) p + sinh(t D) q) / sinh D; a point (x0, x) of that is
    x / (1 + x0) in the ball. The distance D comes from radii and directions, which keep their
    digits far out.
    """
    r, s = radii
    gap = directions[0] - directions[1]
    square = np.sinh((r - s) / 2) ** 2 + np.sinh(r) * np.sinh(s) * (gap @ gap) / 4
    distance = 2 * np.arcsinh(np.sqrt(square))
    t = np.linspace(0, 1, steps)
    if distance < 1e-9:
        return np.repeat(np.tanh(r / 2) * directions[:1], steps, axis=0)
    first, last = (np.sinh(x * distance) / np.sinh(distance) for x in (1 - t, t))
    time = first * np.cosh(r) + last * np.cosh(s)
    space = np.outer(first * np.sinh(r), directions[0]) + np.outer(last * np.sinh(s), directions[1])
    return space / (1 + time[:, None])


def principal_axes(points: np.ndarray) -> np.ndarray:
    """Two axes [d, 2] through the origin that show most of the points; the first two of the plane
    itself."""
    if points.shape[1] == 2:
        return np.eye(2)
    axes = np.linalg.svd(points, full_matrices=True)[2][:2].T
    return axes * np.where(axes[np.abs(axes).argmax(axis=0), range(2)] < 0, -1, 1)


#: Where a name stands beside its node, in points: the first place that is free is taken.
_PLACES = [((6, 5), "left"), ((6, -12), "left"), ((-6, 5), "right"), ((-6, -12), "right")]


def place_names(figure: Figure, texts: list[Annotation]) -> None:
    """Moves names that overlap an earlier one, and hides those for which no place is free."""
    for text in texts:
        text.set_visible(True)
    figure.draw_without_rendering()
    taken: list[Bbox] = []
    for text in texts:
        for offset, side in _PLACES:
            text.set(position=offset, horizontalalignment=side)
            box = text.get_window_extent()
            if not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
        else:
            text.set_visible(False)


def ball_figure(ball: Ball) -> str:
    """The unit disc with nodes, sized by generality, and their strongest edges."""
    axes_of = principal_axes(ball.points)
    shown = ball.points @ axes_of
    lengths = np.linalg.norm(ball.points, axis=1, keepdims=True)
    directions = np.divide(ball.points, lengths, out=np.zeros_like(ball.points), where=lengths > 0)
    with matplotlib.rc_context(STYLE):
        drawing, axes = new_axes(6.4)
        axes.add_patch(Circle((0, 0), 1, fill=False, edgecolor=LINE, linewidth=1.5))
        axes.plot([0], [0], "+", color=MUTED, markersize=7)
        edges = ball.edges[:_MOST_EDGES]
        alpha = min(0.8, max(0.08, 60 / max(len(edges), 1)))
        for cause, effect, _ in edges:
            radii = (ball.radius[cause], ball.radius[effect])
            arc = geodesic(radii, directions[[cause, effect]]) @ axes_of
            axes.plot(*arc.T, color=SERIES[0], linewidth=1.1, alpha=alpha, zorder=1)
            if len(edges) <= _MOST_ARROWS:
                middle = _STEPS // 2
                style = {"arrowstyle": "-|>", "color": SERIES[0], "alpha": alpha}
                axes.annotate("", arc[middle + 1], arc[middle - 1], arrowprops=style)
        largest = max(float(ball.generality.max()), 1e-12)
        small = len(ball.names) <= _MOST_NAMES
        sizes = (
            (24 + 130 * ball.generality / largest)
            if small
            else (4 + 60 * ball.generality / largest)
        )
        axes.scatter(*shown.T, s=sizes, color=SERIES[1], zorder=2, linewidths=0)
        named = np.argsort(-ball.generality, kind="stable")[: None if small else 12]
        look: dict[str, Any] = {"textcoords": "offset points", "color": INK, "fontsize": 8.5}
        texts = [
            axes.annotate(ball.names[node], shown[node], xytext=(6, 5), **look) for node in named
        ]
        axes.set_xlim(-1.04, 1.04)
        axes.set_ylim(-1.04, 1.04)
        axes.set_aspect("equal")
        axes.set_axis_off()
        return svg(
            drawing,
            f"ball-{ball.name}",
            "Nodes of a graph in the Poincaré ball, with edges as geodesics",
            "See which nodes are general causes: they are large and near the middle, and their "
            "effects lie further out. A name is left out where it would cover that of a more "
            "general node.",
            lambda: place_names(drawing, texts),
        )


def ball_section(ball: Ball) -> str:
    count, dimension = ball.points.shape
    view = (
        "its plane"
        if dimension == 2
        else f"its {dimension} dimensions along the two axes that show most"
    )
    edges = f"{len(ball.edges):,} edges"
    if len(ball.edges) > _MOST_EDGES:
        edges = f"the {_MOST_EDGES:,} heaviest of {edges}"
    return section(
        f"The Poincaré ball: {ball.name}",
        f'<p class="muted">{count:,} nodes and {edges}, seen in {view}. Edges are geodesics from '
        "cause to effect, a dot "
        "is larger the more a node causes (its PageRank), and the rim is infinitely far from the "
        "middle.</p>",
        ball_figure(ball),
    )


_PLACED = {"edge_area": "edges nearer", "generality_correlation": "generality"}


def _label(row: Row) -> str:
    return f"{row['generality']:g}" + ("" if row.get("relative") else " π as printed")


def trade_off_figure(rows: list[Row], name: str) -> str:
    """Both figures against lambda_g, for the true and the learned graph."""
    arms = list(dict.fromkeys(_label(row) for row in rows))
    with matplotlib.rc_context(STYLE):
        drawing, axes = new_axes(3.4)
        ends: list[tuple[float, float, str, str]] = []
        kinds = [(graph, figure) for figure in _PLACED for graph in ("true", "learned")]
        for color, (graph, figure) in zip(SERIES, kinds, strict=True):
            points = [
                (arms.index(_label(row)), value)
                for row in rows
                if row.get("graph") == graph and (value := number(row, figure)) is not None
            ]
            if not points:
                continue
            axes.plot(*zip(*points), color=color, marker="o", markersize=4)
            ends.append((*points[-1], f"{_PLACED[figure]}, {graph} graph", color))
        for least in (0.8, 0.4):
            axes.axhline(least, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        spread_labels(axes, ends)
        axes.set_xticks(range(len(arms)), arms)
        axes.set_xlabel("λ, the pull of general causes to the origin")
        return svg(
            drawing,
            f"synthetic-{name}",
            "How well edges and generality are kept, against the pull to the origin",
            "See which pull keeps both: edges have to be above the dashed line at 0.8, and "
            "generality above the one at 0.4.",
        )


def _spread(row: Row, figure: str) -> str:
    return f"{amount(number(row, figure), 3)} ± {amount(number(row, f'{figure}_deviation'), 3)}"


def _placement(rows: list[Row], name: str) -> str:
    means = [
        row
        for row in rows
        if number(row, "graphs") is not None and number(row, "generality") is not None
    ]
    learned = [
        value for row in rows if "graph" not in row and (value := number(row, "shd")) is not None
    ]
    if not means:
        return ""
    drawn = []
    for hops in dict.fromkeys(row.get("hops") for row in means):
        own = [row for row in means if row.get("hops") == hops]
        drawn += [
            f"<h3>Attracted over {escape(str(hops))} edges at most</h3>",
            trade_off_figure(own, f"{name}-{hops}"),
        ]
    figures = ("edge_area", "generality_correlation", "own_edge_area", "own_generality_correlation")
    body = [
        [
            f"{row.get('graph')}, k = {row.get('hops')}, λ = {_label(row)}"
            + (", judged" if row.get("judged") else ""),
            *(_spread(row, figure) for figure in figures),
            amount(number(row, "mean_radius"), 2),
            "yes" if row.get("passes") else "no",
        ]
        for row in means
    ]
    header = [
        "embedded graph",
        "edges nearer",
        "generality",
        "by its own edges",
        "by its own generality",
        "radius",
        "passes",
    ]
    shd = (
        f" Learned graphs have an SHD of {sum(learned) / len(learned):.2f} on average."
        if learned
        else ""
    )
    return section(
        f"Graphs in the ball: {name}",
        f'<p class="muted">{amount(number(means[0], "graphs"), 0)} random graphs with a table '
        f"each.{shd} Edges nearer: the "
        "chance that a pair with an edge is nearer than one without, at least 0.8 to pass. "
        "Generality: Spearman’s "
        "correlation of the distance from the origin and −descendants, at least 0.4. Both by the "
        "true graph, then by the "
        "graph that was embedded. A stronger pull keeps generality at the cost of edges.</p>",
        *drawn,
        table(header, body),
    )


def placement_sections(folders: list[Folder]) -> list[str]:
    return [_placement(folder.rows, folder.name) for folder in folders]
