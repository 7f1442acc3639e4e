"""The file of a CausalPipeline: what it holds, and what a file must hold to be read.

Anybody can write a file with a right checksum, so every name, shape, type and range is compared
with the lists below, and nothing else becomes an attribute.
"""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, get_args

import torch
from torch import Tensor

from .._arguments import check_parameters, describe
from .._printable import printable
from .confidence import EdgeConfidence
from .linear_model import LinearModel
from .saved_values import as_kinds, as_plain
from .structure import FitChoices, NoiseDirections

__all__ = ["fitted_state", "read_state", "saved_parameters"]


class _Range(NamedTuple):
    """What the numbers of a tensor must be."""

    words: str
    holds: Callable[[Tensor], Tensor]


_ANY = _Range("numbers", lambda values: torch.ones_like(values, dtype=torch.bool))
_KNOWN = _Range("numbers other than NaN", lambda values: ~values.isnan())
_FINITE = _Range("finite numbers", torch.isfinite)
_POSITIVE = _Range("finite numbers above 0", lambda values: values.isfinite() & (values > 0))
_NOT_NEGATIVE = _Range("finite numbers from 0", lambda values: values.isfinite() & (values >= 0))
_SHARES = _Range("numbers from 0 to 1", lambda values: (values >= 0) & (values <= 1))

#: Tensors by their names in the file: the letters of their axes, M columns in d dimensions.
_TENSORS = {
    "mean": ("M", _FINITE),
    "deviation": ("M", _POSITIVE),
    "adjacency": ("MM", _FINITE),
    "scores": ("MM", _KNOWN),
    "cpdag": ("MM", _SHARES),
    "tangents": ("Md", _FINITE),
    "generality": ("M", _FINITE),
}
#: Attributes of several tensors, which are "attribute.field" in the file, and numbers.
_PARTS: dict[str, tuple[Any, dict[str, tuple[str, _Range]]]] = {
    "linear": (
        LinearModel,
        {
            "coefficients": ("MM", _FINITE),
            "intercepts": ("M", _FINITE),
            "variances": ("M", _NOT_NEGATIVE),
            "exponents": ("M", _FINITE),
        },
    ),
    "confidence": (
        EdgeConfidence,
        {
            "adjacency": ("MM", _FINITE),
            "frequencies": ("MM", _SHARES),
            "connected": ("MM", _SHARES),
            "ancestors": ("MM", _SHARES),
            "low": ("MM", _ANY),
            "high": ("MM", _ANY),
        },
    ),
    "noise_directions": (NoiseDirections, {"adjacency": ("MM", _FINITE)}),
}
_OPTIONAL = {"linear.exponents"}
_ALL_TENSORS = _TENSORS | {
    f"{part}.{field}": kept
    for part, (_, fields) in _PARTS.items()
    for field, kept in fields.items()
}
#: Tensors without which a fit is of no use.
_OF_A_FIT = ("mean", "deviation", "adjacency")
#: Fitted attributes that are stored as JSON.
_PLAIN = (
    "names",
    "columns",
    "dropped",
    "words",
    "row_columns",
    "rows_of_fit",
    "model",
    "table_names",
    "n_features_in",
    "feature_names_in",
)


def saved_parameters(pipeline: Any) -> dict[str, Any]:
    """The parameters of a pipeline as plain values."""
    label = type(pipeline).__name__
    return {
        name: as_plain(label, name, getattr(pipeline, name))
        for name in inspect.signature(type(pipeline)).parameters
    }


