"""Token files hold what nanoGPT's data scripts write."""

import os
import subprocess

import pytest
from test_tokenizers import word_level

from nsimplex.nn import LanguageModel
from nsimplex.text import ByteTokenizer, JsonTokenizer, Tokenizer, encode_file


class Letters(Tokenizer):
    """Letters by their code points, after a number that another text is parted by."""

    separator = 7

    def __init__(self, vocabulary):
        self._vocabulary = vocabulary

    @property
    def vocabulary(self):
        return self._vocabulary

    def encode(self, text):
        return [*map(ord, text)]

    def decode(self, tokens):
        return "".join(map(chr, tokens))


def numbers(path, dtype):
    import numpy

    return numpy.fromfile(path, dtype=dtype).tolist()


def test_bytes_are_uint16(tmp_path):
    text = tmp_path / "some.txt"
    text.write_bytes(b"ab\xff\x00")
    path = encode_file(ByteTokenizer(), text)
    assert path == tmp_path / "some.bin"
    assert path.read_bytes() == b"a\0b\0\xff\0\0\0"
    assert sorted(os.listdir(tmp_path)) == ["some.bin", "some.txt"]


@pytest.mark.parametrize("vocabulary, dtype", [(1 << 16, "<u2"), ((1 << 16) + 1, "<u4")])
def test_the_vocabulary_decides_the_width(tmp_path, vocabulary, dtype):
    texts = [tmp_path / "a.txt", tmp_path / "b.txt"]
    texts[0].write_text("aé", encoding="utf-8")
    texts[1].write_text("世", encoding="utf-8")
    path = encode_file(Letters(vocabulary), texts, tmp_path / "tokens.bin")
    assert numbers(path, dtype) == [ord("a"), ord("é"), 7, ord("世")]


def test_a_tokenizer_json_makes_a_token_file(tmp_path):
    tokenizer = JsonTokenizer(word_level(tmp_path / "tokenizer.json"))
    (tmp_path / "text.txt").write_text("a b c a")
    assert numbers(encode_file(tokenizer, tmp_path / "text.txt"), "<u2") == [1, 2, 5, 1]


@pytest.mark.parametrize("vocabulary", [300, 70000])
def test_a_model_is_trained_on_token_files(executable, tmp_path, vocabulary):
    (tmp_path / "text.txt").write_text("Grüße aus der Lüneburger Heide\n" * 20)
    tokens = encode_file(Letters(vocabulary), tmp_path / "text.txt")
    folder = tmp_path / "run"
    options = "--width 8 --heads 2 --layers 2 --every 2 --context 8 --batch 2 --steps 2 --threads 1"
    line = [executable, "lm", "train", "--tokens", tokens, "--vocabulary", str(vocabulary)]
    subprocess.run([*line, "--out", folder, *options.split()], check=True, capture_output=True)
    for path in (folder, folder / "model.safetensors"):
        model = LanguageModel.from_run(path)
        assert model.tokenizer is None and model.options.vocabulary == vocabulary
        sample = [executable, "lm", "sample", path, "--prompt", "71 114", "--temperature", "0"]
        done = subprocess.run([*sample, "--tokens", "9"], check=True, capture_output=True)
        expected = [*map(int, done.stdout.split())]
        assert model.generate([71, 114], 9, temperature=0) == expected
    model.tokenizer = Letters(vocabulary)
    assert model.generate("Gr", 9, temperature=0) == "".join(map(chr, expected))


def test_what_cannot_be_written_leaves_the_earlier_file(tmp_path):
    good, bad, empty = (tmp_path / name for name in ("good.txt", "bad.txt", "empty.txt"))
    good.write_text("ab")
    bad.write_bytes(b"a\xff")
    empty.touch()
    path = tmp_path / "tokens.bin"
    path.write_bytes(b"old")
    for texts, words in (
        ([good, bad], r"^cannot read .*bad\.txt: it is not UTF-8 \(byte 1\)$"),
        (empty, r"^cannot read .*empty\.txt: it is empty$"),
        (tmp_path / "none.txt", r"^cannot read .*none\.txt: No such file or directory$"),
        ([], r"^\[encode_file\] text_files: expected one or more, got none$"),
    ):
        with pytest.raises(ValueError, match=words):
            encode_file(Letters(300), texts, path)
    assert path.read_bytes() == b"old"
    with pytest.raises(
        ValueError, match=r"^cannot write .*tokens\.bin: it is a file that is read$"
    ):
        encode_file(ByteTokenizer(), path)
    with pytest.raises(OSError, match=r"^cannot write .*there is no folder"):
        encode_file(ByteTokenizer(), good, tmp_path / "no" / "tokens.bin")
    assert sorted(os.listdir(tmp_path)) == ["bad.txt", "empty.txt", "good.txt", "tokens.bin"]
