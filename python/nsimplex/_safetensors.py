"""Reads and writes safetensors files with checksums, which the C++ library has, too.

The package safetensors checks lengths, offsets and shapes. The checksums are ours: CRC-32 of each
tensor and of the header, in the metadata.
"""

from __future__ import annotations

import json
import os
import zlib
from typing import Any, NoReturn

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from ._printable import printable
from ._whole_file import whole_file

#: Those of the C++ library.
_DTYPES: tuple[torch.dtype, ...] = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
)
_LENGTH_BYTES = 8  # of the header's length at the start of the file
_ALIGNMENT = 8  # of the first tensor in the file
_MOST_AXES = 64  # of a tensor
_LONGEST_NAME = 80  # letters of a name in a message

# Checksums are texts in "__metadata__", in eight hexadecimal digits.
_METADATA, _OF_TENSORS, _OF_HEADER = "__metadata__", "tensor_checksums", "header_checksum"
_NO_CHECKSUM = "00000000"


class Safetensors:
    """The tensors and the metadata of a safetensors file.

    Raises:
        ValueError: "cannot read PATH: WHY", in one line.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        data = self._read()
        head = data[: _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")]
        if not _seal_fits(head):
            self.fail("damaged: the header does not fit its checksum")
        self._tensors = self._load(data)
        header = json.loads(head[_LENGTH_BYTES:], object_pairs_hook=self._object)
        self.metadata: dict[str, str] = header.get(_METADATA) or {}
        #: Whether the file has checksums. If it has, they fit.
        self.checked = self._check_data()
        for name, tensor in self._tensors.items():
            self._check_tensor(name, tensor)

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    @property
    def names(self) -> list[str]:
        return [*self._tensors]

    def raw(self, name: str) -> bytes:
        """The bytes of a tensor."""
        return bytes(_part(self._tensors[name]))

    def tensor(self, name: str) -> Tensor:
        """A tensor with its own memory."""
        return self._tensors[name]

    def fail(self, why: str) -> NoReturn:
        raise ValueError(f"cannot read {printable(self.path)}: {why}") from None

    def _read(self) -> bytes:
        try:
            with open(self.path, "rb") as file:
                return file.read()
        except (OSError, ValueError) as error:
            self.fail(getattr(error, "strerror", None) or str(error))

    def _load(self, data: bytes) -> dict[str, Tensor]:
        try:
            return load(data)
        # A tensor without elements may have extents that torch refuses, or a dtype that it lacks.
        except (SafetensorError, KeyError, RuntimeError) as error:
            why = str(error).removeprefix("Error while deserializing: ").partition("\n")[0]
            self.fail(f"not a whole safetensors file ({printable(why)})")

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in fields if names.count(name) > 1)
            self.fail(f"the header gives {quoted(twice)} twice")
        return fields

    def _check_tensor(self, name: str, tensor: Tensor) -> None:
        if tensor.dtype not in _DTYPES:
            self.fail(f"tensor {quoted(name)}: dtype {tensor.dtype} is not supported")
        if tensor.dim() > _MOST_AXES:
            self.fail(f"tensor {quoted(name)}: it has more than {_MOST_AXES} axes")
        if tensor.dtype is torch.bool and (tensor.view(torch.uint8) > 1).any():
            self.fail(f"tensor {quoted(name)}: it holds values that are not booleans")

    def _check_data(self) -> bool:
        sums, seal = self.metadata.pop(_OF_TENSORS, None), self.metadata.pop(_OF_HEADER, None)
        if (sums is None) != (seal is None):
            self.fail("damaged: it has checksums of the header or of the tensors alone")
        if sums is None:
            return False
        try:
            expected = json.loads(sums)
        except (ValueError, RecursionError):
            expected = None
        if not isinstance(expected, dict) or expected.keys() != self._tensors.keys():
            self.fail("damaged: its checksums are not those of its tensors")
        for name, tensor in self._tensors.items():
            if expected[name] != _checksum(_part(tensor)):
                self.fail(f"damaged: tensor {quoted(name)} does not fit its checksum")
        return True


def write_safetensors(
    path: str | os.PathLike[str], tensors: dict[str, Tensor], metadata: dict[str, str]
) -> None:
    """Writes a file with checksums, as the C++ writer does. It is written whole or not at all.

    Raises:
        OSError: nothing can be written there.
    """
    # Copies, because the package refuses tensors that share memory.
    own = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    sums = json.dumps({name: _checksum(_part(tensor)) for name, tensor in own.items()})
    data = save(own, {**metadata, _OF_TENSORS: sums, _OF_HEADER: _NO_CHECKSUM})
    end = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
    head = _in_order(data[_LENGTH_BYTES:end])
    begin = _seal_place(head)
    with whole_file(path, binary=True) as file:
        file.write(head[:begin] + _checksum(head).encode() + head[begin + len(_NO_CHECKSUM) :])
        file.write(memoryview(data)[end:])


def _in_order(header: bytes) -> bytes:
    """The head of a file whose metadata are in the order of their names. The package writes them in
    another order each time, so that equal weights would make different files."""
    fields = json.loads(header)
    fields["__metadata__"] = dict(sorted(fields["__metadata__"].items()))
    text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return len(text).to_bytes(_LENGTH_BYTES, "little") + text


def quoted(name: str) -> str:
    """A name from a file, for a message: on one line, and not too long."""
    shown = printable(name)
    return f"'{shown if len(shown) <= _LONGEST_NAME else shown[: _LONGEST_NAME - 3] + '..'}'"


def _part(tensor: Tensor) -> memoryview:
    """The bytes of a contiguous tensor on the CPU."""
    return tensor.reshape(-1).view(torch.uint8).numpy().data


def _checksum(part: bytes | memoryview) -> str:
    return f"{zlib.crc32(part):08x}"


def _seal_place(head: bytes) -> int:
    """Where the header's checksum begins, or -1."""
    key = f'"{_OF_HEADER}":"'.encode()
    begin = head.find(key) + len(key)
    return begin if len(key) <= begin <= len(head) - len(_NO_CHECKSUM) else -1


def _seal_fits(head: bytes) -> bool:
    """Whether the header has no checksum, or one that fits. It counts itself as eight zeros."""
    begin = _seal_place(head)
    end = begin + len(_NO_CHECKSUM)
    zeros = head[:begin] + _NO_CHECKSUM.encode() + head[end:]
    return begin < 0 or _checksum(zeros).encode() == head[begin:end]
