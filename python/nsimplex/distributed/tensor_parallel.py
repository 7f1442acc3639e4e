"""Tensor parallel models: every rank has some heads of every attention layer, and some of the
hidden units of every feed-forward layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ParallelStyle,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn import functional as F

from .._arguments import checked, checked_methods
from ..nn import FeedForward, SimplicialAttention
from ..nn.layer_options import LEARNED
from .sharding import key_heads

__all__ = [
    "FeedForwardParallel",
    "HeadParallel",
    "SplitLinear",
    "gather_state_dict",
    "scatter_state_dict",
    "tensor_parallel",
    "tensor_parallel_plan",
]

_Model = TypeVar("_Model", bound=nn.Module)


class _SumGradients(torch.autograd.Function):
    """The identity, whose gradient is the sum over the ranks."""

    @staticmethod
    def forward(ctx, x: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad: Tensor):  # type: ignore[override]
        total = collectives.all_reduce(grad.contiguous(), "sum", ctx.group)
        return collectives.wait_tensor(total), None


@checked_methods
class SplitLinear(nn.Module):
    """A linear layer whose output rows are groups, each of which is divided among the ranks.

    y = x [W_1; W_2; ..]^T + b with the rows of this rank of every W_i.

    Parameters: ``parts.<i>.weight`` and ``parts.<i>.bias``, DTensors: sharded by rows, or
        replicated for the key heads of a rank if ``kept`` is given.
    """

    def __init__(
        self,
        linear: nn.Linear,
        sizes: Sequence[int],
        mesh: DeviceMesh,
        kept: Sequence[list[int] | None],
        head_dim: int = 1,
        src_data_rank: int | None = 0,
    ) -> None:
        super().__init__()
        self.mesh, self.kept, self.head_dim = mesh, [*kept], head_dim
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.parts = nn.ModuleList()
        weights = linear.weight.detach().split([*sizes])
        biases = [None] * len(sizes) if linear.bias is None else linear.bias.detach().split(sizes)
        for weight, bias, heads in zip(weights, biases, self.kept):
            part = nn.Module()
            where = [Shard(0) if heads is None else Replicate()]
            for name, value in (("weight", weight), ("bias", bias)):
                if value is not None:
                    value = distribute_tensor(
                        value.contiguous(), mesh, where, src_data_rank=src_data_rank
                    )
                    value = nn.Parameter(value, linear.weight.requires_grad)
                part.register_parameter(name, value)
            self.parts.append(part)

    def _own(self, name: str) -> Tensor | None:
        """The rows of this rank."""
        if getattr(self.parts[0], name) is None:
            return None
        rows = []
        for part, heads in zip(self.parts, self.kept):
            local = getattr(part, name).to_local()
            if heads is not None:
                local = _SumGradients.apply(local, self.mesh.get_group())
                place = torch.tensor(heads, device=local.device)
                local = local.unflatten(0, (-1, self.head_dim)).index_select(0, place).flatten(0, 1)
            rows.append(local)
        return torch.cat(rows)

    def forward(self, x: Tensor) -> Tensor:
        x = _SumGradients.apply(x, self.mesh.get_group())
        weight = self._own("weight")
        assert weight is not None
        return F.linear(x, weight, self._own("bias"))


def _require_divisor(at: str, name: str, size: int, ranks: int) -> None:
    if size % ranks:
        raise ValueError(f"{at}{name}: expected a multiple of {ranks} ranks, got {size}")


class HeadParallel(ParallelStyle):
    """A style of ``parallelize_module`` for :class:`nsimplex.nn.SimplicialAttention` and its kinds:
    every rank computes Hq / R query heads.

    The projections become :class:`SplitLinear`, and ``output`` is row-wise parallel. The input is
    the same on every rank, and so is the output. If the ranks do not divide the key heads, the
    projections of keys and values are replicated, and every rank computes those of its query heads.
    ``heads`` and ``kv_heads`` of the layer become those of the rank.

    Raises:
        ValueError: the ranks do not divide the query heads; a learned reducer whose key heads they
            do not divide; an indexer that reuses pairs or learns, because its scores sum over
            heads.
    """

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        if not isinstance(module, SimplicialAttention):
            raise TypeError(
                "[HeadParallel] module: expected a SimplicialAttention, got "
                f"{type(module).__name__}"
            )
        ranks, at = device_mesh.size(), f"[{type(module).__name__}] "
        _require_divisor(at, "heads", module.heads, ranks)
        if module.orders is not None:
            groups: list[Any] = list(module.groups)
            for group in groups:
                self._apply(group, device_mesh)
            module.keep_heads(module.heads // ranks, sum(group.kv_heads for group in groups))
            return module
        self._refuse(at, module, ranks)
        source, width = self.src_data_rank, module.head_dim
        query, key = module.heads * width, module.kv_heads * width
        own = module.heads // ranks
        kept = None
        if module.kv_heads % ranks:
            first = own * device_mesh.get_local_rank()
            kept = key_heads(first, first + own, module.heads // module.kv_heads)
        split = (device_mesh, width, source)
        if module.context_dims:
            module.register_module("q", self._split(module.q, [query], [None], *split))
            for m, linear in enumerate(module.kv):
                assert isinstance(linear, nn.Linear)
                module.kv[m] = self._split(linear, [key] * 2, [kept] * 2, *split)
        else:
            axes = 2 * module.order
            sizes, heads = [query] + [key] * axes, [None] + [kept] * axes
            module.register_module("qkv", self._split(module.qkv, sizes, heads, *split))
        output = RowwiseParallel(input_layouts=Shard(-1))
        parallelize_module(module.output, device_mesh, output, src_data_rank=source)
        for name in ["sink", *module._reducer_names]:
            value = getattr(module, name)
            if value is not None:
                value = distribute_tensor(
                    value.detach(), device_mesh, [Shard(0)], src_data_rank=source
                )
                module.register_parameter(name, nn.Parameter(value))
        module.keep_heads(own, module.kv_heads // ranks if kept is None else len(kept))
        return module

    @staticmethod
    def _split(
        linear: nn.Linear,
        sizes: list[int],
        kept: list[list[int] | None],
        mesh: DeviceMesh,
        width: int,
        source: int | None,
    ) -> SplitLinear:
        return SplitLinear(linear, sizes, mesh, kept, width, source)

    @staticmethod
    def _refuse(at: str, module: SimplicialAttention, ranks: int) -> None:
        if module.attention_options["reduce"] in LEARNED:
            _require_divisor(at, "kv_heads of a learned reducer", module.kv_heads, ranks)
        indexer = getattr(module, "indexer", None)
        if indexer is not None and indexer.source == "reuse":
            raise ValueError(f"{at}indexer: expected source light with HeadParallel, got reuse")
        if module.loss_weight > 0:
            raise ValueError(f"{at}loss: expected 0 with HeadParallel, got {module.loss_weight}")


class FeedForwardParallel(ParallelStyle):
    """A style of ``parallelize_module`` for :class:`nsimplex.nn.FeedForward`: every rank computes
    ``hidden`` / R hidden units. Input and output are the same on every rank.

    Raises:
        ValueError: the ranks do not divide the hidden units.
    """

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        if not isinstance(module, FeedForward):
            raise TypeError(
                f"[FeedForwardParallel] module: expected a FeedForward, got {type(module).__name__}"
            )
        source, hidden = self.src_data_rank, module.down.in_features
        _require_divisor("[FeedForward] ", "hidden", hidden, device_mesh.size())
        count = module.up.out_features // hidden
        up = SplitLinear(
            module.up, [hidden] * count, device_mesh, [None] * count, src_data_rank=source
        )
        module.register_module("up", up)
        down = RowwiseParallel(input_layouts=Shard(-1))
        parallelize_module(module.down, device_mesh, down, src_data_rank=source)
        return module


@checked
def tensor_parallel_plan(model: nn.Module) -> dict[str, ParallelStyle]:
    """The plan of :func:`tensor_parallel`, for ``parallelize_module``: a style by the path of every
    attention and feed-forward layer."""
    plan: dict[str, ParallelStyle] = {}
    for name, module in model.named_modules():
        inside = any(not path or name.startswith(f"{path}.") for path in plan)
        if isinstance(module, SimplicialAttention) and not inside:
            plan[name] = HeadParallel()
        elif isinstance(module, FeedForward):
            plan[name] = FeedForwardParallel()
    return plan


@checked
def tensor_parallel(model: _Model, mesh: DeviceMesh) -> _Model:
    """Divide the attention and feed-forward layers of a model among the ranks of a mesh, in place.

    >>> model = nsimplex.distributed.tensor_parallel(model, init_device_mesh("cuda", (4,)))

    All ranks give the same input and get the same output. Losses and gradients are those of one
    process to rounding. Make optimizers afterwards, because parameters become DTensors. Other
    parameters (norms, embeddings, heads of language models, indexers) stay whole on every rank,
    with the values of rank 0. Dropout draws the same tuples for the heads of all ranks.

    Args:
        model: a SimplicialAttention, TransformerBlock, LanguageModel, or a module that contains
            some of them.
        mesh: of one dimension.

    Returns:
        The model.

    Raises:
        ValueError: a layer that the ranks cannot divide (:class:`HeadParallel`,
            :class:`FeedForwardParallel`), no such layer, or a mesh of several dimensions.

    Complexity: a rank has 1 / R of the weights and flops of these layers. Every block sums two
        tensors [B, T, C] over the ranks in the forward pass, and two in the backward pass.
    """
    if mesh.ndim != 1:
        raise ValueError(
            f"[tensor_parallel] mesh: expected one dimension, got {mesh.ndim}; take one of them by "
            "its name, mesh['name']"
        )
    plan = tensor_parallel_plan(model)
    if not plan:
        raise ValueError(
            "[tensor_parallel] model: expected attention or feed-forward layers of nsimplex, got "
            f"{type(model).__name__} without any"
        )
    for path, style in plan.items():
        parallelize_module(model.get_submodule(path), mesh, style)
    group = mesh.get_group()
    source = dist.get_global_rank(group, 0)
    for value in [*model.parameters(), *model.buffers()]:
        if not isinstance(value, DTensor):
            dist.broadcast(value.detach(), source, group=group)
    return model


def _split_layers(model: nn.Module) -> dict[str, SplitLinear]:
    """By the path of a packed parameter's layer."""
    return {
        name: module for name, module in model.named_modules() if isinstance(module, SplitLinear)
    }


