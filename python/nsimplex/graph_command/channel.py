"""Lines of JSON to the command that started this program, and its answers."""

from __future__ import annotations

import json
import signal
import sys
from typing import Any, NoReturn

STOPPED = 130  # the exit code of a command that was told to stop


class Channel:
    """What the command shows and keeps. Numbers that are not finite become null."""

    writes = True  #: false on ranks that report nothing but errors

    def __init__(self) -> None:
        self._out, self._stops, self._training = sys.stdout, False, False
        sys.stdout = sys.stderr  # what a library prints is no line of ours
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, number: int, frame: Any) -> None:
        self._stops = True
        if not self._training:
            raise SystemExit(STOPPED)

    def stops(self) -> bool:
        """Whether the command asks to end."""
        return self._stops

    def begin(self) -> None:
        """Returns when the run folder is there. From here on a signal waits for :meth:`stops`."""
        self._ask(begin=True)
        self._training = True

    def line(self, kind: str, /, **fields: Any) -> None:
        """A line of metrics.jsonl."""
        self._send(log={"kind": kind, **{name: _finite(own) for name, own in fields.items()}})

    def sync(self) -> None:
        """Returns when all lines before are on the disk."""
        self._ask(sync=True)

    def progress(self, done: int, total: int, detail: str) -> None:
        self._send(progress=[done, total, detail])

    def warning(self, text: str) -> None:
        self._send(warning=text)

    def table(self, rows: list[list[str]]) -> None:
        """A table, its header first."""
        self._send(table=rows)

    def error(self, kind: str, text: str, seconds: float = 0.0) -> None:
        """Why the program ends: wrong "input", something that "failed", or lost "ranks"."""
        self._print(error={"kind": kind, "text": text, "seconds": seconds})

    def _send(self, **message: Any) -> None:
        if self.writes:
            self._print(**message)

    def _print(self, **message: Any) -> None:
        print(json.dumps(message), file=self._out, flush=True)

    def _ask(self, **message: Any) -> None:
        self._send(**message)
        if self.writes and not sys.stdin.readline():
            _end()


def _end() -> NoReturn:
    raise SystemExit(1)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and value - value != 0 else value
