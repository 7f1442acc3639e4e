"""Feature training (`nsimplex causal task perturb`, `classify`, `cluster`, `regress`) on several
ranks: one run, ranks that are ended, and what is refused."""

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
    wait_for_lines,
)

SMALL = (
    "--encodings none,cape --embed-steps 20 --width 8 --heads 2 --layers 1 --restore-epochs 2 "
    "--epochs 2 --batch 16 --threads 1"
).split()
SIMULATED = (
    "--nodes 6 --control-rows 60 --rows 8 --doubles 1 --asked 2 --most-changed 2 --seeds 1"
).split()
#: Long enough that a signal meets the ranks at work.
MANY = "--splits 3 --seeds 8 --save-models".split()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A table of 60 rows in two classes."""
    folder, rng = tmp_path_factory.mktemp("table"), random.Random(0)
    classes = [row % 2 for row in range(60)]
    rows = []
    for each in classes:
        x = [rng.gauss(each, 1) for _ in range(4)]
        rows.append(",".join(f"{value:.4f}" for value in [*x, x[0] + rng.gauss(0, 0.3)]))
    (folder / "table.csv").write_text("a,b,c,d,e\n" + "\n".join(rows) + "\n")
    (folder / "labels.csv").write_text("label\n" + "".join(f"k{each}\n" for each in classes))
    return folder / "table.csv", folder / "labels.csv"


def command(action, files, out, *more):
    words = ["task", action, *(SMALL[2:] if SMALL[0] in more else SMALL), "--out", out]
    if action == "perturb":
        return [*words, *SIMULATED, *more]
    table, labels = files
    words += [table] if action == "regress" else [table, "--labels", labels]
    if action != "cluster" and "--splits" not in more:
        words += ["--splits", "1"]
    return [*words, *([] if "--seeds" in more else ["--seeds", "1"]), *more]


def run(count, tmp_path, words):
    return finish(count, tmp_path, words, "causal")


def error(ranks):
    """The one line about an error, without what rank 0 says of the files that it reads."""
    lines = [line for line in ranks.errors() if ": read " not in line]
    assert len(lines) == 1, lines
    return lines[0]


def results(out):
    """The results of all trials and their means, without seconds and what follows from the rest."""
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [
        {
            name: value
            for name, value in line.items()
            if name != "seconds" and not name.startswith("cape_better_by")
        }
        for line in lines
    ]


def assert_same_run(out, want):
    """The trials of a run that was ended, its last summary, and its models."""

    def lines(folder):
        keys = ("kind", "encoding", "trial")
        return {tuple(line.get(key) for key in keys): line for line in results(folder)}

    assert lines(out) == lines(want)
    models = sorted(path.name for path in want.glob("model-*"))
    assert sorted(path.name for path in out.glob("model-*")) == models and models
    for name in models:
        assert (out / name).read_bytes() == (want / name).read_bytes(), name


@pytest.fixture(scope="module")
def uninterrupted(files, tmp_path_factory):
    """The folder of a run of two ranks that nothing has disturbed."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    run(2, folder, command("classify", files, folder / "run", *MANY))
    return folder / "run"


@pytest.mark.parametrize(
    "action, count, more",
    [
        ("perturb", 2, []),
        ("perturb", 3, ["--encodings", "cape-scaled,cape-additive,relative"]),
        ("classify", 3, ["--save-models"]),
        ("cluster", 2, ["--values", "linear"]),
        ("regress", 2, ["--save-models", "--values", "general"]),
    ],
)
def test_ranks_have_the_results_of_one_process(executable, files, tmp_path, action, count, more):
    one, first, again = (tmp_path / name for name in ("one", "first", "again"))
    words = command(action, files, one, *more)
    subprocess.run([executable, "causal", *words], check=True, capture_output=True)
    ranks = run(count, tmp_path, command(action, files, first, *more))
    assert "cape" in ranks.out(0) and all(ranks.out(rank) == "" for rank in range(1, count))
    assert_close(results(first), results(one))
    assert sorted(path.name for path in first.iterdir()) == sorted(
        path.name for path in one.iterdir()
    )
    assert (first / "config.toml").read_text().count("--out") == 1
    run(count, tmp_path, command(action, files, again, *more))
    assert results(again) == results(first)
    for path in first.glob("model-*"):
        assert path.read_bytes() == (again / path.name).read_bytes(), path.name


def test_ctrl_c_on_one_rank_keeps_trials_and_the_same_command_continues(
    files, tmp_path, uninterrupted
):
    out = tmp_path / "run"
    words = command("classify", files, out, *MANY)
    with Ranks(2, tmp_path / "streams", words, "causal") as ranks:
        wait_for_lines(out, 8)
        os.kill(ranks.processes[1].pid, signal.SIGINT)
        assert ranks.codes() == [130, 130], ranks.errors()
        assert "continue with" in (tmp_path / "streams" / "error0").read_text()
        assert (tmp_path / "streams" / "error1").read_text() == ""
    assert len(list(out.glob("model-*"))) < len(list(uninterrupted.glob("model-*")))
    run(2, tmp_path, words)
    assert_same_run(out, uninterrupted)


