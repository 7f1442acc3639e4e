"""Frozen dataclasses of tensors as pytrees, which torch.export, torch.compile and a DataLoader
take apart and put together."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils import _pytree

__all__ = ["TensorRecord", "tensor_record"]

_Own = TypeVar("_Own", bound="TensorRecord")
_Class = TypeVar("_Class", bound=type)


class TensorRecord:
    """What the records of :func:`tensor_record` share: all their tensors move together."""

    def to(self: _Own, device: torch.device | str, *, non_blocking: bool = False) -> _Own:
        """The same with all tensors on a device."""
        return _pytree.tree_map_only(
            Tensor, lambda tensor: tensor.to(device, non_blocking=non_blocking), self
        )

    def pin_memory(self: _Own) -> _Own:
        """The same with all tensors in pinned memory; ``DataLoader(.., pin_memory=True)`` calls
        it."""
        return _pytree.tree_map_only(Tensor, Tensor.pin_memory, self)


def tensor_record(*children: str) -> Callable[[_Class], _Class]:
    """Registers a dataclass as a pytree under the name ``nsimplex.<class>``, by which exported
    programs store it, and as safe for ``torch.load``, which exported programs use for their example
    inputs.

    Args:
        children: the fields that hold tensors, lists of tensors or other records. All other fields
            are constants: hashable, and made of numbers, strings, tuples and dataclasses.
    """

    def register(cls: _Class) -> _Class:
        constants = [each.name for each in dataclasses.fields(cls) if each.name not in children]

        def flatten(own: Any) -> tuple[list[Any], tuple]:
            values = [getattr(own, name) for name in children]
            return values, tuple(getattr(own, name) for name in constants)

        def flatten_with_keys(own: Any) -> tuple[list[tuple[Any, Any]], tuple]:
            values, context = flatten(own)
            return [(_pytree.GetAttrKey(name), v) for name, v in zip(children, values)], context

        def unflatten(values: Iterable[Any], context: tuple) -> Any:
            return cls(**dict(zip(children, values)), **dict(zip(constants, context)))

        _pytree.register_pytree_node(
            cls,
            flatten,
            unflatten,
            serialized_type_name=f"nsimplex.{cls.__name__}",
            to_dumpable_context=_to_json,
            from_dumpable_context=_from_json,
            flatten_with_keys_fn=flatten_with_keys,
        )
        torch.serialization.add_safe_globals([cls])
        return cls

    return register


_CONSTANTS: dict[str, type] = {}


def constant_record(cls: _Class) -> _Class:
    """Makes a dataclass of numbers and strings a possible constant of a :func:`tensor_record`."""
    _CONSTANTS[cls.__name__] = cls
    torch.serialization.add_safe_globals([cls])
    return cls


def _to_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_to_json(each) for each in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"type": type(value).__name__, **dataclasses.asdict(value)}
    return value


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_from_json(each) for each in value)
    if isinstance(value, dict):
        return _CONSTANTS[value["type"]](**{k: v for k, v in value.items() if k != "type"})
    return value
