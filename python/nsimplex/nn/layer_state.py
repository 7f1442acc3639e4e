"""State of attention layers that changes after construction, of one layer or of all in a module.

A layer whose heads have different orders, an :class:`ExpertChoice`, a block and a model hold
further layers. What is set on them reaches each of these, and what is read from them is of all.
"""

from __future__ import annotations

import math
import sys
from types import FrameType
from typing import Any

import torch
import torch._C._functorch as functorch
from torch import Tensor, nn

from .._arguments import describe
from .._compiled_models import require_modules
from .checks import require
from .select import Linear, Select

__all__ = [
    "STATE",
    "HeldLayers",
    "LayerState",
    "auxiliary_loss",
    "innermost_layers",
    "retained_mass_of",
]

#: State that may be set at any time.
STATE = ("dropout", "loss_weight", "warms_up", "measures_mass", "keep_pairs")

#: Options that a layer reads once, when it is made.
_FIXED = frozenset(
    "dim heads kv_heads head_dim order orders context_dims norm scale causal window form reduce "
    "unit_layer rotary rotary_base allow_non_invariant normalizer face augment distinct bias "
    "softcap select pattern keys k features options attention_options device dtype".split()
)


def innermost_layers(module: nn.Module) -> list[LayerState]:
    """The attention layers of one order in a module, each once."""
    layers = [layer for layer in module.modules() if isinstance(layer, LayerState)]
    return [layer for layer in layers if layer.orders is None]


def auxiliary_loss(model: nn.Module) -> Tensor | None:
    """The sum of the indexers' losses in the last forward pass of any module; None without one.

    >>> loss = task_loss(model(x))
    >>> extra = auxiliary_loss(model)
    >>> (loss if extra is None else loss + extra).backward()

    Each :class:`SimplicialAttention` in the module counts, also below wrappers such as
    ``DistributedDataParallel``, and in code that torch compiled. The loss of a layer that ran
    several times is the one of its last run.

    Args:
        model: a layer, a block, a model, or what wraps one.

    Raises:
        ValueError: while gradients are recorded, if the last run computed the layers in a way that
            loses their losses: in a reentrant checkpoint, or in a transform of ``torch.func``. A
            scripted, traced or exported model.
    """
    require(
        isinstance(model, nn.Module),
        f"[auxiliary_loss] model: expected a module, got {describe(model)}",
    )
    layers = innermost_layers(model)
    if not layers:
        require_modules("[auxiliary_loss] ", model)
    losses = [loss for loss in [layer._own_loss() for layer in layers] if loss is not None]
    if not losses:
        return None
    return sum((loss.to(losses[0].device) for loss in losses[1:]), losses[0])


def retained_mass_of(module: nn.Module) -> Tensor | None:
    """The mean over heads of the shares that layers measured last; None without one."""
    known = [(layer._retained_mass, layer.heads) for layer in innermost_layers(module)]
    measured = [(mass.detach(), heads) for mass, heads in known if mass is not None]
    if not measured:
        return None
    if len(measured) == 1:
        return measured[0][0]
    heads = sum(count for _, count in measured)
    first = measured[0][0]
    return sum((mass.to(first) * (count / heads) for mass, count in measured), first.new_zeros(()))


class SettableState(nn.Module):
    """Assignment of attributes: state reaches all layers, and options that would be ignored are
    refused. Attributes of other names, tensors and modules are set as in any module."""

    _state: tuple[str, ...] = STATE

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _ASSIGNED and "_made" in self.__dict__:
            self._check_assignment(name, value)
        super().__setattr__(name, value)

    def _check_assignment(self, name: str, value: Any) -> None:
        if name in self._modules or isinstance(value, (Tensor, nn.Module)):
            return
        # A user's own subclass may use the names of options for something else.
        own = type(self).__module__.startswith("nsimplex.")
        if name in self._state and (own or name != "dropout" or hasattr(self, name)):
            self._spread(name, value)
        elif own:
            raise ValueError(
                f"[{type(self).__name__}] {name}: expected the option that it was made with, got "
                f"{describe(value)}; make a new one"
            )

    def _spread(self, name: str, value: Any) -> None:
        """Check a value of the state, and set it in the layers that this one holds."""
        at = f"[{type(self).__name__}] {name}: expected "
        _check_state(at, name, value)
        able = [layer for layer in innermost_layers(self) if layer._takes_state(name, value)]
        if value and not able:
            raise ValueError(f"{at}{_OFF[name]!r} without {_NEEDS[name]}, got {describe(value)}")
        for layer in able:
            if layer is not self:
                setattr(layer, name, value)


