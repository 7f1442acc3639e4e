"""Graphs from arrays and from other libraries, and back: rows, features, targets and mistakes."""

import copy
import itertools
import pickle
import warnings
from dataclasses import replace

import networkx
import pandas
import pytest
import scipy.sparse
import torch
from pyg_like import Batch, Data, HyperGraphData, path
from torch.utils.data import DataLoader

from nsimplex import graph

INDEX = torch.tensor([[2, 0, 1, 0], [1, 1, 0, 2]])


def same(one, other, features=True):
    assert len(one.edges) == len(other.edges)
    for own, their in zip(one.edges, other.edges):
        assert own.symmetry == their.symmetry
        for mine, yours in zip(own._parts()[:3], their._parts()[:3]):
            assert torch.equal(mine, yours)
    if features:
        for mine, yours in zip(one.edge_features, other.edge_features, strict=True):
            assert torch.equal(mine, yours)
        for mine, yours in (
            (one.node_features, other.node_features),
            (one.targets, other.targets),
        ):
            assert (mine is None) == (yours is None) and (mine is None or torch.equal(mine, yours))


def checked(data):
    """The record, whose lists pass all checks of a batch."""
    for each in data.edges:
        graph.tuple_batch(
            each.tuples,
            tuple_offsets=each.tuple_offsets,
            node_offsets=each.node_offsets,
            symmetry=each.symmetry,
        )
    return data


def test_rows_ascend_and_features_follow():
    features = torch.arange(4.0)
    data = checked(graph.from_edge_index(INDEX, 5, features))
    assert data.batch.tuples.tolist() == [[0, 1], [0, 2], [1, 0], [2, 1]]
    assert data.edge_features[0].tolist() == [[1], [3], [2], [0]]
    assert data.origin[0].tolist() == [1, 3, 2, 0]
    assert (data.num_nodes, data.num_graphs, data.num_edges) == (5, 1, 4)  # 3 and 4 are isolated
    assert not data.is_symmetric


def test_directions():
    features = torch.tensor([1.0, 2, 2, 4])
    both = checked(graph.from_edge_index(INDEX, 3, features, directions="both"))
    assert both.batch.tuples.tolist() == [[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]]
    assert both.edge_features[0].flatten().tolist() == [2, 4, 2, 1, 4, 1] and both.is_symmetric
    undirected = checked(graph.from_edge_index(INDEX, 3, features, directions="undirected"))
    assert undirected.batch.tuples.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert undirected.edge_features[0].flatten().tolist() == [2, 4, 1] and undirected.is_symmetric
    with pytest.raises(
        ValueError,
        match=r"the same for an edge that is listed twice, got others for \(0, 1\) in 1 and 2",
    ):
        graph.from_edge_index(INDEX, 3, torch.arange(4.0), directions="undirected")


def test_repeated_edges():
    index = torch.tensor([[0, 0, 1, 0], [1, 1, 1, 1]])
    features = torch.tensor([1.0, 2, 5, 6])
    for rule, expected in (("first", 1), ("mean", 3), ("sum", 9)):
        data = checked(graph.from_edge_index(index, 2, features, duplicates=rule))
        assert data.batch.tuples.tolist() == [[0, 1], [1, 1]]
        assert data.edge_features[0].flatten().tolist() == [expected, 5]
    assert graph.from_edge_index(index, 2).num_edges == 2
    with pytest.raises(ValueError, match="codes of type torch.int64"):
        graph.from_edge_index(index, 2, torch.arange(4), duplicates="mean")


