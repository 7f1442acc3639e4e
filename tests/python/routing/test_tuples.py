"""Lists of tuples from tables, graphs and hyperedges."""

import itertools

import pytest
import torch

import nsimplex


def draw(*shape, seed=0, dtype=torch.float64):
    return torch.randn(
        *shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    ).to(dtype)


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
    _indices, offsets = listed
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


def test_paths_of_fewer_than_no_queries_are_refused():
    with pytest.raises(ValueError, match=r"^\[path_list\] queries: expected 0 or more, got -1$"):
        nsimplex.path_list(table_of(1, 7, 3, 7), 2, queries=-1)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("k", [2, 5, 9])
def test_topk_at_full_k_is_dense_and_path_is_the_chain(order, k):
    """k >= the admissible keys: the product is dense attention, the path that under the chain
    mask."""
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
        "flags": flags,
        "csr": flags.to_sparse_csr(),
        "batch": torch.stack([flags, flags.t()]),
        "int32": torch.sparse_csr_tensor(
            *(
                t.int()
                for t in (flags.to_sparse_csr().crow_indices(), flags.to_sparse_csr().col_indices())
            ),
            torch.ones(int(flags.sum())),
            (9, 9),
        ),
    }[layout]
    table = nsimplex.neighbours(given, self_loops=self_loops)
    for b, graph in enumerate([flags, flags.t()][: table.size(0)]):
        for i in range(9):
            expected = [j for j in range(9) if graph[i, j] or (self_loops and i == j)]
            assert table[b, i].tolist() == expected + [-1] * (table.size(2) - len(expected))
    assert table.size(2) == max((row >= 0).sum() for row in table.flatten(0, 1))
    repeated = torch.sparse_csr_tensor(
        torch.tensor([0, 3, 3]), torch.tensor([1, 0, 1]), torch.ones(3), (2, 2)
    )
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
