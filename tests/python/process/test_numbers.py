"""No option of a number takes nan, which passes every comparison with the ends of a range."""

import re
import subprocess

import pytest

# Each with what it requires.
COMMANDS = [
    "lm train",
    "lm sample x",
    "graph hyperedges --train x --test y",
    "graph molecules x",
    "graph train x --task node --target y",
    "causal simulate",
    "causal fit x",
    "causal embed x",
    "causal encode x",
    "causal classify x --labels y",
    "causal cluster x --labels y",
    "causal regress x",
    "causal perturb",
    "bench attention",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_nan_is_refused(executable, subprocess_env, command):
    def run(*words):
        return subprocess.run(
            [executable, *words], capture_output=True, text=True, env=subprocess_env
        )

    described = run(*re.findall(r"^[a-z]+ [a-z]+", command)[0].split(), "--help").stdout
    options = re.findall(r"^ +(--[\w-]+) FLOAT", described, re.MULTILINE)
    assert options
    for option in options:
        value = "nan,nan" if option == "--weights" else "nan"
        ended = run(*command.split(), f"{option}={value}")
        assert ended.returncode == 2, (option, ended.stderr)
        said = ended.stderr.strip()
        assert said.startswith(f"nsimplex: {option}: expected a number, got nan"), said
        assert "\n" not in said
