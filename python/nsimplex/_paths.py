"""Paths as operators take them."""

from __future__ import annotations

import os


def operator_path(path: str | os.PathLike[str]) -> str | bytes:
    """A path for an operator: names of files are bytes, and Python's text for those that are no UTF-8 is no text outside."""
    text = os.fspath(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        try:
            return os.fsencode(text)
        except UnicodeEncodeError:
            raise ValueError(f"cannot use the path {text!a}: it is no name that a file can have") from None
    return text
