"""No option of a number takes nan, which passes every comparison with the ends of a range."""

import re
import subprocess

import pytest

COMMANDS = [
    "lm train",
    "lm sample x",
    "graph expressivity",
    "graph hyperedges x",
    "graph molecules",
    "graph train",
    "analyze model x",
    "causal simulate",
    "causal fit x",
    "causal embed x",
    "causal encode x",
    "causal classify x",
    "causal cluster x",
    "causal regress x",
    "causal perturb x",
    "bench attention",
    "bench sparse",
    "verify",
]


def run(executable, env, *words):
    return subprocess.run([executable, *words], capture_output=True, text=True, env=env)


@pytest.mark.parametrize("command", COMMANDS)
def test_nan_is_refused(executable, subprocess_env, tmp_path, command):
    words = command.split()
    names = [word for word in words if word != "x"]
    described = run(executable, subprocess_env, *names, "--help").stdout
    options = re.findall(r"^ +(--[\w-]+) FLOAT", described, re.MULTILINE)
    for option in options:
        for text in ("nan", "-NaN"):
            ended = run(executable, subprocess_env, *words, f"{option}={text}")
            assert ended.returncode == 2, (option, ended.stderr)
            said = ended.stderr.strip()
            assert said.startswith(f"nsimplex: {option}: ") and "\n" not in said, said


def test_the_commands_have_such_options(executable, subprocess_env):
    described = run(executable, subprocess_env, "lm", "train", "--help").stdout
    assert len(re.findall(r"--[\w-]+ FLOAT", described)) >= 10
