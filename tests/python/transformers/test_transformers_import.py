"""nsimplex needs no Transformers; nsimplex.transformers says so where it is absent."""

import subprocess
import sys

import pytest

pytest.importorskip("transformers")

import nsimplex.transformers as own


def test_nsimplex_works_without_it_and_one_line_says_what_is_missing(subprocess_env):
    code = """
import sys
sys.modules["transformers"] = None
import nsimplex
assert not {"peft", "accelerate", "tokenizers"} & {*sys.modules}
try:
    import nsimplex.transformers
except ImportError as error:
    print(error)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=subprocess_env
    )
    assert result.returncode == 0, result.stderr
    (line,) = result.stdout.splitlines()
    assert line.startswith("[nsimplex.transformers] transformers: expected the package")
    assert "pip install" in line


def test_all_names_are_there():
    assert len({*own.__all__}) == len(own.__all__)
    for name in own.__all__:
        assert getattr(own, name).__doc__, name
