"""Checks of the options of an attention layer, at construction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._arguments import describe
from .checks import (
    MOST_AXES,
    require,
    require_name,
    require_positive,
    require_scale,
    require_whole,
    require_window,
)
from .select import Linear, Path, Select, Sinks, TopK, Window, part_of

DEFAULT_ORDER = 2
LEARNED = ("mlp", "mlp_symmetric")  # reducers with weights


def check_heads(at: str, dim: int, heads: int, kv_heads: int, head_dim: int) -> tuple[int, int]:
    """(kv_heads, head_dim) with their defaults."""
    require_whole(at, dim=dim, heads=heads)
    require_whole(at, least=0, head_dim=head_dim, kv_heads=kv_heads)
    if head_dim == 0:
        require(dim % heads == 0, f"{at}heads: expected a divisor of dim {dim}, got {heads}")
        head_dim = dim // heads
    kv_heads = kv_heads or heads
    require(
        heads % kv_heads == 0,
        f"{at}kv_heads: expected a divisor of heads {heads}, got {kv_heads}",
    )
    return kv_heads, head_dim


def check_orders(at: str, orders: Any, heads: int, kv_heads: int, options: dict) -> list[int]:
    """The orders of the heads; the heads of one key head have one order."""
    require(
        isinstance(orders, Sequence) and not isinstance(orders, (str, bytes)),
        f"{at}orders: expected one order for each of {heads} heads, got {describe(orders)}",
    )
    for order in orders:
        require_whole(at, most=MOST_AXES, orders=order)
    require(
        len(orders) == heads,
        f"{at}orders: expected one order for each of {heads} heads, got {len(orders)}",
    )
    shared = heads // kv_heads
    for first in range(0, heads, shared):
        same = set(orders[first : first + shared])
        require(
            len(same) == 1,
            f"{at}orders: expected one order for the {shared} heads of a key head, got "
            f"{sorted(same)}",
        )
    require(
        not options["context_dims"],
        f"{at}context_dims: expected none beside orders, got {len(options['context_dims'])}",
    )
    listed: list[int] = list(orders)
    order, form = options["order"], options["form"]
    require(
        order in (DEFAULT_ORDER, max(listed)),
        f"{at}order: expected none beside orders, got {order}",
    )
    turns = options["allow_non_invariant"] or any(rotary_is_relative(n, form) for n in listed)
    require(
        not options["rotary"] or turns,
        f"{at}rotary: expected an order of 1 or form determinant, or allow_non_invariant, got "
        f"orders {listed}, none of which would rotate",
    )
    return listed


def check_layer(at: str, head_dim: int, o: dict) -> None:
    """Check the options of a layer of one order by name."""
    name = at[1:].split("]")[0]
    require_whole(at, most=MOST_AXES, order=o["order"])
    order, select, contexts = o["order"], o["select"], o["context_dims"]
    require(
        isinstance(contexts, Sequence) and not isinstance(contexts, (str, bytes)),
        f"{at}context_dims: expected a list of integers, got {describe(contexts)}",
    )
    require(
        len(contexts) in (0, order),
        f"{at}context_dims: expected 0 or {order} entries, got {len(contexts)}",
    )
    for width in contexts:
        require_whole(at, context_dims=width)
    require_name(at, "norm", o["norm"], ("none", "qk", "qkv"))
    require_name(at, "form", o["form"], ("product", "determinant"))
    reducers: tuple[str, ...] = ("product", "sum", "mean")
    if select is not None and not isinstance(select, Linear):
        reducers += LEARNED
    if isinstance(o["reduce"], str) and o["reduce"] in LEARNED:
        require(
            o["reduce"] in reducers,
            f"{at}reduce: expected product, sum or mean, got {o['reduce']!r}, which needs select "
            "TopK, Path, Neighbours or Union",
        )
    require_name(at, "reduce", o["reduce"], reducers)
    require_scale(at, o["scale"])
    require_window(name, o["window"], order)
    require_positive(at, rotary_base=o["rotary_base"])
    if o["softcap"] is not None:
        require_positive(at, softcap=o["softcap"])
    normalizers = ("softmax", "softmax_sink", "sigmoid", "relu")
    require_name(at, "normalizer", o["normalizer"], normalizers)
    require_name(at, "distinct", o["distinct"], ("none", "axes", "with_query"))
    share = o["dropout"]
    fits = isinstance(share, (int, float)) and not isinstance(share, bool) and 0 <= share < 1
    require(fits, f"{at}dropout: expected a share in [0, 1), got {describe(share)}")
    check_augment(at, o)
    require(
        o["form"] == "product" or head_dim % (order + 1) == 0,
        f"{at}head_dim: expected a multiple of order + 1 = {order + 1} for form determinant, "
        f"got {head_dim}",
    )
    _check_rotary(at, head_dim, o)
    if o["face"]:
        _refuse(at, o, "beside face", normalizer="softmax", augment=None)
    _check_select(at, o)


def check_augment(at: str, o: dict) -> None:
    """Axes of ``o["order"]``, each once."""
    augment, order = o["augment"], o["order"]
    if augment is None or isinstance(augment, bool):
        axes: Sequence[int] = range(1, order) if augment else ()
    else:
        listed = isinstance(augment, Sequence) and not isinstance(augment, (str, bytes))
        require(
            listed, f"{at}augment: expected True, False or a list of axes, got {describe(augment)}"
        )
        for axis in augment:
            require_whole(at, 0, order - 1, augment=axis)
        axes = augment
        require(
            len(set(axes)) == len(axes), f"{at}augment: expected each axis once, got {list(axes)}"
        )
    require(
        not axes or o["form"] == "product",
        f"{at}augment: expected none with form determinant, got {augment}",
    )


def rotary_is_relative(order: int, form: str) -> bool:
    """Whether the logits of turned queries and keys depend on differences of positions alone."""
    return order == 1 or form == "determinant"


def _check_rotary(at: str, head_dim: int, o: dict) -> None:
    if not o["rotary"]:
        return
    order, form = o["order"], o["form"]
    require(not o["context_dims"], f"{at}rotary: positions of different contexts do not compare")
    require(
        rotary_is_relative(order, form) or o["allow_non_invariant"],
        f"{at}rotary: form product of order {order} does not depend on relative positions "
        "alone; set allow_non_invariant to use it all the same",
    )
    require(
        head_dim % 2 == 0 or form == "determinant",
        f"{at}rotary: expected an even head_dim, got {head_dim}",
    )


def _refuse(at: str, o: dict, why: str, **only: object) -> None:
    """Check that options have the one value that ``why`` leaves them."""
    for name, value in only.items():
        given = o[name]
        fits = not given if not value else given == value
        if fits:
            continue
        wanted = value if value else "none"
        require(False, f"{at}{name}: expected {wanted} {why}, got {_shown(given)}")


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, (str, list, tuple)) else describe(value)


def _check_select(at: str, o: dict) -> None:
    select, order = o["select"], o["order"]
    if select is None:
        return
    require(
        isinstance(select, Select),
        f"{at}select: expected None or a selection as TopK(k), got {describe(select)}",
    )
    kind = type(select).__name__
    require(
        not isinstance(select, (Window, Sinks)),
        f"{at}select: {kind} is a part of Union; by itself, use the argument window",
    )
    if isinstance(select, Linear):
        # The messages of SeparableAttention, whose options these are too.
        for name in ("form", "reduce"):
            require(
                o[name] == "product",
                f"{at}{name}: expected product, the one that separates, got {o[name]!r}",
            )
    count = len(o["context_dims"])
    require(not count, f"{at}context_dims: expected none beside select {kind}, got {count}")
    why = f"beside select {kind}"
    _refuse(at, o, why, face=False, augment=None, softcap=None, dropout=0.0)
    require(o["distinct"] == "none", f"{at}distinct: expected none {why}, got {o['distinct']!r}")
    if isinstance(select, Linear):
        _refuse(at, o, why, normalizer="softmax")
        return
    require(
        o["normalizer"] in ("softmax", "softmax_sink"),
        f"{at}normalizer: expected softmax or softmax_sink {why}, got {o['normalizer']!r}",
    )
    require(
        o["window"] is None,
        f"{at}window: expected none beside chosen keys, got {o['window']}; a Union with Window "
        "has both",
    )
    require(
        o["reduce"] not in LEARNED or o["scale"] != "unit",
        f"{at}scale: expected standard or numbers with reduce {o['reduce']!r}, got 'unit'",
    )
    best = part_of(select, TopK)
    if best is not None and not isinstance(best.k, int):
        require(
            len(best.k) == order,
            f"{at}select: expected a k for each of {order} axes, got {len(best.k)}",
        )


def indexer_options(at: str, select: Select | None, known: Mapping) -> dict | None:
    """The arguments of the layer's indexer; None for a selection without one."""
    part = part_of(select, TopK, Path)
    if part is None:
        return None
    options = dict(part.indexer or {})
    for name in options:
        require(name in known, f"{at}indexer: expected arguments of Indexer, got {name!r}")
    if options.get("source") == "reuse":
        options["learned"] = part.loss > 0
    return options
