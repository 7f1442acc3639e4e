"""config.toml of a run is TOML to every reader."""

import subprocess

import pytest
import tomllib


@pytest.mark.parametrize(
    "name", ["plain", 'it\'s "so"', "a\\b", "a\nb\tc", "[x], y = 1 # z", "é 漢字 \x01\x7f"]
)
def test_other_readers_agree(build, tmp_path, name):
    out = str(tmp_path / name)
    command = [
        build / "bin" / "nsimplex",
        "causal",
        "simulate",
        "--nodes",
        "3",
        "--rows",
        "9",
        "--do",
        "x0:1",
        "--do",
        "x1:2",
    ]
    done = subprocess.run([*command, "--out", out], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with open(f"{out}/config.toml", "rb") as file:
        config = tomllib.load(file)
    assert config["out"] == out and config["nodes"] == 3 and config["do"] == ["x0:1", "x1:2"]
    assert (
        config["weights"] == [0.5, 2]
        and config["own-variances"] is False
        and config["graph"] == "er"
    )
