"""Texts as token numbers, and back."""

from __future__ import annotations

import abc
import codecs
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .._arguments import checked, checked_methods, describe
from .._hints import is_dense
from .._printable import printable

_Path = str | os.PathLike[str]

_REPLACEMENT = "\ufffd"  # stands for bytes that are not a character, or not a whole one yet
_MOST_PARTS = 4  # bytes of a character in UTF-8, each of which may be a token


class Tokenizer(abc.ABC):
    """Turns a text into token numbers and back. Another tokenizer is a class with these members."""

    @property
    @abc.abstractmethod
    def vocabulary(self) -> int:
        """Number of tokens: token numbers are 0 to ``vocabulary`` - 1."""

    @property
    def separator(self) -> int | None:
        """Token between two texts; None: nothing."""
        return None

    @abc.abstractmethod
    def encode(self, text: str) -> list[int]:
        """The tokens of a text, without tokens for its begin and end."""

    @abc.abstractmethod
    def decode(self, tokens: Sequence[int] | Tensor) -> str:
        """The text of tokens. U+FFFD replaces bytes that are not UTF-8."""

    def _numbers(self, tokens: Sequence[int] | Tensor) -> list[int]:
        if isinstance(tokens, Tensor):
            whole = not (
                tokens.is_floating_point() or tokens.is_complex() or tokens.dtype == torch.bool
            )
            if not whole or tokens.dim() != 1 or not is_dense(tokens) or tokens.is_meta:
                raise TypeError(
                    f"[{type(self).__name__}] tokens: expected a list of integers or a tensor of "
                    f"integers of one axis, got {describe(tokens)}"
                )
            tokens = tokens.tolist()
        numbers = [int(token) for token in tokens]
        for token in numbers:
            if not 0 <= token < self.vocabulary:
                raise ValueError(
                    f"[{type(self).__name__}] tokens: expected 0 to {self.vocabulary - 1}, "
                    f"got {token}"
                )
        return numbers


@checked_methods
class ByteTokenizer(Tokenizer):
    """Tokens are the bytes of the text in UTF-8; the vocabulary is 256."""

    @property
    def vocabulary(self) -> int:
        return 256

    def encode(self, text: str | bytes) -> list[int]:
        """The bytes of a text. Bytes are taken as they are."""
        return [*(text.encode() if isinstance(text, str) else text)]

    def decode(self, tokens: Sequence[int] | Tensor) -> str:
        return bytes(self._numbers(tokens)).decode(errors="replace")


@checked_methods
class SentencePieceTokenizer(Tokenizer):
    """Subword tokens of a SentencePiece model. The package ``sentencepiece`` computes them; it is
    imported at the first use.

    Args:
        model: the bytes of the model, for example of a file ``tokenizer.model``.
        name: what a message calls the model.

    Raises:
        ImportError: at the first use, if the package is missing.
        ValueError: at the first use, if the bytes are not a SentencePiece model.
    """

    def __init__(self, model: bytes, name: str = "model") -> None:
        self._model, self._name = model, name
        self._loaded: Any = None

    def _processor(self) -> Any:
        if self._loaded is None:
            try:
                from sentencepiece import SentencePieceProcessor
            except ImportError:
                raise ImportError(
                    "[SentencePieceTokenizer] needs the package sentencepiece: "
                    "python -m pip install sentencepiece (the extra text)"
                ) from None
            processor = SentencePieceProcessor()
            try:
                processor.LoadFromSerializedProto(self._model)
            except Exception:
                raise ValueError(
                    f"cannot read {printable(self._name)}: not a SentencePiece model"
                ) from None
            self._loaded = processor
        return self._loaded

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_loaded": None}  # copies and processes read the model again

    @property
    def vocabulary(self) -> int:
        return self._processor().GetPieceSize()

    @property
    def separator(self) -> int | None:
        end = self._processor().eos_id()
        return end if end >= 0 else None

    def encode(self, text: str) -> list[int]:
        return self._processor().EncodeAsIds(text)

    def decode(self, tokens: Sequence[int] | Tensor) -> str:
        return self._processor().DecodeIds(self._numbers(tokens))


