"""What callbacks of a training learn, what they may change, and what is refused."""

import json
import math

import pytest
import torch

from nsimplex import graph
from nsimplex.nn import MessagePassing, TrainingCallback, fit_graphs
from nsimplex.nn.graph_training import FitOptions, _rate


def fitted(folder=None, **options):
    torch.manual_seed(1)
    at = torch.arange(12)
    data = graph.from_edge_index(
        torch.stack([at, (at + 1) % 12]),
        12,
        node_features=torch.stack([at % 2, at % 3], 1).float(),
        targets=(at % 3).float(),
        level="node",
    )
    model = MessagePassing("node", dropout=0.2, node_channels=2, width=8, layers=1)
    split = graph.Split(at[:6], at[6:9], at[9:])
    return fit_graphs(model, data, split, folder=folder, **{"epochs": 4, **options}), model


def lines(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


class Recorder(TrainingCallback):
    def __init__(self):
        self.calls = []

    def on_train_begin(self, state):
        self.calls.append(("begin", state.epoch, state.epochs))

    def on_epoch_end(self, state):
        torch.rand(7)  # leaves the training as it is
        assert not state.model.training and state.optimizer.param_groups[0]["lr"] >= 0
        self.calls.append(("epoch", state.epoch, state.loss, dict(state.metrics), state.score))

    def on_train_end(self, state):
        self.calls.append(("end", state.result))


def test_callbacks_get_what_the_run_folder_has(tmp_path):
    recorder, seen = Recorder(), []
    found, model = fitted(tmp_path, callbacks=[recorder, lambda state: seen.append(state.epoch)])
    begin, *epochs, end = recorder.calls
    assert begin == ("begin", 0, 4) and end == ("end", found) and seen == [1, 2, 3, 4]
    *written, last = lines(tmp_path)
    assert last["kind"] == "graph_fit"
    for line, (_, epoch, loss, metrics, score) in zip(written, epochs, strict=True):
        assert line == {"kind": "graph_epoch", "epoch": epoch, "loss": loss, **metrics}
        assert score == -metrics["mae"]
    plain, alone = fitted()
    assert plain == found
    for own, other in zip(model.parameters(), alone.parameters(), strict=True):
        assert torch.equal(own, other)


def test_a_callback_stops_the_training_and_a_resumed_run_knows(tmp_path):
    def stop(state):
        state.stop = state.epoch == 2

    found, _ = fitted(tmp_path, callbacks=[stop])
    assert found.epochs == 2
    recorder = Recorder()
    assert fitted(tmp_path, resume=True, callbacks=[recorder])[0] == found
    assert recorder.calls == [("begin", 2, 4), ("end", found)]


def test_a_callback_adds_metrics_and_chooses_the_best_epoch(tmp_path):
    def judge(state):
        state.metrics["own"] = torch.tensor(float(state.epoch))
        state.score = -abs(state.epoch - 3)

    assert fitted(tmp_path, callbacks=[judge])[0].best == 3
    assert [line["own"] for line in lines(tmp_path)[:4]] == [1.0, 2.0, 3.0, 4.0]


def test_an_exception_of_a_callback_leaves_whole_files(tmp_path, monkeypatch):
    monkeypatch.setattr("nsimplex.nn.graph_training._SAVE_SECONDS", 0.0)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    expected, _ = fitted(whole)

    def fail(state):
        if state.epoch == 3:
            raise RuntimeError("from a callback")

    with pytest.raises(RuntimeError, match="from a callback"):
        fitted(broken, callbacks=[fail])
    assert [line["epoch"] for line in lines(broken)] == [1, 2]
    assert fitted(broken, resume=True)[0] == expected
    assert (broken / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def leave(**values):
    def callback(state):
        state.metrics |= values
        state.score = values.get("score", state.score)

    return callback


@pytest.mark.parametrize(
    ("callbacks", "said"),
    [
        ([3], "callbacks[0]: expected"),
        ([Recorder], "callbacks: expected objects, got the class Recorder"),
        ([leave(f1="high")], "callbacks: expected numbers in state.metrics and state.score, got "),
        ([leave(score=None)], "callbacks: expected numbers in state.metrics and state.score, got "),
        ([leave(loss=1.0)], "callbacks: expected another metric than 'loss'"),
    ],
)
def test_what_is_no_callback_or_no_metric_is_refused(callbacks, said):
    with pytest.raises((TypeError, ValueError)) as error:
        fitted(callbacks=callbacks)
    assert str(error.value).startswith(f"[fit_graphs] {said}") and "\n" not in str(error.value)


def test_a_method_that_no_training_calls_is_refused():
    with pytest.raises(TypeError, match=r"^\[Wrong\] expected methods of .*, got on_epoch_start$"):

        class Wrong(TrainingCallback):
            def on_epoch_start(self, state):
                pass


def rates(schedule, steps=8, warmup=2):
    options = FitOptions(warmup=warmup, schedule=schedule)
    return [_rate(options, step, steps) for step in range(steps)]


def test_the_schedule_of_the_rate():
    assert rates("constant") == [0.5] + [1.0] * 7
    assert rates("linear", warmup=0) == [1 - step / 8 for step in range(8)]
    cosine = [0.5 * (1 + math.cos(math.pi * step / 8)) for step in range(8)]
    assert rates("cosine", warmup=0) == pytest.approx(cosine, abs=1e-6)
    assert rates(lambda step, steps: step / steps, warmup=0) == [step / 8 for step in range(8)]
    seen = []
    callback = lambda state: seen.append(state.optimizer.param_groups[0]["lr"])
    fitted(schedule="constant", warmup=0, learning_rate=0.25, callbacks=[callback])
    assert seen == [0.25] * 4


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ("step", "expected cosine, linear, constant or a function, got 'step'"),
        (lambda step, steps: -1.0, "expected a number from 0 on, got -1.0 in step 0"),
        (lambda step, steps: None, "expected a number from 0 on, got None in step 0"),
    ],
)
def test_a_wrong_schedule_is_refused(schedule, said):
    with pytest.raises(ValueError) as error:
        fitted(schedule=schedule)
    assert str(error.value) == f"[fit_graphs] schedule: {said}"


def test_a_run_folder_records_a_schedule_other_than_the_usual_one(tmp_path):
    def slow(step, steps):
        return 0.1

    for name, schedule in (("usual", "cosine"), ("line", "linear"), ("own", slow)):
        fitted(tmp_path / name, epochs=1, schedule=schedule)
    text = {own.name: (own / "config.toml").read_text() for own in tmp_path.iterdir()}
    assert "schedule" not in text["usual"] and 'schedule = "linear"' in text["line"]
    assert "slow" in text["own"]
    with pytest.raises(ValueError, match="resume: expected the options of the run"):
        fitted(tmp_path / "line", epochs=1, resume=True)
