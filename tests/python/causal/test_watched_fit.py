"""Progress of a fit, and Ctrl-C, which leaves the best graph so far."""

import os
import signal
import subprocess
import sys
import threading

import pytest
import torch

from nsimplex import causal
from nsimplex.causal.structure import FitOptions, fit_arguments


@pytest.fixture(scope="module")
def wide():
    """A table whose fit takes much longer than a period between two calls of ``progress``."""
    return causal.simulate(nodes=300, observations=600, degree=4, seed=3).table


def press(*_):
    os.kill(os.getpid(), signal.SIGINT)


def is_acyclic(adjacency):
    walks = (adjacency != 0).double()
    for _ in range(len(adjacency).bit_length()):
        walks = ((walks @ walks) > 0).double()
    return not walks.any()  # none of as many steps as there are columns


def test_progress_counts_steps(wide):
    seen, narrow = [], wide[:, :40]
    fitted = causal.causal_fit(narrow, progress=lambda *steps: seen.append(steps))
    assert not fitted.interrupted and seen
    done = [steps for steps, _ in seen]
    assert done == sorted(done) and done[-1] > 0
    assert {total for _, total in seen} == {0}
    torch.testing.assert_close(
        fitted.adjacency, causal.causal_fit(narrow).adjacency, rtol=0, atol=0
    )


def test_an_estimator_that_knows_its_steps_tells_them():
    table = causal.simulate(nodes=5, observations=130, seed=0).table

    def look(done, total):
        assert 0 <= done < total == 20 * 100 * 2  # loops, epochs, batches of at most 128 rows
        if done > 0:
            raise StopIteration

    with pytest.raises(StopIteration):
        causal.causal_fit(table, estimator="paper", progress=look)


@pytest.mark.parametrize("options", [{}, {"estimator": "spectral"}, {"nonlinear": True}])
def test_ctrl_c_leaves_the_best_graph_so_far(wide, options):
    with pytest.raises(causal.FitInterrupted) as stopped:
        causal.causal_fit(wide, **options, progress=press)
    assert isinstance(stopped.value, KeyboardInterrupt)
    fitted = stopped.value.fit
    assert fitted.interrupted and fitted.adjacency.shape == (300, 300)
    assert is_acyclic(fitted.adjacency)


def test_ctrl_c_ends_an_estimator_that_has_no_graph_yet(wide):
    with pytest.raises(KeyboardInterrupt) as stopped:
        causal.causal_fit(wide[:, :40], estimator="paper", progress=press)
    assert not isinstance(stopped.value, causal.FitInterrupted)


def test_an_error_of_progress_ends_the_fit(wide):
    def fail(done, total):
        raise LookupError("the window was closed")

    with pytest.raises(LookupError, match="the window was closed"):
        causal.causal_fit(wide, progress=fail)


@pytest.mark.parametrize("kind", [causal.CausalGraph, causal.CausalPipeline])
def test_an_estimator_keeps_the_graph_that_was_reached(wide, kind):
    model = kind(confidence=4)
    with pytest.raises(causal.FitInterrupted) as stopped:
        model.fit(wide, progress=press)
    assert torch.equal(model.adjacency_, stopped.value.fit.adjacency)
    assert not hasattr(model, "confidence_")
    assert model.transform(wide[:3]).shape == (3, 300)
    if kind is causal.CausalPipeline:
        assert not hasattr(model, "tangents_")
        model.steps = 2
        assert model.embed().points().shape == (300, 3)


def test_progress_of_an_estimator_goes_on_with_the_samples():
    seen, table = [], causal.simulate(nodes=6, observations=200, seed=1).table
    causal.CausalGraph(standardise=True, confidence=3).fit(
        table, progress=lambda *steps: seen.append(steps)
    )
    assert seen[-3:] == [(1, 3), (2, 3), (3, 3)]
    assert len(seen) > 3 and {total for _, total in seen[:-3]} == {0}


def test_ctrl_c_ends_fits_in_other_threads(wide):
    ended = []

    def fit():
        try:
            causal.causal_fit(wide)
        except causal.FitInterrupted as stopped:
            ended.append(stopped.fit.interrupted)

    threads = [threading.Thread(target=fit) for _ in range(2)]
    with pytest.raises(KeyboardInterrupt):
        for thread in threads:
            thread.start()
        causal.causal_fit(wide, progress=press)
    for thread in threads:
        thread.join()
    assert ended == [True, True]


PROGRAM = """
import os, signal, threading
from nsimplex import causal
from nsimplex.causal.structure import FitOptions, fit_arguments
signal.signal(signal.SIGINT, signal.default_int_handler)
table = causal.simulate(nodes=1500, observations=300, seed=0).table
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    causal.causal_fit(table)
except causal.FitInterrupted as stopped:
    print(stopped.fit.interrupted, stopped)
raise SystemExit(3)
"""


def test_ctrl_c_without_progress(build):
    environment = os.environ | {"PYTHONPATH": str(build / "python")}
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 3, found.stderr
    expected = "True the fit ended early; its attribute fit has the best graph so far"
    assert found.stdout.strip() == expected


@pytest.mark.parametrize(
    "watch", [torch.zeros(3, dtype=torch.int64), torch.zeros(4), torch.zeros(2, 4).long()]
)
def test_the_operator_refuses_another_shape_to_share(watch):
    options = fit_arguments(FitOptions())
    table = causal.simulate(nodes=3, observations=20, seed=0).table
    with pytest.raises(ValueError, match=r"^\[causal_fit\] watch: expected contiguous int64 \[4\]"):
        torch.ops.nsimplex.causal_fit_rows(table, **options, watch=watch)
