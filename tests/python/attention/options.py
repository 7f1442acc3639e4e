"""The option table of attention: every option alone and telling combinations, for the tests that
go through all. The gates of operators take it from packaging/operator_variants."""

from __future__ import annotations

import torch
from problems import Problem, random_problem


def _random(*shape: int, seed: int = 11) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _some(*shape: int, seed: int = 12) -> torch.Tensor:
    """Two thirds are true."""
    return _random(*shape, seed=seed) > -0.43


def _with_holes(mask: torch.Tensor) -> torch.Tensor:
    """Minus infinity here and there."""
    return mask.masked_fill(~_some(*mask.shape, seed=13), -torch.inf)


BOUNDS = torch.tensor([0, 2, 2, 3, 5])
B, H, T = 2, 4, 5  # batch entries, query heads, queries
SLOPES = torch.tensor([0.5, 0.1, -0.2, 1.0], dtype=torch.float64)

#: name: (order, options without gradient, options with gradient)
OPTIONS: dict[str, tuple[int, dict, dict]] = {
    "determinant-1": (1, dict(form="determinant"), {}),
    "determinant-2": (2, dict(form="determinant", scale=(0.7, 1.3)), {}),
    "determinant-3": (3, dict(form="determinant", causal=True), {}),
    "determinant-4": (4, dict(form="determinant", window=[(2, 1)] * 4), {}),
    "determinant-sum": (2, dict(form="determinant", reduce="sum", window=[(2, 1), (3, 0)]), {}),
    "documents-1": (1, dict(cu_seqlens=BOUNDS, causal=True), {}),
    "documents-2": (2, dict(cu_seqlens=BOUNDS, window=[(2, 1), (3, -1)]), {}),
    "documents-3": (3, dict(cu_seqlens=BOUNDS), {}),
    "key-masks-1": (1, dict(key_masks=[_some(B, T)]), {}),
    "key-masks-2": (2, dict(key_masks=[_some(B, T), _some(B, T, seed=3)], causal=True), {}),
    "boolean-mask-1": (1, dict(mask=_some(T, T)), {}),
    "boolean-mask-2": (2, dict(mask=_some(B, 1, T, T, T)), {}),
    "boolean-mask-3": (3, dict(mask=_some(H, 1, T, 1, T)), {}),
    "additive-mask-1": (1, {}, dict(mask=_with_holes(_random(B, H, T, T)))),
    "additive-mask-2": (2, dict(causal=True), dict(mask=_with_holes(_random(H, T, 1, T)))),
    "additive-mask-3": (3, dict(window=[(2, 1)] * 3), dict(mask=_random(T, 1, T, T))),
    "bias-of-heads": (2, {}, dict(mask=_random(H, 1, 1, 1))),
    "distinct-2": (2, dict(distinct="axes", causal=True), {}),
    "distinct-3": (3, dict(distinct="axes"), {}),
    "no-self-loops-1": (1, dict(distinct="with_query"), {}),
    "no-self-loops-2": (2, dict(distinct="with_query", window=[(3, 2)] * 2), {}),
    "sink-1": (1, dict(normalizer="softmax_sink", causal=True), dict(sink=_random(H))),
    "sink-2": (2, dict(normalizer="softmax_sink"), dict(sink=_random(H))),
    "sigmoid-1": (1, dict(normalizer="sigmoid"), {}),
    "sigmoid-2": (2, dict(normalizer="sigmoid", causal=True, reduce="mean"), {}),
    "relu-1": (1, dict(normalizer="relu"), {}),
    "relu-3": (3, dict(normalizer="relu", window=[(3, 0)] * 3), {}),
    "softcap-1": (1, dict(softcap=1.5, causal=True), {}),
    "softcap-2": (2, dict(softcap=0.3, scale=(-0.7, 1.3), reduce="sum"), {}),
    "softcap-3": (3, dict(softcap=2.0, form="determinant", window=[(3, 1)] * 3), {}),
    "softcap-mask": (
        2,
        dict(softcap=0.8, normalizer="softmax_sink", causal=True),
        dict(mask=_with_holes(_random(H, T, T, T)), sink=_random(H)),
    ),
    "softcap-relu-dropout": (
        2,
        dict(softcap=0.6, normalizer="relu", dropout_p=0.3, seed=2, distinct="axes"),
        {},
    ),
    "alibi-1": (1, dict(alibi_slopes=SLOPES, causal=True), {}),
    "alibi-2": (2, dict(alibi_slopes=SLOPES, window=[(3, 2), (4, 1)], reduce="sum"), {}),
    "alibi-3": (3, dict(alibi_slopes=-SLOPES, distinct="axes", dropout_p=0.2, seed=4), {}),
    "alibi-mask": (
        2,
        dict(alibi_slopes=SLOPES, softcap=0.9, query_positions=torch.tensor([2, 0]), causal=True),
        dict(mask=_with_holes(_random(H, T, 1, T))),
    ),
    "alibi-documents": (
        2,
        dict(alibi_slopes=SLOPES, cu_seqlens=BOUNDS, normalizer="sigmoid"),
        {},
    ),
    "alibi-relu": (
        1,
        dict(alibi_slopes=SLOPES, normalizer="relu", key_masks=[_some(B, T)]),
        dict(),
    ),
    "pairs-1": (1, dict(pair_masks=[None], causal=True), {"pair_masks.0": _random(H, T, T)}),
    "pairs-2": (
        2,
        dict(pair_masks=[None, None], window=[(3, 2), (4, 1)]),
        {"pair_masks.0": _with_holes(_random(B, 1, T, T)), "pair_masks.1": _random(1, H, T, T)},
    ),
    "pairs-3": (
        3,
        dict(pair_masks=[_some(T, T), None, None], reduce="mean", distinct="axes"),
        {"pair_masks.1": _random(T, 1), "pair_masks.2": _random(B, H, 1, T)},
    ),
    "pairs-boolean": (2, dict(pair_masks=[_some(H, T, T), _some(B, 1, T, T)], causal=True), {}),
    "pairs-softcap": (
        2,
        dict(pair_masks=[_some(T, T), None], softcap=0.8, alibi_slopes=SLOPES),
        {"pair_masks.1": _random(T, T), "mask": _with_holes(_random(H, T, 1, T))},
    ),
    "pairs-sink": (
        2,
        dict(pair_masks=[None, _some(1, T)], normalizer="softmax_sink", dropout_p=0.3, seed=6),
        {"pair_masks.0": _random(H, T, T), "sink": _random(H)},
    ),
    "pairs-sigmoid": (
        1,
        dict(pair_masks=[None], normalizer="sigmoid", cu_seqlens=BOUNDS),
        {"pair_masks.0": _with_holes(_random(T, T))},
    ),
    "pairs-relu": (
        2,
        dict(pair_masks=[None, None], normalizer="relu", key_masks=[_some(B, T), _some(B, T)]),
        {"pair_masks.0": _random(T, T), "pair_masks.1": _random(H, T, 1)},
    ),
    "softcap-sigmoid": (1, dict(softcap=0.9, normalizer="sigmoid"), {}),
    "dropout-1": (1, dict(dropout_p=0.4, seed=2**62 + 7), {}),
    "dropout-2": (2, dict(dropout_p=0.25, seed=3, causal=True, reduce="sum"), {}),
    "dropout-3": (3, dict(dropout_p=0.6, seed=0), {}),
    "positions-1": (1, dict(query_positions=torch.tensor([3, 0]), causal=True), {}),
    "positions-2": (
        2,
        dict(
            query_positions=torch.tensor([[0, 0, 2, 3, 9], [-1, 1, 2, 2, 4]]),
            window=[(2, 1), (3, 0)],
        ),
        {},
    ),
    "relu-masked-dropout": (
        2,
        dict(normalizer="relu", mask=_some(T, T, T), dropout_p=0.3, seed=5, reduce="sum"),
        {},
    ),
    "sigmoid-documents-distinct": (
        3,
        dict(normalizer="sigmoid", cu_seqlens=BOUNDS, distinct="axes", dropout_p=0.2, seed=9),
        {},
    ),
    "determinant-sink-mask": (
        2,
        dict(form="determinant", normalizer="softmax_sink", causal=True, window=[(3, 0), (4, 0)]),
        dict(mask=_with_holes(_random(1, T, T, T)), sink=_random(H)),
    ),
    "causal-windows-2": (2, dict(causal=True, window=[(4, 0), (2, 0)]), {}),
    "lengths-1": (1, dict(key_lengths=torch.tensor([[2, 4]])), {}),
    "lengths-2": (2, dict(key_lengths=torch.tensor([[0, 3], [5, 2]]), causal=True), {}),
    "plain-1": (1, dict(scale=(0.7, 1.3)), {}),
    "plain-2": (2, {}, {}),
    "plain-3": (3, dict(window=[(3, 1)] * 3), {}),
    "sum-1": (1, dict(reduce="sum", causal=True), {}),
    "sum-2": (2, dict(reduce="sum", scale=(0.7, 1.3), window=[(3, 1)] * 2), {}),
    "sum-3": (3, dict(reduce="sum", window=[(2, 1)] * 3), {}),
    "mean-2": (2, dict(reduce="mean"), {}),
    "mean-3": (3, dict(reduce="mean", causal=True), {}),
    "everything": (
        2,
        dict(
            form="determinant",
            normalizer="softmax_sink",
            cu_seqlens=BOUNDS,
            distinct="with_query",
            key_lengths=torch.tensor([[5, 4], [3, 5]]),
            key_masks=[_some(B, T, seed=8), _some(B, T)],
            window=[(4, 2), (3, -1)],
            reduce="mean",
            dropout_p=0.3,
            seed=-4,
            scale=(0.9, 1.1),
        ),
        dict(mask=_random(B, 1, T, 1, T), sink=_random(H)),
    ),
}

