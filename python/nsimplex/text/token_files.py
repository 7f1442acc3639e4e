"""Token files, as nanoGPT's data scripts write them."""

from __future__ import annotations

import array
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from .._arguments import checked
from .._printable import printable
from .._whole_file import require_other, whole_file
from .tokenizers import ByteTokenizer, Tokenizer, bytes_of, text_of

_Path = str | os.PathLike[str]

_MOST_UINT16 = 1 << 16  # tokens that two bytes can number


@checked
def encode_file(
    tokenizer: Tokenizer, text_files: _Path | Sequence[_Path], path: _Path | None = None
) -> Path:
    """Writes the tokens of texts to a file as nanoGPT's data scripts do, and returns its path.

    The file holds token numbers without a header, in little-endian order: uint16 for a vocabulary
    of at most 65536, else uint32. ``nsimplex lm train --tokens FILE --vocabulary N`` reads it. The
    texts are UTF-8 (for :class:`ByteTokenizer` any bytes), and the tokenizer's separator goes
    between them. The file is written whole or not at all. Memory: one text and its tokens.

    Args:
        text_files: one file, or several.
        path: the file to write; None: the name of the first text with the ending ``.bin``.

    Raises:
        ValueError: a text cannot be read, is empty or is not UTF-8, in one line.
        OSError: the file cannot be written, in one line.
    """
    texts = [text_files] if isinstance(text_files, (str, os.PathLike)) else [*text_files]
    if not texts:
        raise ValueError("[encode_file] text_files: expected one or more, got none")
    target = Path(path) if path is not None else Path(texts[0]).with_suffix(".bin")
    require_other(target, *texts)
    code = "H" if tokenizer.vocabulary <= _MOST_UINT16 else "I"
    with whole_file(target, binary=True) as file:
        for place, text in enumerate(texts):
            tokens = _tokens_of(tokenizer, text)
            if place > 0 and tokenizer.separator is not None:
                tokens.insert(0, tokenizer.separator)
            numbers = array.array(code, tokens)
            if sys.byteorder == "big":
                numbers.byteswap()
            file.write(numbers.tobytes())
    return target


def _tokens_of(tokenizer: Tokenizer, path: _Path) -> list[int]:
    content = bytes_of(path)
    if not content:
        raise ValueError(f"cannot read {printable(path)}: it is empty")
    if isinstance(tokenizer, ByteTokenizer):
        return tokenizer.encode(content)
    return [*tokenizer.encode(text_of(path))]
