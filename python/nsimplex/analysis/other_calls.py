"""Calls of attention whose weights are not one softmax over the tuples of their keys."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from .._library import operators
from .attention_calls import AttentionCall, CallPart

__all__ = ["AugmentedCall", "FaceCall", "SeparableCall", "augmented"]


class FaceCall(AttentionCall):
    """One call of the operator nsimplex::face_attention."""

    def marginals(self, axis: int) -> Tensor:
        options = self.options | {"reduce": "sum", "output_scale": 1.0}
        return operators.face_attention(self.query, self.keys, self._one_hot(axis), **options)[0]

    def parts(self) -> list[CallPart]:
        """The ordinary call whose logits are the logarithms of the weights: a mask subtracts the
        normaliser of each face and the logarithm of the number of faces."""
        zeros = [key.new_zeros(1).expand(*key.shape[:3], 1) for key in self.keys]
        lse = operators.face_attention(self.query, self.keys, zeros, **self.options)[1]
        known = lse.isfinite()
        faces = known.flatten(3).sum(-1) if lse.dim() > 3 else known
        logs = faces.clamp_min(1).log().view(*lse.shape[:3], *[1] * (lse.dim() - 3))
        added = torch.where(known, -lse - logs, -torch.inf)[..., None]
        added = added.expand(*lse.shape, self.keys[-1].size(2))
        mask = self.options.get("mask")
        if mask is not None:
            added = (
                added + mask if mask.is_floating_point() else added.masked_fill(~mask, -torch.inf)
            )
        options = self.options | {"mask": added.to(self.query.dtype)}
        call = AttentionCall(self.query, self.keys, self.values, options)
        return [CallPart([*range(self.order)], call, lse.new_zeros(lse.shape[:3]))]


class SeparableCall(AttentionCall):
    """One call of the operator nsimplex::separable_attention: query and keys are features.

    The weight of a tuple is relu(logit) over the sum of all, with the logit sum_r q_r k1_r .. kN_r.
    """

    @staticmethod
    def of(query: Tensor, keys: list[Tensor], values: list[Tensor], options: Any) -> SeparableCall:
        own = dict(logit_scale=1.0, normalizer="relu", causal=bool(options.get("causal")))
        return SeparableCall(query, keys, values, own | {"window": options.get("window")})

    def lse(self) -> Tensor:
        return (self.query.double() * self._others(None)).sum(-1).log()

    def marginals(self, axis: int) -> Tensor:
        rest = self.query.double() * self._others(axis)  # [B, Hq, Tq, R]
        key = self._heads(axis)
        found = (rest @ key.transpose(-1, -2)) * self._admitted(axis)[:, None]
        total = found.sum(-1, keepdim=True)
        return torch.where(total > 0, found / total, 0).to(self.query.dtype)

    def _others(self, axis: int | None) -> Tensor:
        """The product of the sums of features over the other axes, [B, Hq, Tq, R]."""
        product = torch.ones_like(self.query, dtype=torch.float64)
        for other in range(self.order):
            if other != axis:
                product = product * (self._admitted(other)[:, None].double() @ self._heads(other))
        return product

    def _heads(self, axis: int) -> Tensor:
        """The features of an axis for every query head, [B, Hq, T_m, R]."""
        key = self.keys[axis]
        return key.repeat_interleave(self.query.size(1) // key.size(1), 1).double()

    def _admitted(self, axis: int) -> Tensor:
        """Whether a query sees a key, [B or 1, Tq, T_m]."""
        length, device = self.keys[axis].size(2), self.query.device
        places = self.options.get("query_positions")
        if places is None:
            places = torch.arange(self.query.size(2), device=device)[None]
            places = places + (length - self.query.size(2))
        ahead = torch.arange(length, device=device) - places[..., None]
        seen = torch.ones_like(ahead, dtype=torch.bool)
        if self.options["causal"]:
            seen &= ahead <= 0
        if self.options["window"] is not None:
            left, right = self.options["window"][2 * axis : 2 * axis + 2]
            if left >= 0:
                seen &= -left < ahead
            if right >= 0:
                seen &= ahead <= right
        return seen


@dataclass(frozen=True)
class AugmentedCall:
    """A call with rows of ones, as the ordinary calls on some of its axes."""

    axes: list[list[int]]  #: of each ordinary call; the first has all
    calls: list[AttentionCall]
    normalizer: str
    sink: Tensor | None
    bias: Tensor | None  #: [N, Hq]: row n - 1 is added to the logits of n keys

    @property
    def query(self) -> Tensor:
        return self.calls[0].query

    @property
    def keys(self) -> list[Tensor]:
        return self.calls[0].keys

    @property
    def order(self) -> int:
        return len(self.keys)

    def entry(self, batch: int) -> AugmentedCall:
        """The call for one batch entry, without gradients and dropout."""
        return replace(self, calls=[call.entry(batch) for call in self.calls])

    def rows(self, chosen: Tensor) -> AugmentedCall:
        """The call for some of its queries, indices int64 [Q] in rising order."""
        return replace(self, calls=[call.rows(chosen) for call in self.calls])

    def double(self) -> AugmentedCall:
        """The call in float64."""
        return replace(self, calls=[call.double() for call in self.calls])

    def parts(self) -> list[CallPart]:
        """The ordinary calls, with the normaliser of the whole call."""
        whole, _ = self._normalizers()
        return [
            CallPart(axes, call, whole - self._bias(len(axes)))
            for axes, call in zip(self.axes, self.calls, strict=True)
        ]

    def marginals(self, axis: int) -> Tensor:
        """The weight that each query puts on each key of an axis, [B, Hq, Tq, T_axis]. What is
        missing from the sum of all axes' tuples is the weight of tuples with its row of ones."""
        whole, lses = self._normalizers()
        found = torch.zeros((), dtype=self.query.dtype, device=self.query.device)
        for axes, call, lse in zip(self.axes, self.calls, lses, strict=True):
            if axis in axes:
                own = call.marginals(axes.index(axis))
                if self.normalizer != "sigmoid":
                    own = own * torch.exp(lse - whole).nan_to_num(0)[..., None].to(own.dtype)
                found = found + own
        return found

    def _bias(self, order: int) -> Tensor | float:
        return 0.0 if self.bias is None else self.bias.detach()[order - 1][:, None]

    def _normalizers(self) -> tuple[Tensor, list[Tensor]]:
        """(that of the whole call, those of its ordinary calls), with the biases of the orders."""
        lses = [
            call.lse() + self._bias(len(axes))
            for axes, call in zip(self.axes, self.calls, strict=True)
        ]
        whole = torch.stack(lses).logsumexp(0)
        if self.sink is not None:
            sink = self.sink.detach().to(whole.dtype)[:, None]
            whole = torch.where(whole.isneginf(), whole, torch.logaddexp(whole, sink))
        return whole, lses


