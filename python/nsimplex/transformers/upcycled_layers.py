"""Tuples of keys in layers of a trained Transformers model, which starts as the same function."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel

from .._arguments import checked, describe
from ..nn.checks import require
from ..nn.upcycling import (
    _SAMPLE,
    HigherOrderPart,
    calibrate,
    chosen_layers,
    most_tokens,
    require_sample,
    windows_of,
)
from .attention_functions import attend, require_causal_model, require_computed
from .families import layers_of, require_convertible, require_ordinary, require_plain_weights
from .mask_reading import stored

__all__ = ["build_tuples", "convert"]


class _Call(NamedTuple):
    """What a layer was given, for the attention function that its family's code calls."""

    hidden_states: Tensor
    position_embeddings: tuple[Tensor, Tensor] | None
    cache: Any


class _Routed:
    """The config of a model, with the attention function of converted layers."""

    _attn_implementation = "nsimplex_tuples"

    def __init__(self, config: Any) -> None:
        self.of_model = config

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "of_model":  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self.of_model, name)


class UpcycledSelfAttention(nn.Module):
    """The attention layer of a trained model with a :class:`nsimplex.nn.HigherOrderPart`.

    The former layer's modules keep their names; ``higher`` is new. The family's own code projects,
    normalises and scales. It leaves positions out, which only the ordinary part has, and it calls
    :func:`_with_tuples` in place of its attention function.
    """

    layer_idx: int

    def __init__(self, layer: nn.Module, order: int, window) -> None:
        super().__init__()
        own: Any = layer
        config = own.config
        # All that the layer holds, its hooks too; what it holds of modules and weights is ours.
        self.__dict__.update(vars(layer))
        for members in ("_modules", "_parameters", "_buffers"):
            self.__dict__[members] = {**vars(layer)[members]}
        self.config = _Routed(config)
        self._family: Any = type(layer)
        self._rotate: Any = getattr(
            sys.modules[self._family.__module__], "apply_rotary_pos_emb", None
        )
        heads = config.num_attention_heads
        kv_heads = getattr(config, "num_key_value_heads", None) or heads
        head_dim = own.head_dim if hasattr(own, "head_dim") else own.head_size
        self.higher = HigherOrderPart(
            config.hidden_size, heads, kv_heads, head_dim, order, window
        ).to(next(layer.parameters()))
        self.higher.train(layer.training)

    def forward(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        cache=None,
        past_key_values=None,
        layer_past=None,
        position_embeddings=None,
        **kwargs,
    ) -> tuple[Tensor, None]:
        """hidden_states [B, T, C] -> ([B, T, C], None), with the model's masks and caches.

        A cache holds the keys and values of all axes side by side, along the channels.
        """
        require_causal_model("[nsimplex] ", self.config.of_model, kwargs)
        caches = (each for each in (cache, past_key_values, layer_past) if each is not None)
        call = _Call(hidden_states, position_embeddings, next(caches, None))
        if position_embeddings is not None:
            cos, sin = position_embeddings
            kwargs["position_embeddings"] = torch.ones_like(cos), torch.zeros_like(sin)
        return self._family.forward(
            self, hidden_states, attention_mask=attention_mask, nsimplex_call=call, **kwargs
        )

    def rotated(self, q: Tensor, k: Tensor, positions: tuple[Tensor, Tensor]) -> Sequence[Tensor]:
        """q and k with rotary positions, on as many channels as the positions have."""
        channels = positions[0].size(-1)
        turned = self._rotate(q[..., :channels], k[..., :channels], *positions)
        if channels == q.size(-1):
            return turned
        return [torch.cat([a, b[..., channels:]], -1) for a, b in zip(turned, (q, k))]


def _with_tuples(
    module: UpcycledSelfAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    nsimplex_call: _Call | None = None,
    **options,
) -> tuple[Tensor, None]:
    """The attention function of converted layers, for queries and keys without positions."""
    if nsimplex_call is None:
        raise ValueError(
            "[nsimplex] attn_implementation: expected nsimplex, got nsimplex_tuples, which only "
            "converted layers have"
        )
    require_computed(attention_mask is None, options)
    higher, positions = module.higher, nsimplex_call.position_embeddings
    further, values = higher.extra(nsimplex_call.hidden_states)
    unit_query, keys = higher.unit(query), [higher.unit(key), *further]
    if positions is not None and getattr(module, "use_rope", True):
        query, key = module.rotated(query, key, positions)
    keys, values, seen = stored(
        [key, *keys],
        [value, *values],
        nsimplex_call.cache,
        module.layer_idx,
        attention_mask,
        sliding_window,
    )
    # A mask of pairs says itself how far a layer sees.
    slides = sliding_window if seen.pairs is None else None
    scale = query.size(-1) ** -0.5 if scaling is None else float(scaling)
    own: dict[str, Any] = dict(window=slides, scale=scale, softcap=softcap)
    ordinary = attend(query, keys[:1], values[:1], seen, dropout_p=dropout, **own)
    window = [_within(left, slides) for left in higher.window]
    tuples = attend(unit_query, keys[1:], values, seen, window=window, dropout_p=dropout)
    return higher.join(ordinary, tuples).transpose(1, 2).contiguous(), None


def _within(left: int, slides: int | None) -> int:
    """The window of an axis in a layer that sees the last ``slides`` tokens."""
    if slides is None:
        return left
    return slides if left == -1 else min(left, slides)


AttentionInterface.register("nsimplex_tuples", _with_tuples)


def build_tuples(model: PreTrainedModel, every: int, order: int, window) -> None:
    require_convertible(model)
    layers, name = layers_of(model)
    at = chosen_layers("convert", len(layers), every)
    for i in at:
        require_ordinary(getattr(layers[i], name), i, model.config)
    new = [UpcycledSelfAttention(getattr(layers[i], name), order, window) for i in at]
    for i, attention in zip(at, new):
        setattr(layers[i], name, attention)
    wide = windows_of(window, order, "convert")
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
        model: a model of a family in the table of docs/guide/upcycling.md, with any head; it is
            changed in place. Its weights are floating numbers, without adapters.
        every, order, window: which layers, N, and the windows of the tuples' axes. Tuples of a
            sliding layer lie within its window too.
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
    require_plain_weights(model)
    if sample is None:
        rows, length = _SAMPLE
        generator = torch.Generator().manual_seed(0)
        shape = (rows, min(length, most_tokens(model) or length))
        sample = torch.randint(model.config.vocab_size, shape, generator=generator)
    require_sample("[convert] ", "sample", sample, model)
    build_tuples(model, every, order, window)
    calibrate(model, sample.to(model.device))
    return model
