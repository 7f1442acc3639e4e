"""Options of a language model, and how a checkpoint's header spells them."""

from __future__ import annotations

import dataclasses
import math
import re
import typing
from collections.abc import Callable, Sequence
from decimal import Decimal
from types import NoneType
from typing import Any, NamedTuple

from .._arguments import checked_methods, describe
from .._choices import (
    Activation,
    Distinct,
    Form,
    IndexerSource,
    LanguageSelection,
    LearnedReduce,
    Norm,
    Normalizer,
    ScaleName,
    Scores,
)
from .._printable import printable
from .attention_options import LayerOptions
from .checks import MOST_AXES, require, require_name, require_positive, require_whole
from .select import Linear, Path, Select, Sinks, TopK, Union, Window

__all__ = ["MOST_HIDDEN", "SIZES", "LanguageModelOptions"]

_MOST, _MOST_WIDTH = 2**31, 2**20
#: The least and the most of every size: those of the C++ library, with which a test compares them.
SIZES = dict(
    vocabulary=(1, _MOST),
    layers=(1, 2**16),
    heads=(1, _MOST_WIDTH),
    kv_heads=(0, _MOST_WIDTH),
    dim=(1, _MOST_WIDTH),
    context=(1, _MOST),
    order=(1, MOST_AXES),
    every=(0, _MOST),
    topk=(1, _MOST),
    sinks=(1, _MOST),
    head_dim=(0, _MOST_WIDTH),
)
MOST_HIDDEN = 64 * _MOST_WIDTH  # channels within an MLP


@checked_methods
@dataclasses.dataclass
class LanguageModelOptions:
    """Shape of a :class:`LanguageModel`. Fields and defaults match
    nsimplex::LanguageModelOptions. A checkpoint of version 0.1 has no fields after ``tied``, and
    gets their defaults.

    ``kv_heads``, ``head_dim``, ``norm``, ``bias`` and ``rotary_base`` hold for all attention
    layers. ``order``, ``orders``, ``window``, ``scale``, ``form``, ``rotary``, ``normalizer``,
    ``augment``, ``dropout``, ``reduce``, ``face``, ``distinct``, ``softcap`` and ``unit_layer`` are
    those of :class:`SimplicialAttention`, for the simplicial layers. ``sparse`` is their
    ``select``: "topk" is :class:`TopK`, "path" is :class:`Path`, "linear" is :class:`Linear`, and
    "window+sinks+topk" is ``Window(..) | Sinks(sinks) | TopK(topk)``, with a window of one entry.
    """

    __slots__ = ("__dict__", "__weakref__", "_of_model")

    vocabulary: int = 256
    layers: int = 4
    heads: int = 4
    kv_heads: int = 0
    dim: int = 128
    context: int = 64
    order: int = 2
    every: int = 4
    window: Sequence = (16, 256)
    sparse: LanguageSelection = "window"
    topk: int = 64
    indexer: IndexerSource = "reuse"
    indexer_scores: Scores = "softmax"
    indexer_loss: float = 0.0
    norm: Norm = "none"
    scale: ScaleName = "standard"
    mlp: Activation = "swiglu"
    mlp_ratio: float = 0.0
    tied: bool = True
    form: Form = "product"
    rotary: bool = False
    normalizer: Normalizer = "softmax"
    augment: bool = False
    dropout: float = 0.0
    orders: Sequence[int] | None = None
    sinks: int = 1
    reduce: LearnedReduce = "product"
    face: bool = False
    distinct: Distinct = "none"
    softcap: float | None = None
    unit_layer: bool = False
    head_dim: int = 0
    bias: bool = False
    rotary_base: float = 10000.0

    def __setattr__(self, name: str, value: Any) -> None:
        known = name in self.__dataclass_fields__ or name in self.__slots__
        require(known, f"[LanguageModelOptions] {name}: no such option")
        require(
            not hasattr(self, "_of_model"),
            f"[LanguageModel] options.{name}: expected the option that the model was made with, "
            f"got {describe(value)}; make a new model",
        )
        super().__setattr__(name, value)

    def of_model(self) -> LanguageModelOptions:
        """A copy that does not change any more, because a model reads its options once."""
        own = dataclasses.replace(self)
        own._of_model = True
        return own

    @classmethod
    def from_map(cls, fields: dict[str, str]) -> LanguageModelOptions:
        """Read the output of the C++ library's to_map, which a checkpoint's header stores."""
        at, types = "[LanguageModel] ", typing.get_type_hints(cls)
        for name in fields:
            require(name in cls.__dataclass_fields__, f"{at}{name}: no such option")
        return cls(**{name: _parsed(name, text, types[name]) for name, text in fields.items()})

    def to_map(self) -> dict[str, str]:
        """The options as texts, which :meth:`from_map` reads, here and in the C++ library."""
        return {name: _text(name, getattr(self, name)) for name in self.__dataclass_fields__}


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return _shortest(value)
    if name == "window":
        entries = (each if isinstance(each, (list, tuple)) else (each, 0) for each in value)
        return ",".join(f"{left}:{right}" for left, right in entries)
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _shortest(number: float) -> str:
    """As std::to_chars: the shorter one of 0.0001 and 1e-04, and the former if they are as long."""
    exact = Decimal(repr(number)).normalize()
    _, digits, _ = exact.as_tuple()
    fixed, more = f"{exact:f}", "".join(map(str, digits[1:]))
    sign = "-" if exact < 0 else ""
    power = f"{sign}{digits[0]}{'.' * bool(more)}{more}e{exact.adjusted():+03d}"
    return fixed if len(fixed) <= len(power) else power


