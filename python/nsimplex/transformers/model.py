"""A Llama-like decoder whose every k-th layer is N-simplicial."""

from __future__ import annotations

import copy
import math
from typing import Any, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import (
    LlamaForCausalLM,
    LlamaModel,
    LlamaPreTrainedModel,
)

from .._arguments import describe
from .._choices import Form, Norm, Normalizer, ScaleName
from ..nn.checks import require, require_name, require_scale, require_whole
from ..nn.language_options import MOST_HIDDEN, SIZES
from ..nn.upcycling import windows_of
from ..rotary import rotary as rotate
from .attention_functions import attend, require_causal_model
from .mask_reading import stored
from .model_files import config_told, require_enough_weights, require_plain_fields, weights_told

__all__ = ["SimplicialConfig", "SimplicialForCausalLM", "SimplicialModel"]

_EPSILON = 1e-6
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
    distinct="none",
    dropout=0,
    embedding_multiplier=1,
    face=False,
    final_logit_softcapping=None,
    is_encoder_decoder=False,
    logits_scaling=1,
    no_rope_layers=None,
    num_local_experts=None,
    orders=None,
    partial_rotary_factor=None,
    qk_norm=False,
    query_pre_attn_scalar=None,
    reduce="product",
    residual_multiplier=1,
    select=None,
    sliding_window=None,
    unit_layer=False,
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
}
#: What a layer reads of its config once.
_OF_LAYER = ("every", "order", "window", "form", "normalizer", "norm", "scale", "rotary")


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
        rotary_frequencies(config, _known(config.head_dim) // 2)
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


def _known(size: int | None) -> int:
    """A size that LlamaConfig fills in where it is not given."""
    assert size is not None
    return size


class SimplicialConfig(LlamaConfig):
    """Shape of a :class:`SimplicialForCausalLM`: all fields of ``LlamaConfig``, and these.

    Args:
        every: every ``every``-th layer is simplicial, at most the number of layers; 0: none.
        order: N, the number of keys of a tuple.
        window: the last keys that a query sees, one number per axis or one for all; None or -1:
            all.
        form, normalizer, scale: as in :func:`nsimplex.attention`. "softmax_sink" learns one sink
            per head.
        norm: "none", "qk" or "qkv": which projections of simplicial layers are divided by their
            root mean square, per head.
        rotary: rotate queries and keys of simplicial layers, in chunks of N + 1 channels (2 for
            N = 1), by the frequencies of ``rope_parameters``. For form "determinant" or N = 1, and
            for frequencies that do not depend on the length: not "dynamic" and "longrope".
    """

    model_type = "nsimplex"

    every: int = 4
    order: int = 2
    window: int | list | tuple | None = (16, 256)
    form: Form = "product"
    normalizer: Normalizer = "softmax"
    norm: Norm = "qk"
    scale: ScaleName | float | list | tuple = "standard"
    rotary: bool = False

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *args: Any, **options: Any) -> Any:
        name, inside = pretrained_model_name_or_path, options.get("subfolder") or ""
        require_plain_fields(name, inside)
        with config_told(name, inside):
            return super().from_pretrained(name, *args, **options)

    @classmethod
    def from_dict(cls, config_dict: Any, **options) -> Any:
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
        windows_of(self.window, self.order, "SimplicialConfig")
        require_name(at, "form", self.form, get_args(Form))
        require_name(at, "normalizer", self.normalizer, get_args(Normalizer))
        require_name(at, "norm", self.norm, get_args(Norm))
        require(
            isinstance(self.rotary, bool),
            f"{at}rotary: expected True or False, got {describe(self.rotary)}",
        )
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
        heads, kv_heads = self.num_attention_heads, _known(self.num_key_value_heads)
        require(
            kv_heads > 0 and heads % kv_heads == 0,
            f"{at}num_key_value_heads: expected a divisor of num_attention_heads {heads}, got "
            f"{kv_heads}",
        )
        chunk = self.order + 1
        require(
            self.form == "product" or _known(self.head_dim) % chunk == 0,
            f"{at}head_dim: expected a multiple of order + 1 = {chunk} for form determinant, got "
            f"{self.head_dim}",
        )
        require(
            not self.rotary or self.order == 1 or self.form == "determinant",
            f"{at}rotary: form product of order {self.order} does not depend on relative positions "
            "alone; use form determinant",
        )
        require(
            _known(self.head_dim) % 2 == 0 or (self.every == 1 and (chunk > 2 or not self.rotary)),
            f"{at}head_dim: expected an even number, for layers that rotate pairs of channels, got "
            f"{self.head_dim}",
        )
        _require_rotary(at, self)


