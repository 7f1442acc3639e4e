"""Tokenizers: texts as token numbers and back, piece by piece too, and what is wrong with them in
one line."""

import copy
import json
import pickle
import sys

import pytest
import torch

from nsimplex.text import (
    ByteTokenizer,
    JsonTokenizer,
    SentencePieceTokenizer,
    StreamDecoder,
    Tokenizer,
    encode_file,
    load_tokenizer,
)

TEXT = "Grüße, 世界 🙂\n"


def streamed(tokenizer, tokens, context=()):
    decoder = StreamDecoder(tokenizer, context)
    return [decoder.next(token) for token in tokens] + [decoder.finish()]


def test_bytes_are_tokens():
    tokenizer = ByteTokenizer()
    assert (tokenizer.vocabulary, tokenizer.separator) == (256, None)
    tokens = tokenizer.encode(TEXT)
    assert tokens == [*TEXT.encode()] and tokenizer.encode(b"\xff\x00") == [255, 0]
    assert tokenizer.decode(tokens) == tokenizer.decode(torch.tensor(tokens)) == TEXT
    assert tokenizer.decode([97, 255, 98]) == "a\ufffdb"
    with pytest.raises(ValueError, match=r"^\[ByteTokenizer\] tokens: expected 0 to 255, got 256$"):
        tokenizer.decode([256])


def test_a_stream_holds_a_character_back_until_it_is_whole():
    pieces = streamed(ByteTokenizer(), TEXT.encode())
    assert "".join(pieces) == TEXT and "\ufffd" not in "".join(pieces[:-1])
    for content in (b"\xff\xfe\xc3", b"\xc3\xc3\xa9\xa9", b"a\xf0\x9f\x99", bytes(range(256))):
        assert "".join(streamed(ByteTokenizer(), content)) == content.decode(errors="replace")
    begun = "é".encode()
    assert "".join(streamed(ByteTokenizer(), begun[1:], context=begun[:1])) == "é"


class Words(Tokenizer):
    """A tokenizer of ours that drops the space before the first word, as SentencePiece does; its
    tokens 10 to 13 are the bytes of one character."""

    vocabulary = 14

    def encode(self, text):
        return [*map(int, text.split())]

    def decode(self, tokens):
        content = b"".join(
            "🙂".encode()[t - 10 : t - 9] if t >= 10 else f" {t}".encode() for t in tokens
        )
        return content.decode(errors="replace").removeprefix(" ")


@pytest.mark.parametrize("tokens", [[1, 2, 3], [1, 10, 11, 12, 13, 2, 10, 11, 12, 13], [5, 10]])
def test_a_stream_of_another_tokenizer_is_its_text(tokens):
    assert "".join(streamed(Words(), tokens)) == Words().decode(tokens)
    whole = Words().decode([7, 8, *tokens])
    assert "".join(streamed(Words(), tokens, context=[7, 8])) == whole.removeprefix("7 8")


@pytest.mark.parametrize(
    "package, build",
    [
        ("tokenizers", lambda: JsonTokenizer("tokenizer.json")),
        ("sentencepiece", lambda: SentencePieceTokenizer(b"model").encode("a")),
    ],
)
def test_a_missing_package_is_named(monkeypatch, package, build):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError) as error:
        build()
    assert f"needs the package {package}: python -m pip install {package}" in str(error.value)
    assert "\n" not in str(error.value)


def word_level(path, special=None):
    tokenizers = pytest.importorskip("tokenizers", reason="the package tokenizers is missing")
    words = {"[UNK]": 0, "a": 1, "b": 2, "c": 5}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.decoder = tokenizers.decoders.WordPiece()
    if special:
        made.add_special_tokens([special])
    made.save(str(path))
    return path


def test_a_tokenizer_json_is_what_its_package_says(tmp_path):
    path = word_level(tmp_path / "tokenizer.json", special="<|end|>")
    tokenizer = JsonTokenizer(path, separator="<|end|>")
    assert isinstance(load_tokenizer(path), JsonTokenizer)
    assert tokenizer.encode("a c b") == [1, 5, 2] and tokenizer.decode([1, 5, 2]) == "a c b"
    assert tokenizer.separator == tokenizer.encode("<|end|>")[0]
    assert tokenizer.vocabulary == 1 + max(5, tokenizer.separator)  # numbers may have gaps
    assert load_tokenizer(path).separator is None
    with pytest.raises(ValueError, match=r"\[JsonTokenizer\] separator: expected a token of .*nil"):
        JsonTokenizer(path, separator="nil")


