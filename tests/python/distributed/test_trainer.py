"""`nsimplex lm train` on several ranks: equal losses, equal bits, and ranks that are ended, that
hang or that disagree."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess

import pytest
from rank_processes import (
    HANG,
    Ranks,
    finish,
    new_store,
    restart_after_a_kill,
    torchrun,
    wait_for_lines,
)

TINY = (
    "--layers 2 --every 2 --width 16 --heads 2 --context 16 --lr 0.01 --warmup 2 "
    "--log-every 1 --threads 1 --json"
).split()
FEW_STEPS = "--batch 4 --steps 6 --eval-every 3 --checkpoint-every 2".split()
#: Long enough that a signal meets the ranks at work.
MANY_STEPS = "--batch 4 --steps 400 --eval-every 100 --checkpoint-every 10".split()


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(f"{i} squared is {i * i}; " for i in range(400)))
    return path


def command(text, out, steps=FEW_STEPS, *more):
    return ["train", "--text", text, "--out", out, *TINY, *steps, *more]


def metrics(out):
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def losses(out):
    """Every number of metrics.jsonl but the speed."""
    speed = "tokens_per_second"
    return [
        {name: x for name, x in line.items() if isinstance(x, (int, float)) and name != speed}
        for line in metrics(out)
    ]


CHOOSING = ["--sparse", "topk", "--indexer", "light", "--topk", "4", "--indexer-warmup", "2"]


@pytest.mark.parametrize(
    "count, more", [(2, CHOOSING), (4, ["--window", "4,8", "--accumulate", "2", "--bf16"])]
)
def test_ranks_have_the_losses_of_one_process_and_equal_bits(
    executable, text, tmp_path, count, more
):
    one, first, again = (tmp_path / name for name in ("one", "first", "again"))
    words = command(text, one, FEW_STEPS, *more)
    subprocess.run([executable, "lm", *words], check=True, capture_output=True)
    ranks = finish(count, tmp_path, command(text, first, FEW_STEPS, *more))
    finish(count, tmp_path, command(text, again, FEW_STEPS, *more))
    assert all(ranks.out(rank) == "" for rank in range(1, count))
    assert len(losses(first)) == len(losses(one)) == 6
    for got, want in zip(losses(first), losses(one), strict=True):
        assert got == pytest.approx(want, rel=2e-3 if "--bf16" in more else 1e-5)
    for name in ("checkpoint.safetensors", "model.safetensors"):
        assert (first / name).read_bytes() == (again / name).read_bytes()
    assert losses(first) == losses(again)
    assert sorted(path.name for path in first.iterdir()) == sorted(
        path.name for path in one.iterdir()
    )


def test_one_process_continues_the_run_of_two_ranks(executable, text, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    steps = "--batch 4 --steps 60 --eval-every 0 --checkpoint-every 10".split()
    subprocess.run([executable, "lm", *command(text, one, steps)], check=True, capture_output=True)
    words = command(text, two, steps)
    with Ranks(2, tmp_path / "streams", words) as ranks:
        wait_for_lines(two, 2)
        os.kill(ranks.processes[0].pid, signal.SIGINT)
        assert set(ranks.codes()) <= {0, 130}
    subprocess.run([executable, "lm", "train", "--resume", two], check=True, capture_output=True)
    for got, want in zip(losses(two), losses(one), strict=True):
        assert got == pytest.approx(want, rel=1e-5)


@pytest.fixture(scope="module")
def uninterrupted(text, tmp_path_factory):
    """The folder of a run of two ranks that nothing has disturbed."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    finish(2, folder, command(text, folder / "run", MANY_STEPS))
    return folder / "run"


def assert_same_run(out, want):
    assert losses(out) == losses(want)
    for name in ("checkpoint.safetensors", "model.safetensors"):
        assert (out / name).read_bytes() == (want / name).read_bytes(), name


def test_ctrl_c_on_one_rank_saves_and_the_same_command_continues(text, tmp_path, uninterrupted):
    out = tmp_path / "run"
    words = command(text, out, MANY_STEPS)
    with Ranks(2, tmp_path / "streams", words) as ranks:
        wait_for_lines(out, 5)
        os.kill(ranks.processes[1].pid, signal.SIGINT)
        assert ranks.codes() == [130, 130]
        assert "continue with" in (tmp_path / "streams" / "error0").read_text()
        assert "continue with" not in (tmp_path / "streams" / "error1").read_text()
    assert 5 <= len(losses(out)) < 400
    finish(2, tmp_path, words)
    assert_same_run(out, uninterrupted)


