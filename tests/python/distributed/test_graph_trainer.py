"""`nsimplex graph train` on several ranks: one run, ranks that are ended, and what is refused."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time

import pytest
from rank_processes import (
    Ranks,
    assert_close,
    finish,
    restart_after_a_kill,
    torchrun,
    wait_for_lines,
)

FEW = ["--epochs", "5"]
#: Long enough that a signal meets the ranks at work.
MANY = ["--epochs", "60"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Rings of three to eight nodes: is their number odd?"""
    folder, rng = tmp_path_factory.mktemp("rings"), random.Random(0)
    sizes = [3 + rng.randrange(6) for _ in range(40)]
    edges = "".join(f"{i},{(i + 1) % n},r{k}\n" for k, n in enumerate(sizes) for i in range(n))
    graphs = "".join(f"r{k},{n % 2}\n" for k, n in enumerate(sizes))
    (folder / "edges.csv").write_text("a,b,graph\n" + edges)
    (folder / "graphs.csv").write_text("name,odd\n" + graphs)
    return folder / "edges.csv", folder / "graphs.csv"


def command(files, out, *more):
    edges, graphs = files
    line = ["train", edges, "--graphs", graphs, "--task", "graph", "--target", "odd", "--out", out]
    small = "--model gin --width 8 --layers 2 --batch 8 --patience 0 --threads 1".split()
    return [*line, *small, *(more or FEW)]


def run(count, tmp_path, words):
    return finish(count, tmp_path, words, "graph")


def lines(out):
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def assert_same_run(out, want):
    for name in ("metrics.jsonl", "checkpoint.safetensors", "model.safetensors"):
        assert (out / name).read_bytes() == (want / name).read_bytes(), name


