"""Sections about models of one task beside each other: on sets and graphs, and with encodings of
features."""

from __future__ import annotations

from dataclasses import dataclass, field

import matplotlib

from .._page import section, table
from .elements import MUTED, SERIES, STYLE, amount, dashes, finish, new_axes, spread_labels, svg
from .run import Folder, Row, having, latest, number


@dataclass
class TaskRun:
    """Models of one task in a folder: results of a seed or a trial, means over them; validations;
    what passes cost."""

    name: str
    task: str
    results: list[Row]
    means: list[Row]
    points: list[Row] = field(default_factory=list)
    costs: list[Row] = field(default_factory=list)


_TITLES = {
    "chains": "A label at the end of a chain",
    "scaling": "Cost of a pass against edges",
    "delaunay": "Delaunay triangulations of point sets",
    "jets": "Which tracks share a vertex",
    "hyperedges": "Which hyperedges exist",
    "molecules": "Properties of molecules",
    **{
        task: f"A target of every {task}, models compared"
        for task in ("graph", "node", "edge", "hyperedge")
    },
}

# Figures whose validation is drawn, and what over; without an entry the first figure, over epochs.
_CURVES = {"hyperedges": [("auc", "epoch"), ("aupr", "epoch")], "molecules": [("mae", "seconds")]}

_NOTES = {
    "hyperedges": "auc and aupr are the areas under the curves of true against false positives and "
    "of precision against "
    "recall; those of unseen rows leave out what the training file has too.",
    "molecules": "mae is the mean absolute error in the unit of the target, less is better. Models "
    "that train for equal "
    "times, with --seconds, are to be compared where their curves end.",
}


def _models(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(row["model"] for row in rows))


def _figures(run: TaskRun) -> list[str]:
    """Names of the figures, in the order in which a result has them."""
    names = []
    for row in run.means:
        names += [
            key[: -len("_mean")]
            for key in row
            if key.endswith("_mean") and not key.startswith("last_")
        ]
    return list(dict.fromkeys(names))


def _validated(run: TaskRun, figure: str) -> list[Row]:
    return [row for row in run.points if number(row, f"validation_{figure}") is not None]


def mean_curve(points: list[Row], over: str, key: str) -> list[tuple[float, float]]:
    """(over, key) of each epoch in turn, means over the points that are of it."""
    by_epoch: dict[float, list[Row]] = {}
    for row in points:
        by_epoch.setdefault(row["epoch"], []).append(row)
    means = []
    for epoch in sorted(by_epoch):
        rows = by_epoch[epoch]
        means.append(tuple(sum(row[name] for row in rows) / len(rows) for name in (over, key)))
    return means


def validation_curves(run: TaskRun, figure: str, over: str = "epoch") -> str:
    """A validation figure over epochs or seconds of training, means over the seeds that have an
    epoch."""
    key = f"validation_{figure}"
    points = [row for row in _validated(run, figure) if number(row, over) is not None]
    with matplotlib.rc_context(STYLE):
        drawing, axes = new_axes()
        ends = []
        for index, model in enumerate(_models(points)):
            curve = mean_curve([row for row in points if row["model"] == model], over, key)
            color = SERIES[index % len(SERIES)]
            axes.plot(*zip(*curve), color=color, linestyle=dashes(index))
            ends.append((*curve[-1], model, color))
        spread_labels(axes, ends)
        axis = "epochs" if over == "epoch" else "seconds of training"
        finish(axes, axis, f"{figure.replace('_', ' ')} on the validation split")
        return svg(
            drawing,
            f"{run.task}-{run.name}-{figure}",
            f"Validation {figure} of each model over {axis}",
            "See which model is best on the validation split, and when its curve stops improving.",
        )


def _spread(row: Row, name: str) -> str:
    mean, deviation = number(row, f"{name}_mean"), number(row, f"{name}_deviation")
    if mean is None:
        return "–"
    several = deviation is not None and (number(row, "seeds") or 1) > 1
    return f"{mean:.4f} ± {deviation:.4f}" if several else f"{mean:.4f}"