def subwords():
    """A tokenizer of pairs, whose dropout splits some of them at random."""
    tokenizers = pytest.importorskip("tokenizers", reason="the package tokenizers is missing")
    words = {"a": 0, "b": 1, "ab": 2, "<s>": 3}
    return tokenizers.Tokenizer(tokenizers.models.BPE(words, [("a", "b")], dropout=0.5))


@pytest.mark.parametrize(
    "setting",
    [
        lambda made: None,
        lambda made: made.enable_truncation(4),
        lambda made: made.enable_truncation(4, stride=2, direction="left"),
        lambda made: made.enable_padding(length=128, pad_id=0, pad_token="a"),
        lambda made: made.enable_padding(pad_to_multiple_of=7, direction="left"),
        lambda made: setattr(
            made,
            "post_processor",
            __import__("tokenizers").processors.TemplateProcessing(
                single="<s> $A <s>", special_tokens=[("<s>", 3)]
            ),
        ),
    ],
    ids=["dropout", "cut", "cut left", "padded", "padded left", "special tokens"],
)
def test_the_tokens_are_those_of_the_whole_text(tmp_path, setting):
    made = subwords()
    setting(made)
    path = tmp_path / "tokenizer.json"
    made.save(str(path))
    loaded = load_tokenizer(path)
    (tmp_path / "text.txt").write_text("ab" * 30)
    for tokenizer in (loaded, copy.deepcopy(loaded), pickle.loads(pickle.dumps(loaded))):
        for _ in range(5):
            assert tokenizer.encode("ab" * 30) == [2] * 30
        assert tokenizer.decode([2] * 30).replace(" ", "") == "ab" * 30
        file = encode_file(tokenizer, tmp_path / "text.txt")
        assert file.read_bytes() == bytes([2, 0]) * 30


def test_a_sentencepiece_model_is_what_its_package_says(tmp_path):
    package = pytest.importorskip("sentencepiece", reason="the package sentencepiece is missing")
    text = tmp_path / "text.txt"
    text.write_text("the cat sat on the mat\nthe dog sat on the log\n" * 20)
    package.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(tmp_path / "spm"), vocab_size=30, model_type="bpe"
    )
    tokenizer = load_tokenizer(tmp_path / "spm.model")
    expected = package.SentencePieceProcessor(model_file=str(tmp_path / "spm.model"))
    assert tokenizer.vocabulary == 30 and tokenizer.separator == expected.eos_id()
    tokens = tokenizer.encode("the cat sat")
    assert tokens == expected.encode("the cat sat") and tokenizer.decode(tokens) == "the cat sat"
    assert "".join(streamed(tokenizer, tokens)) == "the cat sat"
    for again in (copy.deepcopy(tokenizer), pickle.loads(pickle.dumps(tokenizer))):
        assert again.encode("the dog") == tokenizer.encode("the dog")


def test_files_that_are_no_tokenizers(tmp_path):
    with pytest.raises(ValueError, match=r"^cannot read .*nothing: No such file or directory$"):
        load_tokenizer(tmp_path / "nothing")
    with pytest.raises(ValueError, match=r"^cannot read .*: Is a directory$"):
        load_tokenizer(tmp_path)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"model": 3}))
    pytest.importorskip("tokenizers", reason="the package tokenizers is missing")
    with pytest.raises(ValueError, match=r"^cannot read .*tokenizer\.json: not a tokenizer\.json$"):
        load_tokenizer(path)


def test_bytes_that_are_no_sentencepiece_model(tmp_path):
    pytest.importorskip("sentencepiece", reason="the package sentencepiece is missing")
    path = tmp_path / "tokenizer.model"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match=r"^cannot read .*: not a SentencePiece model$"):
        load_tokenizer(path)


@pytest.mark.parametrize(
    "tokens",
    [
        torch.tensor([True, False]),
        torch.tensor([0.9, 1.9]),
        torch.tensor([1 + 0j]),
        torch.tensor([[0, 1]]),
        torch.tensor(1),
        torch.tensor([0, 1]).to_sparse(),
        torch.tensor([0, 1], device="meta"),
    ],
    ids=str,
)
def test_tensors_of_something_else_than_tokens(tokens):
    with pytest.raises(
        (TypeError, ValueError), match=r"^\[ByteTokenizer\] tokens: expected .*, got"
    ):
        ByteTokenizer().decode(tokens)


def test_a_stream_of_bytes_names_what_is_no_byte():
    says = r"^\[ByteTokenizer\] tokens: expected 0 to 255, got 256$"
    with pytest.raises(ValueError, match=says):
        StreamDecoder(ByteTokenizer()).next(256)
    with pytest.raises(ValueError, match=says):
        StreamDecoder(ByteTokenizer(), [97, 256])
