"""Reads and writes safetensors files: https://github.com/huggingface/safetensors

The rules are those of the C++ reader (src/io/safetensors.h). Every length, offset and shape is
checked before a tensor is made, and so are the checksums of a file that has them.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor

from ._printable import printable
from ._whole_file import whole_file

_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_LENGTH_BYTES = 8  # of the header's length at the start of the file
_MOST_HEADER = 100_000_000  # bytes, by the format
_MOST_AXES = 64  # of a tensor
_LONGEST_NAME = 80  # letters of a name in a message

# Checksums are texts in "__metadata__": CRC-32 in eight hexadecimal digits.
_METADATA, _OF_TENSORS, _OF_HEADER = "__metadata__", "tensor_checksums", "header_checksum"
_NO_CHECKSUM = b"00000000"


class _Entry(NamedTuple):
    dtype: torch.dtype
    shape: tuple[int, ...]
    begin: int  # counted from the first byte behind the header
    end: int


class Safetensors:
    """The tensors and the metadata of a safetensors file.

    Raises:
        ValueError: "cannot read PATH: WHY", in one line.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._bytes = self._read()
        header = self._header()
        self.metadata = self._texts(header.pop(_METADATA, {}))
        self._entries = {name: self._entry(name, fields) for name, fields in header.items()}
        self._check_ranges()
        #: Whether the file has checksums. If it has, they fit.
        self.checked = self._check_data()

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    @property
    def names(self) -> list[str]:
        return [*self._entries]

    def raw(self, name: str) -> bytes:
        """The bytes of a tensor."""
        return bytes(self._part(self._entries[name]))

    def tensor(self, name: str) -> Tensor:
        """A tensor with its own memory."""
        entry = self._entries[name]
        if entry.begin == entry.end:
            return torch.empty(entry.shape, dtype=entry.dtype)
        part = bytearray(self._part(entry))
        if entry.dtype is torch.bool and max(part) > 1:
            self._bad(name, "holds values that are not booleans")
        return torch.frombuffer(part, dtype=entry.dtype).view(entry.shape)

    def fail(self, why: str) -> NoReturn:
        raise ValueError(f"cannot read {printable(self.path)}: {why}") from None

    def _bad(self, name: str, why: str) -> NoReturn:
        self.fail(f"tensor {quoted(name)}: {why}")

    def _read(self) -> memoryview:
        try:
            with open(self.path, "rb") as file:
                return memoryview(file.read())
        except (OSError, ValueError) as error:
            self.fail(getattr(error, "strerror", None) or str(error))

    def _header(self) -> dict[str, Any]:
        size = len(self._bytes)
        if size < _LENGTH_BYTES:
            self.fail(f"not a safetensors file ({size} bytes)")
        length = int.from_bytes(self._bytes[:_LENGTH_BYTES], "little")
        if length > _MOST_HEADER:
            self.fail(f"not a safetensors file (header of {length} bytes)")
        self._data = _LENGTH_BYTES + length
        if self._data > size:
            self.fail(f"truncated: the header needs {length} bytes, the file has {size - 8}")
        head = bytes(self._bytes[: self._data])
        if not _seal_fits(head):
            self.fail("damaged: the header does not fit its checksum")
        try:
            header = json.loads(head[_LENGTH_BYTES:].decode(), object_pairs_hook=self._object)
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
            self.fail("the header is not JSON")
        if not isinstance(header, dict):
            self.fail("the header is not a JSON object")
        return header

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in fields if names.count(name) > 1)
            self.fail(f"the header gives {quoted(twice)} twice")
        return fields

    def _texts(self, metadata: Any) -> dict[str, str]:
        if not isinstance(metadata, dict) or not all(isinstance(x, str) for x in metadata.values()):
            self.fail(f"{_METADATA} is not an object of strings")
        return metadata

    def _entry(self, name: str, fields: Any) -> _Entry:
        if not isinstance(fields, dict):
            self._bad(name, "is not described by an object")
        dtype: Any = fields.get("dtype")
        shape: Any = fields.get("shape")
        range_: Any = fields.get("data_offsets")
        if not isinstance(dtype, str) or dtype not in _DTYPES:
            self._bad(name, f"dtype {quoted(str(dtype))} is not supported")
        if not _is_counts(shape) or len(shape) > _MOST_AXES:
            self._bad(name, "has a bad shape")
        if not _is_counts(range_) or len(range_) != 2 or range_[0] > range_[1]:
            self._bad(name, "has no data_offsets")
        width = _DTYPES[dtype].itemsize
        # Strides are products of extents, also of a shape without elements.
        if math.prod(max(extent, 1) for extent in shape) * width >= 2**63:
            self._bad(name, "has a shape too large")
        begin, end = range_
        size = math.prod(shape) * width
        if end > len(self._bytes) - self._data:
            self._bad(name, "truncated: its data end behind the file")
        if end - begin != size:
            self._bad(name, f"its shape needs {size} bytes, its data have {end - begin}")
        return _Entry(_DTYPES[dtype], tuple(shape), begin, end)

    def _check_ranges(self) -> None:
        """The ranges of all tensors fill the file, without holes and overlaps."""
        filled = 0
        for name, entry in sorted(self._entries.items(), key=lambda each: each[1][2:]):
            if entry.begin != filled:
                self._bad(name, "its data overlap or leave a hole")
            filled = entry.end
        rest = len(self._bytes) - self._data - filled
        if rest:
            self.fail(f"{rest} bytes at the end belong to no tensor")

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
        if not isinstance(expected, dict) or expected.keys() != self._entries.keys():
            self.fail("damaged: its checksums are not those of its tensors")
        for name, entry in self._entries.items():
            if expected[name] != _checksum(self._part(entry)).decode():
                self.fail(f"damaged: tensor {quoted(name)} does not fit its checksum")
        return True

    def _part(self, entry: _Entry) -> memoryview:
        return self._bytes[self._data + entry.begin : self._data + entry.end]


