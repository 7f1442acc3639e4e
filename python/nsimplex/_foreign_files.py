"""Files that other programs wrote: errors in one line, and bounds on what they unpack to."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ._printable import printable

#: Bytes that a file of any size may unpack to, and how many times its own bytes in addition.
FREE_BYTES, MOST_TIMES = 1 << 26, 100


class ForeignFile:
    """A file while it is read.

    Attributes:
        at: begins a message, "cannot read PATH: ".
        most_bytes: what the file may unpack to.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.at = f"cannot read {printable(os.fspath(path))}: "
        self.most_bytes = FREE_BYTES + MOST_TIMES * os.path.getsize(path)

    def require_bytes(self, count: int, what: str = "it") -> None:
        """Refuses to unpack more bytes than the size of the file allows.

        Args:
            count: bytes, as the file states them, before anything is allocated.
            what: unpacks to that many.
        """
        if count > self.most_bytes:
            raise ValueError(
                f"{self.at}expected at most {self.most_bytes} bytes of data, {MOST_TIMES} times "
                f"those of the file and {FREE_BYTES >> 20} MiB, but {what} has {count}"
            )

    def require_nodes(self, count: int) -> None:
        """Refuses numbers of nodes for which the file is too small: each takes memory."""
        most = self.most_bytes // 8
        if count > most:
            raise ValueError(
                f"{self.at}expected at most {most} nodes in a file of its size, got {count}"
            )

    def array_bytes(self, name: str, dataset: Any) -> int:
        """The bytes of an array of an h5 file. One whose data are in other files is refused, and so
        is one, or a chunk of it, for which the file is too small."""
        where = printable(name)[:60]
        if dataset.is_virtual or dataset.external:
            raise ValueError(
                f"{self.at}array {where}: expected data of this file, got those of others"
            )
        count, chunk = dataset.size or 0, math.prod(dataset.chunks or ())
        self.require_bytes(max(count, chunk) * dataset.dtype.itemsize, where)
        return count * dataset.dtype.itemsize


@contextmanager
def foreign_file(path: str | os.PathLike[str], kind: str) -> Iterator[ForeignFile]:
    """Opens nothing itself. Any error inside becomes one line in our words, because the libraries
    that read such files raise errors of every kind.

    Args:
        kind: of the file, "npz file".

    Raises:
        ValueError: "cannot read PATH: WHY", in one line.
    """
    at = f"cannot read {printable(os.fspath(path))}: "
    try:
        yield ForeignFile(path)
    except MemoryError:
        raise ValueError(f"{at}it needs more memory than there is") from None
    except Exception as error:
        if isinstance(error, ValueError) and str(error).startswith(("cannot read", "--")):
            raise  # ours; "--" begins the name of an option
        if isinstance(error, OSError) and error.strerror and error.filename is not None:
            raise ValueError(f"{at}{printable(error.strerror)}") from None
        raise ValueError(f"{at}a damaged {kind}") from None