def _fields_of_layer(config: SimplicialConfig) -> dict[str, Any]:
    given = {name: getattr(config, name) for name in _OF_LAYER}
    return {n: tuple(value) if isinstance(value, list) else value for n, value in given.items()}


class SimplicialSelfAttention(nn.Module):
    """Causal N-simplicial self-attention as a layer of a Transformers model.

    Parameters: ``q_proj`` [Hq D, C], ``k_proj`` and ``v_proj`` [N Hk D, C] with the axes one after
    the other, ``o_proj`` [C, Hq D]; ``sink`` [Hq] for the normaliser softmax_sink.
    """

    def __init__(self, config: SimplicialConfig, layer_idx: int) -> None:
        super().__init__()
        self.config, self.layer_idx = config, layer_idx
        self.order = config.order
        self._read = _fields_of_layer(config)
        # LlamaConfig fills both in.
        self.head_dim, self.kv_heads = _known(config.head_dim), _known(config.num_key_value_heads)
        self.heads = config.num_attention_heads
        self.is_causal = True
        self.options = dict(
            form=config.form,
            normalizer=config.normalizer,
            window=windows_of(config.window, config.order, "SimplicialConfig"),
            scale=tuple(config.scale) if isinstance(config.scale, list) else config.scale,
        )
        width, bias = config.hidden_size, config.attention_bias
        axes = self.order * self.kv_heads * self.head_dim
        self.q_proj = nn.Linear(width, self.heads * self.head_dim, bias=bias)
        self.k_proj = nn.Linear(width, axes, bias=bias)
        self.v_proj = nn.Linear(width, axes, bias=bias)
        self.o_proj = nn.Linear(self.heads * self.head_dim, width, bias=bias)
        self.chunk = self.order + 1 if config.form == "determinant" else 2
        planes = self.head_dim // self.chunk * (self.chunk // 2)
        self.frequencies, self.factor = (
            rotary_frequencies(config, planes) if config.rotary else (None, 1.0)
        )
        if config.normalizer == "softmax_sink":
            self.sink = nn.Parameter(torch.zeros(self.heads))

    def _require_same_fields(self) -> None:
        now = _fields_of_layer(self.config)
        for name, before in self._read.items():
            require(
                now[name] == before,
                f"[nsimplex] config.{name}: expected {before}, with which the model was made, got "
                f"{now[name]}; make a new model",
            )

    def _heads(self, x: Tensor, normalised: bool) -> Tensor:
        """[B, T, H D] -> [B, H, T, D]."""
        heads = x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
        return F.rms_norm(heads, (self.head_dim,), eps=_EPSILON) if normalised else heads

    def _rotated(self, q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """q and k [B, H, T, D], rotated by their positions [B, T]."""
        rope: Any = self.config.rope_parameters
        if self.frequencies is None:
            turns: dict[str, Any] = dict(base=float(rope["rope_theta"]), positions=positions)
        else:
            frequencies = torch.tensor(self.frequencies, device=q.device)
            turns = dict(angles=(positions[..., None].float() * frequencies)[:, :, None])
        q, k = rotate(q, chunk=self.chunk, **turns), rotate(k, chunk=self.chunk, **turns)
        return (q, k) if self.factor == 1 else (q * self.factor, k * self.factor)

    def forward(
        self,
        hidden_states: Tensor,
        position_embeddings=None,
        attention_mask: Tensor | None = None,
        cache=None,
        past_key_values=None,
        position_ids: Tensor | None = None,
        **kwargs,
    ) -> tuple[Tensor, None]:
        """hidden_states [B, T, C] -> ([B, T, C], None), with the model's masks and caches.

        A cache holds the axes' keys and values side by side, along the channels.
        """
        require_causal_model("[nsimplex] ", self.config, kwargs)
        if not torch.compiler.is_compiling():
            self._require_same_fields()
        cache = past_key_values if cache is None else cache
        norm = self.config.norm
        q = self._heads(self.q_proj(hidden_states), norm != "none")
        k = self._heads(self.k_proj(hidden_states), norm != "none")
        v = self._heads(self.v_proj(hidden_states), norm == "qkv")
        if self.config.rotary:
            if position_ids is None:
                past = 0 if cache is None else int(cache.get_seq_length(self.layer_idx))
                position_ids = torch.arange(past, past + q.size(2), device=q.device)[None]
            q, k = self._rotated(q, k, position_ids.expand(q.size(0), -1))
        keys, values = k.split(self.kv_heads, 1), v.split(self.kv_heads, 1)
        keys, values, seen = stored(keys, values, cache, self.layer_idx, attention_mask)
        dropout = self.config.attention_dropout if self.training else 0.0
        sink = {"sink": self.sink} if hasattr(self, "sink") else {}
        out, _ = attend(q, keys, values, seen, dropout_p=dropout, **self.options, **sink)
        return self.o_proj(out.transpose(1, 2).flatten(2)), None


class _Initialized(LlamaPreTrainedModel):
    config_class = SimplicialConfig
    config: SimplicialConfig  # type: ignore[assignment]
    _supports_flash_attn = False
    _supports_flex_attn = False
    _can_compile_fullgraph = True  # steps of one token with a static cache

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *args: Any, **options: Any) -> Any:
        name = pretrained_model_name_or_path
        if name is None or options.get("state_dict") is not None:
            return super().from_pretrained(name, *args, **options)
        inside, config = options.get("subfolder") or "", options.get("config")
        if not isinstance(config, SimplicialConfig):
            config = SimplicialConfig.from_pretrained(config or name, subfolder=inside)
        if not options.get("ignore_mismatched_sizes"):
            require_enough_weights(name, inside, cls, config)
        with weights_told(name):
            return super().from_pretrained(name, *args, **options)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, SimplicialSelfAttention) and hasattr(module, "sink"):
            nn.init.zeros_(module.sink)


