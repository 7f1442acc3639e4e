"""``python -m nsimplex.graph_command ACTION OPTIONS``, as ``nsimplex graph train`` and ``predict``
start it: OPTIONS are a JSON object, and standard output has lines of JSON."""

from __future__ import annotations

import sys
from typing import Any

from .._command_channel import Channel, serve
from .._on_ranks import join_programs
from .._printable import end_process
from ..nn.graph_ranks import GraphRanks, RanksLost
from .comparing import train_all
from .predicting import predict

_ACTIONS = {"train": train_all, "predict": predict}


def main() -> int:
    """Runs the action on this rank, or in the only process, and returns the exit code of
    :func:`serve`."""
    joined = False

    def action(request: dict[str, Any], channel: Channel) -> None:
        nonlocal joined
        joined = join_programs()
        channel.writes = GraphRanks().writes
        try:
            _ACTIONS[sys.argv[1]](request, channel)
        except RanksLost as error:
            channel.error("ranks", str(error), error.seconds)
            raise SystemExit(1) from None

    try:
        code = serve(action, sys.argv[2])
    except SystemExit as ends:
        code = int(ends.code or 0)
    if joined:
        # The group would wait for ranks that are lost when it is destroyed.
        end_process(code)
    return code


if __name__ == "__main__":
    sys.exit(main())
