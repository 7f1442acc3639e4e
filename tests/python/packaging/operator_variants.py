"""The options of operators: calls beside those of operator_cases, and what holds for which.

``VARIANTS`` has the call of an operator by "operator, options", as ``CASES`` has one by its name.
``test_operator_gates`` sends all of them through opcheck, derivatives, transforms, numbers of
threads, views, compiled code and exported programs.
"""

from __future__ import annotations

import itertools
from functools import partial

import operator_cases
import torch
from equivariant_variants import equivariant_family, linear
from operator_cases import draw
from options import OPTIONS, option_problem

from nsimplex._options import operator_options

operators = torch.ops.nsimplex


def attention(name):
    """A row of the option table, as operators take it."""
    problem = option_problem(name)
    n = problem.order
    query, keys, values = problem.inputs[0], problem.inputs[1 : 1 + n], problem.inputs[1 + n :]
    options = operator_options(
        query, keys, values, **problem.options_with([*problem.learned.values()])
    )
    return (query, keys, values), {k: v for k, v in options.items() if v is not None}


def weights(name):
    (query, keys, _), options = attention(name)
    return (query, keys), options


def tensors(order, *, positive=False, dim=4, value_dim=3, queries=5, lengths=None):
    """query, keys, values: two batch entries, grouped heads, an axis of its own length each."""
    lengths = lengths or [5 + m for m in range(order)]
    made = [draw(2, 4, queries, dim, seed=1)]
    made += [draw(2, 2, n, dim, seed=2 + m) for m, n in enumerate(lengths)]
    made = [x.exp() for x in made] if positive else made
    return made[0], made[1:], [draw(2, 2, n, value_dim, seed=9 + m) for m, n in enumerate(lengths)]


def separable(order, **options):
    return tensors(order, positive=True), options


def sparse(pattern, order, *, groups=1, entries=2, length=6, **options):
    """Lists of two batch entries; some sets are short, and the first query has no tuple."""
    generator = torch.Generator().manual_seed(3)
    sizes = dict(queries=length - 1, lengths=[length] * order)
    query, keys, values = tensors(order, dim=2 * (order + 1), **sizes)
    rows = entries, groups, length - (pattern != "path")
    if pattern == "list":
        counts = torch.randint(4, rows, generator=generator)
        counts[..., 0] = 0
        ends = counts.flatten().cumsum(0)
        chosen = torch.randint(length, (int(ends[-1]), order), generator=generator)
        starts = torch.cat([ends.new_zeros(1), ends[:-1]]).view(rows)
        return (query, keys, values, chosen, torch.cat([starts, ends.view(rows)[..., -1:]], -1)), {
            "pattern": pattern,
            **options,
        }
    sets = torch.rand(*rows, length, generator=generator).argsort(-1)[..., :3]
    filled = torch.randint(1, 4, (*rows, 1), generator=generator)
    sets = sets.masked_fill(torch.arange(3) >= filled, -1)
    sets[:, :, rows[2] - length + 1] = -1
    return (query, keys, values, sets), {"pattern": pattern, **options}


def reducer_weights(reduce, order, groups=2, width=3):
    """Those of a learned reducer of values of this width."""
    layers = {"mlp": [(2, order), (1, 2)], "mlp_symmetric": [(2, 1), (2, 2), (1, 2)]}[reduce]
    shapes = [
        shape
        for rows, columns in layers
        for shape in ((rows * width, columns * width), (rows * width,))
    ]
    return [0.5 * draw(groups, *shape, seed=20 + i) for i, shape in enumerate(shapes)]


def topk(queries=6, keys=9, k=3, **options):
    return (draw(2, 4, queries, 6), draw(2, 2, keys, 6, seed=1), k), options


def indexer_loss(order=1, k=0, weighted=False, gradients=False, length=6, **options):
    inputs = draw(2, 4, length, 4), draw(2, 2, length, 4, seed=1)
    keys = [draw(2, 2, length, 6, seed=4 + m) for m in range(order)]
    layer = draw(2, 4, length, 6, seed=3), keys
    if k:
        chooser = draw(2, 1, length, 4, seed=9), draw(2, 1, length, 4, seed=10)
        options["indices"] = operators.topk_keys(*chooser, k, causal=options.get("causal", False))[
            0
        ]
        options["indices"][0, -1, 1:] = -1
    if weighted:
        options["weights"] = draw(2, 4, length, seed=2).abs()
    if gradients:
        softmax = options.get("scores") == "softmax"
        if softmax:
            query, key = inputs
            seen = dict(causal=options.get("causal", False))
            options["lse"] = operators.attention(query, [key], [key], **seen)[1]
        options["output_mask"] = [True, True, weighted, softmax]
    return (*inputs, *layer), options


