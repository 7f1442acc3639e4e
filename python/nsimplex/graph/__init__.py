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
from .conversion_checks import ConversionWarning
from .conversions import from_dense, from_edge_index, from_scipy
from .curvature import EdgeCurvatures, edge_curvatures
from .dgl_graphs import from_dgl, to_dgl
from .frameworks import from_pyg, to_pyg
from .graph_data import GraphData
from .graph_scores import (
    Split,
    adjusted_rand_index,
    average_precision,
    hits_at,
    mean_reciprocal_rank,
    negative_tuples,
    roc_auc,
    soft_f1_loss,
    split_rows,
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
from .hif import read_hif, write_hif
from .hyperedges import from_hyperedge_index, from_hyperedges, from_incidence
from .liftings import (
    lift_cliques,
    lift_k_hop_sets,
    lift_line_graph,
    with_laplacian_encodings,
    with_random_walk_encodings,
)
from .link_split import LinkSplit, split_links
from .molecule_files import read_molecules
from .networkx_graphs import class_numbers, from_networkx, to_networkx

__all__ = [
    "Adjacency",
    "ConversionWarning",
    "DerivedTuples",
    "EdgeCurvatures",
    "GraphData",
    "LaplacianEigenvectors",
    "LineGraph",
    "LinkSplit",
    "PointSets",
    "Split",
    "TupleBatch",
    "adjacency",
    "adjusted_rand_index",
    "all_orders",
    "average_precision",
    "barabasi_albert_graph",
    "chain_graphs",
    "check_features",
    "class_numbers",
    "collate_graphs",
    "complete_tuples",
    "component_cliques",
    "concatenate_graphs",
    "connected_components",
    "delaunay_graph",
    "derived_features",
    "edge_curvatures",
    "edge_tuples",
    "from_dense",
    "from_dgl",
    "from_edge_index",
    "from_hyperedge_index",
    "from_hyperedges",
    "from_incidence",
    "from_networkx",
    "from_pyg",
    "from_scipy",
    "hits_at",
    "label_cliques",
    "laplacian_eigenvectors",
    "lift_cliques",
    "lift_k_hop_sets",
    "lift_line_graph",
    "line_graph",
    "mean_reciprocal_rank",
    "negative_tuples",
    "node_and_edge_features",
    "node_degrees",
    "project_tuples",
    "random_point_sets",
    "read_hif",
    "read_molecules",
    "roc_auc",
    "simplices",
    "soft_f1_loss",
    "split_graphs",
    "split_links",
    "split_rows",
    "to_dgl",
    "to_networkx",
    "to_pyg",
    "tuple_batch",
    "with_laplacian_encodings",
    "with_loops",
    "with_random_walk_encodings",
    "write_hif",
]
