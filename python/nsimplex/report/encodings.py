"""Sections about encodings of features that were compared on one task."""

from __future__ import annotations

import matplotlib

from .data import EncodingRun, Row, number
from .figure import MUTED, SERIES, STYLE, new_axes, svg
from .parts import amount, section, table

_TITLES = {
    "classify": "Classes of observations",
    "cluster": "Clusters of observations",
    "regress": "A number of each observation",
    "perturb": "What unseen interventions do",
}


def _figures(run: EncodingRun) -> list[str]:
    """Names of the figures, in the order in which a summary has them."""
    keys = dict.fromkeys(key for row in run.summary for key in row)
    return [key[: -len("_deviation")] for key in keys if key.endswith("_deviation")]


def trials_figure(run: EncodingRun, figure: str) -> str:
    """Every trial of every encoding as a dot, its mean as a bar across them."""
    names = list(dict.fromkeys(row["encoding"] for row in run.trials))
    with matplotlib.rc_context({**STYLE, "axes.grid.axis": "x"}):
        drawing, axes = new_axes(0.9 + 0.28 * len(names))
        for place, name in enumerate(names):
            values = [v for row in run.trials if row["encoding"] == name and (v := number(row, figure)) is not None]
            color = SERIES[0] if name.startswith("cape") else SERIES[1]
            axes.plot(values, [place] * len(values), "o", color=color, markersize=4, alpha=0.5, linestyle="")
            if values:
                mean = sum(values) / len(values)
                axes.plot([mean, mean], [place - 0.3, place + 0.3], color=color)
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.set_title(figure, loc="left", fontsize=10.5, color=MUTED, pad=10)
        return svg(drawing, f"{run.task}-{run.name}-{figure}", f"{figure} of every encoding, trial by trial")


def _gain(row: Row, figure: str) -> str:
    gain = row.get(f"cape_better_by_{figure}")
    if not isinstance(gain, list) or len(gain) != 3 or not all(isinstance(v, (int, float)) for v in gain):
        return "–"
    return "{:+.3f} [{:+.3f}, {:+.3f}]".format(*gain)


def encoding_section(run: EncodingRun, only: bool) -> str:
    """Encodings beside each other over paired trials."""
    figures = _figures(run) or [key for key in ("accuracy", "ari", "medae", "single") if number(run.trials[0], key)]
    parts = [trials_figure(run, figure) for figure in figures[:2]]
    if run.summary:
        header = ["encoding", *(text for figure in figures for text in (figure, "cape better by")), "trials"]
        rows = [
            [
                row["encoding"],
                *(
                    text
                    for figure in figures
                    for text in (
                        f"{amount(number(row, figure), 4)} ± {amount(number(row, f'{figure}_deviation'), 4)}",
                        _gain(row, figure),
                    )
                ),
                amount(number(row, "trials"), 0),
            ]
            for row in run.summary
        ]
        parts.append(table(header, rows))
    title = _TITLES.get(run.task, run.task)
    return section(
        title if only else f"{title}: {run.name}",
        '<p class="muted">Trials are paired: the same data, split and starting weights for every encoding. Mean and '
        "sample deviation; what cape is better by has its 95 % interval.</p>",
        *parts,
    )
