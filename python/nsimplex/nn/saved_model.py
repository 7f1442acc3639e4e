"""Language models in files: what ``nsimplex lm train`` writes, strictly checked."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from .._arguments import describe
from .._printable import printable
from .._safetensors import Safetensors, quoted, write_safetensors
from ..text import ByteTokenizer, SentencePieceTokenizer, Tokenizer
from .checks import require
from .language_options import LanguageModelOptions

# Files of a run folder, and kinds of files with the numbers of their formats: as in
# src/train/checkpoint.cpp.
_CHECKPOINT_FILE, _MODEL_FILE, _TOKENIZER_FILE = (
    "checkpoint.safetensors",
    "model.safetensors",
    "tokenizer.model",
)
_CHECKPOINT, _MODEL = "nsimplex checkpoint ", "nsimplex model "
_NEWEST, _WITHOUT_CHECKSUMS = "2", "1"
_WEIGHTS, _TOKENIZER, _NO_TOKENIZER = "model.", "tokenizer", "none"
#: Fields of the state of a model, and of a checkpoint.
_FIELDS = ("model", "step", _TOKENIZER), ("model", "training", "text", "progress", _TOKENIZER)
_BYTES = 256  # tokens that a byte can be
_LAST_OF_FIRST = "tied"  # the last option that files of version 0.1 have


class SavedModel(NamedTuple):
    """A model in a file."""

    path: str  #: of the file
    options: dict[str, str]  #: as LanguageModelOptions.from_map takes them
    weights: dict[str, Tensor]
    step: int  #: updates behind it
    tokenizer: Tokenizer | None  #: None if the run read token files


def read_saved_model(path: str | os.PathLike[str]) -> SavedModel:
    """The model of a run folder (its checkpoint, else its model.safetensors), of a checkpoint or of
    a model.safetensors.

    Raises:
        ValueError: "cannot read PATH: WHY", in one line.
    """
    place = Path(path)
    if place.is_dir():
        alone = not (place / _CHECKPOINT_FILE).exists() and (place / _MODEL_FILE).exists()
        place = place / (_MODEL_FILE if alone else _CHECKPOINT_FILE)
    file = Safetensors(place)
    prefix = _WEIGHTS if _is_kind(file, _CHECKPOINT) else ""
    if not prefix and not _is_kind(file, _MODEL):
        file.fail("not a model of nsimplex")
    state = _state(file)
    for name in state:
        if name not in _FIELDS[bool(prefix)]:
            file.fail(f"the header's state has an unknown field {quoted(name)}")
    options, step = state.get("model"), state.get("step", _of(state, "progress", "step"))
    if not isinstance(options, dict) or not all(isinstance(x, str) for x in options.values()):
        file.fail("the header's state is damaged: model is not an object of strings")
    if type(step) is not int or not 0 <= step < 2**63:
        file.fail("the header's state is damaged: step is not a number from 0 on")
    for name in LanguageModelOptions.__dataclass_fields__:
        if name not in options:
            file.fail(f"its option {name} is missing")
        if name == _LAST_OF_FIRST:
            break
    names = [name for name in file.names if name.startswith(prefix)]
    weights = {name.removeprefix(prefix): file.tensor(name) for name in names}
    tokenizer = _tokenizer(file, place, bool(prefix), state, options.get("vocabulary"))
    return SavedModel(file.path, options, weights, step, tokenizer)


def _of(state: dict[str, Any], *names: str) -> Any:
    value: Any = state
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _is_kind(file: Safetensors, kind: str) -> bool:
    said = file.metadata.get("format", "")
    if not said.startswith(kind):
        return False
    number = said.removeprefix(kind)
    if number == _NEWEST and not file.checked:
        file.fail("damaged: its checksums are missing")
    if number not in (_NEWEST, _WITHOUT_CHECKSUMS):
        file.fail(f"its format {quoted(said)} is not known to this version")
    return True


def _state(file: Safetensors) -> dict[str, Any]:
    if "state" not in file.metadata:
        file.fail("the header has no state")
    try:
        state = json.loads(file.metadata["state"])
    except (ValueError, RecursionError):
        file.fail("the header's state is damaged: it is not JSON")
    if not isinstance(state, dict):
        file.fail("the header's state is damaged: it is not a JSON object")
    return state


def _tokenizer(
    file: Safetensors, place: Path, is_checkpoint: bool, state: dict[str, Any], vocabulary: Any
) -> Tokenizer | None:
    model, name = b"", file.path
    beside = place.parent / _TOKENIZER_FILE
    if is_checkpoint and _TOKENIZER in file:
        tokens = file.tensor(_TOKENIZER)
        if tokens.dtype != torch.uint8 or tokens.dim() != 1:
            file.fail("its tokenizer is not a list of bytes")
        model = file.raw(_TOKENIZER)
    elif not is_checkpoint and beside.exists():
        model, name = beside.read_bytes(), str(beside)
    if state.get("tokenizer", _NO_TOKENIZER) != _NO_TOKENIZER:
        file.fail("the header's state is damaged: tokenizer is not known to this version")
    if model:
        return SentencePieceTokenizer(model, name)
    # Files say it if there is none. The other models read bytes or SentencePiece's tokens.
    reads_bytes = "tokenizer" not in state and vocabulary == str(_BYTES)
    return ByteTokenizer() if reads_bytes else None


def require_fits(saved: SavedModel, options: Any) -> None:
    """Refuses options that are not those of the weights, before a model is built: its size is what
    the header says, which may be anything, while the weights are there."""
    weights = saved.weights
    embedding = weights.get("embedding.weight", torch.empty(0))
    rows, width = embedding.shape if embedding.dim() == 2 else (-1, -1)
    blocks = {name.split(".")[1] for name in weights if name.startswith("blocks.")}
    widest = max((max(tensor.shape, default=0) for tensor in weights.values()), default=0)
    most = widest if options.head_dim else options.dim
    for name, fits in (
        ("vocabulary", rows == options.vocabulary),
        ("dim", width == options.dim),
        ("layers", len(blocks) == options.layers),
        ("heads", options.heads <= most and options.kv_heads <= most),
        ("head_dim", options.head_dim <= widest),
        ("mlp_ratio", options.mlp_ratio * options.dim <= widest + 1),
    ):
        if not fits:
            raise ValueError(
                f"cannot read {printable(saved.path)}: its option {name} does not belong to its "
                "weights"
            )


def saved_language_model(saved: SavedModel, cls: type, non_finite: bool) -> nn.Module:
    """The class, :class:`LanguageModel`, with the options and the weights of a file."""
    try:
        options = LanguageModelOptions.from_map(saved.options)
        require_fits(saved, options)
        with torch.device("meta"):
            model = cls(options)
    except (ValueError, TypeError) as error:
        if str(error).startswith("cannot read"):
            raise
        raise ValueError(f"cannot read {printable(saved.path)}: {error}") from None
    load_weights(model, saved, non_finite)
    return model


def write_language_model(model: Any, folder: str | os.PathLike[str], step: int) -> None:
    """Writes model.safetensors, and tokenizer.model if the tokenizer is one of SentencePiece."""
    place, tokenizer, options = Path(folder), model.tokenizer, model.options
    at = "[LanguageModel] "
    require(
        not (place / _CHECKPOINT_FILE).exists(),
        f"{at}folder: expected one without {_CHECKPOINT_FILE}, which would be read instead",
    )
    known = isinstance(tokenizer, (ByteTokenizer, SentencePieceTokenizer, type(None)))
    require(
        known and (tokenizer is None or tokenizer.vocabulary == options.vocabulary),
        f"{at}tokenizer: expected a ByteTokenizer, a SentencePieceTokenizer of "
        f"{options.vocabulary} tokens or None, got {describe(tokenizer)}",
    )
    weights = model.state_dict()
    with torch.device("meta"):
        usual = type(model)(options)
    require(
        weights.keys() == usual.state_dict().keys(),
        f"{at}blocks: expected those of the options, got other weights",
    )
    state: dict[str, Any] = dict(model=options.to_map(), step=step)
    if tokenizer is None:
        state[_TOKENIZER] = _NO_TOKENIZER
    place.mkdir(parents=True, exist_ok=True)
    metadata = dict(format=_MODEL + _NEWEST, state=json.dumps(state, sort_keys=True))
    write_safetensors(place / _MODEL_FILE, weights, metadata)
    beside = place / _TOKENIZER_FILE
    if isinstance(tokenizer, SentencePieceTokenizer):
        beside.write_bytes(tokenizer._model)
    else:
        beside.unlink(missing_ok=True)


def load_weights(model: nn.Module, saved: SavedModel, non_finite: bool | None) -> None:
    """Puts the weights into a model on device meta, after names, shapes and numbers are checked.
    Without ``non_finite`` there is no way to use numbers that are not finite."""
    at, wanted = f"cannot read {printable(saved.path)}: ", model.state_dict()
    for name in wanted:
        if name not in saved.weights:
            raise ValueError(f"{at}it has no tensor {name}")
    first, dtype = next(((name, own.dtype) for name, own in saved.weights.items()), ("", None))
    for name, tensor in saved.weights.items():
        if name not in wanted:
            raise ValueError(f"{at}its tensor {quoted(name)} belongs to no such model")
        shape = wanted[name].shape
        if tensor.shape != shape:
            raise ValueError(f"{at}tensor {name}: expected shape {[*shape]}, got {[*tensor.shape]}")
        if not tensor.is_floating_point():
            raise ValueError(f"{at}tensor {name}: expected floating point, got {tensor.dtype}")
        if tensor.dtype != dtype:
            raise ValueError(
                f"{at}tensor {name}: expected {dtype}, as {first} is, got {tensor.dtype}"
            )
        if not non_finite and not tensor.isfinite().all():
            raise ValueError(
                f"cannot use {printable(saved.path)}: tensor {name} holds numbers that are not "
                f"finite{'' if non_finite is None else ' (non_finite=True uses it)'}"
            )
    model.load_state_dict(saved.weights, assign=True)
