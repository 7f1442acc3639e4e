"""A Llama-like decoder whose every k-th layer is N-simplicial."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM
from transformers.models.llama.modeling_llama import (
    LlamaForCausalLM,
    LlamaModel,
    LlamaPreTrainedModel,
)

from ..attention import attention
from ..face_attention import face_attention
from ..nn.checks import require
from ..nn.upcycling import windows_of
from ..rotary import rotary as rotate
from .attention_functions import attend, attend_to_keys, require_causal_model
from .mask_reading import Seen, stored
from .model_files import require_enough_weights, weights_told
from .simplicial_config import OF_LAYER, SimplicialConfig, known, rotary_frequencies

__all__ = ["SimplicialForCausalLM", "SimplicialModel"]

_EPSILON = 1e-6


def _fields_of_layer(config: SimplicialConfig) -> dict[str, Any]:
    given = {name: getattr(config, name) for name in OF_LAYER}
    return {n: tuple(value) if isinstance(value, list) else value for n, value in given.items()}


class _Group(NamedTuple):
    """The heads of one order in a layer."""

    order: int
    heads: int
    kv_heads: int
    window: list[int]
    rotates: bool
    chunk: int
    frequencies: list[float] | None
    factor: float


def _groups_of(config: SimplicialConfig) -> list[_Group]:
    """The lowest order first."""
    orders, shared = config.orders_of_heads(), config.num_attention_heads
    shared //= known(config.num_key_value_heads)
    window = windows_of(config.window, max(orders), "SimplicialConfig")
    groups: list[_Group] = []
    for order in sorted({*orders}):
        heads = orders.count(order)
        determinant = config.form == "determinant"
        chunk = order + 1 if determinant else 2
        rotates = config.rotary and (determinant or order == 1)
        turn: tuple[list[float] | None, float] = (None, 1.0)
        if rotates:
            turn = rotary_frequencies(config, known(config.head_dim) // chunk * (chunk // 2))
        own = heads, heads // shared, window[-order:], rotates, chunk
        groups.append(_Group(order, *own, *turn))
    return groups


class SimplicialSelfAttention(nn.Module):
    """Causal N-simplicial self-attention as a layer of a Transformers model.

    Parameters: ``q_proj`` [Hq D, C], ``k_proj`` and ``v_proj`` [N Hk D, C] with the axes one after
    the other, ``o_proj`` [C, Hq D]; ``sink`` [Hq] for the normaliser softmax_sink. With ``orders``
    the heads of the lowest order come first in all of them.
    """

    def __init__(self, config: SimplicialConfig, layer_idx: int) -> None:
        super().__init__()
        self.config, self.layer_idx = config, layer_idx
        self._read = _fields_of_layer(config)
        self.head_dim, self.kv_heads = known(config.head_dim), known(config.num_key_value_heads)
        self.heads = config.num_attention_heads
        self.is_causal = True
        self.groups = _groups_of(config)
        #: Key heads that a cache holds together: of every axis of every group, a whole number.
        self.piece = math.gcd(*(group.kv_heads for group in self.groups))
        self.options: dict[str, Any] = dict(
            form=config.form,
            normalizer=config.normalizer,
            scale=tuple(config.scale) if isinstance(config.scale, list) else config.scale,
            reduce=config.reduce,
        )
        if config.sparse == "window":
            self.options |= dict(distinct=config.distinct, softcap=config.softcap)
        width, bias = config.hidden_size, config.attention_bias
        axes = sum(group.order * group.kv_heads for group in self.groups) * self.head_dim
        self.q_proj = nn.Linear(width, self.heads * self.head_dim, bias=bias)
        self.k_proj = nn.Linear(width, axes, bias=bias)
        self.v_proj = nn.Linear(width, axes, bias=bias)
        self.o_proj = nn.Linear(self.heads * self.head_dim, width, bias=bias)
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

    def _rotated(self, group: _Group, x: Tensor, positions: Tensor) -> Tensor:
        """Queries or keys [B, H, T, D] of a group, rotated by their positions [B, T]."""
        rope: Any = self.config.rope_parameters
        if group.frequencies is None:
            turns: dict[str, Any] = dict(base=float(rope["rope_theta"]), positions=positions)
        else:
            frequencies = torch.tensor(group.frequencies, device=x.device)
            turns = dict(angles=(positions[..., None].float() * frequencies)[:, :, None])
        x = rotate(x, chunk=group.chunk, **turns)
        return x if group.factor == 1 else x * group.factor

    def _by_group(self, x: Tensor, of_keys: bool) -> list[Tensor]:
        """Heads [B, H, T, D] of each group; those of keys and values are N Hk, one axis after the
        other."""
        each = [g.order * g.kv_heads if of_keys else g.heads for g in self.groups]
        return [*x.split(each, 1)]

    def _axes(self, pieces: list[Tensor]) -> list[list[Tensor]]:
        """The axes of each group, of the pieces that a cache holds."""
        left, axes = iter(pieces), []
        for group in self.groups:
            count = group.kv_heads // self.piece
            own = [[next(left) for _ in range(count)] for _ in range(group.order)]
            axes.append([each[0] if count == 1 else torch.cat(each, 1) for each in own])
        return axes

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
        q = self._by_group(self._heads(self.q_proj(hidden_states), norm != "none"), False)
        k = self._by_group(self._heads(self.k_proj(hidden_states), norm != "none"), True)
        v = self._heads(self.v_proj(hidden_states), norm == "qkv")
        if self.config.rotary:
            if position_ids is None:
                past = 0 if cache is None else int(cache.get_seq_length(self.layer_idx))
                places = torch.arange(past, past + v.size(2), device=v.device)[None]
            else:
                places = position_ids
            places = places.expand(v.size(0), -1)
            for i, group in enumerate(self.groups):
                if group.rotates:
                    q[i], k[i] = (self._rotated(group, each, places) for each in (q[i], k[i]))
        keys = [piece for own in k for piece in own.split(self.piece, 1)]
        keys, values, seen = stored(
            keys, v.split(self.piece, 1), cache, self.layer_idx, attention_mask
        )
        sinks: Any = [None] * len(self.groups)
        if hasattr(self, "sink"):
            sinks = self.sink.split([group.heads for group in self.groups])
        parts = zip(self.groups, q, self._axes(keys), self._axes(values), sinks)
        out = torch.cat([self._attend(*part, seen) for part in parts], 1)
        return self.o_proj(out.transpose(1, 2).flatten(2)), None

    def _attend(
        self,
        group: _Group,
        q: Tensor,
        keys: list[Tensor],
        values: list[Tensor],
        sink: Tensor | None,
        seen: Seen,
    ) -> Tensor:
        config = self.config
        options: dict[str, Any] = self.options | ({} if sink is None else dict(sink=sink))
        if config.sparse == "window+sinks":
            out = attend_to_keys(
                q, keys, values, seen, window=group.window[0], sinks=config.sinks, **options
            )
        else:
            dropout = config.attention_dropout if self.training else 0.0
            call = face_attention if config.face else attention
            options |= dict(window=group.window, dropout_p=dropout)
            out, _ = attend(q, keys, values, seen, call=call, **options)
        return out / (2 * group.order + 1) if config.unit_layer else out


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
