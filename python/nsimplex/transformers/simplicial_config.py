"""The config of a Llama-like decoder with simplicial layers, and what is checked of it."""

from __future__ import annotations

import copy
import math
from typing import Any, get_args

import torch
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.configuration_llama import LlamaConfig

from .._arguments import describe
from .._choices import Distinct, Form, ModelSelection, Norm, Normalizer, Reduce, ScaleName
from ..nn.checks import (
    require,
    require_name,
    require_positive,
    require_scale,
    require_whole,
)
from ..nn.language_options import MOST_HIDDEN, SIZES, LanguageModelOptions
from ..nn.layer_options import check_orders
from ..nn.upcycling import windows_of
from .attention_functions import require_causal_model
from .model_files import config_told, require_plain_fields

__all__ = ["OF_LAYER", "SimplicialConfig", "known", "rotary_frequencies"]

_SMALLEST = torch.finfo(torch.float32).tiny
#: Fields of other models and options of other layers, with the values that change nothing beside
#: None and False. A Llama would keep them and obey none.
_OF_OTHERS = dict(
    add_cross_attention=False,
    attention_multiplier=None,
    attn_logit_softcapping=None,
    augment=None,
    bias=False,
    causal=True,
    dropout=0,
    embedding_multiplier=1,
    final_logit_softcapping=None,
    is_encoder_decoder=False,
    logits_scaling=1,
    no_rope_layers=None,
    num_local_experts=None,
    partial_rotary_factor=None,
    qk_norm=False,
    query_pre_attn_scalar=None,
    residual_multiplier=1,
    select=None,
    sliding_window=None,
    use_qk_norm=False,
    use_sliding_window=False,
)
#: Sizes by the names that LlamaConfig has for those of :class:`LanguageModelOptions`.
_SIZES = {
    "vocab_size": SIZES["vocabulary"],
    "num_hidden_layers": SIZES["layers"],
    "num_attention_heads": SIZES["heads"],
    "hidden_size": SIZES["dim"],
    "head_dim": SIZES["dim"],
    "intermediate_size": (1, MOST_HIDDEN),
    "max_position_embeddings": SIZES["context"],
    "order": SIZES["order"],
    "sinks": SIZES["sinks"],
}
#: What a layer reads of its config once.
OF_LAYER = (
    "every",
    "order",
    "orders",
    "window",
    "sparse",
    "sinks",
    "form",
    "reduce",
    "normalizer",
    "norm",
    "scale",
    "softcap",
    "rotary",
    "face",
    "distinct",
    "unit_layer",
)
#: What a config without ``norm`` meant before the layers' defaults were the same everywhere.
_FORMER_NORM = "qk"
#: Defaults are those of the language model.
_USUAL = LanguageModelOptions()


#: Kinds of rotary positions whose frequencies are the same for texts of every length.
_FIXED_ROTARY = ("default", "linear", "yarn", "llama3", "proportional")


