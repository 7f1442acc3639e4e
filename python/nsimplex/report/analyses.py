"""Sections about statements that were put to the test, and about what was measured for them."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median_low

import matplotlib

from .._page import VIOLATED, section, table
from .collapse_plots import layer_parts, smoothing_parts
from .elements import MUTED, SERIES, STYLE, amount, name_axes, new_axes, spread_labels, svg, whole
from .language import transfer_parts
from .run import Folder, Row, having, number


def statements_table(rows: list[Row]) -> str:
    """What was stated, how often it was tried and failed, and how much room was left."""
    body = [
        [
            str(row["statement"]),
            whole(row, "draws"),
            whole(row, "violations"),
            amount(number(row, "median_slack"), 3),
            "holds" if row.get("holds") is True else VIOLATED,
        ]
        for row in rows
    ]
    return table(["statement", "draws", "violations", "median slack", ""], body, strong=4)


_GROWTH = ("order", "tokens", "radius", "constant", "printed")


def growth_figure(run: Folder) -> str:
    """Measured constants against tokens and against the radius, dashed the printed bound: medians
    over the sweep."""
    rows = [
        r
        for r in having(run.rows, *_GROWTH)
        if r["constant"] > 0 and r["printed"] > 0 and r["order"] % 1 == 0
    ]
    orders = sorted({int(row["order"]) for row in rows})
    with matplotlib.rc_context(STYLE):
        drawing, both = new_axes(3.4, columns=2)
        for axes, key in zip(both, ("tokens", "radius")):
            axes.set_xscale("log", base=2 if key == "tokens" else 10)
            axes.set_yscale("log")
            ends = []
            for order in orders:
                color = SERIES[(order - 1) % len(SERIES)]
                own = [row for row in rows if row["order"] == order]
                places = sorted({row[key] for row in own})
                for figure, style in (("constant", "-"), ("printed", (0, (2, 2)))):
                    values = [
                        median_low([row[figure] for row in own if row[key] == place])
                        for place in places
                    ]
                    axes.plot(
                        places, values, color=color, linestyle=style, marker="o", markersize=3
                    )
                    if figure == "constant":
                        ends.append((places[-1], values[-1], f"N = {order}", color))
            spread_labels(axes, ends)
            axes.set_xlabel(key)
            name_axes(axes, f"constant over the {key}")
        return svg(
            drawing,
            f"lipschitz-{run.name}",
            "Lipschitz constants and bounds against tokens and radius",
            "See how fast the measured constants grow, and how far they stay below the dashed "
            "bound.",
        )


def _lipschitz(run: Folder) -> list[str]:
    return [
        growth_figure(run),
        '<p class="muted">Lines are measured, by ascent over the ball of tokens; dashes are the '
        "printed bound. Medians over "
        "the draws and the rest of the sweep.</p>",
    ]


def _sensitivity(run: Folder) -> list[str]:
    rows = [row for row in run.rows if number(row, "largest") is not None]
    body = [
        [
            str(row.get("analysis")),
            whole(row, "order"),
            whole(row, "dim"),
            str(row.get("scales", "")),
            *(
                amount(number(row, key), 4)
                for key in ("bound", "largest", "from_gaussian", "at_gaussian")
            ),
        ]
        for row in rows
    ]
    header = [
        "",
        "order",
        "D",
        "scales",
        "bound",
        "largest found",
        "from normal inputs",
        "at normal inputs",
    ]
    return [table(header, body)]


#: By kind of the lines that are not statements alone: the title, and what is shown of them.
_MEASURED: dict[str, tuple[str, Callable[[Folder], list[str]]]] = {
    "lipschitz": ("Lipschitz constants of attention", _lipschitz),
    "sensitivity": ("Sensitivity and sharpness of attention", _sensitivity),
    "sharpness": ("Sensitivity and sharpness of attention", _sensitivity),
    "smoothing": ("Over-smoothing of attention", smoothing_parts),
    "layer": ("Layers of a trained model", layer_parts),
    "transfer": ("Learning rates as models grow", transfer_parts),
    "transfer_best": ("Learning rates as models grow", transfer_parts),
}


def analysis_sections(folders: list[Folder]) -> list[str]:
    """Per folder the figures of an analysis, then its statements."""
    sections = []
    for folder in folders:
        measured = [row for row in folder.rows if row["kind"] in _MEASURED]
        title, parts = "Statements", []
        if measured:
            title, show = _MEASURED[measured[0]["kind"]]
            parts = show(Folder(folder.name, folder.path, measured))
        statements = [row for row in folder.rows if isinstance(row.get("statement"), str)]
        if statements:
            parts.append(statements_table(statements))
        sections.append(section(title if len(folders) == 1 else f"{title}: {folder.name}", *parts))
    return sections


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
        axes.set_xlabel("Poincaré distance")
        name_axes(axes, "what A+ loses, of its value without a gap")
        return svg(
            drawing,
            f"surface-{name}",
            "The fall of the bound of the score over distance, for four norms",
            "See how much of its value the bound loses as the distance grows, and how that depends "
            "on the norm.",
        )


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
            axes.set_xlabel("generality 1 − |e_m|")
            name_axes(axes, title)
        return svg(
            drawing,
            f"path-{name}",
            "Gap and score at one distance as one point moves to the origin",
            "See whether the gap falls and the score rises as one point moves to the origin.",
        )


def _numbered(rows: list[Row], kind: str, keys: tuple[str, ...]) -> list[Row]:
    return [
        r for r in rows if r.get("row") == kind and all(number(r, key) is not None for key in keys)
    ]


def _attenuation(rows: list[Row], name: str) -> str:
    keys = ("first", "distance", "gap", "bound", "equal_score")
    surface, path = _numbered(rows, "surface", keys), _numbered(rows, "path", keys)
    parts = []
    if surface:
        parts += ["<h3>Over norms and distances</h3>", surface_figure(surface, name)]
    if path:
        parts += [
            f"<h3>At distance {path[0]['distance']:g}, towards the origin</h3>",
            path_figure(path, name),
        ]
    return section(
        f"Attention over causal distance and generality: {name}",
        '<p class="muted">Causal angles see the gap of two points in the ball, which is no '
        "function of their hyperbolic "
        "distance. Statements hold where both norms, or one norm and the distance, are held, and "
        "fail for pairs that may "
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
            for color, sigma in zip(
                SERIES, dict.fromkeys(row["sigma"] for row in own), strict=False
            ):
                points = [row for row in own if row["sigma"] == sigma]
                noises = [row["noises"] for row in points]
                means = [row["mean"] for row in points]
                axes.errorbar(
                    noises,
                    means,
                    [row["deviation"] for row in points],
                    color=color,
                    fmt="o-",
                    markersize=3.5,
                    alpha=0.8,
                )
                axes.axhline(points[0]["limit"], color=color, linewidth=1.2, linestyle=(0, (4, 3)))
                ends.append((noises[-1], means[-1], f"σ = {sigma:g}", color))
            axes.set_xscale("log")
            spread_labels(axes, ends)
            axes.set_xlabel("noises averaged over")
            drawn = "drawn" if key == "drawn" else "= q"
            name_axes(axes, f"average bias of the score, k {drawn}")
        return svg(
            drawing,
            f"bias-{name}",
            "The average bias of noisy scores over the number of noises, with its limit",
            "See where averages over more noises go: to the dashed line and not to 0.",
        )


def _robustness(rows: list[Row], name: str) -> str:
    biases = _numbered(rows, "bias", ("sigma", "noises", "mean", "deviation", "limit"))
    accuracies = _numbered(rows, "accuracy", ("exact", "drawn"))
    parts = []
    if biases:
        parts += ["<h3>Average over noises</h3>", bias_figure(biases, name)]
        parts.append(
            '<p class="muted">Dashed: (exp(−c²σ²) − 1) A, where averages go. Bars: sample '
            "deviation.</p>"
        )
    if accuracies:
        least = min(accuracies, key=lambda row: row["exact"])
        parts.append(
            '<p class="muted">Accuracy of the approximation at σ = π/12 of both angles: '
            f"{100 * least['exact']:.2f} %, by "
            f"draws {100 * least['drawn']:.2f} %; the paper says at least 93.8 %.</p>"
        )
    return section(
        f"Attention with noisy encodings: {name}",
        '<p class="muted">Noise of the points shrinks scores: their mean is exp(−c²σ²) times the '
        "score, and averaging over "
        "more noises leads there and not to the score itself.</p>",
        claims_table(rows),
        *parts,
    )


def attenuation_sections(folders: list[Folder]) -> list[str]:
    return [_attenuation(folder.rows, folder.name) for folder in folders]


def robustness_sections(folders: list[Folder]) -> list[str]:
    return [_robustness(folder.rows, folder.name) for folder in folders]


_TIMES = {
    "step_one": "step I, an epoch",
    "step_two": "step II, a step",
    "order": "order, a whole fit",
}


def complexity_figure(rows: list[Row], name: str) -> str:
    """Fig. S5 on logarithmic axes: the slope is the exponent."""
    with matplotlib.rc_context(STYLE):
        drawing, both = new_axes(3.4, columns=2)
        for axes, over in zip(both, ("rows", "columns"), strict=True):
            ends = []
            own = [row for row in rows if row.get("over") == over]
            for color, (figure, title) in zip(SERIES, _TIMES.items(), strict=False):
                points = [
                    (row[over], value)
                    for row in own
                    if (value := number(row, figure)) is not None and value > 0
                ]
                if not points:
                    continue
                axes.plot(*zip(*points), color=color, marker="o", markersize=4)
                ends.append((*points[-1], title, color))
            axes.set_xscale("log")
            axes.set_yscale("log")
            spread_labels(axes, ends)
            axes.set_xlabel(over)
            axes.set_title("seconds", loc="left", fontsize=10.5, color=MUTED, pad=10)
        return svg(
            drawing,
            f"complexity-{name}",
            "Seconds of structure learning and embedding over rows and columns",
            "See how fast the time grows: on these axes a straight line is a power, and its slope "
            "is the exponent.",
        )


def _complexity(rows: list[Row], name: str) -> str:
    sizes = [row for row in rows if number(row, "rows") and number(row, "columns")]
    fits = [row for row in rows if number(row, "exponent") is not None]
    if not sizes:
        return ""
    times = [
        [
            amount(number(row, "rows"), 0),
            amount(number(row, "columns"), 0),
            *(amount(number(row, figure), 4, " s") for figure in _TIMES),
            f"{amount(number(row, 'timed'), 0)} of {amount(number(row, 'batches'), 0)}",
        ]
        for row in sizes
    ]
    exponents = [
        [
            f"{_TIMES.get(str(row.get('figure')), '?')}, with {row.get('over')}",
            amount(number(row, "exponent"), 2),
            amount(number(row, "r_squared"), 3),
            amount(number(row, "paper"), 0),
        ]
        for row in fits
    ]
    return section(
        f"What structure and embedding cost: {name}",
        '<p class="muted">Seconds of processor time, means of '
        f"{amount(number(sizes[0], 'runs'), 0)} tables. An epoch of step I is the paper’s "
        "estimator over all batches; where an epoch took longer than the time given, the batches "
        "that were timed stand for "
        "all.</p>",
        complexity_figure(sizes, name),
        "<h3>Exponents</h3>" if exponents else "",
        table(["seconds grow by", "exponent", "R²", "paper"], exponents) if exponents else "",
        "<h3>Seconds</h3>",
        table(["rows", "columns", *_TIMES.values(), "batches timed"], times),
    )


def complexity_sections(folders: list[Folder]) -> list[str]:
    return [_complexity(folder.rows, folder.name) for folder in folders]
