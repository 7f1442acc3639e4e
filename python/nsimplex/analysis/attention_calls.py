"""A call of attention as a value: it runs again, for some of its queries or for other tensors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._library import operators

__all__ = ["AttentionCall", "CallPart"]


@dataclass(frozen=True)
class AttentionCall:
    """One call of attention: its tensors, and options of the operator nsimplex::attention."""

    query: Tensor  #: [B, Hq, Tq, D]
    keys: list[Tensor]  #: N tensors [B, Hk, T_m, D]
    values: list[Tensor]
    options: dict[str, Any]

    @property
    def order(self) -> int:
        return len(self.keys)

    @property
    def scale(self) -> tuple[float, float]:
        """(s1, s2) as numbers."""
        logit, output = self.options.get("logit_scale"), self.options.get("output_scale")
        standard = self.query.size(-1) ** -0.5
        return standard if logit is None else logit, 1.0 if output is None else output

    def entry(self, batch: int) -> AttentionCall:
        """The call for one batch entry, without gradients and dropout."""
        one = slice(batch, batch + 1)
        options: dict[str, Any] = self.options | {"dropout_p": 0.0}
        for name, value in options.items():
            if name in ("query_positions", "mask", "key_lengths") and value is not None:
                full = value.dim() == self.order + 3 if name == "mask" else value.dim() > 0
                axis = value.dim() - 1 if name == "key_lengths" else 0
                if full and value.size(axis) > 1:
                    options[name] = value.narrow(axis, batch, 1)
        if options.get("key_masks") is not None:
            options["key_masks"] = [mask[one] for mask in options["key_masks"]]
        if options.get("pair_masks") is not None:
            options["pair_masks"] = [
                mask[one] if mask.dim() == 4 and mask.size(0) > 1 else mask
                for mask in options["pair_masks"]
            ]
        return replace(
            self,
            query=self.query[one].detach(),
            keys=[key[one].detach() for key in self.keys],
            values=[value[one].detach() for value in self.values],
            options=options,
        )

    def rows(self, chosen: Tensor) -> AttentionCall:
        """The call for some of its queries, indices int64 [Q] in rising order."""
        options, mask = dict(self.options), None
        if options.get("cu_seqlens") is not None:
            mask = self._documents(options.pop("cu_seqlens"), chosen)
        positions, batch = options.get("query_positions"), self.query.size(0)
        if positions is None:
            if self._uses_positions():
                lengths = {key.size(2) for key in self.keys}
                if len(lengths) > 1:
                    raise ValueError(f"expected key axes of one length, got {sorted(lengths)}")
                aligned = self.keys[0].size(2) - self.query.size(2)
                options["query_positions"] = (chosen + aligned).expand(batch, -1).contiguous()
        elif positions.dim() == 1:
            options["query_positions"] = positions[:, None] + chosen
        else:
            options["query_positions"] = positions[:, chosen].contiguous()
        if options.get("pair_masks") is not None:
            options["pair_masks"] = [
                each.index_select(-2, chosen) if each.size(-2) > 1 else each
                for each in options["pair_masks"]
            ]
        given, axis = options.get("mask"), -1 - self.order
        if given is not None and given.size(axis) > 1:
            given = given.index_select(given.dim() + axis, chosen)
        if mask is None or given is None:
            options["mask"] = given if mask is None else mask
        elif given.dtype == torch.bool:
            options["mask"] = given & mask
        else:
            options["mask"] = given.masked_fill(~mask, -torch.inf)
        return replace(self, query=self.query[:, :, chosen], options=options)

    def _uses_positions(self) -> bool:
        return bool(
            self.options.get("causal")
            or self.options.get("window") is not None
            or self.options.get("distinct") == "with_query"
            or self.options.get("alibi_slopes") is not None
        )

    def _documents(self, bounds: Tensor, chosen: Tensor) -> Tensor:
        """Packed documents as a mask of the tuples of some queries, [Q, T_1, .., T_N]."""
        places = torch.arange(self.query.size(2), device=bounds.device)
        document = torch.bucketize(places, bounds[1:-1].contiguous(), right=True)
        mask = torch.ones((), dtype=torch.bool, device=bounds.device)
        rows = document[chosen].view([-1] + [1] * self.order)
        for axis in range(self.order):
            keys = [1] * (self.order + 1)
            keys[axis + 1] = -1
            mask = mask & (rows == document.view(keys))
        return mask

    def run(self, query: Tensor, keys: list[Tensor], values: list[Tensor]) -> tuple[Tensor, Tensor]:
        """(out, lse) of this call of one entry for other tensors, for a batch of any size."""
        count, options = query.size(0), dict(self.options)
        for name in ("query_positions", "key_lengths"):
            value = options.get(name)
            if value is not None:
                axis = value.dim() - 1 if name == "key_lengths" else 0
                sizes = [-1] * value.dim()
                sizes[axis] = count
                options[name] = value.expand(sizes).contiguous()
        if options.get("key_masks") is not None:
            options["key_masks"] = [mask.expand(count, -1) for mask in options["key_masks"]]
        return operators.attention(query, keys, values, **options)

    def marginals(self, axis: int) -> Tensor:
        """The weight that each query puts on each key of an axis, [B, Hq, Tq, T_axis]."""
        options = self.options | {"reduce": "sum", "output_scale": 1.0}
        return operators.attention(self.query, self.keys, self._one_hot(axis), **options)[0]

    def _one_hot(self, axis: int) -> list[Tensor]:
        """Values that turn a sum over tuples into the marginals of an axis."""
        width = self.keys[axis].size(2)
        rows = [key.new_zeros(1, width).expand(*key.shape[:3], width) for key in self.keys]
        one_hot = torch.eye(width, dtype=self.query.dtype, device=self.query.device)
        rows[axis] = one_hot.expand(*self.keys[axis].shape[:3], width)
        return rows

    def entropy(self) -> tuple[Tensor, Tensor]:
        """(entropy of each query's weights in nats, logarithm of its number of tuples), [B, Hq,
        Tq], for softmax. A query without tuples has NaN.

        The entropy is lse - sum_J w_J e_J. The sum is the derivative of lse with respect to a
        factor of the query, so that no tuple is stored.
        """
        values = [key.new_zeros(1).expand(*key.shape[:3], 1) for key in self.keys]
        query, mask = self.query.detach().requires_grad_(), self.options.get("mask")
        wanted = [query]
        if mask is not None and mask.is_floating_point():
            mask = mask.detach().requires_grad_()
            wanted.append(mask)
        with torch.enable_grad():
            lse = operators.attention(query, self.keys, values, **self.options | {"mask": mask})[1]
            admitted = lse.isfinite()
            slopes = torch.autograd.grad(lse.masked_fill(~admitted, 0).sum(), wanted)
        mean = (slopes[0] * query).sum(-1).to(lse.dtype)
        if len(slopes) > 1:
            assert mask is not None
            full = [*lse.shape, *[key.size(2) for key in self.keys]]
            added = torch.where(mask.isfinite(), mask, 0).detach()
            share = slopes[1] * added
            if list(share.shape) != full:  # one row of the mask serves several queries
                return self._masked_in_full(full).entropy()
            mean = mean + share.flatten(3).sum(-1).to(lse.dtype)
            mask = mask.detach().isfinite()
        free = operators.attention(
            torch.zeros_like(self.query), self.keys, values, **self.options | {"mask": mask}
        )[1]
        entropy = (lse - mean).detach().masked_fill(~admitted, torch.nan)
        return entropy, free.masked_fill(~admitted, torch.nan)

    def _masked_in_full(self, shape: list[int]) -> AttentionCall:
        mask: Tensor = self.options["mask"].expand(shape).contiguous()
        return AttentionCall(self.query, self.keys, self.values, self.options | {"mask": mask})

    def double(self) -> AttentionCall:
        """The call in float64."""
        options = {
            name: value.double()
            if isinstance(value, Tensor) and value.is_floating_point()
            else value
            for name, value in self.options.items()
        }
        return replace(
            self,
            query=self.query.double(),
            keys=[key.double() for key in self.keys],
            values=[value.double() for value in self.values],
            options=options,
        )

    def lse(self) -> Tensor:
        """The logarithm of the sum of all exponentials, [B, Hq, Tq], without dropout."""
        zeros = [key.new_zeros(1).expand(*key.shape[:3], 1) for key in self.keys]
        options = self.options | {"dropout_p": 0.0, "seed": None}
        return operators.attention(self.query, self.keys, zeros, **options)[1]

    def parts(self) -> list[CallPart]:
        """The ordinary calls whose union is this call."""
        return [CallPart([*range(self.order)], self, self.lse())]


class CallPart(NamedTuple):
    """An ordinary call whose tuples are some of those of a whole call."""

    axes: list[int]  #: of the whole call
    call: AttentionCall
    lse: Tensor  #: [B, Hq, Tq]: a logit e has the weight exp(e - lse), or relu(e) exp(-lse)
