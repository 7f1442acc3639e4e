"""topk_keys: the definition, ties, hostile inputs and memory order."""

import pytest
import torch

import nsimplex

INFINITY = float("inf")


def draw(*shape, seed=0, dtype=torch.float64):
    return torch.randn(
        *shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    ).to(dtype)


def causal_pairs(queries, keys):
    return torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)


def all_scores(query, key, *, weights=None, scores="relu", scale=None, admissible=None, lse=None):
    """[B, Tq, T] from the formula, -inf where not admissible."""
    key = key.repeat_interleave(query.size(1) // key.size(1), 1)
    logits = query @ key.mT * (query.size(-1) ** -0.5 if scale is None else scale)
    if admissible is None:
        admissible = torch.ones(logits.shape[-2:], dtype=torch.bool)
    admissible = admissible.expand(query.size(0), *logits.shape[-2:])
    logits = logits.masked_fill(~admissible[:, None], -INFINITY)
    if scores == "relu":
        act = logits.clamp(min=0)
    else:
        lse = logits.logsumexp(-1) if lse is None else lse
        act = (logits - lse[..., None]).exp()
    each = act if weights is None else act * weights[..., None]
    return each.sum(1).masked_fill(~admissible, -INFINITY)


def best(scores, k):
    """(indices, scores), ties to the lowest index."""
    values, order = scores.sort(dim=-1, descending=True, stable=True)
    missing = max(k - scores.size(-1), 0)
    values = torch.nn.functional.pad(values[..., :k], (0, missing), value=-INFINITY)
    order = torch.nn.functional.pad(order[..., :k], (0, missing), value=-1)
    return order.masked_fill(values.isneginf(), -1), values


CASES = {
    "light": dict(heads=4, kv_heads=1, queries=50, keys=50, k=7),
    "reuse": dict(heads=4, kv_heads=2, queries=40, keys=65, k=9, scores="softmax"),
    "causal": dict(heads=2, kv_heads=1, queries=70, keys=70, k=16, causal=True),
    "causal softmax": dict(
        heads=2, kv_heads=2, queries=33, keys=33, k=5, causal=True, scores="softmax"
    ),
    "late queries": dict(heads=2, kv_heads=1, queries=5, keys=99, k=8, causal=True),
    "early keys": dict(heads=2, kv_heads=1, queries=40, keys=9, k=4, causal=True),
    "one query": dict(heads=2, kv_heads=1, queries=1, keys=300, k=10, causal=True),
    "more than all": dict(heads=2, kv_heads=1, queries=10, keys=6, k=20),
    "prunings": dict(heads=1, kv_heads=1, queries=36, keys=1500, k=6),
    "lengths": dict(heads=2, kv_heads=1, queries=20, keys=40, k=6, lengths=(0, 17)),
    "adjacency": dict(heads=2, kv_heads=1, queries=45, keys=70, k=6, adjacency=2),
    "adjacency of all": dict(
        heads=2, kv_heads=1, queries=45, keys=45, k=9, adjacency=1, causal=True, scores="softmax"
    ),
}


def make(name, dtype=torch.float64, weights=True, dim=12):
    """(query, key, k, options, admissible)"""
    case = dict(CASES[name])
    heads, kv_heads, queries, keys = (case.pop(n) for n in ("heads", "kv_heads", "queries", "keys"))
    k, lengths, adjacency = case.pop("k"), case.pop("lengths", None), case.pop("adjacency", 0)
    query, key = (
        draw(2, heads, queries, dim, dtype=dtype),
        draw(2, kv_heads, keys, dim, seed=1, dtype=dtype),
    )
    admissible = (
        causal_pairs(queries, keys) if case.get("causal") else torch.ones(queries, keys).bool()
    )
    if lengths:
        case["key_lengths"] = torch.tensor(lengths)
        admissible = admissible & (torch.arange(keys) < torch.tensor(lengths)[:, None, None])
    if adjacency:
        case["adjacency"] = draw(adjacency, queries, keys, seed=2) > 0.3
        admissible = admissible & case["adjacency"]
    if weights:
        case["weights"] = draw(2, heads, queries, seed=3).to(dtype)
        if case.get("scores") == "softmax":
            case["weights"] = case["weights"].abs()
    return query, key, k, case, admissible


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("weights", [False, True])
def test_definition(name, weights):
    query, key, k, options, admissible = make(name, weights=weights)
    same = {n: options[n] for n in ("weights", "scores") if n in options}
    exact, values = best(all_scores(query, key, admissible=admissible, **same), k)
    for function in (nsimplex.topk_keys, nsimplex.topk_keys_reference):
        indices, scores = function(query, key, k, return_scores=True, **options)
        assert indices.dtype == torch.int64 and scores.dtype == torch.float64
        torch.testing.assert_close(scores, values)
        assert torch.equal(indices, exact)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_low_precision_chooses_what_fp64_does_to_rounding(name, dtype):
    """What is chosen has, exactly scored, the scores of the exact choice to rounding."""
    query, key, k, options, admissible = make(name, dtype)
    indices, scores = nsimplex.topk_keys(query, key, k, return_scores=True, **options)
    assert scores.dtype == torch.float32
    same = {n: options[n] for n in ("weights", "scores") if n in options}
    if "weights" in same:
        same["weights"] = same["weights"].double()
    exact = all_scores(query.double(), key.double(), admissible=admissible, **same)
    _, values = best(exact, k)
    error = 1e-5 * exact.masked_fill(exact.isneginf(), 0).abs().max().item()
    ours = exact.gather(2, indices.clamp(min=0)).masked_fill(indices < 0, -INFINITY)
    torch.testing.assert_close(ours, values, rtol=0, atol=error)
    torch.testing.assert_close(scores.double(), ours, rtol=0, atol=error)


def test_ties_go_to_the_lowest_index():
    """Equal keys, and scores of relu that are all zero, across tiles and prunings."""
    key = draw(1, 1, 7, 8).repeat(1, 1, 100, 1)  # key j equals key j mod 7
    query = draw(1, 2, 40, 8, seed=1)
    for dtype in (torch.float64, torch.float32):
        tensors = query.to(dtype), key.to(dtype)
        scores = all_scores(query, key[:, :, :7])[0]
        for k in (3, 130, 250):
            indices = nsimplex.topk_keys(*tensors, k)[0]
            for i in range(40):
                order = []
                values = scores[i].tolist()
                for value in sorted(set(values), reverse=True):
                    order += sorted(j for j in range(700) if values[j % 7] == value)
                assert indices[i].tolist() == order[:k]
        silent = nsimplex.topk_keys(tensors[0].abs(), -tensors[1].abs(), 5)
        assert torch.equal(silent, torch.arange(5).expand(1, 40, 5))
        signs = nsimplex.topk_keys(
            tensors[0].abs(), -tensors[1].abs(), 5, weights=-torch.ones(1, 2, 40, dtype=dtype)
        )
        assert torch.equal(signs, silent)  # -0 is 0


def test_lse_given_and_computed():
    query, key, k, options, _ = make("causal softmax", weights=False)
    _, lse = nsimplex.attention(query, [key], [key], causal=True, return_lse=True)
    given = nsimplex.topk_keys(query, key, k, lse=lse, return_scores=True, **options)
    computed = nsimplex.topk_keys(query, key, k, return_scores=True, **options)
    assert torch.equal(given[0], computed[0])
    torch.testing.assert_close(given[1], computed[1])
    other = lse + draw(*lse.shape, seed=5)
    indices, scores = nsimplex.topk_keys(query, key, k, lse=other, return_scores=True, **options)
    exact = best(
        all_scores(query, key, scores="softmax", lse=other, admissible=causal_pairs(33, 33)), k
    )
    assert torch.equal(indices, exact[0])
    torch.testing.assert_close(scores, exact[1])
    none = lse.clone()
    none[:, 0] = -INFINITY  # the first head attended to nothing: it has no say
    one = nsimplex.topk_keys(
        query[:, 1:], key[:, 1:], k, lse=lse[:, 1:], return_scores=True, **options
    )
    for function in (nsimplex.topk_keys, nsimplex.topk_keys_reference):
        both = function(query, key, k, lse=none, return_scores=True, **options)
        assert torch.equal(both[0], one[0])
        torch.testing.assert_close(both[1], one[1])


@pytest.mark.parametrize("scores", ["relu", "softmax"])
@pytest.mark.parametrize("causal", [False, True])
def test_sparse_adjacency_scores_what_it_stores(scores, causal):
    query, key = draw(2, 4, 30, 8), draw(2, 2, 30, 8, seed=1)
    weights = draw(2, 4, 30, seed=3).abs()
    flags = draw(30, 30, seed=2) > 0.8
    flags[3] = False
    options = dict(scores=scores, causal=causal, weights=weights, return_scores=True)
    dense = nsimplex.topk_keys(query, key, 5, adjacency=flags, **options)
    sparse = nsimplex.topk_keys(query, key, 5, adjacency=flags.to_sparse_csr(), **options)
    assert torch.equal(dense[0], sparse[0]) and (dense[0][:, 3] == -1).all()
    torch.testing.assert_close(dense[1], sparse[1])
    backwards = nsimplex.neighbours(flags, self_loops=False).flip(-1)
    table = nsimplex.topk_keys(query, key, 5, candidates=backwards, **options)
    assert torch.equal(dense[0], table[0])
    lengths = torch.tensor([30, 11])
    for adjacency in (flags, flags.to_sparse_csr()):
        short = nsimplex.topk_keys(
            query, key, 5, adjacency=adjacency, key_lengths=lengths, **options
        )
        assert short[0][1].max() < 11 and torch.equal(short[0][0], dense[0][0])


def test_views_of_any_strides():
    query, key, k, options, _ = make("causal")
    exact = nsimplex.topk_keys(query, key, k, **options)
    wide = query.repeat_interleave(2, -1)[..., ::2], key.repeat_interleave(3, 2)[:, :, ::3]
    inside = query.transpose(1, 2).contiguous().transpose(1, 2)
    weights = options.pop("weights").transpose(1, 2).contiguous().transpose(1, 2)
    for q, kk in (wide, (inside, key)):
        assert torch.equal(nsimplex.topk_keys(q, kk, k, weights=weights, **options), exact)
    flags = (draw(70, 70, seed=4) > 0).t()
    assert torch.equal(
        nsimplex.topk_keys(query, key, k, adjacency=flags),
        nsimplex.topk_keys(query, key, k, adjacency=flags.contiguous()),
    )


def test_nothing_that_is_not_finite_is_chosen():
    query, key = draw(1, 2, 10, 8), draw(1, 1, 40, 8, seed=1)
    clean = nsimplex.topk_keys(query, key[:, :, :20], 6)
    key[:, :, 20:] = float("nan")
    for function in (nsimplex.topk_keys, nsimplex.topk_keys_reference):
        assert torch.equal(function(query, key, 6), clean)
        assert torch.equal(function(query, key, 6, key_lengths=torch.tensor([20])), clean)
        query[0, 0, 4] = float("nan")
        assert (function(query, key, 6)[0, 4] == -1).all()
        query[0, 0, 4] = 1.0
        clean = nsimplex.topk_keys(query, key[:, :, :20], 6)
    big = nsimplex.topk_keys(
        1e4 * query.float(), key[:, :, :20].float(), 6, scores="softmax", return_scores=True
    )
    assert big[1][big[0] >= 0].isfinite().all()


@pytest.mark.parametrize("queries, keys", [(0, 5), (5, 0), (0, 0)])
def test_empty(queries, keys):
    for options in ({}, {"scores": "softmax"}, {"candidates": torch.full((1, queries, 2), -1)}):
        indices = nsimplex.topk_keys(
            torch.zeros(2, 1, queries, 4), torch.zeros(2, 1, keys, 4), 3, **options
        )
        assert indices.shape == (2, queries, 3) and (
            (keys > 0 and queries == 0) or (indices == -1).all()
        )
    assert nsimplex.topk_keys(torch.zeros(0, 1, 5, 4), torch.zeros(0, 1, 5, 4), 3).shape == (
        0,
        5,
        3,
    )


def test_no_gradient_passes():
    query, key, k, options, _ = make("light")
    indices, scores = nsimplex.topk_keys(
        query.requires_grad_(), key.requires_grad_(), k, return_scores=True, **options
    )
    assert not indices.requires_grad and not scores.requires_grad


def test_vmap_calls_it_once_per_entry(capfd):
    query, key = draw(3, 1, 2, 8, 6), draw(3, 1, 1, 8, 6, seed=1)
    choose = lambda query, key: nsimplex.topk_keys(query, key, 3, causal=True)
    expected = torch.stack([choose(q, k) for q, k in zip(query, key)])
    assert torch.equal(torch.vmap(choose)(query, key), expected)
    assert capfd.readouterr().err == ""  # torch would ask for a rule
    with pytest.raises(ValueError, match=r"^\[topk_keys\] query: expected vmap over at least one"):
        torch.vmap(choose)(query[:0], key[:0])