def test_targets_go_to_their_level():
    make = lambda targets, **options: graph.from_edge_index(INDEX, 5, targets=targets, **options)
    assert make(torch.tensor(1.0)).level == "graph"
    assert make(torch.arange(5)).level == "node"
    edges = make(torch.arange(4))
    assert edges.level == "edge" and edges.targets.tolist() == [1, 3, 2, 0]
    with pytest.raises(
        ValueError, match=r"targets: expected rows 1 \(graph\), 5 \(node\), 4 \(edge\), got 3"
    ):
        make(torch.arange(3))
    with pytest.raises(ValueError, match=r"targets: expected rows 5 \(node\), got 4"):
        make(torch.arange(4), level="node")
    with pytest.raises(ValueError, match="listed twice"):
        make(torch.arange(4), directions="undirected")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((INDEX.t(),), "edge_index: expected shape [2, E], got [4, 2]; [E, 2] is transposed"),
        ((INDEX.float(),), "edge_index: expected int64, got torch.float32"),
        ((INDEX, 2), "edge_index: expected nodes 0 to 1, got 2 in column 0"),
        ((INDEX, 3, torch.ones(3, 1)), "edge_features: expected shape [4, d], got [3, 1]"),
        (
            (INDEX, 3, torch.tensor([0, 1, torch.nan, 2])),
            "edge_features: expected finite numbers, got nan in row 2, column 0",
        ),
        (
            (INDEX, 3, None, torch.tensor([0, 0, 1])),
            "edge_index: expected edges inside a graph of batch, got (2, 1) in column 0",
        ),
        ((INDEX, 3, None, torch.tensor([1, 0, 0])), "batch: expected ascending numbers"),
        ((INDEX, 3, None, torch.tensor([0, 0])), "batch: expected shape [3], got [2]"),
    ],
)
def test_mistakes_are_one_line(arguments, message):
    with pytest.raises((ValueError, TypeError)) as error:
        graph.from_edge_index(*arguments)
    assert str(error.value).startswith(f"[from_edge_index] {message}")


def test_empty_graphs():
    nothing = torch.empty(2, 0, dtype=torch.int64)
    assert checked(graph.from_edge_index(nothing)).num_nodes == 0
    alone = checked(graph.from_edge_index(nothing, 3, node_features=torch.ones(3, 2)))
    assert (alone.num_nodes, alone.num_edges) == (3, 0)
    last = graph.from_edge_index(nothing, 1, batch=torch.tensor([0]), num_graphs=3)
    assert last.num_graphs == 3 and last[1].num_nodes == 0
    assert checked(graph.from_hyperedges([], 2)).num_nodes == 2
    assert graph.with_random_walk_encodings(alone, 2).node_features.shape == (3, 4)
    assert graph.with_laplacian_encodings(alone, 2).node_features.shape == (3, 4)
    assert graph.lift_k_hop_sets(alone).sizes == (1,)
    joined = graph.collate_graphs([alone, alone])
    assert (joined.num_graphs, joined.num_nodes) == (2, 6)


def test_a_batch_is_its_graphs():
    samples = [path(3, 1), path(1, 2), path(5, 3)]
    whole = checked(graph.from_pyg(Batch(samples)))
    same(whole, graph.from_pyg(samples))
    same(whole, graph.collate_graphs([graph.from_pyg(each) for each in samples]))
    assert whole.level == "graph" and whole.is_symmetric and len(whole) == 3
    for own, sample in zip(whole, samples, strict=True):
        same(own, graph.from_pyg(sample))
    same(whole[[2, 0]], graph.from_pyg([samples[2], samples[0]]))
    same(whole[torch.tensor([True, False, True])], whole[[0, 2]])
    same(whole[-1], whole[2])
    same(whole[1:], whole[[1, 2]])
    for wrong in (3, [0, 7], torch.ones(2, dtype=torch.bool)):
        with pytest.raises(IndexError, match=r"\[GraphData\] index"):
            whole[wrong]
    with pytest.raises(TypeError, match="index: expected int64 or bool"):
        whole[torch.ones(2)]


def test_a_tuple_batch_has_graphs():
    batch = graph.from_pyg(Batch([path(3), path(1), path(4)])).batch
    assert (batch.num_graphs, batch.num_nodes) == (3, 8)
    for own, split in zip(batch, graph.split_graphs(batch), strict=True):
        assert torch.equal(own.tuples, split.tuples)
        assert torch.equal(own.node_offsets, split.node_offsets)
    again = graph.concatenate_graphs(list(batch))
    assert torch.equal(again.tuples, batch.tuples)
    assert torch.equal(batch[[2, 0]].tuples, graph.concatenate_graphs([batch[2], batch[0]]).tuples)


def test_records_move_pickle_and_load():
    data = graph.from_pyg(Batch([path(3), path(4)]))
    for again in (pickle.loads(pickle.dumps(data)), copy.deepcopy(data), data.to("cpu")):
        same(data, again)
    leaves = torch.utils._pytree.tree_leaves(data)
    assert sum(isinstance(leaf, torch.Tensor) for leaf in leaves) == 8
    samples = [graph.from_pyg(path(n)) for n in (2, 3, 4, 5)]
    for collate in (graph.collate_graphs, None):  # None: torch's default
        loaded = list(DataLoader(samples, batch_size=2, collate_fn=collate))
        assert [each.num_nodes for each in loaded] == [5, 9]
    pairs = list(DataLoader([path(3), path(4)], batch_size=2, collate_fn=graph.collate_graphs))
    same(pairs[0], data, features=False)


