"""Choosing and attending together: sparse attention over what routing chose, against the dense
operator."""

import pytest
import torch

import nsimplex
from nsimplex.nn import Indexer


def draw(*shape, seed=0, dtype=torch.float64):
    return torch.randn(
        *shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    ).to(dtype)


def layer(order, length, seed=0):
    """query, keys, values as leaves."""
    query = draw(2, 4, length, 6, seed=seed).requires_grad_()
    keys = [draw(2, 2, length, 6, seed=seed + 1 + m).requires_grad_() for m in range(order)]
    values = [draw(2, 2, length, 3, seed=seed + 11 + m).requires_grad_() for m in range(order)]
    return query, keys, values


def outcome(out, lse, leaves):
    """Output, lse and gradients of a loss that weighs all of both."""
    loss = (out * draw(*out.shape, seed=30)).sum() + (lse * draw(*lse.shape, seed=31)).sum()
    return [out, lse, *torch.autograd.grad(loss, leaves)]


def chain_mask(pairs, order):
    """bool [T, T_1, .., T_N]: j1 admissible for i, j2 for j1, .."""
    mask = pairs
    for axis in range(1, order):
        shape = [1] * axis + list(pairs.shape)
        mask = mask[..., None] & pairs.view(shape)
    return mask


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scores", ["relu", "softmax"])
def test_full_k_is_dense_attention_or_the_chain(order, causal, scores):
    length = 7
    query, keys, values = layer(order, length)
    leaves = [query, *keys, *values]
    table = nsimplex.topk_keys(query, keys[0], length + 2, causal=causal, scores=scores)

    def sparse(pattern):
        out, lse = nsimplex.sparse_attention(
            query, keys, values, table, pattern=pattern, return_lse=True
        )
        return outcome(out, lse, leaves)

    dense = nsimplex.attention(query, keys, values, causal=causal, return_lse=True)
    for ours, exact in zip(sparse("product"), outcome(*dense, leaves)):
        torch.testing.assert_close(ours, exact)
    pairs = torch.ones(length, length, dtype=torch.bool)
    chain = chain_mask(pairs.tril() if causal else pairs, order)
    dense = nsimplex.attention(query, keys, values, mask=chain, return_lse=True)
    for ours, exact in zip(sparse("path"), outcome(*dense, leaves)):
        torch.testing.assert_close(ours, exact)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_lists_are_the_tables_they_are_made_of(order):
    query, keys, values = layer(order, 20)
    table = nsimplex.topk_keys(query, keys[0], 4, causal=True)
    lists = {
        "product": nsimplex.product_list(table, order),
        "path": nsimplex.path_list(table, order),
    }
    for pattern, listed in lists.items():
        by_table = nsimplex.sparse_attention(query, keys, values, table, pattern=pattern)
        torch.testing.assert_close(
            nsimplex.sparse_attention(query, keys, values, *listed), by_table
        )
    late = nsimplex.path_list(table, order, queries=3)
    few = [
        nsimplex.sparse_attention(query[:, :, -3:], keys, values, *rest, pattern=pattern)
        for rest, pattern in ((late, "list"), ((table,), "path"))
    ]
    torch.testing.assert_close(*few)


@pytest.mark.parametrize("scores", ["relu", "softmax"])
def test_order_1_is_deepseek_sparse_attention(scores):
    """I_ij = sum_h w_ih relu(q_ih . k_j); softmax attention over the k best keys of each query."""
    heads, length, k = 3, 40, 6
    index_query, index_key = draw(2, heads, length, 4), draw(2, 1, length, 4, seed=1)
    weights = draw(2, heads, length, seed=2).abs()
    query, key, value = (draw(2, 4, length, 8, seed=3 + m) for m in range(3))
    table = nsimplex.topk_keys(
        index_query, index_key, k, weights=weights, causal=True, scores=scores, scale=1.0
    )
    ours = nsimplex.sparse_attention(query, [key], [value], table, pattern="product")
    for b in range(2):
        for i in range(length):
            logits = index_query[b, :, i] @ index_key[b, 0, : i + 1].mT  # [H, i + 1]
            act = logits.relu() if scores == "relu" else logits.softmax(-1)
            index = (weights[b, :, i, None] * act).sum(0)
            chosen = index.sort(dim=-1, descending=True, stable=True).indices[:k]
            for h in range(4):
                attention = (key[b, h, chosen] @ query[b, h, i] / 8**0.5).softmax(-1)
                torch.testing.assert_close(ours[b, h, i], attention @ value[b, h, chosen])


