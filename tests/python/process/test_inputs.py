"""A run continues with the files that it began with, and with no others."""

import json
import os
import random
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from commands import QUIET, errors_in

TRIALS = (
    "--encodings none --splits 1 --seeds 1 --epochs 1 --restore-epochs 1 --width 8 --heads 2 "
    "--layers 1"
)
#: Runs of a moment; names in capitals are files.
RUNS = {
    "lab hyperedges": "--train TUPLES --test TUPLES --models s2g-plus --epochs 1",
    "lab jets": "--file SETS --models s2g --epochs 1",
    "lab molecules": "MOLECULES --models mlp --epochs 1",
    "causal task classify": f"TABLE --labels LABELS {TRIALS}",
    "causal task cluster": f"TABLE --labels LABELS {TRIALS.replace('--splits 1', '')}",
    "causal task regress": f"TABLE --target TARGET {TRIALS}",
    "causal task perturb": "TABLE --perturbations GUIDES --most-changed 2 "
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


@pytest.mark.parametrize("command", ["eval", "sample"])
@pytest.mark.parametrize("value", ["nan", "inf"])
def test_weights_that_are_not_finite_are_wanted_or_refused(
    executable, root, inputs, tmp_path, command, value
):
    path = tmp_path / "model.safetensors"
    content = (root / "tests/train/files/run-0.1/model.safetensors").read_bytes()
    data = 8 + int.from_bytes(content[:8], "little")
    begin = data + json.loads(content[8:data])["norm.weight"]["data_offsets"][0]
    path.write_bytes(content[:begin] + struct.pack("<f", float(value)) + content[begin + 4 :])
    line = [executable, "lm", command, path, "--threads", "1"]
    line += ["--text", inputs["TEXT"]] if command == "eval" else ["--tokens", "1"]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 2 and errors_in(done.stderr) == [
        f"nsimplex: cannot use {path}: tensor norm.weight holds numbers that are not finite "
        "(--non-finite uses it)"
    ]
    assert subprocess.run([*line, "--non-finite"], capture_output=True).returncode in (0, 1)


def test_a_prompt_may_come_from_standard_input(executable, inputs):
    line = [executable, "lm", "sample", inputs["MODEL"], "--tokens", "0", *QUIET]
    said = [
        subprocess.run([*line, "--prompt", *prompt], capture_output=True, input=b"caf\xc3\xa9 ")
        for prompt in (["-"], ["caf\xe9 "])
    ]
    assert [each.returncode for each in said] == [0, 0]
    assert said[0].stdout == said[1].stdout != b""


@pytest.mark.parametrize(
    "words, made",
    [
        ("report .", "report.html"),
        ("graph train links.csv --task edge --target y --epochs 1 --out run", "run/config.toml"),
    ],
)
def test_a_command_that_runs_python_imports_nothing_of_the_current_folder(
    executable, tmp_path, words, made
):
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "train_loss": 1.5}\n')
    pairs = [(i, j) for j in range(7) for i in range(j)]
    (tmp_path / "links.csv").write_text(
        "a,b,y\n" + "".join(f"{i},{j},{(i + j) % 2}\n" for i, j in pairs)
    )
    for name in ("csv", "json", "matplotlib", "nsimplex", "site", "sitecustomize", "torch"):
        (tmp_path / f"{name}.py").write_text("import os\nos._exit(9)\n")
    environment = {**os.environ, "NSIMPLEX_PYTHON": sys.executable, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [executable, *words.split()], cwd=tmp_path, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / made).exists()


@pytest.mark.parametrize(
    "missing, install",
    [
        ("matplotlib", "{python} -m pip install matplotlib (the extra plots)"),
        (
            "nsimplex",
            "in nsimplex's folder: {python} -m pip install --no-build-isolation '.[plots]'",
        ),
    ],
)
def test_a_report_without_a_package_says_how_to_get_it(executable, tmp_path, missing, install):
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "train_loss": 1.5}\n')
    python = tmp_path / "python"
    python.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        f'sys.modules["{missing}"] = None\n'
        "code = sys.argv[3]  # after -I -c\n"
        'sys.argv = ["-c", *sys.argv[4:]]\n'
        "exec(code)\n"
    )
    python.chmod(0o755)
    done = subprocess.run(
        [executable, "report", str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "NSIMPLEX_PYTHON": str(python)},
    )
    assert done.returncode == 1 and not (tmp_path / "report.html").exists()
    said = done.stderr.strip()
    assert "\n" not in said
    assert said.startswith("nsimplex: report needs the Python packages nsimplex and matplotlib (")
    assert said.endswith("); " + install.format(python=sys.executable))
