"""Records of trainings for TensorBoard, Weights & Biases and MLflow."""

import json
import os
import subprocess
import sys

import pytest
import torch
from writer_stand_ins import calls, write_stand_ins

from nsimplex import analysis, graph
from nsimplex._run_writers import WRITERS
from nsimplex.nn import MessagePassing, SimplicialAttention, TrainingLog, fit_graphs


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Stand-ins for both packages, and the file with their calls."""
    monkeypatch.syspath_prepend(str(write_stand_ins(tmp_path / "packages")))
    for name in ("wandb", "mlflow"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setenv("RECORDED", str(tmp_path / "calls"))
    yield tmp_path / "calls"
    for name in ("wandb", "mlflow"):
        sys.modules.pop(name, None)


def fitted(folder, log, **options):
    torch.manual_seed(1)
    at = torch.arange(12)
    data = graph.from_edge_index(
        torch.stack([at, (at + 1) % 12]),
        12,
        node_features=torch.stack([at % 2, at % 3], 1).float(),
        targets=(at % 3).float(),
        level="node",
    )
    model = MessagePassing("node", node_channels=2, width=8, layers=1)
    split = graph.Split(at[:6], at[6:9], at[9:])
    return fit_graphs(model, data, split, folder=folder, callbacks=[log], epochs=3, **options)


def lines(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_a_training_reaches_every_writer(tmp_path, recorded):
    run = tmp_path / "run"
    fitted(run, TrainingLog(run, ["wandb", "mlflow"]))
    *epochs, last = lines(run)
    numbers = [{f"graph_epoch/{k}": line[k] for k in ("loss", "mae", "rmse")} for line in epochs]
    assert calls(recorded, "wandb.init") == [["run", None, "run", None]]
    assert ["graph_epoch/*", "graph_epoch/step"] in calls(recorded, "wandb.define_metric")
    sent = [own for (own,) in calls(recorded, "wandb.log")]
    assert sent[:3] == [{"graph_epoch/step": n + 1, **own} for n, own in enumerate(numbers)]
    assert sent[3]["graph_fit/step"] == last["epoch"]
    assert sent[3]["graph_fit/test_mae"] == last["test_mae"]
    metrics = calls(recorded, "mlflow.log_metrics")
    assert metrics[:3] == [[own, n + 1] for n, own in enumerate(numbers)]
    for ended in ("wandb.finish", "mlflow.end_run"):
        assert len(calls(recorded, ended)) == 1


def test_a_resumed_run_goes_on_without_repeating_steps(tmp_path, recorded):
    for resume, steps in ((False, (1, 2, 3)), (True, (3, 4))):
        with TrainingLog(tmp_path / "run", ["wandb", "mlflow"], resume=resume) as log:
            for step in steps:
                log.write({"step": step, "loss": 1 / step})
    assert [own["training/step"] for (own,) in calls(recorded, "wandb.log")] == [1, 2, 3, 4]
    assert [step for _, step in calls(recorded, "mlflow.log_metrics")] == [1, 2, 3, 4]
    assert calls(recorded, "wandb.init")[1] == ["run", "w1", "run", "allow"]
    assert calls(recorded, "mlflow.start_run") == [[None, "run"], ["m1", None]]
    with TrainingLog(tmp_path / "run", ["mlflow"]) as log:  # another run in the same folder
        log.write({"step": 1, "loss": 1.0})
    assert calls(recorded, "mlflow.start_run")[-1] == [None, "run"]


def test_an_active_run_is_used_and_stays_open(tmp_path, recorded, monkeypatch):
    monkeypatch.setenv("ACTIVE", "1")
    with TrainingLog(tmp_path / "run", ["mlflow"]) as log:
        log.write({"step": 1, "loss": 1.0})
    assert calls(recorded, "mlflow.log_metrics") == [[{"training/loss": 1.0}, 1]]
    assert not calls(recorded, "mlflow.start_run") and not calls(recorded, "mlflow.end_run")


def test_series_are_apart_and_what_is_no_number_is_left_out(tmp_path, recorded):
    with TrainingLog(tmp_path / "run", ["mlflow"]) as log:
        for seed in (1, 2):
            log.write(
                {"kind": "graph_point", "task": "esol", "model": "gin", "seed": seed, "epoch": 1,
                 "step": 9, "loss": 0.5, "stopped": True, "bad": float("nan"), "none": None}
            )  # fmt: skip
        log.write({"kind": "encoding_mean", "encoding": "a,b", "mse": 1})
        log.write({"kind": "encoding_mean", "encoding": "a,b", "mse": 2})
    assert calls(recorded, "mlflow.log_metrics") == [
        [{"graph_point/esol gin 1/loss": 0.5}, 9],
        [{"graph_point/esol gin 2/loss": 0.5}, 9],
        [{"encoding_mean/a_b/mse": 1.0}, 1],
        [{"encoding_mean/a_b/mse": 2.0}, 2],
    ]


def test_a_writer_that_fails_does_not_end_the_training(tmp_path, recorded, monkeypatch):
    monkeypatch.setenv("BROKEN", "wandb")
    run = tmp_path / "run"
    with pytest.warns(UserWarning) as said:
        found = fitted(run, TrainingLog(run, ["wandb", "mlflow"]))
    assert found.epochs == 3 and len(calls(recorded, "mlflow.log_metrics")) == 4
    assert [str(own.message) for own in said] == [
        "[TrainingLog] wandb failed and gets no further records: no room left"
    ]


@pytest.mark.parametrize(
    ("writers", "said"),
    [
        (["neptune"], "[TrainingLog] writers: expected tensorboard, wandb or mlflow, got neptune"),
        (["mlflow"] * 2, "[TrainingLog] writers: expected each writer once, got mlflow twice"),
    ],
)
def test_wrong_writers_are_refused(tmp_path, recorded, writers, said):
    with pytest.raises(ValueError) as error:
        TrainingLog(tmp_path / "run", writers)
    assert str(error.value) == said and not (tmp_path / "run").exists()


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ModuleNotFoundError) as error:
        TrainingLog(tmp_path, ["wandb"])
    assert str(error.value) == (
        "[TrainingLog] writers: expected the package wandb, which is not installed: "
        "pip install wandb"
    )


def test_a_monitor_of_layers_shares_the_log(tmp_path, recorded):
    layer, x = SimplicialAttention(8, 2), torch.randn(1, 5, 8)
    log = TrainingLog(tmp_path, ["mlflow"])
    with (
        log,
        analysis.TrainingMonitor(
            layer, x, tmp_path, every=1, derivatives=False, log=log
        ) as monitor,
    ):
        monitor.step(3)
    ((numbers, step),) = calls(recorded, "mlflow.log_metrics")
    (line,) = lines(tmp_path)
    assert step == 3 and numbers["attention/0 /rank_after"] == line["rank_after"]
    with pytest.raises(ValueError, match=r"^\[TrainingMonitor\] tensorboard: expected None or Fal"):
        analysis.TrainingMonitor(layer, x, tmp_path, tensorboard=True, log=log)


def test_tensorboard_reads_what_a_training_wrote(tmp_path):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    fitted(tmp_path, TrainingLog(tmp_path, ["tensorboard"]))
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    losses = [line["loss"] for line in lines(tmp_path) if line["kind"] == "graph_epoch"]
    own = events.Scalars("graph_epoch/loss")
    assert [each.step for each in own] == [1, 2, 3]
    assert [each.value for each in own] == pytest.approx(losses)


FOLLOWER = "import sys; from nsimplex._followed_run import main; sys.exit(main())"


def follower(folder, recorded, subprocess_env, writers, **more):
    packages = recorded.parent / "packages"
    env = {**subprocess_env, "RECORDED": str(recorded), **more}
    env["PYTHONPATH"] = os.pathsep.join([str(packages), env["PYTHONPATH"]])
    return subprocess.Popen(
        [sys.executable, "-c", FOLLOWER, folder, writers, "no"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
        text=True,
    )


def test_a_follower_hands_over_lines_until_its_input_ends(tmp_path, recorded, subprocess_env):
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text('{"kind": "training", "step": 1, "train_loss": 2.5}\n')
    with follower(tmp_path, recorded, subprocess_env, "wandb,mlflow", BROKEN="wandb") as program:
        assert json.loads(program.stdout.readline()) == {"ready": True}
        program.stdin.write("begin\n")
        program.stdin.flush()
        with open(metrics, "a") as file:
            file.write('{"kind": "training", "step": 2, "train_loss": 1.5}\n{"kind": "tra')
        _, said = program.communicate(timeout=60)
    assert program.returncode == 0
    assert calls(recorded, "mlflow.log_metrics") == [
        [{"training/train_loss": 2.5}, 1],
        [{"training/train_loss": 1.5}, 2],
    ]
    assert said == (
        "nsimplex: warning: --log: wandb failed and gets no further records: no room left\n"
    )
    assert len(calls(recorded, "mlflow.end_run")) == 1


def test_a_follower_of_a_run_that_never_begins_opens_nothing(tmp_path, recorded, subprocess_env):
    with follower(tmp_path, recorded, subprocess_env, "mlflow") as program:
        program.communicate(timeout=60)
    assert program.returncode == 0 and not recorded.exists()


@pytest.fixture
def command(executable, tmp_path, recorded):
    """A command that finds the stand-ins where users have packages of their own."""
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    write_stand_ins(tmp_path / "home" / ".local" / "lib" / python / "site-packages")
    env = {**os.environ, "HOME": str(tmp_path / "home"), "NSIMPLEX_PYTHON": sys.executable}

    def run(*words, **more):
        return subprocess.run(
            [executable, *map(str, words)],
            env={**env, **more},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run


def steps_of(recorded, series):
    """The steps of a series of MLflow's calls."""
    rows = calls(recorded, "mlflow.log_metrics")
    return [step for numbers, step in rows if any(name.startswith(series) for name in numbers)]


