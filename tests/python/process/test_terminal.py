"""What reaches a terminal is text, whatever a model says; files and pipes get every byte."""

import os
import pty
import subprocess
import threading
import unicodedata

import pytest

PROMPT = "red \x1b[31m\x07\tname\nsecond\r \x1b]0;title\x07 \u202e \xe9 end"


def on_a_terminal(line):
    """What a command writes to a terminal."""
    try:
        ours, theirs = pty.openpty()
    except OSError as error:
        pytest.skip(f"no terminal can be opened here: {error}")
    shown = []

    def read():
        try:
            while part := os.read(ours, 1 << 16):
                shown.append(part)
        except OSError:  # the other end is closed
            pass

    reader = threading.Thread(target=read)
    reader.start()
    try:
        subprocess.run(line, stdout=theirs, stderr=subprocess.PIPE, check=True, timeout=120)
    finally:
        os.close(theirs)
        reader.join()
        os.close(ours)
    return b"".join(shown).replace(b"\r\n", b"\n").decode()


def test_a_sample_is_quoted_on_a_terminal_alone(executable, inputs):
    line = [
        executable,
        "lm",
        "sample",
        inputs["MODEL"],
        "--prompt",
        PROMPT,
        "--tokens",
        "0",
        "--threads",
        "1",
    ]
    piped = subprocess.run(line, capture_output=True, check=True).stdout.decode()
    assert piped == PROMPT + "\n"
    shown = on_a_terminal(line)
    assert shown == "red \\x1b[31m\\x07\tname\nsecond\\r \\x1b]0;title\\x07 \\u202e \xe9 end\n"


def test_what_a_model_draws_is_quoted_on_a_terminal_alone(executable, inputs):
    """A model of bytes that has hardly learned says bytes of every kind."""
    line = [
        executable,
        "lm",
        "sample",
        inputs["MODEL"],
        "--tokens",
        "300",
        "--seed",
        "3",
        "--threads",
        "1",
    ]
    assert any(
        byte < 0x20 and byte not in b"\t\n"
        for byte in subprocess.run(line, capture_output=True, check=True).stdout
    )
    assert all(
        each in "\t\n" or unicodedata.category(each) not in ("Cc", "Cf")
        for each in on_a_terminal(line)
    )