def _require_rotary(at: str, config: SimplicialConfig) -> None:
    """Check that all layers rotate by the same frequencies, which can be computed."""
    rope: Any = config.rope_parameters
    parts = [name for name, value in rope.items() if isinstance(value, dict)]
    require(
        not parts,
        f"{at}rope_parameters: expected one set for all layers, got some for {', '.join(parts)}",
    )
    kind, part = rope["rope_type"], rope.get("partial_rotary_factor")
    kinds = _FIXED_ROTARY if config.rotary else ("default", *ROPE_INIT_FUNCTIONS)
    require(
        kind in kinds,
        f"{at}rope_parameters['rope_type']: expected one of {', '.join(kinds)}"
        f"{' for rotary=True' * config.rotary}, got {describe(kind)}",
    )
    require(
        kind == "proportional" or part in (None, 1),
        f"{at}rope_parameters['partial_rotary_factor']: expected 1, for layers rotate whole heads, "
        f"got {describe(part)}",
    )
    for name, value in rope.items():
        least = 0 if name.startswith("mscale") or isinstance(value, bool) else _SMALLEST
        require(
            not isinstance(value, (int, float)) or least <= value < math.inf,
            f"{at}rope_parameters[{name!r}]: expected a finite number of at least {least}, got "
            f"{describe(value)}",
        )
    try:
        rotary_frequencies(config, known(config.head_dim) // 2)
    except KeyError as error:
        name = error.args[0]
        raise ValueError(
            f"{at}rope_parameters[{name!r}]: expected one for rope_type {kind}, got none"
        ) from None


def rotary_frequencies(config: LlamaConfig, planes: int) -> tuple[list[float] | None, float]:
    """The frequencies of the planes of a head, which ordinary layers with that many planes have,
    and the factor of queries and keys. None: those of the base alone."""
    rope: Any = config.rope_parameters
    if rope["rope_type"] == "default":
        return None, 1.0
    alike = copy.copy(config)
    alike.head_dim = 2 * planes
    with torch.device("cpu"):  # also where a model is made without numbers
        frequencies, factor = ROPE_INIT_FUNCTIONS[rope["rope_type"]](alike)
    return frequencies.tolist(), float(factor)


def known(size: int | None) -> int:
    """A size that LlamaConfig fills in where it is not given."""
    assert size is not None
    return size


class SimplicialConfig(LlamaConfig):
    """Shape of a :class:`SimplicialForCausalLM`: all fields of ``LlamaConfig``, and these.

    Args:
        every: every ``every``-th layer is simplicial, at most the number of layers; 0: none.
        order: N, the number of keys of a tuple.
        orders: one order per query head, instead of ``order``; the heads of a key head share one.
        window: the last keys that a query sees, one number per axis or one for all; None or -1:
            all. With ``orders``, heads of order n have the last n of several numbers.
        sparse: "window", or "window+sinks": the tuples of the keys of one window of one number and
            of the first tokens of the text.
        sinks: how many tokens these are.
        form, reduce, normalizer, scale, softcap, distinct: as in :func:`nsimplex.attention`.
            "softmax_sink" learns one sink per head.
        face: one softmax per face (:func:`nsimplex.face_attention`).
        unit_layer: divide the output by 2N + 1, as in :class:`nsimplex.nn.SimplicialAttention`.
        norm: "none", "qk" or "qkv": which projections of simplicial layers are divided by their
            root mean square, per head.
        rotary: rotate queries and keys of simplicial layers, in chunks of N + 1 channels (2 for
            N = 1), by the frequencies of ``rope_parameters``. For form "determinant" or N = 1, and
            for frequencies that do not depend on the length: not "dynamic" and "longrope".
    """

    model_type = "nsimplex"

    every: int = _USUAL.every
    order: int = _USUAL.order
    orders: list | tuple | None = None
    window: int | list | tuple | None = (16, 256)
    sparse: ModelSelection = "window"
    sinks: int = _USUAL.sinks
    form: Form = _USUAL.form
    reduce: Reduce = "product"
    normalizer: Normalizer = _USUAL.normalizer
    norm: Norm = _USUAL.norm
    scale: ScaleName | float | list | tuple = _USUAL.scale
    softcap: float | None = _USUAL.softcap
    rotary: bool = _USUAL.rotary
    face: bool = _USUAL.face
    distinct: Distinct = _USUAL.distinct
    unit_layer: bool = _USUAL.unit_layer

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *args: Any, **options: Any) -> Any:
        name, inside = pretrained_model_name_or_path, options.get("subfolder") or ""
        require_plain_fields(name, inside)
        with config_told(name, inside):
            return super().from_pretrained(name, *args, **options)

    @classmethod
    def from_dict(cls, config_dict: Any, **options) -> Any:
        config_dict = {"norm": _FORMER_NORM, **config_dict}
        with config_told(options.get("name_or_path") or ""):  # which AutoConfig gives
            return super().from_dict(config_dict, **options)

    def __post_init__(self, **kwargs):
        super().__post_init__(**kwargs)
        self.require_obeyed()

    def require_obeyed(self) -> None:
        """Check that a model can be built that obeys every field."""
        at = "[SimplicialConfig] "
        require_causal_model(at, self)
        for name, usual in _OF_OTHERS.items():
            given = getattr(self, name, usual)
            require(
                given == usual or given is None or (given is False and usual is not True),
                f"{at}{name}: expected {usual or 'none'}, which no layer of this model obeys, got "
                f"{describe(given)}",
            )
        kinds = {*(getattr(self, "layer_types", None) or ())} - {"full_attention"}
        require(
            not kinds,
            f"{at}layer_types: expected full_attention alone, got {', '.join(sorted(kinds))}",
        )
        for name, (least, most) in _SIZES.items():
            require_whole(at, least, most, **{name: getattr(self, name)})
        require_whole(at, least=0, most=self.num_hidden_layers, every=self.every)
        for name, names in _CHOICES.items():
            require_name(at, name, getattr(self, name), get_args(names))
        for name in ("rotary", "face", "unit_layer"):
            given = getattr(self, name)
            require(
                isinstance(given, bool),
                f"{at}{name}: expected True or False, got {describe(given)}",
            )
        if self.softcap is not None:
            require_positive(at, softcap=self.softcap)
        _require_tuples(at, self)
        dropout: Any = self.attention_dropout
        require(
            dropout is None or 0 <= dropout < 1,
            f"{at}attention_dropout: expected a share in [0, 1), got {describe(dropout)}",
        )
        for name in ("rms_norm_eps", "initializer_range"):
            value: Any = getattr(self, name)
            require(
                0 <= value < math.inf,
                f"{at}{name}: expected a finite number of at least 0, got {describe(value)}",
            )
        require_scale(at, self.scale)
        heads, kv_heads = self.num_attention_heads, known(self.num_key_value_heads)
        require(
            kv_heads > 0 and heads % kv_heads == 0,
            f"{at}num_key_value_heads: expected a divisor of num_attention_heads {heads}, got "
            f"{kv_heads}",
        )
        orders = self.orders_of_heads(at)
        windows_of(self.window, max(orders), "SimplicialConfig")
        for order in sorted({*orders}):
            chunk = order + 1
            require(
                self.form == "product" or known(self.head_dim) % chunk == 0,
                f"{at}head_dim: expected a multiple of order + 1 = {chunk} for form determinant, "
                f"got {self.head_dim}",
            )
        require(
            not self.rotary or 1 in orders or self.form == "determinant",
            f"{at}rotary: form product of order {max(orders)} does not depend on relative "
            "positions alone; use form determinant",
        )
        chunk = max(orders) + 1
        require(
            known(self.head_dim) % 2 == 0 or (self.every == 1 and (chunk > 2 or not self.rotary)),
            f"{at}head_dim: expected an even number, for layers that rotate pairs of channels, got "
            f"{self.head_dim}",
        )
        _require_rotary(at, self)

    def orders_of_heads(self, at: str = "[SimplicialConfig] ") -> list[int]:
        """One order per query head."""
        heads = self.num_attention_heads
        if self.orders is None:
            return [self.order] * heads
        options = dict(order=self.order, context_dims=(), rotary=False, form=self.form)
        options["allow_non_invariant"] = False
        return check_orders(at, self.orders, heads, known(self.num_key_value_heads), options)