# As the C++ library writes them: other texts, which Python would read, it refuses.
_INTEGER = "(?:0|-?[1-9][0-9]{0,17})"
_WHOLE, _REAL = re.compile(_INTEGER), re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")
_WINDOWS = re.compile(f"({_INTEGER}:{_INTEGER}(,(?!$)|$))*")
_NUMBERS = re.compile(f"({_INTEGER}(,(?!$)|$))*")


class _Text(NamedTuple):
    """How values of a type are written."""

    expected: str
    fits: Callable[[str], Any]
    value: Callable[[str], Any]


def _is_finite(text: str) -> bool:
    return bool(_REAL.fullmatch(text)) and math.isfinite(float(text))


_TEXTS: dict[Any, _Text] = {
    int: _Text("an integer", _WHOLE.fullmatch, int),
    float: _Text("a finite number", _is_finite, float),
    float | None: _Text(
        "a finite number or nothing",
        lambda text: not text or _is_finite(text),
        lambda text: float(text) if text else None,
    ),
    Sequence: _Text("windows as left:right,left:right", _WINDOWS.fullmatch, lambda t: _windows(t)),
    Sequence[int] | None: _Text(
        "integers as 1,1,2",
        _NUMBERS.fullmatch,
        lambda text: [int(entry) for entry in text.split(",")] if text else None,
    ),
}


def _parsed(name: str, text: str, kind: Any) -> Any:
    """The value of an option that has this text."""
    at = "[LanguageModel] "
    if kind not in _TEXTS:
        names = ("true", "false") if kind is bool else typing.get_args(kind)
        require_name(at, name, text, names)
        return text == "true" if kind is bool else text
    known = _TEXTS[kind]
    shown = printable(repr(text[:80]))
    require(bool(known.fits(text)), f"{at}{name}: expected {known.expected}, got {shown}")
    return known.value(text)


def _windows(text: str) -> list[tuple[int, ...]]:
    """ "left:right,left:right" -> [(left, right), ...]"""
    return [tuple(map(int, entry.split(":"))) for entry in text.split(",") if entry]


#: Options with an effect for some values of ``sparse`` alone, and the part that these have.
_ONLY_WINDOW = ("augment", "dropout", "face", "distinct", "softcap")
_NOT_LINEAR = ("form", "normalizer", "reduce")


