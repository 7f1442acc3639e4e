"""``python -m nsimplex.lm train ..`` is ``nsimplex lm train ..``; under ``torchrun``, all ranks
train one model.

    torchrun --nproc-per-node 4 -m nsimplex.lm train --text shakespeare.txt --out runs/first
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _get_default_group

from ._library import PREFIX

__all__ = ["main"]

_DEFAULT_TIMEOUT = 600.0


def main(arguments: list[str] | None = None) -> int:
    """Runs ``nsimplex lm`` with these arguments, by default those of this process, and returns the
    exit code: 0, 1 (the run failed), 2 (bad usage or input) or 130 (interrupted).

    If the environment has torchrun's ``RANK``, the process joins the group of all ranks, with Gloo
    on CPUs and NCCL on GPUs. An option before the command, ``--rank-timeout SECONDS`` (600), says
    how long ranks wait for each other.
    """
    words = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(prog="nsimplex.lm", add_help=False, allow_abbrev=False)
    parser.add_argument("--rank-timeout", type=float, default=_DEFAULT_TIMEOUT)
    count = 2 if words[:1] == ["--rank-timeout"] else 0
    known = parser.parse_args(words[:count])
    if not 0 < known.rank_timeout < float("inf"):
        return _fail(f"--rank-timeout: expected a positive number, got {known.rank_timeout}")
    group = ""
    if "RANK" in os.environ:
        try:
            group = _join(known.rank_timeout)
        except (RuntimeError, ValueError) as error:
            return _fail(f"cannot join the other ranks: {str(error).splitlines()[0]}")
    return _run(group, ["nsimplex", "lm", *words[count:]])


def _join(seconds: float) -> str:
    """Joins the other ranks and returns the name of the group of all."""
    backend = "gloo"
    if torch.cuda.is_available():
        backend = "cpu:gloo,cuda:nccl"
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group(backend, timeout=datetime.timedelta(seconds=seconds))
    return _get_default_group().group_name


def _run(group: str, words: list[str]) -> int:
    library = PREFIX / "lib" / "libnsimplex_cli.so"
    if not library.exists():
        return _fail(f"no command line at {library}; build it with: make build")
    run = ctypes.CDLL(str(library)).nsimplex_run
    run.restype = ctypes.c_int
    pointers = (ctypes.c_char_p * (len(words) + 1))(*map(os.fsencode, words), None)
    return run(os.fsencode(group), len(words), pointers)


def _fail(message: str) -> int:
    print(f"nsimplex: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    code = main()
    # Not sys.exit: a group whose ranks are lost would wait for them when it is destroyed.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
