"""Small models of random weights, and what their tests share."""

import inspect
from itertools import pairwise

import pytest
import torch

transformers = pytest.importorskip("transformers", reason="the optional dependency is absent")

from nsimplex.transformers import SimplicialConfig, SimplicialForCausalLM

VOCABULARY, PAD = 61, 0
#: The argument's name changed within the versions that are supported.
CACHE = (
    "cache"
    if "cache" in inspect.signature(transformers.LlamaModel.forward).parameters
    else "past_key_values"
)


#: What configs of other families than Llama's say besides, or by other names.
OWN = dict(
    cohere=dict(use_qk_norm=True),
    gemma=dict(head_dim=8),
    gemma2=dict(head_dim=8, sliding_window=64, attn_logit_softcapping=0.3),
    gemma3_text=dict(head_dim=8, query_pre_attn_scalar=6, sliding_window=64),
    gpt2=dict(attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0),
    granite=dict(attention_multiplier=0.3, embedding_multiplier=2.0, residual_multiplier=0.7),
    mistral=dict(sliding_window=None),
    mixtral=dict(num_local_experts=4),
    opt=dict(ffn_dim=48, word_embed_proj_dim=16, dropout=0.0),
    phi=dict(qk_layernorm=True),
    qwen3=dict(head_dim=8),
    qwen3_moe=dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, head_dim=8),
    smollm3=dict(no_rope_layer_interval=2),
)


def shape(kind, **options):
    common = dict(
        vocab_size=VOCABULARY,
        pad_token_id=PAD,
        bos_token_id=1,
        eos_token_id=None,
        hidden_size=32,
        num_hidden_layers=4,
        num_attention_heads=4,
        max_position_embeddings=64,
    )
    if kind not in ("gpt2", "opt"):
        common["intermediate_size"] = 48
    if kind not in ("gpt2", "opt", "gpt_neox"):
        common["num_key_value_heads"] = 2
    if kind == "simplicial":
        return SimplicialConfig(**{**common, "every": 2, "window": (4, 9), **options})
    if "n_positions" in options:  # GPT-2's name
        del common["max_position_embeddings"]
    config = transformers.CONFIG_MAPPING[kind]
    return config(**{**common, **OWN.get(kind, {}), **options})


def build(kind, seed=0, gain=6.0, **options):
    """A model whose layers say something: its weights are larger than at the start of training."""
    torch.manual_seed(seed)
    usual = "eager" if kind == "gemma2" else "sdpa"  # which does not cap logits
    implementation = options.pop("attn_implementation", usual)
    config = shape(kind, **options)
    config._attn_implementation = implementation
    if kind == "simplicial":
        model = SimplicialForCausalLM(config)
    else:
        model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(gain)
    return model.eval()


def tokens(rows=2, length=19, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, VOCABULARY, (rows, length), generator=generator)


def padded(lengths=(5, 12, 9), seed=2):
    """Rows of different lengths, padded in front: (tokens, mask, the rows alone)."""
    rows = [tokens(1, length, seed + length) for length in lengths]
    longest = max(lengths)
    ids = torch.full((len(rows), longest), PAD)
    mask = torch.zeros_like(ids)
    for i, row in enumerate(rows):
        ids[i, longest - row.size(1) :] = row[0]
        mask[i, longest - row.size(1) :] = 1
    return ids, mask, rows


def generate(model, ids, mask=None, new=8, **options):
    if mask is None:
        mask = torch.ones_like(ids)
    return model.generate(
        ids, attention_mask=mask, max_new_tokens=new, do_sample=False, pad_token_id=PAD, **options
    )


def positions_of(mask):
    return (mask.cumsum(1) - 1).clamp(min=0)


def logits_in_steps(model, ids, cache, first=7):
    """Logits of a text that is given in parts: a prompt, a part of three tokens, then single
    ones."""
    cuts = [0, first, first + 3, *range(first + 4, ids.size(1) + 1)]
    parts = []
    for a, b in pairwise(cuts):
        parts.append(model(ids[:, a:b], use_cache=True, **{CACHE: cache}).logits)
    return torch.cat(parts, 1)