@checked
def gather_state_dict(model: nn.Module) -> dict[str, Tensor]:
    """The state of a tensor parallel model with the names and whole tensors of the model of one
    process. All ranks call it together, and all get it."""
    state: dict[str, Tensor] = {}
    parts: dict[str, list[Tensor]] = {}
    layers = _split_layers(model)
    for name, value in model.state_dict().items():
        whole = value.full_tensor() if isinstance(value, DTensor) else value
        path, found, rest = name.rpartition("parts.")
        if found and path[:-1] in layers:
            packed = path + rest.split(".", 1)[1]
            parts.setdefault(packed, []).append(whole)
            state[packed] = whole
        else:
            state[name] = whole
    return state | {name: torch.cat(each) for name, each in parts.items()}


@torch.no_grad()
def scatter_state_dict(model: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Load a state of one process, as :func:`gather_state_dict` gives it, into a tensor parallel
    model. All ranks give the same state.

    Raises:
        ValueError: a missing, unknown or misshapen tensor.
    """
    layers, own = _split_layers(model), model.state_dict()
    taken: set[str] = set()
    for name, value in own.items():
        path, found, rest = name.rpartition("parts.")
        packed, first = name, 0
        if found and path[:-1] in layers:
            place, suffix = rest.split(".", 1)
            packed = path + suffix
            first = sum(own[f"{path}parts.{i}.{suffix}"].size(0) for i in range(int(place)))
        whole = state.get(packed)
        if whole is None:
            raise ValueError(f"[scatter_state_dict] state: expected {packed}, got none")
        taken.add(packed)
        if packed != name:
            whole = whole.narrow(0, first, min(value.size(0), max(whole.size(0) - first, 0)))
        if whole.shape != value.shape:
            raise ValueError(
                f"[scatter_state_dict] {packed}: expected shape {list(value.shape)}, got "
                f"{list(whole.shape)}"
            )
        if isinstance(value, DTensor):
            whole = distribute_tensor(whole.contiguous(), value.device_mesh, value.placements)
        value.copy_(whole)
    unknown = sorted(set(state) - taken)
    if unknown:
        raise ValueError(f"[scatter_state_dict] state: expected no {unknown[0]}")
