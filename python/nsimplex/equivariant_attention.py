"""Attention between lists of tuples of any order: sets, graphs and hypergraphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ._arguments import checked, describe, learned_words
from ._choices import EquivariantFeatures, EquivariantForm, EquivariantKeys
from ._hints import is_learned
from ._library import operators
from ._packed_plans import as_autocast, pack, unpack
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
    "equivariant_attention_coefficients",
    "equivariant_attention_plan",
    "orthogonal_directions",
]


_VALUES = 16  # input tuples whose coefficients one call computes


@dataclass(frozen=True)
class EquivariantAttentionClass:
    """A class that attends, and the numbers of weight matrices that compute its queries and
    keys."""

    own: EquivariantClass
    query_weights: int
    key_weights: int


@checked
def equivariant_attention_classes(
    input: Kind, output: Kind, *, keys: EquivariantKeys = "paper", global_classes: bool = True
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
        rows: m and m', the rows of features of the two lists; empty if packed.
        weight_counts: the numbers of query matrices, key matrices and classes.
        tensors, parts: arguments of the operators. The last tensor is a fingerprint, by which the
            operators refuse tensors that were changed. A packed plan has two tensors and no parts.
    """

    input: TensorKind
    output: TensorKind
    form: EquivariantForm
    keys: EquivariantKeys
    global_classes: bool
    rows: tuple[int, ...]
    weight_counts: tuple[int, int, int]
    tensors: list[Tensor]
    parts: tuple[int, ...]

    @property
    def output_rows(self) -> int:
        """m'."""
        return self.rows[1] if self.rows else self.tensors[1].size(0)

    def packed(self) -> EquivariantAttentionPlan:
        """The same plan as one tensor of integers, without ``rows``. A program that was compiled or
        exported with a packed plan takes those of other lists as well."""
        if not self.rows:
            return self
        return replace(
            self, tensors=pack(self.tensors, self.parts, self.rows[1]), parts=(), rows=()
        )


