"""The sharding rules of the operators, registered for DTensor when this module is imported."""

from __future__ import annotations

import torch
from torch.distributed.tensor import DTensor

from .._library import operators
from .sharding import Rule, run_sharded

__all__ = ["RULES", "register_rules"]

#: The options of attention that are tensors.
_OPTIONS = {
    "key_lengths": "<b",
    "key_masks": "b.",
    "query_positions": "b.",
    "sink": "h",
    "alibi_slopes": "h",
    "order_bias": ".h",
    "pair_masks": "<bh..",
}
_ATTENTION = {"query": "bh..", "keys": "bk..", "values": "bk..", "mask": "<bh.+", **_OPTIONS}
_SAVED = {"out": "bh..", "lse": "bh.", "normalizer": "bh."}
_INCOMING = {"grad_out": "bh..", "grad_lse": "bh.", "grad_normalizer": "bh."}
_SEPARABLE = {"query": "bh..", "keys": "bk..", "values": "bk.."}
_SPARSE = {**_SEPARABLE, "indices": "bk..!", "offsets": "bk.", "reducer_weights": "k..."}
_TOPK = {
    "query": "b...",
    "key": "b...",
    "weights": "b..",
    "lse": "b..",
    "key_lengths": "b",
    "adjacency": "b..",
    "candidates": "b..",
}


def _backward(arguments: dict[str, str], *returns: str) -> Rule:
    following = {**_SAVED, **_INCOMING}
    return Rule({**arguments, **following}, returns, follow=frozenset(following))


_forward = Rule(_ATTENTION, ("bh..", "bh."))
_sparse = Rule(_SPARSE, ("bh..", "bh."))
_sparse_backward = _backward(_SPARSE, "=query", "=keys", "=values", "=reducer_weights")
_separable = Rule(_SEPARABLE, ("bh..", "bh."))
_rows = Rule({"x": "*."}, ("*.",))

#: The operators that tensors are sharded for. The others need their tensors whole: they sum over
#: all rows, or their rows are tuples of graphs that no dimension separates.
RULES: dict[str, Rule] = {
    "attention": _forward,
    "attention_reference": _forward,
    "attention_backward": _backward(_ATTENTION, "=query", "=keys", "=values", "=mask", "=sink"),
    "attention_pair_masks_backward": _backward(_ATTENTION, "=pair_masks"),
    "sparse_attention": _sparse,
    "sparse_attention_reference": _sparse,
    "sparse_attention_backward": _sparse_backward,
    "sparse_attention_reference_backward": _sparse_backward,
    "separable_attention": _separable,
    "separable_attention_reference": _separable,
    "separable_attention_backward": _backward(_SEPARABLE, "=query", "=keys", "=values"),
    "rotary": Rule({"x": "bh..", "positions": "<b.", "angles": "b.h.!|.h.!"}, ("bh..",)),
    "topk_keys": Rule(_TOPK, ("b..", "b.."), axes="b"),
    "topk_keys_reference": Rule(_TOPK, ("b..", "b.."), axes="b"),
    "elu_features": _rows,
    # they depend on the width of x alone
    "random_directions": Rule({"x": "*."}, ("..",)),
}


def _rule(name: str) -> Rule:
    """The rule of an operator. Operators without a rule use replicated tensors."""
    return RULES.get(name, Rule(axes="", follow=frozenset({"grad", "grad_out"})))


def _registered() -> list[str]:
    """All operators. Those that are composed of others for their gradients never reach DTensor."""
    names = {schema.name for schema in torch._C._jit_get_all_schemas()}
    return sorted(name.split("::")[1] for name in names if name.startswith("nsimplex::"))


def register_rules() -> None:
    """Register a rule for every operator, once. Importing :mod:`nsimplex.distributed` does it."""
    for name in _registered():
        operator, rule = getattr(operators, name), _rule(name)

        def run(mode, func, types, args, kwargs, rule=rule):
            return run_sharded(rule, func, args, kwargs or {})

        torch.library.register_torch_dispatch(operator.default, DTensor, run)
