"""Checks of the tensors that say which tokens of a layer's input attend to which."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .._arguments import describe
from .checks import can_be_read, require
from .key_tables import Places
from .select import Linear, Neighbours, Path, Select, TopK, part_of, require_graph


def require_places(name: str, x: Tensor, places: Places, pairs: bool) -> Tensor | None:
    """Check positions and adjacency of tokens x [B, T, C].

    Return the adjacency. If it is one of ``pairs``, one of shape [T, T] is returned as [1, T, T].
    """
    batch, length, _ = x.shape
    positions, adjacency = places.positions, places.adjacency
    if positions is not None and (
        positions.dtype != torch.int64 or positions.shape != (batch, length)
    ):
        raise ValueError(
            f"[{name}] positions: expected int64 of shape {[batch, length]}, got "
            f"{positions.dtype} of shape {list(positions.shape)}"
        )
    if positions is not None:
        _require_rising(name, positions, places)
    if adjacency is None:
        return None
    if not pairs or adjacency.layout == torch.sparse_csr:
        require_graph(name, adjacency)
        require(
            adjacency.layout != torch.sparse_csr or not torch.compiler.is_compiling(),
            f"[{name}] adjacency: expected bool or edges in compiled and exported code, got sparse "
            "CSR",
        )
        edges = adjacency.layout == torch.strided and adjacency.dtype != torch.bool
        if edges:
            return adjacency
    shape = adjacency.shape
    fits = adjacency.dtype == torch.bool or adjacency.layout == torch.sparse_csr
    fits = fits and adjacency.dim() in (2, 3) and shape[-2:] == (length, length)
    if not fits or (adjacency.dim() == 3 and shape[0] not in (1, batch)):
        raise ValueError(
            f"[{name}] adjacency: expected bool of shape {[length, length]} or "
            f"{[batch, length, length]}, got {adjacency.dtype} of shape {list(adjacency.shape)}"
        )
    return (
        adjacency[None]
        if pairs and adjacency.dim() == 2 and adjacency.layout == torch.strided
        else adjacency
    )


def _require_rising(name: str, positions: Tensor, places: Places) -> None:
    """Check that positions rise from one token to the next, but for padding and from one packed
    document to the next. Masks and windows compare tokens by their order in x as well."""
    lengths, bounds = places.key_lengths, places.cu_seqlens
    masks: Any = places.key_masks
    given: list[Any] = [each for each in (positions, lengths, masks, bounds) if each is not None]
    if not all(isinstance(each, Tensor) and can_be_read(each) for each in given):
        return
    steps = positions.diff(dim=1)
    if masks is not None and masks.dtype == torch.bool and masks.shape == positions.shape:
        steps = steps.masked_fill(~(masks[:, 1:] & masks[:, :-1]), 1)
    if lengths is not None and lengths.shape[-1:] == positions.shape[:1]:
        real = lengths.reshape(-1, positions.size(0)).amax(0)
        steps = steps.masked_fill(torch.arange(1, positions.size(1)) >= real[:, None], 1)
    if bounds is not None:
        inside = bounds[(bounds > 0) & (bounds < positions.size(1))]
        steps[:, inside.long() - 1] = 1
    if bool((steps <= 0).any()):
        row, place = (steps <= 0).nonzero()[0].tolist()
        before, after = positions[row, place : place + 2].tolist()
        raise ValueError(
            f"[{name}] positions: expected numbers that rise from token to token, got {before} "
            f"before {after} in sequence {row}"
        )


def require_sparse_places(name: str, x: Tensor, places: Places, select: Select) -> None:
    """Check the masks of a layer with ``select``, which hold for all axes together."""
    batch, length, _ = x.shape
    at, beside = f"[{name}] ", f"beside select {type(select).__name__}"
    require(places.mask is None, f"{at}mask: expected None {beside}; use adjacency")
    require(places.pair_masks is None, f"{at}pair_masks: expected None {beside}; use adjacency")
    lengths, masks, bounds = places.key_lengths, places.key_masks, places.cu_seqlens
    if lengths is not None:
        whole = lengths.dtype in (torch.int32, torch.int64)
        require(
            whole and lengths.shape == (batch,),
            f"{at}key_lengths: expected int64 of shape {[batch]} {beside}, got {lengths.dtype} of "
            f"shape {list(lengths.shape)}",
        )
    if masks is not None:
        one = isinstance(masks, Tensor) and masks.dtype == torch.bool
        require(
            one and isinstance(masks, Tensor) and masks.shape == (batch, length),
            f"{at}key_masks: expected one of bool and shape {[batch, length]} {beside}, got "
            f"{describe(masks)}",
        )
    linear = isinstance(select, Linear)
    for given in ("cu_seqlens", "adjacency"):
        require(
            not linear or getattr(places, given) is None, f"{at}{given}: expected None {beside}"
        )
    if bounds is not None:
        whole = bounds.dtype in (torch.int32, torch.int64) and bounds.dim() == 1
        require(
            whole and bounds.numel() > 0,
            f"{at}cu_seqlens: expected int64 [documents + 1], got {bounds.dtype} of shape "
            f"{list(bounds.shape)}",
        )
        if not torch.compiler.is_compiling() and bounds.is_cpu:
            rising = bool((bounds.diff() >= 0).all())
            require(
                rising and bounds[0].item() == 0 and bounds[-1].item() == length,
                f"{at}cu_seqlens: expected 0 <= .. <= {length}, the tokens of x, got "
                f"{describe(bounds)}",
            )
    sparse = places.adjacency is not None and places.adjacency.layout == torch.sparse_csr
    if sparse and part_of(select, Neighbours) is None:
        alone = isinstance(select, (TopK, Path)) and masks is None and bounds is None
        require(
            alone,
            f"{at}adjacency: expected bool beside key_masks, cu_seqlens or Union, got sparse CSR",
        )
