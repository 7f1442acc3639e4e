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


def test_molecules_of_a_csv_file(subprocess_env):
    pytest.importorskip("rdkit")
    source = Path(os.environ.get("NSIMPLEX_DATA", "")) / "molecules" / "delaney.csv"
    if not os.environ.get("NSIMPLEX_DATA") or not source.exists():
        pytest.skip("NSIMPLEX_DATA has no molecules/delaney.csv")
    options = "--molecules", "60", "--epochs", "2"
    script = EXAMPLES / "python" / "graph_molecules.py"
    said = run(sys.executable, script, source, *options, env=subprocess_env)
    assert said.count("first predictions") == 2 and "'mae'" in said


def test_examples_of_graphs_are_short():
    for path in (EXAMPLES / "python").glob("graph_*.py"):
        assert len(path.read_text().splitlines()) < 60, path.name


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
