"""Paths as operators take them."""

from __future__ import annotations

import os


def operator_path(path: str | os.PathLike[str]) -> str | bytes:
    """A path as operators take it. Names of files are bytes; one that is not UTF-8 is handed over
    as bytes, since Python's text for it cannot be encoded."""
    text = os.fspath(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        try:
            return os.fsencode(text)
        except UnicodeEncodeError:
            raise ValueError(
                f"cannot use the path {text!a}: it is no name that a file can have"
            ) from None
    return text
