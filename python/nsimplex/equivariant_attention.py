"""Attention between lists of tuples of any order: sets, graphs and hypergraphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ._arguments import checked
from ._library import operators
from ._pytree import TensorRecord, tensor_record
from .equivariant_classes import (
    EquivariantClass,
    Kind,
    TensorKind,
    _flat_kinds,
    equivariant_classes,
)
from .equivariant_linear import _list_kinds
from .graph import TupleBatch

__all__ = [
    "EquivariantAttentionClass",
    "EquivariantAttentionPlan",
    "EquivariantAttentionWeights",
    "equivariant_attention",
    "equivariant_attention_classes",
    "equivariant_attention_plan",
    "orthogonal_directions",
]


@dataclass(frozen=True)
class EquivariantAttentionClass:
    """A class that attends, and the numbers of weight matrices that compute its queries and
    keys."""

    own: EquivariantClass
    query_weights: int
    key_weights: int


@checked
def equivariant_attention_classes(
    input: Kind, output: Kind, *, keys: str = "paper", global_classes: bool = True
) -> list[EquivariantAttentionClass]:
    """The classes of Attn_{k->l} that attend. They are the classes of L_{k->l} that sum over the
    input: 1 of 1 -> 1, 4 of 2 -> 1, 10 of 2 -> 2. The other classes are light: a look-up and a
    learned map.

    Queries and keys of a class are light layers to tuples of u distinct nodes. They have u^k
    weights if the input is ordered (Proposition 1 of the paper).

    Args:
        input, output: kinds, or orders of ordered tensors.
        keys: "paper": keys see all input tuples over their nodes; "node": if query and key share a
            node, keys see only the tuples (n, .., n) of the key's other nodes.
        global_classes: whether to include the classes that sum over keys without sharing a node
            with them.

    Raises:
        ValueError: orders or names that do not fit.
    """
    numbers, query_weights, key_weights = operators.equivariant_attention_classes(
        **_flat_kinds(input, output), keys=keys, global_classes=global_classes
    )
    every = equivariant_classes(input, output)
    return [
        EquivariantAttentionClass(every[number], *weights)
        for number, *weights in zip(numbers.tolist(), query_weights, key_weights)
    ]


@tensor_record("tensors")
@dataclass(frozen=True)
class EquivariantAttentionPlan(TensorRecord):
    """The input tuples to which each output tuple attends in each class; see
    :func:`equivariant_attention_plan`.

    A plan is a pytree: compiled and exported programs take one as an argument.

    Attributes:
        input, output: kinds of the two lists.
        form: "softmax", or "kernel", which supports all forms.
        keys, global_classes: the options that determine the classes and weights.
        rows: m and m', the rows of features of the two lists.
        weight_counts: the numbers of query matrices, key matrices and classes.
        tensors, parts: arguments of the operators. The last tensor is a fingerprint, by which the
            operators refuse tensors that were changed.
    """

    input: TensorKind
    output: TensorKind
    form: str
    keys: str
    global_classes: bool
    rows: tuple[int, int]
    weight_counts: tuple[int, int, int]
    tensors: list[Tensor]
    parts: tuple[int, ...]


@checked
def equivariant_attention_plan(
    input: TupleBatch,
    output: TupleBatch,
    *,
    form: str = "softmax",
    keys: str = "paper",
    global_classes: bool = True,
    input_loops: bool = True,
    output_loops: bool = True,
) -> EquivariantAttentionPlan:
    """The plan of attention from features of one list of tuples to features of another list over
    the same nodes.

    Compute it once per pair of lists, on the CPU. Every layer between the two lists uses it in
    every step.

    Args:
        input, output: lists of tuples.
        form: "softmax"; or "kernel", whose plan supports all forms.
        keys, global_classes: as in :func:`equivariant_attention_classes`.
        input_loops, output_loops: of undirected lists, whether they contain hyperedges that name a
            node twice.

    Raises:
        ValueError: lists over different nodes, a repeated node that the symmetry or
            ``input_loops`` and ``output_loops`` exclude, orders beyond those of
            :func:`equivariant_classes`.

    Complexity: O(C (m + m')) time and memory for the look-ups of all classes, with radix sorts and
        merges.
    """
    kinds, options = _list_kinds(
        "equivariant_attention_plan", input, output, input_loops, output_loops
    )
    tensors, parts = operators.equivariant_attention_plan(
        input.tuples,
        input.tuple_offsets,
        output.tuples,
        output.tuple_offsets,
        input.node_offsets,
        **options,
        form=form,
        keys=keys,
        global_classes=global_classes,
    )
    classes = equivariant_attention_classes(*kinds, keys=keys, global_classes=global_classes)
    counts = (
        sum(c.query_weights for c in classes),
        sum(c.key_weights for c in classes),
        len(classes),
    )
    rows = input.tuples.size(0), output.tuples.size(0)
    return EquivariantAttentionPlan(
        *kinds, form, keys, global_classes, rows, counts, tensors, tuple(parts)
    )


class EquivariantAttentionWeights(NamedTuple):
    """Weights of attention from C to D channels. There are H heads, with d channels in queries and
    keys and e in values. The classes are those of :func:`equivariant_attention_classes`, in the
    same order."""

    query: Tensor  #: [sum of query_weights, C, H d]
    query_bias: Tensor  #: [classes, H d]
    key: Tensor  #: [sum of key_weights, C, H d]
    key_bias: Tensor  #: [classes, H d]
    value: Tensor  #: [classes, C, H e]
    output: Tensor  #: [classes, H e, D]


@checked
def equivariant_attention(
    x: Tensor,
    weights: EquivariantAttentionWeights,
    plan: EquivariantAttentionPlan,
    *,
    heads: int = 1,
    form: str = "softmax",
    normalise: bool = True,
    directions: Tensor | None = None,
    features: str = "relu",
) -> Tensor:
    """The classes of Attn_{k->l} that sum over the input, on lists of tuples. For every output
    tuple j

        y_j = sum_h sum_mu  sum_{i: (i, j) in mu} s(q_j, k_i) / Z_j  x_i w^V_{h,mu} w^O_{h,mu}

    With ``normalise``, Z_j is the sum of s; otherwise it is 1. A class without an admissible key
    contributes exactly 0, with gradient 0. With ``normalise`` and constant features the layer
    cannot see the number of keys: provide degrees as features.

    Args:
        x: [m, C] in the order of the input list, floating.
        weights: see :class:`EquivariantAttentionWeights`.
        plan: plan of the two lists.
        heads: H.
        form: s(q, k). "softmax": exp(q . k / sqrt(d)). "kernel": phi(q) . phi(k), exactly over the
            keys of the class, in linear time. "decoupled": the same as "kernel", but the keys may
            share nodes with the query that the class does not allow. This is the paper's
            approximation.
        normalise: divide by Z_j; "softmax" always does.
        directions: W [d, features] of phi, fixed; see :func:`orthogonal_directions`.
        features: phi as a function of x' = x / d^(1/4). "relu": relu(x' W) + 1e-3; "exponential":
            exp(x' W - |x'|^2 / 2) + 1e-30 (in float64 1e-200), positive random features of the
            softmax. With ``normalise`` the largest exponent of each query is subtracted from its
            exponents. The largest exponent among all keys of a graph and head is subtracted from
            theirs. The normaliser cancels both.

    Returns:
        [m', D] in the order of the output list, differentiable any number of times. The backward
        pass computes queries, keys and values again, so only x and the weights are kept.

    Raises:
        ValueError, TypeError: an argument that does not fit, in one line.

    Complexity: softmax visits every pair once and keeps O(rows). The kernel form takes
        O(features e) for each look-up of every tuple. Sums over a class are differences of sums
        over groups of tuples that agree on some nodes, computed in float64. Groups of at most 32
        keys are visited pair by pair. The bits do not depend on the number of threads.

    Sources: Kim, Oh and Hong, arXiv 2110.14416, equations 10, 13 and 16; Choromanski et al., arXiv
        2009.14794.
    """
    for name, count in zip(("query", "key", "value"), plan.weight_counts):
        own = getattr(weights, name)
        got = own.size(0) if own.dim() else "a number"
        if got != count:
            raise ValueError(
                f"[equivariant_attention] {name}: expected {count} matrices for the plan's "
                f"classes, got {got}"
            )
    return operators.equivariant_attention(
        x, *weights, directions, plan.tensors, plan.parts, heads, form, normalise, features
    )


@checked
def orthogonal_directions(
    dim: int,
    features: int,
    *,
    generator: torch.Generator | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Random directions W [dim, features], orthogonal in blocks of ``dim``. They are columns of
    random orthogonal matrices, and each has the length of a normal vector.

    Raises:
        ValueError: dim or features below 1.

    Source: Choromanski et al., arXiv 2009.14794, section 2.4.
    """
    own = operators.orthogonal_directions(dim, features, generator=generator)
    return own.to(dtype or torch.get_default_dtype())
