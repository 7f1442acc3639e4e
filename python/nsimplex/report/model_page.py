"""The page about the attention layers of a model, of ``nsimplex.analysis.report``."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import matplotlib
from matplotlib.ticker import MaxNLocator

from .._page import figure, page, section, table, tile
from ..analysis.layer_report import LayerReport
from .elements import MUTED, SERIES, STYLE, amount, dashes, legend_below, new_axes, svg

_Curve = tuple[str, str]  # name, field of LayerReport


def model_page(
    model: str,
    layers: list[LayerReport],
    *,
    seconds: float,
    forward_seconds: float,
    cost: float,
    settings: Mapping[str, Any],
) -> str:
    """The page as one file. The report took ``seconds``, as long as ``cost`` forward passes."""
    with matplotlib.rc_context(STYLE):
        charts = [_smoothing(layers), _weights(layers), _derivatives(layers)]
    said = ", ".join(f"{name} {value}" for name, value in settings.items())
    time = section(
        "Time",
        f"<p>The report took {seconds:.1f} s. That is as long as {cost:.0f} passes "
        f"of the model over this batch, each of {forward_seconds:.3f} s. Settings: "
        f"{escape(said)}.</p>",
    )
    return page(
        f"Attention layers of {model}",
        "nsimplex model report",
        "Every attention layer of a model, measured while the model read one batch.",
        "".join([_tiles(layers), *charts, _table(layers), time]),
        "Written by nsimplex.analysis.report.",
    )


def _values(layers: list[LayerReport], name: str) -> list[tuple[int, float]]:
    return [
        (place, value)
        for place, layer in enumerate(layers)
        if (value := getattr(layer, name)) is not None
    ]


def _chart(
    layers: list[LayerReport], title: str, curves: list[_Curve], see: str, log: bool = False
) -> str:
    """Curves over the layers, named in a legend; nothing if no curve has a point."""
    found = [(name, _values(layers, field)) for name, field in curves]
    found = [(name, points) for name, points in found if points]
    if not found:
        return ""
    drawing, axes = new_axes(2.9)
    for index, (name, points) in enumerate(found):
        axes.plot(
            *zip(*points, strict=True),
            color=SERIES[index % len(SERIES)],
            linestyle=dashes(index),
            marker="o",
            markersize=4,
            label=name,
        )
    if log and all(value > 0 for _, points in found for _, value in points):
        axes.set_yscale("log")
    axes.set_xlabel("attention layer")
    axes.set_title(title, loc="left", fontsize=10.5, color=MUTED, pad=10)
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    legend_below(axes)
    said = "; ".join(
        f"{name} from {figure(points[0][1])} to {figure(points[-1][1])}" for name, points in found
    )
    return svg(drawing, title, f"{title}: {said}", see)


def _ends(layers: list[LayerReport], name: str) -> tuple[float, float] | None:
    points = _values(layers, name)
    return (points[0][1], points[-1][1]) if points else None


def _rank_ends(layers: list[LayerReport]) -> tuple[float, float] | None:
    """The effective rank of the tokens after the first and after the last block or layer."""
    return _ends(layers, "rank_block") or _ends(layers, "rank_after")


def _where(layers: list[LayerReport]) -> str:
    kind = "block" if _ends(layers, "rank_block") else "attention layer"
    return f"from the first {kind} to the last one"


def _smoothing(layers: list[LayerReport]) -> str:
    curves = [("before", "rank_before"), ("after attention", "rank_after")]
    first, last = _rank_ends(layers) or (0.0, 0.0)
    fall = "falls" if last < first else "does not fall"
    see = (
        f"See whether the tokens become alike with depth: {_where(layers)}, the effective rank "
        f"{fall} from {first:.1f} to {last:.1f}; 1 means that all tokens point in one direction."
    )
    lowest = min(_values(layers, "ratio_after") or [(0, 0.0)], key=lambda point: point[1])
    other = (
        "See how much of the tokens differs from their mean: the attention layer that smooths "
        f"most is number {lowest[0]}, after which {100 * lowest[1]:.0f} % are left."
    )
    ranks = _chart(
        layers, "effective rank of the tokens", [*curves, ("after block", "rank_block")], see
    )
    ratios = _chart(
        layers,
        "share of the tokens' norm that is not their mean",
        [("before", "ratio_before"), ("after attention", "ratio_after")]
        + [("after block", "ratio_block")],
        other,
    )
    return section("Smoothing", ranks, ratios) if ranks else ""


def _weights(layers: list[LayerReport]) -> str:
    sinks = _values(layers, "sink_mass")
    place, mass = max(sinks, key=lambda point: point[1]) if sinks else (0, 0.0)
    see = (
        "See which layers choose and which average: entropy 1 is a plain mean over all tuples. "
        f"The heaviest sink is key {layers[place].sink_key} of layer {place}, which gets "
        f"{100 * mass:.0f} % of the weight."
    )
    chart = _chart(
        layers,
        "share",
        [("entropy / log(number of tuples)", "entropy"), ("heaviest key", "sink_mass")],
        see,
    )
    return section("Weights", chart) if chart else ""


def _derivatives(layers: list[LayerReport]) -> str:
    place, most = max(_values(layers, "jacobian") or [(0, 0.0)], key=lambda point: point[1])
    norms = _chart(
        layers,
        "|J| and its bound",
        [("at the batch", "jacobian"), ("bound", "lipschitz_bound")],
        f"See where a small change grows: layer {place} amplifies most, by {figure(most)}; the "
        "bound holds for every input of this norm, and is far above what is reached.",
        log=True,
    )
    place, most = max(_values(layers, "sharpness") or [(0, 0.0)], key=lambda point: point[1])
    curves = [("sensitivity", "sensitivity"), ("bound of sensitivity", "sensitivity_bound")]
    curves += [("sharpness", "sharpness"), ("bound of sharpness", "sharpness_bound")]
    sharp = _chart(
        layers,
        "sensitivity and sharpness of the operator",
        curves,
        f"See which layer bends most: the second derivative of layer {place} is largest, "
        f"with sharpness {figure(most)}; a first-order step is least reliable there.",
        log=True,
    )
    return section("Derivatives", norms, sharp) if norms or sharp else ""


def _tiles(layers: list[LayerReport]) -> str:
    orders = sorted({layer.order for layer in layers})
    tiles = [tile(str(len(layers)), "Attention layers", "orders " + ", ".join(map(str, orders)))]
    if ranks := _rank_ends(layers):
        values = f"{ranks[0]:.1f} → {ranks[1]:.1f}"
        tiles.append(tile(values, "Effective rank of the tokens", _where(layers)))
    return f'<div class="tiles">{"".join(tiles)}</div>'


def _table(layers: list[LayerReport]) -> str:
    header = ["layer", "module", "order", "heads", "tokens", "ratio", "rank", "cosine"]
    header += ["entropy", "sink", "|J|", "bound", "sensitivity", "bound", "sharpness", "bound"]

    def pair(layer: LayerReport, name: str, digits: int) -> str:
        ends = [amount(getattr(layer, f"{name}_{end}"), digits) for end in ("before", "after")]
        return " → ".join(ends)

    rows = [
        [
            f"{place} {layer.name}",
            layer.kind,
            str(layer.order),
            str(layer.heads),
            str(layer.tokens),
            pair(layer, "ratio", 3),
            pair(layer, "rank", 1),
            pair(layer, "cosine", 2),
            amount(layer.entropy, 2),
            amount(layer.sink_mass, 2),
            *[figure(getattr(layer, name)) for name in _LIMITED],
        ]
        for place, layer in enumerate(layers)
    ]
    return section("All layers", table(header, rows))


_LIMITED = (
    "jacobian", "lipschitz_bound", "sensitivity", "sensitivity_bound", "sharpness",
    "sharpness_bound",
)  # fmt: skip
