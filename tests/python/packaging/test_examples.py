"""Every example runs: the Python ones as they are, the C++ ones against an installed nsimplex."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def run(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, **options)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.mark.parametrize(
    "example", sorted((EXAMPLES / "python").glob("*.py")), ids=lambda p: p.stem
)
def test_python_example(example, subprocess_env):
    assert run(sys.executable, example, env=subprocess_env)


def test_cpp_examples(prefix, tmp_path):
    run(
        "cmake",
        "-S",
        EXAMPLES / "cpp",
        "-B",
        tmp_path,
        "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DTORCH_PYTHON={sys.executable}",
    )
    run("cmake", "--build", tmp_path)
    for source in sorted((EXAMPLES / "cpp").glob("*.cpp")):
        assert run(tmp_path / source.stem, env={**os.environ, "LD_LIBRARY_PATH": ""})