def fitted_state(pipeline: Any) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The fitted attributes of a pipeline: plain values and tensors, by their names in a file."""
    known = {name: getattr(pipeline, f"{name}_", None) for name in (*_PLAIN, *_TENSORS, *_PARTS)}
    found: dict[str, Any] = {name: value for name, value in known.items() if value is not None}
    text = {name: found[name] for name in _PLAIN if name in found}
    if "feature_names_in" in text:
        text["feature_names_in"] = list(text["feature_names_in"])
    if hasattr(pipeline, "choices_"):
        text["choices"] = pipeline.choices_._asdict()
    tensors = {name: found[name].to_dense().double() for name in _TENSORS if name in found}
    for part, (_, fields) in _PARTS.items():
        if part not in found:
            continue
        own = found[part]._asdict()
        numbers = {name: value for name, value in own.items() if name not in fields}
        if "graphs" in numbers:
            numbers["graphs"] = [pairs.tolist() for pairs in numbers["graphs"]]
        if numbers:
            text[part] = numbers
        tensors |= {f"{part}.{name}": own[name] for name in fields if own[name] is not None}
    output = getattr(pipeline, "_sklearn_output_config", {}).get("transform")
    if output is not None:
        text["output"] = output
    return text, tensors


def read_state(cls: Any, text: str, names: Sequence[str], tensors: Sequence[Tensor]) -> Any:
    """A pipeline from the text and the tensors of its file. Names that it does not know, which a
    newer version may have written, are left out.

    Raises:
        ValueError, TypeError, KeyError: something has another type, shape or range.
    """
    try:
        plain = json.loads(text)
    except RecursionError:
        raise ValueError("expected JSON, got values in values without end") from None
    _require(isinstance(plain, dict), "metadata", "an object of JSON", plain)
    parameters = plain.get("parameters")
    _require(isinstance(parameters, dict), "parameters", "an object of JSON", parameters)
    _check_plain(plain)
    kept = {name: each for name, each in zip(names, tensors) if name in _ALL_TENSORS}
    _check_tensors(plain, kept)
    pipeline = _constructed(cls, dict(plain["parameters"]), plain.get("names", []))
    for name, value in _attributes(plain, kept).items():
        setattr(pipeline, f"{name}_", value)
    if hasattr(pipeline, "linear_") and not pipeline._curved():  # files do not hold curves
        pipeline.curves_ = None
    if "output" in plain:
        kind = plain["output"]
        known = kind in ("default", "pandas", "polars")
        _require(known, "output", "default, pandas or polars", kind)
        if hasattr(pipeline, "set_output"):
            pipeline.set_output(transform=plain["output"])
    return pipeline


def _constructed(cls: Any, parameters: dict[str, Any], names: Sequence[str]) -> Any:
    known = inspect.signature(cls).parameters
    for name in parameters:
        _require(name in known, "parameters", f"those of {cls.__name__}", name)
    if "kinds" in parameters:
        parameters["kinds"] = as_kinds(parameters["kinds"], names)
    pipeline = cls(**parameters)
    check_parameters(pipeline)
    for name, hint in typing.get_type_hints(inspect.unwrap(cls.__init__)).items():
        choices = [each for option in (hint, *get_args(hint)) for each in _choices(option)]
        value = getattr(pipeline, name, None)
        if choices and isinstance(value, str):
            _require(value in choices, name, "one of " + ", ".join(choices), value)
    _require(pipeline.dimension >= 1, "dimension", "at least 1", pipeline.dimension)
    _require(abs(pipeline.scale) < float("inf"), "scale", "a finite number", pipeline.scale)
    return pipeline


def _choices(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if typing.get_origin(hint) is typing.Literal else ()


def _require(holds: bool, name: str, expected: str, got: object) -> None:
    if not holds:
        raise ValueError(f"{printable(name)[:60]}: expected {expected}, got {describe(got)}")


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _different(value: Any) -> bool:
    return len(set(value)) == len(value)


def _whole(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**31


def _check_plain(plain: dict[str, Any]) -> None:
    """Compares the plain values with what they must be, as far as they are there."""

    def check(name: str, expected: str, holds: Callable[[Any], bool]) -> None:
        if name in plain:
            _require(holds(plain[name]), name, expected, plain[name])

    check("n_features_in", "a number of columns", _whole)
    count = plain.get("n_features_in", 2**31)
    check(
        "columns",
        "different numbers of columns below n_features_in",
        lambda own: (
            isinstance(own, list)
            and all(_whole(column) and column < count for column in own)
            and 0 < len(own) == len(set(own))
        ),
    )
    check("names", "different names", lambda own: _texts(own) and _different(own))
    for name in ("table_names", "feature_names_in"):
        check(
            name,
            "a different name of each column",
            lambda own: _texts(own) and _different(own) and len(own) in (0, count),
        )
    check("dropped", "texts", _texts)
    check("row_columns", "texts", _texts)
    check("model", "a text", lambda text: isinstance(text, str))
    check(
        "choices",
        "nonlinear, orient_by_noise, kinds and findings",
        lambda own: (
            isinstance(own, dict)
            and list(own) == list(FitChoices._fields)
            and all(isinstance(own[name], bool) for name in ("nonlinear", "orient_by_noise"))
            and _texts(own["kinds"])
            and _texts(own["findings"])
        ),
    )
    check(
        "rows_of_fit",
        "names of columns of groups and targets",
        lambda own: (
            isinstance(own, dict)
            and set(own) <= {"groups", "targets"}
            and all(name is None or isinstance(name, str) for name in own.values())
        ),
    )
    check(
        "words",
        "different words by the numbers of columns",
        lambda own: (
            isinstance(own, dict)
            and all(key.isdecimal() and key.isascii() and len(key) < 10 for key in own)
            and all(int(key) < count for key in own)
            and all(_texts(each) and _different(each) for each in own.values())
        ),
    )


def _check_tensors(plain: dict[str, Any], kept: Mapping[str, Tensor]) -> None:
    """Compares the tensors with what they must be: one number of columns in all of them."""
    if "columns" in plain:
        for name in _OF_A_FIT:
            _require(name in kept, name, "a tensor", None)
    for part, (_, fields) in _PARTS.items():
        own = {f"{part}.{field}" for field in fields}
        if own & set(kept):
            for name in sorted(own - set(kept) - _OPTIONAL):
                _require(False, name, "a tensor", None)
    if "columns" in plain:
        count = len(plain["columns"])
    else:
        sizes = [tensor.size(0) for tensor in kept.values() if tensor.dim() > 0]
        count = sizes[0] if sizes else len(plain.get("names", []))
    names = plain.get("names", [])
    _require(len(names) in (0, count), "names", f"{count}, one per column", names)
    for name, tensor in kept.items():
        axes, wanted = _ALL_TENSORS[name]
        width = tensor.size(1) if tensor.dim() == 2 else 0
        shape = [count if axis == "M" else max(width, 1) for axis in axes]
        _require(
            tensor.dtype == torch.float64 and list(tensor.shape) == shape,
            name,
            f"a torch.float64 tensor of shape {shape}",
            tensor,
        )
        wrong = ~wanted.holds(tensor)
        if wrong.any():
            raise ValueError(f"{name}: expected {wanted.words}, got {tensor[wrong][0].item()}")


def _attributes(plain: dict[str, Any], kept: Mapping[str, Tensor]) -> dict[str, Any]:
    """The fitted attributes, by their names without the underscore."""
    found = {name: plain[name] for name in _PLAIN if name in plain}
    if "choices" in plain:
        found["choices"] = FitChoices(**plain["choices"])
    found |= {name: tensor for name, tensor in kept.items() if name in _TENSORS}
    if "cpdag" in found:
        found["cpdag"] = found["cpdag"] != 0
    if "words" in found:
        found["words"] = {int(column): own for column, own in found["words"].items()}
    if "feature_names_in" in found:
        import numpy

        found["feature_names_in"] = numpy.asarray(found["feature_names_in"], dtype=object)
    for part, (made, fields) in _PARTS.items():
        own = {field: kept[f"{part}.{field}"] for field in fields if f"{part}.{field}" in kept}
        if own:
            found[part] = made(**own, **_numbers(part, plain.get(part, {}), len(kept["adjacency"])))
    if "confidence" in found:
        found["frequencies"] = found["confidence"].frequencies
    return found


def _are_pairs(pairs: Any, columns: int) -> bool:
    """Whether it is a list of pairs of columns."""
    return isinstance(pairs, list) and all(
        isinstance(pair, list)
        and len(pair) == 2
        and all(_whole(column) and column < columns for column in pair)
        for pair in pairs
    )


def _numbers(part: str, numbers: Any, columns: int) -> dict[str, Any]:
    """What an attribute of several tensors has beside them."""
    _require(isinstance(numbers, dict), part, "an object of JSON", numbers)
    if part == "linear":
        return {}
    if part == "confidence":
        edges, replicates = numbers.get("edges"), numbers.get("replicates")
        _require(type(edges) is float and edges >= 0, "confidence.edges", "a number", edges)
        _require(_whole(replicates), "confidence.replicates", "a number of samples", replicates)
        graphs = numbers.get("graphs", [])
        _require(isinstance(graphs, list), "confidence.graphs", "graphs of samples", graphs)
        for pairs in graphs:
            _require(_are_pairs(pairs, columns), "confidence.graphs", "pairs of columns", pairs)
        own = tuple(torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2) for pairs in graphs)
        return {"edges": edges, "replicates": replicates, "graphs": own}
    turned = numbers.get("turned")
    _require(_are_pairs(turned, columns), "noise_directions.turned", "pairs of columns", turned)
    figures = {name: numbers.get(name) for name in ("gain", "p_value")}
    for name, value in figures.items():
        _require(type(value) is float, f"noise_directions.{name}", "a number", value)
    finding = numbers.get("finding", "")  # older files have none
    _require(isinstance(finding, str), "noise_directions.finding", "a sentence", finding)
    told = numbers.get("told", False)
    _require(isinstance(told, bool), "noise_directions.told", "true or false", told)
    pairs = [tuple(pair) for pair in turned or []]
    return {"turned": pairs, **figures, "finding": finding, "told": told}
