"""A run continues with the files that it began with, and with no others."""

import json
import random
import shutil
import subprocess
from pathlib import Path

import numpy
import pytest
from commands import QUIET, errors_in

TRIALS = (
    "--encodings none --splits 1 --seeds 1 --epochs 1 --restore-epochs 1 --dim 8 --heads 2 "
    "--layers 1"
)
#: Runs of a moment; names in capitals are files.
RUNS = {
    "graph hyperedges": "--train TUPLES --test TUPLES --models s2g-plus --epochs 1",
    "lab jets": "--file SETS --models s2g --epochs 1",
    "graph molecules": "MOLECULES --models mlp --epochs 1",
    "causal classify": f"TABLE --labels LABELS {TRIALS}",
    "causal cluster": f"TABLE --labels LABELS {TRIALS.replace('--splits 1', '')}",
    "causal regress": f"TABLE --target TARGET {TRIALS}",
    "causal perturb": "TABLE --perturbations GUIDES --most-changed 2 "
    f"{TRIALS.replace('--splits 1', '')}",
}


@pytest.fixture(scope="module")
def files(inputs, tmp_path_factory):
    """A copy of the inputs to change, and those that these runs read besides."""
    folder, rng = tmp_path_factory.mktemp("files"), random.Random(1)
    made = {}
    for name in ("TUPLES", "MOLECULES", "TABLE", "LABELS"):
        made[name] = folder / Path(inputs[name]).name
        shutil.copy(inputs[name], made[name])
    made["TARGET"], made["GUIDES"], made["SETS"] = (
        folder / "target.csv",
        folder / "guides.csv",
        folder / "sets.npz",
    )
    made["TARGET"].write_text("y\n" + "".join(f"{rng.gauss(0, 1):.4f}\n" for _ in range(200)))
    made["GUIDES"].write_text(
        "guide\n" + "".join(f"{('control', *'abcd')[i % 5]}\n" for i in range(200))
    )
    numpy.savez(
        made["SETS"],
        points=numpy.array(
            [[rng.gauss(0, 1) for _ in range(2)] for _ in range(120)], numpy.float32
        ),
        offsets=numpy.arange(0, 121, 6),
        labels=numpy.array([i % 2 for i in range(120)]),
    )
    return made


def refused(line, file):
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    (error,) = errors_in(done.stderr)
    assert (
        error.startswith("nsimplex: cannot continue ") and f"{file} has changed since: " in error
    ), error


@pytest.mark.parametrize("command", RUNS)
def test_a_run_continues_with_the_files_that_it_began_with(executable, files, tmp_path, command):
    words = [str(files.get(word, word)) for word in RUNS[command].split()]
    out, line = tmp_path / "run", [executable, *command.split()]
    begun = subprocess.run([*line, *words, *QUIET, "--out", out], capture_output=True, text=True)
    assert begun.returncode == 0, begun.stderr
    resume = [*line, "--resume", out, *QUIET]
    inputs = [path for path in files.values() if str(path) in words]
    assert {entry["file"] for entry in json.loads((out / "inputs.json").read_text())} == set(
        map(str, inputs)
    )
    subprocess.run(resume, check=True, capture_output=True)
    for path in inputs:
        whole = path.read_bytes()
        try:
            # A digit at the end of a text, which stays one that can be read; in an archive some
            # byte.
            place = next(i for i in reversed(range(len(whole))) if whole[i : i + 1].isalnum())
            path.write_bytes(
                whole[:place]
                + (b"1" if whole[place : place + 1] != b"1" else b"2")
                + whole[place + 1 :]
            )
            refused(resume, path)
            path.unlink()
            refused(resume, path)
        finally:
            path.write_bytes(whole)
    (out / "inputs.json").write_text('[{"file": ')
    done = subprocess.run(resume, capture_output=True, text=True)
    assert done.returncode == 2 and errors_in(done.stderr) == [
        f"nsimplex: cannot continue {out}: inputs.json is damaged"
    ]
    (out / "inputs.json").unlink()  # as version 0.1 left its folders
    subprocess.run(resume, check=True, capture_output=True)
