"""How the ranks of one attempt find each other on a store that earlier attempts have used.

torchrun keeps its store when it restarts the ranks. A group that is made on this store alone may
then read the address of a rank that no longer runs. Here every process draws its own word,
and the ranks agree on a name that only they know.
"""

from __future__ import annotations

import json
import secrets
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

_PAUSE = 0.02  # seconds between two looks at the store
_FOLDER = "nsimplex/join"


def agree_on_name(store: Store, rank: int, ranks: int, seconds: float) -> str:
    """A name that is the same on all ranks and that no earlier process has seen.

    Rank 0 collects one word per rank and publishes them with a new name. A rank accepts a name only
    beside its own word, so it takes none that was meant for an earlier process. Rank 0 starts again
    if a word changes, because the first one was an earlier process's. Once all ranks have
    accepted, it says so, and nothing changes any more.

    Args:
        store: the store of all ranks, which may hold what earlier processes have written.
        rank, ranks: number of this rank, and of all.
        seconds: how long to wait for the others.

    Raises:
        RuntimeError: another rank did not answer in time.
    """
    deadline = time.monotonic() + seconds
    return _lead(store, ranks, deadline) if rank == 0 else _follow(store, rank, deadline)


def _lead(store: Store, ranks: int, deadline: float) -> str:
    name = ""
    words: dict[int, str | None] = {}
    while True:
        present = {rank: _read(store, f"word/{rank}") for rank in range(1, ranks)}
        if None not in present.values():
            if not name or present != words:
                name, words = secrets.token_hex(8), present
                _write(store, "offer", json.dumps([name, *words.values()]))
            accepted = [_read(store, f"{name}/{rank}") for rank in words]
            if None not in accepted:
                _write(store, f"{name}/agreed", "1")
                return name
        missing = [rank for rank, word in present.items() if word is None]
        _wait(deadline, f"rank {missing[0]}" if missing else "a rank")


def _follow(store: Store, rank: int, deadline: float) -> str:
    word = secrets.token_hex(8)
    _write(store, f"word/{rank}", word)
    accepted = ""
    while True:
        name, *words = json.loads(_read(store, "offer") or '[""]')
        if words[rank - 1 : rank] == [word]:
            if name != accepted:
                _write(store, f"{name}/{rank}", "1")
                accepted = name
            if _read(store, f"{name}/agreed"):
                return name
        _wait(deadline, "rank 0")


def _wait(deadline: float, missing: str) -> None:
    if time.monotonic() > deadline:
        raise RuntimeError(f"{missing} did not start in time")
    time.sleep(_PAUSE)


def _read(store: Store, key: str) -> str | None:
    full = f"{_FOLDER}/{key}"
    return store.get(full).decode() if store.check([full]) else None


def _write(store: Store, key: str, value: str) -> None:
    store.set(f"{_FOLDER}/{key}", value)