_CHOICES: dict[str, Any] = dict(
    form=Form,
    reduce=Reduce,
    normalizer=Normalizer,
    norm=Norm,
    distinct=Distinct,
    sparse=ModelSelection,
)


def _require_tuples(at: str, config: SimplicialConfig) -> None:
    """Check what does not go with faces, or with the keys of several parts."""
    if config.face:
        require(
            config.normalizer == "softmax",
            f"{at}normalizer: expected softmax beside face, got {config.normalizer!r}",
        )
    if config.sparse == "window":
        require(
            config.sinks == _USUAL.sinks,
            f"{at}sinks: expected {_USUAL.sinks} with sparse 'window', got {config.sinks}",
        )
        return
    beside = f"with sparse {config.sparse!r}"
    for name, usual in dict(
        face=False, distinct="none", softcap=None, attention_dropout=0.0
    ).items():
        given = getattr(config, name)
        require(given == usual, f"{at}{name}: expected {usual} {beside}, got {describe(given)}")
    require(
        config.normalizer in ("softmax", "softmax_sink"),
        f"{at}normalizer: expected softmax or softmax_sink {beside}, got {config.normalizer!r}",
    )
    require(
        isinstance(config.window, int) and config.window > 0,
        f"{at}window: expected one positive integer, for the keys of all axes, {beside}, got "
        f"{describe(config.window)}",
    )
