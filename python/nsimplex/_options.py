"""Options of attention as operators take them, and the call of an operator that takes them."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypedDict

import torch
from torch import Tensor

from ._arguments import describe, learned_words
from ._choices import (
    Distinct,
    FeatureName,
    Form,
    LearnedReduce,
    Normalizer,
    Pattern,
    Reduce,
    ScaleName,
    Scores,
)
from ._hints import is_learned
from ._layout import Layout, heads_first, in_layout
from ._library import classes, operators

__all__ = [
    "DEFAULTS",
    "TAKEN",
    "AttentionOptions",
    "FeatureMap",
    "FixedCacheOptions",
    "RingCacheOptions",
    "Scale",
    "SelectionOptions",
    "SeparableOptions",
    "ShardOptions",
    "ShardSelectionOptions",
    "SparseOptions",
    "TupleOptions",
    "Window",
    "computed_by",
    "flat_window",
    "operator_options",
    "options_set",
    "scales",
    "taken",
    "unhandled",
]

Window = int | Sequence[int | tuple[int, int]] | None
FeatureMap = FeatureName | Callable[[Tensor], Tensor] | None
Scale = ScaleName | float | tuple[float, float]


#: The default of every option of attention, of the operator and of :func:`nsimplex.attention`.
DEFAULTS: dict[str, Any] = {
    each.name: each.default_value
    for each in operators.attention.default._schema.arguments
    if each.kwarg_only
} | {"scale": "standard", "layout": "bhtd"}

#: The options that a path takes, from the list in src/attention/common/attention_call.h.
TAKEN: dict[str, frozenset[str]] = {
    path: frozenset([*classes.AttentionPaths.options(path), "scale"])
    for path in ("triton", "ring", "slots", "shards", "around", "layer")
} | {"model": frozenset()}  # a model of Transformers has names of its own


def unhandled(path: str, given: Mapping[str, Any]) -> str | None:
    """The first option that is set, that is, other than its default, and that a path does not
    take."""
    return next((name for name in options_set(given) if name not in TAKEN[path]), None)


def options_set(given: Mapping[str, Any]) -> list[str]:
    """The options that are other than their defaults."""
    return [n for n, value in given.items() if n in DEFAULTS and _is_set(value, DEFAULTS[n])]


def _is_set(value: Any, default: Any) -> bool:
    if value is None or isinstance(value, Tensor):
        return value is not None
    if default is None:  # which an empty list, or False for a list of axes, is like
        return value is not False and value not in ([], ())
    return value != default


def taken(
    path: str, function: str, given: Mapping[str, Any], why: str, own: Collection[str] = ()
) -> dict[str, Any]:
    """The given options without those that a path does not take.

    Raises:
        ValueError: such an option that is set, or one of the path's ``own``.
    """
    for name in given:
        if name in own:
            raise ValueError(f"[{function}] {name}: belongs to the cache")
    other = unhandled(path, given)
    if other is not None:
        raise ValueError(
            f"[{function}] {other}: expected {DEFAULTS[other]!r} {why}, got "
            f"{describe(given[other])}"
        )
    return {n: value for n, value in given.items() if n not in DEFAULTS or n in TAKEN[path]}


class _Formula(TypedDict, total=False):
    """Options of attention that say what is computed of a tuple."""

    form: Form
    reduce: Reduce
    normalizer: Normalizer
    scale: Scale
    softcap: float | None
    sink: Tensor | None
    seed: int | None
    order_bias: Tensor | None


class _Masks(TypedDict, total=False):
    """Options of attention that leave tuples out and do not depend on a sequence's windows."""

    key_lengths: Tensor | None
    key_masks: Sequence[Tensor] | None
    mask: Tensor | None
    distinct: Distinct
    dropout_p: float


class TupleOptions(_Formula, _Masks, total=False):
    """The options of :func:`nsimplex.attention` without ``augment``."""

    causal: bool
    window: Window
    cu_seqlens: Tensor | None
    query_positions: Tensor | None
    alibi_slopes: Tensor | None
    pair_masks: Sequence[Tensor] | None


class AttentionOptions(TupleOptions, total=False):
    """The options of :func:`nsimplex.attention`, for functions that pass them on. Type checkers
    read this class; a test compares it with the signature."""

    augment: bool | Sequence[int] | None


class RingCacheOptions(_Formula, total=False):
    """The options of :func:`nsimplex.attention` that a cache of rings takes."""

    alibi_slopes: Tensor | None
    augment: bool | Sequence[int] | None


class FixedCacheOptions(_Formula, _Masks, total=False):
    """The options of :func:`nsimplex.attention` that a cache of fixed size takes."""

    alibi_slopes: Tensor | None
    augment: bool | Sequence[int] | None


class ShardOptions(_Formula, total=False):
    """The options of :func:`nsimplex.attention` that shards of a sequence pass on."""

    augment: bool | Sequence[int] | None
    dropout_p: float


class SparseOptions(TypedDict, total=False):
    """The options of :func:`nsimplex.sparse_attention`, for functions that pass them on."""

    pattern: Pattern
    form: Form
    reduce: LearnedReduce
    reducer_weights: Sequence[Tensor] | None
    scale: Scale


class SeparableOptions(TypedDict, total=False):
    """The options of :func:`nsimplex.separable_attention`, for functions that pass them on."""

    features: FeatureMap
    causal: bool
    window: Window


class SelectionOptions(TypedDict, total=False):
    """The options of :func:`nsimplex.topk_keys`, for functions that pass them on."""

    weights: Tensor | None
    scores: Scores
    causal: bool
    scale: float | None
    lse: Tensor | None
    key_lengths: Tensor | None
    adjacency: Tensor | None
    candidates: Tensor | None


