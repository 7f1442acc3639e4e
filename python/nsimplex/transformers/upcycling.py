"""Tuples of keys in layers of a trained Transformers model, which starts as the same function."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from .._arguments import checked, describe
from ..nn.checks import require, require_tokens
from ..nn.upcycling import _SAMPLE, HigherOrderPart, calibrate, chosen_layers
from .attention import attend, require_causal_model, stored

__all__ = ["convert", "from_pretrained"]

_LIKE_LLAMA = ("llama", "mistral", "qwen2", "qwen3")
_KNOWN = (*_LIKE_LLAMA, "gpt2")


class UpcycledSelfAttention(nn.Module):
    """The attention layer of a trained model with a :class:`nsimplex.nn.HigherOrderPart`.

    The former layer's modules keep their names; ``higher`` is new.
    """

    # Projections of the layer that this one replaces.
    q_proj: nn.Module
    k_proj: nn.Module
    v_proj: nn.Module
    o_proj: nn.Module
    c_attn: nn.Module
    c_proj: nn.Module
    q_norm: nn.Module
    k_norm: nn.Module
    resid_dropout: nn.Module
    # Its numbers.
    config: Any
    layer_idx: int
    head_dim: int
    scaling: float

    def __init__(self, layer: nn.Module, order: int, window) -> None:
        super().__init__()
        own: Any = layer
        config = own.config
        # All that the layer holds, its hooks too; what it holds of modules and weights is ours.
        self.__dict__.update(vars(layer))
        for members in ("_modules", "_parameters", "_buffers"):
            self.__dict__[members] = {**vars(layer)[members]}
        self.is_causal = True
        heads = config.num_attention_heads
        # GPT-2 has one key head per query head, and one projection for all.
        self.kv_heads = getattr(config, "num_key_value_heads", None) or heads
        if config.model_type in _LIKE_LLAMA:
            self._rotate = sys.modules[type(layer).__module__].apply_rotary_pos_emb
            self._dropout = "attention_dropout"
        else:
            self._dropout = "attn_pdrop"
        self.higher = HigherOrderPart(
            config.hidden_size, heads, self.kv_heads, self.head_dim, order, window
        ).to(next(layer.parameters()))

    def _project(self, x: Tensor) -> list[Tensor]:
        """q, k, v before rotary positions, each [B, H, T, D]."""
        if hasattr(self, "c_attn"):
            parts = [
                each.unflatten(-1, (-1, self.head_dim)) for each in self.c_attn(x).chunk(3, -1)
            ]
        else:
            parts = [
                proj(x).unflatten(-1, (-1, self.head_dim))
                for proj in (self.q_proj, self.k_proj, self.v_proj)
            ]
        if hasattr(self, "q_norm"):
            parts[:2] = self.q_norm(parts[0]), self.k_norm(parts[1])
        return [part.transpose(1, 2) for part in parts]

    def forward(
        self,
        hidden_states: Tensor,
        position_embeddings=None,
        attention_mask: Tensor | None = None,
        cache=None,
        past_key_values=None,
        **kwargs,
    ) -> tuple[Tensor, None]:
        """hidden_states [B, T, C] -> ([B, T, C], None), with the model's masks and caches.

        A cache holds the keys and values of all axes side by side, along the channels.
        """
        require_causal_model("[nsimplex] ", self.config)
        q, k, v = self._project(hidden_states)
        further, values = self.higher.extra(hidden_states)
        keys = [self.higher.unit(k), *further]
        higher_q = self.higher.unit(q)
        if position_embeddings is not None:
            q, k = self._rotate(q, k, *position_embeddings)
        keys, values = [k, *keys], [v, *values]
        cache = past_key_values if cache is None else cache
        keys, values, seen = stored(keys, values, cache, self.layer_idx, attention_mask)
        dropout = float(getattr(self.config, self._dropout) or 0.0) if self.training else 0.0
        ordinary = attend(
            q, keys[:1], values[:1], seen, scale=float(self.scaling), dropout_p=dropout
        )
        window = self.higher.window
        higher = attend(higher_q, keys[1:], values, seen, window=window, dropout_p=dropout)
        out = self.higher.join(ordinary, higher).transpose(1, 2).flatten(2)
        if hasattr(self, "c_proj"):
            return self.resid_dropout(self.c_proj(out)), None
        return self.o_proj(out), None


def _layers(model: PreTrainedModel) -> tuple[nn.ModuleList, str]:
    """The decoder's layers, and the name of their attention."""
    decoder: Any = model.base_model
    return (decoder.h, "attn") if hasattr(decoder, "h") else (decoder.layers, "self_attn")


