"""Calls of the operators that are sharded: batches and several heads, with their options."""

from __future__ import annotations

import torch

operators = torch.ops.nsimplex


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def tuples(batch=3, heads=4, kv_heads=2, length=6, width=4, order=2, seed=0):
    """query, keys, values."""
    keys = [draw(batch, kv_heads, length, width, seed=seed + 1 + m) for m in range(2 * order)]
    return draw(batch, heads, length, width, seed=seed), keys[:order], keys[order:]


def table(batch, groups, length=6, k=3):
    generator = torch.Generator().manual_seed(7)
    rows = batch * groups * length
    picked = [torch.randperm(length, generator=generator)[:k] for _ in range(rows)]
    return torch.stack(picked).view(batch, groups, length, k)


def listed(batch, groups, length=6, order=2):
    """A list of two tuples per query."""
    rows = batch * groups * length
    generator = torch.Generator().manual_seed(9)
    indices = torch.randint(length, (2 * rows, order), generator=generator)
    starts = 2 * torch.arange(rows).view(batch, groups, length)
    return indices, torch.cat([starts, starts[..., -1:] + 2], -1)


def attention_options(heads=4, batch=3, length=6):
    return {
        "plain": {},
        "window": dict(causal=True, window=[4, 0, 2, 0]),
        "lengths": dict(key_lengths=torch.arange(batch) + 3),
        "lengths per axis": dict(key_lengths=torch.arange(2 * batch).view(2, batch) % 4 + 2),
        "masks": dict(key_masks=[draw(batch, length, seed=3 + m) > -0.5 for m in range(2)]),
        "documents": dict(causal=True, cu_seqlens=torch.tensor([0, 2, length])),
        "mask": dict(mask=draw(batch, heads, length, length, length, seed=4)),
        "mask of pairs": dict(mask=draw(1, 1, length, length, 1, seed=4)),
        "masks of pairs": dict(
            pair_masks=[draw(batch, heads, length, length, seed=3), draw(1, 1, length, length)]
        ),
        "slopes": dict(causal=True, alibi_slopes=draw(heads, seed=5).abs()),
        "sink": dict(normalizer="softmax_sink", sink=draw(heads, seed=5)),
        "positions": dict(causal=True, query_positions=torch.arange(batch)),
        "augment": dict(augment=[1], order_bias=draw(2, heads, seed=6)),
        "sum, relu": dict(reduce="sum", normalizer="relu"),
    }


def calls():
    """(name, operator, positional, keyword) of every sharded operator."""
    q, keys, values = tuples()
    for name, options in attention_options().items():
        yield f"attention {name}", "attention", (q, keys, values), options
    yield "reference", "attention_reference", (q, keys, values), dict(causal=True)
    for groups in (1, 2):
        for pattern in ("product", "path"):
            sets = (q, keys, values, table(3, groups))
            yield f"{pattern} {groups}", "sparse_attention", sets, dict(pattern=pattern)
        lists = (q, keys, values, *listed(3, groups))
        yield f"list {groups}", "sparse_attention", lists, {}
    yield (
        "shared table",
        "sparse_attention",
        (q, keys, values, table(1, 1)),
        dict(pattern="product"),
    )
    learned = [
        draw(2, 8, 8, seed=8),
        draw(2, 8, seed=9),
        draw(2, 4, 8, seed=10),
        draw(2, 4, seed=11),
    ]
    sets = (q, keys, values, table(3, 1))
    options = dict(pattern="product", reduce="mlp", reducer_weights=learned)
    yield "learned reducer", "sparse_attention", sets, options
    yield "sparse reference", "sparse_attention_reference", sets, dict(pattern="product")
    positive = (q.exp(), [key.exp() for key in keys], values)
    yield "separable", "separable_attention", positive, dict(causal=True, window=[-1, 0, 3, 0])
    yield "separable reference", "separable_attention_reference", positive, {}
    x = tuples()[0]
    yield "rotary", "rotary", (x,), dict(offset=3)
    yield "rotary positions", "rotary", (x,), dict(positions=torch.arange(18).view(3, 6))
    yield "rotary angles", "rotary", (x,), dict(angles=draw(3, 6, 4, 2, seed=2))
    yield "rotary shared angles", "rotary", (x,), dict(angles=draw(6, 2, seed=2))
    yield "elu", "elu_features", (x,), {}
    yield "directions", "random_directions", (x, 6, 3, False), {}
    options = dict(weights=draw(3, 4, 6, seed=5).abs(), scores="softmax", causal=True)
    yield "topk", "topk_keys", (x, keys[0], 3), options
    options = dict(key_lengths=torch.tensor([4, 2, 5]), adjacency=draw(1, 6, 6) > -0.5)
    yield "topk adjacency", "topk_keys", (x, keys[0], 3), options
    yield "topk candidates", "topk_keys", (x, keys[0], 2), dict(candidates=table(3, 1)[:, 0])
    yield "topk reference", "topk_keys_reference", (x, keys[0], 3), {}


def composed():
    """(name, function of tensors, tensors, sharded dimensions of each by layout) of operators that
    are composed of others."""
    q, keys, values = tuples(4)
    merged = [q, draw(4, 4, 6, 4, seed=8), draw(4, 4, 6, seed=1), draw(4, 4, 6, seed=2)]

    def features(kind):
        return lambda x: operators.feature_map(x, kind, features=6 * (kind == "random"), seed=3)

    def face(q, k1, k2, v1, v2):
        return operators.face_attention(q, [k1, k2], [v1, v2], causal=True)

    def linear(x, weight, bias):
        return operators.equivariant_linear(x, weight, bias, input_order=2, output_order=2)

    def heads_of(count):
        return [0] * count, [1] * count

    yield "merge", lambda a, b, c, d: operators.merge_attention([a, b], [c, d]), merged, heads_of(4)
    for kind in ("elu", "relu", "random"):
        yield kind, features(kind), [q], heads_of(1)
    yield "face", face, [q, *keys, *values], heads_of(5)
    pairs = [q, *keys]
    yield "weights", lambda q, a, b: operators.attention_weights(q, [a, b]), pairs, heads_of(3)
    yield "mass", operators.retained_mass, merged[2:], heads_of(2)
    weights = [draw(4, 4, 4, 3), draw(15, 3, 5, seed=1), draw(2, 5, seed=2)]
    yield "equivariant linear", linear, weights, ([0, None, None],)


def uneven():
    """Heads that the ranks do not divide: (name, heads, key heads)."""
    yield "one key head", 4, 1
    yield "one key head, five heads", 5, 1
    yield "three key heads", 6, 3
    yield "two key heads, ten heads", 10, 2
    yield "five heads", 5, 5
    yield "a group of four over two ranks and more", 12, 3
    yield "fewer heads than ranks", 1, 1
