"""The forward pass of dense attention on a GPU: plan, workspace and launches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from . import attention_forward_kernels as kernels
from . import attention_forward_merge as merge
from . import attention_heads, gpu_tiles, tuple_terms
from .axes import QueryAxes, axes_of
from .launches import empty_in_order, launch_options, power_of_two, precision, strides, with_rows

__all__ = ["Options", "Plan", "forward", "forward_workspace", "plan", "states"]

#: Programs below which the tuples of a query are split among several, and the most of them.
FEW_PROGRAMS = 264
MOST_SPLITS = 64

_MASK_64 = 2**64 - 1


@dataclass(frozen=True)
class Options:
    """Options of a call in the product form, as :func:`nsimplex.attention` defines them.

    ``window`` is the operator's flat list, both scales are numbers, ``reduce`` is "product" or
    "sum" (a mean is a sum whose output scale has 1 / N in it), and ``seed`` is drawn.
    """

    causal: bool = False
    window: Sequence[int] | None = None
    reduce: str = "product"
    normalizer: str = "softmax"
    logit_scale: float = 1.0
    output_scale: float = 1.0
    key_lengths: Tensor | None = None
    key_masks: Sequence[Tensor] | None = None
    cu_seqlens: Tensor | None = None
    mask: Tensor | None = None
    sink: Tensor | None = None
    distinct: str = "none"
    dropout_p: float = 0.0
    seed: int = 0
    query_positions: Tensor | None = None


@dataclass(frozen=True)
class Plan:
    """Sizes of a forward launch, which follow from the problem and the kind of device."""

    tiles: gpu_tiles.Tiles
    queries: int  #: of a block
    heads: int  #: of a block
    tuples: int  #: of a block
    chunk_splits: int
    inner_splits: int

    @property
    def splits(self) -> int:
        return self.chunk_splits * self.inner_splits


def tuple_block(counts: Sequence[int], limit: int) -> int:
    """Rows of a block that hold tuples: a power of two that wastes little."""
    total = math.prod(max(1, count) for count in counts)
    best = min(limit, power_of_two(total))
    while best > 16 and 20 * best * -(-total // best) > 23 * total:
        best //= 2
    return best


def plan(query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], axes: QueryAxes) -> Plan:
    """The launch of a call, whose working order is that of ``axes``."""
    batch, heads, queries, dim = query.shape
    kv_heads = keys[0].shape[1]
    group = heads // kv_heads
    lead = [max(1, axis.most) for axis in axes.axes[:-1]]
    tuples, inner = math.prod(lead), max(1, axes.axes[-1].most)
    channels = power_of_two(max(16, dim, values[0].shape[3]))
    sizes = gpu_tiles.tiles(
        "forward", gpu_tiles.architecture(query.device), query.dtype, channels, len(keys), group,
        tuples,
    )  # fmt: skip
    block_tuples = tuple_block(lead, min(sizes.rows, sizes.tuples))
    block_heads = min(power_of_two(group), max(1, sizes.rows // block_tuples))
    room = max(1, sizes.rows // (block_tuples * block_heads))
    block_queries = min(power_of_two(max(1, queries)), room)
    # A matrix product has at least 16 rows.
    while block_queries * block_heads * block_tuples < 16:
        block_heads *= 2
    programs = batch * kv_heads * -(-group // block_heads) * -(-max(1, queries) // block_queries)
    programs = max(1, programs)  # of an empty batch
    chunks, tiles = -(-tuples // block_tuples), -(-inner // sizes.inner)
    wanted = min(MOST_SPLITS, -(-FEW_PROGRAMS // programs)) if programs < FEW_PROGRAMS // 2 else 1
    chunk_splits = min(chunks, wanted)
    # A program keeps at least four tiles of keys, so that a merge stays small beside it.
    inner_splits = max(1, min(wanted // chunk_splits, tiles // 4))
    return Plan(sizes, block_queries, block_heads, block_tuples, chunk_splits, inner_splits)


def _axes(query: Tensor, keys: Sequence[Tensor], options: Options) -> QueryAxes:
    return axes_of(
        query.shape[0],
        query.shape[2],
        [key.shape[2] for key in keys],
        causal=options.causal,
        window=options.window,
        key_lengths=options.key_lengths,
        cu_seqlens=options.cu_seqlens,
        query_positions=options.query_positions,
    )


def mask_argument(
    mask: Tensor | None, query: Tensor, keys: Sequence[Tensor], axes: QueryAxes
) -> tuple[int, Tensor | None, tuple[int, ...]]:
    """(kind, mask as uint8 or fp32, strides of batch, head, query and the axes in working
    order)."""
    order = len(keys)
    if mask is None:
        return tuple_terms.NO_MASK.value, None, (0,) * (3 + order)
    if mask.dtype == torch.bool:
        kind, mask = tuple_terms.BOOL_MASK.value, mask.view(torch.uint8)
    else:
        kind, mask = tuple_terms.FLOAT_MASK.value, mask.detach().to(torch.float32)
    mask = mask.expand(*query.shape[:3], *(key.shape[2] for key in keys))
    steps = mask.stride()
    return kind, mask, (*steps[:3], *axes.sort(steps[3:]))


def dropout_arguments(options: Options) -> dict[str, int | float]:
    """What kernels take of the dropout: see tuple_terms."""
    p = options.dropout_p
    if not p:
        return {"seed_low": 0, "seed_high": 0, "threshold": 0, "keep_scale": 1.0}
    x = (options.seed + 0x9E3779B97F4A7C15) & _MASK_64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK_64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK_64
    x ^= x >> 31

    def half(bits: int) -> int:
        return bits - 2**32 if bits >= 2**31 else bits

    return {
        "seed_low": half(x & 0xFFFFFFFF),
        "seed_high": half(x >> 32),
        "threshold": int(p * 4294967296.0),
        "keep_scale": 1.0 / (1.0 - p),
    }


def term_arguments(
    query: Tensor, keys: Sequence[Tensor], options: Options, axes: QueryAxes
) -> dict[str, object]:
    """The arguments of a kernel that stand for options: those of ``attention_forward_kernel`` from
    ``bounds`` to ``sink``, ``mask_strides``, the dropout's, and the flags."""
    unused = query
    kind, mask, mask_strides = mask_argument(options.mask, query, keys, axes)
    masks: list[Tensor] = []
    if options.key_masks is not None:
        masks = [x.contiguous().view(torch.uint8) for x in axes.sort(options.key_masks)]
    sink = options.sink if options.normalizer == "softmax_sink" else None
    normalizers = {"sigmoid": tuple_terms.SIGMOID, "relu": tuple_terms.RELU}
    distinct = {"axes": tuple_terms.OTHER_AXES, "with_query": tuple_terms.OTHER_THAN_QUERY}
    return {
        "bounds": axes.bounds if axes.bounds is not None else unused,
        "positions": axes.positions if axes.positions is not None else unused,
        "lead_masks": tuple(masks[:-1]) if masks else (unused,) * (len(keys) - 1),
        "k_mask": masks[-1] if masks else unused,
        "mask": mask if mask is not None else unused,
        "sink": sink.detach().to(torch.float32).contiguous() if sink is not None else unused,
        "mask_strides": mask_strides,
        **dropout_arguments(options),
        "CALLERS": axes.order,
        "TABLE": axes.bounds is not None,
        "POSITIONS": axes.positions is not None,
        "KEY_MASKS": bool(masks),
        "MASK": kind,
        "SINK": sink is not None,
        "DISTINCT": distinct.get(options.distinct, tuple_terms.ANY_KEYS).value,
        "DROPOUT": options.dropout_p > 0,
        "NORMALIZER": normalizers.get(options.normalizer, tuple_terms.SOFTMAX).value,
        "SUM": options.reduce == "sum" and len(keys) > 1,
    }


