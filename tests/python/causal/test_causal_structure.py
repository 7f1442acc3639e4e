"""nsimplex.causal.causal_fit: the operator behind names and defaults."""

import subprocess
import sys

import pytest
import torch

from nsimplex import causal


def collider(n=2000):
    noise = torch.randn(n, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x = noise.clone()
    x[:, 2] += 1.3 * x[:, 0] - 0.8 * x[:, 1]
    return x


def test_finds_a_collider():
    fit = causal.causal_fit(collider())
    expected = torch.tensor([[0, 0, 1.3], [0, 0, -0.8], [0, 0, 0]], dtype=torch.float64)
    torch.testing.assert_close(fit.adjacency, expected, atol=0.1, rtol=0)
    assert fit.scores[expected != 0].min() > fit.scores[expected == 0].max()
    assert fit.removed.shape == (0, 2)
    assert fit.model == "equal variances"


def test_takes_what_becomes_a_table():
    x = collider(300)
    for table in (x.float(), x.numpy()):
        torch.testing.assert_close(
            causal.causal_fit(table).adjacency, causal.causal_fit(x).adjacency, atol=1e-4, rtol=0
        )


def test_holds_to_constraints():
    fit = causal.causal_fit(collider(), forbidden=[(0, 2)], required=((2, 1),), tiers=[0, 1, 1])
    assert fit.adjacency[0, 2] == 0
    assert fit.adjacency[2, 1] != 0
    assert fit.adjacency[1, 0] == fit.adjacency[2, 0] == 0


def test_low_rank_networks_find_a_small_graph():
    made = causal.simulate(nodes=4, observations=256, seed=1)
    fit = causal.causal_fit(made.table, estimator="paper-lowrank", rank=2, forbidden=[(1, 0)])
    assert fit.model == "paper-lowrank"
    assert causal.causal_metrics(fit.adjacency, made.weights).shd <= 1
    assert fit.weights[1, 0] == 0


def test_says_that_rows_are_few():
    table = torch.randn(20, 60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    with pytest.warns(causal.FewRowsWarning, match=r"table: 20 rows for 60 columns"):
        fit = causal.causal_fit(table)
    assert (fit.adjacency != 0).sum() <= 2


_INTERRUPTED = """
import os, signal, threading, torch
from nsimplex import causal
table = causal.simulate(nodes=1500, degree=2, observations=1000, seed=1).table
table /= table.std(0)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    causal.causal_fit(table)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ends_by_an_interrupt():
    run = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED], capture_output=True, text=True, check=True
    )
    assert run.stdout == "interrupted\n"


@pytest.mark.parametrize(
    "options, message",
    [
        ({"estimator": "best"}, r'estimator: expected one of "auto", .*"spectral", got "best"'),
        (
            {"sparsity": float("nan"), "estimator": "logdet"},
            "sparsity: expected a finite number of at least 0, got nan",
        ),
        ({"rank": 0, "estimator": "lowrank"}, "rank: expected at least 1, got 0"),
        ({"tiers": [0, 1]}, "tiers: expected 3, one per column, got 2"),
        ({"required": [(0, 1), (1, 0)]}, r"required\[0\]: expected edges without a cycle"),
    ],
)
def test_names_what_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        causal.causal_fit(collider(50), **options)