def _require_convertible(model: PreTrainedModel) -> None:
    """Check that converted layers would compute what the model's layers compute."""
    at, config = "[convert] model: expected ", model.config
    require(config.model_type in _KNOWN, f"{at}one of {', '.join(_KNOWN)}, got {config.model_type}")
    require(
        not any(isinstance(module, HigherOrderPart) for module in model.modules()),
        f"{at}an ordinary model, got a converted one",
    )
    require_causal_model("[convert] model.config.", config)
    require(
        not getattr(config, "add_cross_attention", False), f"{at}a decoder without cross-attention"
    )


def _require_ordinary(layer: nn.Module, index: int, config: Any) -> None:
    """Check that a layer to convert is the attention of its family, which sees all tokens."""
    at, family = f"[convert] model: expected layer {index} ", config.model_type
    own = type(layer)
    home = f"transformers.models.{family}.modeling_{family}"
    require(
        own.__module__ == home and own.__name__.endswith("Attention"),
        f"{at}to have the attention of {family}, got {own.__name__}",
    )
    require(
        "forward" not in vars(layer),
        f"{at}to compute by itself, got a layer with another forward; convert before the model is "
        "dispatched",
    )
    kinds = getattr(config, "layer_types", None)
    slides = getattr(config, "sliding_window", None) is not None
    if kinds is None or family == "mistral":  # whose layers are all of one kind
        kind = "sliding_attention" if slides else "full_attention"
    else:
        kind = kinds[index]
    require(kind == "full_attention", f"{at}to have full attention, got {kind}")


def _build(model: PreTrainedModel, every: int, order: int, window) -> None:
    _require_convertible(model)
    layers, name = _layers(model)
    at = chosen_layers("convert", len(layers), every)
    for i in at:
        _require_ordinary(getattr(layers[i], name), i, model.config)
    new = [UpcycledSelfAttention(getattr(layers[i], name), order, window) for i in at]
    for i, attention in zip(at, new):
        setattr(layers[i], name, attention)
    wide = [window] if window is None or isinstance(window, int) else [*window]
    model.config.nsimplex = dict(every=every, order=order, window=wide)


@checked
def convert(
    model: PreTrainedModel,
    every: int = 4,
    order: int = 2,
    window: int | Sequence[int] | None = (32, 512),
    sample: Tensor | None = None,
) -> PreTrainedModel:
    """Gives every ``every``-th attention layer of a trained model tuples of N keys, without
    a change of the function that the model computes.

    The layer's softmax gets the tuples as further entries, behind one learned logit bias per head
    that starts so low that they vanish in rounding (:class:`nsimplex.nn.HigherOrderPart`). The
    former parameters keep their names and values. Continue to train the model with any
    optimizer. Masks, caches and ``generate`` work as before. Save the model with
    ``save_pretrained`` and load it with :func:`from_pretrained`.

    Args:
        model: a model of type llama, mistral, qwen2, qwen3 or gpt2; it is changed in place. The
            layers must see all tokens so far, without a sliding window.
        every, order, window: which layers, N, and the windows of the tuples' axes.
        sample: token ids [B, T] to which the biases are fitted (:func:`calibrate`), best a text
            like those of the training. None draws some.

    Returns:
        The model. Its logits for ``sample`` are the same to about 1e-6.

    Raises:
        ValueError: another kind of model or layer, or an argument that does not fit.
    """
    require(
        isinstance(model, PreTrainedModel),
        f"[convert] model: expected a model of Transformers, got {describe(model)}",
    )
    if sample is not None:
        require_tokens("[convert] ", "sample", sample, model)
    _build(model, every, order, window)
    if sample is None:
        generator = torch.Generator().manual_seed(0)
        sample = torch.randint(model.config.vocab_size, _SAMPLE, generator=generator)
    calibrate(model, sample.to(model.device))
    return model


@checked
def from_pretrained(folder: str | os.PathLike, **options) -> PreTrainedModel:
    """A converted causal language model from a folder of its ``save_pretrained``.

    ``AutoModelForCausalLM.from_pretrained`` would leave the tuples out. ``options`` are those of
    the ``from_pretrained`` of Transformers.
    """
    config = options.pop("config", None) or AutoConfig.from_pretrained(folder)
    shape: Any = getattr(config, "nsimplex", None)
    require(
        isinstance(shape, dict),
        f"[from_pretrained] folder: expected a converted model, got {config.model_type} in "
        f"{os.fspath(folder)}",
    )
    plain: Any = AutoModelForCausalLM._model_mapping[type(config)]

    def build(self: Any, config: Any) -> None:
        plain.__init__(self, config)
        _build(self, **shape)
        self.post_init()

    # The loader of Transformers makes the model and fills it: this class only adds the layers.
    members = {"__init__": build, "__module__": plain.__module__}
    converted: Any = type(plain.__name__, (plain,), members)
    model = converted.from_pretrained(folder, config=config, **options)
    model.__class__ = plain
    return model
