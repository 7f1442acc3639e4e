"""Values against annotations: whether they fit, and what an annotation asks for in words."""

from __future__ import annotations

import collections.abc as abc
import inspect
import numbers
import types
import typing
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor


@runtime_checkable
class ArrayLike(Protocol):
    """What holds an array of numbers: a NumPy array, a data frame."""

    def __array__(self, *args: Any, **kwargs: Any) -> Any: ...


#: What is converted to a tensor of numbers.
Numbers = Tensor | ArrayLike | abc.Sequence[Any]

_NUMBERS = {
    bool: (bool, torch.SymBool),
    int: (numbers.Integral, torch.SymInt),
    float: (numbers.Real, torch.SymInt, torch.SymFloat),
}
_WORDS = {
    Tensor: "a tensor",
    bool: "True or False",
    int: "an integer",
    float: "a number",
    str: "a string",
    type(None): "None",
    ArrayLike: "an array",
}


def misfit(hint: Any, value: Any) -> tuple[str, Any, object] | None:
    """(place, hint, value) of what does not fit: the value itself, or an entry of it; None where it
    fits."""
    if _is_sequence(hint) and _fits_outside(hint, value):
        if isinstance(
            value, (abc.Iterator, Tensor)
        ):  # the one cannot be looked at twice, the other has rows
            return None
        entries = typing.get_args(hint)
        fixed = typing.get_origin(hint) is tuple and entries[-1:] != (...,)
        if fixed and len(entries) != len(value):
            return "", hint, value
        for place, entry in enumerate(value):
            found = misfit(entries[place] if fixed else entries[0], entry) if entries else None
            if found is not None:
                return f"[{place}]{found[0]}", found[1], found[2]
        return None
    if not _is_union(hint):
        return _misfit_of_one(hint, value)
    misfits = [misfit(option, value) for option in typing.get_args(hint)]
    if None in misfits:
        return None
    inside = [each for each in misfits if each and each[0]]  # of the right kind, but for an entry
    return inside[0] if len(inside) == 1 else ("", hint, value)


def _misfit_of_one(hint: Any, value: object) -> tuple[str, Any, object] | None:
    if not _fits_outside(hint, value):
        return "", hint, value
    if typing.get_origin(hint) is abc.Mapping and isinstance(value, abc.Mapping):
        of_key, of_value = typing.get_args(hint)
        for key, entry in value.items():
            if misfit(of_key, key):
                return ", a key", of_key, key
            if misfit(of_value, entry):
                return f"[{key!r}]", of_value, entry
    return None


def expectation(hint: Any) -> str:
    """What a hint asks for, in words."""
    if _is_union(hint):
        words = [expectation(option) for option in typing.get_args(hint)]
        words.sort(key=lambda word: word == "None")
        return ", ".join(words[:-1]) + f" or {words[-1]}"
    if hint in _WORDS:
        return _WORDS[hint]
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(map(repr, typing.get_args(hint)))
    origin = typing.get_origin(hint) or hint
    entries = typing.get_args(hint)
    if origin is tuple and entries and entries[-1] is not ...:
        return f"({', '.join(expectation(entry).split(' ', 1)[-1] for entry in entries)})"
    if _is_sequence(hint):
        return f"a list of {_plural(entries[0])}" if entries else "a list"
    if origin is abc.Callable:
        return "a function"
    if origin is abc.Mapping:
        return "a dict"
    return _with_article(getattr(origin, "__name__", str(origin)))


def _plural(hint: Any) -> str:
    if hint is Any or _is_union(hint) or typing.get_origin(hint) is not None:
        return "entries" if hint is Any or _is_union(hint) else f"{expectation(hint)}"
    return expectation(hint).split(" ", 1)[-1] + "s"


def _with_article(name: str) -> str:
    return f"{'an' if name[:1] in 'AEIOU' else 'a'} {name}"


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _is_sequence(hint: Any) -> bool:
    return (typing.get_origin(hint) or hint) in (abc.Sequence, abc.Iterable, list, tuple)


def _is_scalar(value: object) -> bool:
    return isinstance(value, Tensor) and value.dim() == 0


def _fits_outside(hint: Any, value: object) -> bool:
    """Whether a value is of the hint's kind, entries aside."""
    if hint is Any or isinstance(hint, (str, typing.TypeVar)):
        return True
    if hint in _NUMBERS:
        return isinstance(value, _NUMBERS[hint])
    origin = typing.get_origin(hint) or hint
    if origin is typing.Literal:
        return isinstance(value, str)  # which of the names, the function knows to say
    if origin is abc.Callable:
        return callable(value)
    if _is_sequence(hint):
        if origin is abc.Iterable:
            return isinstance(value, abc.Iterable) and not (
                isinstance(value, (str, bytes)) or _is_scalar(value)
            )
        return isinstance(value, (list, tuple, abc.Sequence)) and not isinstance(
            value, (str, bytes)
        )
    return isinstance(value, origin) if inspect.isclass(origin) else True
