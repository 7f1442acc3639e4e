"""How an operator runs on DTensors: every rank calls it on its own batch entries or heads.

A :class:`Rule` names the axes of every tensor argument and result by letters. From the placements
of a call follows the axis that each mesh dimension shards, and from that axis the placement of
every other argument and of every result.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard

__all__ = ["Rule", "key_heads", "run_sharded"]

#: Large and odd, so that the dropout of two ranks has different seeds.
_SEED_STEP = 0x9E3779B97F4A7C15


@dataclasses.dataclass(frozen=True)
class Rule:
    """The axes of an operator's tensors.

    An entry is a string with one letter for each dimension: ``b`` the batch, ``h`` the query heads,
    ``k`` the key heads, ``.`` a dimension that no rank shares with another. ``<`` at its beginning
    aligns it with the last dimensions; dimensions beyond it are dots. ``*`` at its beginning stands
    for any number of leading dimensions, each of which may be sharded, and ``+`` for one dot per
    key axis. With ``!`` at its end it holds for tensors of its rank only; ``|`` separates such
    entries. A dimension of size 1 is the same for all entries of its axis.

    Args:
        arguments: entries by name; a list of tensors has one. Other tensors stay whole.
        returns: an entry for each result; or ``=name``: axes and placements of that argument, whose
            gradient it is. It is a sum over the ranks for an axis that the argument lacks.
        axes: the axes that may be sharded; others are refused.
        follow: arguments that may have any placement, because they are redistributed to that of
            the others: the incoming gradients and the saved results of a backward operator.
    """

    arguments: Mapping[str, str] = dataclasses.field(default_factory=dict)
    returns: Sequence[str] = ()
    axes: str = "bh"
    follow: frozenset[str] = frozenset()


class _Entry(NamedTuple):
    """One tensor of a call."""

    name: str  #: the argument's
    label: str  #: with the place in a list
    tensor: Tensor
    axes: str  #: one letter for each dimension


class _Heads(NamedTuple):
    """The key heads of this rank where its query heads do not divide them evenly."""

    kept: list[int]
    total: int


def _letters(spec: str, dims: int) -> str:
    if spec.endswith("!"):
        fitting = [each[:-1] for each in spec.split("|") if len(each) - 1 == dims]
        spec = fitting[0] if fitting else ""
    if spec.startswith("*"):
        tail = spec[1:]
        return "0123456789"[: max(dims - len(tail), 0)] + tail[-dims:]
    if spec.startswith("<"):
        tail = spec[1:]
        return "." * (dims - len(tail)) + tail[max(len(tail) - dims, 0) :]
    return (spec + "." * dims)[:dims]


def _sharded_dim(placement: Placement) -> int | None:
    """The tensor dimension of a sharding, strided or not."""
    return getattr(placement, "dim", None)


def _entries(rule: Rule, names: Sequence[str], values: Sequence[Any]) -> list[_Entry]:
    found = []
    by_name = dict(zip(names, values))
    keys = by_name.get("keys")
    order = len(keys) if isinstance(keys, (list, tuple)) else 0
    for name, value in by_name.items():
        listed = isinstance(value, (list, tuple))
        for place, tensor in enumerate(value if listed else [value]):
            if isinstance(tensor, Tensor):
                label = f"{name}[{place}]" if listed else name
                spec = rule.arguments.get(name, "").replace("+", "." * order)
                axes = _letters(spec, tensor.dim())
                found.append(_Entry(name, label, tensor, axes))
    return found


def _mesh_of(at: str, entries: Sequence[_Entry]) -> DeviceMesh:
    mesh = None
    for entry in entries:
        if not isinstance(entry.tensor, DTensor):
            if entry.tensor.is_floating_point():
                raise ValueError(
                    f"{at}{entry.label}: expected a DTensor beside DTensors, got a plain tensor of "
                    f"shape {list(entry.tensor.shape)}"
                )
            continue
        if mesh is not None and entry.tensor.device_mesh != mesh:
            raise ValueError(
                f"{at}{entry.label}: expected the mesh {mesh}, got {entry.tensor.device_mesh}"
            )
        mesh = entry.tensor.device_mesh
    assert mesh is not None
    return mesh


def _sharded_axes(
    at: str, rule: Rule, mesh: DeviceMesh, entries: Sequence[_Entry]
) -> list[str | None]:
    """The axis that each mesh dimension shards; None: it replicates the call."""
    chosen: list[str | None] = [None] * mesh.ndim
    for entry in entries:
        if not isinstance(entry.tensor, DTensor) or entry.name in rule.follow:
            continue
        for place, placement in enumerate(entry.tensor.placements):
            dim = _sharded_dim(placement)
            if dim is None:
                continue
            letter = "h" if entry.axes[dim] == "k" else entry.axes[dim]
            if letter not in (rule.axes or "-") and not letter.isdigit():
                _refuse(at, rule, entry, place, dim)
            chosen[place] = chosen[place] or letter
    return chosen


def _refuse(at: str, rule: Rule, entry: _Entry, place: int, dim: int) -> None:
    known = rule.axes + ("k" if "h" in rule.axes else "")
    fitting = [f"Shard({i})" for i, x in enumerate(entry.axes) if x in known or x.isdigit()]
    wanted = " or ".join([*fitting, "Replicate()"])
    sequence = dim == 2 and entry.axes[:1] == "b" and entry.tensor.dim() == 4
    hint = "; context_parallel shards the sequence" if sequence else ""
    raise ValueError(
        f"{at}{entry.label}: expected {wanted} on mesh dimension {place}, got Shard({dim}){hint}"
    )


def _own_range(size: int, mesh: DeviceMesh, dims: Sequence[int]) -> tuple[int, int]:
    """This rank's part of an axis that some mesh dimensions shard, as DTensor cuts it."""
    first, length = 0, size
    for dim in dims:
        chunk = -(-length // mesh.size(dim))
        begin = min(chunk * mesh.get_local_rank(dim), length)
        length = min(begin + chunk, length) - begin
        first += begin
    return first, first + length


def key_heads(first: int, last: int, group: int) -> list[int]:
    """The key heads of the query heads first, .., last - 1, where ``group`` query heads share a key
    head. Each serves as many query heads, so that a key head may come more than once."""
    unit = math.gcd(first, last - first, group)
    return [head // group for head in range(first, last, unit)] if last > first else []


class _Call:
    """A call of an operator on DTensors: how its tensors are placed on the mesh."""

    def __init__(self, at: str, rule: Rule, entries: Sequence[_Entry]) -> None:
        self.at, self.rule, self.entries = at, rule, entries
        self.mesh = _mesh_of(at, entries)
        self.chosen = _sharded_axes(at, rule, self.mesh, entries)
        self.sizes: dict[str, int] = {}
        for entry in entries:
            for letter, size in zip(entry.axes, entry.tensor.shape):
                if letter != ".":
                    self.sizes[letter] = max(self.sizes.get(letter, 0), size)
        self.ranges = {
            letter: _own_range(self.sizes[letter], self.mesh, self._dims(letter))
            for letter in self.sizes
        }
        self.heads = self._heads()

    def _dims(self, letter: str) -> list[int]:
        letter = "h" if letter == "k" else letter
        return [dim for dim, chosen in enumerate(self.chosen) if chosen == letter]

    def _heads(self) -> _Heads | None:
        """The key heads of the own query heads, where no even sharding gives them."""
        query, key = self.sizes.get("h", 0), self.sizes.get("k", 0)
        ranks = math.prod(self.mesh.size(dim) for dim in self._dims("h"))
        if ranks == 1 or key == 0 or query == 0 or (query % ranks == 0 and key % ranks == 0):
            return None
        first, last = self.ranges["h"]
        return _Heads(key_heads(first, last, query // key) or [0], key)

    def placements(self, axes: str, shape: Sequence[int]) -> list[Placement]:
        """Where a tensor of these axes lies: its shard along the sharded axis if it has one."""
        found: list[Placement] = []
        for letter in self.chosen:
            alike = "k" if letter == "h" and "h" not in axes else letter
            dim = axes.find(alike) if alike else -1
            whole = alike is None or dim < 0 or shape[dim] != self.sizes[alike]
            if whole or (alike == "k" and self.heads is not None):
                found.append(Replicate())
            else:
                found.append(Shard(dim))
        return found

    def local(self, entry: _Entry) -> Tensor:
        """The part of an argument that this rank's call takes."""
        tensor = entry.tensor
        if not isinstance(tensor, DTensor):
            whole = [Replicate()] * self.mesh.ndim
            tensor = DTensor.from_local(tensor, self.mesh, whole, run_check=False)
        placements = self.placements(entry.axes, tensor.shape)
        if list(tensor.placements) != placements:
            tensor = tensor.redistribute(self.mesh, placements)
        local = tensor.to_local()
        dim = entry.axes.find("k")
        if dim >= 0 and self.heads is not None and local.size(dim) != 1:
            if local.size(dim) != self.heads.total:  # lists of neighbouring key heads
                local = local.repeat_interleave(self.heads.total // local.size(dim), dim)
            kept = torch.tensor(self.heads.kept, device=local.device)
            local = local.index_select(dim, kept)
        return local if not self.empty else self._padded(entry.axes, local)

    @property
    def empty(self) -> bool:
        """Whether this rank has no batch entry or no head."""
        return any(
            first == last
            for letter, (first, last) in self.ranges.items()
            if self._dims(letter) and not (letter == "k" and self.heads is not None)
        )

    def _padded(self, axes: str, local: Tensor) -> Tensor:
        for dim, letter in enumerate(axes):
            if letter != "." and local.size(dim) == 0:
                shape = [*local.shape]
                shape[dim] = 1
                local = local.new_zeros(shape)
        return local

    def wrapped(self, spec: str, place: int | None, result: Tensor) -> DTensor:
        """A result as a DTensor. ``place`` is its place in a list."""
        if not spec.startswith("="):
            axes = _letters(spec, result.dim())
            shape = [
                self.sizes[x] if x in self.sizes and self._dims(x) else size
                for x, size in zip(axes, result.shape)
            ]
            placements = self.placements(axes, shape)
            return self._from_local(result, axes, placements, shape)
        same = [entry for entry in self.entries if entry.name == spec[1:]]
        entry = same[place or 0] if same else None
        if entry is None or result.dim() != entry.tensor.dim() or result.numel() == 0:
            whole = [Replicate()] * self.mesh.ndim  # the place of a gradient that nobody wanted
            if entry is None or result.dim() != entry.tensor.dim():
                return DTensor.from_local(result, self.mesh, whole, run_check=False)
        placements = [
            Partial() if letter is not None and placement.is_replicate() else placement
            for letter, placement in zip(
                self.chosen, self.placements(entry.axes, entry.tensor.shape)
            )
        ]
        dim = entry.axes.find("k")
        # The one head of an argument is that of all query heads: local() gave it as it is.
        if dim >= 0 and self.heads is not None and entry.tensor.size(dim) != 1:
            shape = [*result.shape]
            shape[dim] = self.heads.total
            kept = torch.tensor(self.heads.kept, device=result.device)
            if self.empty:
                result = result.new_zeros(shape)
            else:
                result = result.new_zeros(shape).index_add(dim, kept, result)
        return self._from_local(result, entry.axes, placements, entry.tensor.shape)

    def _from_local(
        self, local: Tensor, axes: str, placements: Sequence[Placement], shape: Sequence[int]
    ) -> DTensor:
        if self.empty:
            summed = any(placement.is_partial() for placement in placements)
            local = torch.zeros_like(local) if summed else local
            for placement in placements:
                dim = _sharded_dim(placement)
                if dim is not None:
                    first, last = self.ranges[axes[dim]]
                    local = local.narrow(dim, 0, min(last - first, local.size(dim)))
        own = local.stride()
        order = sorted(range(local.dim()), key=lambda dim: -own[dim])
        strides, step = [0] * local.dim(), 1
        for dim in reversed(order):
            strides[dim], step = step, step * max(shape[dim], 1)
        return DTensor.from_local(
            local,
            self.mesh,
            placements,
            run_check=False,
            shape=torch.Size(shape),
            stride=tuple(strides),
        )

    def seed(self, seed: int) -> int:
        """The dropout's seed of this rank: ranks that share no tuple draw different ones."""
        number = 0
        for dim, letter in enumerate(self.chosen):
            if letter is not None:
                number = number * self.mesh.size(dim) + self.mesh.get_local_rank(dim)
        return (seed + number * _SEED_STEP) % (2**63 - 1) if number else seed


def run_sharded(rule: Rule, operator: torch._ops.OpOverload, args: tuple, kwargs: dict):
    """The operator's results for DTensors, as DTensors: every rank computes its part.

    Args:
        rule: the operator's axes.
        operator, args, kwargs: the call; at least one tensor is a DTensor. Tensors of integers and
            bool may be plain ones, which are the same on every rank.

    Raises:
        ValueError: a placement that no rank can compute with, a floating plain tensor beside
            DTensors, or DTensors of two meshes; in one line.
    """
    at = f"[{operator._schema.name.split('::')[1]}] "
    names = [argument.name for argument in operator._schema.arguments]
    given = [*names[: len(args)], *kwargs]
    values = [*args, *kwargs.values()]
    call = _Call(at, rule, _entries(rule, given, values))
    local = iter([call.local(entry) for entry in call.entries])

    def own(value: object) -> object:
        if isinstance(value, Tensor):
            return next(local)
        if isinstance(value, (list, tuple)):
            return [own(each) for each in value]
        return value

    values = [own(value) for value in values]
    place = given.index("seed") if "seed" in given and "dropout_p" in given else None
    seed = None if place is None else values[place]
    if place is not None and any(call.chosen) and isinstance(seed, int):
        values[place] = call.seed(seed)
    results = operator(*values[: len(args)], **dict(zip(kwargs, values[len(args) :])))
    single = not isinstance(results, (list, tuple)) or len(operator._schema.returns) == 1
    found = [results] if single else list(results)
    wrapped: list[Any] = []
    for spec, result in zip([*rule.returns, *[""] * len(found)], found):
        if isinstance(result, Tensor):
            wrapped.append(call.wrapped(spec, None, result))
        elif isinstance(result, (list, tuple)):
            wrapped.append(
                [
                    call.wrapped(spec, m, each) if isinstance(each, Tensor) else each
                    for m, each in enumerate(result)
                ]
            )
        else:
            wrapped.append(result)  # a number or a word, the same on every rank
    return wrapped[0] if single else tuple(wrapped)