def augmented(call: AttentionCall) -> AttentionCall | AugmentedCall:
    """The call itself, or its ordinary parts if it has rows of ones."""
    ones = [int(axis) for axis in call.options.get("augment") or ()]
    if not ones:
        return call
    axes = []
    for count in range(len(ones) + 1):
        for left_out in itertools.combinations(ones, count):
            real = [axis for axis in range(call.order) if axis not in left_out]
            if real:
                axes.append(real)
    normalizer = call.options.get("normalizer") or "softmax"
    return AugmentedCall(
        axes,
        [_on_axes(call, real) for real in axes],
        normalizer,
        call.options.get("sink") if normalizer == "softmax_sink" else None,
        call.options.get("order_bias"),
    )


def _on_axes(call: AttentionCall, axes: list[int]) -> AttentionCall:
    dropped = ("augment", "order_bias", "sink")
    options = {name: value for name, value in call.options.items() if name not in dropped}
    if options.get("normalizer") == "softmax_sink":
        options["normalizer"] = "softmax"
    if options.get("window") is not None:
        options["window"] = [options["window"][2 * m + side] for m in axes for side in (0, 1)]
    if options.get("key_masks") is not None:
        options["key_masks"] = [options["key_masks"][m] for m in axes]
    lengths = options.get("key_lengths")
    if lengths is not None and lengths.dim() == 2:
        options["key_lengths"] = lengths[axes]
    keys, values = ([own[m] for m in axes] for own in (call.keys, call.values))
    # The scale is that of the whole call.
    return AttentionCall(call.query, keys, values, options | {"logit_scale": call.scale[0]})