def _means_table(run: TaskRun, figures: list[str]) -> str:
    references = [row for row in run.results if "best_epoch" not in row]
    rows = []
    for model in _models(references):
        values = [row for row in references if row["model"] == model]
        means = []
        for name in figures:
            known = [v for row in values if (v := number(row, name)) is not None]
            means.append(amount(sum(known) / len(known) if known else None, 4))
        rows.append([model, *means, *[""] * (2 * len(figures) + 3)])
    for row in run.means:
        own = [
            result
            for result in run.results
            if result["model"] == row["model"] and "best_epoch" in result
        ]
        seconds = [v for result in own if (v := number(result, "seconds")) is not None]
        rows.append(
            [
                row["model"] if own else f"{row['model']} (paper)",
                *(_spread(row, name) for name in figures),
                *(_spread(row, f"last_{name}") for name in figures),
                *(amount(number(row, f"published_{name}"), 4) for name in figures),
                amount(number(row, "seeds"), 0),
                amount(number(own[0], "parameters") if own else None, 0),
                amount(sum(seconds) / len(seconds) if seconds else None, 1, " s"),
            ]
        )
    names = [name.replace("_", " ") for name in figures]
    header = [
        "",
        *names,
        *(f"last {n}" for n in names),
        *(f"paper {n}" for n in names),
        "seeds",
        "parameters",
        "training",
    ]
    filled = [
        place
        for place, cells in enumerate(zip(*rows))
        if not place or any(cell not in ("", "–") for cell in cells)
    ]
    return table([header[i] for i in filled], [[row[i] for i in filled] for row in rows])


def _heading(run: TaskRun, only: bool) -> str:
    title = _TITLES.get(run.task, run.task)
    return title if only else f"{title}: {run.name}"


def graph_section(run: TaskRun, only: bool) -> str:
    """Models that were trained on a task beside each other."""
    figures = _figures(run)
    curves = _CURVES.get(run.task, [(f, "epoch") for f in figures if _validated(run, f)][:1])
    parts = [
        validation_curves(run, figure, over) for figure, over in curves if _validated(run, figure)
    ]
    if run.means or run.results:
        parts.append(_means_table(run, figures))
    note = _NOTES.get(run.task)
    last = (
        " and of the last" if any(key.startswith("last_") for r in run.means for key in r) else ""
    )
    return section(
        _heading(run, only),
        '<p class="muted">The epoch is chosen by the validation split; the test split is read at '
        f"the end, with the weights of the best epoch{last}. Mean and sample deviation over the "
        "seeds."
        f"{' ' + note if note else ''}</p>",
        *parts,
    )


def scaling_curves(run: TaskRun, key: str, name: str) -> str:
    """A cost over edges, both logarithmic, mean over the graphs of a size."""
    rows = [row for row in run.costs if number(row, key)]
    with matplotlib.rc_context(STYLE):
        drawing, axes = new_axes()
        axes.set_xscale("log")
        axes.set_yscale("log")
        ends = []
        for index, model in enumerate(_models(rows)):
            by_size: dict[float, list[float]] = {}
            for row in rows:
                if row["model"] == model:
                    by_size.setdefault(row["edges"], []).append(row[key])
            sizes = sorted(by_size)
            means = [sum(by_size[size]) / len(by_size[size]) for size in sizes]
            color = SERIES[index % len(SERIES)]
            axes.plot(sizes, means, "o", markersize=3.5, color=color, linestyle=dashes(index))
            ends.append((sizes[-1], means[-1], model, color))
        spread_labels(axes, ends)
        axes.set_xlabel("edges")
        axes.set_title(name, loc="left", fontsize=10.5, color=MUTED, pad=10)
        return svg(
            drawing,
            f"{key}-{run.name}",
            f"{name} over the edges of the graph",
            "See how fast the cost grows: on these axes a slope of 1 is a cost in proportion to "
            "the edges.",
        )


def graph_scaling_section(run: TaskRun, only: bool) -> str:
    """What a pass costs on ever larger graphs."""
    rows = [
        [
            row["model"],
            amount(number(row, "largest_edges"), 0),
            *(amount(number(row, f"slope_{key}"), 2) for key in ("forward", "backward", "memory")),
        ]
        for row in run.means
    ]
    costs = [
        ("forward_seconds", "seconds of a forward pass"),
        ("backward_seconds", "seconds of a backward pass"),
        ("peak_bytes", "bytes, largest of a pass"),
    ]
    drawings = [
        scaling_curves(run, key, name)
        for key, name in costs
        if any(number(r, key) for r in run.costs)
    ]
    header = [
        "",
        "largest graph, edges",
        "slope of forward",
        "slope of backward",
        "slope of memory",
    ]
    return section(
        _heading(run, only),
        '<p class="muted">Random graphs of preferential attachment. A slope of 1 is time in '
        "proportion to the edges; "
        "it is fitted to the larger half of the sizes. A model ends where the next size would pass "
        "the limits of the "
        "run.</p>",
        *drawings,
        table(header, rows) if rows else "",
    )


