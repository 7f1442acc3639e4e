"""The families of models whose layers `convert` takes, and what is checked of such a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from ..nn.checks import require
from ..nn.upcycling import HigherOrderPart
from .attention_functions import require_causal_model

__all__ = [
    "FAMILIES",
    "Family",
    "layers_of",
    "require_convertible",
    "require_ordinary",
    "require_plain_weights",
]


class Family(NamedTuple):
    """What the attention of a family has. A converted layer runs the family's own code, so nothing
    but the documentation reads these words, and a test compares them with the models."""

    positions: str = "rotary"
    #: Which queries and keys are normalised.
    norm: str = "none"
    slides: bool = False


#: By the ``model_type`` of a config.
FAMILIES = dict(
    cohere=Family(norm="a head, if asked for"),
    gemma=Family(),
    gemma2=Family(slides=True),
    gemma3_text=Family(norm="a head", slides=True),
    gpt2=Family("learned"),
    gpt_neox=Family("rotary, on a part of a head"),
    granite=Family(),
    llama=Family(),
    mistral=Family(slides=True),
    mixtral=Family(slides=True),
    olmo2=Family(norm="all heads together"),
    opt=Family("learned"),
    phi=Family("rotary, on a part of a head", "a head, if asked for"),
    phi3=Family(slides=True),
    qwen2=Family(slides=True),
    qwen3=Family(norm="a head", slides=True),
    qwen3_moe=Family(norm="a head", slides=True),
    smollm3=Family("rotary, not in every layer", slides=True),
)

#: Why some well-known families are not among them.
_LACKING = dict(
    bart="cross-attention",
    bert="tokens that see later ones",
    bloom="ALiBi",
    gpt_oss="attention sinks",
    mpt="ALiBi",
    t5="position biases",
)


def layers_of(model: PreTrainedModel) -> tuple[nn.ModuleList, str]:
    """The decoder's layers, and the name of their attention."""
    base: Any = model.base_model
    decoder = getattr(base, "decoder", base)
    layers = decoder.h if hasattr(decoder, "h") else decoder.layers
    names = ("self_attn", "attention", "attn")
    return layers, next(name for name in names if hasattr(layers[0], name))


def require_convertible(model: PreTrainedModel) -> None:
    """Check that converted layers would compute what the model's layers compute."""
    at, config = "[convert] model: expected ", model.config
    kind = config.model_type
    reason = f", whose layers have {_LACKING[kind]}" if kind in _LACKING else ""
    require(kind in FAMILIES, f"{at}one of {', '.join(FAMILIES)}, got {kind}{reason}")
    require(
        not any(isinstance(module, HigherOrderPart) for module in model.modules()),
        f"{at}an ordinary model, got a converted one",
    )
    require_causal_model("[convert] model.config.", config)
    require(
        not getattr(config, "add_cross_attention", False), f"{at}a decoder without cross-attention"
    )


def require_plain_weights(model: PreTrainedModel) -> None:
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


def require_ordinary(layer: nn.Module, index: int, config: Any) -> None:
    """Check that a layer to convert is the causal attention of its family."""
    at, family = f"[convert] model: expected layer {index} ", config.model_type
    own, home = type(layer), family.removesuffix("_text")
    require(
        own.__module__ == f"transformers.models.{home}.modeling_{home}"
        and own.__name__.endswith("Attention"),
        f"{at}to have the attention of {family}, got {own.__name__}",
    )
    require(
        "forward" not in vars(layer),
        f"{at}to compute by itself, got a layer with another forward; convert before the model is "
        "dispatched",
    )
    require(
        getattr(layer, "is_causal", True),
        f"{at}to see no later token, got use_bidirectional_attention",
    )
    projections = [
        each
        for name, each in layer.named_children()
        if not name.endswith("norm") and not name.endswith("dropout")
    ]
    floating = all(weight.is_floating_point() for weight in layer.parameters())
    require(
        floating and all(isinstance(each, (nn.Linear, Conv1D)) for each in projections),
        f"{at}to have floating weights, got quantised ones",
    )
    kinds: Sequence[str] = getattr(config, "layer_types", None) or ()
    kind = kinds[index] if kinds else "full_attention"
    require(
        kind in ("full_attention", "sliding_attention"),
        f"{at}to have full or sliding attention, got {kind}",
    )
