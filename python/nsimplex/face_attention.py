"""Attention with one softmax per face."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, overload

from torch import Tensor
from typing_extensions import Unpack

from ._arguments import checked
from ._layout import Layout
from ._library import operators
from ._options import AttentionOptions, computed_by
from .attention import attention

__all__ = ["face_attention"]


@overload
def face_attention(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    *,
    return_lse: Literal[False] = ...,
    layout: Layout = ...,
    **options: Unpack[AttentionOptions],
) -> Tensor: ...


@overload
def face_attention(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    *,
    return_lse: Literal[True],
    layout: Layout = ...,
    **options: Unpack[AttentionOptions],
) -> tuple[Tensor, Tensor]: ...


@checked(options_of=attention, by=computed_by(operators.face_attention, "face_attention"))
def face_attention(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    *,
    return_lse: bool = False,
    layout: Layout = "bhtd",
    **options: Unpack[AttentionOptions],
) -> Tensor | tuple[Tensor, Tensor]:
    r"""Attention with one softmax per face. A face is the set of tuples that share a query and
    their first N-1 keys.

    .. math::
        A_{iJ} &= \mathrm{softmax}_{j_N}(e_{iJ}) \quad\text{for every face } (i, j_1, \dots,
        j_{N-1}) \\ o_i &= \frac{s_2}{F_i} \sum_J A_{iJ}\; \mathrm{reduce}(v^{(1)}_{j_1}, \dots,
        v^{(N)}_{j_N})

    Here :math:`F_i` is the number of faces of query i that have an admissible :math:`j_N`. N = 1 is
    :func:`nsimplex.attention`.

    Args:
        query, keys, values, layout, options: as in :func:`nsimplex.attention`, with
            ``normalizer="softmax"`` and without ``augment``.
        return_lse: return (out, lse).

    Returns:
        out [B, Hq, Tq, Dv] in the query's dtype and memory order; lse [B, Hq, Tq, T_1, ..,
        T_{N-1}]. A face without an admissible tuple has lse = -inf and is excluded from the mean. A
        query without any admissible tuple has out = 0. Both are differentiable, any number of
        times, and work under ``torch.compile`` with static shapes.

    Raises:
        ValueError: another normaliser, augment, or an argument that attention refuses.

    Complexity: 2 (D + Dv) flops for every query, head and admissible tuple, in plain tensor
        operations. If gradients are recorded, the tuples are kept in memory.
    """
    raise NotImplementedError  # computed by what the decorator names