BIAS = torch.tensor([[0.4, -1.0, 2.0, 0.0], [-3.0, 0.5, 0.1, -0.2], [1.0, -2.0, 0.3, 0.0]]).double()
SINK = torch.tensor([0.3, -1.0, 2.0, 0.0]).double()


def _rows_of_ones():
    """augment, by the axes that get a row of ones: alone, with a bias of orders, and with what
    masks keys but no row of ones."""
    for axes in ([1, 0], [2, 1], [2, 0], [2, 0, 1], [3, 1, 2], [3, 2], [3, 2, 0]):
        order, *augment = axes
        name = "augment-" + "".join(map(str, axes))
        for reduce in ("product", "sum", "mean"):
            yield f"{name}-{reduce}", (order, dict(augment=augment, reduce=reduce), {})
        lengths = torch.tensor([[0, 3], [5, 0], [2, 4]])[:order]
        own = dict(augment=augment, key_lengths=lengths, causal=True, window=[(2, 0)] * order)
        yield f"{name}-lengths", (order, own, {})
        masks = [_some(B, T, seed=m) for m in range(order)]
        own = dict(augment=augment, key_masks=masks, window=[(3, 2)] * order)
        yield f"{name}-masks", (order, own, {})
        bias = dict(order_bias=BIAS[:order])
        yield f"{name}-bias", (order, dict(augment=augment, causal=True), bias)
        own = dict(augment=augment, causal=True, normalizer="softmax_sink")
        yield f"{name}-bias-sink", (order, own, bias | dict(sink=SINK))
    for order, augment in ((2, [1]), (3, [0, 2])):
        for normalizer in ("sigmoid", "relu"):
            own = dict(augment=augment, normalizer=normalizer)
            yield f"augment-{order}-{normalizer}", (order, own, {})
        own = dict(augment=augment, normalizer="softmax_sink")
        yield f"augment-{order}-sink", (order, own, dict(sink=SINK))
    yield "augment-3-softcap", (3, dict(augment=[1, 2], softcap=0.7), {})
    yield "augment-3-distinct", (3, dict(augment=[1, 2], distinct="axes"), {})


OPTIONS |= dict(_rows_of_ones())

#: One of each kind, for the slower gates.
EACH = [
    "determinant-2",
    "documents-2",
    "key-masks-2",
    "boolean-mask-2",
    "additive-mask-2",
    "distinct-2",
    "no-self-loops-2",
    "sink-2",
    "sigmoid-2",
    "relu-3",
    "softcap-2",
    "alibi-2",
    "pairs-2",
    "dropout-2",
    "positions-2",
    "lengths-2",
    "sum-3",
    "augment-21-product",
    "augment-312-bias",
    "everything",
]


def option_problem(name: str) -> Problem:
    """Two batch entries, grouped heads, Dv != D; axes of equal length, as documents need them."""
    order, options, learned = OPTIONS[name]
    problem = random_problem(
        order,
        batch=B,
        heads=H,
        kv_heads=2,
        queries=T,
        lengths=[T] * order,
        dim=2 * (order + 1),
        value_dim=3,
    )
    problem.options, problem.learned = options, learned
    return problem