def write_safetensors(
    path: str | os.PathLike[str], tensors: dict[str, Tensor], metadata: dict[str, str]
) -> None:
    """Writes a file with checksums, as the C++ writer does. It is written whole or not at all.

    Raises:
        OSError: nothing can be written there.
    """
    names = {dtype: name for name, dtype in _DTYPES.items()}
    order = sorted(tensors, key=lambda name: -tensors[name].element_size())
    fields, data, sums, offset = {}, [], {}, 0
    for name in order:
        own = tensors[name].detach().cpu().contiguous()
        part = own.view(-1).view(torch.uint8).numpy().tobytes() if own.numel() else b""
        fields[name] = {
            "dtype": names[own.dtype],
            "shape": list(own.shape),
            "data_offsets": [offset, offset + len(part)],
        }
        offset += len(part)
        data.append(part)
        sums[name] = _checksum(part).decode()
    said = {**metadata, _OF_TENSORS: json.dumps(sums), _OF_HEADER: _NO_CHECKSUM.decode()}
    text = json.dumps({_METADATA: said, **fields}, separators=(",", ":")).encode()
    text += b" " * (-(_LENGTH_BYTES + len(text)) % _LENGTH_BYTES)
    head = len(text).to_bytes(_LENGTH_BYTES, "little") + text
    begin = head.find(f'"{_OF_HEADER}":"'.encode()) + len(_OF_HEADER) + 4
    seal = _checksum(head)
    with whole_file(path, binary=True) as file:
        file.write(head[:begin] + seal + head[begin + len(seal) :])
        file.writelines(data)


def quoted(name: str) -> str:
    """A name from a file, for a message: on one line, and not too long."""
    shown = printable(name)
    return f"'{shown if len(shown) <= _LONGEST_NAME else shown[: _LONGEST_NAME - 3] + '..'}'"


def _is_counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(x) is int and x >= 0 for x in value)


def _checksum(part: bytes | memoryview) -> bytes:
    return b"%08x" % zlib.crc32(part)


def _seal_fits(head: bytes) -> bool:
    """Whether the header has no checksum, or one that fits. It counts itself as eight zeros."""
    key = f'"{_OF_HEADER}":"'.encode()
    begin = head.find(key) + len(key)
    end = begin + len(_NO_CHECKSUM)
    if begin < len(key) or end > len(head):
        return True
    return _checksum(head[:begin] + _NO_CHECKSUM + head[end:]) == head[begin:end]
