"""The same bits for any number of threads where MKL works as it does on Intel's processors.

There it cuts the sums of a product into a part for each thread that it may have; on others it takes
plainer code, which does not. It asks one function of its own which processor this is.
"""

import os
import platform
import shutil
import subprocess
import sys

import pytest
import torch

SAYS_INTEL = "int mkl_serv_intel_cpu_true(void) { return 1; }\n"
TESTS = ["test_equivariant_linear_sparse_operator.py", "test_equivariant_attention.py"]
CHOSEN = "threads and (256 or 9000 or 6000)"  # products of one row and of many
PRODUCT = """
import torch
a, b, products = torch.randn(4096, 64), torch.randn(4096, 64), []
for threads in (1, 2):
    torch.set_num_threads(threads)
    products.append(a.t() @ b)
print(torch.equal(*products))
"""


@pytest.fixture
def environment(tmp_path):
    compiler = shutil.which("cc")
    if compiler is None or platform.machine() != "x86_64" or not torch.backends.mkl.is_available():
        pytest.skip("no MKL, or no C compiler cc")
    source, library = tmp_path / "intel.c", tmp_path / "intel.so"
    source.write_text(SAYS_INTEL)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    return {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.mark.slow
def test_same_bits_where_mkl_knows_the_processor(environment, root):
    run = lambda *line: subprocess.run(
        [sys.executable, *line], capture_output=True, text=True, env=environment
    )
    if "False" not in run("-c", PRODUCT).stdout:
        pytest.skip("the bits of MKL's own product do not depend on threads here")
    paths = [root / "tests" / "python" / "equivariant" / path for path in TESTS]
    done = run("-m", "pytest", "-q", "-x", "-k", CHOSEN, "-p", "no:cacheprovider", *paths)
    assert done.returncode == 0, done.stdout[-3000:]
