"""Readable errors for wrong arguments of public functions: one line that names the argument.

A function under ``checked`` has its arguments compared with its annotations before it is called, so
that no argument is taken for something else: True for 1, a dict for a list, an array for a tensor.
Arguments of the commonest types cost less than a microsecond each, and code that is compiled costs
nothing. What tensors refuse in torch's words (their values, the attribute that an object lacks) is
told in ours once a call has failed.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import typing
from collections.abc import Callable, Collection
from typing import Any, TypeVar

import torch
from torch import Tensor

from ._hints import converted, expectation, is_dense, is_learned, misfit, quick_check
from ._tensor_faults import describe, learned_words, placed_fault, tensor_fault

__all__ = ["check_parameters", "checked", "checked_methods", "describe"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Class = TypeVar("_Class", bound=type)

_WHOLE = range(-(2**63), 2**63)  # integers that an operator takes

#: What a wrong argument may raise. Others pass: a checkpoint ends its second forward by one.
_FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


@typing.overload
def checked(
    function: _Function,
    *,
    name: str | None = None,
    options_of: Callable | None = None,
    by: Callable | None = None,
    at_once: bool = True,
    operator: str = "",
) -> _Function: ...


@typing.overload
def checked(
    *,
    name: str | None = None,
    options_of: Callable | None = None,
    by: Callable | None = None,
    at_once: bool = True,
    operator: str = "",
) -> Callable[[_Function], _Function]: ...


def checked(
    function: Any = None,
    *,
    name: str | None = None,
    options_of: Callable | None = None,
    by: Callable | None = None,
    at_once: bool = True,
    operator: str = "",
) -> Any:
    """The function, whose calls refuse an argument that its annotation does not allow, as ``[name]
    argument: expected .., got ..``.

    Args:
        name: None: the function's.
        options_of: where the function passes ``**options`` on, the one whose arguments they are.
        by: the function that computes. The decorated one then only declares the arguments and
            documents them, so that an option that is passed on is spelled once.
        at_once: compare before the call; else only once it has failed.
        operator: the name in the messages of the operator, if it is another one.
    """
    if function is None:
        given = dict(name=name, options_of=options_of, by=by, at_once=at_once, operator=operator)
        return functools.partial(checked, **given)
    label, compute = name or function.__name__, by or function

    @functools.wraps(function)
    def call(*args, **kwargs):
        if torch.compiler.is_compiling():
            return compute(*args, **kwargs)
        if at_once:
            args, kwargs = _fitted(label, _checks(function, options_of), args, kwargs)
        try:
            return compute(*args, **kwargs)
        except _FAULTS as error:
            if operator and str(error).startswith(own := f"[{operator}] "):
                raise type(error)(f"[{label}] {str(error).removeprefix(own)}") from None
            explained = _explained(function, label, options_of, args, kwargs, error)
            if explained is None:
                raise
        raise explained

    return call


def checked_methods(cls: _Class) -> _Class:
    """The class, whose public methods and constructor are :func:`checked` under its name."""
    made: Any = cls
    if dataclasses.is_dataclass(made):  # whose bases may be of other modules
        hints = typing.get_type_hints(made)
        own: Any = vars(made)["__init__"]
        own.__annotations__ = {each.name: hints[each.name] for each in dataclasses.fields(made)}
    for name, member in list(vars(cls).items()):
        if name != "__init__" and name.startswith("_"):
            continue
        if inspect.isfunction(member):
            # An estimator's parameters are compared by its fit.
            later = name == "__init__" and hasattr(cls, "get_params")
            setattr(cls, name, checked(member, name=cls.__name__, at_once=not later))
        elif isinstance(member, (classmethod, staticmethod)):
            setattr(cls, name, type(member)(checked(member.__func__, name=cls.__name__)))
    return cls


def _explained(
    function: Callable,
    label: str,
    options_of: Callable | None,
    args: tuple,
    kwargs: dict,
    error: Exception,
) -> Exception | None:
    """The error to raise instead, or None where the given one says what is wrong."""
    if isinstance(error, UnicodeDecodeError) and (said := _of_other_bytes(error)) is not None:
        return said
    ours = _is_ours(error)
    if ours and str(error).startswith(f"[{label}]"):
        return None
    try:
        given = dict(inspect.signature(function).bind(*args, **kwargs).arguments)
    except TypeError as surplus:  # or missing, in Python's own words, which are good
        return _surplus(function, label, kwargs) or TypeError(f"{label}() {surplus}")
    if function.__name__ == "__init__":
        given.pop("self", None)  # has no attributes yet
    # Said by what the options are passed on to, under its own name.
    passed_on = str(error).partition(": ")[2].startswith("no such argument")
    unknown = None
    if passed_on or not ours:
        unknown = _unknown_option(function, options_of, label, given)
    if unknown is not None:
        return unknown
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            given |= given.pop(parameter.name, {})
    wrong_type = _wrong_type(_checks(function, options_of).hints, label, given)
    # Ours, but of a function that this one calls: with its names if it can. torch's own complaints
    # of tensors are no ValueErrors.
    if wrong_type is not None or ours or isinstance(error, ValueError):
        return wrong_type or placed_fault(label, given, error)
    return tensor_fault(label, given, error)


class _Checks(typing.NamedTuple):
    """How the arguments of a function are compared with its annotations."""

    positional: tuple[str, ...]
    hints: dict[str, Any]
    quick: dict[str, Callable[[Any], bool]]


@functools.cache
def _checks(function: Callable, options_of: Callable | None) -> _Checks:
    names = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            break
        names.append(name)
    hints = _hints(function) if options_of is None else _hints(options_of) | _hints(function)
    return _Checks(tuple(names), hints, {name: quick_check(hint) for name, hint in hints.items()})


def _fitted(
    label: str, checks: _Checks, args: tuple, kwargs: dict[str, Any]
) -> tuple[tuple, dict[str, Any]]:
    """The arguments as their annotations ask for them."""
    quick = checks.quick
    for place, (name, value) in enumerate(zip(checks.positional, args)):
        if name in quick and not quick[name](value):
            fitted = _fitting(label, name, checks.hints[name], value)
            args = (*args[:place], fitted, *args[place + 1 :])
    for name, value in kwargs.items():
        if name in quick and not quick[name](value):
            kwargs = kwargs | {name: _fitting(label, name, checks.hints[name], value)}
    return args, kwargs


def _fitting(label: str, name: str, hint: Any, value: object) -> Any:
    """A value in the type of its hint; raises an error of one line if it does not fit."""
    found = misfit(hint, value)
    if found is not None:
        raise _misfit_error(label, name, *found)
    return converted(hint, value)


def _misfit_error(label: str, name: str, place: str, hint: Any, part: Any) -> Exception:
    of_tensor = isinstance(part, Tensor)
    if of_tensor and not is_dense(part) and misfit(hint, torch.empty(0)) is None:
        return ValueError(f"[{label}] {name}{place}: expected a dense tensor, got {describe(part)}")
    lost = of_tensor and part.dim() == 0 and is_learned(part)
    words = expectation(hint)
    single = of_tensor and "a list of tensors" in words
    return TypeError(
        f"[{label}] {name}{place}: expected {words}, got "
        + (learned_words(part) if lost else describe(part))
        + (f"; a single one goes in a list, [{name}]" if single else "")
    )


def check_parameters(estimator: Any) -> None:
    """Refuses parameters of an estimator of scikit-learn that the annotations of its constructor do
    not allow. A ``fit`` calls it, because ``set_params`` changes them, too."""
    cls = type(estimator)
    for name, hint in _hints(inspect.unwrap(cls.__init__)).items():
        _fitting(cls.__name__, name, hint, getattr(estimator, name))


def _of_other_bytes(error: UnicodeDecodeError) -> Exception | None:
    """An operator's message that holds bytes of a file or of its name which are no UTF-8: Python
    tripped over it."""
    text = error.object.decode("utf-8", errors="backslashreplace")
    return (
        ValueError(text)
        if text.startswith(("cannot read", "cannot write", "[")) and "\n" not in text
        else None
    )


def _unknown_option(
    function: Callable, options_of: Callable | None, label: str, given: dict
) -> Exception | None:
    """The error for an option that is none of those under ``**options``."""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            continue
        known = _table_of_options(typing.get_type_hints(function).get(parameter.name))
        known = known or (_hints(options_of) if options_of else {})
        for name in given.get(parameter.name, {}) if known else ():
            if name not in known:
                return _no_such_argument(label, name, known)
    return None


def _surplus(function: Callable, label: str, kwargs: dict[str, Any]) -> TypeError | None:
    """The error for the first argument by name that a function does not have."""
    known = inspect.signature(function).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
        return None
    return next(
        (_no_such_argument(label, name, known) for name in kwargs if name not in known), None
    )


#: Arguments of other libraries, with ours and what is different about it.
_FOREIGN: dict[str, dict[str, str]] = {
    "attn_bias": {"mask": ""},
    "attn_mask": {"mask": ""},
    "attention_mask": {"key_masks": ", True where a key takes part", "mask": ""},
    "d_model": {"dim": ""},
    "embed_dim": {"dim": ""},
    "hidden_size": {"dim": ""},
    "is_causal": {"causal": ""},
    "key_padding_mask": {"key_masks": ", True where a key takes part"},
    "num_heads": {"heads": ""},
    "num_key_value_heads": {"kv_heads": ""},
    "num_kv_heads": {"kv_heads": ""},
    "softmax_scale": {"scale": ""},
    "standardize": {"standardise": ""},
    "window_size": {"window": ", which counts the query's own position"},
}


def _no_such_argument(label: str, name: str, known: Collection[str] = ()) -> TypeError:
    """The error for an argument that does not exist, with ours of another library's name, or the
    one that its name resembles."""
    ours = _FOREIGN.get(name, {})
    for own, difference in ours.items():
        if own in known:
            return TypeError(f"[{label}] {name}: no such argument; did you mean {own}{difference}?")
    if ours:
        return TypeError(
            f"[{label}] {name}: no such argument; elsewhere in nsimplex it is called "
            f"{' or '.join(ours)}"
        )
    inside = [own for own in known if len(own) > 3 and (own in name or name in own)]
    near = inside or difflib.get_close_matches(name, [own for own in known if own != "self"], 1)
    hint = f"; did you mean {max(near, key=len)}?" if near else ""
    return TypeError(f"[{label}] {name}: no such argument{hint}")


def _wrong_type(hints: dict[str, Any], label: str, given: dict) -> Exception | None:
    for name, value in given.items():
        if name not in hints:
            continue
        found = misfit(hints[name], value, strict=True)
        if found is not None:
            return _misfit_error(label, name, *found)
        if isinstance(value, int) and value not in _WHOLE:
            return ValueError(
                f"[{label}] {name}: expected an integer from -2^63 to 2^63 - 1, got "
                f"{describe(value)}"
            )
    return None


@functools.cache
def _hints(function: Callable) -> dict[str, Any]:
    """The annotations of a function's arguments, and those of the options that it passes on."""
    hints = typing.get_type_hints(function)
    hints.pop("return", None)
    passed_on: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            hints.pop(name, None)
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            passed_on = _table_of_options(hints.pop(name, None))
    return passed_on | hints


def _table_of_options(hint: Any) -> dict[str, Any]:
    """The options of ``**options: Unpack[hint]``; none if the annotation does not list them."""
    table = next(iter(typing.get_args(hint)), None)
    return typing.get_type_hints(table) if typing.is_typeddict(table) else {}


def _is_ours(error: Exception) -> bool:
    """Whether an error names an argument already, as all that are raised on purpose here do."""
    text = str(error)
    return "\n" not in text and (
        text.startswith("[") or ": expected" in text or text.startswith("cannot read")
    )