def test_a_killed_rank_ends_the_others_and_the_same_command_continues(
    text, tmp_path, uninterrupted
):
    out = tmp_path / "run"
    words = command(text, out, MANY_STEPS)
    for killed in (1, 0):
        seen = len(losses(out)) if out.exists() else 0
        with Ranks(2, tmp_path / "streams", words) as ranks:
            wait_for_lines(out, seen + 20)
            ranks.processes[killed].kill()
            codes = ranks.codes()
            assert codes[killed] == -signal.SIGKILL and codes[1 - killed] == 1
            line = ranks.error()
            assert f"rank {killed} did not answer" in line
    finish(2, tmp_path, words)
    assert_same_run(out, uninterrupted)


@pytest.mark.parametrize("how", [signal.SIGSTOP, HANG])
def test_a_rank_that_hangs_is_named(text, tmp_path, how):
    """It is killed if it was stopped, and ten seconds after the others have ended if it hangs."""
    out = tmp_path / "run"
    steps = ["--batch", "6", "--steps", "100000"]
    words = ["--rank-timeout", "2", *command(text, out, steps)]
    with Ranks(3, tmp_path / "streams", words) as ranks:
        wait_for_lines(out, 5)
        os.kill(ranks.processes[1].pid, how)
        for rank in (0, 2):
            ranks.processes[rank].join(60)
            assert ranks.processes[rank].exitcode == 1
        line = ranks.error()
        assert "rank 1 did not answer for" in line
        ranks.processes[1].join(15)
        assert ranks.processes[1].exitcode == -signal.SIGKILL


@pytest.mark.parametrize(
    "more, message",
    [
        (["--batch", "3"], "batch: expected a multiple of the 2 ranks, got 3"),
        (["--dropout", "0.5"], "dropout: expected 0 with several ranks, got 0.5"),
        (["--overwrite"], "--overwrite: not with torchrun"),
        (["--nonsense"], "unknown option --nonsense"),
    ],
)
def test_what_ranks_refuse_is_said_once(text, tmp_path, more, message):
    out = tmp_path / "run"
    with Ranks(2, tmp_path / "streams", command(text, out, more)) as ranks:
        assert ranks.codes() == [2, 2]
        line = ranks.error()
        assert message in line
    assert not out.exists()


def test_other_commands_run_in_one_process(text, tmp_path):
    with Ranks(2, tmp_path / "streams", ["eval", "nowhere", "--text", text]) as ranks:
        assert ranks.codes() == [2, 2]
        line = ranks.error()
        assert "nsimplex lm eval: expected one process, got 2 ranks" in line


def test_the_folder_of_another_run_is_refused(text, tmp_path):
    out = tmp_path / "run"
    finish(2, tmp_path, command(text, out))
    before = (out / "checkpoint.safetensors").read_bytes()
    with Ranks(2, tmp_path / "streams", command(text, out, FEW_STEPS, "--clip", "0.5")) as ranks:
        assert ranks.codes() == [2, 2]
        line = ranks.error()
        assert "is not empty" in line
    assert (out / "checkpoint.safetensors").read_bytes() == before


def test_torchrun_trains(text, tmp_path, subprocess_env):
    out = tmp_path / "run"
    finished = subprocess.run(
        [*torchrun(2), *command(text, out)], env=subprocess_env, capture_output=True, text=True
    )
    assert finished.returncode == 0, finished.stderr
    shown = [json.loads(line) for line in finished.stdout.splitlines() if line.startswith("{")]
    assert [line["step"] for line in shown] == [1, 2, 3, 4, 5, 6]


def test_ranks_join_on_the_store_of_ranks_that_are_gone(text, tmp_path):
    store = new_store()
    for number, pause in enumerate((0, 2)):
        words = command(text, tmp_path / f"run{number}", ["--batch", "6", "--steps", "2"])
        with Ranks(3, tmp_path / "streams", words, store=store, pause=pause) as ranks:
            assert ranks.codes() == [0, 0, 0], ranks.errors()


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_torchrun_restarts_after_a_killed_rank(
    text, tmp_path, subprocess_env, uninterrupted, killed
):
    out = tmp_path / "run"
    restart_after_a_kill(
        command(text, out, MANY_STEPS), killed, out, 30, subprocess_env, seconds=120
    )
    assert_same_run(out, uninterrupted)


@pytest.mark.slow
def test_ctrl_c_of_torchrun_saves(text, tmp_path, subprocess_env, uninterrupted):
    out = tmp_path / "run"
    words = [*torchrun(2), *command(text, out, MANY_STEPS)]
    with open(tmp_path / "log", "w") as log:
        agent = subprocess.Popen(words, env=subprocess_env, stdout=log, stderr=log)
        try:
            wait_for_lines(out, 30)
            agent.send_signal(signal.SIGINT)
            agent.wait(120)
        finally:
            agent.kill()
    assert "continue with" in (tmp_path / "log").read_text()
    finish(2, tmp_path, command(text, out, MANY_STEPS))
    assert_same_run(out, uninterrupted)
    shutil.rmtree(out)