@pytest.fixture(scope="module")
def uninterrupted(files, tmp_path_factory):
    """The folder of a run of two ranks that nothing has disturbed."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    run(2, folder, command(files, folder / "run", *MANY))
    return folder / "run"


def test_ranks_have_the_losses_of_one_process(executable, files, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    subprocess.run([executable, "graph", *command(files, one)], check=True, capture_output=True)
    ranks = run(2, tmp_path, command(files, two))
    assert ranks.out(1) == "" and "validation" in ranks.out(0)
    assert_close(lines(two), lines(one))
    assert sorted(path.name for path in two.iterdir()) == sorted(
        path.name for path in one.iterdir()
    )
    assert (two / "config.toml").read_text().count("--out") == 1


def test_ctrl_c_on_one_rank_saves_and_the_same_command_continues(files, tmp_path, uninterrupted):
    out = tmp_path / "run"
    words = command(files, out, *MANY)
    with Ranks(2, tmp_path / "streams", words, "graph") as ranks:
        wait_for_lines(out, 8)
        os.kill(ranks.processes[1].pid, signal.SIGINT)
        assert ranks.codes() == [130, 130], ranks.errors()
        assert "continue with" in (tmp_path / "streams" / "error0").read_text()
        assert (tmp_path / "streams" / "error1").read_text() == ""
    assert not (out / "model.safetensors").exists()
    run(2, tmp_path, words)
    assert_same_run(out, uninterrupted)


def test_a_killed_rank_ends_the_others_and_the_same_command_continues(
    files, tmp_path, uninterrupted
):
    out = tmp_path / "run"
    words = command(files, out, *MANY)
    for killed in (1, 0):
        with Ranks(2, tmp_path / "streams", words, "graph") as ranks:
            wait_for_lines(out, 20 if killed == 0 else 8)
            ranks.processes[killed].kill()
            codes = ranks.codes()
            assert codes[killed] == -signal.SIGKILL and codes[1 - killed] == 1
            line = ranks.error()
            assert f"rank {killed} did not answer" in line
    run(2, tmp_path, words)
    assert_same_run(out, uninterrupted)


def programs_of(pid):
    words = ["ps", "--ppid", str(pid), "-o", "pid="]
    return [int(each) for each in subprocess.run(words, capture_output=True).stdout.split()]


def test_a_rank_that_hangs_is_named(files, tmp_path):
    out = tmp_path / "run"
    words = ["--rank-timeout", "3", *command(files, out, "--epochs", "100000")]
    with Ranks(2, tmp_path / "streams", words, "graph") as ranks:
        wait_for_lines(out, 3)
        (program,) = programs_of(ranks.processes[1].pid)
        os.kill(program, signal.SIGSTOP)
        ranks.processes[0].join(60)
        assert ranks.processes[0].exitcode == 1
        line = ranks.error()
        assert "rank 1 did not answer for" in line


def test_a_program_that_is_killed_is_said_once(files, tmp_path):
    out = tmp_path / "run"
    with Ranks(2, tmp_path / "streams", command(files, out, *MANY), "graph") as ranks:
        wait_for_lines(out, 3)
        (program,) = programs_of(ranks.processes[1].pid)
        os.kill(program, signal.SIGKILL)
        assert ranks.codes() == [1, 1]
        line = ranks.error()
        assert "the Python of graph train ended by signal 9" in line


@pytest.mark.parametrize(
    "more, message",
    [
        (["--dropout", "0.5"], "model: expected dropout 0 with several ranks, got 0.5"),
        (["--target", "no"], "--target: expected a column 'no'"),
        (["--overwrite"], "--overwrite: not with torchrun"),
        (["--nonsense"], "unknown option --nonsense"),
    ],
)
def test_what_ranks_refuse_is_said_once(files, tmp_path, more, message):
    # test_graph_ranks has the other refusals of a training.
    out = tmp_path / "run"
    words = [word for word in command(files, out) if word != more[0]]
    if more[0] == "--target":
        words = command(files, out)
        words[words.index(more[0]) + 1] = more[1]
        more = []
    with Ranks(2, tmp_path / "streams", [*words, *more], "graph") as ranks:
        assert ranks.codes() == [2, 2], ranks.errors()
        line = ranks.error()
        assert message in line
    assert not (out / "model.safetensors").exists()


def test_a_folder_that_cannot_be_made_is_said_once(files, tmp_path):
    (tmp_path / "file").write_text("x")
    words = command(files, tmp_path / "file" / "run")
    with Ranks(2, tmp_path / "streams", words, "graph") as ranks:
        assert ranks.codes()[0] == 2 and 0 not in ranks.codes()
        line = ranks.error()
        assert "--out" in line


def test_other_commands_run_in_one_process(files, tmp_path):
    words = ["predict", "nowhere", files[0]]
    with Ranks(2, tmp_path / "streams", words, "graph") as ranks:
        assert ranks.codes() == [2, 2]
        line = ranks.error()
        assert "nsimplex graph predict: expected one process, got 2 ranks" in line


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_torchrun_restarts_after_a_killed_rank(
    files, tmp_path, subprocess_env, uninterrupted, killed
):
    out = tmp_path / "run"
    restart_after_a_kill(
        command(files, out, *MANY), killed, out, 10, subprocess_env, "nsimplex.graph"
    )
    assert_same_run(out, uninterrupted)


@pytest.mark.slow
def test_ctrl_c_of_torchrun_saves(files, tmp_path, subprocess_env, uninterrupted):
    out = tmp_path / "run"
    words = [*torchrun(2, module="nsimplex.graph"), *command(files, out, *MANY)]
    with open(tmp_path / "log", "w") as log:
        agent = subprocess.Popen(words, env=subprocess_env, stdout=log, stderr=log)
        try:
            wait_for_lines(out, 10)
            agent.send_signal(signal.SIGINT)
            agent.wait(120)
        finally:
            agent.kill()
    assert "continue with" in (tmp_path / "log").read_text()
    time.sleep(1)  # the ranks let go of the folder
    run(2, tmp_path, command(files, out, *MANY))
    assert_same_run(out, uninterrupted)
