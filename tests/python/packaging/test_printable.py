"""Names from files in what commands written in Python say."""

import os
import subprocess
import sys

import pytest

from nsimplex import _printable
from nsimplex._csv_text import read_rows
from nsimplex._printable import exit_code, printable


def test_letters_of_every_script_stay():
    for text in ["", "plain \\n", "naïve ген 中", "न्\u200dन", "😀", "\xa0"]:
        assert printable(text) == text


def test_what_acts_on_a_terminal_is_escaped():
    assert (
        printable("\x1b]0;x\a\n\x9b\u202e\u2028\udc80")
        == "\\x1b]0;x\\x07\\n\\x9b\\u202e\\u2028\\udc80"
    )
    assert printable(printable("\x1b")) == "\\x1b"


def test_columns_in_messages_are_printable(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('"a\x1b[2J\nb",c\n1,2\n', newline="")
    with pytest.raises(ValueError, match="expected a column 'smiles', got ") as error:
        list(read_rows(path, ("smiles",)))
    assert str(error.value).endswith("got a\\x1b[2J\\nb, c")


def test_a_command_that_cannot_use_its_input_says_so_in_one_line(capsys):
    def fails():
        raise ValueError("cannot read a\nb")

    assert exit_code(lambda: None) == 0 and capsys.readouterr().err == ""
    assert exit_code(fails) == 2
    assert capsys.readouterr().err == "nsimplex: cannot read a\\nb\n"
    with pytest.raises(RuntimeError):
        exit_code(lambda: (_ for _ in ()).throw(RuntimeError("ours")))


def test_ctrl_c_ends_a_command_without_a_traceback(capsys):
    def stops():
        raise KeyboardInterrupt

    assert exit_code(stops, "molecules") == 130
    assert capsys.readouterr().err == "molecules: stopped\n"


@pytest.mark.parametrize("lines", [1, 100_000])
def test_a_reader_that_closes_the_pipe_ends_a_command_in_silence(lines, subprocess_env):
    code = (
        "import sys; from nsimplex._printable import exit_code;"
        f"sys.exit(exit_code(lambda: [print('a line') for _ in range({lines})]))"
    )
    reader, writer = os.pipe()
    os.close(reader)
    call = [sys.executable, "-c", code]
    done = subprocess.run(call, stdout=writer, stderr=subprocess.PIPE, env=subprocess_env)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")


FULL = "nsimplex: cannot write to standard output: No space left on device\n"
CLOSED = "nsimplex: cannot write to standard output: Bad file descriptor\n"


@pytest.mark.parametrize("action", ["print('a line')", "print('a line' * 100_000)", "help()"])
def test_output_that_cannot_be_written_is_said_once(action):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    code = (
        "import argparse, sys; from _printable import exit_code;"
        "help = lambda: argparse.ArgumentParser().parse_args(['--help']);"
        f"sys.exit(exit_code(lambda: {action}))"
    )
    # The module alone, since the package takes seconds to load.
    alone = {**os.environ, "PYTHONPATH": os.path.dirname(_printable.__file__)}
    for stream, said in ((">/dev/full", FULL), (">&-", CLOSED)):
        line = f'"{sys.executable}" -c "{code}" {stream}'
        done = subprocess.run(line, shell=True, capture_output=True, text=True, env=alone)
        assert (done.returncode, done.stderr) == (1, said)
        silent = subprocess.run(f"{line} 2>/dev/full", shell=True, env=alone)
        assert silent.returncode == 1


def test_commands_of_python_say_that_the_disk_is_full(subprocess_env):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    commands = ("nsimplex.lm --help", "nsimplex.report --help")
    with open("/dev/full", "wb") as full:
        running = [
            subprocess.Popen(
                [sys.executable, "-m", *command.split()],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                env=subprocess_env,
            )
            for command in commands
        ]
    for command, process in zip(commands, running, strict=True):
        said = process.communicate()[1]
        assert process.returncode == 1 and said.endswith(FULL.partition(" ")[2]), (command, said)
        assert len(said.splitlines()) == 1, said
