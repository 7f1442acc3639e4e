"""Programs that a command of ``nsimplex`` starts: lines of JSON to the command, and its answers."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import torch

from ._printable import output_failed
from .nn.graph_training import Stopped

STOPPED = 130  # the exit code of a command that was told to stop


class Channel:
    """What the command shows and keeps. Numbers that are not finite become null."""

    writes = True  #: false on ranks that report nothing but errors

    def __init__(self) -> None:
        self._out, self._stops, self._training = sys.stdout, False, False
        sys.stdout = sys.stderr  # libraries must not print into the channel
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

    def text(self, text: str) -> None:
        """Text for a terminal."""
        self._send(text=text)

    def file(self, name: str, text: str) -> None:
        """The whole text of a file that the command writes under the name of one of its options."""
        self._send(file=[name, text])

    def given(self) -> Any:
        """What the command read for this program."""
        return json.loads(self._ask(given=True))

    def error(self, kind: str, text: str, seconds: float = 0.0) -> None:
        """Why the program ends: wrong "input", something that "failed", or lost "ranks"."""
        self._print(error={"kind": kind, "text": text, "seconds": seconds})

    def _send(self, **message: Any) -> None:
        if self.writes:
            self._print(**message)

    def _print(self, **message: Any) -> None:
        try:
            print(json.dumps(message), file=self._out, flush=True)
        except OSError as error:
            raise SystemExit(output_failed(self._out, error)) from None

    def _ask(self, **message: Any) -> str:
        self._send(**message)
        if not self.writes:
            return ""
        answer = sys.stdin.readline()
        if not answer:
            _end()
        return answer


def _end() -> NoReturn:
    raise SystemExit(1)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and value - value != 0 else value


def serve(action: Callable[[dict[str, Any], Channel], None], request: str) -> int:
    """Runs an action with the options of the command, a JSON object.

    Returns:
        Exit code 0; 2 if the data or options cannot be used; 1 if anything else fails; 130 if the
        command was told to stop. The command shows why, in one line.
    """
    channel = Channel()
    options = json.loads(request)
    if options["threads"]:
        torch.set_num_threads(options["threads"])
    try:
        action(options, channel)
    except Stopped:
        return STOPPED
    except (ValueError, TypeError, OSError) as error:
        channel.error("input", str(error))
        return 2
    except (RuntimeError, MemoryError) as error:
        channel.error("failed", str(error).partition("\n")[0] or "out of memory")
        return 1
    return 0
