"""The backward pass of dense attention on a GPU: its launches."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from . import attention_merge as merges
from . import tuple_terms
from .attention_backward_keys import attention_backward_keys_kernel
from .attention_backward_plan import (
    KeysPlan,
    RowsPlan,
    backward_workspace,
    needs_states,
    plan,
    scratch_numbers,
)
from .attention_backward_rows import attention_backward_rows_kernel
from .attention_forward import states
from .axes import Axis, QueryAxes
from .call_options import Options, axes_of_call, normalizer_code, term_arguments
from .launches import (
    empty_in_order,
    launch_options,
    operands,
    padded,
    precision,
    strides,
    with_rows,
)

__all__ = ["backward", "backward_workspace", "plan"]

#: Largest number of leading keys that a kernel of order 3 or 4 is compiled for.
MOST_FIXED_COUNT = 64


def _common_arguments(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    grad_out: Tensor,
    statistics: Tensor,
    options: Options,
    axes: QueryAxes,
    scaled: bool,
    rounded: bool,
) -> dict[str, object]:
    """Arguments of both kernels."""
    terms = term_arguments(query, keys, options, axes)
    for name in ("sink", "SINK"):
        del terms[name]
    return {
        **operands(query, keys, values, axes),
        "grad_out": grad_out,
        "rows": statistics,
        "grad_strides": strides(grad_out),
        "logit_scale": float(options.logit_scale),
        "output_scale": float(options.output_scale),
        "SCALED": scaled,
        "ROUNDED": rounded,
        "WIDE": _wide(query, grad_out, keys, values),
        "PRECISION": precision(query.dtype),
        **terms,
    }


def _wide(
    query: Tensor, grad_out: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor]
) -> bool:
    """Whether offsets of rows from the first of a block may leave int32."""
    largest = 0
    for x in (query, grad_out):
        largest = max(largest, 64 * (abs(x.stride(1)) + abs(x.stride(2))))
    for x in (*keys, *values):
        largest = max(largest, x.shape[2] * abs(x.stride(2)))
    return largest + 64 * query.shape[2] >= 1 << 31


def backward(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    out: Tensor,
    lse: Tensor,
    grad_out: Tensor,
    grad_lse: Tensor | None,
    wanted: Sequence[bool],
    options: Options,
) -> tuple[Tensor | None, list[Tensor | None], list[Tensor | None], Tensor | None]:
    """Gradients of dense attention in the product form: those of the query, the keys, the values
    and the sink, in the dtype and memory order of their inputs (the sink's in fp32).

    Shapes and dtypes are those of ``attention_forward.forward``; out [B, Hq, Tq, Dv] and lse
    [B, Hq, Tq] are its results, grad_out and grad_lse (or None) their gradients. ``wanted`` is the
    operator's list: query, keys, values, mask, sink. An unwanted gradient is None.

    Complexity: 16 flops per channel, query, head and tuple: eight matrix products. Two of them
        compute logits and gradients of weights a second time. :func:`backward_workspace` bytes of
        memory besides the results.
    """
    order = len(keys)
    gradients: list[Tensor | None] = [
        empty_in_order(x, x.shape[3]) if want else None
        for x, want in zip((query, *keys, *values), wanted[: 1 + 2 * order], strict=True)
    ]
    grad_query, grad_keys, grad_values = (
        gradients[0],
        gradients[1 : 1 + order],
        gradients[1 + order :],
    )
    want_sink = bool(wanted[2 + 2 * order]) and options.sink is not None
    axes = axes_of_call(query, keys, options)
    if query.numel() == 0 or min(axis.most for axis in axes.axes) == 0:
        for gradient in gradients:
            if gradient is not None:
                gradient.zero_()
        grad_sink = query.new_zeros(query.shape[1], dtype=torch.float32) if want_sink else None
        return grad_query, grad_keys, grad_values, grad_sink
    query, out, grad_out = with_rows(query), with_rows(out), with_rows(grad_out)
    keys, values = [with_rows(x) for x in keys], [with_rows(x) for x in values]
    lse = lse.contiguous()
    statistics, scaled = _statistics(query, keys, out, lse, grad_out, grad_lse, options)
    # With a gradient of lse the rounding stays: its term would be one more number per row in loops.
    rounded = query.element_size() == 2 and options.normalizer != "sigmoid" and grad_lse is None
    common = _common_arguments(
        query, keys, values, grad_out, statistics, options, axes, scaled, rounded
    )
    sizes = plan(query, keys, values, axes)
    sorted_keys, sorted_values = axes.sort(grad_keys), axes.sort(grad_values)
    _launch_rows(sizes.rows, common, axes, grad_query, sorted_keys[:-1], sorted_values[:-1])
    _launch_keys(sizes.keys, common, axes, sorted_keys[-1], sorted_values[-1])
    grad_sink = _grad_sink(statistics, options) if want_sink else None
    return grad_query, grad_keys, grad_values, grad_sink


def _statistics(
    query: Tensor,
    keys: Sequence[Tensor],
    out: Tensor,
    lse: Tensor,
    grad_out: Tensor,
    grad_lse: Tensor | None,
    options: Options,
) -> tuple[Tensor, bool]:
    """fp32 [4, B, Hq, Tq] of every query, and whether its weights have a factor."""
    batch, heads, queries, value_dim = out.shape
    measured = needs_states(query, options)
    state = states(query, keys, options, lse) if measured else lse
    statistics = torch.empty(4, *lse.shape, dtype=torch.float32, device=query.device)
    merges.attention_row_statistics[(-(-queries // 16), batch * heads)](
        out=out,
        grad_out=grad_out,
        grad_lse=lse if grad_lse is None else grad_lse.contiguous(),
        lse=lse,
        states=state,
        rows=statistics,
        out_strides=strides(out),
        grad_strides=strides(grad_out),
        heads=heads,
        queries=queries,
        NORMALIZER=normalizer_code(options),
        HAS_LSE=grad_lse is not None,
        STATES=measured,
        DV=value_dim,
        DVP=padded(value_dim),
        BQ=16,
    )
    return statistics, measured or options.normalizer == "relu"


def _grad_sink(statistics: Tensor, options: Options) -> Tensor:
    """-sum exp(sink - lse) delta over batch entries and queries, in a fixed order."""
    shift, delta, factor, base = statistics
    sink = options.sink.detach().float().unsqueeze(1)
    weight = torch.exp2((sink - base) * tuple_terms.LOG2E.value - shift) * factor
    return -(weight * delta).sum((0, 2))


def _launch_rows(
    sizes: RowsPlan,
    common: dict,
    axes: QueryAxes,
    grad_query: Tensor | None,
    grad_keys: Sequence[Tensor | None],
    grad_values: Sequence[Tensor | None],
) -> None:
    want_keys = any(x is not None for x in grad_keys)
    want_values = any(x is not None for x in grad_values)
    if grad_query is None and not want_keys and not want_values:
        return
    query, kv_heads = common["q"], common["kv_heads"]
    batch, _, _, dim = query.shape
    channels = dim + common["DV"]
    fp32 = {"dtype": torch.float32, "device": query.device}
    head_blocks = -(-common["group"] // sizes.heads)
    parts = tuple(torch.empty(1, **fp32) for _ in sizes.spans)
    if want_keys or want_values:
        parts = tuple(
            torch.zeros(batch, kv_heads, sizes.segments, span, channels, **fp32)
            for span in sizes.spans
        )
    scratch = torch.empty(scratch_numbers(sizes, batch * kv_heads, head_blocks, dim), **fp32)
    target = query if grad_query is None else grad_query
    attention_backward_rows_kernel[(sizes.segments, batch * kv_heads)](
        **common,
        grad_q=target,
        scratch=scratch,
        lead_grad=parts,
        grad_q_strides=strides(target),
        lead_axes=tuple(
            (axis.length, axis.low, axis.high, span, count)
            for axis, span, count in zip(axes.axes, sizes.spans, sizes.boxes, strict=False)
        ),
        head_blocks=head_blocks,
        segment=sizes.segment,
        BQ=sizes.queries,
        BH=sizes.heads,
        BJS=sizes.box,
        SEVERAL=math.prod(sizes.boxes) > 1,
        BN=sizes.tiles.inner,
        EVEN=common["group"] % sizes.heads == 0,
        WANT_Q=grad_query is not None,
        WANT_K=want_keys,
        WANT_V=want_values,
        **launch_options(query.device, sizes.tiles),
    )
    for m, span in enumerate(sizes.spans):
        axis = axes.axes[m]
        bounds = axes.bounds.select(0, m) if axes.bounds is not None else query
        for gradient, offset in ((grad_keys[m], 0), (grad_values[m], dim)):
            if gradient is None:
                continue
            size = gradient.shape[3]
            merges.attention_merge[(-(-axis.length // 16), batch * kv_heads)](
                parts=parts[m],
                out=gradient,
                bounds=bounds,
                out_strides=strides(gradient),
                kv_heads=kv_heads,
                segments=sizes.segments,
                segment=sizes.segment,
                queries=common["queries"],
                span=span,
                length=axis.length,
                low=axis.low,
                high=axis.high,
                row_size=channels,
                offset=offset,
                TABLE=axes.bounds is not None,
                C=size,
                CP=padded(size),
                BN=16,
            )


def _fixed_counts(lead: Sequence[Axis]) -> tuple[int, ...]:
    """Counts of leading keys that the kernel is compiled for. Of an axis without a window there
    would be a kernel for every length."""
    if len(lead) < 2:
        return ()
    return tuple(max(1, a.most) if a.most <= MOST_FIXED_COUNT else 0 for a in lead)


def _launch_keys(
    sizes: KeysPlan,
    common: dict,
    axes: QueryAxes,
    grad_key: Tensor | None,
    grad_value: Tensor | None,
) -> None:
    if grad_key is None and grad_value is None:
        return
    query, kv_heads = common["q"], common["kv_heads"]
    batch = query.shape[0]
    lead, last = axes.axes[:-1], axes.axes[-1]
    targets = {"grad_k": grad_key, "grad_v": grad_value}
    if sizes.splits > 1:
        for name, gradient in list(targets.items()):
            if gradient is not None:
                targets[name] = torch.empty(
                    sizes.splits * batch,
                    *gradient.shape[1:],
                    dtype=torch.float32,
                    device=query.device,
                )
    targets = {name: query if x is None else x for name, x in targets.items()}
    attention_backward_keys_kernel[
        (-(-last.length // sizes.tiles.inner), batch * kv_heads, sizes.splits)
    ](
        **common,
        **targets,
        grad_k_strides=strides(targets["grad_k"]),
        grad_v_strides=strides(targets["grad_v"]),
        lead_axes=tuple((axis.length, axis.low, axis.high, max(1, axis.most)) for axis in lead),
        head_blocks=-(-common["group"] // sizes.heads),
        tuples=math.prod(max(1, axis.most) for axis in lead),
        splits=sizes.splits,
        BQ=sizes.queries,
        BH=sizes.heads,
        BJ=sizes.tuples,
        BN=sizes.tiles.inner,
        EVEN=common["group"] % sizes.heads == 0,
        MOSTS=_fixed_counts(lead),
        WANT_K=grad_key is not None,
        WANT_V=grad_value is not None,
        **launch_options(query.device, sizes.tiles),
    )
    if sizes.splits == 1:
        return
    for name, gradient in (("grad_k", grad_key), ("grad_v", grad_value)):
        if gradient is None:
            continue
        size = gradient.shape[3]
        merges.attention_add_splits[(-(-last.length // 16), batch * kv_heads)](
            parts=targets[name],
            out=gradient,
            out_strides=strides(gradient),
            kv_heads=kv_heads,
            splits=sizes.splits,
            length=last.length,
            C=size,
            CP=padded(size),
            BN=16,
        )
