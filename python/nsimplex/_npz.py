"""Arrays of npz files."""

from __future__ import annotations

import os
import zipfile
from typing import Any

from ._printable import printable


def read_npz(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The arrays of an npz file. Pickled arrays are refused.

    Raises:
        ValueError: "cannot read PATH: WHY", in one line.
    """
    import numpy as np

    at = f"cannot read {printable(os.fspath(path))}: "
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ValueError(f"{at}expected an npz file, got a single array")
        with file:
            return {name: file[name] for name in file.files}
    except OSError as error:
        raise ValueError(f"{at}{printable(error.strerror or error)}") from None
    except (ValueError, zipfile.BadZipFile, EOFError) as error:
        if str(error).startswith("cannot read"):
            raise
        raise ValueError(f"{at}{printable(error)}") from None
