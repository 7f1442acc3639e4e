"""Attention between lists of tuples by its definition: every pair (i, j), class by class, head by
head."""

import math

import torch
from equivariant_definition import as_kind, draw, orders_of, pattern

from nsimplex import (
    EquivariantAttentionWeights,
    TensorKind,
    equivariant_attention_classes,
    equivariant_classes,
)


def attention_weights(
    input,
    output,
    channels=3,
    heads=2,
    dim=2,
    value_dim=3,
    out=2,
    dtype=torch.float64,
    scale=1.0,
    **options,
):
    classes = equivariant_attention_classes(input, output, **options)
    count = len(classes)
    return EquivariantAttentionWeights(
        scale
        * draw(sum(c.query_weights for c in classes), channels, heads * dim, seed=1, dtype=dtype),
        scale * draw(count, heads * dim, seed=2, dtype=dtype),
        scale
        * draw(sum(c.key_weights for c in classes), channels, heads * dim, seed=3, dtype=dtype),
        scale * draw(count, heads * dim, seed=4, dtype=dtype),
        draw(count, channels, heads * value_dim, seed=5, dtype=dtype),
        draw(count, heads * value_dim, out, seed=6, dtype=dtype),
    )


def blocks_of(values):
    """The distinct entries of a tuple, in the order they appear."""
    return tuple(dict.fromkeys(values))


class Maps:
    """Light sums to one tuple of u distinct nodes, and the weights they share."""

    def __init__(self, features, input, kinds, first_kinds, allowed=lambda mapped, kinds: True):
        """kinds: of every block a number; blocks of one number may be exchanged. first_kinds: of
        the class's first member, whose maps number the weights as they come."""
        self.features, self.input = features, input
        known = {}
        for mapped in self.light(len(kinds)):
            if allowed(mapped, first_kinds):
                known.setdefault(self.signature(mapped, first_kinds), len(known))
        self.maps = [mapped for mapped in self.light(len(kinds)) if allowed(mapped, kinds)]
        self.numbers = [known[self.signature(mapped, kinds)] for mapped in self.maps]
        self.count = len(known)

    def light(self, count):
        """Of every light class the block that each position is filled with."""
        k = self.input.order
        for each in equivariant_classes(self.input, TensorKind(count, "loop_free"), "light"):
            member = each.members[0]
            yield tuple(member[k:].index(b) for b in member[:k])

    def signature(self, mapped, kinds):
        filled = [
            tuple(p for p, b in enumerate(mapped) if b == block) for block in range(len(kinds))
        ]
        if self.input.symmetry == "undirected":
            filled = [len(positions) for positions in filled]
        return tuple(sorted(zip(kinds, filled)))

    def apply(self, nodes, weight, bias):
        total = bias
        for mapped, number in zip(self.maps, self.numbers):
            row = self.features.get(tuple(nodes[b] for b in mapped))
            if row is not None:
                total = total + row @ weight[number]
        return total


def attention_definition(
    x,
    input_tuples,
    output_tuples,
    weights,
    input,
    output,
    *,
    heads=2,
    form="softmax",
    normalise=True,
    phi=None,
    **options,
):
    """x [m, C] of the stored input tuples of one graph -> [m', D]."""
    input, output = as_kind(input), as_kind(output)
    features, ordered = {}, []
    for row, i in zip(x, input_tuples):
        for each in orders_of(input, i):
            features[each] = row
            ordered.append(each)
    rows = [x.new_zeros(weights.output.size(2)) for _ in output_tuples]
    first_query = first_key = 0
    for number, attention_class in enumerate(
        equivariant_attention_classes(input, output, **options)
    ):
        members = attention_class.own.members
        query = weights.query[first_query : first_query + attention_class.query_weights]
        key = weights.key[first_key : first_key + attention_class.key_weights]
        first_query += attention_class.query_weights
        first_key += attention_class.key_weights
        for place, j in enumerate(output_tuples):
            pairs = [i for i in ordered if pattern((*i, *j)) in members]
            loose = pairs
            if form == "decoupled":
                loose = [i for i in ordered if any(shares(m, i, j, input.order) for m in members)]
            out = []
            for i in loose:
                out.append(
                    (
                        i,
                        *query_and_key(
                            features,
                            input,
                            output,
                            i,
                            j,
                            number,
                            query,
                            key,
                            weights,
                            members,
                            options,
                        ),
                    )
                )
            rows[place] = rows[place] + class_output(
                out, features, number, weights, heads, form, normalise, phi
            )
    return torch.stack(rows) if rows else x.new_zeros(0, weights.output.size(2))


def shares(member, i, j, order):
    """Whether i and j have the patterns of a class and share at least the nodes that it says."""
    if pattern(i) != pattern(member[:order]) or pattern(j) != pattern(member[order:]):
        return False
    return all(
        i[a] == j[b] for a in range(order) for b in range(len(j)) if member[a] == member[order + b]
    )


def sizes(values):
    return [values.count(each) for each in blocks_of(values)]


def block_kinds(member, input, output):
    """Of the queries' and of the keys' blocks, and which of the latter are shared, by a class's
    member."""
    i, j = member[: input.order], member[input.order :]
    shared = [block in j for block in blocks_of(i)]
    query_kinds = sizes(j) if output.symmetry == "undirected" else list(range(len(set(j))))
    key_kinds = list(range(len(shared)))
    if input.symmetry == "undirected":
        key_kinds = list(zip(sizes(i), shared))
    return query_kinds, key_kinds, shared


def query_and_key(features, input, output, i, j, number, query, key, weights, members, options):
    # What a class shares, by its pattern: in the decoupled form more nodes may happen to be equal.
    own = pattern((*i, *j))
    member = own if own in members else next(m for m in members if shares(m, i, j, input.order))
    query_kinds, key_kinds, shared = block_kinds(member, input, output)
    first_query, first_key, _ = block_kinds(members[0], input, output)
    node_keys = options.get("keys") == "node" and any(shared)

    def allowed(mapped, kinds):
        return not node_keys or (len(set(mapped)) == 1 and not shared[mapped[0]])

    queries = Maps(features, input, query_kinds, first_query)
    keys = Maps(features, input, key_kinds, first_key, allowed)
    assert queries.count == len(query) and keys.count == len(key)
    return (
        queries.apply(blocks_of(j), query, weights.query_bias[number]),
        keys.apply(blocks_of(i), key, weights.key_bias[number]),
    )


def class_output(pairs, features, number, weights, heads, form, normalise, phi):
    if not pairs:
        return 0
    split = lambda vectors: torch.stack(vectors).unflatten(1, (heads, -1))
    queries, keys = split([q for _, q, _ in pairs]), split([k for _, _, k in pairs])
    values = split([features[i] @ weights.value[number] for i, _, _ in pairs])
    if form == "softmax":
        scores = (queries * keys).sum(-1) / math.sqrt(queries.size(-1))
        coefficients = torch.softmax(scores, 0)
    else:
        coefficients = (phi(queries) * phi(keys)).sum(-1)
        if normalise:
            coefficients = coefficients / coefficients.sum(0)
    return (coefficients[..., None] * values).sum(0).flatten() @ weights.output[number]


def relu_features(directions):
    return lambda x: torch.relu(x * x.size(-1) ** -0.25 @ directions) + 1e-3


def exponential_features(directions):
    def phi(x):
        own = x * x.size(-1) ** -0.25
        return torch.exp(own @ directions - own.square().sum(-1, keepdim=True) / 2)

    return phi