def rotary(chunk, shape=None, length=4, **options):
    channels = 2 * chunk
    if shape is not None:
        planes = channels // chunk * (chunk // 2)
        options["angles"] = draw(*shape, planes, seed=1)
    return (draw(2, 3, length, channels),), {"chunk": chunk, **options}


def _attention_family():
    for name, (_, options, learned) in OPTIONS.items():
        own = options | learned
        yield f"attention, {name}", partial(attention, name)
        yield f"attention_reference, {name}", partial(attention, name)
        if "augment" in own:
            continue
        yield f"attention_weights, {name}", partial(weights, name)
        if own.get("normalizer", "softmax") == "softmax":
            yield f"face_attention, {name}", partial(attention, name)


WINDOWS = {
    "all": {},
    "causal": dict(causal=True),
    "windows": dict(causal=True, window=[2, 0, 3, 0, 1, 0]),
    "two sides": dict(window=[2, 1, -1, 2, 3, -1]),
}


def _separable_family():
    for order, (name, options) in itertools.product((1, 2, 3), WINDOWS.items()):
        own = options | ({"window": options["window"][: 2 * order]} if "window" in options else {})
        for operator in ("separable_attention", "separable_attention_reference"):
            yield f"{operator}, {name} {order}", partial(separable, order, **own)


def _sparse_family():
    patterns = "list", "product", "path"
    for operator in ("sparse_attention", "sparse_attention_reference"):
        for pattern, order in itertools.product(patterns, (1, 2, 3)):
            for form, reduce in itertools.product(("product", "determinant"), ("product", "mean")):
                own = dict(form=form, reduce=reduce, output_scale=1.3, logit_scale=0.7)
                yield (
                    f"{operator}, {pattern} {order} {form} {reduce}",
                    partial(sparse, pattern, order, **own),
                )
        for pattern in patterns:
            yield f"{operator}, {pattern} groups", partial(sparse, pattern, 2, groups=2)
            yield f"{operator}, {pattern} shared", partial(sparse, pattern, 2, entries=1)
            yield f"{operator}, {pattern} sum", partial(sparse, pattern, 2, reduce="sum")
            for order, reduce in itertools.product((1, 2, 3), ("mlp", "mlp_symmetric")):
                own = dict(reduce=reduce, reducer_weights=reducer_weights(reduce, order))
                yield (
                    f"{operator}, {pattern} {order} {reduce}",
                    partial(sparse, pattern, order, **own),
                )


def _routing_family():
    some = draw(1, 6, 9, seed=5) > -0.5
    chosen = torch.rand(2, 6, 9, generator=torch.Generator().manual_seed(4)).argsort(-1)[..., :5]
    of_heads = dict(weights=draw(2, 4, 6, seed=5).abs())
    options = {
        "plain": {},
        "softmax": dict(scores="softmax", **of_heads),
        "causal": dict(causal=True, scale=0.7, **of_heads),
        "lengths": dict(key_lengths=torch.tensor([0, 5])),
        "adjacency": dict(adjacency=some),
        "candidates": dict(candidates=chosen.masked_fill(chosen > 6, -1)),
        "more than all": dict(k=20),
    }
    for operator, (name, own) in itertools.product(
        ("topk_keys", "topk_keys_reference"), options.items()
    ):
        yield f"{operator}, {name}", partial(topk, **own)
    losses = {
        "plain": {},
        "causal": dict(order=2, causal=True, weighted=True),
        "softmax": dict(order=2, causal=True, scores="softmax", weighted=True),
        "determinant": dict(order=2, form="determinant", logit_scale=0.7, scale=1.3),
        "chosen": dict(order=2, k=3, causal=True, weighted=True),
        "chosen softmax": dict(order=1, k=3, causal=True, scores="softmax", weighted=True),
        "paths": dict(order=2, k=3, causal=True, pattern="path"),
        "paths softmax": dict(order=3, k=2, causal=True, pattern="path", scores="softmax"),
    }
    for name, own in losses.items():
        yield f"indexer_loss, {name}", partial(indexer_loss, **own)
        yield f"indexer_loss_gradients, {name}", partial(indexer_loss, gradients=True, **own)


def _small_family():
    for chunk, inverse in itertools.product((2, 3, 4), (False, True)):
        for shape in ((4,), (2, 4, 3), (1, 4, 1)):
            name = f"rotary, {chunk} {'x'.join(map(str, shape))}{' back' * inverse}"
            yield name, partial(rotary, chunk, shape, inverse=inverse)
        yield (
            f"rotary, {chunk} offset{' back' * inverse}",
            partial(rotary, chunk, offset=5, inverse=inverse),
        )
    yield "rotary, positions", partial(rotary, 3, positions=torch.tensor([3, 1, 8, 2]))
    yield (
        "rotary, positions of entries",
        partial(rotary, 3, positions=torch.tensor([[0, 1, 2, 3], [9, 3, 1, 0]]), base=100.0),
    )
    for kind, scale in itertools.product(("elu", "relu", "random"), (None, 0.5)):
        own = dict(features=6, seed=3) if kind == "random" else {}
        yield (
            f"feature_map, {kind} {scale}",
            lambda kind=kind, scale=scale, own=own: (
                (4 * draw(3, 7), kind),
                own | dict(scale=scale),
            ),
        )
    yield "random_directions, orthogonal", lambda: ((draw(3, 4), 6, 3, True), {})
    yield (
        "merge_attention, three",
        lambda: (
            ([draw(2, 3, 4, seed=s) for s in range(3)], [draw(2, 3, seed=9 + s) for s in range(3)]),
            {},
        ),
    )


