"""Matrices and lists whose entries are repeated, not finite, or numbers of NumPy."""

import dataclasses
import json

import numpy as np
import pytest
import scipy.sparse
import torch

from nsimplex import graph
from nsimplex.graph.networkx_graphs import class_numbers


def test_repeated_entries_of_a_matrix_add_up():
    repeated = scipy.sparse.coo_matrix(([1.0, 2.0, 3.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    made = graph.from_scipy(repeated, weights=True)
    assert made.batch.tuples.tolist() == [[0, 1], [1, 0]]
    assert made.edge_features[0].tolist() == [[3.0], [3.0]]
    assert repeated.nnz == 3  # the caller's matrix stays
    gone = scipy.sparse.coo_matrix(([1.0, -1.0], ([0, 0], [1, 1])), shape=(2, 2))
    assert graph.from_scipy(gone).num_edges == 0


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("convert", [np.array, scipy.sparse.csr_matrix, torch.tensor])
def test_entries_that_are_not_finite_are_named(convert, value):
    entries = convert([[0.0, 1.0], [value, 0.0]])
    for call in (graph.from_scipy, graph.from_incidence):
        (argument, *_) = call.__wrapped__.__code__.co_varnames
        says = rf"\[{call.__name__}\] {argument}: expected finite numbers, got {value} in row 1, co"
        with pytest.raises(ValueError, match=says):
            call(entries)


@pytest.mark.parametrize(
    "hyperedges",
    [
        [[3, 1], [2, 3]],
        [np.array([3, 1]), np.array([2, 3])],
        np.array([[3, 1], [2, 3]]),
        [[np.int64(3), np.int32(1)], (np.int64(2), np.int64(3))],
        [[torch.tensor(3), torch.tensor(1)], {2, 3}],
        torch.tensor([[3, 1], [2, 3]]),
    ],
    ids=["lists", "arrays", "array", "numbers of numpy", "numbers of torch", "tensor"],
)
def test_numbers_of_nodes_are_numbers(hyperedges):
    made = graph.from_hyperedges(hyperedges, num_nodes=5)
    assert made.batch.tuples.tolist() == [[1, 3], [2, 3]]
    assert made.num_nodes == 5 and made.names == ()


def test_names_in_arrays_are_names():
    made = graph.from_hyperedges([np.array(["a", "b"]), ["b", "c"]])
    assert made.names == ("a", "b", "c") and made.batch.tuples.tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    "hyperedges, says",
    [
        ([[0.5, 1]], "hyperedges: expected whole numbers or names, got 0.5"),
        ([[0.0, 1.0]], "hyperedges: expected whole numbers or names, got 0.0"),
        ([np.array([0.0, np.nan])], "hyperedges: expected whole numbers or names, got 0.0"),
        ([[-1, 0]], "hyperedges: expected nodes 0 to 0, got -1"),
        ([[True, False], [True, True]], "hyperedges: expected whole numbers or names, got True; f"),
        (np.array([[False, True]]), "hyperedges: expected whole numbers or names, got False; from"),
        ([["a", None]], "hyperedges: expected whole numbers or names, got None"),
    ],
)
def test_numbers_that_are_no_nodes(hyperedges, says):
    with pytest.raises(ValueError, match=rf"\[from_hyperedges\] {says}"):
        graph.from_hyperedges(hyperedges)


@pytest.mark.parametrize("call", [graph.from_scipy, graph.from_incidence])
@pytest.mark.parametrize("kind", ["uint64", "longdouble", ">f8", ">i4", "float16", "bool"])
def test_matrices_of_every_type_and_order(call, kind):
    expected = call(torch.tensor([[1, 1], [1, 0]]))
    array = np.array([[1, 1], [1, 0]], dtype=kind)
    for matrix in (array, array[::-1, ::-1].copy()[::-1, ::-1]):
        assert call(matrix).num_edges == expected.num_edges
        assert call(matrix).edges[-1].tuples.equal(expected.edges[-1].tuples)
    if ">" not in kind and kind != "float16":  # SciPy has none of these
        assert call(scipy.sparse.csr_array(array)).num_edges == expected.num_edges


def test_masked_entries_are_no_edges():
    matrix = np.ma.array([[1, 1], [1, 0]], mask=[[False, True], [False, False]])
    for call in (graph.from_scipy, graph.from_incidence):
        with pytest.raises(TypeError, match=r"expected a matrix, got MaskedArray .*; filled\(0\)"):
            call(matrix)
        assert call(np.ma.array(matrix.data)).num_edges


@pytest.mark.parametrize(
    "value",
    [
        torch.tensor([1 + 2j]),
        np.array([1j]),
        np.complex64(1j),
        np.ma.array([1.0, 2.0], mask=[True, False]),
    ],
    ids=str,
)
def test_attributes_that_are_no_real_numbers(value):
    networkx = pytest.importorskip("networkx")
    made = networkx.Graph()
    made.add_node(0, x=value)
    with pytest.raises(ValueError, match=r"node_features: expected numbers of one length in 'x'"):
        graph.from_networkx(made, node_features=["x"])


def test_unknown_classes_have_no_name(tmp_path):
    networkx = pytest.importorskip("networkx")
    source = networkx.path_graph(3)
    for node, name in enumerate("pqp"):
        source.nodes[node]["y"] = name
    data = graph.from_networkx(source, target="y")
    data = dataclasses.replace(data, targets=torch.tensor([0, -1, 1]))
    named = graph.to_networkx(data).nodes(data="target")
    assert list(named) == [(0, "p"), (1, None), (2, "q")]
    undirected = dataclasses.replace(data, edges=graph.from_hyperedges([[0, 1], [1, 2]]).edges)
    graph.write_hif(undirected, tmp_path / "x.json")
    rows = json.loads((tmp_path / "x.json").read_text())["nodes"]
    assert [row["attrs"]["target"] for row in rows] == ["p", None, "q"]
    with pytest.raises(ValueError, match=r"data: expected different names of nodes in a graph"):
        graph.to_networkx(dataclasses.replace(data, names=("a", "a", "b")))


@pytest.mark.parametrize("labels", [[1.0, float("nan")], torch.tensor([1.0, torch.nan])], ids=type)
def test_nan_is_no_class(labels):
    with pytest.raises(ValueError, match=r"labels: expected a label in row 1, got nan"):
        class_numbers(labels)


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ([True, False, True], [0, 2]),
        (np.array([True, False, True]), [0, 2]),
        ([1, 0], [1, 0]),
        (slice(None, None, -1), [2, 1, 0]),
        (slice(-1, 0, -2), [2]),
        (slice(5, 9), []),
        ([True, 0], "expected a number, a slice, numbers or flags, got list"),
        ([0, True, 2], "expected a number, a slice, numbers or flags, got list"),
        (slice(0.0, 1.0), "expected a slice of whole numbers, got slice"),
        (slice(0, 2, 0), "expected a slice of whole numbers, got slice"),
    ],
    ids=str,
)
def test_selected_graphs(which, expected):
    three = graph.chain_graphs([3, 2, 4])
    if isinstance(expected, str):
        with pytest.raises(TypeError, match=rf"\[TupleBatch\] index: {expected}"):
            three[which]
    else:
        assert three[which].node_offsets.diff().tolist() == [[3, 2, 4][each] for each in expected]


@pytest.mark.parametrize(
    ("samples", "got"),
    [
        ([{"a": 1}, {"a": 2, "b": 3}], "'b' in some of them alone"),
        ([{"a": 1, "b": 3}, {"a": 2}], "'b' in some of them alone"),
        ([(1, {"a": 1}), (2, {"a": 2, "b": 3})], "'b' in some of them alone"),
        ([{"a": 1}, (1,)], "dict and tuple"),
        (["a", 1], "'a' and 1"),
        ([(0, "a"), (1, 1)], "'a' and 1"),
        ([True, 2], "True and 2"),
        ([1.0, True], "1.0 and True"),
        ([np.ma.array([1, 2], mask=[True, False])] * 2, "an array with masked entries"),
    ],
    ids=str,
)
def test_the_first_sample_does_not_decide_for_others(samples, got):
    with pytest.raises(ValueError) as error:
        graph.collate_graphs(samples)
    said = "[collate_graphs] samples: expected samples of one structure, got "
    assert str(error.value).startswith(said + got)
