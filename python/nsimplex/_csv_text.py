"""The text of csv files from anywhere."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Iterator
from pathlib import Path

from ._foreign_files import foreign_file
from ._printable import printable

_GZIP = b"\x1f\x8b"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a UTF-8 file, gzipped or not, without a byte order mark. A text that is gzipped
    must not unpack to much more than its bytes.

    Raises:
        ValueError: "cannot read PATH: WHY" or "cannot read PATH, line N: WHY".
    """
    with foreign_file(path, "text") as file:
        data = Path(path).read_bytes()
        if data.startswith(_GZIP):
            with (
                foreign_file(path, "gzip file"),
                gzip.GzipFile(fileobj=io.BytesIO(data)) as stream,
            ):
                data = stream.read(file.most_bytes + 1)
            file.require_bytes(len(data))
    if data.startswith(_UTF16):
        raise ValueError(f"cannot read {printable(path)}: expected UTF-8, got UTF-16")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = len(data[: error.start].splitlines()) or 1
        byte = data[error.start]
        raise ValueError(
            f"cannot read {printable(path)}, line {line}: expected UTF-8, got the byte 0x{byte:02x}"
        ) from None


def read_rows(
    path: str | os.PathLike[str], needed: tuple[str, ...]
) -> Iterator[tuple[int, dict[str, str]]]:
    """Line numbers and rows of a csv file with a header, by column.

    Raises:
        ValueError: as :func:`read_text`; a missing column, or two columns of one name.
    """
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""))
    try:
        names = list(reader.fieldnames or [])
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise ValueError(f"cannot read {printable(path)}: two columns are called {name!r}")
            seen.add(name)
        for name in needed:
            if name not in names:
                raise ValueError(
                    f"cannot read {printable(path)}: expected a column {name!r}, "
                    f"got {', '.join(map(printable, names)) or 'none'}"
                )
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise ValueError(
            f"cannot read {printable(path)}, line {reader.line_num}: {error}"
        ) from None
