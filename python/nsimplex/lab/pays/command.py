"""The program of ``nsimplex lab pays``: ``python -m nsimplex.lab.pays`` in lines of JSON."""

from __future__ import annotations

import os
import sys
from typing import Any

from ..._command_channel import Channel, serve
from .__main__ import run


def compare(request: dict[str, Any], channel: Channel) -> None:
    """Runs the benchmark with the words of the command.

    Raises:
        ValueError: options that cannot be used.
    """
    sys.path.append(os.getcwd())  # the interpreter is isolated, and --layer may be a module here

    def result(line: dict[str, Any]) -> None:
        channel.line(line["kind"], **{name: own for name, own in line.items() if name != "kind"})

    run(request["words"], channel.text, result)


def main() -> int:
    """Runs the program with the options of the command and returns its exit code."""
    return serve(compare, sys.argv[1])


if __name__ == "__main__":
    sys.exit(main())
