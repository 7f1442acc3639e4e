"""Selection of the tuples that attention computes: scores of pairs, the k best keys of each query,
and the loss that trains an indexer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

import torch
from torch import Tensor
from typing_extensions import Unpack

from ._arguments import checked
from ._choices import Form, Scores, SetPattern
from ._layout import Layout, heads_first
from ._library import operators
from ._options import SelectionOptions, TupleOptions, operator_options
from .attention import attention
from .tuples import neighbours

__all__ = [
    "indexer_loss",
    "retained_mass",
    "topk_keys",
    "topk_keys_reference",
    "topk_tuples",
]


@overload
def topk_keys(
    query: Tensor,
    key: Tensor,
    k: int,
    *,
    return_scores: Literal[False] = ...,
    layout: Layout = ...,
    **options: Unpack[SelectionOptions],
) -> Tensor: ...


@overload
def topk_keys(
    query: Tensor,
    key: Tensor,
    k: int,
    *,
    return_scores: Literal[True],
    layout: Layout = ...,
    **options: Unpack[SelectionOptions],
) -> tuple[Tensor, Tensor]: ...


@checked
def topk_keys(
    query: Tensor,
    key: Tensor,
    k: int,
    *,
    weights: Tensor | None = None,
    scores: Scores = "relu",
    causal: bool = False,
    scale: float | None = None,
    lse: Tensor | None = None,
    key_lengths: Tensor | None = None,
    adjacency: Tensor | None = None,
    candidates: Tensor | None = None,
    return_scores: bool = False,
    layout: Layout = "bhtd",
) -> Tensor | tuple[Tensor, Tensor]:
    r"""The k best keys of every query, by pair scores summed over heads.

    .. math::
        \mathrm{logit}_{hij} &= \mathrm{scale}\, \langle q_{hi}, k_j \rangle \\
        s_{ij} &= \sum_h w_{hi}\, \mathrm{act}(\mathrm{logit}_{hij}), \qquad
            I_i = \mathrm{TopK}_j\, s_{ij} \text{ over the admissible } j

    With a separate query and key of few channels and one key head, this is the indexer of DeepSeek
    Sparse Attention. With q, k1 and lse of the previous layer, it is the variant that needs no
    additional parameters.

    Args:
        query: [B, H, Tq, D], float32, float64, bfloat16 or float16.
        key: [B, Hk, T, D], H a multiple of Hk.
        k: at least 1. More than T is allowed.
        weights: w [B, H, Tq]; None: ones.
        scores: act: "relu", max(x, 0); or "softmax", exp(x - lse), over the admissible keys.
        causal: query i sees j <= i + (T - Tq). Queries and keys are aligned at their ends.
        scale: None: D^-1/2.
        lse: [B, H, Tq], for "softmax" only; None: computed by one more pass over the keys.
        key_lengths: int64 or int32 [B]: keys at and beyond the length are not admissible. With
            ``causal`` this needs T = Tq, as in :func:`nsimplex.attention`.
        adjacency: the admissible pairs: bool [Tq, T] or [1 or B, Tq, T]; or a sparse CSR tensor
            [Tq, T]. Only the stored pairs of a CSR tensor are scored, and its values are ignored.
        candidates: instead of ``adjacency`` a table int64 [1 or B, Tq, n] of admissible keys. Only
            these are scored. -1 marks an empty entry, and no row contains a key twice.
        return_scores: return (indices, scores).
        layout: of query and key, as in :func:`nsimplex.attention`.

    Returns:
        int64 [B, Tq, k], best first, -1 after the last admissible key. With ``return_scores`` also
        their scores, float32 or float64, -inf after the last. Of equal scores the lower index comes
        first. A score that is NaN or -inf is never chosen. No gradient passes (see
        :func:`indexer_loss`). The result does not depend on the number of threads.

    Raises:
        ValueError: k < 1, a shape or a device that does not fit, an index or a length out of range.
        TypeError: a dtype that does not fit.

    Complexity: 2 D flops for every head and admissible pair. Memory is O(T k), since only one tile
        of scores is stored at a time. The CPU runs a SIMD kernel, except for ``candidates`` and
        sparse CSR; all other cases use plain tensor operations.

    Sources: DeepSeek-AI, "DeepSeek-V3.2-Exp" (2025), equation 1, for relu and weights; Pappone,
        "Beyond Attention as a Graph" (2025), for softmax and reuse.

    Example:
        >>> q, k1 = torch.randn(1, 4, 64, 16), torch.randn(1, 1, 64, 16)
        >>> chosen = topk_keys(q, k1, 8, causal=True)
        >>> chosen.shape, chosen[0, 0].tolist()  # the first query sees one key
        (torch.Size([1, 64, 8]), [0, -1, -1, -1, -1, -1, -1, -1])
    """
    query, key = heads_first("topk_keys", layout, query, key)
    adjacency, candidates = _admissible("topk_keys", query, key, adjacency, candidates)
    indices, values = operators.topk_keys(
        query,
        key,
        k,
        weights=weights,
        scores=scores,
        causal=causal,
        scale=scale,
        lse=lse,
        key_lengths=key_lengths,
        adjacency=adjacency,
        candidates=candidates,
    )
    return (indices, values) if return_scores else indices


@overload
def topk_keys_reference(
    query: Tensor,
    key: Tensor,
    k: int,
    *,
    return_scores: Literal[False] = ...,
    layout: Layout = ...,
    **options: Unpack[SelectionOptions],
) -> Tensor: ...


@overload
def topk_keys_reference(
    query: Tensor,
    key: Tensor,
    k: int,
    *,
    return_scores: Literal[True],
    layout: Layout = ...,
    **options: Unpack[SelectionOptions],
) -> tuple[Tensor, Tensor]: ...


@checked(options_of=topk_keys)
def topk_keys_reference(
    query: Tensor,
    key: Tensor,
    k: int,
    *,
    adjacency: Tensor | None = None,
    candidates: Tensor | None = None,
    return_scores: bool = False,
    layout: Layout = "bhtd",
    **options: Any,
) -> Tensor | tuple[Tensor, Tensor]:
    """:func:`topk_keys` computed with plain tensor operations, for every dtype and device. It is
    the reference for tests."""
    query, key = heads_first("topk_keys_reference", layout, query, key)
    adjacency, candidates = _admissible("topk_keys_reference", query, key, adjacency, candidates)
    indices, values = operators.topk_keys_reference(
        query, key, k, adjacency=adjacency, candidates=candidates, **options
    )
    return (indices, values) if return_scores else indices


@checked(options_of=attention)
def topk_tuples(
    query: Tensor,
    keys: Sequence[Tensor],
    count: int,
    *,
    weights: Tensor | None = None,
    layout: Layout = "bhtd",
    **options: Unpack[TupleOptions],
) -> tuple[Tensor, Tensor]:
    r"""The ``count`` best tuples of every query. Every tuple is scored separately, so this costs as
    much as dense attention.

    .. math:: s_{iJ} = \sum_h w_{hi} \max(\mathrm{logit}_{hiJ}, 0)

    The logits, masks and windows are those of :func:`nsimplex.attention`. With ``count`` = k^N, a
    query gets as many tuples as with the other selections at k. Compare with this function to
    measure how much weight the cheaper selections miss.

    Args:
        query, keys: as in :func:`nsimplex.attention`.
        count: number of tuples kept per query, at least 1.
        weights: w [B, Hq, Tq]; None: ones.
        layout: of query and keys, as in :func:`nsimplex.attention`.
        options: those of :func:`nsimplex.attention` except ``augment``. normalizer, reduce and
            dropout do not affect the result.

    Returns:
        (indices int64 [nnz, N], offsets int64 [B, 1, Tq + 1]): a list for ``sparse_attention``.
        Each query's tuples come best first. Of equal scores the first tuple in lexicographic order
        comes first.

    Raises:
        ValueError: count < 1, 2^62 tuples or more, or an argument that attention refuses.

    Complexity: 2 D flops for every head and admissible tuple, and sorting; memory O(T count).

    Source: "How Smoothing is N-simplicial Attention?", section 2.3.
    """
    query, keys = heads_first("topk_tuples", layout, query, keys)
    given = operator_options(query, keys, keys, **options)
    return _tuples_of_call(query, keys, count, weights=weights, **given)


def _tuples_of_call(
    query: Tensor, keys: Sequence[Tensor], count: int, **options: Any
) -> tuple[Tensor, Tensor]:
    """:func:`topk_tuples` with the operator's own options, as a recorded call of attention has
    them."""
    return operators.topk_tuples(query, keys, count, **options)


@checked
def indexer_loss(
    query_index: Tensor,
    key_index: Tensor,
    query: Tensor,
    keys: Sequence[Tensor],
    *,
    weights: Tensor | None = None,
    scores: Scores = "relu",
    causal: bool = False,
    scale: float | None = None,
    lse: Tensor | None = None,
    indices: Tensor | None = None,
    pattern: SetPattern = "product",
    form: Form = "product",
    logit_scale: float | None = None,
    layout: Layout = "bhtd",
) -> Tensor:
    r"""The divergence between an indexer's scores and the attention of a layer of order N.

    .. math::
        \mathrm{loss} = \mathrm{mean}_i\, \mathrm{KL}(t_i \,\|\, p_i)

    p_i is softmax_j(s_ij) for relu scores and s_ij / sum_j s_ij for softmax scores. t_i is the
    weight that query i puts on key j. It is summed over axes and the other indices, divided by N,
    averaged over heads and renormalised. Without ``indices``, j runs over all admissible keys (the
    dense warm-up). With ``indices``, j runs over I_i, and the layer's softmax is taken over the
    tuples of I_i.

    Args:
        query_index: [B, H, Tq, D'], key_index [B, H', T, D'], weights [B, H, Tq]: as in
            :func:`topk_keys`; so are ``scores``, ``causal`` and ``scale``. For softmax scores
            weights are not negative.
        query: [B, Hq, Tq, D], the attention layer's; keys: N tensors [B, Hk, T, D].
        lse: [B, H, Tq], for "softmax"; None: computed, with its gradient, over all keys, or with
            ``causal`` over the earlier ones. If ``indices`` were chosen under other masks, give the
            lse over the keys that these admit.
        indices: the chosen table, [1 or B, Tq, k], or for "path" [1 or B, T, k]. A table that was
            chosen causally makes the loss causal.
        pattern: of the layer: "product" or "path".
        form, logit_scale: of the layer, as in :func:`nsimplex.attention`.
        layout: of the four arguments with queries and keys, as in :func:`nsimplex.attention`.

    Returns:
        A scalar: the mean over queries with an admissible key, 0 without any. Gradients reach
        query_index, key_index, weights and lse, and never the layer's tensors. The loss is
        differentiable once.

    Raises:
        ValueError, TypeError: an argument that does not fit, by name.

    Complexity: about that of the layer's forward. Memory is O(T (D + k)), since the gradients are
        computed chunk by chunk along with the loss.

    Source: DeepSeek-AI, "DeepSeek-V3.2-Exp" (2025), equations 3 and 4, for pairs.
    """
    query_index, key_index, query, keys = heads_first(
        "indexer_loss", layout, query_index, key_index, query, keys
    )
    return operators.indexer_loss(
        query_index,
        key_index,
        query,
        keys,
        weights=weights,
        lse=lse,
        indices=indices,
        scores=scores,
        causal=causal,
        scale=scale,
        pattern=pattern,
        form=form,
        logit_scale=logit_scale,
    )


@checked
def retained_mass(sparse_lse: Tensor, dense_lse: Tensor) -> Tensor:
    """The share of dense attention's weight that a selection keeps: mean exp(lse_sparse -
    lse_dense).

    The share is exact if the selected tuples are admissible and distinct. lse is the logarithm of
    the sum of all weights before normalisation.

    Args:
        sparse_lse, dense_lse: [..], of ``sparse_attention`` and :func:`nsimplex.attention` with the
            same query, keys and scale.

    Returns:
        A scalar, the mean over queries and heads that attend to at least one tuple (NaN if none
        does).
    """
    return operators.retained_mass(sparse_lse, dense_lse)


def _admissible(
    function: str,
    query: Tensor,
    key: Tensor,
    adjacency: Tensor | None,
    candidates: Tensor | None,
) -> tuple[Tensor | None, Tensor | None]:
    """(flags [1 or B, Tq, T], table). A sparse adjacency becomes a table of its stored pairs."""
    if adjacency is not None and adjacency.layout == torch.sparse_csr:
        if candidates is not None:
            raise ValueError(
                f"[{function}] candidates: given beside adjacency, expected one of them"
            )
        pairs = [x.size(2) for x in (query, key) if x.dim() == 4]
        if len(pairs) == 2 and [*adjacency.shape] != pairs:
            raise ValueError(
                f"[{function}] adjacency: expected shape {pairs} of a sparse matrix, got "
                f"{[*adjacency.shape]}"
            )
        return None, neighbours(adjacency, self_loops=False)
    batched = [
        t.unsqueeze(0) if t is not None and t.dim() == 2 else t for t in (adjacency, candidates)
    ]
    return batched[0], batched[1]
