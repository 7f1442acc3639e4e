"""N-simplicial attention over lists of tuples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

from torch import Tensor
from torch.utils.flop_counter import register_flop_formula
from typing_extensions import Unpack

from ._arguments import checked
from ._choices import Form, LearnedReduce, Pattern
from ._layout import Layout, heads_first, in_layout
from ._library import operators
from ._options import Scale, SparseOptions, scales

__all__ = ["sparse_attention", "sparse_reference"]


def _computed_by(operator: Callable, function: str) -> Callable:
    """Returns a function that calls ``operator`` with the arguments of :func:`sparse_attention`.
    Error messages name ``function``."""

    def compute(
        query: Tensor,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        indices: Tensor,
        offsets: Tensor | None = None,
        *,
        return_lse: bool = False,
        layout: Layout = "bhtd",
        **options: Any,
    ) -> Tensor | tuple[Tensor, Tensor]:
        query, keys, values = heads_first(function, layout, query, keys, values)
        # topk_keys returns sets [B, rows, k], which all heads share.
        if options.get("pattern", "list") != "list" and indices.dim() == 3:
            indices = indices.unsqueeze(1)
        options = _operator_options(query, values, **options)
        out, lse = operator(query, keys, values, indices, offsets, **options)
        out = in_layout(layout, out)
        return (out, lse) if return_lse else out

    return compute


def _operator_options(
    query: Tensor,
    values: Sequence[Tensor],
    *,
    reduce: LearnedReduce = "product",
    scale: Scale = "standard",
    **as_they_are,
) -> dict[str, object]:
    """The operator's keyword arguments, with the scales computed."""
    if scale == "unit" and reduce not in ("product", "sum", "mean"):
        raise ValueError(
            f"[sparse_attention] scale: 'unit' is not defined with reduce '{reduce}', expected "
            "numbers"
        )
    logit_scale, output_scale = scales(scale, query, values, reduce, "sparse_attention")
    return as_they_are | {
        "reduce": reduce,
        "logit_scale": logit_scale,
        "output_scale": output_scale,
    }


@overload
def sparse_attention(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    indices: Tensor,
    offsets: Tensor | None = ...,
    *,
    return_lse: Literal[False] = ...,
    layout: Layout = ...,
    **options: Unpack[SparseOptions],
) -> Tensor: ...


@overload
def sparse_attention(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    indices: Tensor,
    offsets: Tensor | None = ...,
    *,
    return_lse: Literal[True],
    layout: Layout = ...,
    **options: Unpack[SparseOptions],
) -> tuple[Tensor, Tensor]: ...


