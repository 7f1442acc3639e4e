"""Every command that writes, ended at some moment: files are whole or absent, and no process is
left."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from commands import (
    COMMANDS,
    OTHERS,
    QUIET,
    all_commands,
    assert_whole,
    errors_in,
    line_of,
    processes_of,
)

_SOONEST, _LATEST = 0.15, 1.2  # seconds: from before the first file to well into the work
_EXPECTED = ("nsimplex: stopping; once more to stop at once", "saved; continue with: ")
_PATIENCE = 30.0  # seconds within which the first SIGTERM has its effect


def start(command, **options):
    return subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


def end(process, number, after):
    """Sends a signal after some seconds; what standard error had, and the exit code."""
    time.sleep(after)
    process.send_signal(number)
    try:
        return process.communicate(timeout=_PATIENCE)[1], process.returncode
    finally:
        process.kill()
        process.wait()


def moments(command, number, count):
    rng = random.Random(f"{command} {number}")
    latest = 5 * _LATEST if command == "graph train" else _LATEST  # its Python starts first
    return [rng.uniform(_SOONEST, latest) for _ in range(count)]


def left_after(session, seconds):
    """Processes of a session that still run; those that end with their parent take a moment."""
    deadline = time.monotonic() + seconds
    while (left := processes_of(session)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def end_often(command, number, count, executable, inputs, folder):
    for place, after in enumerate(moments(command, number, count)):
        out = folder / str(place)
        process = start(line_of(executable, command, inputs, out))
        error, code = end(process, number, after)
        said = (
            f"{command}, {signal.Signals(number).name} after {after:.3f} s: exit code {code}, "
            f"{error!r}"
        )
        assert left_after(process.pid, seconds=1) == [], said
        if number == signal.SIGKILL:
            assert code in (0, -signal.SIGKILL), said
        else:
            # Before its handler is there a signal ends the process at once, which has written
            # nothing then.
            assert code in (0, 130) or (code == -number and not out.exists()), said
            assert all(line.startswith(_EXPECTED) for line in errors_in(error)), said
        assert_whole(out, killed=number == signal.SIGKILL)


def test_every_command_that_writes_is_ended_here(executable):
    assert sorted([*COMMANDS, *OTHERS]) == sorted(all_commands(executable))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["KILL", "TERM"])
@pytest.mark.parametrize(
    "command",
    [
        "lm train",
        "lab lm-compare",
        "causal fit",
        "causal simulate",
        "lab match3",
        "lab chains",
        "causal embed",
    ],
)
def test_an_ended_command_leaves_whole_files(executable, inputs, tmp_path, command, number):
    end_often(command, number, 1, executable, inputs, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["KILL", "TERM"])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_ended_command_leaves_whole_files(executable, inputs, tmp_path, command, number):
    end_often(command, number, 4, executable, inputs, tmp_path)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["KILL", "TERM"])
def test_an_ended_report_leaves_whole_files_and_no_python(executable, inputs, tmp_path, number):
    """The page is drawn by another process, which must not outlive the command."""
    (tmp_path / "metrics.jsonl").write_text(
        "".join(f'{{"step": {i}, "train_loss": 1.5}}\n' for i in range(400_000))
    )
    environment = {
        **os.environ,
        "NSIMPLEX_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    for after in (0.7, 1.5):
        process = start([executable, "report", tmp_path], env=environment)
        end(process, number, after)
        deadline = time.monotonic() + 1
        while (left := processes_of(process.pid)) and time.monotonic() < deadline:
            time.sleep(0.05)
        for each in left:
            os.kill(each, signal.SIGKILL)
        assert left == []
        assert_whole(tmp_path, killed=True)


#: Commands that wait for a file or take long before their first step; PIPE is one that nobody
#: writes to. Readers of data refuse a pipe at once.
WAITING = [
    "causal simulate --config PIPE",
    "causal simulate --mechanism gp --nodes 1000",
]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
@pytest.mark.parametrize("command", WAITING)
def test_the_first_signal_ends_a_command_that_waits(executable, tmp_path, command, number):
    os.mkfifo(tmp_path / "pipe")
    words = [str(tmp_path / "pipe") if word == "PIPE" else word for word in command.split()]
    process = start([executable, *words, *QUIET, "--out", tmp_path / "run"])
    time.sleep(1)
    assert process.poll() is None, process.communicate()[1]
    error, code = end(process, number, 0)
    assert code in (130, -number), error
    assert all(line.startswith(_EXPECTED) for line in errors_in(error)), error


def figures_in(folder):
    """Results and means of metrics.jsonl, the last of each kind, without what two equal runs do not
    share."""
    last = {}
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        row = {key: value for key, value in row.items() if not key.endswith("seconds")}
        last[
            tuple(str(row.get(key)) for key in ("model", "encoding", "seed", "trial", "epoch"))
        ] = row
    return last


#: Runs of some seconds, in parts of which a kill finds every kind of moment.
RESUMED = {
    "lab chains": "--models mlp,kernel --ema 0.9 --seeds 2 --epochs 150 --train 6 --validation 2 "
    "--test 2 --nodes 4 --test-nodes 6",
    "causal task classify": "TABLE --labels LABELS --encodings none,cape --splits 3 --seeds 2 "
    "--width 8 --heads 2 --layers 1"
    " --restore-epochs 1 --epochs 2 --embed-steps 5",
    "graph train": "LINKS --task edge --target sign --model gcn --width 8 --epochs 150",
}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["KILL", "TERM"])
@pytest.mark.parametrize("command", RESUMED)
def test_a_run_that_is_ended_again_and_again_reaches_the_same_bits(
    executable, inputs, tmp_path, command, number
):
    words = [inputs.get(word, word) for word in RESUMED[command].split()]
    line, whole, broken = [executable, *command.split()], tmp_path / "whole", tmp_path / "broken"
    subprocess.run([*line, *words, *QUIET, "--out", whole], check=True, capture_output=True)
    for after in moments(command, number, 8):
        begun = (broken / "config.toml").exists()
        process = start(
            [*line, "--resume", broken, *QUIET]
            if begun
            else [*line, *words, *QUIET, "--out", broken]
        )
        error, code = end(process, number, after)
        assert code in (0, 130, -number), error
        assert all(line.startswith(_EXPECTED) for line in errors_in(error)), error
        if number == signal.SIGTERM:
            assert_whole(broken, killed=True)
        if code == 0:
            break
    begun = ["--resume", broken] if (broken / "config.toml").exists() else [*words, "--out", broken]
    resumed = subprocess.run([*line, *begun, *QUIET], capture_output=True, text=True)
    assert resumed.returncode == 0, resumed.stderr
    assert_whole(broken, killed=True)
    assert figures_in(broken) == figures_in(whole)


#: A training in Python that writes a checkpoint after each epoch, with the same graph each time.
_FIT_GRAPHS = """
import sys
import torch
from nsimplex import graph
from nsimplex.nn import MessagePassing, fit_graphs, graph_training

