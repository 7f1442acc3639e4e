"""What topk_keys refuses, and what it says."""

import pytest
import torch

import nsimplex

Q, K = torch.zeros(2, 4, 6, 8), torch.zeros(2, 2, 9, 8)


@pytest.mark.parametrize(
    "arguments, options, error, words",
    [
        ((Q, K, 0), {}, ValueError, "k: expected at least 1, got 0"),
        ((Q, K, -3), {}, ValueError, "k: expected at least 1, got -3"),
        ((Q[0], K, 2), {}, ValueError, "query: expected 4 dimensions"),
        ((Q, K[0], 2), {}, ValueError, "key: expected 4 dimensions"),
        ((Q.long(), K, 2), {}, TypeError, "query: expected float32"),
        ((Q, K.double(), 2), {}, TypeError, "key: expected the query's dtype Float, got Double"),
        ((Q, K[:1], 2), {}, ValueError, "key: expected batch 2, got 1"),
        (
            (Q, K[..., :4], 2),
            {},
            ValueError,
            "key: expected the query's channels 8, at least 1, got 4",
        ),
        ((Q[:, :3], K, 2), {}, ValueError, "divisible by the 2 key heads, got 3"),
        (
            (Q, K, 2),
            dict(scores="dot"),
            ValueError,
            "scores: expected 'relu' or 'softmax', got 'dot'",
        ),
        (
            (Q, K, 2),
            dict(weights=torch.ones(2, 6, 4)),
            ValueError,
            r"weights: expected shape \[2, 4, 6\]",
        ),
        (
            (Q, K, 2),
            dict(weights=torch.ones(2, 4, 6).long()),
            TypeError,
            "weights: expected floating",
        ),
        (
            (Q, K, 2),
            dict(lse=torch.ones(2, 4, 6)),
            ValueError,
            "lse: expected none with scores 'relu'",
        ),
        (
            (Q, K, 2),
            dict(adjacency=torch.ones(6, 9)),
            TypeError,
            "adjacency: expected bool, got Float",
        ),
        (
            (Q, K, 2),
            dict(adjacency=torch.ones(9, 6).bool()),
            ValueError,
            "adjacency: expected shape",
        ),
        (
            (Q, K, 2),
            dict(adjacency=torch.ones(3, 6, 9).bool()),
            ValueError,
            "adjacency: expected shape",
        ),
        (
            (Q, K, 2),
            dict(key_lengths=torch.tensor([3, 10])),
            ValueError,
            "key_lengths: expected 0 to 9, got 3 to 10",
        ),
        (
            (Q, K, 2),
            dict(key_lengths=torch.tensor([3])),
            ValueError,
            r"key_lengths: expected shape \[2\]",
        ),
        (
            (Q, K, 2),
            dict(key_lengths=torch.tensor([3, 3]).short()),
            TypeError,
            "key_lengths: expected int64 or int32",
        ),
        (
            (Q, K, 2),
            dict(candidates=torch.full((1, 6, 2), 9)),
            ValueError,
            "candidates: expected -1 to 8, got 9",
        ),
        (
            (Q, K, 2),
            dict(candidates=torch.full((1, 6, 2), -2)),
            ValueError,
            "candidates: expected -1 to 8, got -2",
        ),
        (
            (Q, K, 2),
            dict(candidates=torch.zeros(1, 5, 2).long()),
            ValueError,
            "candidates: expected shape",
        ),
        (
            (Q, K, 2),
            dict(candidates=torch.zeros(1, 6, 2).long(), adjacency=torch.ones(6, 9).bool()),
            ValueError,
            "candidates: given beside adjacency",
        ),
        ((Q, K.to("meta"), 2), {}, ValueError, "key: expected the query's device cpu, got meta"),
    ],
)
def test_errors(arguments, options, error, words):
    with pytest.raises(error, match=words):
        nsimplex.topk_keys(*arguments, **options)


@pytest.mark.parametrize("name", ["topk_keys", "topk_keys_reference"])
@pytest.mark.parametrize("shape", [(3, 2), (3, 5), (2, 3), (2, 2)])
def test_sparse_adjacency_is_one_of_queries_and_keys(name, shape):
    says = rf"^\[{name}\] adjacency: expected shape \[3, 3\] of a sparse matrix, got \[{shape[0]}, "
    with pytest.raises(ValueError, match=says):
        getattr(nsimplex, name)(
            torch.zeros(1, 1, 3, 4),
            torch.zeros(1, 1, 3, 4),
            2,
            adjacency=torch.ones(shape).to_sparse_csr(),
        )


def test_adjacency_out_of_range_is_refused():
    columns = torch.tensor([0, 99])
    wild = torch.sparse_csr_tensor(
        torch.tensor([0, 1, 2, 2]), columns, torch.ones(2), (3, 3), check_invariants=False
    )
    falling = torch.sparse_csr_tensor(
        torch.tensor([0, 2, 1, 2]), columns % 3, torch.ones(2), (3, 3), check_invariants=False
    )
    query = torch.zeros(1, 1, 3, 4)
    for adjacency, words in (
        (wild, "expected columns 0 to 2, got 0 to 99"),
        (falling, "rise from 0 to 2"),
    ):
        with pytest.raises(ValueError, match=words):
            nsimplex.topk_keys(query, query, 2, adjacency=adjacency)