@checked(by=_computed_by(operators.sparse_attention, "sparse_attention"))
def sparse_attention(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    indices: Tensor,
    offsets: Tensor | None = None,
    *,
    pattern: Pattern = "list",
    form: Form = "product",
    reduce: LearnedReduce = "product",
    reducer_weights: Sequence[Tensor] | None = None,
    scale: Scale = "standard",
    return_lse: bool = False,
    layout: Layout = "bhtd",
) -> Tensor | tuple[Tensor, Tensor]:
    r"""N-simplicial attention over listed tuples only, instead of all admissible tuples.

    .. math::
        e_{iJ} &= s_1\, \mathrm{form}(q_i, k^{(1)}_{j_1}, \dots, k^{(N)}_{j_N})
            \quad\text{for the tuples } J \text{ in the list of query } i \\
        o_i &= s_2 \sum_J \mathrm{softmax}_J(e_{iJ})\;
            \mathrm{reduce}(v^{(1)}_{j_1}, \dots, v^{(N)}_{j_N}) \\
        \mathrm{lse}_i &= \log \sum_J \exp e_{iJ}

    The result equals :func:`nsimplex.attention` under the boolean mask that is true for the same
    tuples. No other mask applies: attention is causal if the list contains no later keys. A tuple
    that is listed twice counts twice.

    Shapes: B, Hq, Hk, Tq, T_m, D, Dv as in :func:`nsimplex.attention`. G is the number of lists per
        batch entry, and divides Hk. With G = 1 all heads share one list, and with G = Hk every key
        head has its own list. In between, neighbouring heads share a list. The leading dimension of
        lists is B, or 1 for all entries.

    Args:
        query: [B, Hq, Tq, D], float32, float64, bfloat16 or float16.
        keys: N tensors [B, Hk, T_m, D], 1 <= N <= 8.
        values: N tensors [B, Hk, T_m, Dv].
        indices: int32 or int64. ``pattern`` determines the shape and the meaning:

            - "list": [nnz, N], any tuples.
            - "product": [1 | B, G, Tq, k], sets I_i. The tuples of query i are all combinations
              I_i x .. x I_i. [B, Tq, k] is one list for all heads.
            - "path": [1 | B, G, T, k], all T_m = T. The tuples of the query at position p are the
              chains j1 in I_p, j2 in I_{j1}, .., jN in I_{j_{N-1}}. The queries are the last Tq of
              the T positions. [B, T, k] is one list for all heads.

            A set with fewer than k keys is padded with -1 at its end.
        offsets: int64 [1 | B, G, Tq + 1], with "list" only: the tuples of query i are those from
            offsets[.., i] to offsets[.., i + 1] - 1. The offsets are row numbers of the whole of
            ``indices``, so lists may share tuples.
        pattern: "list", "product" or "path".
        form: "product" or "determinant", as in :func:`nsimplex.attention`.
        reduce: "product", "sum", "mean"; or a learned reducer, with weights for every key head:
            "mlp", W2 gelu(W1 [v1, .., vN] + b1) + b2, or "mlp_symmetric",
            W3 gelu(W2 sum_m gelu(W1 vm + b1) + b2) + b3.
        reducer_weights: of a learned reducer, W1, b1, W2, b2 (, W3, b3), in the query's dtype:
            "mlp" [Hk, 2Dv, N Dv], [Hk, 2Dv], [Hk, Dv, 2Dv], [Hk, Dv]; "mlp_symmetric" [Hk, 2Dv,
            Dv], [Hk, 2Dv], [Hk, 2Dv, 2Dv], [Hk, 2Dv], [Hk, Dv, 2Dv], [Hk, Dv].
        scale: (s1, s2), s1 alone, "standard" or "unit", as in :func:`nsimplex.attention`. "unit" is
            not defined for learned reducers.
        return_lse: return (out, lse).
        layout: of query, keys, values and out: "bhtd" or "bthd", as in :func:`nsimplex.attention`.

    Returns:
        out [B, Hq, Tq, Dv] in the query's dtype and memory order. With ``return_lse`` also lse [B,
        Hq, Tq], float32, or float64 for float64 inputs. Both are differentiable by query, keys,
        values and reducer weights, any number of times. A query without tuples has out = 0, lse =
        -inf and zero gradients.

    Raises:
        ValueError: a rank, size or name that does not fit. On the CPU also offsets that decrease or
            leave the list, and keys out of range, so no list makes the operator read outside its
            tensors.
        TypeError: a dtype that is not supported, or differs between the tensors.

    Complexity: the forward pass takes O(#tuples (D + Dv)) operations for N = 2, and less than N
        times that for larger N. The backward pass takes three times as many. Memory is
        O(T (D + Dv)) besides the list. The CPU runs SIMD kernels. Learned reducers, other devices,
        derivatives of second order, forward mode and ``torch.func`` transforms run
        :func:`sparse_reference`. The bits of a result do not depend on the number of threads.

    Sources: lists and paths, "How Smoothing is N-simplicial Attention?", section 2.3; products of
        sets and the learned reducer, Pappone, "Beyond Attention as a Graph" (2025).

    Example:
        >>> q, k1, k2, v1, v2 = torch.randn(5, 1, 4, 128, 32)
        >>> last = torch.arange(128).view(-1, 1) - torch.arange(8)  # the last 8 positions
        >>> sets = last.clamp_min(-1)[None]  # -1 before the first
        >>> out = sparse_attention(q, [k1, k2], [v1, v2], sets, pattern="product")
        >>> torch.allclose(out, nsimplex.attention(q, [k1, k2], [v1, v2], window=8), atol=1e-5)
        True
    """
    raise NotImplementedError  # computed by what the decorator names


@overload
def sparse_reference(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    indices: Tensor,
    offsets: Tensor | None = ...,
    *,
    return_lse: Literal[False] = ...,
    layout: Layout = ...,
    **options: Unpack[SparseOptions],
) -> Tensor: ...


@overload
def sparse_reference(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    indices: Tensor,
    offsets: Tensor | None = ...,
    *,
    return_lse: Literal[True],
    layout: Layout = ...,
    **options: Unpack[SparseOptions],
) -> tuple[Tensor, Tensor]: ...


@checked(
    options_of=sparse_attention,
    by=_computed_by(operators.sparse_attention_reference, "sparse_reference"),
)
def sparse_reference(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    indices: Tensor,
    offsets: Tensor | None = None,
    *,
    return_lse: bool = False,
    layout: Layout = "bhtd",
    **options: Unpack[SparseOptions],
) -> Tensor | tuple[Tensor, Tensor]:
    """:func:`sparse_attention` computed with plain tensor operations, for every dtype and device.
    It is the reference for tests.

    Arguments, options and results are those of :func:`sparse_attention`. Forward and backward
    process the queries in groups, and gather the tuples of one group at a time.
    """
    raise NotImplementedError  # computed by what the decorator names


def _forward_flops(query, keys, values, indices, offsets, pattern: str) -> int:
    """2 (D + Dv) flops for every query, head and tuple that fits into the list. The contents of the
    list are unknown here."""
    batch, heads, queries, dim = query
    if pattern == "list":
        entries, groups, _ = offsets
        tuples = indices[0] * (batch // entries) * (heads // groups)
    else:
        tuples = batch * heads * queries * indices[3] ** len(keys)
    return 2 * (dim + values[0][3]) * tuples


@register_flop_formula([operators.sparse_attention, operators.sparse_attention_reference])
def _sparse_flops(
    query, keys, values, indices, offsets=None, *, pattern="list", out_shape=None, **_
) -> int:
    return _forward_flops(query, keys, values, indices, offsets, pattern)


@register_flop_formula(operators.sparse_attention_backward)
def _sparse_backward_flops(
    query, keys, values, indices, offsets, *_, pattern="list", out_shape=None, **__
) -> int:
    """The backward pass computes six products per tuple, and the forward pass two."""
    return 3 * _forward_flops(query, keys, values, indices, offsets, pattern)
