"""Runs of `nsimplex lm train` whose files somebody changed behind valid checksums."""

import json
import subprocess

import pytest
from stored_changes import BROKEN, changed_json, changed_tensors, some, sweep

from nsimplex._safetensors import Safetensors, write_safetensors
from nsimplex.nn import LanguageModel

FILES = ("model", "checkpoint")
#: Changes of a file that are read: those of `make test`, and all of them.
COUNTS = [150, pytest.param(None, marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def text(root):
    return root / "tests" / "train" / "files" / "run-0.1" / "text.txt"


@pytest.fixture(scope="module")
def run(executable, text, tmp_path_factory):
    """A run that stopped before its end."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    line = [executable, "lm", "train", "--text", text, "--out", folder, "--window", "4,8"]
    options = "--width 8 --heads 2 --layers 2 --every 2 --context 8 --batch 2 --steps 3"
    subprocess.run([*line, *options.split()], check=True, capture_output=True)
    return folder


class Changes:
    """A file of a run, and changed ones in its place.

    Attributes:
        own: its tensors and its state.
    """

    def __init__(self, source, target):
        file = Safetensors(source)
        self.path, self.metadata = target, file.metadata
        self.own = (
            {name: file.tensor(name) for name in file.names},
            json.loads(file.metadata["state"]),
        )

    def all(self, prefixes=("",)):
        """Names and changes, of the tensors whose names begin so."""
        tensors, state = self.own
        yield from ((what, (tensors, other)) for what, other in changed_json(state))
        yield from ((f"state {text[:9]!r}", (tensors, text)) for text in BROKEN)
        for what, other in changed_tensors(tensors, ["model.x", "optimizer.x", "blocks.9.x"]):
            if what.startswith((*prefixes, *(f"no {each}" for each in prefixes), "+")):
                yield what, (other, state)

    def write(self, change):
        tensors, state = change
        text = state if isinstance(state, str) else json.dumps(state)
        write_safetensors(self.path, tensors, {**self.metadata, "state": text})


def _text_of(value):
    """An option as the header of a file spells it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(":".join(map(str, window)) for window in value)
    return value if isinstance(value, str) else json.dumps(value)


def _same(text, value):
    return text == _text_of(value) or (isinstance(value, float) and float(text) == value)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("kind", FILES)
def test_a_model_is_what_its_file_says_or_refused(run, tmp_path, kind, count):
    changes = Changes(run / f"{kind}.safetensors", tmp_path / "model.safetensors")
    prefixes = ("model.", "tokenizer") if kind == "checkpoint" else ("",)

    def taken(what, change, model):
        tensors, state = change
        if not isinstance(state, dict) or not isinstance(state.get("model"), dict):
            return "read without options"
        for name, text in state["model"].items():
            if not _same(text, getattr(model.options, name)):
                return f"{name} became {getattr(model.options, name)!r}"
        prefix = "model." if kind == "checkpoint" else ""
        for name, own in model.state_dict().items():
            if not own.equal(tensors[prefix + name]) or own.dtype != tensors[prefix + name].dtype:
                return f"tensor {name} is another one"
        return None

    tried, refused = sweep(
        some(changes.all(prefixes), count),
        changes.write,
        lambda: LanguageModel.from_run(changes.path),
        changes.path,
        taken,
    )
    assert refused > tried / 4
    changes.write(changes.own)
    LanguageModel.from_run(changes.path)
