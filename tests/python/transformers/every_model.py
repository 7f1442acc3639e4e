"""Small models of the types that Transformers knows, and inputs for them."""

import inspect

import torch
from tiny_models import transformers
from transformers.models.auto import modeling_auto

_LAYERS = (
    "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers "
    "num_encoder_layers num_decoder_layers layers depth"
)
_HEADS = (
    "num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads"
)
_WIDTH = (
    "hidden_size d_model n_embd embed_dim projection_dim decoder_hidden_size embedding_size dim"
)
_INNER = (
    "intermediate_size ffn_dim d_ff encoder_ffn_dim decoder_ffn_dim n_inner hidden_dim mlp_dim "
    "ffn_hidden_size"
)
_EIGHT = "head_dim d_kv qk_nope_head_dim qk_rope_head_dim v_head_dim index_head_dim"
_SIXTEEN = "kv_lora_rank q_lora_rank moe_intermediate_size patch_size num_mel_bins expert_ffn_size"
_LONGEST = (
    "max_position_embeddings n_positions max_source_positions max_target_positions max_seq_len"
)
_FOUR = (
    "num_experts num_local_experts n_routed_experts sliding_window attention_window index_topk "
    "rotary_dim"
)
_SIZES = {
    **dict.fromkeys(_LAYERS.split(), 2),
    **dict.fromkeys(_HEADS.split(), 4),
    **dict.fromkeys(_WIDTH.split(), 32),
    **dict.fromkeys(_INNER.split(), 48),
    **dict.fromkeys(_EIGHT.split(), 8),
    **dict.fromkeys(_SIXTEEN.split(), 16),
    **dict.fromkeys(_LONGEST.split(), 64),
    **dict.fromkeys(_FOUR.split(), 4),
    **dict(vocab_size=99, num_key_value_heads=2, image_size=32, num_experts_per_tok=2, n_group=1),
    **dict(topk_group=1, input_size=1, first_k_dense_replace=1, num_shared_experts=1),
}
_IDS = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
_HEAD_OF = dict(
    causal=modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING,
    seq2seq=modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING,
    base=modeling_auto.MODEL_MAPPING,
)
MOST_WEIGHTS = 3e7


def _small(config):
    """The options that make a config like this one small."""
    number = {name for name, value in vars(config).items() if type(value) is int}
    options = {name: size for name, size in _SIZES.items() if name in number}
    options |= {name: _IDS[name] for name in _IDS if (getattr(config, name, 0) or 0) >= 90}
    if hasattr(config, "qk_rope_head_dim"):  # every head has keys of its own
        options["num_key_value_heads"] = 4
    if kinds := list(dict.fromkeys(getattr(config, "layer_types", None) or ())):
        options["num_hidden_layers"] = max(2, len(kinds))
        options["layer_types"] = kinds if len(kinds) > 1 else kinds * 2
    return options


def _shrink(config):
    for name, value in _small(config).items():
        setattr(config, name, value)
    for value in vars(config).values():
        if isinstance(value, transformers.PretrainedConfig):
            _shrink(value)
    return config


def tiny_config(kind):
    kind_of_config = transformers.CONFIG_MAPPING[kind]
    usual = kind_of_config()
    return _shrink(usual) if usual.sub_configs else kind_of_config(**_small(usual))


def classes_of(kind):
    """The classes of a type of model: {"causal", "seq2seq" or "base": class}."""
    config, found = transformers.CONFIG_MAPPING[kind], {}
    for name, mapping in _HEAD_OF.items():
        if config in mapping.keys():  # noqa: SIM118, which loads no module
            known = mapping[config]
            found[name] = known[0] if isinstance(known, tuple) else known
    return found


def tiny_model(cls, kind):
    """With weights that make the model sensitive to what it attends to."""
    config = tiny_config(kind)
    config._attn_implementation = "eager"
    with torch.device("meta"):
        assert sum(weight.numel() for weight in cls(config).parameters()) < MOST_WEIGHTS
    torch.manual_seed(0)
    model = cls(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.normal_(0, 0.15)
            else:
                weight.add_(torch.randn_like(weight) * 0.1)
    return model


def inputs_of(model, padding=None):
    """Two rows for a model; ``padding`` "left" or "right" of the first one's tokens."""
    generator = torch.Generator().manual_seed(1)
    takes, main = inspect.signature(model.forward).parameters, model.main_input_name
    given = {}
    if main == "pixel_values":
        given[main] = torch.randn(2, 3, 32, 32, generator=generator)
    elif main == "input_values":
        given[main] = torch.randn(2, 4000, generator=generator)
    elif main == "input_features":
        given[main] = torch.randn(2, 16, 128, generator=generator)
    else:
        given["input_ids"] = torch.randint(3, 80, (2, 9), generator=generator)
        if padding is not None:
            mask = torch.ones(2, 9, dtype=torch.long)
            mask[0, :3] = 0
            given["attention_mask"] = mask if padding == "left" else mask.flip(1)
        if padding == "left" and "position_ids" in takes and "decoder_input_ids" not in takes:
            given["position_ids"] = (mask.cumsum(1) - 1).clamp(min=0)
    if "decoder_input_ids" in takes:
        given["decoder_input_ids"] = torch.randint(3, 80, (2, 7), generator=generator)
    return given


def result_of(model, given):
    """The logits or hidden states of all tokens, without those of padding."""
    torch.manual_seed(0)
    with torch.no_grad():
        outputs = model(**given)
    outputs = outputs[0] if isinstance(outputs, tuple) else next(iter(outputs.values()))
    mask = given.get("attention_mask")
    if mask is not None and outputs.shape[:2] == mask.shape:
        outputs = outputs[mask.bool()]
    return outputs
