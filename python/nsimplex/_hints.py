"""Values against annotations: whether they fit, and what an annotation asks for in words.

An argument has the type of its annotation: True is not a number, a set is not a list, an array is
not a tensor. What converts to the type without a choice fits, too: a number of NumPy, a tensor of
one number, a row of an array where a list of numbers or names is asked for.
"""

from __future__ import annotations

import collections.abc as abc
import dataclasses
import functools
import inspect
import numbers
import types
import typing
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import torch
import torch._C._functorch as functorch
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
#: Types that fit without another look, by the hint.
_EXACT = {
    bool: (bool,),
    int: (int,),
    float: (float, int),
    str: (str,),
    type(None): (type(None),),
    Tensor: (Tensor, torch.nn.Parameter),
}
#: Layouts of tensors that some functions take.
_LAYOUTS = frozenset(
    (
        torch.strided,
        torch.sparse_coo,
        torch.sparse_csr,
        torch.sparse_csc,
        torch.sparse_bsr,
        torch.sparse_bsc,
    )
)
_WORDS = {
    Tensor: "a tensor",
    bool: "True or False",
    int: "an integer",
    float: "a number",
    str: "a string",
    type(None): "None",
    ArrayLike: "an array",
}


def quick_check(hint: Any) -> Callable[[Any], bool]:
    """A function that tells values of the commonest types fit, in less than a microsecond. For
    others it returns False, whether they fit or not."""
    options = typing.get_args(hint) if _is_union(hint) else (hint,)
    exact = frozenset(each for option in options for each in _exact_types(option))
    of_entries = frozenset(each for option in options for each in _exact_types_of_entries(option))

    def fits(value: Any) -> bool:
        kind = type(value)
        if kind in exact:
            return not isinstance(value, Tensor) or has_plain_numbers(value)
        if of_entries and (kind is list or kind is tuple):
            return all(
                type(entry) in of_entries
                and (not isinstance(entry, Tensor) or has_plain_numbers(entry))
                for entry in value
            )
        return False

    return fits


def _exact_types(hint: Any) -> tuple[type, ...]:
    if typing.get_origin(hint) is typing.Literal:
        return (str,) if all(type(name) is str for name in typing.get_args(hint)) else ()
    return _EXACT.get(hint, ()) if isinstance(hint, type) else ()


def _exact_types_of_entries(hint: Any) -> tuple[type, ...]:
    """Those of lists of any length."""
    entries = typing.get_args(hint)
    fixed = typing.get_origin(hint) is tuple and entries[-1:] != (...,)
    return _exact_types(entries[0]) if _is_sequence(hint) and entries and not fixed else ()


def misfit(hint: Any, value: Any, *, strict: bool = False) -> tuple[str, Any, object] | None:
    """(place, hint, value) of what does not fit: the value itself, or an entry of it; None where it
    fits.

    Args:
        strict: what only converts to the type does not fit. A call has failed, and this may be why.
    """
    if _is_union(hint):
        inside = []  # of the right kind, but for an entry
        for option in typing.get_args(hint):
            found = misfit(option, value, strict=strict)
            if found is None:
                return None
            inside += [found] if found[0] else []
        return inside[0] if len(inside) == 1 else ("", hint, value)
    if not _fits_outside(hint, value, strict):
        return "", hint, value
    if fields := _fields(hint):
        return _misfit_of_fields(fields, value, strict)
    if _is_sequence(hint):
        return _misfit_of_entries(hint, value, strict)
    if _origin(hint) is abc.Mapping and typing.get_args(hint):
        of_key, of_value = typing.get_args(hint)
        for key, entry in value.items():
            if misfit(of_key, key, strict=strict):
                return ", a key", of_key, key
            if misfit(of_value, entry, strict=strict):
                return f"[{key!r}]", of_value, entry
    return None


