"""Ranks that find each other on a store with the words of earlier ranks."""

from __future__ import annotations

import threading
import time

import pytest

dist = pytest.importorskip("torch.distributed")
if not dist.is_available():
    pytest.skip("this torch has no distributed package", allow_module_level=True)

from nsimplex._joining import agree_on_name


def names_on(store, ranks, pauses=(), absent=(), seconds=20.0):
    """What each rank, in a thread, gets: a name or the text of an error."""
    found = {}

    def one(rank):
        time.sleep(dict(pauses).get(rank, 0))
        try:
            found[rank] = agree_on_name(store, rank, ranks, seconds)
        except RuntimeError as error:
            found[rank] = str(error)

    threads = [
        threading.Thread(target=one, args=(rank,)) for rank in range(ranks) if rank not in absent
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_all_ranks_get_one_name(ranks):
    assert len(set(names_on(dist.HashStore(), ranks).values())) == 1


@pytest.mark.parametrize("late", [0, 1, 2])
def test_a_name_of_earlier_ranks_is_not_taken(late):
    store = dist.HashStore()
    seen = set()
    for pauses in ((), ((late, 0.5),), ((late, 0.5),)):
        (name,) = set(names_on(store, 3, pauses).values())
        assert name not in seen
        seen.add(name)


def test_ranks_that_gave_up_leave_nothing_that_counts():
    store = dist.HashStore()
    given_up = names_on(store, 3, absent=[2], seconds=0.3)
    assert given_up[0] == "rank 2 did not start in time"
    assert given_up[1] == "rank 0 did not start in time"
    assert len(set(names_on(store, 3, ((1, 0.3), (0, 0.1))).values())) == 1


def test_fewer_or_more_ranks_than_before():
    store = dist.HashStore()
    for ranks in (4, 2, 5):
        assert len(set(names_on(store, ranks).values())) == 1


def test_a_rank_that_does_not_start_is_named():
    assert names_on(dist.HashStore(), 3, absent=[1, 2], seconds=0.1) == {
        0: "rank 1 did not start in time"
    }
