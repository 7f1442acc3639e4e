"""Workers of a DataLoader, however they are started, after operators ran on several threads."""

import subprocess
import sys

import pytest

_PROGRAM = """
import sys
import torch
import nsimplex

class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, row):
        draw = torch.Generator().manual_seed(row)
        x = torch.randn(1, 2, 64, 16, generator=draw)
        return nsimplex.attention(x, [x, x], [x, x], causal=True)

if __name__ == "__main__":
    torch.set_num_threads(2)
    expected = [Rows()[row] for row in range(4)]  # the threads are there now
    method = torch.utils.data.DataLoader(
        Rows(), batch_size=None, num_workers=2, multiprocessing_context=sys.argv[1]
    )
    assert all(torch.equal(a, b) for a, b in zip(method, expected, strict=True))
"""


@pytest.mark.parametrize(
    "method",
    [
        "fork",
        pytest.param("spawn", marks=pytest.mark.slow),
        pytest.param("forkserver", marks=pytest.mark.slow),
    ],
)
def test_workers_compute_the_same_bits(method, subprocess_env, tmp_path):
    program = tmp_path / "workers.py"
    program.write_text(_PROGRAM)
    done = subprocess.run(
        [sys.executable, program, method],
        capture_output=True,
        text=True,
        env=subprocess_env,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
