"""NSIMPLEX_CUBINS: who computes attention on CUDA tensors."""

import subprocess
import sys

import pytest

PROGRAM = """
import nsimplex, torch
for name in ("attention", "attention_backward"):
    table = torch._C._dispatch_dump(f"nsimplex::{name}").splitlines()
    print(any(line.startswith("CUDA:") and "attention_cuda.cpp" in line for line in table))
"""


@pytest.mark.parametrize(("value", "registered"), [("", False), ("off", False), ("on", True)])
def test_off_unless_asked_for(subprocess_env, value, registered):
    environment = subprocess_env | {"NSIMPLEX_CUBINS": value, "NSIMPLEX_GPU": "off"}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == [str(registered)] * 2
