"""The options of attention layers, for layers that pass them on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import torch

from .._choices import (
    Distinct,
    Form,
    LearnedReduce,
    Norm,
    Normalizer,
)
from .._options import Scale, Window


class LayerOptions(TypedDict, total=False):
    """The options of :class:`SimplicialAttention` without ``select``. Type checkers read this
    class; a test compares it with the signature."""

    kv_heads: int
    head_dim: int
    order: int
    context_dims: Sequence[int]
    norm: Norm
    scale: Scale
    causal: bool
    window: Window
    form: Form
    reduce: LearnedReduce
    unit_layer: bool
    rotary: bool
    rotary_base: float
    allow_non_invariant: bool
    normalizer: Normalizer
    face: bool
    augment: bool | Sequence[int] | None
    distinct: Distinct
    dropout: float
    bias: bool
    orders: Sequence[int] | None
    softcap: float | None
    device: torch.device | str | None
    dtype: torch.dtype | None
