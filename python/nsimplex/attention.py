"""N-simplicial attention as functions of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, product
from typing import Literal, overload

from torch import Tensor
from torch.utils.flop_counter import register_flop_formula
from typing_extensions import Unpack

from ._arguments import checked
from ._choices import Distinct, Form, Normalizer, Reduce
from ._layout import Layout
from ._library import operators
from ._options import AttentionOptions, Scale, Window, computed_by

__all__ = ["attention", "reference"]


@overload
def attention(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    *,
    return_lse: Literal[False] = ...,
    layout: Layout = ...,
    **options: Unpack[AttentionOptions],
) -> Tensor: ...


@overload
def attention(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    *,
    return_lse: Literal[True],
    layout: Layout = ...,
    **options: Unpack[AttentionOptions],
) -> tuple[Tensor, Tensor]: ...


@checked(by=computed_by(operators.attention, "attention"))
def attention(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    *,
    causal: bool = False,
    window: Window = None,
    form: Form = "product",
    reduce: Reduce = "product",
    normalizer: Normalizer = "softmax",
    scale: Scale = "standard",
    key_lengths: Tensor | None = None,
    key_masks: Sequence[Tensor] | None = None,
    cu_seqlens: Tensor | None = None,
    mask: Tensor | None = None,
    sink: Tensor | None = None,
    distinct: Distinct = "none",
    augment: bool | Sequence[int] | None = None,
    dropout_p: float = 0.0,
    seed: int | None = None,
    query_positions: Tensor | None = None,
    order_bias: Tensor | None = None,
    softcap: float | None = None,
    alibi_slopes: Tensor | None = None,
    pair_masks: Sequence[Tensor] | None = None,
    return_lse: bool = False,
    layout: Layout = "bhtd",
) -> Tensor | tuple[Tensor, Tensor]:
    r"""N-simplicial attention: every query attends to tuples of N keys, one from each of N key
    axes.

    .. math::
        e_{iJ} &= s_1\, \mathrm{form}(q_i, k^{(1)}_{j_1}, \dots, k^{(N)}_{j_N}) + \mathrm{mask}_{iJ}
            \quad\text{for admissible tuples } J = (j_1, \dots, j_N) \\
        o_i &= s_2 \sum_J \mathrm{softmax}_J(e_{iJ})\;
            \mathrm{reduce}(v^{(1)}_{j_1}, \dots, v^{(N)}_{j_N}) \\
        \mathrm{lse}_i &= \log \sum_J \exp e_{iJ}

    There is one softmax per query, over all of its tuples. N = 1 is ordinary attention. A tuple is
    admissible if every mask below admits it.

    Shapes: B is the batch size, Hq the number of query heads, and Hk the number of key heads. Hk
        divides Hq, so the head counts select grouped-query attention. Tq is the number of queries
        and T_m the number of keys on axis m; the axes may differ in length. D is the head
        dimension and Dv the value head dimension. Tensors may have any strides.

    Args:
        query: [B, Hq, Tq, D], float32, float64, bfloat16 or float16.
        keys: N tensors [B, Hk, T_m, D], 1 <= N <= 8, of the query's dtype and device.
        values: N tensors [B, Hk, T_m, Dv].
        causal: query i sees j <= i + (T_m - Tq) on every axis. Queries and keys are aligned at
            their ends (bottom right).
        window: None; or one int for all axes; or a sequence of exactly N entries, each an int or a
            pair (left, right). Query i, at p = i + (T_m - Tq), sees p - left < j <= p + right. An
            int w means the last w keys, (w, 0), with or without ``causal``. -1 is unbounded.
            ``left`` counts the query's own position: left = L in FlashAttention is L + 1 here. A
            bare pair is never read as (left, right).
        form: "product", sum_a q_a k1_a .. kN_a; or "determinant", the sum over chunks of N + 1
            channels (D divisible by N + 1) of det[q, k1, .., kN] with the vectors as columns. The
            determinant is invariant under a common rotation of every chunk. It changes its sign if
            two axes are exchanged.
        reduce: "product", "sum" or "mean": the operation that combines the values of a tuple,
            channel by channel.
        normalizer: "softmax"; "softmax_sink", whose denominator and lse also include exp(sink_h);
            "sigmoid", 1 / (1 + exp(-e)) for each tuple separately, lse = 0; "relu",
            max(e, 0) / sum max(e, 0), lse the logarithm of that sum (if the sum is 0, then out = 0
            and lse = -inf).
        scale: (s1, s2); or s1 alone, with s2 = 1; or "standard", s1 = D^-1/2 and s2 = 1; or "unit",
            s1 = D^-(N+1)/2 and s2 = Dv^-(N-1)/2 for product, 1/N for sum, 1 for mean.
        key_lengths: int64 or int32 [B], or [N, B] for one length per axis. Keys at or beyond the
            length are masked and never read. The lengths only mask; alignment uses T_m. An axis
            that uses positions (``causal``, a window, distinct "with_query") therefore needs
            T_m = Tq, as in a padded batch, or ``query_positions``. Fewer queries at the end of
            padded keys are refused otherwise.
        key_masks: N tensors bool [B, T_m]. True admits the key; the other keys are never read.
        cu_seqlens: int64 or int32 [documents + 1], 0 <= .. <= T: boundaries of documents packed
            along the length. They are the same for every batch entry and axis (all T_m = Tq). A
            query and all keys of its tuples lie in one document.
        mask: broadcastable to [B, Hq, Tq, T_1, .., T_N]. bool: True is admissible. Floating: added
            to the logits, differentiable; -inf excludes a tuple, and finite numbers of any size do
            not. For N >= 2 the mask needs at least N + 1 dimensions: pass a mask of pairs
            [Tq, T_1] as [Tq, T_1, 1], with size 1 on its other axes. Pass it with all its
            dimensions if four dimensions could also be the [B, 1, Tq, T] of other libraries.
        sink: [Hq], floating, one logit per query head for "softmax_sink"; differentiable.
        distinct: "none"; "axes" excludes the tuples with j_m = j_m' on two axes; "with_query" also
            excludes the tuples with j_m = i + (T_m - Tq).
        augment: axes, as indices of ``keys``, that get an additional row of ones. True means all
            axes but the first: the orders 1..N in one softmax. Every query sees that row,
            regardless of window, causal mask and lengths. Its value is ones (sum: zeros; mean: the
            row is left out of the mean). For the product form only, without ``mask``.
        dropout_p: share of tuples whose weight is dropped after normalisation; the other weights
            are multiplied by 1 / (1 - p). lse is computed without dropout. The choice of dropped
            tuples depends only on seed, batch entry, head, query and keys.
        seed: seed of the dropout. None draws one from torch's default generator, in compiled and
            exported code too, but not under vmap.
        query_positions: int64 or int32 [B, Tq], or [B] for the position of each entry's first
            query, which the others follow one by one. They take the place of i + (T_m - Tq) in
            ``causal``, ``window`` and ``distinct``, on every axis: query i of entry b stands at the
            key of that index. With them, a batch of texts of different lengths can be decoded from
            fixed slots. Positions must not decrease from one query to the next. They may lie
            outside the keys. Not with ``cu_seqlens``.
        order_bias: [N, Hq], floating, differentiable; needs ``augment`` and a softmax. Row n - 1 is
            added to the logits of all tuples of n keys. A large negative row removes an order.
        softcap: c > 0 replaces a logit x by c tanh(x / c), before ``mask`` and ``order_bias`` are
            added. None leaves the logits as they are.
        alibi_slopes: [Hq], floating, without a gradient. slope_h times the sum over the axes of
            |p - j_m| is subtracted from the logits, p = i + (T_m - Tq) or the query's position. At
            N = 1 it is ALiBi. Not with ``augment``.
        pair_masks: N tensors, one per axis m, each broadcastable to [B, Hq, Tq, T_m] and of 2
            dimensions or more: what ``mask`` is for tuples, for the pairs of a query and a key.
            bool: a tuple is admissible if all its pairs are; a leading key that a query may not see
            costs nothing. Floating: the numbers of a tuple's pairs are added to its logit,
            differentiable. Memory is that of the pairs, where the same ``mask`` has one number per
            tuple. Kinds may differ between axes, and ``torch.tensor([[True]])`` leaves an axis as
            it is. Not with ``augment``.
        return_lse: return (out, lse).
        layout: "bhtd", [B, heads, T, D] as above; or "bthd", [B, T, heads, D] for query, keys,
            values and out, as in FlashAttention. Both are read and written without a copy. The
            layout does not change lse or any option.

    Returns:
        out [B, Hq, Tq, Dv] in the query's dtype and memory order (heads inside or outside the
        rows). With ``return_lse`` also lse [B, Hq, Tq], natural logarithm, float32, or float64 for
        float64 inputs. Both are differentiable, any number of times. A query without an admissible
        tuple has out = 0, lse = -inf and zero gradients.

    Raises:
        ValueError: a rank, size, window, length, boundary or name that does not fit, or an option
            without the one it needs.
        TypeError: a dtype that is not supported, or differs between the tensors.

    Complexity: the forward pass takes 2 (D + Dv) flops for every query, head and admissible tuple;
        the backward pass takes three times as many. Memory is O(T (D + Dv)) besides a mask. The
        CPU runs a SIMD kernel for every dtype and option. A GPU runs Triton kernels for orders 1 to
        4 in float32, bfloat16 and float16. Other calls and devices, the gradient of ``mask`` on a
        GPU or of one that is the same for all queries, derivatives of second order, forward mode
        and ``torch.func`` transforms run :func:`reference` (set NSIMPLEX_WARN_FALLBACK=1 to get a
        warning). The bits of a result do not depend on the number of threads.

    Sources: Clift et al., "Logic and the 2-Simplicial Transformer" (arXiv 1909.00668); Roy et al.,
        "Fast and Simplex: 2-Simplicial Attention in Triton" (arXiv 2507.02754).

    Example:
        >>> q = torch.randn(1, 4, 128, 32)
        >>> k1, k2, v1, v2 = (torch.randn(1, 2, 128, 32) for _ in range(4))
        >>> attention(q, [k1, k2], [v1, v2], causal=True, window=[16, 64]).shape
        torch.Size([1, 4, 128, 32])
    """
    raise NotImplementedError  # computed by what the decorator names


@overload
def reference(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    *,
    return_lse: Literal[False] = ...,
    layout: Layout = ...,
    **options: Unpack[AttentionOptions],
) -> Tensor: ...


@overload
def reference(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    *,
    return_lse: Literal[True],
    layout: Layout = ...,
    **options: Unpack[AttentionOptions],
) -> tuple[Tensor, Tensor]: ...


@checked(options_of=attention, by=computed_by(operators.attention_reference, "reference"))
def reference(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    *,
    return_lse: bool = False,
    layout: Layout = "bhtd",
    **options: Unpack[AttentionOptions],
) -> Tensor | tuple[Tensor, Tensor]:
    """:func:`attention` computed with plain tensor operations, for every dtype and device. It is
    the reference for tests.

    Arguments, options and results are those of :func:`attention`. Forward and backward recompute
    tile by tile in O(T) memory. The kernels are compared with its results for float64 inputs.
    """
    raise NotImplementedError  # computed by what the decorator names


def _forward_flops(
    query: Sequence[int],
    keys: Sequence[Sequence[int]],
    values: Sequence[Sequence[int]],
    causal: bool,
    window: Sequence[int] | None,
    augment: Sequence[int] | None,
) -> int:
    batch, heads, queries, dim = query
    tuples = 0
    for ones in product((False, True), repeat=len(augment or ())):
        axes = [m for m in range(len(keys)) if m not in set(compress(augment or (), ones))]
        if axes:
            tuples += operators.attention_tuples(
                queries,
                [keys[m][2] for m in axes],
                causal=causal,
                window=window and [window[2 * m + side] for m in axes for side in (0, 1)],
            )
    return 2 * (dim + values[0][3]) * batch * heads * int(tuples)


@register_flop_formula([operators.attention, operators.attention_reference])
def _attention_flops(
    query, keys, values, *, causal=False, window=None, augment=None, out_shape=None, **_
) -> int:
    """2 (D + Dv) flops for every query, head and admissible tuple. Key lengths are unknown here, so
    the count ignores them."""
    return _forward_flops(query, keys, values, causal, window, augment)


@register_flop_formula(operators.attention_backward)
def _attention_backward_flops(
    query, keys, values, *_, causal=False, window=None, augment=None, out_shape=None, **__
) -> int:
    """The backward pass computes six products per tuple, and the forward pass two."""
    return 3 * _forward_flops(query, keys, values, causal, window, augment)


@register_flop_formula(operators.attention_pair_masks_backward)
def _pair_masks_backward_flops(
    query, keys, values, *_, causal=False, window=None, augment=None, out_shape=None, **__
) -> int:
    """Scores and gradients of weights: two products per tuple, like the forward pass."""
    return _forward_flops(query, keys, values, causal, window, augment)
