"""Matrices and lists whose entries are repeated, not finite, or numbers of NumPy."""

import numpy as np
import pytest
import scipy.sparse
import torch

from nsimplex import graph


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
    ],
)
def test_numbers_that_are_no_nodes(hyperedges, says):
    with pytest.raises(ValueError, match=rf"\[from_hyperedges\] {says}"):
        graph.from_hyperedges(hyperedges)