def test_a_command_hands_its_lines_to_writers(tmp_path, recorded, command):
    text = tmp_path / "text.txt"
    text.write_text("to be or not to be " * 200)
    words = "lm train --dim 16 --layers 1 --heads 2 --context 16 --batch 2 --steps 6 --log-every 2"
    run = ("--text", text, "--out", "run", "--log", "mlflow,wandb")
    made = command(*words.split(), *run, BROKEN="wandb")
    assert made.returncode == 0, made.stderr
    lines_of_run = lines(tmp_path / "run")
    assert [line["step"] for line in lines_of_run] == steps_of(recorded, "training/") == [2, 4, 6]
    (numbers, _), *_ = calls(recorded, "mlflow.log_metrics")
    assert numbers["training/train_loss"] == lines_of_run[0]["train_loss"]
    said = [line for line in made.stderr.splitlines() if "warning" in line]
    assert said == [
        "nsimplex: warning: --log: wandb failed and gets no further records: no room left"
    ]
    assert len(calls(recorded, "mlflow.end_run")) == 1
    again = command("lm", "train", "--resume", "run")
    assert again.returncode == 0 and steps_of(recorded, "training/") == [2, 4, 6]


def test_a_command_of_graphs_goes_on_with_its_writers(tmp_path, recorded, command):
    rows = [f"{k},{(k + 1) % 30},{k % 2}" for k in range(30)]
    (tmp_path / "links.csv").write_text("source,target,sign\n" + "\n".join(rows) + "\n")
    words = "graph train links.csv --task edge --target sign --width 8 --layers 1 --epochs 2"
    made = command(*words.split(), "--out", "run", "--log", "mlflow")
    assert made.returncode == 0, made.stderr
    assert steps_of(recorded, "graph_epoch/") == [1, 2]
    assert 'log=["mlflow"]' in (tmp_path / "run" / "config.toml").read_text().replace(" ", "")
    again = command("graph", "train", "--resume", "run", "--log", "mlflow,wandb")
    assert again.returncode == 0, again.stderr
    assert steps_of(recorded, "graph_epoch/") == [1, 2]
    sent = [own for (own,) in calls(recorded, "wandb.log") if "graph_epoch/step" in own]
    assert [own["graph_epoch/step"] for own in sent] == [1, 2]  # of the whole run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "lm train --text text.txt --out run --log neptune",
            f"--log: expected one of {', '.join(WRITERS)}, got 'neptune'",
        ),
        (
            "lm train --text text.txt --out run --log mlflow,mlflow",
            "--log: expected each writer once, got mlflow twice",
        ),
    ],
)
def test_wrong_writers_of_a_command_are_one_line(tmp_path, command, words, said):
    (tmp_path / "text.txt").write_text("to be or not to be " * 200)
    made = command(*words.split())
    assert made.returncode == 2 and said in made.stderr and made.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_a_command_with_writers_makes_a_folder_of_its_own(tmp_path, recorded, command):
    (tmp_path / "table.csv").write_text("a,b\n" + "1,2\n3,5\n4,4\n" * 5)
    words = "causal task regress table.csv --splits 1 --seeds 1 --epochs 1 --encodings none"
    words += " --log mlflow"
    made = command(*words.split())
    assert made.returncode == 0, made.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    assert f"no --out was given; the run goes to runs/{folder.name}" in made.stderr
    assert folder.name.startswith("table-2") and (folder / "metrics.jsonl").exists()
    assert calls(recorded, "mlflow.log_metrics")


def test_a_follower_that_reports_another_error_is_not_ready(tmp_path, command):
    (tmp_path / "text.txt").write_text("to be or not to be " * 200)
    python = tmp_path / "python"
    python.write_text(
        """#!/bin/sh\necho '{"error": {"kind": "ranks", "text": "lost"}}'\ncat >&2\n"""
    )
    python.chmod(0o755)
    words = "lm train --text text.txt --out run --log mlflow"
    made = command(*words.split(), NSIMPLEX_PYTHON=str(python))
    assert made.returncode == 1 and made.stderr == "nsimplex: the Python of --log did not start\n"
