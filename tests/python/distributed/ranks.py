"""Functions that run on several ranks: processes of this machine with a Gloo group."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import traceback
from multiprocessing import forkserver
from unittest import mock

_TIMEOUT = 120  # seconds until a rank that hangs fails its test

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["torch", "nsimplex", "nsimplex.distributed"])


def _main(rank, ranks, store, function, arguments, results):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    try:
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
        results.put((rank, None, function(rank, ranks, *arguments)))
        dist.barrier()
        dist.destroy_process_group()
    except BaseException:
        results.put((rank, traceback.format_exc(), None))


def start_server():
    """Starts the process that forks the ranks; it imports the package that the tests import."""
    with mock.patch.dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)):
        forkserver.ensure_running()


def run_on_ranks(ranks, function, *arguments):
    """The results of ``function(rank, ranks, *arguments)`` by rank. A rank that fails makes the
    call fail with its traceback."""
    start_server()
    results = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        processes = [
            context.Process(
                target=_main, args=(rank, ranks, store, function, arguments, results), daemon=True
            )
            for rank in range(ranks)
        ]
        for process in processes:
            process.start()
        found = {}
        try:
            while len(found) < ranks:
                rank, failure, result = results.get(timeout=_TIMEOUT)
                assert failure is None, f"rank {rank} of {ranks}:\n{failure}"
                found[rank] = result
            for process in processes:
                process.join(_TIMEOUT)
        finally:
            for process in processes:
                process.kill()
    return [found[rank] for rank in range(ranks)]