def test_order_1_on_a_graph_is_attention_over_neighbours():
    """GAT with dot-product scores: the softmax over N(i) and i, by messages along edges."""
    flags = torch.rand(12, 12, generator=torch.Generator().manual_seed(0)) < 0.3
    query, key, value = (draw(1, 2, 12, 6, seed=m) for m in range(3))
    for adjacency in (flags, flags.to_sparse_csr()):
        table = nsimplex.neighbours(adjacency)
        ours = nsimplex.sparse_attention(query, [key], [value], table, pattern="product")
        target, source = (flags | torch.eye(12).bool()).nonzero(as_tuple=True)
        score = ((query[0, :, target] * key[0, :, source]).sum(-1) / 6**0.5).exp()
        total = torch.zeros(2, 12, dtype=torch.float64).index_add(1, target, score)
        weighted = (score / total[:, target])[..., None] * value[0, :, source]
        message = torch.zeros(2, 12, 6, dtype=torch.float64).index_add(1, target, weighted)
        torch.testing.assert_close(ours[0], message)


def test_graphs_of_higher_order():
    flags = torch.rand(9, 9, generator=torch.Generator().manual_seed(1)) < 0.4
    query, keys, values = layer(2, 9)
    walk = nsimplex.sparse_attention(
        query, keys, values, nsimplex.neighbours(flags, self_loops=False), pattern="path"
    )
    torch.testing.assert_close(
        walk, nsimplex.attention(query, keys, values, mask=chain_mask(flags, 2))
    )
    near = flags | torch.eye(9).bool()
    pairs = nsimplex.sparse_attention(
        query, keys, values, nsimplex.neighbours(flags), pattern="product"
    )
    mask = near[:, :, None] & near[:, None, :]
    torch.testing.assert_close(pairs, nsimplex.attention(query, keys, values, mask=mask))
    edges = torch.tensor([[0, 3, 2], [4, 1, 1], [8, 0, 5]])
    mask = torch.zeros(9, 9, 9, dtype=torch.bool)
    for a, b, c in edges.tolist():
        for i, j, l in ((a, b, c), (a, c, b), (b, a, c), (b, c, a), (c, a, b), (c, b, a)):
            mask[i, j, l] = True
    ours = nsimplex.sparse_attention(query, keys, values, *nsimplex.hyperedge_list(edges, 9))
    torch.testing.assert_close(ours, nsimplex.attention(query, keys, values, mask=mask))


@pytest.mark.parametrize("order", [1, 2])
def test_retained_mass_of_every_selection(order):
    query, keys, values = (t if torch.is_tensor(t) else list(t) for t in layer(order, 12))
    dense = nsimplex.attention(query, keys, values, causal=True, return_lse=True)[1]
    weights = nsimplex.attention_weights(query, keys, causal=True).detach()
    table = nsimplex.topk_keys(query, keys[0], 3, causal=True)
    for pattern, listed in (
        ("product", nsimplex.product_list(table, order)),
        ("path", nsimplex.path_list(table, order)),
        ("list", nsimplex.topk_tuples(query, keys, 3**order, causal=True)),
    ):
        mask = torch.zeros(2, 12, *[12] * order, dtype=torch.bool)
        for b in range(2):
            for i in range(12):
                for row in listed[0][listed[1][b, 0, i] : listed[1][b, 0, i + 1]].tolist():
                    mask[(b, i, *row)] = True
        given = listed if pattern == "list" else (table,)
        lse = nsimplex.sparse_attention(
            query, keys, values, *given, pattern=pattern, return_lse=True
        )[1]
        exact = (weights * mask[:, None]).flatten(3).sum(-1).mean()
        torch.testing.assert_close(nsimplex.retained_mass(lse, dense), exact)


def test_a_layer_with_an_indexer():
    """Gradients of the output reach the layer, those of the loss the indexer, and neither the
    other."""
    torch.manual_seed(1)
    indexer, x = Indexer(12, 3, index_dim=4).double(), draw(2, 20, 12)
    query, keys, values = layer(2, 20)
    table = indexer(x, 5, causal=True)
    out = nsimplex.sparse_attention(query, keys, values, table, pattern="product")
    loss = indexer.loss(x, query, keys, causal=True, indices=table)
    (out.square().sum() + loss).backward()
    total = [t.grad.clone() for t in (query, *keys, *values)]
    alone = torch.autograd.grad(
        nsimplex.sparse_attention(query, keys, values, table, pattern="product").square().sum(),
        (query, *keys, *values),
    )
    for ours, exact in zip(total, alone):
        torch.testing.assert_close(ours, exact)
    assert all(p.grad.abs().max() > 0 for p in indexer.parameters())