def _launch(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    options: Options,
    known_lse: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """(out, lse), or with known lse (anything, states)."""
    query = with_rows(query)
    keys, values = [with_rows(x) for x in keys], [with_rows(x) for x in values]
    batch, heads, queries, dim = query.shape
    kv_heads, value_dim = keys[0].shape[1], values[0].shape[3]
    axes = _axes(query, keys, options)
    sizes = plan(query, keys, values, axes)
    measuring = known_lse is not None
    if not measuring and batch * heads * queries and _by_heads(query, keys, values, options, sizes):
        return attention_heads.forward_heads(query, keys, values, options, axes)
    terms = term_arguments(query, keys, options, axes)
    splits = 1 if measuring else sizes.splits
    fp32 = {"dtype": torch.float32, "device": query.device}
    out = query if measuring else empty_in_order(query, value_dim)
    lse = torch.empty(batch, heads, queries, **fp32)
    if batch * heads * queries == 0:
        return out, lse.expand(3, -1, -1, -1) if measuring else lse
    if measuring:
        states_out = torch.empty(3, batch, heads, queries, **fp32)
        target, statistics = out, states_out
    elif splits > 1:
        target = torch.empty(splits, batch, heads, queries, value_dim, **fp32)
        statistics = torch.empty(splits, 3, batch, heads, queries, **fp32)
    else:
        target, statistics = out, lse
    ks, vs = axes.sort(keys), axes.sort(values)
    lead, last = axes.axes[:-1], axes.axes[-1]
    group = heads // kv_heads
    head_blocks = -(-group // sizes.heads)
    grid = (
        -(-queries // sizes.queries) * head_blocks,
        batch * kv_heads,
        splits,
    )
    kernels.attention_forward_kernel[grid](
        q=query,
        lead_k=tuple(ks[:-1]),
        lead_v=tuple(vs[:-1]),
        k=ks[-1],
        v=vs[-1],
        out=target,
        lse=statistics,
        known_lse=known_lse if measuring else lse,
        q_strides=strides(query),
        lead_k_strides=tuple(strides(x) for x in ks[:-1]),
        lead_v_strides=tuple(strides(x) for x in vs[:-1]),
        k_strides=strides(ks[-1]),
        v_strides=strides(vs[-1]),
        out_strides=strides(out),
        lead_axes=tuple((a.length, a.low, a.high, max(1, a.most)) for a in lead),
        length=last.length,
        low=last.low,
        high=last.high,
        batches=batch,
        queries=queries,
        group=group,
        kv_heads=kv_heads,
        head_blocks=head_blocks,
        tuples=math.prod(axis.most for axis in lead),
        chunk_splits=1 if splits == 1 else sizes.chunk_splits,
        inner_splits=1 if splits == 1 else sizes.inner_splits,
        # Excluded logits are -inf, which times 0 were NaN.
        logit_scale=float(options.logit_scale) or 1e-30,
        output_scale=float(options.output_scale),
        ORDER=len(keys),
        D=dim,
        DV=value_dim,
        DP=max(16, power_of_two(dim)),
        DVP=max(16, power_of_two(value_dim)),
        BQ=sizes.queries,
        BH=sizes.heads,
        BJ=sizes.tuples,
        BN=sizes.tiles.inner,
        SPLIT=splits > 1,
        STATES=measuring,
        PRECISION=precision(query.dtype),
        **terms,
        **launch_options(query.device, sizes.tiles),
    )
    if measuring:
        return out, states_out
    if splits > 1:
        merge.attention_forward_merge[(-(-queries // 16), batch * heads)](
            parts=target,
            states=statistics,
            out=out,
            lse=lse,
            sink=terms["sink"],
            out_strides=strides(out),
            heads=heads,
            queries=queries,
            splits=splits,
            plane=batch * heads * queries,
            output_scale=float(options.output_scale),
            DV=value_dim,
            DVP=max(16, power_of_two(value_dim)),
            BQ=16,
            SINK=terms["SINK"],
            ADDED=terms["MASK"] == tuple_terms.FLOAT_MASK.value,
            NORMALIZER=terms["NORMALIZER"],
        )
    return out, lse


def forward(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], options: Options
) -> tuple[Tensor, Tensor]:
    """Dense attention in the product form: (out, lse) of the operator ``nsimplex::attention``.

    Shapes: query [B, Hq, Tq, D], keys [B, Hk, T_m, D] and values [B, Hk, T_m, Dv] for each of
    1 <= N <= 4 axes, D and Dv at most 256; fp32, bf16 or fp16. The arguments have been checked.
    Complexity: 2 (D + Dv) flops for every query, head and tuple, and :func:`forward_workspace`
        bytes of memory besides the results.
    """
    return _launch(query, keys, values, options, None)


def states(query: Tensor, keys: Sequence[Tensor], options: Options, lse: Tensor) -> Tensor:
    """The softmax state of the rows with a large lse: fp32 [3, B, Hq, Tq] of base, maximum and
    logarithm of the sum.

    A tuple with the logit s + mask has the weight exp2((mask - base + s) log2(e) - maximum)
    exp(-log of the sum); base is 0 without a float mask. Rows whose lse is at most 256 in size
    have base 0, maximum lse log2(e) and logarithm 0. A program without a large row ends at once,
    and nothing is read back.
    """
    return _launch(query, keys, keys, options, lse.contiguous())[1]


def _by_heads(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], options: Options, sizes: Plan
) -> bool:
    """Whether the kernel for many heads per key head takes a call; it splits no query."""
    return sizes.splits == 1 and attention_heads.applies(query, keys, values, options)


def forward_workspace(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], options: Options
) -> int:
    """Bytes that :func:`forward` allocates besides its results: parts of split queries, of which
    there are at most MOST_SPLITS where a launch would have fewer than FEW_PROGRAMS / 2 programs,
    and a table of bounds."""
    batch, heads, queries, _ = query.shape
    axes = _axes(query, keys, options)
    splits = plan(query, keys, values, axes).splits
    table = 0 if axes.bounds is None else axes.bounds.numel() * 4
    if splits == 1:
        return table
    return table + 4 * splits * batch * heads * queries * (values[0].shape[3] + 3)
