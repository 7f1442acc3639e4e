"""Values that stand for an argument and are something else: each means what the honest value means,
or is refused."""

from __future__ import annotations

import dataclasses
import fractions
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch


def impostors(good: Any) -> dict[str, Any]:
    """By name, what says the same as ``good`` in another type."""
    import numpy
    import pandas

    if isinstance(good, bool):
        return {
            "a bool of NumPy": numpy.bool_(good),
            "0 or 1": int(good),
            "a tensor": torch.tensor(good),
            "a text": str(good),
        }
    if isinstance(good, int):
        return {
            "an integer of NumPy": numpy.int64(good),
            "a float": float(good),
            "a tensor": torch.tensor(good),
            "a tensor of a float": torch.tensor(float(good)),
            "a text": str(good),
            "a list": [good],
        }
    if isinstance(good, float):
        return {
            "a float of NumPy": numpy.float64(good),
            "a fraction": fractions.Fraction(good) if math.isfinite(good) else good,
            "a tensor": torch.tensor(good, dtype=torch.float64),
            "a text": str(good),
        }
    if isinstance(good, torch.Tensor):
        return _like_a_tensor(good)
    if isinstance(good, Mapping):
        return {
            "pairs": list(good.items()),
            "a column": pandas.Series(dict(good), dtype=object),
            "keys": set(good),
        }
    # Records have types of their own.
    if isinstance(good, (list, tuple)) and not hasattr(good, "_fields") and len(good) > 1:
        return _like_a_list(good)
    return {}


def wrong_numbers(good: Any) -> dict[str, Any]:
    """Values that are no numbers in place of numbers; every function refuses them."""
    if isinstance(good, (int, float)) and not isinstance(good, bool):
        import numpy

        return {
            "True": True,
            "False": False,
            "a bool of NumPy": numpy.True_,
            "a tensor of a bool": torch.tensor(True),
        } | ({"a half": good + 0.5} if isinstance(good, int) else {})
    return {}


def complaints_about(
    cases: Iterable[tuple[Any, Any]],
    called: Callable[[Any, Any], Any],
    honest: Any,
    fault: Callable[[Exception], str | None],
) -> list[str]:
    """A line for each impostor that is taken for something else, and for each refusal with a fault.

    Args:
        cases: names of arguments, and their honest values.
        called: the answer if an argument has another value.
        honest: the answer to the honest values.
        fault: what is wrong with an error, if anything.
    """
    found = []
    for name, good in cases:
        for refused, values in ((False, impostors(good)), (True, wrong_numbers(good))):
            for kind, value in values.items():
                try:
                    answer = called(name, value)
                except Exception as error:
                    if why := fault(error):
                        found.append(f"{name}={kind}: {why}: {str(error)[:200]!r}")
                    continue
                if refused or not same(answer, honest):
                    found.append(f"{name}={kind}: taken for something else")
    return found


def _like_a_list(good: Any) -> dict[str, Any]:
    import numpy
    import pandas

    entries, places = list(good), range(len(good))
    found: dict[str, Any] = {
        "the other kind of list": tuple(entries) if isinstance(good, list) else entries,
        "an iterator": iter(entries),
        "a dict by place": {place: entries[place] for place in reversed(places)},
        "a dict of keys": dict.fromkeys(map(str, places)),
    }
    if all(isinstance(entry, (int, float, str)) for entry in entries):
        frame = pandas.DataFrame({"a": entries})
        found |= {
            "a set": set(entries),
            "a column": frame["a"],
            "a column in reverse": frame["a"][::-1],
            "a frame": frame,
            "an index": pandas.Index(entries),
            "an array": numpy.array(entries),
            "an array of two axes": numpy.array(entries)[:, None],
        }
    if all(isinstance(entry, (int, float)) for entry in entries):
        found["a tensor"] = torch.tensor(entries)
    if all(isinstance(entry, torch.Tensor) for entry in entries):
        found["arrays"] = [entry.detach().numpy() for entry in entries]
        if len({entry.shape for entry in entries}) == 1:
            found["one tensor"] = torch.stack(entries)
    return found


def _like_a_tensor(good: torch.Tensor) -> dict[str, Any]:
    import numpy
    import pandas
    import pyarrow

    array = good.detach().numpy()
    found: dict[str, Any] = {
        "an array": array,
        "a masked array": numpy.ma.masked_array(array),
        "lists": good.tolist(),
        "sparse": good.to_sparse(),
        "other strides": good.mT.contiguous().mT
        if good.dim() > 1
        else good.repeat(2)[: len(good)]
        if good.dim() == 1
        else good,
    }
    if good.dtype is torch.bool:
        found["numbers"] = good.long()
    elif good.is_floating_point():
        found["negated lazily"] = torch._neg_view(-good)
        found["doubles"] = good.double()
        found["quantised"] = torch.quantize_per_tensor(good.float(), 2.0**-9, 0, torch.qint32)
    else:
        found["of 32 bits"] = good.int()
        found["floats"] = good.double()
        found["flags"] = good.bool()
    if good.dim() > 1:
        found["nested"] = torch.nested.nested_tensor(list(good))
    if good.dim() == 2 and good.dtype is not torch.bool:
        frame = pandas.DataFrame(array)
        found |= {
            "a frame": frame,
            "a table": pyarrow.table({f"x{at}": column for at, column in enumerate(array.T)}),
            "a dict of columns": dict(enumerate(array.T)),
        }
    return found


def same(found: Any, honest: Any, tolerance: float = 1e-4) -> bool:
    """Whether two answers agree; doubles in place of floats may change the last digits."""
    if isinstance(honest, torch.Tensor):
        if not isinstance(found, torch.Tensor) or found.shape != honest.shape:
            return False
        if found.layout is not torch.strided or honest.layout is not torch.strided:
            found, honest = found.to_dense(), honest.to_dense()
        pair = found.detach().to(torch.float64), honest.detach().to(torch.float64)
        return torch.allclose(*pair, rtol=tolerance, atol=tolerance, equal_nan=True)
    if hasattr(honest, "__array__"):
        return same(torch.as_tensor(found), torch.as_tensor(honest), tolerance)
    if isinstance(honest, float):
        return (
            found == honest
            or (found != found and honest != honest)
            or (abs(found - honest) <= tolerance * max(1.0, abs(honest)))
        )
    if isinstance(honest, Mapping):
        return set(found) == set(honest) and all(same(found[k], honest[k]) for k in honest)
    if isinstance(honest, (list, tuple)) and not hasattr(honest, "_fields"):
        return len(found) == len(honest) and all(map(same, found, honest))
    if hasattr(honest, "_fields") or dataclasses.is_dataclass(honest):
        fields = getattr(honest, "_fields", None) or [
            field.name for field in dataclasses.fields(honest)
        ]
        # Times differ from run to run.
        names = [name for name in fields if not name.endswith("seconds")]
        return all(same(getattr(found, name), getattr(honest, name)) for name in names)
    return type(honest).__eq__ is object.__eq__ or found == honest
