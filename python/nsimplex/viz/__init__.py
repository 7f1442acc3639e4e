"""Pictures of attention of any order: heaviest tuples, marginals, sinks, distances between heads
and the attention graph.

:func:`view` looks at tensors, :func:`views` at every attention layer of a model.
:class:`TupleView` has the drawings (text and SVG), :func:`save_page` writes an interactive page.
:func:`heaviest_graph_tuples` is for predictions of a graph transformer.
"""

from .graph_tuples import GraphTuple, GraphTuples, heaviest_graph_tuples
from .head_comparison import head_distances, heads_svg
from .heaviest import HeaviestTuples, heaviest_tuples
from .page import save_page
from .view import TupleView, view, views

__all__ = [
    "GraphTuple",
    "GraphTuples",
    "HeaviestTuples",
    "TupleView",
    "head_distances",
    "heads_svg",
    "heaviest_graph_tuples",
    "heaviest_tuples",
    "save_page",
    "view",
    "views",
]