def graph_sections(folders: list[Folder]) -> list[str]:
    """One section per task of a folder, in their order."""
    runs = []
    for folder in folders:
        rows = [
            r
            for r in folder.rows
            if isinstance(r.get("model"), str) and isinstance(r.get("task"), str)
        ]
        for task in dict.fromkeys(row["task"] for row in rows):
            own = [row for row in rows if row["task"] == task]
            costs = [
                r for r in own if number(r, "edges") and number(r, "forward_seconds") is not None
            ]
            points = [r for r in own if number(r, "epoch") is not None]
            rest = [r for r in own if r not in costs and r not in points]
            results = latest([r for r in rest if "seed" in r], "model", "seed")
            means = latest([r for r in own if "seed" not in r], "model")
            runs.append(TaskRun(folder.name, task, results, means, points, costs))
    tasks = [run.task for run in runs]
    return [
        (graph_scaling_section if run.costs else graph_section)(run, tasks.count(run.task) == 1)
        for run in runs
    ]


_ENCODING_TITLES = {
    "classify": "Classes of observations",
    "cluster": "Clusters of observations",
    "regress": "A number of each observation",
    "perturb": "What unseen interventions do",
}


def _encoding_figures(run: TaskRun) -> list[str]:
    """Names of the figures, in the order in which a summary has them."""
    keys = dict.fromkeys(key for row in run.means for key in row)
    return [key[: -len("_deviation")] for key in keys if key.endswith("_deviation")]


def trials_figure(run: TaskRun, figure: str) -> str:
    """Every trial of every encoding as a dot, its mean as a bar across them."""
    names = list(dict.fromkeys(row["encoding"] for row in run.results))
    with matplotlib.rc_context({**STYLE, "axes.grid.axis": "x"}):
        drawing, axes = new_axes(0.9 + 0.28 * len(names))
        for place, name in enumerate(names):
            values = [
                v
                for row in run.results
                if row["encoding"] == name and (v := number(row, figure)) is not None
            ]
            color = SERIES[0] if name.startswith("cape") else SERIES[1]
            axes.plot(
                values,
                [place] * len(values),
                "o",
                color=color,
                markersize=4,
                alpha=0.5,
                linestyle="",
            )
            if values:
                mean = sum(values) / len(values)
                axes.plot([mean, mean], [place - 0.3, place + 0.3], color=color)
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.set_title(figure, loc="left", fontsize=10.5, color=MUTED, pad=10)
        return svg(
            drawing,
            f"{run.task}-{run.name}-{figure}",
            f"{figure} of every encoding, trial by trial",
            "See whether the dots of an encoding lie apart from those of the others: one dot is "
            "one trial, and a bar is a mean.",
        )


def _gain(row: Row, figure: str) -> str:
    gain = row.get(f"cape_better_by_{figure}")
    if (
        not isinstance(gain, list)
        or len(gain) != 3
        or not all(isinstance(v, (int, float)) for v in gain)
    ):
        return "–"
    return "{:+.3f} [{:+.3f}, {:+.3f}]".format(*gain)


def encoding_section(run: TaskRun, only: bool) -> str:
    """Encodings beside each other over paired trials."""
    figures = _encoding_figures(run) or [
        key for key in ("accuracy", "ari", "medae", "single") if number(run.results[0], key)
    ]
    parts = [trials_figure(run, figure) for figure in figures[:2]]
    if run.means:
        header = [
            "encoding",
            *(text for figure in figures for text in (figure, "cape better by")),
            "trials",
        ]
        rows = [
            [
                row["encoding"],
                *(
                    text
                    for figure in figures
                    for text in (
                        f"{amount(number(row, figure), 4)} ± "
                        f"{amount(number(row, f'{figure}_deviation'), 4)}",
                        _gain(row, figure),
                    )
                ),
                amount(number(row, "trials"), 0),
            ]
            for row in run.means
        ]
        parts.append(table(header, rows))
    title = _ENCODING_TITLES.get(run.task, run.task)
    return section(
        title if only else f"{title}: {run.name}",
        '<p class="muted">Trials are paired: the same data, split and starting weights for every '
        "encoding. Mean and "
        "sample deviation; what cape is better by has its 95 % interval.</p>",
        *parts,
    )


def encoding_sections(folders: list[Folder]) -> list[str]:
    runs = []
    for folder in folders:
        rows = [
            r
            for r in folder.rows
            if isinstance(r.get("encoding"), str) and isinstance(r.get("task"), str)
        ]
        for task in dict.fromkeys(row["task"] for row in rows):
            own = [row for row in rows if row["task"] == task]
            trials = latest(
                [r for r in own if "trial" in r or "seed" in r], "encoding", "trial", "seed"
            )
            summary = latest(having(own, "trials"), "encoding")
            if trials:
                runs.append(TaskRun(folder.name, task, trials, summary))
    return [encoding_section(run, len(runs) == 1) for run in runs]
