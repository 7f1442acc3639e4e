"""Weights of tuples, and their sums over axes or queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from typing_extensions import Unpack

from ._arguments import checked
from ._layout import Layout, heads_first
from ._library import operators
from ._options import AttentionOptions, operator_options
from .attention import attention

__all__ = ["attention_marginals", "attention_received", "attention_weights"]


@checked(options_of=attention)
def attention_weights(
    query: Tensor,
    keys: Sequence[Tensor],
    *,
    layout: Layout = "bhtd",
    **options: Unpack[AttentionOptions],
) -> Tensor:
    r"""The weight of every tuple, for small problems.

    Args:
        query: [B, Hq, Tq, D].
        keys: N tensors [B, Hk, T_m, D].
        layout: of query and keys, as in :func:`nsimplex.attention`.
        options: those of :func:`nsimplex.attention` except ``augment``. ``reduce`` and the output
            scale do not affect the weights.

    Returns:
        [B, Hq, Tq, T_1, .., T_N], float32, or float64 for float64 inputs. An inadmissible tuple has
        weight 0. Dropout is already applied. The weights are differentiable, any number of times,
        and work under ``torch.compile`` with static shapes.

    Raises:
        ValueError: more than 2^26 weights (256 MiB in float32), augment, or an argument that
            attention refuses.

    Complexity: that of attention with Dv = D, and a few times the memory of the result.

    Example:
        >>> q, k1, k2 = torch.randn(3, 1, 2, 5, 4)
        >>> weights = attention_weights(q, [k1, k2], causal=True)
        >>> weights.shape, bool(weights.sum((3, 4)).allclose(torch.ones(1, 2, 5)))
        (torch.Size([1, 2, 5, 5, 5]), True)
    """
    query, keys = heads_first("attention_weights", layout, query, keys)
    return operators.attention_weights(
        query, keys, **operator_options(query, keys, keys, **options)
    )


@checked(options_of=attention)
def attention_marginals(
    query: Tensor,
    keys: Sequence[Tensor],
    *,
    axis: int,
    layout: Layout = "bhtd",
    **options: Unpack[AttentionOptions],
) -> Tensor:
    """The weight that a query puts on each key of one axis, summed over the other axes.

    The function calls attention with ``reduce="sum"``, with unit vectors as the values of that axis
    and zeros as the values of the others. No tuple is stored. All options and derivatives of the
    operator apply.

    Args:
        query, keys: as in :func:`nsimplex.attention`.
        axis: index into ``keys``.
        layout: of query and keys, as in :func:`nsimplex.attention`.
        options: those of :func:`nsimplex.attention`. ``reduce`` and the output scale do not affect
            the result.

    Returns:
        [B, Hq, Tq, T_axis] in the query's dtype.

    Complexity: one forward with Dv = T_axis.
    """
    query, keys = heads_first("attention_marginals", layout, query, keys)
    width = _key(keys, axis, "attention_marginals").size(2)
    if width == 0:
        return query.new_zeros((*query.shape[:3], 0))
    rows = [query.new_zeros(1, width).expand(*key.shape[:3], width) for key in keys]
    rows[axis] = torch.eye(width, dtype=query.dtype, device=query.device).expand(
        *keys[axis].shape[:3], width
    )
    return operators.attention(query, keys, rows, **_summing(query, keys, rows, options))[0]


@checked(options_of=attention)
def attention_received(
    query: Tensor,
    keys: Sequence[Tensor],
    *,
    axis: int,
    layout: Layout = "bhtd",
    **options: Unpack[AttentionOptions],
) -> Tensor:
    """The weight that each key of one axis receives, from all queries and the heads of its group.

    The function computes the gradient of that axis's values in attention with ``reduce="sum"`` and
    Dv = 1, so memory is O(T).

    Args:
        query, keys, axis, layout, options: as in :func:`attention_marginals`.

    Returns:
        [B, Hk, T_axis] in the query's dtype. It is differentiable; its derivatives run the
        reference.

    Complexity: one forward and one backward with Dv = 1.
    """
    query, keys = heads_first("attention_received", layout, query, keys)
    _key(keys, axis, "attention_received")
    zeros = [query.new_zeros(1).expand(*key.shape[:3], 1) for key in keys]
    flat = _summing(query, keys, zeros, options)
    out, lse = operators.attention(query, keys, zeros, **flat)
    # The backward pass needs the dtype of the forward pass, which autocast may have narrowed.
    query, keys, zeros = (
        query.to(out.dtype),
        [k.to(out.dtype) for k in keys],
        [z.to(out.dtype) for z in zeros],
    )
    wanted = [i == 1 + len(keys) + axis for i in range(3 + 2 * len(keys))]
    gradients = operators.attention_backward(
        query, keys, zeros, out, lse, torch.ones_like(out), None, wanted, **flat
    )
    return gradients[2][axis].squeeze(-1)


def _key(keys: Sequence[Tensor], axis: int, function: str) -> Tensor:
    if not 0 <= axis < len(keys):
        raise ValueError(f"[{function}] axis: expected 0 to {len(keys) - 1}, got {axis}")
    for place, key in enumerate(keys):
        if key.dim() != 4:
            raise ValueError(
                f"[{function}] keys[{place}]: expected 4 dimensions [batch, heads, length, "
                "channels], got shape "
                f"{list(key.shape)}"
            )
    return keys[axis]


def _summing(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], options: AttentionOptions
) -> dict[str, Any]:
    """Operator options for a sum of one-hot or unit values, whose output contains only weights."""
    summed: Any = options | {"reduce": "sum"}
    flat = operator_options(query, keys, values, **summed)
    return flat | {"output_scale": 1.0}
