"""What a training step of a transformer costs, said before it begins."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TypeAlias

from .equivariant_encoder import EquivariantEncoder

#: An encoder with the numbers of tuples of its input and its output, and of their pairs in a graph.
Use: TypeAlias = tuple[EquivariantEncoder, int, int, int]

_SAID_FROM = 1e11  # operations per step
_PASSES = 3  # a backward pass takes about two forward passes
_OTHER_ROWS = 4  # of one class's width: norms, the MLP and the sum of the classes


def kernel_cost(uses: Iterable[Use]) -> tuple[float, float]:
    """The most operations of the products of a training step, and about how many bytes it keeps
    for the backward pass, in float32. Encoders of the form softmax do not count.

    A class reads only the tuples that have its pattern, so that a step takes fewer operations.
    """
    operations = kept = 0.0
    for encoder, inputs, outputs, _ in uses:
        attention = encoder.attention
        if attention.features is None:
            continue
        classes, channels, width = attention.value_weight.shape
        own_product = 2 * channels * width
        projected = inputs * (classes + len(attention.key_weight))
        projected += outputs * (classes + len(attention.query_weight))
        projected += outputs * 3 * len(attention.light.weight)  # and the two layers of the MLP
        random = 4 * classes * (inputs + outputs) * width * attention.features.directions.size(1)
        operations += _PASSES * (projected * own_product + random)
        rows = classes * (2 * inputs + outputs) + _OTHER_ROWS * outputs
        kept += 4 * width * rows
    return operations, kept


def softmax_cost(uses: Iterable[Use]) -> float:
    """The operations of the products of a training step between tuples that share no node, in
    encoders of the form softmax. Every pair of tuples of a graph is in at most one class."""
    operations = 0.0
    for encoder, _, _, pairs in uses:
        attention = encoder.attention
        if attention.features is None and attention.global_classes:
            operations += _PASSES * 4 * pairs * attention.value_weight.size(2)
    return operations


def say_cost(uses: Iterable[Use], tuples: int, stacklevel: int = 4) -> None:
    """Warns of a step that takes seconds or more."""
    uses = list(uses)
    if (pairs := softmax_cost(uses)) >= _SAID_FROM:
        warnings.warn(
            f"[GraphTransformer] data: softmax attention between all {tuples:,} tuples takes at "
            f"most {pairs / 1e9:,.0f} billion operations per training step; global_classes=False "
            "leaves out tuples that share no node",
            stacklevel=stacklevel,
        )
    operations, kept = kernel_cost(uses)
    if operations >= _SAID_FROM:
        warnings.warn(
            f"[GraphTransformer] data: kernel attention over {tuples:,} tuples takes at most "
            f"{operations / 1e9:,.0f} billion operations per training step and keeps about "
            f"{kept / 1e9:.1f} GB",
            stacklevel=stacklevel,
        )
