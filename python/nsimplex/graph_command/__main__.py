"""``python -m nsimplex.graph_command ACTION OPTIONS``, as ``nsimplex graph train`` and ``predict``
start it: OPTIONS are a JSON object, and standard output has lines of JSON."""

from __future__ import annotations

import json
import sys

import torch

from .._printable import printable
from ..nn.graph_training import Stopped
from .channel import STOPPED, Channel
from .predicting import predict
from .training import train

_ACTIONS = {"train": train, "predict": predict}


def main() -> int:
    """Exit code 0; 2 with one line if the data or options cannot be used; 1 with one line if
    anything else fails; 130 if the command was told to stop."""
    channel = Channel()
    request = json.loads(sys.argv[2])
    if request["threads"]:
        torch.set_num_threads(request["threads"])
    try:
        _ACTIONS[sys.argv[1]](request, channel)
    except Stopped:
        return STOPPED
    except (ValueError, TypeError, OSError) as error:
        print(f"nsimplex: {printable(error)}", file=sys.stderr)
        return 2
    except (RuntimeError, MemoryError) as error:
        reason = str(error).partition("\n")[0] or "out of memory"
        print(f"nsimplex: {printable(reason)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
