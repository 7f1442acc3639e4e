"""The heaviest tuples of predictions, as lines of a run and as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..graph import GraphData, TupleBatch
from ..nn.graph_models import GraphModel
from ..nn.graph_transformer import GraphTransformer
from ..viz import GraphTuples, heaviest_graph_tuples
from .records import Loaded, Recipe

#: Columns of the table, after those that name a row.
COLUMNS = ["tuple", "weight", "even weight", "class", "head"]


def explained(
    model: GraphModel,
    data: GraphData,
    count: int,
    rows: Sequence[int],
    queries: Sequence[TupleBatch] | None = None,
) -> list[GraphTuples]:
    """The heaviest tuples of some predictions, of rows of the data or of ``queries``.

    Raises:
        ValueError: the model has no attention over tuples.
    """
    if not isinstance(model, GraphTransformer):
        kind = getattr(model, "kind", type(model).__name__)
        raise ValueError(f"--explain: expected a transformer in RUN, got {kind}")
    return heaviest_graph_tuples(model, data, count, rows=rows, queries=queries)


def line_of(own: GraphTuples, loaded: Loaded, recipe: Recipe) -> dict[str, Any]:
    """The fields of a line: the tuples, and the part of the graph that a picture shows."""
    shown = own.nearby()
    named = {node: own.labels[node] for each in own.tuples for node in each.nodes}
    return dict(
        task=recipe.task,
        of=dict(zip(loaded.header, loaded.rows[own.row])),
        target=list(shown.target),
        nodes=shown.labels,
        classes=_classes(own, loaded, recipe),
        sets=[list(each) for each in shown.edges],
        drawn=[[list(each.nodes), each.weight] for each in shown.tuples],
        tuples=[
            {
                "nodes": [named[node] for node in each.nodes],
                "weight": each.weight,
                "among": each.among,
                "class": each.name,
                "head": each.head,
            }
            for each in own.tuples
        ],
    )


def _classes(own: GraphTuples, loaded: Loaded, recipe: Recipe) -> list[str]:
    """The known class of each node of the picture, "" where it is not known; [] where nodes have
    none."""
    targets = loaded.targets
    if targets is None or recipe.task != "node" or not targets.classes:
        return []
    rows = [int(loaded.data.node_offsets[own.graph]) + node for node in own.kept_nodes()]
    return [targets.classes[int(targets.values[r])] if targets.known[r] else "" for r in rows]


def table_rows(own: GraphTuples, loaded: Loaded) -> Iterator[list[str]]:
    """The rows of the table of one prediction."""
    for each in own.tuples:
        yield [
            *loaded.rows[own.row],
            own.name(each.nodes),
            f"{each.weight:.6g}",
            f"{1 / each.among:.6g}",
            each.name,
            str(each.head),
        ]
