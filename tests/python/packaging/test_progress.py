"""The progress of a long call: where it is shown, and how."""

import io
import sys
import time
from contextlib import redirect_stderr

import pytest

from nsimplex import _progress
from nsimplex._progress import Progress, progress_calls


class Stream(io.StringIO):
    terminal = False

    def isatty(self):
        return self.terminal


@pytest.fixture
def error():
    return Stream()


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test moves."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def counted(clock, error, shown, seconds=1.0, steps=25):
    with redirect_stderr(error), Progress("work", shown) as bar:
        for done in range(1, steps + 1):
            clock[0] += seconds
            bar.update(done, steps, f"loss {done}")


def test_a_pipe_gets_lines_only_if_they_are_asked_for(error, clock):
    counted(clock, error, None)
    counted(clock, error, False)
    assert error.getvalue() == ""
    counted(clock, error, True)
    shown = error.getvalue().splitlines()
    assert shown == [f"work {n}/25  loss {n}" for n in (1, 11, 21, 25)]


def test_a_terminal_without_tqdm_gets_lines_unless_the_call_is_short(error, clock, monkeypatch):
    error.terminal = True
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    counted(clock, error, None, seconds=0.03)
    assert error.getvalue() == ""
    counted(clock, error, None)
    assert error.getvalue().splitlines()[0] == "work 1/25  loss 1"


def test_a_terminal_gets_a_bar_of_tqdm(error, monkeypatch):
    pytest.importorskip("tqdm")
    error.terminal = True
    monkeypatch.setattr(_progress, "_DELAY", 0.0)
    with redirect_stderr(error), Progress("work", True) as bar:
        bar.update(3, 4, "loss 1")
        bar.update(1, 50)  # of another phase
        bar.update(50, 50)
    assert "work" in error.getvalue() and "50/50" in error.getvalue()


def test_a_function_gets_the_calls_itself(error):
    seen = []
    with progress_calls("work", lambda *steps: seen.append(steps)) as told:
        told(1, 2)
    with redirect_stderr(error), progress_calls("work", False) as told:
        assert told is None
    assert seen == [(1, 2)] and error.getvalue() == ""
