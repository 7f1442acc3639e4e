"""Calls in processes of their own, which end when they have used a number of seconds."""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any


def _call(work: Callable[[], Any], limit: int, pipe: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    begin = time.process_time()
    try:
        answer = work()
        pipe.send({"answer": answer, "seconds": time.process_time() - begin})
    except Exception as error:
        pipe.send({"failed": f"{type(error).__name__}: {error}"[:200]})


def limited(work: Callable[[], Any], limit: int) -> dict[str, Any]:
    """`answer` and `seconds` of processor time of a call in a fork of this process, in which all
    packages are loaded; or `failed`, the error; or `limit`, if the call did not end before."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_call, args=(work, limit, theirs))
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        return {"limit": limit}
    finally:
        process.join()
