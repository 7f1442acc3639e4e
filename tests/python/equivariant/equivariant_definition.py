"""Equivariant layers by their definition: every pair (i, j) of tuples, one at a time."""

import itertools

import torch

from nsimplex import TensorKind, equivariant_classes


def draw(*shape, seed=0, dtype=torch.float64):
    return torch.randn(
        *shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    ).to(dtype)


def pattern(values):
    """The equality pattern of a sequence: numbers of its values in the order they appear."""
    numbers = {}
    return tuple(numbers.setdefault(value, len(numbers)) for value in values)


def as_kind(kind):
    return kind if isinstance(kind, TensorKind) else TensorKind(kind)


def orders_of(kind, tuple_):
    """All tuples that a stored one stands for."""
    return (
        sorted(set(itertools.permutations(tuple_))) if kind.symmetry == "undirected" else [tuple_]
    )


def stored(kind, nodes):
    """The tuples that a complete tensor of this kind holds, in lexicographic order."""
    keep = {
        "ordered": lambda t: True,
        "loop_free": lambda t: len(set(t)) == len(t),
        "undirected": lambda t: list(t) == sorted(t) and (kind.loops or len(set(t)) == len(t)),
    }[kind.symmetry]
    return [t for t in itertools.product(range(nodes), repeat=kind.order) if keep(t)]


def class_numbers(classes):
    return {member: number for number, each in enumerate(classes) for member in each.members}


def sparse_definition(
    x, input_tuples, output_tuples, weight, bias, input, output, classes="all", pooling="mean"
):
    """x [m, C] of the stored input tuples -> [m', D] of the stored output tuples of one graph."""
    input, output = as_kind(input), as_kind(output)
    numbers = class_numbers(equivariant_classes(input, output, classes))
    bias_numbers = class_numbers(equivariant_classes(0, output))
    rows = []
    for j in output_tuples:
        sums, counts = torch.zeros(weight.size(0), x.size(1), dtype=x.dtype), [0] * weight.size(0)
        for row, i in enumerate(input_tuples):
            for each in orders_of(input, i):
                number = numbers.get(pattern((*each, *j)))
                if number is not None:
                    sums[number] = sums[number] + x[row]
                    counts[number] += 1
        if pooling == "mean":
            sums = sums / torch.tensor([max(c, 1) for c in counts], dtype=x.dtype)[:, None]
        row = torch.einsum("ci,cio->o", sums, weight)
        rows.append(row if bias is None else row + bias[bias_numbers[pattern(j)]])
    return torch.stack(rows) if rows else x.new_zeros(0, weight.size(2))


def dense_definition(x, weight, bias, input, output, classes="all", pooling="mean", nodes=None):
    """The same on one dense tensor [n, .., n, C]; entries that do not exist are 0."""
    input, output = as_kind(input), as_kind(output)
    nodes = x.size(0) if input.order else nodes
    input_tuples, output_tuples = stored(input, nodes), stored(output, nodes)
    features = (
        torch.stack([x[i] for i in input_tuples]) if input_tuples else x.new_zeros(0, x.size(-1))
    )
    rows = sparse_definition(
        features, input_tuples, output_tuples, weight, bias, input, output, classes, pooling
    )
    y = x.new_zeros(*[nodes] * output.order, weight.size(2))
    for j, row in zip(output_tuples, rows):
        for each in orders_of(output, j):
            y[each] = row
    return y


def symmetrized(x, order):
    """The mean of x [B, n, .., n, C] over all orders of its axes of nodes."""
    orders = list(itertools.permutations(range(1, order + 1)))
    return sum(x.permute(0, *o, order + 1) for o in orders) / len(orders)