def test_targets_of_edges_stay_with_their_edges():
    """Hypergraphs that have hyperedges of other sizes: the lists of a batch go by size."""
    given = [[[0, 1, 2], [1, 2, 3]], [[0, 1], [1, 2], [0, 2]], [], [[1], [0, 1, 2], [0, 3]]]
    samples = [
        graph.from_hyperedges(
            edges, 4, targets=torch.tensor([100 * own + sum(e) for e in edges]).long(), level="edge"
        )
        for own, edges in enumerate(given)
    ]
    together = graph.collate_graphs(samples)
    assert together.sizes == (1, 2, 3)
    local = [each.tuples - each.tuples // 4 * 4 for each in together.edges]
    origin = [each.tuples[:, 0] // 4 for each in together.edges]
    expected = torch.cat([100 * own + rows.sum(1) for own, rows in zip(origin, local)])
    assert torch.equal(together.targets, expected)
    for own, alone in enumerate(together):
        assert alone.targets.tolist() == samples[own].targets.tolist()


def test_records_without_origin_join_and_come_apart():
    read = graph.from_edge_index(INDEX, 3)
    pairs = graph.tuple_batch(torch.tensor([[0, 1], [2, 1]]), 3)
    alone = graph.GraphData([pairs], read.node_offsets)
    assert graph.collate_graphs([alone, alone]).origin == []
    for samples in ([alone, alone], [alone, read], [read, alone]):
        for own, sample in zip(graph.collate_graphs(samples), samples, strict=True):
            same(own, sample)
    assert graph.collate_graphs([alone, read]).origin[0].tolist()[:3] == [-1, -1, 1]


def test_records_that_differ_do_not_join():
    one = graph.from_pyg(path(3))
    for other, message in (
        (graph.from_edge_index(INDEX, 3), "level of targets"),
        (
            replace(one, edge_features=[]),
            "edge features",
        ),
        (graph.from_pyg(path(3), directions="undirected"), "one symmetry"),
        (graph.from_pyg(path(3), node_features=["x", "x"]), "width of node features"),
    ):
        with pytest.raises(ValueError, match=rf"\[collate_graphs\] samples: .*{message}"):
            graph.collate_graphs([one, other])


def test_tensors_of_samples_have_one_dtype():
    one = graph.from_pyg(path(3))
    samples = [(one, torch.arange(2)), (one, torch.ones(2))]
    for mixed in (samples, samples[::-1]):
        with pytest.raises(TypeError, match=r"of one dtype, got torch\.float32, torch\.int64$"):
            graph.collate_graphs(mixed)
    assert graph.collate_graphs([samples[0], samples[0]])[1].dtype == torch.int64


def test_pyg_attributes():
    data = path(4)
    assert graph.from_pyg(data, edge_features=[], ignore=["edge_attr"]).edge_features == []
    assert graph.from_pyg(Data(data.edge_index, num_nodes=4)).node_features is None
    points = graph.from_pyg(Data(x=torch.ones(3, 2)))
    assert (points.num_nodes, points.num_edges) == (3, 0)
    with pytest.raises(TypeError, match=r"\[from_pyg\] data: expected graphs of PyTorch Geometric"):
        graph.from_pyg(torch.ones(3))
    hetero = Data(data.edge_index)
    hetero.edge_types = []
    with pytest.raises(TypeError, match="heterogeneous graphs are not supported"):
        graph.from_pyg(hetero)
    data.x[1, 2] = torch.nan
    with pytest.raises(
        ValueError, match=r"\[from_pyg\] node_features: expected finite .* row 1, column 2"
    ):
        graph.from_pyg(data)


def test_networkx_and_back():
    karate = networkx.karate_club_graph()
    data = checked(graph.from_networkx(karate, edge_features=["weight"], target="club"))
    assert (data.num_nodes, data.num_edges, data.level) == (34, 156, "node")
    assert data.classes == ("Mr. Hi", "Officer") and data.names == tuple(range(34))
    assert data.is_symmetric
    again = graph.to_networkx(data)
    assert not again.is_directed()
    assert set(map(frozenset, again.edges)) == set(map(frozenset, karate.edges))
    assert again.edges[0, 1] == {"features": [4.0]} and again.nodes[33] == {"target": "Officer"}
    directed = graph.to_networkx(graph.from_networkx(networkx.DiGraph([("a", "b"), ("c", "b")])))
    assert directed.is_directed() and list(directed.edges) == [("a", "b"), ("c", "b")]
    several = [networkx.path_graph(n) for n in (2, 3)]
    for each in several:
        each.graph["y"] = len(each)
    two = checked(graph.from_networkx(several, target="y"))
    assert two.level == "graph" and two.targets.tolist() == [2, 3]
    assert [each.graph["target"] for each in graph.to_networkx(two)] == [2, 3]


PARTS = {"pos": torch.ones(4, 2), "train_mask": torch.ones(4, dtype=torch.bool), "title": "x"}


def with_parts(parts):
    data = path(4)
    vars(data).update(parts)
    return data


@pytest.mark.parametrize(
    ("wrap", "left"),
    [
        (lambda data: data, "'title'"),
        (
            lambda data: [path(3), data],
            "'pos' (node_features takes them); 'train_mask', 'title'",
        ),
    ],
)
def test_pyg_attributes_that_are_left_out_are_named(wrap, left):
    data = wrap(with_parts(PARTS))
    with pytest.warns(graph.ConversionWarning) as said:
        made = graph.from_pyg(data)
    assert [str(each.message) for each in said] == [
        f"[from_pyg] data: left out {left}; ignore=[..] leaves them out without a warning"
    ]
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bare = graph.from_pyg(data, ignore=list(PARTS))
        same(bare, made)
        assert bare.positions is None and bare.masks == {}
        taken = graph.from_pyg(
            with_parts(PARTS), node_features=["x", "pos"], ignore=["train_mask", "title"]
        )
        assert taken.node_features.shape == (4, 5)


def test_weights_are_taken_or_ignored():
    weight = torch.tensor([1.0, 2, 3, 1, 2, 3])
    data = with_parts({"edge_weight": weight})
    for wrong in (data, [path(3), data]):
        with pytest.raises(
            ValueError,
            match=r"^\[from_pyg\] data: expected 'edge_weight' to be taken or ignored, because "
            r"without it this is another graph, got neither; edge_features takes it, "
            r"ignore=\['edge_weight'\] leaves it out$",
        ):
            graph.from_pyg(wrong)
    taken = graph.from_pyg(data, edge_features=["edge_weight"], ignore=["edge_attr"])
    assert sorted(taken.edge_features[0].flatten().tolist()) == sorted(weight.tolist())
    same(graph.from_pyg(data, ignore=["edge_weight"]), graph.from_pyg(path(4)))
    data.edge_weight = torch.ones(6)
    with pytest.warns(graph.ConversionWarning, match="'edge_weight'"):
        graph.from_pyg(data)
    weighted = networkx.Graph([(0, 1, {"weight": 2}), (1, 2, {})])
    with pytest.raises(
        ValueError, match=r"\[from_networkx\] graphs: expected 'weight' to be taken"
    ):
        graph.from_networkx([networkx.path_graph(2), weighted])
    assert graph.from_networkx(weighted, ignore=["weight"]).num_edges == 4
    data = Data(torch.tensor([[0, 1, 2], [1, 2, 0]]), num_nodes=3)  # as many edges as nodes
    data.edge_weight = torch.arange(3.0)
    with pytest.raises(ValueError, match="got neither; edge_features takes it"):
        graph.from_pyg(data)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(node_features=["z"]), "node_features: expected rows of numbers in 'z', got no such"),
        (dict(edge_features=["z"]), "edge_features: expected rows of numbers in 'z', got no such"),
        (dict(target="z"), "target: expected an attribute of data, got 'z'"),
        (
            dict(node_features=["x", "title"]),
            "node_features: expected rows of numbers in 'title', got 'x'",
        ),
        (
            dict(node_features=["x", "codes"]),
            "node_features: expected numbers or codes alone in x, codes, got a torch.float32 tensor"
            " of shape [4, 3] and a torch.int64 tensor of shape [4]",
        ),
        (dict(node_features=["x", "y"]), "node_features: expected as many rows in x, y, got"),
    ],
)
def test_pyg_names_that_cannot_be_taken(options, message):
    with pytest.raises(ValueError) as error:
        graph.from_pyg(with_parts(PARTS | {"codes": torch.arange(4)}), **options)
    assert str(error.value).startswith(f"[from_pyg] {message}")


