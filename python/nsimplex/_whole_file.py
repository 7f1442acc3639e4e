"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any


@contextmanager
def whole_file(
    path: str | os.PathLike[str], *, binary: bool = False, **options: Any
) -> Iterator[IO[Any]]:
    """A file to write into, which replaces ``path`` when the block ends; removed if it fails.

    It gets the permissions of every new file, by the umask, and is on the disk before it gets its
    name. A link at ``path`` is replaced, and not what it leads to. ``options`` are those of
    :func:`open`.

    Raises:
        OSError: of one line that names ``path``, where nothing can be written there.
    """
    path = Path(path)
    # A name that nobody can prepare, made exclusively: what has it already is neither written into
    # nor removed.
    temporary = path.with_name(f".{path.name[:200]}.{secrets.token_hex(8)}.partial")
    made = False
    try:
        _require_replaceable(path)
        with open(temporary, "xb" if binary else "x", **options) as file:
            made = True
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        raise OSError(
            f"cannot write {path}: {error.strerror or str(error) or type(error).__name__}"
        ) from None
    finally:
        if made:
            temporary.unlink(missing_ok=True)


def require_place(path: str | os.PathLike[str]) -> None:
    """Refuses a file that cannot be written, before a long run makes what it would hold.

    Raises:
        OSError: of one line that names ``path``.
    """
    try:
        _require_replaceable(Path(path))
        if not os.access(Path(path).parent, os.W_OK):
            raise PermissionError("nothing can be written in its folder")
    except OSError as error:
        raise OSError(f"cannot write {path}: {error}") from None


def require_other(path: str | os.PathLike[str], *sources: str | os.PathLike[str]) -> None:
    """Refuses to write over a file that is read, by whatever name.

    Raises:
        ValueError: of one line that names ``path``.
    """
    for source in sources:
        with suppress(OSError):
            if os.path.samefile(path, source):
                raise ValueError(f"cannot write {os.fspath(path)}: it is a file that is read")


#: Ends of the names of pictures and pages that have a separate kind.
_KINDS: tuple[str, ...] = (".svg", ".html", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")
_KINDS += (".tiff", ".eps", ".ps", ".pdf")


def require_kind(path: str | os.PathLike[str], kind: str, function: str = "save") -> None:
    """Refuses a name that promises another kind of picture than ``kind``, ".svg" for example.

    Raises:
        ValueError: of one line that names ``path``.
    """
    name = os.fspath(path)
    other = next((each for each in _KINDS if str(name).lower().endswith(each)), kind)
    if other != kind:
        raise ValueError(
            f"[{function}] path: expected a name that ends in {kind}, got {str(name)!r}"
        )


def _require_replaceable(path: Path) -> None:
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent}")
    with suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError("it is a folder")
        if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
            raise OSError("it is not a regular file")


def _sync_folder(folder: Path) -> None:
    """Puts the new name on the disk, too; some file systems do not know how, and the file is there
    all the same."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
