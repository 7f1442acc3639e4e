"""Folders of models as ``save_pretrained`` writes them: what is wrong with one is told in one line,
and sizes are compared with the weights before anything of such a size is made."""

from __future__ import annotations

import copy
import glob
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from safetensors import safe_open

from .._foreign_files import foreign_file
from .._printable import printable
from ..nn.language_options import SIZES

__all__ = ["config_told", "require_enough_weights", "require_plain_fields", "weights_told"]

_MOST_LABELS, _MOST_LAYERS = 1 << 20, SIZES["layers"][1]
_MOST_TIMES = 8  # weights of a model per stored number: a packed number holds up to eight
_OURS = re.compile(r"\[(?!from_pretrained)\w+\] ([^\n]+)")
_FIELD = re.compile(r"Field '(\w+)' (?:expected (.+)|with value)")
_MEMORY = ("DefaultCPUAllocator", "out of memory", "allocate memory")


def _config_file(folder: str | os.PathLike[str], subfolder: str = "") -> str:
    path = os.path.join(folder, subfolder)
    return os.path.join(path, "config.json") if os.path.isdir(path) else path


@contextmanager
def config_told(folder: str | os.PathLike[str], subfolder: str = "") -> Iterator[None]:
    """Any error that a config in a folder causes is one line with the name of its file. Errors of
    names on the hub stay as they are."""
    path = _config_file(folder, subfolder)
    if not os.path.exists(path):
        yield
        return
    at = f"cannot read {printable(path)}: "
    with foreign_file(path, "config of a model"):
        try:
            yield
        except Exception as error:
            text = str(error)
            if text.startswith("[from_pretrained]"):
                raise
            if ours := _OURS.fullmatch(text):
                raise ValueError(f"{at}{ours[1]}") from None
            if field := _FIELD.search(text):
                expected = printable((field[2] or "a value of another type")[:200])
                raise ValueError(f"{at}{field[1]}: expected {expected}") from None
            if "not a valid JSON file" in text:
                raise ValueError(f"{at}expected JSON") from None
            raise


@contextmanager
def weights_told(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Any error while Transformers fills a model is one line with the folder's name and the reason,
    which may lie in the options of the call. Errors of names on the hub stay as they are."""
    if not os.path.isdir(folder):
        yield
        return
    at = f"cannot read {printable(os.fspath(folder))}: "
    try:
        yield
    except Exception as error:
        text = str(error)
        if text.startswith(("[from_pretrained]", "cannot read")):
            raise
        if isinstance(error, MemoryError) or any(each in text for each in _MEMORY):
            raise ValueError(f"{at}it needs more memory than there is") from None
        ours = _OURS.fullmatch(text)
        why = (text.splitlines() or [""])[0][:300]
        raise ValueError(
            at + (ours[1] if ours else f"expected a model that loads, got {printable(why)}")
        ) from None


def require_plain_fields(folder: str | os.PathLike[str], subfolder: str = "") -> None:
    """Checks the numbers of a config by which lists are made while it is read."""
    path = _config_file(folder, subfolder)
    if not os.path.isfile(path):
        return
    at = f"cannot read {printable(path)}: "
    with config_told(folder, subfolder):
        with open(path, encoding="utf-8") as file:
            fields: Any = json.load(file)
        if not isinstance(fields, dict):
            raise ValueError(f"{at}expected an object of JSON")
        for name, most in (
            ("num_labels", _MOST_LABELS),
            ("num_hidden_layers", _MOST_LAYERS),
            ("n_layer", _MOST_LAYERS),
        ):
            number = fields.get(name, 1)
            if type(number) is not int or not 0 <= number <= most:
                got = printable(number)[:80]
                raise ValueError(f"{at}{name}: expected an integer from 0 to {most}, got {got}")
        for name in ("self", "__dict__"):
            if name in fields:
                raise ValueError(f"{at}{name}: expected no such field")
        objects = ("id2label", "label2id", "auto_map", "quantization_config")
        for name, kind in [("architectures", list), *((each, dict) for each in objects)]:
            if not isinstance(fields.get(name) or kind(), kind):
                of = "an object" if kind is dict else "a list"
                raise ValueError(f"{at}{name}: expected {of} of JSON")


def require_enough_weights(
    folder: str | os.PathLike[str], subfolder: str, made: Any, config: Any
) -> None:
    """Checks the files of weights, and that a model of this config is not much larger than they
    are: Transformers would make the missing weights."""
    stored, tensors = 0, 0
    for path in sorted(
        glob.glob(os.path.join(glob.escape(os.fspath(folder)), subfolder, "*.safetensors"))
    ):
        with foreign_file(path, "safetensors file"), safe_open(path, framework="pt") as file:
            if (file.metadata() or {}).get("format", "pt") != "pt":
                raise ValueError(f"cannot read {printable(path)}: expected format pt")
            for name in file.keys():  # noqa: SIM118
                tensors += 1
                stored += torch.Size(file.get_slice(name).get_shape()).numel()
    if not tensors:  # weights of another format
        return
    path = _config_file(folder, subfolder)
    at = f"cannot read {printable(path)}: "
    with config_told(folder, subfolder):
        layers = config.num_hidden_layers
        if layers > tensors:
            raise ValueError(
                f"{at}num_hidden_layers: expected at most {tensors}, the number of stored tensors, "
                f"got {layers}"
            )
        with torch.device("meta"):
            model = made(copy.deepcopy(config))
        needed = sum(weight.numel() for weight in model.parameters())
        if needed > _MOST_TIMES * stored:
            raise ValueError(
                f"{at}expected sizes of a model of {stored} weights, which are stored, got those "
                f"of one of {needed}"
            )
