"""A call that works of every public function of nsimplex.graph, and the graphs for it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from nsimplex import graph

_EMPTY = tempfile.TemporaryDirectory()


def absent(name: str) -> str:
    """The path of a file that is not there, in a folder that is not there."""
    return str(Path(_EMPTY.name) / "none" / name)


class PygData:
    """Has the attributes of PyTorch Geometric's Data, one path of three nodes and a single one."""

    def __init__(self, **changed) -> None:
        self.edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        self.x, self.edge_attr = torch.randn(4, 2), torch.ones(4, 3)
        self.y, self.num_nodes, self.batch = torch.tensor([1.0]), 4, None
        self.__dict__.update(changed)


class DglGraph:
    """Has the attributes of DGL's graphs."""

    is_homogeneous = True

    def __init__(self) -> None:
        self.ndata = {"feat": torch.randn(4, 2), "label": torch.tensor([0, 1, 0, 1])}
        self.edata = {"feat": torch.ones(4, 3)}

    def num_nodes(self):
        return 4

    def edges(self):
        return torch.tensor([0, 1, 1, 2]), torch.tensor([1, 0, 2, 1])

    def batch_num_nodes(self):
        return torch.tensor([3, 1])


def path_network():
    import networkx

    made = networkx.path_graph(3)
    networkx.set_node_attributes(made, {0: "a", 1: "b", 2: "a"}, "kind")
    networkx.set_edge_attributes(made, 1.5, "weight")
    return made


def graph_data() -> graph.GraphData:
    return graph.from_pyg(PygData())


def derived_tuples() -> graph.DerivedTuples:
    return graph.edge_tuples(torch.tensor([[0, 1], [1, 2]]), 4, loops=True)


def pairs() -> graph.TupleBatch:
    return graph.edge_tuples(torch.tensor([[0, 1], [1, 2], [0, 2]]), 4, symmetry="undirected").batch


