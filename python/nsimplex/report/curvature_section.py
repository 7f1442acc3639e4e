"""The section of ``nsimplex analyze curvature``: how curvatures of graphs and line graphs are
spread."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

from .._page import section, table
from .._safetensors import Safetensors
from .elements import INK, SERIES, STYLE, amount, name_axes, new_axes, svg
from .run import Folder, Row, number

_KINDS = ("plain", "augmented", "balanced")
_BINS = 40
_SEE = "See whether line graphs lie further right than graphs: their bottlenecks are milder."
_LARGEST = 1e6  # of a curvature that is drawn
_FACTS = (
    ("graphs", "graphs", 0),
    ("compared", "compared", 0),
    ("nodes", "nodes", 0),
    ("edges", "edges", 0),
    ("line_edges", "edges of line graphs", 0),
    ("density", "density", 3),
    ("tokens_ratio", "tokens of a line graph per token", 3),
)


def curvature_sections(folders: list[Folder]) -> list[str]:
    """One section per folder."""
    return [_section(folder, len(folders) == 1) for folder in folders]


def _section(folder: Folder, only: bool) -> str:
    found = read_curvatures(folder.path / "curvatures.safetensors")
    pictures = []
    if found:
        pictures = [
            '<p class="muted">The share of graphs, and of their line graphs, whose edges have this '
            "mean or least curvature. A line graph whose curve lies further right has milder "
            "bottlenecks. Vertical lines are means.</p>",
            *(_histograms(folder.name, name, values) for name, values in found.items()),
        ]
    title = "Curvature of graphs and their line graphs"
    return section(title if only else f"{title}: {folder.name}", *pictures, _facts(folder.rows[-1]))


def _facts(row: Row) -> str:
    return table(
        [title for _, title, _ in _FACTS],
        [[amount(number(row, key), digits) for key, _, digits in _FACTS]],
    )


def read_curvatures(path: Path) -> dict[str, np.ndarray]:
    """By curvature float64 [graphs, graph or line graph, mean or minimum], for the graphs whose
    four numbers are all known. Empty if there is no such file."""
    try:
        file = Safetensors(path)
        made = {name: file.tensor(name).double().numpy() for name in _KINDS if name in file}
    except ValueError:
        return {}
    found = {}
    for name, values in made.items():
        if values.ndim == 3 and values.shape[1:] == (2, 2):
            known = values[(np.abs(values) < _LARGEST).all((1, 2))]  # NaN is not below
            if len(known):
                found[name] = known
    return found


def _histograms(folder: str, name: str, values: np.ndarray) -> str:
    with matplotlib.rc_context(STYLE):
        drawing, both = new_axes(3.0, columns=2)
        for axes, place, title in zip(both, (0, 1), ("mean", "minimum"), strict=True):
            own = values[:, :, place]
            low, high = own.min(), own.max()
            edges = np.linspace(low - 1e-9, max(high, low + 1e-3) + 1e-9, _BINS + 1)
            for side, (label, color) in enumerate(zip(("graph", "line graph"), SERIES)):
                count, _ = np.histogram(own[:, side], edges)
                axes.stairs(
                    count / len(own), edges, fill=True, color=color, alpha=0.45, label=label
                )
                axes.axvline(own[:, side].mean(), color=color, linewidth=1.6)
            axes.set_xlabel(f"{title} over the edges")
            name_axes(axes, "share of graphs")
            axes.margins(x=0.02)
        handles, labels = both[0].get_legend_handles_labels()
        drawing.legend(
            handles, labels, loc="outside upper right", ncols=2, frameon=False, labelcolor=INK
        )
        means = values.mean(0)
        said = (
            f"Histograms of the {name} curvature of {len(values)} graphs and their line graphs: "
            f"the mean over the edges is {means[0, 0]:.3g} and {means[1, 0]:.3g} on average, the "
            f"minimum {means[0, 1]:.3g} and {means[1, 1]:.3g}"
        )
        return f"<h3>{name}</h3>" + svg(drawing, f"curvature-{name}-{folder}", said, _SEE)
