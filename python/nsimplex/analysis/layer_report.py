"""The metrics of one attention layer, and those of several layers as a table of text."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LayerReport", "table_cells"]


@dataclass(frozen=True)
class LayerReport:
    """What one call of attention did. Numbers are means over the batch's entries, or the largest of
    them for derivatives; None if they do not apply or were not asked for."""

    name: str  #: of the module, as in ``model.named_modules()``
    kind: str  #: class of the module
    order: int
    heads: int
    tokens: int
    block: str | None  #: the entry of a ModuleList around it
    #: ||X - 1 mean(X)^T||_{1,inf} / ||X||_{1,inf} of the layer's input, output and block's output
    ratio_before: float | None = None
    ratio_after: float | None = None
    ratio_block: float | None = None
    rank_before: float | None = None  #: effective rank of the same tokens
    rank_after: float | None = None
    rank_block: float | None = None
    cosine_before: float | None = None  #: mean cosine of all pairs of tokens
    cosine_after: float | None = None
    #: entropy of a query's weights over the logarithm of its number of tuples: 1 is uniform
    entropy: float | None = None
    sink_mass: float | None = None  #: weight that the most attended key of an axis gets, mean
    sink_key: int | None = None  #: that key
    radius: float | None = None  #: largest norm of a token of the input
    jacobian: float | None = None  #: |J v| with |v| = 1 of the layer at the batch
    lipschitz_bound: float | None = None  #: on the ball of that radius
    sensitivity: float | None = None  #: of the operator at q, k and v, inf-RMS norms
    sensitivity_bound: float | None = None
    sharpness: float | None = None
    sharpness_bound: float | None = None


_COLUMNS = (
    ("layer", "name"),
    ("order", "order"),
    ("heads", "heads"),
    ("ratio in", "ratio_before"),
    ("out", "ratio_after"),
    ("block", "ratio_block"),
    ("rank in", "rank_before"),
    ("out", "rank_after"),
    ("block", "rank_block"),
    ("entropy", "entropy"),
    ("sink", "sink_mass"),
    ("|J|", "jacobian"),
    ("bound", "lipschitz_bound"),
    ("sensitivity", "sensitivity"),
    ("bound", "sensitivity_bound"),
    ("sharpness", "sharpness"),
    ("bound", "sharpness_bound"),
)


def table_cells(layers: list[LayerReport]) -> list[list[str]]:
    """The rows of the table, its header first, without columns that have no number."""
    shown = [each for each in _COLUMNS if any(_cell(layer, each[1]) != "-" for layer in layers)]
    rows = [[title for title, _ in shown]]
    return rows + [[_cell(layer, name) for _, name in shown] for layer in layers]


def _cell(layer: LayerReport, name: str) -> str:
    value = getattr(layer, name)
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value) or "(model)"