@checked_methods
class JsonTokenizer(Tokenizer):
    """Tokens of a ``tokenizer.json`` of Hugging Face. The package ``tokenizers`` computes them.

    ``encode`` adds no special tokens, and ``decode`` writes those that it gets. A file may also ask
    for truncation, padding and a random dropout of merges. All three are off, so that the tokens
    are always those of the whole text.

    Args:
        path: the file.
        separator: the token between two texts, for example "<|endoftext|>"; None: nothing.

    Raises:
        ImportError: the package is missing.
        ValueError: the file cannot be used, or it has no such token.
    """

    def __init__(self, path: _Path, separator: str | None = None) -> None:
        try:
            from tokenizers import Tokenizer as Loaded
        except ImportError:
            raise ImportError(
                "[JsonTokenizer] needs the package tokenizers: python -m pip install tokenizers "
                "(the extra text)"
            ) from None
        text = text_of(path)
        try:
            self._loaded = Loaded.from_str(text)
        except Exception:  # the package has no class for it
            raise ValueError(f"cannot read {printable(path)}: not a tokenizer.json") from None
        self._loaded.no_truncation()
        self._loaded.no_padding()
        if getattr(self._loaded.model, "dropout", None):
            self._loaded.model.dropout = None
        self._separator = None if separator is None else self._loaded.token_to_id(separator)
        if separator is not None and self._separator is None:
            raise ValueError(
                f"[JsonTokenizer] separator: expected a token of {printable(path)}, "
                f"got {separator[:40]!r}"
            )

    @property
    def vocabulary(self) -> int:
        # Numbers may have gaps, and a model needs a row for each.
        return max(self._loaded.get_vocab(with_added_tokens=True).values()) + 1

    @property
    def separator(self) -> int | None:
        return self._separator

    def encode(self, text: str) -> list[int]:
        return self._loaded.encode(text, add_special_tokens=False).ids

    def decode(self, tokens: Sequence[int] | Tensor) -> str:
        return self._loaded.decode(self._numbers(tokens), skip_special_tokens=False)


@checked
def load_tokenizer(path: _Path) -> Tokenizer:
    """The tokenizer of a file: a ``tokenizer.json`` of Hugging Face, or a SentencePiece model.

    Raises:
        ValueError: "cannot read PATH: WHY", in one line.
        ImportError: the package that reads such a file is missing.
    """
    content = bytes_of(path)
    if content.lstrip()[:1] == b"{":
        try:
            json.loads(content)
        except (ValueError, RecursionError):
            pass
        else:
            return JsonTokenizer(path)
    tokenizer = SentencePieceTokenizer(content, os.fspath(path))
    _ = tokenizer.vocabulary  # says now what is wrong with it
    return tokenizer


def bytes_of(path: _Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ValueError(f"cannot read {printable(path)}: {why}") from None


def text_of(path: _Path) -> str:
    try:
        return bytes_of(path).decode()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"cannot read {printable(path)}: it is not UTF-8 (byte {error.start})"
        ) from None


@checked_methods
class StreamDecoder:
    """Decodes a growing sequence of tokens piece by piece.

    The pieces of :meth:`next` and :meth:`finish`, joined, are the text of all tokens. Bytes of a
    character that is not whole yet are held back until it is.

    Args:
        context: tokens before the first one; their text is not returned.
    """

    def __init__(self, tokenizer: Tokenizer, context: Sequence[int] | bytes = ()) -> None:
        self._tokenizer = tokenizer
        self._bytes = None
        if isinstance(tokenizer, ByteTokenizer):
            self._bytes = codecs.getincrementaldecoder("utf-8")(errors="replace")
            self._bytes.decode(bytes(tokenizer._numbers([*context])))
            return
        self._tokens = [*context][-_MOST_PARTS:]  # those whose text may still change
        self._shown = self._text()  # of them, returned already

    def _text(self) -> str:
        return self._tokenizer.decode(self._tokens) if self._tokens else ""

    def next(self, token: int) -> str:
        """The text that a token adds."""
        if self._bytes is not None:
            return self._bytes.decode(bytes(self._tokenizer._numbers([token])))
        self._tokens.append(token)
        text = self._text()
        if text.endswith(_REPLACEMENT) and len(self._tokens) <= 2 * _MOST_PARTS:
            return ""
        added = text[len(self._shown) :]
        # Some tokens stay: a subword model drops the space before its first token.
        self._tokens = self._tokens[-_MOST_PARTS:]
        self._shown = self._text()
        return added

    def finish(self) -> str:
        """The text that was held back."""
        if self._bytes is not None:
            return self._bytes.decode(b"", final=True)
        added, self._shown = self._text()[len(self._shown) :], self._text()
        return added
