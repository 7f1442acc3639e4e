"""The naive selection of tuples, and what a selection retains."""

import pytest
import torch
from test_tuples import draw, mask_of, rows_of

import nsimplex


@pytest.mark.parametrize(
    "order, options",
    [
        (1, {}),
        (1, {"causal": True}),
        (2, {"causal": True}),
        (2, {"form": "determinant"}),
        (2, {"window": [3, 5]}),
        (3, {}),
        (2, {"key_lengths": torch.tensor([6, 0])}),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_naive_selection(order, options, weighted):
    queries, dim = 6, 6
    query = draw(2, 4, queries, dim)
    keys = [draw(2, 2, queries, dim, seed=1 + m) for m in range(order)]
    weights = draw(2, 4, queries, seed=9) if weighted else None
    listed = nsimplex.topk_tuples(query, keys, 5, weights=weights, **options)
    # Logits from the operator itself: with relu weights the numerators are max(logit, 0).
    raw = nsimplex.attention_weights(query, keys, normalizer="sigmoid", **options)
    logits = raw.logit()
    scores = logits.clamp(min=0) * (1 if weights is None else weights[(..., *[None] * order)])
    admissible = (raw > 0).any(1)
    scores = scores.sum(1).masked_fill(~admissible, -torch.inf).flatten(2)
    values, best = scores.sort(dim=-1, descending=True, stable=True)
    for b in range(2):
        for i in range(queries):
            kept = best[b, i, :5][values[b, i, :5] > -torch.inf]
            rows = rows_of(listed, b, i)
            assert len(rows) == len(kept)
            flat = []
            for row in rows:
                place = 0
                for j in row:
                    place = place * queries + j
                flat.append(place)
            torch.testing.assert_close(scores[b, i, flat], scores[b, i, kept])
            assert sorted(flat) == sorted(set(flat))
            # Ties, most of them zeros of relu, go to the first.
            ties = [f for f in flat if scores[b, i, f] == 0]
            assert ties == [f for f in kept.tolist() if scores[b, i, f] == 0]


@pytest.mark.parametrize("order", [1, 2])
def test_retained_mass_is_the_sum_of_kept_weights(order):
    length = 9
    query, *keys = (draw(2, 4, length, 6, seed=m) for m in range(order + 1))
    table = nsimplex.topk_keys(query, keys[0], 3, causal=True)
    dense = nsimplex.attention(query, keys, keys, causal=True, return_lse=True)[1]
    weights = nsimplex.attention_weights(query, keys, causal=True)
    masses = {}
    for name, listed in (
        ("topk", nsimplex.product_list(table, order)),
        ("path", nsimplex.path_list(table, order)),
        ("naive", nsimplex.topk_tuples(query, keys, 3**order, causal=True)),
        (
            "all",
            nsimplex.product_list(nsimplex.topk_keys(query, keys[0], length, causal=True), order),
        ),
    ):
        mask = mask_of(listed, length, [length] * order)
        sparse = nsimplex.attention(query, keys, keys, mask=mask, return_lse=True)[1]
        masses[name] = nsimplex.retained_mass(sparse, dense)
        torch.testing.assert_close(masses[name], (weights * mask).flatten(3).sum(-1).mean())
    assert masses["all"] == pytest.approx(1.0) and masses["topk"] < 0.999


def test_retained_mass_of_rows_without_tuples():
    dense = torch.tensor([0.0, -torch.inf, 1.0])
    sparse = torch.tensor([-torch.inf, -torch.inf, 1.0])
    assert nsimplex.retained_mass(sparse, dense) == 0.5
    assert nsimplex.retained_mass(dense[1:2], dense[1:2]).isnan()
    with pytest.raises(ValueError, match=r"sparse_lse: expected shape \[3\], got \[2\]"):
        nsimplex.retained_mass(dense[:2], dense)


TABLE = torch.zeros(1, 4, 2, dtype=torch.int64)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: nsimplex.product_list(TABLE[0], 2), ValueError, "table: expected shape"),
        (
            lambda: nsimplex.product_list(TABLE.int(), 2),
            TypeError,
            "table: expected int64, got Int",
        ),
        (lambda: nsimplex.product_list(TABLE - 2, 2), ValueError, "or -1 for none, got -2"),
        (lambda: nsimplex.product_list(TABLE, 0), ValueError, "order: expected 1 to 8, got 0"),
        (
            lambda: nsimplex.path_list(TABLE + 4, 2),
            ValueError,
            "keys from 0 to 3, or -1 for none, got 4",
        ),
        (
            lambda: nsimplex.path_list(TABLE, 2, queries=5),
            ValueError,
            "queries: expected at most the table's 4",
        ),
        (lambda: nsimplex.hyperedge_list(TABLE[0] + 5, 4), ValueError, "nodes 0 to 3, got 5 to 5"),
        (
            lambda: nsimplex.hyperedge_list(TABLE[0].float(), 4),
            TypeError,
            "expected int64, got Float",
        ),
        (
            lambda: nsimplex.hyperedge_list(TABLE[0, :, :1], 4),
            ValueError,
            "hyperedges: expected shape",
        ),
        (lambda: nsimplex.neighbours(torch.zeros(3, 3)), TypeError, "adjacency: expected bool or"),
        (
            lambda: nsimplex.neighbours(torch.zeros(3, 4).bool()),
            ValueError,
            "square matrix for self_loops, got 3 x 4",
        ),
        (
            lambda: nsimplex.neighbours(torch.zeros(3).bool()),
            ValueError,
            "adjacency: expected shape",
        ),
        (
            lambda: nsimplex.topk_tuples(draw(1, 1, 3, 4), [draw(1, 1, 3, 4)], 0),
            ValueError,
            "count: expected at least 1",
        ),
        (
            lambda: nsimplex.topk_tuples(
                draw(1, 1, 3, 4), [draw(1, 1, 3, 4)], 2, weights=draw(1, 1, 2)
            ),
            ValueError,
            r"weights: expected shape \[1, 1, 3\]",
        ),
        (
            lambda: nsimplex.topk_tuples(draw(1, 1, 3, 4), [draw(1, 1, 3, 4)] * 2, 2, augment=True),
            ValueError,
            "augment",
        ),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