def converted(hint: Any, value: Any) -> Any:
    """A value that fits, as Python's own number or list if it says the same in another type."""
    if _is_union(hint):
        fits = (option for option in typing.get_args(hint) if misfit(option, value) is None)
        return converted(next(fits), value)
    if hint in _NUMBERS:
        plain = isinstance(value, (bool, int, float, torch.SymInt, torch.SymFloat, torch.SymBool))
        return value if plain else hint(value)
    if _is_named_tuple(hint) and type(value) is tuple:
        return hint(*value)
    if not _is_sequence(hint) or isinstance(value, (str, abc.Iterator, abc.Set)):
        return value
    row = row_of(value)
    entries = typing.get_args(hint)
    if row is None or not entries or entries[0] is Any:
        return value
    fixed = _origin(hint) is tuple and entries[-1] is not ...
    row = [converted(entries[at] if fixed else entries[0], entry) for at, entry in enumerate(row)]
    return tuple(row) if _origin(hint) is tuple or isinstance(value, tuple) else row


@functools.cache
def _fields(hint: Any) -> dict[str, tuple[Any, Callable[[Any], bool]]]:
    """The hints of the fields of a named tuple or a dataclass; none for any other hint."""
    record: Any = hint  # type checkers would take it for one of the two kinds
    if _is_named_tuple(hint):
        names = list(record._fields)
    elif inspect.isclass(hint) and dataclasses.is_dataclass(hint):
        names = [field.name for field in dataclasses.fields(record)]
    else:
        return {}
    hints = typing.get_type_hints(hint)
    return {name: (hints[name], quick_check(hints[name])) for name in names if name in hints}


def _is_named_tuple(hint: Any) -> bool:
    return inspect.isclass(hint) and issubclass(hint, tuple) and hasattr(hint, "_fields")


def _misfit_of_fields(
    fields: dict[str, tuple[Any, Callable[[Any], bool]]], value: Any, strict: bool
) -> tuple[str, Any, object] | None:
    plain = isinstance(value, tuple) and not hasattr(value, "_fields")
    entries = value if plain else [getattr(value, name) for name in fields]
    for (name, (hint, quick)), entry in zip(fields.items(), entries):
        found = None if quick(entry) else misfit(hint, entry, strict=strict)
        if found is not None:
            return f".{name}{found[0]}", found[1], found[2]
    return None


def _misfit_of_entries(hint: Any, value: Any, strict: bool) -> tuple[str, Any, object] | None:
    of_entries = typing.get_args(hint)
    if not of_entries or of_entries[0] is Any:
        return None
    values = list(value) if isinstance(value, abc.Set) else row_of(value)
    if values is None:  # an iterator cannot be looked at twice
        return None
    fixed = typing.get_origin(hint) is tuple and of_entries[-1] is not ...
    if fixed and len(of_entries) != len(values):
        return "", hint, value
    for place, entry in enumerate(values):
        found = misfit(of_entries[place] if fixed else of_entries[0], entry, strict=strict)
        if found is not None:
            return f"[{place}]{found[0]}", found[1], found[2]
    return None


def row_of(value: Any) -> list[Any] | None:
    """The entries of a list, an array, a tensor, an index or a column; None for anything else.

    Mappings and sets have no order that counts, texts are single values, and the entries of a
    column of pandas have labels: only where these are 0, 1, .. are they places as well.
    """
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, (str, bytes, bytearray, memoryview, abc.Mapping, abc.Set, abc.Iterator)):
        return None
    if isinstance(value, abc.Sequence):
        return list(value)
    if isinstance(value, Tensor) and not (is_dense(value) and has_data(value)):
        return None
    if not isinstance(value, ArrayLike):
        return None
    if hasattr(value, "columns"):  # of a table, whose entries are its columns or its rows
        return None
    labels = getattr(value, "index", None)
    if labels is not None and not callable(labels) and list(labels) != list(range(len(labels))):
        return None
    for convert in ("tolist", "to_list", "to_pylist"):
        if hasattr(value, convert):
            entries = getattr(value, convert)()
            return entries if isinstance(entries, list) else None
    return None


def is_bool(value: object) -> bool:
    """Whether it is True or False, of Python or of NumPy."""
    return type(value).__name__ in ("bool", "bool_")


def is_dense(value: Tensor) -> bool:
    """Whether a tensor is an array of plain numbers: neither sparse nor nested nor quantised."""
    return value.layout is torch.strided and not value.is_nested and not value.is_quantized