_ASSIGNED = _FIXED | {*STATE}
_OFF = dict(dropout=0.0, loss_weight=0.0, warms_up=False, measures_mass=False, keep_pairs=False)

#: What state that is not off asks of a layer.
_NEEDS = {
    "dropout": "a layer of all tuples in a window",
    "loss_weight": "an indexer that learns",
    "warms_up": "an indexer",
    "measures_mass": "chosen tuples",
    "keep_pairs": "an attention layer",
}


def _check_state(at: str, name: str, value: Any) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if name == "dropout":
        require(number and 0 <= value < 1, f"{at}a share in [0, 1), got {describe(value)}")
    elif name == "loss_weight":
        fits = number and 0 <= value < math.inf
        require(fits, f"{at}0 or more, got {describe(value)}")
    else:
        require(isinstance(value, bool), f"{at}True or False, got {describe(value)}")


def _of_layers(name: str) -> property:
    def largest(self: nn.Module) -> Any:
        return max((getattr(each, name) for each in innermost_layers(self)), default=_OFF[name])

    def ignore(_: nn.Module, value: Any) -> None:
        """:class:`SettableState` has set it in the layers."""

    return property(largest, ignore, doc=f"``{name}`` of the attention layers, the largest.")


class LayerState(SettableState):
    """State of an attention layer."""

    #: State that a subclass with its own forward does not read.
    _unread: tuple[str, ...] = ()

    # The layer's constructor sets them.
    heads: int
    kv_heads: int
    head_dim: int
    orders: tuple[int, ...] | None
    select: Select | None
    dropout: float
    loss_weight: float
    warms_up: bool
    measures_mass: bool
    keep_pairs: bool
    indexer: Any

    def _start_state(self) -> None:
        self._source: list[LayerState] = []  # a list, so that it is not a child module
        self._auxiliary_loss: Tensor | None = None
        self._lost = ""  # why the last forward has no auxiliary loss, where one is expected
        self._retained_mass: Tensor | None = None
        self._pairs: tuple[Tensor, Tensor] | None = None

    def __getstate__(self) -> dict:
        """Without the tensors of the last forward, which cannot be copied."""
        forgotten: dict[str, Any] = dict(_auxiliary_loss=None, _retained_mass=None, _pairs=None)
        return self.__dict__ | forgotten | dict(_lost="")

    @property
    def auxiliary_loss(self) -> Tensor | None:
        """``loss_weight`` times the indexer's loss of the last forward(x), or the sum for the
        orders of the layer; None if gradients were not recorded."""
        return auxiliary_loss(self)

    @auxiliary_loss.setter
    def auxiliary_loss(self, value: Tensor | None) -> None:
        layers = innermost_layers(self)
        require(
            value is None or layers == [self],
            f"[{type(self).__name__}] auxiliary_loss: expected None, which clears it",
        )
        for layer in layers:
            layer._auxiliary_loss = value

    @property
    def retained_mass(self) -> Tensor | None:
        """What the last forward(x) with ``measures_mass`` measured, the mean over all heads."""
        return retained_mass_of(self)

    @property
    def pairs(self) -> tuple[Tensor, Tensor] | None:
        """What the last forward with ``keep_pairs`` stored: (q, k^(1)) of all heads, those of a
        lower order first."""
        known = [layer._pairs for layer in innermost_layers(self)]
        found = [each for each in known if each is not None]
        if len(found) < 2:
            return found[0] if found else None
        queries, keys = zip(*found)
        return torch.cat(queries, 1), torch.cat(keys, 1)

    def set_source(self, source: LayerState) -> None:
        """Set the layer whose pairs an indexer of source "reuse" scores. From now on, that layer
        stores its pairs. It must run before this one in the same pass, over the same tokens."""
        at = f"[{type(self).__name__}] source: expected "
        require(
            isinstance(source, LayerState) and source is not self,
            f"{at}another attention layer, got {describe(source)}",
        )
        layers = innermost_layers(self)
        indexers = [getattr(each, "indexer", None) for each in layers]
        require(
            all(indexer is not None and indexer.source == "reuse" for indexer in indexers),
            f"{at}none, because the layer has no indexer of source 'reuse'",
        )
        source.keep_pairs = True
        for layer in layers:
            layer._source = [source]

    def _source_pairs(self, x: Tensor) -> tuple[Tensor, Tensor] | None:
        """The pairs of the source for the tokens x [B, T, C]."""
        if not self._source:
            return None
        pairs = self._source[0].pairs
        if pairs is None or pairs[0].size(0) != x.size(0) or pairs[0].size(2) != x.size(1):
            raise ValueError(
                f"[{type(self).__name__}] source: expected a layer that ran over the same "
                f"{[*x.shape[:2]]} tokens just before, got pairs of "
                f"{None if pairs is None else [pairs[0].size(0), pairs[0].size(2)]}"
            )
        return pairs

    def _takes_state(self, name: str, value: Any) -> bool:
        """Whether a value of the state has an effect in this layer."""
        if name in self._unread:
            return not value
        indexer = getattr(self, "indexer", None)
        if name == "loss_weight":
            return indexer is not None and (indexer.learned or not value)
        return {
            "dropout": self.select is None,
            "warms_up": indexer is not None,
            "measures_mass": self.select is not None and not isinstance(self.select, Linear),
        }.get(name, True)

    def _own_loss(self) -> Tensor | None:
        if self._lost and torch.is_grad_enabled():
            raise ValueError(f"[{type(self).__name__}] auxiliary_loss: {self._lost}")
        return self._auxiliary_loss

    def _loses_loss(self) -> str:
        """Why nobody could read the loss of this forward, or nothing."""
        if torch.compiler.is_compiling():
            return ""
        if functorch.peek_interpreter_stack() is not None:
            return "expected no transform of torch.func around the layer, because the loss has none"
        grad = torch.is_grad_enabled()
        require(
            not (grad and self.__dict__.get("_is_replica")),
            f"[{type(self).__name__}] auxiliary_loss: expected DistributedDataParallel, because "
            "the copies that DataParallel makes lose it",
        )
        if grad or not _in_function():
            return ""
        return (
            "expected a checkpoint with use_reentrant=False, because a reentrant one, as the "
            "forward of any autograd function, runs the layer without gradients and loses its loss"
        )


def _in_function() -> bool:
    """Whether the forward of a torch.autograd.Function is running, as in a reentrant checkpoint."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "forward" and frame.f_code.co_varnames[:1] == ("ctx",):
            return isinstance(frame.f_locals["ctx"], torch.autograd.function.FunctionCtx)
        frame = frame.f_back
    return False


class HeldLayers(SettableState):
    """State of a module that holds attention layers: what is set reaches them."""

    loss_weight = _of_layers("loss_weight")
    warms_up = _of_layers("warms_up")
    measures_mass = _of_layers("measures_mass")
    keep_pairs = _of_layers("keep_pairs")

    @property
    def auxiliary_loss(self) -> Tensor | None:
        """Sum of the indexers' losses in the last forward pass; None if there was none."""
        return auxiliary_loss(self)