def test_an_edge_index_of_pyg_is_a_tensor():
    data = path(3)
    data.edge_index = data.edge_index.numpy()
    with pytest.raises(
        TypeError, match=r"^\[from_pyg\] edge_index: expected a tensor, got ndarray"
    ):
        graph.from_pyg(data)


def test_every_graph_of_networkx_has_its_own_directions():
    """Graphs and directed graphs in one list, in any order, with features and targets of edges."""
    edges = [
        (0, 1, {"w": 1.0, "y": 5.0}),
        (2, 1, {"w": 2.0, "y": 6.0}),
        (2, 2, {"w": 3.0, "y": 7.0}),
    ]
    kinds = [networkx.Graph, networkx.DiGraph, networkx.MultiGraph, networkx.MultiDiGraph]
    options = dict(edge_features=["w"], target="y")
    alone = {kind: graph.from_networkx(kind(edges), **options) for kind in kinds}
    assert [each.num_edges for each in alone.values()] == [5, 3, 5, 3]
    assert alone[networkx.Graph].origin[0].tolist() == [0, 0, 1, 1, 2]
    for several in itertools.permutations(kinds, 3):
        made = checked(graph.from_networkx([kind(edges) for kind in several], **options))
        for own, kind in zip(made, several, strict=True):
            same(own, alone[kind])
    for directions in ("both", "given", "undirected"):
        made = graph.from_networkx(
            [kind(edges) for kind in kinds], directions=directions, **options
        )
        assert len({each.num_edges for each in made}) == 1


