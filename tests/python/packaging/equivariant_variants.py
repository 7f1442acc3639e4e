"""The options of the equivariant operators: a part of the table of operator_variants."""

from __future__ import annotations

import itertools
from functools import partial

import torch
from equivariant_definition import as_kind
from equivariant_lists import KINDS, batch, some_of
from operator_cases import draw

import nsimplex


def linear(k, l, nodes=3, kind="ordered", **options):
    """An equivariant layer of whole tensors; symmetric ones are made so."""
    input, output = KINDS[kind](k), KINDS[kind](l)
    x = draw(2, *[nodes] * k, 2, seed=1)
    if input.symmetry == "undirected" and k == 2:
        x = x + x.transpose(1, 2)
    weight = draw(len(nsimplex.equivariant_classes(input, output)), 2, 3, seed=2)
    bias = draw(len(nsimplex.equivariant_classes(0, output)), 3, seed=3)
    words = {
        f"{side}_{word}": value
        for side, own in (("input", input), ("output", output))
        for word, value in (("order", own.order), ("symmetry", own.symmetry), ("loops", own.loops))
    }
    return (x, weight, bias), words | {"nodes": nodes} | options


def lists(k, l, kind="ordered", nodes=(3, 2), share=0.7):
    """Some tuples of several graphs, for input and output."""
    return [
        batch(
            KINDS[kind](order),
            [some_of(KINDS[kind](order), n, share, seed=n) for n in nodes],
            list(nodes),
        )
        for order in (k, l)
    ]


def plan(k, l, kind="ordered", make=nsimplex.equivariant_plan, **options):
    loops = kind != "undirected_loop_free"
    return make(*lists(k, l, kind), input_loops=loops, output_loops=loops, **options)


def linear_sparse(k, l, kind="ordered", pooling="mean", biased=True, backward=False):
    own = plan(k, l, kind)
    input, output = KINDS[kind](k), KINDS[kind](l)
    weight = draw(len(nsimplex.equivariant_classes(input, output)), 2, 3, seed=2)
    bias = draw(len(nsimplex.equivariant_classes(0, output)), 3, seed=3) if biased else None
    call = (draw(own.rows[0], 2, seed=1), weight, bias, own.tensors, own.parts, pooling)
    if backward:
        call = (draw(own.rows[1], 3, seed=4), *call, [True, True, biased])
    return call, {}


def sums(k, l, kind="ordered", mean=True, backward=False):
    own = plan(k, l, kind)
    rows = own.tensors[5].numel() if backward else own.rows[0]
    return (draw(rows, 2, seed=1), own.tensors, own.parts, mean), {}


def equivariant_attention(k, l, form="softmax", features="relu", normalise=True, dim=2):
    own = plan(k, l, make=nsimplex.equivariant_attention_plan, form="kernel")
    classes = nsimplex.equivariant_attention_classes(as_kind(k), as_kind(l))
    count = len(classes)
    given = (
        draw(own.rows[0], 3, seed=1),
        0.3 * draw(sum(c.query_weights for c in classes), 3, 2 * dim, seed=2),
        draw(count, 2 * dim, seed=3),
        0.3 * draw(sum(c.key_weights for c in classes), 3, 2 * dim, seed=4),
        draw(count, 2 * dim, seed=5),
        draw(count, 3, 2, seed=6),
        draw(count, 2, 2, seed=7),
        draw(dim, 5, seed=8),
    )
    return (*given, own.tensors, own.parts, 2, form, normalise, features), {}


def equivariant_family():
    for (k, l), pooling in itertools.product(
        ((1, 1), (0, 2), (2, 0), (1, 2), (2, 1), (2, 2), (3, 0)), ("sum", "mean")
    ):
        yield f"equivariant_linear, {k}{l} {pooling}", partial(linear, k, l, pooling=pooling)
    for kind in KINDS:
        yield (
            f"equivariant_linear, {kind}",
            partial(linear, 2, 2, kind=kind, node_counts=torch.tensor([3, 2])),
        )
    orders = (1, 1), (2, 2), (3, 2), (1, 3), (2, 0), (0, 2)
    for (k, l), kind, mean in itertools.product(orders, KINDS, (True, False)):
        name = f"{k}{l} {kind} {'mean' if mean else 'sum'}"
        for back in (False, True):
            suffix = "_backward" * back
            yield f"equivariant_sums{suffix}, {name}", partial(sums, k, l, kind, mean, back)
            own = dict(pooling="mean" if mean else "sum", biased=(k + l) % 2 == 0, backward=back)
            yield (
                f"equivariant_linear_sparse{suffix}, {name}",
                partial(linear_sparse, k, l, kind, **own),
            )
    more = (0, 0), (0, 1), (1, 0), (1, 2), (2, 1), (0, 3), (3, 0), (3, 1), (0, 4), (4, 0)
    for (k, l), pooling in itertools.product(more, ("mean", "sum")):
        yield (
            f"equivariant_linear_sparse, {k}{l} {pooling}",
            partial(linear_sparse, k, l, pooling=pooling),
        )
    forms = {
        "softmax": dict(form="softmax"),
        "kernel": dict(form="kernel"),
        "sums": dict(form="kernel", normalise=False),
        "decoupled": dict(form="decoupled"),
        "exponential": dict(form="kernel", features="exponential"),
        "exponential sums": dict(form="kernel", features="exponential", normalise=False),
    }
    for (k, l), (name, own) in itertools.product(
        ((1, 1), (2, 1), (2, 2), (1, 2), (2, 0), (3, 1)), forms.items()
    ):
        for operator in ("equivariant_attention", "equivariant_attention_reference"):
            yield f"{operator}, {k}{l} {name}", partial(equivariant_attention, k, l, **own)
