"""Every command does what its transcript in tests/transcripts says."""

import difflib
from pathlib import Path

import pytest
from commands import all_commands
from transcripts import FOLDER, Commands, blocks_of, lines_of

BLOCKS = [
    pytest.param(
        path.stem,
        block,
        id=" ".join(lines_of(block)[0].split()[:3]),
        marks=[pytest.mark.slow] * block.startswith("# slow"),
    )
    for path in sorted(FOLDER.glob("*.txt"))
    for block in blocks_of(path.read_text(encoding="utf-8"))
]


@pytest.fixture(scope="module")
def commands(executable):
    if not executable.with_name("nsimplex-lab").exists():
        pytest.skip("no laboratory in this build")
    return Commands(executable.parent)


@pytest.mark.parametrize("name, block", BLOCKS)
def test_a_command_does_what_its_transcript_says(commands, inputs, name, block):
    now = commands.recorded_now(block, Path(inputs["TEXT"]).parent)
    changes = difflib.unified_diff(
        block.splitlines(), now.splitlines(), "recorded", "now", n=8, lineterm=""
    )
    if text := "\n".join(changes):
        tool = "python tests/python/process/transcripts.py"
        pytest.fail(f"{text}\nif this is meant: {tool} {name}", pytrace=False)


def test_every_command_has_a_help_an_error_and_a_run(executable):
    text = "\n".join(block for _, block in (param.values for param in BLOCKS))
    entries = [entry.split("\n", 2) for entry in ("\n" + text).split("\n$ ")]
    for name in all_commands(executable):
        own = [
            each
            for each in entries
            if f"{each[0]} ".replace("-lab", " lab", 1).startswith(f"nsimplex {name} ")
        ]
        assert any("--help" in each[0] for each in own), name
        assert any("  exit 2" in each for each in own), name
        assert any("  exit" not in each[1] and "--help" not in each[0] for each in own), name
