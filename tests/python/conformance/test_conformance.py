"""The conformance files: nsimplex passes them, and a wrong implementation does not."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "conformance"


def run(script, *arguments, env=None):
    command = [sys.executable, FOLDER / script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=env)


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("conformance") / "cases"
    result = run("generate.py", "--out", folder)
    assert result.returncode == 0, result.stderr
    return folder


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
def test_nsimplex_passes_every_case(cases, dtype, subprocess_env):
    adapter = f"{FOLDER / 'nsimplex_adapter.py'}:call"
    result = run(
        "check.py", "--torch", adapter, "--cases", cases, "--dtype", dtype, env=subprocess_env
    )
    assert result.returncode == 0, result.stdout + result.stderr
    count = len(json.loads((cases / "cases.json").read_text())["cases"])
    assert f"{count} passed, 0 failed, 0 not supported" in result.stdout


# Ordinary attention in NumPy with a window one key too wide: right where there is no window.
OFF_BY_ONE = """
import numpy as np

def call(query, keys, values, options, tensors):
    plain = options["form"] == "product" and options["normalizer"] == "softmax"
    if len(keys) > 1 or not plain or tensors:
        raise NotImplementedError("plain order 1 only")
    groups = query.shape[1] // keys[0].shape[1]
    key, value = (np.repeat(x[0], groups, axis=1) for x in (keys, values))
    logits = options["logit_scale"] * query @ key.swapaxes(-1, -2)
    queries, length = logits.shape[-2:]
    p, j = np.arange(queries)[:, None] + length - queries, np.arange(length)
    left, right = options["window"][0]
    seen = np.ones(logits.shape[-2:], bool)
    if left >= 0: seen &= j >= p - left  # one too many
    if right >= 0: seen &= j <= p + right
    if options["causal"]: seen &= j <= p
    if options["distinct"] == "with_query": seen &= j != p
    weights = np.where(seen, np.exp(logits - logits.max(-1, keepdims=True)), 0)
    total = weights.sum(-1, keepdims=True)
    return weights @ value / np.where(total == 0, 1, total)
"""


def test_an_off_by_one_window_fails_where_it_shows(cases, tmp_path):
    (tmp_path / "mine.py").write_text(OFF_BY_ONE)
    result = run("check.py", f"{tmp_path / 'mine.py'}:call", "--cases", cases)
    assert result.returncode == 1
    outcome = {line.split()[0]: line.split()[1] for line in result.stdout.splitlines()[:-1]}
    assert (
        outcome["order1-causal"] == outcome["order1-grouped"] == outcome["order1-full"] == "passed"
    )
    assert outcome["order1-window"] == outcome["order1-window-one"] == "failed"
    assert outcome["order2-full"] == "not"  # "not supported"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["json"], "expected MODULE:NAME"),
        (["no_such_module:call"], "cannot load"),
        (["json:no_such_name"], "cannot load"),
        (["json:loads", "--cases", "missing"], "generate.py writes them"),
        (["json:loads", "--dtype", "bfloat16"], "only with --torch"),
    ],
)
def test_bad_usage_is_one_line(arguments, message):
    result = run("check.py", *arguments)
    assert result.returncode != 0 and message in result.stderr.splitlines()[-1]


def test_an_exception_fails_only_its_case(cases, tmp_path):
    (tmp_path / "bad.py").write_text("def call(*_):\n    raise RuntimeError('broken')\n")
    result = run(
        "check.py", f"{tmp_path / 'bad.py'}:call", "--cases", cases, "--only", "order1-full"
    )
    assert result.returncode == 1 and "RuntimeError: broken" in result.stdout