def _backward(operator, make):
    """The call of a backward operator, for a gradient of the output alone. One gradient in three is
    not wanted."""
    arguments, options = make()
    out, rows = getattr(operators, operator)(*arguments, **options)
    given = (
        (*arguments, None) if operator.startswith("sparse") and len(arguments) == 4 else arguments
    )
    call = (*given, out, rows, draw(*out.shape, seed=3).to(out.dtype), None)
    if operator.startswith("separable"):
        return call, options
    wanted = [i % 3 != 1 for i in range(1 + 2 * len(arguments[1]))]
    learned = [options.get(name) is not None for name in ("mask", "sink")]
    is_dense = operator == "attention"
    floating = is_dense and learned[0] and options["mask"].is_floating_point()
    return (*call, wanted + ([floating, learned[1]] if is_dense else [])), options


def _backwards(variants):
    for name, make in variants.items():
        operator, _, options = name.partition(", ")
        learned = "mlp" in name or "bias" in name
        if operator in BACKWARDS and not learned:
            yield f"{BACKWARDS[operator]}, {options}", partial(_backward, operator, make)


BACKWARDS = {
    name: f"{name}_backward"
    for name in (
        "attention",
        "separable_attention",
        "sparse_attention",
        "sparse_attention_reference",
    )
}

VARIANTS = {
    name: make
    for family in (
        _attention_family,
        _separable_family,
        _sparse_family,
        _routing_family,
        _small_family,
        equivariant_family,
    )
    for name, make in family()
}
VARIANTS |= dict(_backwards(VARIANTS))
#: All calls of operators that belong into graphs of torch.compile.
ALL = operator_cases.CASES | VARIANTS


def _of_length(length, order=2, **options):
    sizes = dict(queries=length, lengths=[length] * order)
    return tensors(order, **sizes, **options)


def _merged(length):
    outs, lses = draw(2, 3, length, 4), draw(2, 3, length, seed=1)
    return ([*outs.split(1)], [*lses.split(1)]), {}


#: Calls of a given length. One program takes any, and long ones are cut into tasks.
SIZED = {
    "attention, causal": lambda n: (_of_length(n), dict(causal=True, window=[4, 0, 9, 0])),
    "attention, sum": lambda n: (_of_length(n), dict(window=[3, 1, 4, 2], reduce="sum")),
    "attention, lengths": lambda n: (_of_length(n, 1), dict(key_lengths=torch.tensor([3, n]))),
    "attention, augment": lambda n: (
        _of_length(n),
        dict(causal=True, window=[4, 0, 3, 0], augment=[1]),
    ),
    "separable_attention, causal": lambda n: (_of_length(n, positive=True), dict(causal=True)),
    "separable_attention, windows": lambda n: (
        _of_length(n, positive=True),
        dict(causal=True, window=[5, 0, 100, 0]),
    ),
    "sparse_attention, list": lambda n: sparse("list", 2, length=n),
    "sparse_attention, product": lambda n: sparse("product", 2, length=n),
    "sparse_attention, product 1": lambda n: sparse("product", 1, length=n, entries=1),
    "sparse_attention, path": lambda n: sparse("path", 2, length=n),
    "topk_keys, softmax": lambda n: topk(n, n + 2, scores="softmax"),
    "topk_keys, causal": lambda n: topk(n, n, causal=True),
    "topk_keys, adjacency": lambda n: topk(n, n, adjacency=draw(1, n, n, seed=5) > -0.5),
    "indexer_loss, softmax": lambda n: indexer_loss(scores="softmax", causal=True, length=n),
    "equivariant_linear, nodes": lambda n: (
        linear(2, 2, n)[0],
        dict(input_order=2, output_order=2),
    ),
    "rotary, offset": lambda n: ((draw(2, 3, n, 66),), dict(chunk=3, offset=7)),
    "rotary, angles": lambda n: rotary(3, (n,), length=n),
    "merge_attention, two": _merged,
    "feature_map, elu": lambda n: ((draw(2, n, 8), "elu"), {}),
    "feature_map, random": lambda n: ((draw(2, n, 8), "random"), dict(features=12, seed=3)),
}
