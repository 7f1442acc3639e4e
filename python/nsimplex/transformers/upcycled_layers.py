"""Tuples of keys in layers of a trained Transformers model, which starts as the same function."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers import AutoConfig, PreTrainedModel
from transformers.pytorch_utils import Conv1D

from .._arguments import checked, describe
from .._printable import printable
from ..nn.checks import require
from ..nn.upcycling import (
    _SAMPLE,
    HigherOrderPart,
    calibrate,
    chosen_layers,
    require_sample,
    windows_of,
)
from .attention_functions import attend, require_causal_model, stored
from .model import SimplicialConfig, SimplicialForCausalLM, SimplicialModel
from .model_files import config_told, require_enough_weights, require_plain_fields, weights_told

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
        self.higher.train(layer.training)

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
        require_causal_model("[nsimplex] ", self.config, kwargs)
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


def _require_plain_weights(model: PreTrainedModel) -> None:
    """Check that a model's weights are numbers to which those of the tuples can be added."""
    at = "[convert] model: expected "
    require(
        not any(weight.is_meta for weight in model.parameters()),
        f"{at}weights that hold numbers, got some on the device meta",
    )
    require(
        not any(type(module).__module__.split(".")[0] == "peft" for module in model.modules()),
        f"{at}no adapters, got some; convert first, or merge them",
    )
    require(
        getattr(model.config, "quantization_config", None) is None,
        f"{at}floating weights, got quantised ones",
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
    linear = [
        each for name, each in layer.named_children() if name.endswith("proj") or name == "c_attn"
    ]
    floating = all(weight.is_floating_point() for weight in layer.parameters())
    require(
        floating and all(isinstance(each, (nn.Linear, Conv1D)) for each in linear),
        f"{at}to have floating weights, got quantised ones",
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
        model: a model of type llama, mistral, qwen2, qwen3 or gpt2, with any head; it is changed in
            place. The layers must see all tokens so far, without a sliding window. Its weights are
            floating numbers, without adapters.
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
    _require_plain_weights(model)
    if sample is None:
        rows, length = _SAMPLE
        generator = torch.Generator().manual_seed(0)
        shape = (rows, min(length, getattr(model.config, "n_positions", length)))
        sample = torch.randint(model.config.vocab_size, shape, generator=generator)
    require_sample("[convert] ", "sample", sample, model)
    _build(model, every, order, window)
    calibrate(model, sample.to(model.device))
    return model


#: Options of ``from_pretrained`` that say where a model is found, for its config too.
_PLACE = (
    "cache_dir",
    "force_download",
    "local_files_only",
    "proxies",
    "revision",
    "subfolder",
    "token",
)


@checked
def from_pretrained(folder: str | os.PathLike, **options) -> Any:
    """A converted model, or one of a :class:`SimplicialConfig`, from a folder of its
    ``save_pretrained``: of the class that was saved, with its head.

    The ``from_pretrained`` of Transformers would leave the tuples of converted models out.

    Args:
        folder: the folder, or a name on the hub.
        options: those of the ``from_pretrained`` of Transformers, such as ``dtype``,
            ``device_map`` and ``attn_implementation``. To change fields of the config, give a
            ``config``.

    Raises:
        ValueError: an ordinary model, a class that Transformers does not have, weights that do not
            fit, or a damaged file, which the message names.
    """
    config = _config_of(folder, options)
    plain = _class_of(config, folder)
    made = _to_be_filled(plain, config)
    with_info = options.pop("output_loading_info", False)
    may_differ = options.pop("ignore_mismatched_sizes", False)
    if not may_differ:
        require_enough_weights(folder, options.get("subfolder") or "", made, config)
    with weights_told(folder):
        model, info = made.from_pretrained(
            folder, config=config, output_loading_info=True, ignore_mismatched_sizes=True, **options
        )
    _require_fitting(info, may_differ, folder)
    model.__class__ = plain
    return (model, info) if with_info else model


def _config_of(folder: str | os.PathLike, options: dict[str, Any]) -> Any:
    config = options.pop("config", None)
    if config is None or isinstance(config, (str, os.PathLike)):
        source = folder if config is None else config
        place = {name: options[name] for name in _PLACE if name in options}
        inside = place.get("subfolder") or ""
        require_plain_fields(source, inside)
        try:
            with config_told(source, inside):
                config = AutoConfig.from_pretrained(source, **place)
        except (OSError, ValueError) as error:
            if str(error).startswith(("[SimplicialConfig]", "cannot read")):
                raise
            at = "folder" if config is None else "config"
            raise ValueError(
                f"[from_pretrained] {at}: expected a folder of save_pretrained or a name on the "
                f"hub, got {os.fspath(source)}, which has no config that can be read"
            ) from None
    shape = getattr(config, "nsimplex", None)
    require(
        isinstance(shape, dict) or config.model_type == SimplicialConfig.model_type,
        f"[from_pretrained] folder: expected a converted model, got {config.model_type} in "
        f"{os.fspath(folder)}",
    )
    return config


def _class_of(config: Any, folder: str | os.PathLike) -> Any:
    """The class that was saved, with its head."""
    name: Any = next(iter(config.architectures or ()), None)
    own = {each.__name__: each for each in (SimplicialForCausalLM, SimplicialModel)}
    named = isinstance(name, str)
    found: Any = named and (own.get(name) or getattr(transformers, name, None))
    require(
        isinstance(found, type)
        and issubclass(found, PreTrainedModel)
        and found.config_class is type(config),
        "[from_pretrained] config.architectures: expected a class of Transformers for "
        f"{config.model_type}, got {printable(name)} in {os.fspath(folder)}",
    )
    return found


def _to_be_filled(plain: Any, config: Any) -> Any:
    """The class, whose models get the tuples of a converted model when they are made."""
    own = config.model_type == SimplicialConfig.model_type
    shape = {} if own else {**config.nsimplex}
    if isinstance(shape.get("window"), list) and len(shape["window"]) == 1:
        (shape["window"],) = shape["window"]

    def build(self: Any, config: Any, **unknown) -> None:
        require(
            not unknown,
            f"[from_pretrained] {next(iter(unknown), None)}: expected an option of Transformers' "
            "from_pretrained; fields of the config are changed in a config that is given",
        )
        plain.__init__(self, config)
        if not own:
            _build(self, **shape)
            self.post_init()

    # The loader of Transformers makes the model and fills it: this class only adds the layers.
    return type(plain.__name__, (plain,), {"__init__": build, "__module__": plain.__module__})


def _require_fitting(info: dict[str, Any], may_differ: bool, folder: str | os.PathLike) -> None:
    """Check that every weight of the model was in the folder, and no other one."""
    for kind, expected in (
        ("missing_keys", "every weight of the model"),
        ("unexpected_keys", "weights of the model alone"),
        ("mismatched_keys", "weights of the model's shapes"),
    ):
        if kind == "mismatched_keys" and may_differ:
            continue
        names = sorted(name if isinstance(name, str) else name[0] for name in info[kind])
        require(
            not names,
            f"[from_pretrained] folder: expected {expected}, got {len(names)} "
            f"{kind.removesuffix('_keys')} ({', '.join(names[:3])}{', ..' * (len(names) > 3)}) "
            f"in {os.fspath(folder)}",
        )
