"""Lists of tuples from tables, graphs and hyperedges; the naive selection; what a selection retains."""

import itertools

import pytest
import torch

import nsimplex


def draw(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def table_of(batch, rows, k, keys, seed=0):
    """Random keys without repetition, some rows shorter."""
    generator = torch.Generator().manual_seed(seed)
    table = torch.stack(
        [torch.randperm(keys, generator=generator)[:k] for _ in range(batch * rows)]
    ).view(batch, rows, k)
    counts = torch.randint(0, k + 1, (batch, rows, 1), generator=generator)
    return table.masked_fill(torch.arange(k) >= counts, -1)


def rows_of(listed, b, i):
    indices, offsets = listed
    assert indices.dtype == offsets.dtype == torch.int64
    return [tuple(row) for row in indices[offsets[b, 0, i] : offsets[b, 0, i + 1]].tolist()]


def mask_of(listed, queries, lengths):
    """bool [B, 1, Tq, T_1, .., T_N] of a list; every tuple once."""
    indices, offsets = listed
    batch = offsets.size(0)
    mask = torch.zeros(batch, queries, *lengths, dtype=torch.bool)
    for b in range(batch):
        for i in range(queries):
            for row in rows_of(listed, b, i):
                assert not mask[(b, i, *row)]
                mask[(b, i, *row)] = True
    return mask[:, None]


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("batch", [1, 2])
def test_product_and_path(order, batch):
    table = table_of(batch, 7, 3, 7)
    product, path = nsimplex.product_list(table, order), nsimplex.path_list(table, order)
    late = nsimplex.path_list(table, order, queries=3)
    rows = [[[j for j in row if j >= 0] for row in entry] for entry in table.tolist()]
    for b in range(batch):
        for i in range(7):
            assert rows_of(product, b, i) == list(itertools.product(rows[b][i], repeat=order))
            paths = [(j,) for j in rows[b][i]]
            for _ in range(order - 1):
                paths = [(*p, j) for p in paths for j in rows[b][p[-1]]]
            assert rows_of(path, b, i) == paths
            if i >= 4:
                assert rows_of(late, b, i - 4) == paths
    for listed, queries in ((product, 7), (path, 7), (late, 3)):
        assert listed[1].shape == (batch, 1, queries + 1)
        assert listed[1].flatten()[0] == 0 and listed[1].flatten()[-1] == len(listed[0])


def test_empty_tables():
    none = torch.full((2, 4, 3), -1)
    for listed in (nsimplex.product_list(none, 2), nsimplex.path_list(none, 2)):
        assert listed[0].shape == (0, 2) and not listed[1].any()
    for rows in (nsimplex.product_list(none[:, :0], 2), nsimplex.path_list(none, 2, queries=0)):
        assert rows[0].shape == (0, 2) and rows[1].shape == (2, 1, 1)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("k", [2, 5, 9])
def test_topk_at_full_k_is_dense_and_path_is_the_chain(order, k):
    """k >= the admissible keys: the product is dense attention, the path that under the chain mask."""
    length = 5
    query, key = draw(2, 2, length, 6), draw(2, 1, length, 6, seed=1)
    causal = torch.ones(length, length, dtype=torch.bool).tril()
    table = nsimplex.topk_keys(query, key, k, causal=True)
    product = mask_of(nsimplex.product_list(table, order), length, [length] * order)
    path = mask_of(nsimplex.path_list(table, order), length, [length] * order)
    both = causal if order == 1 else causal[:, :, None] & causal[:, None, :]
    chain = causal if order == 1 else causal[:, :, None] & causal[None]
    assert (product & ~both).sum() == 0 and (path & ~both).sum() == 0  # a causal table stays causal
    if k >= length:
        assert (product == both).all() and (path == chain).all()
    # On the complete graph a path at full k is everything.
    whole = nsimplex.topk_keys(query, key, length)
    assert mask_of(nsimplex.path_list(whole, order), length, [length] * order).all()


def adjacency_of(nodes, seed=0, density=0.3):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(nodes, nodes, generator=generator) < density


@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("layout", ["flags", "csr", "batch", "int32"])
def test_neighbours(self_loops, layout):
    flags = adjacency_of(9)
    flags[4] = False
    given = {
        "flags": flags, "csr": flags.to_sparse_csr(), "batch": torch.stack([flags, flags.t()]),
        "int32": torch.sparse_csr_tensor(
            *(t.int() for t in (flags.to_sparse_csr().crow_indices(), flags.to_sparse_csr().col_indices())),
            torch.ones(int(flags.sum())), (9, 9),
        ),
    }[layout]  # fmt: skip
    table = nsimplex.neighbours(given, self_loops=self_loops)
    for b, graph in enumerate([flags, flags.t()][: table.size(0)]):
        for i in range(9):
            expected = [j for j in range(9) if graph[i, j] or (self_loops and i == j)]
            assert table[b, i].tolist() == expected + [-1] * (table.size(2) - len(expected))
    assert table.size(2) == max((row >= 0).sum() for row in table.flatten(0, 1))
    repeated = torch.sparse_csr_tensor(torch.tensor([0, 3, 3]), torch.tensor([1, 0, 1]), torch.ones(3), (2, 2))
    assert nsimplex.neighbours(repeated, self_loops=False).tolist() == [[[0, 1], [-1, -1]]]
    assert nsimplex.neighbours(torch.zeros(3, 3).bool(), self_loops=False).tolist() == [[[-1]] * 3]
    assert nsimplex.neighbours(torch.zeros(0, 0).bool()).shape == (1, 0, 1)


def test_walks_and_pairs_of_neighbours():
    flags = adjacency_of(8, seed=3)
    walk = mask_of(nsimplex.path_list(nsimplex.neighbours(flags, self_loops=False), 2), 8, [8, 8])
    assert torch.equal(walk[0, 0], flags[:, :, None] & flags[None])
    pairs = mask_of(nsimplex.product_list(nsimplex.neighbours(flags), 2), 8, [8, 8])
    near = flags | torch.eye(8).bool()
    assert torch.equal(pairs[0, 0], near[:, :, None] & near[:, None, :])


def test_hyperedges():
    edges = torch.tensor([[0, 3, 2], [2, 0, 3], [4, 1, 1], [0, 3, 2]])
    everyone = nsimplex.hyperedge_list(edges, 6)
    expected = {
        (row[0], row[1:]) for edge in edges.tolist() for row in itertools.permutations(edge)
    }
    found = [(i, row) for i in range(6) for row in rows_of(everyone, 0, i)]
    assert set(found) == expected and len(found) == len(expected)
    directed = nsimplex.hyperedge_list(edges, 6, permute=False)
    assert [rows_of(directed, 0, i) for i in range(6)] == [[(3, 2)], [], [(0, 3)], [], [(1, 1)], []]
    none = nsimplex.hyperedge_list(torch.zeros(0, 3).long(), 4)
    assert none[0].shape == (0, 2) and none[1].tolist() == [[[0] * 5]]


@pytest.mark.parametrize("order, options", [
    (1, {}), (1, {"causal": True}), (2, {"causal": True}), (2, {"form": "determinant"}),
    (2, {"window": [3, 5]}), (3, {}), (2, {"key_lengths": torch.tensor([6, 0])}),
])  # fmt: skip
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
        ("topk", nsimplex.product_list(table, order)), ("path", nsimplex.path_list(table, order)),
        ("naive", nsimplex.topk_tuples(query, keys, 3**order, causal=True)),
        ("all", nsimplex.product_list(nsimplex.topk_keys(query, keys[0], length, causal=True), order)),
    ):  # fmt: skip
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
    torch.library.opcheck(
        torch.ops.nsimplex.retained_mass.default, (sparse.clone().requires_grad_(), dense),
        test_utils=("test_schema", "test_autograd_registration", "test_faketensor"),
    )  # fmt: skip