def test_networkx_attributes_that_are_left_out_are_named():
    made = networkx.MultiDiGraph([(0, 1, {"colour": 1}), (0, 1, {"colour": 1}), (1, 0, {"d": 1})])
    made.nodes[0]["size"] = made.graph["y"] = 2
    made.graph["name"] = "a name"
    with pytest.warns(graph.ConversionWarning) as said:
        graph.from_networkx(made)
    assert [str(each.message) for each in said] == [
        "[from_networkx] graphs: left out 'size' (node_features takes them); 'colour', 'd' "
        "(edge_features takes them); 'y' (target takes them); ignore=[..] leaves them out without "
        "a warning",
        "[from_networkx] graphs: 1 edges are listed again and count once; duplicates='first' says "
        "so without a warning, 'sum' and 'mean' use the features of all",
    ]
    assert {each.filename for each in said} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph.from_networkx(made, target="y", ignore=["size", "colour", "d"], duplicates="first")


def test_entries_that_would_be_lost():
    weights = torch.tensor([[0, 2.5], [1, 0]])
    for call, message in (
        (graph.from_scipy, "from_scipy] matrix: expected entries 0 and 1, got 2.5 at [0, 1]; "),
        (
            lambda own: graph.from_scipy([own != 0, own]),
            "from_scipy] matrix[1]: expected entries 0 and 1, got 2.5 at [0, 1]; weights=True",
        ),
        (graph.from_dense, "from_dense] adjacency: expected entries 0 and 1, got 2.5 at [0, 0, 1]"),
        (graph.from_incidence, "from_incidence] incidence: expected entries 0 and 1, got 2.5 at"),
        (
            lambda own: graph.from_incidence(-(own != 0).float()),
            "from_incidence] incidence: expected entries 0 and 1, got -1.0 at [0, 1]; "
            "incidence != 0 leaves weights and signs out",
        ),
    ):
        with pytest.raises(ValueError) as error:
            call(weights)
        assert str(error.value).startswith("[" + message)
    frame = pandas.DataFrame([[0, 1, 1], [0, 0, 1], [0, 0, 0]])
    for call in (graph.from_scipy, graph.from_incidence):
        with pytest.raises(TypeError, match=r"expected a matrix, got DataFrame.*to_numpy"):
            call(frame)
    with pytest.raises(
        TypeError, match=r"matrix: expected numbers for weights=True, got torch.bool"
    ):
        graph.from_scipy(weights != 0, weights=True)
    plain = graph.from_scipy(weights != 0)
    same(graph.from_scipy(weights, weights=False), plain)
    same(graph.from_dense(weights != 0), plain)
    for wrong in ({(0, 1): 2.5}, {frozenset((0, 1))}, [{0: 2.5, 1: 1.0}]):
        with pytest.raises(TypeError, match=r"^\[from_hyperedges\] hyperedges.*: expected .*, got"):
            graph.from_hyperedges(wrong)


