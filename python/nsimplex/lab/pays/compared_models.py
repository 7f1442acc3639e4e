"""The models of the benchmark: their names, their network, and sizes of equal cost."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from ..._choices import Norm
from ...nn import FeedForward, Linear, Path, RMSNorm, Select, SimplicialAttention, TopK
from .task import Batch, Task

__all__ = ["ModelSpec", "Network", "Size", "cost", "fit_size"]

#: Makes a layer of a width, a number of heads and the options ``causal`` and ``rotary``. The layer
#: maps [B, T, dim] to [B, T, dim].
MakeLayer = Callable[..., nn.Module]

#: Sequences that flops are a mean over; those of some tasks differ in length.
_COUNTED = 8

_NAME = re.compile(r"([1-4](?:\+[1-4]){0,3})x([1-9])(?::(topk[1-9]\d?|path[1-9]\d?|linear))?")


@dataclasses.dataclass(frozen=True)
class ModelSpec:
    """A model of the comparison: layers of one order or of mixed heads, and their number.

    ``2x1`` is one layer of order 2, ``1+2x2`` two layers with half of their heads of order 1 and
    half of order 2, ``1+1+1+2x1`` one with three quarters of order 1. ``2x1:topk4``, ``2x1:path4``
    and ``2x1:linear`` select tuples.
    """

    name: str
    orders: tuple[int, ...]
    depth: int
    selection: str = ""
    norm: Norm = "none"
    layer: MakeLayer | None = None

    @classmethod
    def parse(cls, name: str, norm: Norm = "none") -> ModelSpec:
        found = _NAME.fullmatch(name)
        if not found:
            raise ValueError(
                f"--models: expected ORDERxDEPTH as 1x4, 2x1, 1+2x2 or 2x1:topk4, got {name!r}"
            )
        orders = tuple(int(order) for order in found[1].split("+"))
        if found[3] and len(orders) > 1:
            raise ValueError(f"--models: expected one order beside {found[3]}, got {name!r}")
        return cls(name, orders, int(found[2]), found[3] or "", norm)

    def make_layer(self, dim: int, heads: int, task: Task) -> nn.Module:
        if self.layer is not None:
            return self.layer(dim, heads, causal=task.causal, rotary=task.ordered)
        several = len(self.orders) > 1
        each = [order for order in self.orders for _ in range(heads // len(self.orders))]
        return SimplicialAttention(
            dim,
            heads,
            order=max(self.orders),
            orders=each if several else None,
            norm=self.norm,
            causal=task.causal,
            rotary=task.ordered,
            allow_non_invariant=True,
            select=self._select(),
        )

    def _select(self) -> Select | None:
        if self.selection == "linear":
            return Linear()
        if self.selection.startswith("topk"):
            return TopK(int(self.selection[4:]), loss=1.0)
        if self.selection.startswith("path"):
            return Path(int(self.selection[4:]), loss=1.0)
        return None


@dataclasses.dataclass(frozen=True)
class Size:
    """Width, heads and hidden width of a model, and what it costs."""

    dim: int
    heads: int
    hidden: int
    flops: int
    parameters: int


class _Block(nn.Module):
    """h = x + layer(norm(x)), y = h + mlp(norm(h)), around any layer."""

    def __init__(self, layer: nn.Module, dim: int, hidden: int) -> None:
        super().__init__()
        self.layer_norm, self.layer = RMSNorm(dim), layer
        self.mlp_norm, self.mlp = RMSNorm(dim), FeedForward(dim, hidden)

    def forward(self, x: Tensor) -> Tensor:
        h = x + self.layer(self.layer_norm(x))
        return h + self.mlp(self.mlp_norm(h))


class Network(nn.Module):
    """Embeddings of a task's fields and numbers, blocks around a layer, and a linear readout.

    Tasks whose order of tokens matters add sines of the position, and their layers get
    ``rotary=True``.
    """

    def __init__(self, task: Task, spec: ModelSpec, dim: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.task = task
        self.embeddings = nn.ModuleList(nn.Embedding(size, dim) for size in task.fields)
        self.numbers = nn.Linear(task.numbers, dim) if task.numbers else None
        self.blocks = nn.ModuleList(
            _Block(spec.make_layer(dim, heads, task), dim, hidden) for _ in range(spec.depth)
        )
        self.norm = RMSNorm(dim)
        self.readout = nn.Linear(dim, task.classes or 1)

    def forward(self, batch: Batch) -> Tensor:
        """[B, T, classes], or [B, T, 1] if targets are numbers."""
        x = torch.zeros(())
        for field, embedding in enumerate(self.embeddings):
            x = x + embedding(batch.fields[..., field])
        if self.numbers is not None and batch.numbers is not None:
            x = x + self.numbers(batch.numbers)
        if self.task.ordered:
            x = x + _sines(x.shape[1], x.shape[2])
        for block in self.blocks:
            x = block(x)
        return self.readout(self.norm(x))

    def auxiliary_loss(self) -> Tensor | None:
        """The loss of indexers that choose keys, of all layers together."""
        found = [getattr(block.layer, "auxiliary_loss", None) for block in self.blocks]
        losses = [loss for loss in found if isinstance(loss, Tensor)]
        return sum(losses[1:], losses[0]) if losses else None


def _sines(length: int, dim: int) -> Tensor:
    rates = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
    angles = torch.arange(length).unsqueeze(1) * rates
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :dim]


def heads_of(dim: int, groups: int) -> int:
    """Heads of about 16 channels, at least two: a multiple of the number of mixed orders."""
    heads = 2 if dim < 64 else 4
    return heads if heads % groups == 0 else groups


def cost(task: Task, spec: ModelSpec, dim: int, hidden: int) -> Size:
    """Flops of one forward pass of a sequence, and parameters.

    The flops are those of matrix products and attention, two per multiplication and addition, as
    torch's FlopCounterMode counts them.
    """
    heads = heads_of(dim, len(spec.orders))
    with torch.random.fork_rng(devices=[]):
        network = Network(task, spec, dim, heads, hidden)
        batch = task.draw(_COUNTED, torch.Generator().manual_seed(0), "train")
        counter = FlopCounterMode(display=False)
        with counter, torch.no_grad():
            network(batch)
    return Size(
        dim,
        heads,
        hidden,
        counter.get_total_flops() // _COUNTED,
        sum(parameter.numel() for parameter in network.parameters()),
    )


def fit_size(task: Task, spec: ModelSpec, most: int, equal: str = "flops") -> Size:
    """The largest width, a multiple of 8, whose model with a hidden width of twice as much costs
    at most ``most``, with the hidden width that fills the rest. If nothing fits, the smallest.

    Args:
        equal: "flops" or "parameters".
    """

    def price(dim: int, hidden: int) -> int:
        return getattr(cost(task, spec, dim, hidden), equal)

    def fits(dim: int) -> bool:
        return price(dim, 2 * dim) <= most

    # Some layers cannot have every width (heads, chunks of channels), so widths are tried in turn.
    dim = 8
    while dim < 512 and fits(dim + 8):
        dim += 8
    hidden = 2 * dim
    if fits(dim):
        base = price(dim, hidden)
        per_unit = (price(dim, hidden + 64) - base) / 64
        hidden += int((most - base) / per_unit)
    return cost(task, spec, dim, hidden)
