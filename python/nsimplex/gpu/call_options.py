"""Options of a call of dense attention, and what the kernels take of them."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from .._options import DEFAULTS, TAKEN
from . import tuple_terms
from .axes import QueryAxes, axes_of

__all__ = ["Options", "axes_of_call", "normalizer_code", "sink_argument", "term_arguments"]

_MASK_64 = 2**64 - 1


#: The options that the kernels take. The form is that of the product: a determinant is expanded.
#: Masks of pairs and ALiBi come as one mask of tuples.
_DEFAULTS: dict[str, Any] = {
    name: DEFAULTS[name]
    for name in TAKEN["triton"]
    if name not in ("scale", "form", "pair_masks", "alibi_slopes")
} | {"logit_scale": 1.0, "output_scale": 1.0, "seed": 0}


class Options(SimpleNamespace):
    """Options of a call in the product form, under the names of the operator.

    ``window`` is the operator's flat list, both scales are numbers, ``reduce`` is "product" or
    "sum" (a mean is a sum whose output scale has 1 / N in it), and ``seed`` is drawn.
    """

    def __init__(self, **given: Any) -> None:
        if not given.keys() <= _DEFAULTS.keys():
            raise TypeError(f"[Options] {min(given.keys() - _DEFAULTS)}: expected an option")
        super().__init__(**_DEFAULTS | given)

    @classmethod
    def of_call(cls, query: Tensor, keys: Sequence[Tensor], given: dict[str, Any]) -> Options:
        """The options of a call of the operator."""
        known = {n: value for n, value in given.items() if n in _DEFAULTS and value is not None}
        options = cls(**{"logit_scale": query.shape[3] ** -0.5} | known)
        if options.reduce == "mean":
            options.reduce = "sum"
            options.output_scale /= len(keys)
        return options


def axes_of_call(query: Tensor, keys: Sequence[Tensor], options: Options) -> QueryAxes:
    """The axes of a call with these options."""
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


def normalizer_code(options: Options) -> int:
    """The kernels' number of a normalizer."""
    codes = {"sigmoid": tuple_terms.SIGMOID, "relu": tuple_terms.RELU}
    return codes.get(options.normalizer, tuple_terms.SOFTMAX).value


def softcap_argument(options: Options) -> float:
    """The cap of products of channels, from which the kernels know no scale yet; 0: none."""
    scale = abs(options.logit_scale)
    return options.softcap / scale if options.softcap is not None and scale > 0 else 0.0


def sink_argument(options: Options) -> Tensor | None:
    """The sink in fp32, if the normalizer has one."""
    if options.normalizer != "softmax_sink":
        return None
    assert options.sink is not None  # checked by the operator
    return options.sink.detach().to(torch.float32).contiguous()


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
        kind, mask = tuple_terms.FLOAT_MASK.value, _in_float32(mask.detach())
    mask = mask.expand(*query.shape[:3], *(key.shape[2] for key in keys))
    steps = mask.stride()
    return kind, mask, (*steps[:3], *axes.sort(steps[3:]))


def _in_float32(mask: Tensor) -> Tensor:
    """The mask in fp32, in which a finite number of any size stays finite: only -inf excludes a
    tuple."""
    if mask.dtype == torch.float64:
        largest = torch.finfo(torch.float32).max
        mask = torch.where(mask.isinf(), mask, mask.clamp(-largest, largest))
    return mask.to(torch.float32)


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
    sink = sink_argument(options)
    distinct = {"axes": tuple_terms.OTHER_AXES, "with_query": tuple_terms.OTHER_THAN_QUERY}
    return {
        "bounds": axes.bounds if axes.bounds is not None else unused,
        "positions": axes.positions if axes.positions is not None else unused,
        "lead_masks": tuple(masks[:-1]) if masks else (unused,) * (len(keys) - 1),
        "k_mask": masks[-1] if masks else unused,
        "mask": mask if mask is not None else unused,
        "sink": sink if sink is not None else unused,
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
        "NORMALIZER": normalizer_code(options),
        "SUM": options.reduce == "sum" and len(keys) > 1,
        "CAP": softcap_argument(options),
    }
