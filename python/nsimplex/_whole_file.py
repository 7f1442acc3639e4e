"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def whole_file(path: str | os.PathLike[str], **options: Any) -> Iterator[IO[Any]]:
    """A file to write into, which replaces ``path`` when the block ends; removed if it fails.

    It gets the permissions of every new file, by the umask. ``options`` are those of :func:`open`.

    Raises:
        OSError: of one line that names ``path``, where nothing can be written there.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        if path.is_dir():
            raise IsADirectoryError("it is a folder")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {path.parent}")
        with open(temporary, **({"mode": "x"} | options)) as file:
            yield file
        os.replace(temporary, path)
    except OSError as error:
        raise OSError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)
