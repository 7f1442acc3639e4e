"""The bits of a result depend on nothing but the inputs; one thread pool does the work."""

import subprocess
import sys

import pytest
import torch
from problems import random_problem

CASES = {
    "causal": dict(order=1, heads=4, queries=300, lengths=[300], dim=16, causal=True),
    "windows": dict(
        order=2,
        heads=4,
        kv_heads=2,
        queries=200,
        lengths=[200, 200],
        dim=16,
        causal=True,
        window=[8, 40],
    ),
    "cross": dict(order=2, batch=2, queries=70, lengths=[33, 90], dim=8),
    "sum": dict(order=3, queries=60, lengths=[60] * 3, dim=8, window=[3, 4, 9], reduce="sum"),
    "decode": dict(order=2, heads=1, queries=1, lengths=[200, 300], dim=32),
}


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_same_bits_twice_and_for_every_number_of_threads(name, dtype, threads):
    problem = random_problem(**CASES[name])
    outcomes = []
    for count in (1, 1, 2, 3, 5):
        threads(count)
        outcomes.append(problem.to(dtype).outcome())
    for outcome in outcomes[1:]:
        for tensor, value in outcome.items():
            assert torch.equal(value, outcomes[0][tensor]), tensor


def test_one_openmp_runtime_is_mapped(subprocess_env):
    """A second one would ignore torch.set_num_threads and fight over the cores."""
    script = (
        "import torch, nsimplex\n"
        "x = torch.randn(1, 4, 256, 16)\n"
        "nsimplex.attention(x, [x, x], [x, x], window=[4, 9])\n"
        "print(open('/proc/self/maps').read())\n"
    )
    maps = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=subprocess_env,
    ).stdout
    files = {line.split()[-1] for line in maps.splitlines() if "/" in line}
    runtimes = {f for f in files if any(name in f for name in ("libgomp", "libomp", "libiomp"))}
    assert len(runtimes) == 1, runtimes
    assert any("libnsimplex" in f for f in files)