def check_model(o: LanguageModelOptions) -> None:
    """Check the options of a model by name. Its layers check theirs."""
    at = "[LanguageModel] "
    for name, (least, most) in SIZES.items():
        require_whole(at, least, most, **{name: getattr(o, name)})
    listed = isinstance(o.orders, (list, tuple, NoneType))
    require(listed, f"{at}orders: expected a list of orders, got {describe(o.orders)}")
    for order in o.orders or ():
        require_whole(at, most=MOST_AXES, orders=order)
    usual = type(o).__dataclass_fields__["order"].default
    require(
        not o.orders or o.order in (usual, max(o.orders)),
        f"{at}order: expected none beside orders, got {o.order}",
    )
    for name, kind in typing.get_type_hints(type(o)).items():
        if typing.get_origin(kind) is typing.Literal:
            require_name(at, name, getattr(o, name), typing.get_args(kind))
    require_positive(at, rotary_base=o.rotary_base)
    require(
        isinstance(o.window, (list, tuple)),
        f"{at}window: expected a list of one entry, or of one per axis, got {describe(o.window)}",
    )
    require(
        0 <= o.mlp_ratio * o.dim <= MOST_HIDDEN,
        f"{at}mlp_ratio: expected 0 (the usual one) to {MOST_HIDDEN // o.dim}, got {o.mlp_ratio}",
    )
    require(
        0 <= o.indexer_loss < math.inf,
        f"{at}indexer_loss: expected 0 or more, got {o.indexer_loss}",
    )
    if 0 < o.every <= o.layers:
        _check_sparse(at, o)
    turns = o.form == "determinant" or (not o.orders and o.order == 1)
    require(
        not o.rotary or turns,
        f"{at}rotary: expected form determinant with {'orders' if o.orders else f'order {o.order}'}"
        ", because the product form does not depend on relative positions alone",
    )


def _check_sparse(at: str, o: LanguageModelOptions) -> None:
    """Check what the tuples of ``sparse`` cannot have."""
    with_sparse = f"with sparse {o.sparse!r}"
    unused: tuple[str, ...] = () if o.sparse == "window" else _ONLY_WINDOW
    unused += _NOT_LINEAR if o.sparse == "linear" else ()
    unused += () if "sinks" in o.sparse else ("sinks",)
    for name in unused:
        usual, given = type(o).__dataclass_fields__[name].default, getattr(o, name)
        require(
            given == usual,
            f"{at}{name}: expected {'none' if usual is None else repr(usual)} {with_sparse}, got "
            f"{given!r}",
        )
    if o.sparse == "window":
        known: tuple[str, ...] = ("product", "sum", "mean")
        require(
            o.reduce in known,
            f"{at}reduce: expected product, sum or mean {with_sparse}, got {o.reduce!r}",
        )
        return
    known = ("softmax", "softmax_sink")
    require(
        o.normalizer in known,
        f"{at}normalizer: expected softmax or softmax_sink {with_sparse}, got {o.normalizer!r}",
    )
    require(
        "window+" not in o.sparse or len(o.window) == 1,
        f"{at}window: expected one entry, for the keys of all axes, {with_sparse}, got "
        f"{len(o.window)}",
    )


def selection(o: LanguageModelOptions) -> Select | None:
    """The tuples of the simplicial layers."""
    indexer: dict[str, Any] = dict(heads=o.heads, source=o.indexer, scores=o.indexer_scores)
    if o.indexer == "light":
        indexer |= dict(rotary=True, rotary_base=o.rotary_base)
    if o.sparse in ("window", "linear"):
        return Linear() if o.sparse == "linear" else None
    if o.sparse == "path":
        return Path(o.topk, indexer, o.indexer_loss)
    made: dict[str, Callable[[], Select]] = dict(
        window=lambda: _window(o.window[0]),
        sinks=lambda: Sinks(o.sinks),
        topk=lambda: TopK(o.topk, indexer, o.indexer_loss),
    )
    parts = [made[name]() for name in o.sparse.split("+")]
    return parts[0] if len(parts) == 1 else Union(tuple(parts))


def _window(entry: Any) -> Window:
    return Window(*entry) if isinstance(entry, (list, tuple)) else Window(entry)


def layer_options(o: LanguageModelOptions) -> dict[str, Any]:
    """The options of the simplicial layers: those of the model that a layer has too."""
    shared = {name: getattr(o, name) for name in o.__dataclass_fields__ if name in _OF_LAYERS}
    orders = o.orders or None
    order = max(orders) if orders else o.order
    first = 1 in orders if orders else order == 1
    window = [*o.window] * (order if len(o.window) == 1 else 1) or None
    return shared | dict(
        order=order,
        orders=orders,
        window=window if o.sparse == "window" else None,
        rotary=o.rotary or (first and (orders is None or o.form == "product")),
        augment=o.augment or None,
        select=selection(o),
    )


_OF_LAYERS = frozenset(LayerOptions.__annotations__)