@checked
def equivariant_attention_plan(
    input: TupleBatch,
    output: TupleBatch,
    *,
    form: EquivariantForm = "softmax",
    keys: EquivariantKeys = "paper",
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
        kinds[0], kinds[1], form, keys, global_classes, rows, counts, tensors, tuple(parts)
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
    form: EquivariantForm = "softmax",
    normalise: bool = True,
    directions: Tensor | None = None,
    features: EquivariantFeatures = "relu",
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
    compiling = torch.compiler.is_compiling()
    if directions is not None and not compiling and is_learned(directions):
        raise ValueError(
            "[equivariant_attention] directions: expected fixed ones, got "
            f"{learned_words(directions)}"
        )
    if not plan.rows:
        return _attend(x, weights, directions, plan.tensors, heads, form, normalise, features)
    return operators.equivariant_attention(
        x, *weights, directions, plan.tensors, plan.parts, heads, form, normalise, features
    )


@checked
def equivariant_attention_coefficients(
    x: Tensor,
    weights: EquivariantAttentionWeights,
    plan: EquivariantAttentionPlan,
    *,
    heads: int = 1,
    form: EquivariantForm = "softmax",
    normalise: bool = True,
    directions: Tensor | None = None,
    features: EquivariantFeatures = "relu",
) -> Tensor:
    """The coefficients with which :func:`equivariant_attention` sums the values, per class and
    head: s(q_j, k_i) / Z_j for the input tuples i that the class admits for j, and exactly 0 for
    all others.

    The result is linear in the values, so the operator itself is called with values that are 1 for
    one input tuple each. The coefficients are therefore those of the computation, in every form.

    Args:
        x, weights, plan, heads, form, normalise, directions, features: as in
            :func:`equivariant_attention`. ``weights.value`` and ``weights.output`` are not used.

    Returns:
        [classes, heads, m', m]. Classes are those of :func:`equivariant_attention_classes`.
        Differentiable.

    Raises:
        ValueError, TypeError: as :func:`equivariant_attention`.

    Complexity: m / 16 calls with values of 16 channels per head; memory of the result. For small
        graphs.
    """
    at = "[equivariant_attention_coefficients] "
    if x.dim() != 2 or not x.is_floating_point():
        raise ValueError(f"{at}x: expected floating [m, C], got {describe(x)}")
    if heads < 1:
        raise ValueError(f"{at}heads: expected at least 1, got {heads}")
    rows, classes = x.size(0), plan.weight_counts[2]
    parts = [x.new_zeros(classes, heads, plan.output_rows, 0)]
    for start in range(0, rows, _VALUES):
        count = min(_VALUES, rows - start)
        ones = x.new_zeros(rows, count)
        ones[start : start + count] = torch.eye(count, dtype=x.dtype, device=x.device)
        more = lambda weight, count=count: torch.nn.functional.pad(weight, (0, 0, 0, count))
        values = x.new_zeros(classes, x.size(1) + count, heads * count)
        values[:, x.size(1) :] = torch.eye(count, dtype=x.dtype, device=x.device).repeat(1, heads)
        width = heads * count
        output = torch.eye(classes * width, dtype=x.dtype, device=x.device)
        own = weights._replace(
            query=more(weights.query),
            key=more(weights.key),
            value=values,
            output=output.view(classes, width, classes * width),
        )
        found = equivariant_attention(
            torch.cat([x, ones], 1),
            own,
            plan,
            heads=heads,
            form=form,
            normalise=normalise,
            directions=directions,
            features=features,
        )
        parts.append(found.view(-1, classes, heads, count).permute(1, 2, 0, 3))
    return torch.cat(parts, -1)


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
        ValueError: dim or features below 1, or a dtype that is not floating.

    Source: Choromanski et al., arXiv 2009.14794, section 2.4.
    """
    if dtype is not None and not dtype.is_floating_point:
        raise ValueError(f"[orthogonal_directions] dtype: expected a floating dtype, got {dtype}")
    own = operators.orthogonal_directions(dim, features, generator=generator)
    return own.to(dtype or torch.get_default_dtype())


@torch.library.custom_op("nsimplex_packed::attention", mutates_args=())
def _packed_attention(
    x: Tensor,
    weights: Sequence[Tensor],
    directions: Tensor | None,
    plan: Tensor,
    rows: Tensor,
    heads: int,
    form: str,
    normalise: bool,
    features: str,
) -> Tensor:
    return operators.equivariant_attention(
        x, *weights, directions, *unpack(plan), heads, form, normalise, features
    )


@_packed_attention.register_fake
def _(x, weights, directions, plan, rows, heads, form, normalise, features):
    return x.new_empty(rows.size(0), weights[-1].size(2))


@torch.library.custom_op("nsimplex_packed::attention_backward", mutates_args=())
def _packed_attention_backward(
    grad: Tensor,
    x: Tensor,
    weights: Sequence[Tensor],
    directions: Tensor | None,
    plan: Tensor,
    heads: int,
    form: str,
    normalise: bool,
    features: str,
) -> list[Tensor]:
    return list(
        operators.equivariant_attention_backward(
            grad, x, *weights, directions, *unpack(plan), heads, form, normalise, features
        )
    )


@_packed_attention_backward.register_fake
def _(grad, x, weights, directions, plan, heads, form, normalise, features):
    return [torch.empty_like(each) for each in (x, *weights)]


def _keep_packed_attention(ctx, inputs, output) -> None:
    x, weights, directions, plan, _, *ctx.options = inputs
    ctx.save_for_backward(x, *weights, *([] if directions is None else [directions]), plan)
    ctx.count = len(weights)


def _differentiate_packed_attention(ctx, grad):
    x, *rest = ctx.saved_tensors
    weights, plan = rest[: ctx.count], rest[-1]
    directions = rest[ctx.count] if len(rest) > ctx.count + 1 else None
    own = _packed_attention_backward(grad, x, weights, directions, plan, *ctx.options)
    return own[0], own[1:], None, None, None, None, None, None, None


_packed_attention.register_autograd(
    _differentiate_packed_attention, setup_context=_keep_packed_attention
)


def _attend(
    x: Tensor,
    weights: Sequence[Tensor],
    directions: Tensor | None,
    plan: Sequence[Tensor],
    heads: int,
    form: str,
    normalise: bool,
    features: str,
) -> Tensor:
    """``operators.equivariant_attention`` with a packed plan."""
    options = heads, form, normalise, features
    if not torch.compiler.is_compiling():  # differentiable any number of times
        return operators.equivariant_attention(x, *weights, directions, *unpack(plan[0]), *options)
    cast: list[Any] = [*as_autocast(x, directions, *weights)]
    x, directions, *weights = cast
    return _packed_attention(x, weights, directions, *plan, *options)