class SimplicialModel(_Initialized, LlamaModel):  # type: ignore[misc]
    """The decoder without the output projection."""

    def __init__(self, config: SimplicialConfig) -> None:
        config.require_obeyed()  # fields may have been set since
        super().__init__(config)
        for layer in range(config.num_hidden_layers):
            if config.every and (layer + 1) % config.every == 0:
                self.layers[layer].self_attn = SimplicialSelfAttention(config, layer)
        self.post_init()


class SimplicialForCausalLM(_Initialized, LlamaForCausalLM):  # type: ignore[misc]
    """A causal language model of Transformers with simplicial layers: RMSNorm, SwiGLU, and rotary
    positions in the ordinary layers.

    >>> config = SimplicialConfig(vocab_size=100, hidden_size=64, intermediate_size=128,
    ...                           num_hidden_layers=4, num_attention_heads=4)
    >>> model = SimplicialForCausalLM(config)
    >>> model.generate(torch.tensor([[1, 2, 3]]), max_new_tokens=5).shape
    torch.Size([1, 8])
    """

    def __init__(self, config: SimplicialConfig) -> None:
        super(LlamaForCausalLM, self).__init__(config)
        self.model = SimplicialModel(config)
        self.vocab_size = config.vocab_size
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()


AutoConfig.register("nsimplex", SimplicialConfig)
AutoModel.register(SimplicialConfig, SimplicialModel)
AutoModelForCausalLM.register(SimplicialConfig, SimplicialForCausalLM)
