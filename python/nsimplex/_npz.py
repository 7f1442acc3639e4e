"""Arrays of npz files."""

from __future__ import annotations

import math
import os
import zipfile
from typing import Any

from ._foreign_files import ForeignFile, foreign_file


def read_npz(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The arrays of an npz file. Pickled arrays are refused, and so are arrays that unpack to much
    more than the file.

    Raises:
        ValueError: "cannot read PATH: WHY", in one line.
    """
    with foreign_file(path, "npz file") as file:
        with open(path, "rb") as own:
            if own.read(6) == b"\x93NUMPY":
                raise ValueError(f"{file.at}expected an npz file, got a single array")
        if not zipfile.is_zipfile(path):
            raise ValueError(f"{file.at}expected an npz file, got other bytes")
        with zipfile.ZipFile(path) as archive:
            members = [each for each in archive.infolist() if each.filename.endswith(".npy")]
            file.require_bytes(sum(each.file_size for each in members))
            found: dict[str, Any] = {}
            for member in members:
                name = member.filename.removesuffix(".npy")
                if name in found:
                    raise ValueError(f"{file.at}two arrays are called {name!r:.60}")
                found[name] = _array(file, archive, member)
            return found


def _array(file: ForeignFile, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    """An array whose header promises no more than the archive has of it."""
    import numpy as np

    with archive.open(member) as stream:
        major, _ = np.lib.format.read_magic(stream)
        header = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
        if major not in header:
            raise ValueError(f"{file.at}array {member.filename!r:.60}: expected numbers")
        shape, _, dtype = header[major](stream)
        if dtype.hasobject:
            raise ValueError(f"{file.at}array {member.filename!r:.60} is a pickle, never read")
        if math.prod(shape) * dtype.itemsize > member.file_size:
            raise ValueError(
                f"{file.at}array {member.filename!r:.60} of shape {list(shape)} is cut off"
            )
    with archive.open(member) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)