class ShardSelectionOptions(TypedDict, total=False):
    """The options of :func:`nsimplex.topk_keys` that shards of a sequence pass on."""

    weights: Tensor | None
    scores: Scores
    scale: float | None
    lse: Tensor | None
    return_scores: bool


def computed_by(operator: Callable, function: str) -> Callable:
    """What calls an operator that takes the arguments of :func:`nsimplex.attention`, under the name
    of a function."""

    def compute(
        query: Tensor,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        *,
        return_lse: bool = False,
        layout: Layout = "bhtd",
        **options: Any,
    ) -> Tensor | tuple[Tensor, Tensor]:
        query, keys, values = heads_first(function, layout, query, keys, values)
        out, lse = operator(query, keys, values, **operator_options(query, keys, values, **options))
        out = in_layout(layout, out)
        return (out, lse) if return_lse else out

    return compute


def operator_options(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    *,
    window: Window = None,
    reduce: str = "product",
    scale: Scale = "standard",
    augment: bool | Sequence[int] | None = None,
    seed: int | None = None,
    **as_they_are: Any,
) -> dict[str, Any]:
    """The operator's keyword arguments: windows are flattened, scales are computed, a seed is
    drawn.

    Only options that change on their way to the operator are named here; the signature of
    :func:`nsimplex.attention` declares all of them, and the operator has the same defaults.
    """
    logit_scale, output_scale = scales(scale, query, values, reduce)
    if seed is None and as_they_are.get("dropout_p", 0) > 0:
        seed = _drawn_seed()
    if isinstance(augment, bool):
        augment = range(1, len(keys)) if augment else ()
    return as_they_are | {
        "augment": list(augment) if augment else None,
        "window": flat_window(window, len(keys)),
        "reduce": reduce,
        "logit_scale": logit_scale,
        "output_scale": output_scale,
        "seed": seed,
    }


def _drawn_seed() -> Any:
    try:
        return torch.randint(2**63 - 1, ()).item()  # int() would fix it in exported code
    except RuntimeError as error:
        if not str(error).startswith("vmap"):
            raise
    raise ValueError(
        "[attention] seed: expected an integer with dropout under vmap, or its option "
        "randomness='same', got None"
    )


def _is_int(value: object) -> bool:
    return isinstance(value, (int, torch.SymInt)) and not isinstance(value, bool)


def _plain(value: Any) -> Any:
    """An integer of NumPy as one of Python."""
    of_numpy = isinstance(value, numbers.Integral) and not isinstance(value, int)
    return int(value) if of_numpy else value


def flat_window(window: Window, order: int, function: str = "attention") -> list[int] | None:
    """The operator's flat list left_1, right_1, left_2, ..."""
    if window is None:
        return None
    entries: list[Any]
    window = _plain(window)
    if _is_int(window):
        entries = [window] * order
    elif isinstance(window, (list, tuple)):
        entries = [*window]
        if len(entries) != order:
            raise ValueError(
                f"[{function}] window: expected one entry for each of {order} axes, got "
                f"{len(entries)} "
                "(an entry is an int or a (left, right) pair: one axis is window=[(left, right)])"
            )
    else:
        raise TypeError(
            f"[{function}] window: expected None, an int or a sequence, got {describe(window)}"
        )
    flat: list[int] = []
    for axis, each in enumerate(entries):
        sides = isinstance(each, (list, tuple))
        entry: Any = [*map(_plain, each)] if sides else _plain(each)
        if _is_int(entry):
            # A plain conditional would guard on a length that export keeps dynamic.
            unbounded = isinstance(entry, int) and entry == -1
            flat += (-1, -1) if unbounded else (entry, 0)
        elif isinstance(entry, (list, tuple)) and len(entry) == 2 and all(map(_is_int, entry)):
            flat += entry
        else:
            raise TypeError(
                f"[{function}] window[{axis}]: expected an int or a (left, right) pair, got "
                f"{describe(each)}"
            )
    return flat


def scales(
    scale: Scale,
    query: Tensor,
    values: Sequence[Tensor],
    reduce: str,
    function: str = "attention",
) -> tuple[float | None, float | None]:
    """(s1, s2); None means the operator's defaults, which are the standard scales."""
    if scale == "standard":
        return None, None
    if scale == "unit":
        order = len(values)
        logit = query.size(-1) ** (-0.5 * (order + 1))
        if reduce == "product":
            return logit, (values[0].size(-1) ** (-0.5 * (order - 1)) if order > 1 else 1.0)
        return logit, (1.0 / order if reduce == "sum" else 1.0)
    if isinstance(scale, (list, tuple)):
        if len(scale) != 2:
            raise ValueError(f"[{function}] scale: expected (s1, s2), got {len(scale)} numbers")
        return _factor(function, scale[0]), _factor(function, scale[1])
    return _factor(function, scale), None


def _factor(function: str, value: Any) -> float:
    """A number of the argument scale."""
    if isinstance(value, Tensor) and is_learned(value):
        raise TypeError(
            f"[{function}] scale: expected numbers, got {learned_words(value)}; multiply the query "
            "or the result by it"
        )
    try:
        number = float(value) if not isinstance(value, str) else None
    except (TypeError, ValueError):
        number = None
    if number is None:
        raise ValueError(
            f"[{function}] scale: expected 'standard', 'unit', a number or a pair, got "
            f"{describe(value)}"
        )
    # math.isfinite() does not accept the numbers with which torch.compile traces.
    if number - number != 0:
        raise ValueError(f"[{function}] scale: expected a finite number, got {number}")
    return number
