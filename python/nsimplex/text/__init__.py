"""Texts as tokens: tokenizers, and the token files that ``nsimplex lm train --tokens`` reads.

>>> tokenizer = nsimplex.text.load_tokenizer("tokenizer.json")
>>> nsimplex.text.encode_file(tokenizer, "novels.txt", "novels.bin")
"""

from .token_files import encode_file
from .tokenizers import (
    ByteTokenizer,
    JsonTokenizer,
    SentencePieceTokenizer,
    StreamDecoder,
    Tokenizer,
    load_tokenizer,
)

__all__ = [
    "ByteTokenizer",
    "JsonTokenizer",
    "SentencePieceTokenizer",
    "StreamDecoder",
    "Tokenizer",
    "encode_file",
    "load_tokenizer",
]