def test_networkx_mistakes():
    made = networkx.path_graph(3)
    made.nodes[0]["a"] = 1
    made.nodes[1]["b"] = "x"
    for node in made:
        made.nodes[node].update(r=[1.0] * node, s="x", t=torch.ones(2) * node)
    ignored = ["a", "b", "r", "s"]
    tensors = graph.from_networkx(made, node_features=["t"], ignore=ignored).node_features
    assert tensors.tolist() == [[0, 0], [1, 1], [2, 2]]
    for options, message in (
        (dict(node_features=["a"]), "node_features: 'a' is missing in row 1"),
        (
            dict(node_features=["r"]),
            "node_features: expected numbers of one length in 'r', got list [1.0] in row 1",
        ),
        (
            dict(node_features=["s"]),
            "node_features: expected numbers of one length in 's', got 'x' in row 0",
        ),
        (dict(target="a"), "target: 2 of 3 nodes have no 'a'"),
        (dict(target="c"), "target: no graph, node or edge has 'c'"),
    ):
        with pytest.raises(ValueError) as error:
            graph.from_networkx(made, ignore=[*"abrst"], **options)
        assert str(error.value) == f"[from_networkx] {message}"
    parallel = networkx.MultiGraph([(0, 1, dict(w=1)), (0, 1, dict(w=2))])
    with pytest.raises(ValueError, match=r"\[from_networkx\] edge_features: expected the same"):
        graph.from_networkx(parallel, edge_features=["w"])
    summed = graph.from_networkx(parallel, edge_features=["w"], duplicates="sum")
    assert summed.edge_features[0].tolist() == [[3], [3]]


def test_matrices():
    matrix = scipy.sparse.coo_array(([2.0, 3, 0], ([0, 2, 1], [1, 0, 1])), shape=(4, 4))
    data = checked(graph.from_scipy(matrix, weights=True))
    assert data.batch.tuples.tolist() == [[0, 1], [2, 0]] and data.num_nodes == 4
    assert data.edge_features[0].tolist() == [[2], [3]]
    two = checked(graph.from_scipy([matrix, matrix.toarray()], weights=True))
    assert two.num_graphs == 2
    same(two[0], data)
    same(two[1], data)
    with pytest.raises(
        ValueError, match=r"\[from_scipy\] matrix: expected shape \[n, n\], got \[4, 3\]"
    ):
        graph.from_scipy(matrix.toarray()[:, :3])


def test_dense_tensors():
    draw = torch.Generator().manual_seed(0)
    adjacency = torch.zeros(2, 3, 3)
    adjacency[0, 0, 1] = adjacency[0, 2, 0] = adjacency[1, 1, 0] = 1
    mask = torch.tensor([[True, True, True], [True, True, False]])
    nodes, pairs = torch.randn(2, 3, 2, generator=draw), torch.randn(2, 3, 3, 1, generator=draw)
    data = checked(
        graph.from_dense(
            adjacency,
            mask,
            node_features=nodes,
            edge_features=pairs,
            targets=adjacency.sum(2),
            level="node",
        )
    )
    assert data.batch.tuples.tolist() == [[0, 1], [2, 0], [4, 3]]
    assert torch.equal(data.node_features, torch.cat([nodes[0], nodes[1, :2]]))
    assert torch.equal(data.edge_features[0], pairs[[0, 0, 1], [0, 2, 1], [1, 0, 0]])
    assert data.targets.tolist() == [1, 0, 1, 0, 1]
    adjacency[1, 0, 2] = 1
    with pytest.raises(ValueError, match=r"edges of nodes in mask, got one at \[1, 0, 2\]"):
        graph.from_dense(adjacency, mask)