graph_training._SAVE_SECONDS = 0.0
torch.set_num_threads(1)
torch.manual_seed(0)
at = torch.arange(60)
data = graph.from_edge_index(
    torch.stack([at, (at + 1) % 60]), 60, node_features=torch.randn(60, 2),
    targets=at % 2, level="node", directions="both")
model = MessagePassing("node", "classes", 2, node_channels=2, width=8, layers=1, dropout=0.2)
split = graph.split_rows(60, (0.5, 0.25, 0.25))
options = {"epochs": 200, "patience": 0, "folder": sys.argv[1], "resume": True}
found = fit_graphs(model, data, split, progress=False, **options)
print(found.test)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["KILL", "TERM"])
def test_fit_graphs_that_is_ended_again_and_again_reaches_the_same_bits(
    subprocess_env, tmp_path, number
):
    def line(folder):
        return [sys.executable, "-W", "ignore", "-c", _FIT_GRAPHS, tmp_path / folder]

    whole = subprocess.run(
        line("whole"), check=True, capture_output=True, text=True, env=subprocess_env
    )
    rng, broken = random.Random(number), tmp_path / "broken"
    for _ in range(8):
        process = start(line("broken"), env=subprocess_env)
        deadline = time.monotonic() + _PATIENCE  # its imports take seconds, the training fewer
        while process.poll() is None and time.monotonic() < deadline and not broken.exists():
            time.sleep(0.01)
        error, code = end(process, number, rng.uniform(0, 4 * _LATEST))
        assert code in (0, -number), error
        assert_whole(broken, killed=True)
    resumed = subprocess.run(
        line("broken"), check=True, capture_output=True, text=True, env=subprocess_env
    )
    assert resumed.stdout == whole.stdout
    for name in ("metrics.jsonl", "model.safetensors", "checkpoint.safetensors", "config.toml"):
        assert (broken / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize("mask", [0o077, 0o002], ids=oct)
def test_files_have_the_permissions_that_umask_leaves(executable, tmp_path, mask):
    """Those of a temporary file too, which takes the place of another one."""
    words = ["causal", "simulate", "--nodes", "5", "--rows", "50", *QUIET]
    line = [executable, *words, "--out", tmp_path / "run"]
    for more in ([], ["--overwrite"]):
        subprocess.run([*line, *more], check=True, capture_output=True, umask=mask)
        made = [*(tmp_path / "run").rglob("*")]
        assert made and {path.stat().st_mode & 0o777 for path in made} == {0o666 & ~mask}
        assert (tmp_path / "run").stat().st_mode & 0o777 == 0o777 & ~mask


def test_a_second_run_in_a_folder_is_refused(executable, inputs, tmp_path):
    words = [inputs.get(word, word) for word in RESUMED["graph train"].split()[:-1]]
    line = [executable, "graph", "train", *words, "100000", "--patience", "0", *QUIET]
    first = start([*line, "--out", tmp_path / "run"])
    try:
        deadline = time.monotonic() + _PATIENCE
        while not (tmp_path / "run" / "metrics.jsonl").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        again = [*line, "--out", tmp_path / "run", "--overwrite"]
        resumed = [executable, "graph", "train", "--resume", tmp_path / "run", *QUIET]
        for command in (again, resumed):
            second = subprocess.run(command, capture_output=True, text=True)
            assert second.returncode == 2 and first.poll() is None
            assert second.stderr.count("\n") == 1 and "is in use by another" in second.stderr
    finally:
        first.kill()
        first.wait()