def test_ctrl_c_while_one_rank_works_for_all(files, tmp_path):
    out = tmp_path / "run"
    more = ["--encodings", "cape", "--embed-steps", "100000000"]
    words = [word for word in command("perturb", files, out) if word not in (SMALL[1], SMALL[3])]
    words = [word for word in words if word not in ("--encodings", "--embed-steps")]
    with Ranks(2, tmp_path / "streams", [*words, *more], "causal") as ranks:
        wait_for_lines(out, 4)  # the references; rank 0 then embeds the graph
        time.sleep(1)
        os.kill(ranks.processes[1].pid, signal.SIGINT)
        assert ranks.codes() == [130, 130], ranks.errors()


def test_a_killed_rank_ends_the_others_and_the_same_command_continues(
    files, tmp_path, uninterrupted
):
    out = tmp_path / "run"
    words = command("classify", files, out, *MANY)
    for killed in (1, 0):
        with Ranks(2, tmp_path / "streams", words, "causal") as ranks:
            wait_for_lines(out, 16 if killed == 0 else 6)
            ranks.processes[killed].kill()
            codes = ranks.codes()
            assert codes[killed] == -signal.SIGKILL and codes[1 - killed] == 1
            line = error(ranks)
            assert f"rank {killed} did not answer" in line
    run(2, tmp_path, words)
    assert_same_run(out, uninterrupted)


def test_a_rank_that_hangs_is_named(files, tmp_path):
    out = tmp_path / "run"
    words = ["--rank-timeout", "2", *command("classify", files, out, "--seeds", "1000")]
    with Ranks(3, tmp_path / "streams", words, "causal") as ranks:
        wait_for_lines(out, 3)
        os.kill(ranks.processes[1].pid, signal.SIGSTOP)
        for rank in (0, 2):
            ranks.processes[rank].join(60)
            assert ranks.processes[rank].exitcode == 1
        line = error(ranks)
        assert "rank 1 did not answer for" in line
        ranks.processes[1].join(15)
        assert ranks.processes[1].exitcode == -signal.SIGKILL


@pytest.mark.parametrize(
    "more, message",
    [
        (["--batch", "1"], "--batch: expected at least the 2 ranks, got 1"),
        (["--overwrite"], "--overwrite: not with torchrun"),
        (["--nonsense"], "unknown option --nonsense"),
        (["--train", "0.99"], "--train: expected a share that leaves rows for testing"),
    ],
)
def test_what_ranks_refuse_is_said_once(files, tmp_path, more, message):
    out = tmp_path / "run"
    words = command("classify", files, out)
    if more[0] in words:
        words[words.index(more[0]) + 1] = more[1]
        more = []
    with Ranks(2, tmp_path / "streams", [*words, *more], "causal") as ranks:
        assert ranks.codes() == [2, 2], ranks.errors()
        line = error(ranks)
        assert message in line
    assert not (out / "metrics.jsonl").exists()


def test_a_folder_that_cannot_be_made_is_said_once(files, tmp_path):
    (tmp_path / "file").write_text("x")
    words = command("classify", files, tmp_path / "file" / "run")
    with Ranks(2, tmp_path / "streams", words, "causal") as ranks:
        assert ranks.codes()[0] == 2 and 0 not in ranks.codes()
        line = error(ranks)
        assert "--out" in line


def test_a_table_that_has_changed_is_refused(files, tmp_path):
    out, table = tmp_path / "run", tmp_path / "own.csv"
    table.write_text(files[0].read_text())
    words = command("classify", (table, files[1]), out)
    run(2, tmp_path, words)
    table.write_text(files[0].read_text().replace("1", "2"))
    with Ranks(2, tmp_path / "streams", words, "causal") as ranks:
        assert ranks.codes() == [2, 2]
        line = error(ranks)
        assert "own.csv has changed since" in line


def test_other_commands_run_in_one_process(files, tmp_path):
    words = ["predict", "nowhere", files[0]]
    with Ranks(2, tmp_path / "streams", words, "causal") as ranks:
        assert ranks.codes() == [2, 2]
        line = error(ranks)
        assert "nsimplex causal predict: expected one process, got 2 ranks" in line


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_torchrun_restarts_after_a_killed_rank(
    files, tmp_path, subprocess_env, uninterrupted, killed
):
    out = tmp_path / "run"
    restart_after_a_kill(
        command("classify", files, out, *MANY), killed, out, 8, subprocess_env, "nsimplex.causal"
    )
    assert_same_run(out, uninterrupted)
