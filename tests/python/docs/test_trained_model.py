"""The examples of docs/trained-model.md run, beside a run that the command line made."""

import re
import subprocess

import pytest

from nsimplex.nn import LanguageModel


@pytest.fixture
def page(root):
    return (root / "docs" / "trained-model.md").read_text(encoding="utf-8")


def test_the_examples_run(page, root, executable, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = root / "tests" / "train" / "files" / "run-0.1" / "text.txt"
    (tmp_path / "shakespeare.txt").write_bytes(text.read_bytes())
    on_text, on_tokens = re.findall(r"^    nsimplex (lm train .*)$", page, re.MULTILINE)
    options = "--width 16 --heads 2 --layers 2 --every 2 --context 16 --batch 2 --steps 2"

    def train(command):
        line = [executable, *command.split(), *options.split()]
        subprocess.run(line, check=True, capture_output=True)

    train(on_text)
    names = {}
    examples = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    for example in examples:
        exec(compile(example, "docs/trained-model.md", "exec"), names)
    assert len(examples) == 4
    assert capsys.readouterr().out.count("ROMEO:") >= 1
    assert [text[:5] for text in names["texts"]] == ["ROMEO", "The k"]
    assert len(names["tokens"]) == 53 and names["rows"].shape[0] == 2
    assert names["path"].stat().st_size == 2 * len(text.read_bytes())
    train(on_tokens)  # the token file that the last example wrote
    assert LanguageModel.from_run("runs/tokens").tokenizer is None