def has_plain_numbers(value: Tensor) -> bool:
    """Whether a tensor has plain numbers, in an array or sparse: which, the function knows."""
    return value.layout in _LAYOUTS and not value.is_nested and not value.is_quantized


def has_data(value: Tensor) -> bool:
    """Whether the numbers of a tensor can be read: neither on device meta nor in a transform."""
    return not value.is_meta and not functorch.is_functorch_wrapped_tensor(value)


def is_learned(value: Tensor) -> bool:
    """Whether a derivative by a tensor is asked for."""
    return value.requires_grad or functorch.is_gradtrackingtensor(value)


def expectation(hint: Any) -> str:
    """The type that a hint names, in words."""
    if _is_union(hint):
        words = [expectation(option) for option in typing.get_args(hint)]
        words.sort(key=lambda word: word == "None")
        return ", ".join(words[:-1]) + f" or {words[-1]}"
    if hint in _WORDS:
        return _WORDS[hint]
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(map(repr, typing.get_args(hint)))
    origin = _origin(hint)
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


def _origin(hint: Any) -> Any:
    return typing.get_origin(hint) or hint


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _is_sequence(hint: Any) -> bool:
    return _origin(hint) in (abc.Sequence, abc.Iterable, list, tuple)


def _is_number(hint: Any, value: object, strict: bool) -> bool:
    """Whether a value is of a kind of numbers: True is none but for ``bool``, and one half is no
    integer. A tensor of one number fits if it is of the same kind, and its gradient is not lost."""
    if isinstance(value, Tensor):
        if strict or value.dim() != 0 or is_learned(value) or value.is_complex():
            return False
        kind = bool if value.dtype is torch.bool else float if value.is_floating_point() else int
        return kind is hint or (hint, kind) == (float, int)
    if hint is bool:
        return is_bool(value) or isinstance(value, _NUMBERS[bool])
    if isinstance(value, numbers.Rational) and not isinstance(value, numbers.Integral):
        return False  # fractions do not go with tensors
    return isinstance(value, _NUMBERS[hint]) and not is_bool(value)


def _fits_outside(hint: Any, value: Any, strict: bool) -> bool:
    """Whether a value is of the hint's kind, entries aside."""
    if hint is Any or isinstance(hint, (str, typing.TypeVar)):
        return True
    if hint in _NUMBERS:
        return _is_number(hint, value, strict)
    origin = _origin(hint)
    if origin is typing.Literal:  # which of the names, the function knows to say
        names = typing.get_args(hint)
        return isinstance(value, str) or any(type(value) is type(n) and value == n for n in names)
    if origin is abc.Callable:
        return callable(value)
    if _is_sequence(hint):
        return _is_listed(hint, origin, value, strict)
    if typing.is_typeddict(origin):
        return isinstance(value, abc.Mapping)
    if _is_named_tuple(origin) and type(value) is tuple:
        most = len(origin._fields)
        return most - len(origin._field_defaults) <= len(value) <= most
    if hint is Tensor and isinstance(value, Tensor):
        return has_plain_numbers(value)
    if hint is Tensor and hasattr(type(value), "__torch_function__"):
        return True  # stands in for a tensor, as in torch.fx
    return isinstance(value, origin) if _can_be_asked(origin) else True


def _is_listed(hint: Any, origin: Any, value: Any, strict: bool) -> bool:
    if isinstance(value, (str, bytes, abc.Mapping, abc.Set)) or hasattr(value, "columns"):
        return False
    if origin is abc.Iterable:
        scalar = isinstance(value, Tensor) and value.dim() == 0
        return isinstance(value, abc.Iterable) and not scalar
    if isinstance(value, (list, tuple)) or strict:
        return isinstance(value, (list, tuple, abc.Sequence))
    of_tensors = isinstance(value, Tensor) and Tensor in typing.get_args(hint)
    return not of_tensors and row_of(value) is not None


@functools.cache
def _can_be_asked(origin: Any) -> bool:
    """Whether isinstance knows about a class: protocols need not."""
    if not inspect.isclass(origin):
        return False
    return not getattr(origin, "_is_protocol", False) or getattr(
        origin, "_is_runtime_protocol", False
    )
