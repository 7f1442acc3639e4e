"""``--log`` of a command that trains: a process that follows metrics.jsonl of the run.

The command starts it before the training, waits for one line of its standard output, and tells it
on its standard input when metrics.jsonl is there. It ends when its standard input does.
"""

from __future__ import annotations

import json
import select
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ._printable import printable
from ._run_writers import writer_names
from .nn.training_log import TrainingLog

_PERIOD = 1.0  # seconds between two looks at the file


def main() -> int:
    """``FOLDER WRITERS RESUMED``: the run folder, the names between commas, and whether the run
    continues."""
    folder, names, resumed = sys.argv[1:4]
    writers: list[Any] = names.split(",")
    out, sys.stdout = sys.stdout, sys.stderr  # what a writer prints is no line of ours
    try:
        writer_names("--log", writers)
    except (ValueError, ModuleNotFoundError) as error:
        print(json.dumps({"error": {"kind": "input", "text": str(error)}}), file=out, flush=True)
        return 2
    print(json.dumps({"ready": True}), file=out, flush=True)
    if not sys.stdin.readline():
        return 0  # the run did not begin
    warnings.showwarning = _show
    with TrainingLog(folder, writers, resume=resumed == "yes") as log:
        for record in _records(Path(folder) / "metrics.jsonl"):
            log.write(record)
    return 0


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of the file that are there and that are added, until standard input ends."""
    with open(path, encoding="utf-8", errors="replace") as file:
        text, ended = "", False
        while not ended:
            ended = bool(select.select([sys.stdin], [], [], _PERIOD)[0])
            text += file.read()
            *lines, text = text.split("\n")
            for line in lines:
                record = json.loads(line)
                if isinstance(record, dict):
                    yield record


def _show(message: Warning | str, *_: Any, **__: Any) -> None:
    said = str(message).removeprefix("[TrainingLog] ")
    print(f"nsimplex: warning: --log: {printable(said)}", file=sys.stderr, flush=True)
