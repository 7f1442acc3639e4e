"""``python -m nsimplex.graph_command ACTION OPTIONS``, as ``nsimplex graph train`` and ``predict``
start it: OPTIONS are a JSON object, and standard output has lines of JSON."""

from __future__ import annotations

import json
import os
import sys

import torch

from .._on_ranks import join_programs
from ..nn.graph_ranks import GraphRanks, RanksLost
from ..nn.graph_training import Stopped
from .channel import STOPPED, Channel
from .predicting import predict
from .training import train

_ACTIONS = {"train": train, "predict": predict}


def main() -> int:
    """Exit code 0; 2 if the data or options cannot be used; 1 if anything else fails; 130 if the
    command was told to stop. The command shows why, in one line."""
    channel = Channel()
    request = json.loads(sys.argv[2])
    if request["threads"]:
        torch.set_num_threads(request["threads"])
    joined = False
    try:
        joined = join_programs()
        channel.writes = GraphRanks().writes
        _ACTIONS[sys.argv[1]](request, channel)
        code = 0
    except Stopped:
        code = STOPPED
    except SystemExit as ends:
        code = int(ends.code or 0)
    except RanksLost as error:
        channel.error("ranks", str(error), error.seconds)
        code = 1
    except (ValueError, TypeError, OSError) as error:
        channel.error("input", str(error))
        code = 2
    except (RuntimeError, MemoryError) as error:
        channel.error("failed", str(error).partition("\n")[0] or "out of memory")
        code = 1
    if joined:
        # The group would wait for ranks that are lost when it is destroyed.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


if __name__ == "__main__":
    sys.exit(main())
