"""Problems of separable attention for its tests: features, values and calls."""

import torch

import nsimplex

ORDERS = [1, 2, 3]


def draw(*shape, seed=0, dtype=torch.float64):
    return torch.randn(
        *shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    ).to(dtype)


def problem(
    order,
    *,
    batch=1,
    heads=2,
    kv_heads=None,
    queries=6,
    lengths=None,
    features=4,
    value_dim=3,
    dtype=torch.float64,
):
    """query and keys of positive features, values; an axis of its own length each."""
    lengths = lengths or [queries + m for m in range(order)]
    kv_heads = kv_heads or heads
    query = draw(batch, heads, queries, features, seed=1).exp()
    keys = [draw(batch, kv_heads, n, features, seed=2 + m).exp() for m, n in enumerate(lengths)]
    values = [draw(batch, kv_heads, n, value_dim, seed=12 + m) for m, n in enumerate(lengths)]
    return [t.to(dtype).requires_grad_() for t in (query, *keys, *values)]


def call(inputs, function=nsimplex.separable_attention, **options):
    order = len(inputs) // 2
    return function(
        inputs[0],
        inputs[1 : 1 + order],
        inputs[1 + order :],
        features=None,
        return_normalizer=True,
        **options,
    )