def test_hyperedges_of_mixed_sizes():
    edges = [["a", "b"], ["c", "a", "b"], ["d"], ["b", "a"]]
    data = checked(graph.from_hyperedges(edges, edge_features=torch.tensor([1.0, 2, 3, 1])))
    assert data.names == ("a", "b", "c", "d") and data.sizes == (1, 2, 3)
    assert [each.tuples.tolist() for each in data.edges] == [[[3]], [[0, 1]], [[0, 1, 2]]]
    assert [each.tolist() for each in data.edge_features] == [[[3]], [[1]], [[2]]]
    assert [each.tolist() for each in data.origin] == [[2], [0], [1]]
    incidence = torch.tensor([[1, 1, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1]])
    same(graph.from_incidence(incidence), data, features=False)
    same(graph.from_incidence(scipy.sparse.csr_array(incidence.numpy())), data, features=False)
    index = torch.tensor([[0, 1, 2, 0, 1, 3], [0, 0, 1, 1, 1, 2]])
    numbered = graph.from_hyperedge_index(index, targets=torch.tensor([5, 6, 7]))
    same(numbered, data, features=False)
    assert numbered.targets.tolist() == [7, 5, 6]
    pyg = HyperGraphData(index, torch.ones(4, 2))
    same(graph.from_pyg(pyg), data, features=False)
    two = graph.collate_graphs([data, graph.from_hyperedges([[0, 1, 2]], 3, torch.ones(1))])
    assert two.sizes == (1, 2, 3) and len(two.edges[2]) == 2 and len(two[1].edges[0]) == 0
    with pytest.raises(ValueError, match="batch: expected edges of one size, got sizes"):
        _ = data.batch


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: graph.from_hyperedges([[0], []]),
            "[from_hyperedges] hyperedges[1]: expected at least one node, got none",
        ),
        (
            lambda: graph.from_hyperedges([[0, "a"]]),
            "[from_hyperedges] hyperedges: expected numbers or names, got both",
        ),
        (
            lambda: graph.from_hyperedges(["ab"]),
            "[from_hyperedges] hyperedges[0]: expected nodes or their names, got 'ab'",
        ),
        (
            lambda: graph.from_hyperedge_index(torch.tensor([[0, 1], [0, 2]])),
            "[from_hyperedge_index] hyperedge_index: expected a node in every hyperedge, got none "
            "in hyperedge 1",
        ),
        (
            lambda: graph.from_incidence(torch.tensor([[1, 0], [1, 0]])),
            "[from_incidence] incidence: expected a node in every column, got none in column 1",
        ),
        (
            lambda: graph.from_hyperedge_index(
                torch.tensor([[0, 1], [0, 0]]), batch=torch.tensor([0, 1])
            ),
            "[from_hyperedge_index] hyperedge_index: expected hyperedges inside a graph of batch, "
            "got (0, 1)",
        ),
    ],
)
def test_hyperedge_mistakes(call, message):
    with pytest.raises((ValueError, TypeError)) as error:
        call()
    assert str(error.value).startswith(message)


def test_dgl_attributes():
    from pyg_like import path as made

    sample = made(4)

    class Graph:
        ndata = {"feat": sample.x, "label": torch.tensor([0, 1, 1, 0])}
        edata = {"feat": sample.edge_attr}
        is_homogeneous = True
        num_nodes = staticmethod(lambda: 4)
        edges = staticmethod(lambda: tuple(sample.edge_index.int()))
        batch_num_nodes = staticmethod(lambda: torch.tensor([4]))

    data = checked(graph.from_dgl(Graph()))
    expected = graph.from_pyg(sample)
    same(data, expected, features=False)
    assert torch.equal(data.edge_features[0], expected.edge_features[0])
    assert data.level == "node" and data.targets.tolist() == [0, 1, 1, 0]
    Graph.ndata["train_mask"] = torch.tensor([True, False, True, False])
    assert torch.equal(graph.from_dgl(Graph()).masks["train_mask"], Graph.ndata["train_mask"])
    Graph.ndata["pos"] = sample.x
    Graph.edata["weight"] = torch.arange(6)
    with pytest.raises(ValueError, match=r"^\[from_dgl\] graph: expected 'weight' to be taken or"):
        graph.from_dgl(Graph())
    with pytest.warns(graph.ConversionWarning, match=r"\[from_dgl\] graph: left out 'pos' \(node_"):
        graph.from_dgl(Graph(), ignore=["weight"])
    with pytest.raises(ValueError, match=r"^\[from_dgl\] edge_features: expected a name in graph"):
        graph.from_dgl(Graph(), edge_features="wieght")
    Graph.is_homogeneous = False
    with pytest.raises(TypeError, match="heterogeneous graphs are not supported"):
        graph.from_dgl(Graph())
