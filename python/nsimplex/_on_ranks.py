"""``python -m nsimplex.lm ..`` and ``python -m nsimplex.graph ..``: the command line in a Python
process, on the ranks of torchrun if that has started it."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import datetime
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import torch
import torch.distributed as dist

from ._joining import agree_on_name
from ._library import PREFIX
from ._printable import end_process

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

_DEFAULT_TIMEOUT = 600.0
#: How long ranks wait for others to start, at least. Processes that load the libraries on a busy
#: machine may be much further apart than ranks that train.
_START_TIMEOUT = 180.0
#: How long ranks may take to end after one of them has failed.
_LAST_SECONDS = 10.0
#: Tells programs that the command line starts: a name for their own group, and its timeout.
_PROGRAMS = "NSIMPLEX_RANKS"


def run_command(command: str, words: list[str]) -> int:
    """Runs ``nsimplex COMMAND`` with these arguments and returns the exit code: 0, 1 (the run
    failed), 2 (bad usage or input) or 130 (interrupted).

    If the environment has torchrun's ``RANK``, the process joins the group of all ranks, with Gloo
    on CPUs and NCCL on GPUs. An option before the command, ``--rank-timeout SECONDS`` (600), says
    how long ranks wait for each other. At the start they wait three minutes at least.
    """
    parser = argparse.ArgumentParser(prog=f"nsimplex.{command}", add_help=False, allow_abbrev=False)
    parser.add_argument("--rank-timeout", type=float, default=_DEFAULT_TIMEOUT)
    count = 2 if words[:1] == ["--rank-timeout"] else 0
    known = parser.parse_args(words[:count])
    if not 0 < known.rank_timeout < float("inf"):
        return _fail(f"--rank-timeout: expected a positive number, got {known.rank_timeout}")
    os.environ.pop(_PROGRAMS, None)
    words = ["nsimplex", command, *words[count:]]
    if "RANK" not in os.environ:
        return _run("", words)
    try:
        group, store = _join(known.rank_timeout)
    except (RuntimeError, ValueError) as error:
        return _fail(f"cannot join the other ranks: {str(error).splitlines()[0]}")
    code = _run(group, words)
    if code == 1:
        _end_ranks(store)
    return code


def main(command: str) -> NoReturn:
    """Runs the command with the arguments of this process and ends the process."""
    code = run_command(command, sys.argv[1:])
    # Not sys.exit: a group whose ranks are lost would wait for them when it is destroyed.
    end_process(code)


def join_programs() -> bool:
    """In a program that the command line has started on several ranks: joins those of the other
    ranks. Otherwise it does nothing and returns false."""
    name, _, seconds = os.environ.get(_PROGRAMS, "").partition(" ")
    if not name:
        return False
    from torch._C._distributed_c10d import PrefixStore, TCPStore  # not in every build of torch

    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    start, timeout = _timeouts(float(seconds))
    store = PrefixStore(name, TCPStore(address, port, is_master=False, timeout=start))
    agree_on_name(store, rank, ranks, start.total_seconds())  # all have started
    dist.init_process_group(_backend(), store=store, rank=rank, world_size=ranks, timeout=timeout)
    return True


def _backend() -> str:
    """Gloo for tensors on the CPU and NCCL for those on GPUs. This process takes the GPU with its
    local rank."""
    if not torch.cuda.is_available():
        return "gloo"
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if local < torch.cuda.device_count():  # ranks on the CPU may be more than the GPUs
        torch.cuda.set_device(local)
    return "cpu:gloo,cuda:nccl"


def _timeouts(seconds: float) -> tuple[datetime.timedelta, datetime.timedelta]:
    """How long to wait for ranks that start, and for their messages."""
    return (
        datetime.timedelta(seconds=max(seconds, _START_TIMEOUT)),
        datetime.timedelta(seconds=seconds),
    )


def _join(seconds: float) -> tuple[str, Store]:
    """Joins the other ranks and returns the name of the group of all, and its store."""
    from torch._C._distributed_c10d import PrefixStore  # not in every build of torch
    from torch.distributed.distributed_c10d import _get_default_group
    from torch.distributed.rendezvous import rendezvous

    start, timeout = _timeouts(seconds)
    store, rank, ranks = next(rendezvous("env://", timeout=start))
    name = agree_on_name(store, rank, ranks, start.total_seconds())
    group_store = PrefixStore(f"nsimplex/{name}/command", store)
    dist.init_process_group(
        _backend(), store=group_store, rank=rank, world_size=ranks, timeout=timeout
    )
    if ranks > 1:
        os.environ[_PROGRAMS] = f"nsimplex/{name}/program {seconds}"
    group_store.set(f"process/{rank}", " ".join(_identity(os.getpid())[:-1]))
    # All are connected before one may end, whose connections would fail for the others.
    group_store.wait([f"process/{each}" for each in range(ranks)], start)
    return _get_default_group().group_name, group_store


def _identity(process: int | str) -> tuple[str, str, str, str]:
    """What tells a process from all others on all hosts (boot, number, start), and its state."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return boot, str(process), fields[19], fields[0]


def _end_ranks(store: Store) -> None:
    """Kills the other ranks on this host: those that somebody has stopped, as by SIGSTOP, at once,
    and those that are still there ten seconds later. They hang, because this rank has ended and
    none can go on without it; torchrun would wait for them for half a minute."""
    others = []
    for rank in range(int(os.environ["WORLD_SIZE"])):
        with contextlib.suppress(RuntimeError):  # the store is gone
            if store.check([f"process/{rank}"]):
                others.append(store.get(f"process/{rank}").decode().split())
    others = [known for known in others if int(known[1]) != os.getpid()]
    _kill([known for known in others if _state(known) == "T"])
    if not any(map(_state, others)) or os.fork():
        return
    # A process of its own, without the connections: the others notice that these have ended.
    os.setsid()
    os.closerange(0, os.sysconf("SC_OPEN_MAX"))
    end = time.monotonic() + _LAST_SECONDS
    while any(map(_state, others)) and time.monotonic() < end:
        time.sleep(0.1)
    _kill([known for known in others if _state(known)])
    os._exit(0)


def _state(known: list[str]) -> str:
    """The state of a process, a letter; "" if it has ended or is on another host."""
    with contextlib.suppress(OSError):
        *found, state = _identity(known[1])
        if found == known and state != "Z":
            return state
    return ""


def _kill(processes: list[list[str]]) -> None:
    for known in processes:
        with contextlib.suppress(OSError):
            os.kill(int(known[1]), signal.SIGKILL)


def _run(group: str, words: list[str]) -> int:
    library = PREFIX / "lib" / "nsimplex_ranks.so"
    if not library.exists():
        return _fail(f"no command line at {library}; build it with: make build")
    os.environ.setdefault("NSIMPLEX_PYTHON", sys.executable)
    run = ctypes.CDLL(str(library)).nsimplex_run
    run.restype = ctypes.c_int
    pointers = (ctypes.c_char_p * (len(words) + 1))(*map(os.fsencode, words), None)
    return run(os.fsencode(group), len(words), pointers)


def _fail(message: str) -> int:
    print(f"nsimplex: {message}", file=sys.stderr)
    return 2
