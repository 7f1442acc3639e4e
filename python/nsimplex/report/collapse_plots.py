"""Plots of tokens that collapse: over depth, distance, time and entries, and over the layers of a
trained model."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import matplotlib

from .._page import table
from .elements import MUTED, SERIES, STYLE, amount, name_axes, new_axes, svg, whole
from .run import Folder, Row, having, number

#: label, places, heights
Curve = tuple[str, list[float], list[float]]

_STYLES = ["-", "--", ":", "-."]


def _panels(name: str, title: str, xlabel: str, see: str, by_order: dict[int, list[Curve]]) -> str:
    """Curves over a logarithmic axis, side by side for every order, with one legend below."""
    with matplotlib.rc_context(STYLE):
        figure, all_axes = new_axes(3.4, len(by_order))
        panels = list(all_axes.flat) if len(by_order) > 1 else [all_axes]
        labels = list(
            dict.fromkeys(label for curves in by_order.values() for label, _, _ in curves)
        )
        lines = {}
        for axes, (order, curves) in zip(panels, by_order.items(), strict=True):
            for label, x, y in curves:
                place = labels.index(label)
                style = _STYLES[place // len(SERIES) % len(_STYLES)]
                marker = "." if len(x) < 2 else None
                (lines[label],) = axes.plot(
                    x, y, style, color=SERIES[place % len(SERIES)], marker=marker, linewidth=1.5
                )
            axes.set_yscale("log")
            axes.set_xlabel(xlabel)
            axes.set_title(f"N = {order}", loc="left", fontsize=10.5, color=MUTED)
        figure.legend(
            [lines[label] for label in labels],
            labels,
            loc="outside lower center",
            ncols=3,
            frameon=False,
            fontsize=8.5,
        )
        return f"<h3>{title}</h3>" + svg(figure, f"smoothing-{name}", title, see)


def _values(row: Row, key: str) -> list[float]:
    found = row.get(key)
    return (
        [float(v) for v in found]
        if isinstance(found, list) and all(isinstance(v, (int, float)) for v in found)
        else []
    )


def _grouped(curves: Iterable[tuple[int, Curve]]) -> dict[int, list[Curve]]:
    groups: dict[int, list[Curve]] = {}
    for order, curve in curves:
        if len(curve[1]) == len(curve[2]) and any(y > 0 for y in curve[2]):
            groups.setdefault(order, []).append(curve)
    return groups


def _depth(rows: list[Row], masked: bool, absolute: bool = False) -> Iterable[tuple[int, Curve]]:
    """In float64; under a mask those whose tokens keep their size, so that shares can be
    compared."""
    for row in rows:
        heights = (
            [10**v for v in _values(row, "log10_residual")] if absolute else _values(row, "ratio")
        )
        if row.get("dtype") != "float64" or bool(row.get("masked")) != masked or not heights:
            continue
        if masked and row.get("norm") != "rms":
            continue
        label = str(row["curve"]).removesuffix(" + rms norm")
        if masked:
            radius = number(row, "radius")
            label += ", chosen anew" if radius is None else f", radius {radius:.0f}"
        yield int(row["order"]), (label, [float(i) for i in range(len(heights))], heights)


def _ways(row: Row) -> list[tuple[object, float]]:
    """Distances, some of which may be None, each with the influence over it."""
    distances = row.get("distance")
    return list(
        zip(
            distances if isinstance(distances, list) else [],
            _values(row, "influence"),
            strict=False,
        )
    )


def _influence(rows: list[Row]) -> Iterable[tuple[int, Curve]]:
    """The largest influence at every distance."""
    for row in rows:
        largest: dict[int, float] = {}
        for distance, influence in _ways(row):
            if isinstance(distance, int):
                largest[distance] = max(largest.get(distance, 0.0), influence)
        places = sorted(place for place, height in largest.items() if height > 0)
        label = str(row["squash"]).removesuffix(" + rms norm")
        yield int(row["order"]), (label, [float(p) for p in places], [largest[p] for p in places])


def _slope(points: list[tuple[float, float]]) -> float | None:
    """Of ln y over x by least squares; None where x does not vary."""
    mean_x = sum(x for x, _ in points) / max(len(points), 1)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * math.log(y) for x, y in points) / spread if spread > 0 else None


class _TradeOff(NamedTuple):
    """Of a mask: how fast tokens collapse under it, and what distant tokens still tell."""

    mask: str
    order: int
    radius: float | None
    gap: float | None
    collapse: float | None
    influence: float | None


def _trade_offs(curves: list[Row], masks: list[Row]) -> Iterable[_TradeOff]:
    rates = {
        (row["curve"], row["order"]): number(row, "rate")
        for row in curves
        if row.get("dtype") == "float64"
    }
    for row in masks:
        points = [
            (float(distance), influence)
            for distance, influence in _ways(row)
            if isinstance(distance, int) and influence > 0
        ]
        yield _TradeOff(
            str(row["squash"]).removesuffix(" + rms norm"),
            int(row["order"]),
            number(row, "radius"),
            number(row, "lambda_2"),
            rates.get((row["squash"], row["order"])),
            _slope(points),
        )


def trade_off_table(found: list[_TradeOff]) -> str:
    header = [
        "mask",
        "N",
        "radius",
        "λ₂",
        "collapse, nats a layer",
        "ln influence, a layer of distance",
    ]
    digits = (0, 0, 3, 3, 3)
    body = [
        [each.mask, *(amount(v, d) for v, d in zip(each[1:], digits, strict=True))]
        for each in found
    ]
    return "<h3>Smoothing beside squashing</h3>" + table(header, body)


def trade_off_plot(found: list[_TradeOff], name: str) -> str:
    """What a layer of distance costs against collapse rate, radius and the skeleton's second
    eigenvalue."""
    title = "Influence lost a layer of distance, beside collapse, radius and λ₂"
    sides = [("collapse", "collapse, nats a layer"), ("radius", "radius"), ("gap", "λ₂")]
    with matplotlib.rc_context(STYLE):
        figure, all_axes = new_axes(3.4, len(sides))
        orders = sorted({each.order for each in found})
        for axes, (field, label) in zip(all_axes.flat, sides, strict=True):
            for place, order in enumerate(orders):
                own = [(getattr(e, field), e.influence) for e in found if e.order == order]
                points = [(x, y) for x, y in own if x is not None and y is not None]
                axes.plot(
                    [x for x, _ in points],
                    [y for _, y in points],
                    "o",
                    color=SERIES[place % len(SERIES)],
                    label=f"N = {order}",
                )
            axes.set_xlabel(label)
        handles, labels = all_axes.flat[0].get_legend_handles_labels()
        figure.legend(
            handles,
            labels,
            loc="outside lower center",
            ncols=len(orders),
            frameon=False,
            fontsize=8.5,
        )
        see = (
            "See what distant tokens cost: a lower point loses more of its influence per layer of "
            "distance, and a point further right in the first chart collapses faster."
        )
        return f"<h3>{title}</h3>" + svg(figure, f"smoothing-trade-off-{name}", title, see)


def _flows(rows: list[Row]) -> Iterable[tuple[int, Curve]]:
    """The first seed by Runge and Kutta."""
    for row in rows:
        if row.get("method") == "RK4" and number(row, "seed") == 0:
            time, distance = _values(row, "time"), _values(row, "relative_distance")
            yield int(row["order"]), (str(row["flow"]), time, distance)


def _entries(rows: list[Row]) -> Iterable[tuple[int, Curve]]:
    for key, label in (
        ("contraction", "‖res‖/‖X‖, after over before"),
        ("separable_error", "separable beside softmax"),
    ):
        for order in dict.fromkeys(int(row["order"]) for row in rows):
            own = [
                (number(r, "entry_bound"), number(r, key)) for r in rows if int(r["order"]) == order
            ]
            points = [(x, y) for x, y in own if x is not None and y is not None]
            yield order, (label, [x for x, _ in points], [y for _, y in points])


def smoothing_parts(run: Folder) -> list[str]:
    """What there is to plot of a run, which may have broken off."""

    def having(key: str) -> list[Row]:
        return [row for row in run.rows if key in row and number(row, "order") is not None]

    plots = [
        (
            "depth",
            "Share of tokens that differs, ‖res‖/‖X‖",
            "layer",
            "See how fast tokens become alike: a straight fall is one factor per layer.",
            _depth(having("curve"), masked=False),
        ),
        (
            "residual",
            "The residual itself, ‖res‖",
            "layer",
            "See whether the difference of the tokens itself vanishes, or only its share.",
            _depth(having("curve"), masked=False, absolute=True),
        ),
        (
            "masks",
            "The same share under masks, tokens of unit mean square",
            "layer",
            "See which masks keep tokens different for longer: their curves fall more slowly.",
            _depth(having("curve"), masked=True),
        ),
        (
            "influence",
            "Influence of a token on the last",
            "layers it has to go",
            "See how far a token reaches: its influence falls with the layers that it has to go.",
            _influence(having("squash")),
        ),
        (
            "flow",
            "Largest distance over largest token, continuous time",
            "time",
            "See whether tokens meet in continuous time too: a straight fall is exponential.",
            _flows(having("flow")),
        ),
        (
            "entries",
            "Large entries of queries and keys",
            "largest entry",
            "See what larger entries change: where the share after over before comes near 1, the "
            "layer no longer makes tokens alike.",
            _entries(having("entry_bound")),
        ),
    ]
    parts = [
        _panels(f"{name}-{run.name}", title, xlabel, see, groups)
        for name, title, xlabel, see, curves in plots
        if (groups := _grouped(curves))
    ]
    found = list(_trade_offs(having("curve"), having("squash")))
    return [*parts, trade_off_plot(found, run.name), trade_off_table(found)] if found else parts


#: Two figures that are drawn side by side, and what to see in them.
_LAYER_FIGURES = [
    (
        [("ratio", "||res|| / ||X||"), ("mean_cosine", "mean cosine of two tokens")],
        "See where the tokens become alike: the share falls to 0, and the cosine rises to 1.",
    ),
    (
        [
            ("relative_entropy", "entropy, of its largest"),
            ("logit_range", "range of a query's logits"),
        ],
        "See which layers choose their tuples: their entropy is low, and their logits lie far "
        "apart. Entropy 1 is a plain mean.",
    ),
    (
        [
            ("block_jacobian", "largest singular value, block"),
            ("sensitivity", "sensitivity of the operator"),
        ],
        "See which layers amplify small changes most: their values are the largest.",
    ),
]


def layers_figure(run: Folder, pair: list[tuple[str, str]], see: str) -> str:
    """Two figures over the layers; dots are layers of order 2 and above."""
    with matplotlib.rc_context(STYLE):
        drawing, both = new_axes(2.8, columns=2)
        for axes, (key, title) in zip(both, pair):
            rows = having(run.rows, "layer", key)
            axes.plot([r["layer"] for r in rows], [r[key] for r in rows], color=SERIES[0])
            high = [row for row in rows if (number(row, "order") or 0) > 1]
            axes.plot(
                [r["layer"] for r in high],
                [r[key] for r in high],
                "o",
                color=SERIES[1],
                markersize=5,
            )
            axes.set_xlabel("layer")
            axes.xaxis.get_major_locator().set_params(integer=True)
            name_axes(axes, title)
        keys = "-".join(key for key, _ in pair)
        return svg(
            drawing,
            f"model-{run.name}-{keys}",
            f"{pair[0][1]} and {pair[1][1]} over the layers",
            see,
        )


def layer_parts(run: Folder) -> list[str]:
    names = {
        "ratio": "||res|| / ||X||",
        "effective_rank": "rank",
        "mean_cosine": "cosine",
        "dirichlet_energy": "Dirichlet energy",
        "logit_range": "logit range",
        "alignment": "alignment",
        "relative_entropy": "entropy",
        "block_jacobian": "|J| of the block",
        "attention_jacobian": "|J| of attention",
        "sensitivity": "sensitivity",
        "sensitivity_bound": "bound",
    }
    body = [
        [
            whole(row, "layer"),
            str(row.get("layer_kind", "")),
            *(amount(number(row, key), 3) for key in names),
        ]
        for row in run.rows
    ]
    known = [
        (pair, see)
        for pair, see in _LAYER_FIGURES
        if all(any(number(r, key) is not None for r in run.rows) for key, _ in pair)
    ]
    return [
        *(layers_figure(run, pair, see) for pair, see in known),
        table(["layer", "attention", *names.values()], body),
        '<p class="muted">Layer 0 is the embedding; dots are layers of order 2 and above. Means '
        "over windows of the text.</p>",
    ]
