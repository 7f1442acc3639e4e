"""``python -m nsimplex.lm train ..`` is ``nsimplex lm train ..``; under ``torchrun``, all ranks
train one model.

    torchrun --nproc-per-node 4 -m nsimplex.lm train --text shakespeare.txt --out runs/first
"""

from __future__ import annotations

import sys

from . import _on_ranks

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Runs ``nsimplex lm`` with these arguments, by default those of this process, and returns the
    exit code: 0, 1 (the run failed), 2 (bad usage or input) or 130 (interrupted).

    If the environment has torchrun's ``RANK``, the process joins the group of all ranks, with Gloo
    on CPUs and NCCL on GPUs. An option before the command, ``--rank-timeout SECONDS`` (600), says
    how long ranks wait for each other.
    """
    return _on_ranks.run_command("lm", sys.argv[1:] if arguments is None else arguments)


if __name__ == "__main__":
    _on_ranks.main("lm")
