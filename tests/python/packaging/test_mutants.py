"""tools/mutants.py tells thorough tests from careless ones."""

import json
import subprocess
import sys

SOURCE = '''
def largest(first, second):
    """The larger number."""
    if first < second:
        return second
    return first
'''
TEST = """
import os, sys
sys.path.insert(0, os.environ["NSIMPLEX_BUILD_DIR"] + "/python")
from toy.numbers import largest

def test_largest():
    assert largest(1, 2) == 2
    {more}
"""


def test_careless_tests_have_fewer_lines_and_catch_fewer_mutants(root, tmp_path):
    package, test = tmp_path / "build/python/toy", tmp_path / "test_toy.py"
    package.mkdir(parents=True)
    (package / "numbers.py").write_text(SOURCE)

    def run(more, out, *options):
        test.write_text(TEST.format(more=more))
        words = ["toy/numbers.py", "--tests", test, "--out", tmp_path / out, "--mutants", "9"]
        words += ["--build", tmp_path / "build", "--preload", "json", *options]
        line = [sys.executable, root / "tools/mutants.py", *words]
        return subprocess.run(line, capture_output=True, text=True, cwd=tmp_path)

    thorough = run("assert largest(2, 1) == 2", "thorough.json")
    assert thorough.returncode == 0, thorough.stderr
    (figures,) = json.loads((tmp_path / "thorough.json").read_text()).values()
    assert figures == {"lines": 3, "covered": 3, "mutants": 4, "caught": 4, "survived": []}
    careless = run("", "careless.json", "--against", tmp_path / "thorough.json")
    assert careless.returncode == 1 and careless.stderr.splitlines() == [
        "toy/numbers.py: largest: covered 2, before 3",
        "toy/numbers.py: largest: caught 3, before 4",
    ]
    assert (package / "numbers.py").read_text() == SOURCE
    assert "the tests fail without a mutant" in run("assert False", "failing.json").stderr
