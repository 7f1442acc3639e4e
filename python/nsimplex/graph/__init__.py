"""Sets, graphs and hypergraphs as lists of tuples of nodes. One batch holds many, without padding.

The functions here prepare data: on the CPU, in int64, outside of compiled graphs. Only features
carry gradients. The functions return rows in ascending lexicographic order, each row once. Errors
name the argument, the expected value and the received value.
"""

from .batches import (
    DerivedTuples,
    TupleBatch,
    check_features,
    concatenate_graphs,
    derived_features,
    split_graphs,
    tuple_batch,
)
from .builders import (
    PointSets,
    all_orders,
    barabasi_albert_graph,
    chain_graphs,
    complete_tuples,
    delaunay_graph,
    edge_tuples,
    node_and_edge_features,
    project_tuples,
    random_point_sets,
    with_loops,
)
from .collate import (
    collate_graphs,
)
from .graph_structure import (
    Adjacency,
    LaplacianEigenvectors,
    LineGraph,
    adjacency,
    component_cliques,
    connected_components,
    label_cliques,
    laplacian_eigenvectors,
    line_graph,
    node_degrees,
    simplices,
)

__all__ = [
    "Adjacency",
    "DerivedTuples",
    "LaplacianEigenvectors",
    "LineGraph",
    "PointSets",
    "TupleBatch",
    "adjacency",
    "all_orders",
    "barabasi_albert_graph",
    "chain_graphs",
    "check_features",
    "collate_graphs",
    "complete_tuples",
    "component_cliques",
    "concatenate_graphs",
    "connected_components",
    "delaunay_graph",
    "derived_features",
    "edge_tuples",
    "label_cliques",
    "laplacian_eigenvectors",
    "line_graph",
    "node_and_edge_features",
    "node_degrees",
    "project_tuples",
    "random_point_sets",
    "simplices",
    "split_graphs",
    "tuple_batch",
    "with_loops",
]
