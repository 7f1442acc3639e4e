"""Sections about statements of CAPE's paper that were put to the test: attenuation and robustness."""

from __future__ import annotations

import matplotlib

from .data import Row, number
from .figure import MUTED, SERIES, STYLE, new_axes, spread_labels, svg
from .parts import amount, section, table


def claims_table(rows: list[Row]) -> str:
    """Every statement with how often it held."""
    body = [
        [
            str(row.get("source", "")),
            str(row["statement"]),
            amount(number(row, "draws"), 0),
            amount(number(row, "violations"), 0),
            "yes" if row.get("holds") else "no",
        ]
        for row in rows
        if "statement" in row
    ]
    return table(["", "statement", "draws", "violations", "holds"], body) if body else ""


def _name(axes, xlabel: str, title: str) -> None:
    axes.set_xlabel(xlabel)
    axes.set_title(title, loc="left", fontsize=10.5, color=MUTED, pad=10)


def surface_figure(rows: list[Row], name: str) -> str:
    """Fig. S2 by curves: how much of A+ is lost over the distance, for four norms."""
    norms = sorted({row["first"] for row in rows})
    chosen = [norms[round(share * (len(norms) - 1))] for share in (0.25, 0.5, 0.75, 1)]
    with matplotlib.rc_context(STYLE):
        drawing, axes = new_axes()
        ends = []
        for color, norm in zip(SERIES, dict.fromkeys(chosen), strict=False):
            points = [(row["distance"], 1 - row["bound"]) for row in rows if row["first"] == norm]
            axes.plot(*zip(*points), color=color)
            ends.append((*points[-1], f"|e| = {norm:.2f}", color))
        spread_labels(axes, ends)
        _name(axes, "Poincaré distance", "what A+ loses, of its value without a gap")
        return svg(drawing, f"surface-{name}", "The fall of the bound of the score over distance, for four norms")


def path_figure(rows: list[Row], name: str) -> str:
    """At one distance, from antipodes to the origin: the gap falls and scores rise."""
    with matplotlib.rc_context(STYLE):
        drawing, both = new_axes(columns=2)
        generality = [1 - row["first"] for row in rows]
        for axes, key, color, title in zip(
            both,
            ("gap", "equal_score"),
            SERIES,
            ("gap |e_m − e_n| in the ball", "score of k = q, of that without a gap"),
            strict=False,
        ):
            axes.plot(generality, [row[key] for row in rows], color=color)
            _name(axes, "generality 1 − |e_m|", title)
        return svg(drawing, f"path-{name}", "Gap and score at one distance as one point moves to the origin")


def _numbered(rows: list[Row], kind: str, keys: tuple[str, ...]) -> list[Row]:
    return [r for r in rows if r.get("row") == kind and all(number(r, key) is not None for key in keys)]


def attenuation_section(rows: list[Row], name: str) -> str:
    keys = ("first", "distance", "gap", "bound", "equal_score")
    surface, path = _numbered(rows, "surface", keys), _numbered(rows, "path", keys)
    parts = []
    if surface:
        parts += ["<h3>Over norms and distances</h3>", surface_figure(surface, name)]
    if path:
        parts += [f"<h3>At distance {path[0]['distance']:g}, towards the origin</h3>", path_figure(path, name)]
    return section(
        f"Attention over causal distance and generality: {name}",
        '<p class="muted">Causal angles see the gap of two points in the ball, which is no function of their hyperbolic '
        "distance. Statements hold where both norms, or one norm and the distance, are held, and fail for pairs that may "
        "lie anywhere.</p>",
        claims_table(rows),
        *parts,
    )


def bias_figure(rows: list[Row], name: str) -> str:
    """Fig. S3: the average bias over the number of noises, with the limit that it has."""
    with matplotlib.rc_context(STYLE):
        drawing, both = new_axes(columns=2)
        for axes, key in zip(both, ("drawn", "query"), strict=True):
            ends = []
            own = [row for row in rows if row.get("key") == key]
            for color, sigma in zip(SERIES, dict.fromkeys(row["sigma"] for row in own), strict=False):
                points = [row for row in own if row["sigma"] == sigma]
                noises = [row["noises"] for row in points]
                means = [row["mean"] for row in points]
                axes.errorbar(noises, means, [row["deviation"] for row in points], color=color, fmt="o-", markersize=3.5, alpha=0.8)
                axes.axhline(points[0]["limit"], color=color, linewidth=1.2, linestyle=(0, (4, 3)))
                ends.append((noises[-1], means[-1], f"σ = {sigma:g}", color))
            axes.set_xscale("log")
            spread_labels(axes, ends)
            _name(axes, "noises averaged over", "average bias of the score, k " + ("drawn" if key == "drawn" else "= q"))
        return svg(drawing, f"bias-{name}", "The average bias of noisy scores over the number of noises, with its limit")


def robustness_section(rows: list[Row], name: str) -> str:
    biases = _numbered(rows, "bias", ("sigma", "noises", "mean", "deviation", "limit"))
    accuracies = _numbered(rows, "accuracy", ("exact", "drawn"))
    parts = []
    if biases:
        parts += ["<h3>Average over noises</h3>", bias_figure(biases, name)]
        parts.append('<p class="muted">Dashed: (exp(−c²σ²) − 1) A, where averages go. Bars: sample deviation.</p>')
    if accuracies:
        least = min(accuracies, key=lambda row: row["exact"])
        parts.append(
            f'<p class="muted">Accuracy of the approximation at σ = π/12 of both angles: {100 * least["exact"]:.2f} %, by '
            f"draws {100 * least['drawn']:.2f} %; the paper says at least 93.8 %.</p>"
        )
    return section(
        f"Attention with noisy encodings: {name}",
        '<p class="muted">Noise of the points shrinks scores: their mean is exp(−c²σ²) times the score, and averaging over '
        "more noises leads there and not to the score itself.</p>",
        claims_table(rows),
        *parts,
    )