TABLE = torch.zeros(1, 4, 2, dtype=torch.int64)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: nsimplex.product_list(TABLE[0], 2), ValueError, "table: expected shape"),
        (lambda: nsimplex.product_list(TABLE.int(), 2), TypeError, "table: expected int64, got Int"),
        (lambda: nsimplex.product_list(TABLE - 2, 2), ValueError, "or -1 for none, got -2"),
        (lambda: nsimplex.product_list(TABLE, 0), ValueError, "order: expected 1 to 8, got 0"),
        (lambda: nsimplex.path_list(TABLE + 4, 2), ValueError, "keys from 0 to 3, or -1 for none, got 4"),
        (lambda: nsimplex.path_list(TABLE, 2, queries=5), ValueError, "queries: expected at most the table's 4"),
        (lambda: nsimplex.hyperedge_list(TABLE[0] + 5, 4), ValueError, "nodes 0 to 3, got 5 to 5"),
        (lambda: nsimplex.hyperedge_list(TABLE[0].float(), 4), TypeError, "expected int64, got Float"),
        (lambda: nsimplex.hyperedge_list(TABLE[0, :, :1], 4), ValueError, "hyperedges: expected shape"),
        (lambda: nsimplex.neighbours(torch.zeros(3, 3)), TypeError, "adjacency: expected bool or"),
        (lambda: nsimplex.neighbours(torch.zeros(3, 4).bool()), ValueError, "square matrix for self_loops, got 3 x 4"),
        (lambda: nsimplex.neighbours(torch.zeros(3).bool()), ValueError, "adjacency: expected shape"),
        (lambda: nsimplex.topk_tuples(draw(1, 1, 3, 4), [draw(1, 1, 3, 4)], 0), ValueError, "count: expected at least 1"),
        (lambda: nsimplex.topk_tuples(draw(1, 1, 3, 4), [draw(1, 1, 3, 4)], 2, weights=draw(1, 1, 2)), ValueError,
         r"weights: expected shape \[1, 1, 3\]"),
        (lambda: nsimplex.topk_tuples(draw(1, 1, 3, 4), [draw(1, 1, 3, 4)] * 2, 2, augment=True), ValueError, "augment"),
    ],
)  # fmt: skip
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