#: Made anew for every call.
GRAPH_CALLS = {
    "graph.tuple_batch": lambda: (
        [torch.tensor([[0, 1], [2, 3]])],
        dict(
            tuple_offsets=torch.tensor([0, 1, 2]),
            node_offsets=torch.tensor([0, 2, 4]),
            symmetry="ordered",
        ),
    ),
    "graph.check_features": lambda: (
        [derived_tuples().batch, torch.randn(len(derived_tuples().batch), 2), "x"],
        {},
    ),
    "graph.edge_tuples": lambda: (
        [torch.tensor([[0, 1], [1, 2]]), 4],
        dict(symmetry="ordered", both_directions=True, loops=True),
    ),
    "graph.complete_tuples": lambda: (
        [torch.tensor([2, 3]), 2],
        dict(symmetry="ordered", loops=True),
    ),
    "graph.with_loops": lambda: ([pairs()], {}),
    "graph.all_orders": lambda: ([pairs()], {}),
    "graph.project_tuples": lambda: ([pairs(), 1, "undirected"], dict(all_nodes=True)),
    "graph.concatenate_graphs": lambda: ([[pairs(), pairs()]], {}),
    "graph.collate_graphs": lambda: ([[(pairs(), 1), (pairs(), 2)]], {}),
    "graph.split_graphs": lambda: ([pairs()], {}),
    "graph.derived_features": lambda: ([torch.randn(3, 2), torch.tensor([0, -1, 2])], {}),
    "graph.node_and_edge_features": lambda: (
        [derived_tuples(), torch.randn(4, 2), torch.randn(2, 3)],
        {},
    ),
    "graph.adjacency": lambda: ([pairs()], {}),
    "graph.node_degrees": lambda: ([pairs()], {}),
    "graph.connected_components": lambda: ([pairs()], {}),
    "graph.label_cliques": lambda: ([torch.tensor([0, 1, 0]), torch.tensor([0, 3])], {}),
    "graph.component_cliques": lambda: ([pairs()], {}),
    "graph.simplices": lambda: ([pairs(), 3], {}),
    "graph.line_graph": lambda: ([pairs()], {}),
    "graph.laplacian_eigenvectors": lambda: ([pairs(), 2], {}),
    "graph.chain_graphs": lambda: ([torch.tensor([2, 3])], {}),
    "graph.barabasi_albert_graph": lambda: ([10, 2], dict(seed=3)),
    "graph.random_point_sets": lambda: ([2, 3, 5], dict(seed=3)),
    "graph.delaunay_graph": lambda: ([torch.rand(5, 2), torch.tensor([0, 5])], {}),
    "graph.from_edge_index": lambda: (
        [
            torch.tensor([[0, 1, 2], [1, 0, 3]]),
            4,
            torch.randn(3, 2),
            torch.tensor([0, 0, 1, 1]),
        ],
        dict(
            node_features=torch.randn(4, 2),
            targets=torch.tensor([0.0, 1.0]),
            level="graph",
            directions="both",
            duplicates="mean",
            num_graphs=2,
        ),
    ),
    "graph.from_hyperedge_index": lambda: (
        [
            torch.tensor([[0, 1, 2, 3, 4], [0, 0, 1, 1, 1]]),
            5,
            torch.randn(2, 2),
            torch.tensor([0, 0, 1, 1, 1]),
        ],
        dict(
            node_features=torch.randn(5, 2),
            targets=torch.tensor([0.0, 1.0]),
            level="edge",
            duplicates="first",
            num_graphs=2,
        ),
    ),
    "graph.from_hyperedges": lambda: (
        [[[0, 1], [1, 2, 3]], 4, torch.randn(2, 2)],
        dict(
            node_features=torch.randn(4, 2),
            targets=torch.randn(4),
            level="node",
            duplicates="sum",
        ),
    ),
    "graph.from_incidence": lambda: (
        [torch.tensor([[1, 0], [1, 1], [0, 1]]), torch.randn(2, 2)],
        dict(
            node_features=torch.randn(3, 2),
            targets=torch.randn(3),
            level="node",
            duplicates="same",
        ),
    ),
    "graph.from_scipy": lambda: (
        [torch.tensor([[0, 1], [2, 0]])],
        dict(
            weights=True,
            node_features=torch.randn(2, 2),
            targets=torch.randn(2),
            level="node",
            directions="given",
        ),
    ),
    "graph.from_dense": lambda: (
        [torch.ones(2, 3, 3), torch.ones(2, 3, dtype=torch.bool)],
        dict(
            node_features=torch.randn(2, 3, 4),
            edge_features=torch.randn(2, 3, 3, 2),
            targets=torch.randn(2, 3),
            level="node",
            directions="given",
        ),
    ),
    "graph.from_pyg": lambda: (
        [PygData()],
        dict(
            node_features=["x"],
            edge_features=["edge_attr"],
            target="y",
            level="graph",
            directions="given",
            duplicates="same",
            ignore=["pos"],
        ),
    ),
    "graph.to_dgl": lambda: ([graph_data()], {}),
    "graph.to_pyg": lambda: ([graph_data()], {}),
    "graph.from_networkx": lambda: (
        [path_network()],
        dict(
            node_features=[],
            edge_features=["weight"],
            target="kind",
            directions="both",
            duplicates="same",
            ignore=["colour"],
        ),
    ),
    "graph.to_networkx": lambda: ([graph_data()], {}),
    "graph.from_dgl": lambda: (
        [DglGraph()],
        dict(
            node_features="feat",
            edge_features="feat",
            target="label",
            targets=torch.tensor([0, 1]),
            directions="given",
            duplicates="same",
            ignore=["pos"],
        ),
    ),
    "graph.split_rows": lambda: ([20, [0.6, 0.2, 0.2]], dict(seed=1)),
    "graph.negative_tuples": lambda: ([pairs(), 1.0], dict(seed=1)),
    "graph.split_links": lambda: (
        [graph.from_edge_index(torch.arange(40).view(2, 20))],
        dict(seed=1),
    ),
    "graph.hits_at": lambda: ([torch.randn(4), torch.tensor([0, 1, 1, 0]), 2], {}),
    "graph.mean_reciprocal_rank": lambda: (
        [torch.randn(4), torch.tensor([0, 1, 1, 0])],
        {},
    ),
    "graph.roc_auc": lambda: ([torch.randn(4), torch.tensor([0, 1, 1, 0])], {}),
    "graph.average_precision": lambda: ([torch.randn(4), torch.tensor([0, 1, 1, 0])], {}),
    "graph.adjusted_rand_index": lambda: (
        [torch.tensor([0, 1, 1, 0]), torch.tensor([0, 1, 2, 0])],
        {},
    ),
    "graph.soft_f1_loss": lambda: ([torch.randn(4), torch.tensor([0, 1, 1, 0])], {}),
    "graph.class_numbers": lambda: ([["b", "a", "b"]], {}),
    "graph.read_hif": lambda: (
        [absent("graph.json")],
        dict(
            node_features=["a"],
            edge_features=["b"],
            target="c",
            duplicates="same",
            ignore=["d"],
        ),
    ),
    "graph.write_hif": lambda: ([graph_data(), absent("graph.json")], {}),
    "graph.lift_cliques": lambda: ([graph_data(), 3], {}),
    "graph.lift_line_graph": lambda: ([graph_data()], {}),
    "graph.lift_k_hop_sets": lambda: ([graph_data(), 2], {}),
    "graph.with_random_walk_encodings": lambda: ([graph_data(), 2], {}),
    "graph.with_laplacian_encodings": lambda: ([graph_data(), 2], {}),
    "graph.edge_curvatures": lambda: ([pairs()], {}),
    "graph.read_molecules": lambda: ([absent("molecules.npz")], dict(directions="both")),
}
