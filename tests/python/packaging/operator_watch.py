"""Watches processes that make calls of operator_mutations:  python operator_watch.py SEED FIRST
LAST

Calls that end their process, or take too long, are printed with the lines that it takes and a
command that repeats them.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import operator_mutations

_FUZZ = Path(__file__).with_name("operator_fuzz.py")
#: Seconds that a call may work; it may take some times as many, on a machine that has other things
#: to do. Before the first call there is an import.
_CALL, _BUSY, _START = 6.0, 10, 120.0
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Lost:
    """A call that did not come back."""

    seed: int
    number: int
    how: str  #: "signal 11", or "no answer"

    @property
    def is_huge_work(self) -> bool:
        """Whether it is still at work on a view of a length that nobody waits for."""
        lines = operator_mutations.case(self.seed, self.number)[1]
        return self.how == "no answer" and any(
            operator_mutations.is_endless(line) for line in lines
        )

    def __str__(self) -> str:
        name, lines = operator_mutations.case(self.seed, self.number)
        command = f"python {_FUZZ.name} {self.seed} {self.number}"
        return f"{self.how}: nsimplex::{name} after {'; '.join(lines)}\n    {command}"


def _worked(process: subprocess.Popen) -> float:
    """Seconds of processor time so far."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _lines(process: subprocess.Popen, seconds: float) -> Iterator[str]:
    """Lines as they come, until there are no more or the next one takes too long."""
    data, work, limit = b"", _START, time.monotonic() + _START
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while time.monotonic() < limit and _worked(process) < work:
            if not selector.select(0.2):
                continue
            part = os.read(process.stdout.fileno(), 65536)
            if not part:
                return
            *whole, data = (data + part).split(b"\n")
            yield from (line.decode() for line in whole)
            work, limit = _worked(process) + seconds, time.monotonic() + _BUSY * seconds


def _run(seed: int, first: int, last: int, seconds: float) -> tuple[int, str]:
    """The number of the last call that was begun, and how it was lost: "" where all calls came
    back."""
    command = [sys.executable, _FUZZ, *map(str, (seed, first, last))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    number, done = first, False
    try:
        for line in _lines(process, seconds):
            word = line.split(" ")[0]
            number, done = (int(word), False) if word.isdigit() else (number, line == "done")
        if done:
            return number, ""
        code = process.wait(1)
        return number, f"signal {-code}" if code < 0 else f"exit code {code}"
    except subprocess.TimeoutExpired:
        return number, "no answer"
    finally:
        process.kill()
        process.wait()


def lost_calls(seed: int, first: int, last: int, seconds: float = _CALL) -> Iterator[Lost]:
    """Calls ``first`` to ``last`` that did not come back, each after its own process is given
    up."""
    while first < last:
        number, how = _run(seed, first, last, seconds)
        if not how:
            return
        yield Lost(seed, number, how)
        first = number + 1


if __name__ == "__main__":
    for lost in lost_calls(*map(int, sys.argv[1:4])):
        print(lost, flush=True)
