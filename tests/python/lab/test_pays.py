"""The benchmark of orders: equal costs, trainings and their files, bad input."""

from __future__ import annotations

import json

import pytest
import torch
from pays_batches import drawn

from nsimplex.lab.pays import TASKS, ModelSpec, Network, fit_size
from nsimplex.lab.pays.__main__ import main
from nsimplex.lab.pays.compared_models import cost
from nsimplex.lab.pays.paired_training import append_line, loss_of, machine, read_lines
from nsimplex.lab.pays.speed import by_turns, ratios


@pytest.mark.parametrize("name", ["1x4", "1+2x2", "2x1:topk4", "2x1:linear"])
def test_models_cost_what_the_reference_costs(name):
    task = TASKS["joint-recall"]
    reference = cost(task, ModelSpec.parse("2x1"), 32, 128)
    size = fit_size(task, ModelSpec.parse(name), reference.flops)
    assert 0.97 * reference.flops <= size.flops <= 1.005 * reference.flops
    equal = fit_size(task, ModelSpec.parse(name), reference.parameters, "parameters")
    assert 0.95 * reference.parameters <= equal.parameters <= reference.parameters


def test_the_flops_of_a_layer_of_order_one_are_those_of_its_products():
    task = TASKS["single-key-recall"]
    length = drawn("single-key-recall").fields.shape[1]
    dim, hidden = 32, 64
    products = 4 * dim * dim + 3 * dim * hidden + task.classes * dim + 2 * length * dim
    assert cost(task, ModelSpec.parse("1x1"), dim, hidden).flops == 2 * length * products


@pytest.mark.parametrize("name", ["1x1", "2x1", "1+2x1", "3x1"])
def test_a_causal_network_sees_no_later_token(name):
    torch.manual_seed(0)
    network = Network(TASKS["induction"], ModelSpec.parse(name), 16, 2, 32)
    batch = drawn("induction", 1)
    changed = batch.fields.clone()
    changed[:, 20:] = (changed[:, 20:] + 1) % 6
    before, after = network(batch), network(batch._replace(fields=changed))
    torch.testing.assert_close(before[:, :20], after[:, :20])
    assert not torch.allclose(before[:, 20:], after[:, 20:])


@pytest.mark.parametrize("name", ["single-key-recall", "made-table"])
def test_losses_skip_tokens_without_a_target(name):
    batch = drawn(name)
    outputs = torch.randn(*batch.targets.shape, TASKS[name].classes or 1)
    known = batch.targets >= 0 if TASKS[name].classes else ~batch.targets.isnan()
    changed = torch.where(known.unsqueeze(-1), outputs, outputs + 1)
    assert torch.equal(loss_of(TASKS[name], outputs, batch), loss_of(TASKS[name], changed, batch))


def test_a_run_learns_is_repeated_and_continued(tmp_path, capsys):
    out = tmp_path / "pays.jsonl"
    call = ["bag-of-tokens", "--models", "1x1", "--seeds", "2", "--rates", "0.003,0.01"]
    call += ["--steps", "40", "--out", str(out)]
    assert main(call) == 0
    lines = read_lines(out)
    runs = [line for line in lines if line["kind"] == "run"]
    assert [(line["rate"], line["seed"]) for line in runs[:2]] == [(0.003, 1), (0.01, 1)]
    assert [line["seed"] for line in runs] == [1, 1, 2]
    assert all(line["score"] > 0.35 for line in runs)
    assert all(line["curve"][-1][0] == 40 for line in runs)
    assert main(call) == 0
    assert read_lines(out) == lines  # nothing is run again
    whole = out.read_bytes()
    out.write_bytes(whole[:-40])  # a run that was interrupted while it wrote
    assert main(call) == 0
    timed = ("seconds", "level_seconds", "curve")
    steady = lambda found: [{k: v for k, v in line.items() if k not in timed} for line in found]
    assert steady(read_lines(out)) == steady(lines)
    capsys.readouterr()
    assert main(["--table", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "### bag-of-tokens (accuracy)" in shown and "| 1x1 |" in shown


def test_a_model_that_equal_flops_cannot_pay_is_said_to_be_skipped(tmp_path, capsys):
    out = tmp_path / "pays.jsonl"
    call = ["induction", "--quick", "--models", "3x1", "--width", "8"]
    assert main([*call, "--out", str(out)]) == 0
    (line,) = read_lines(out)
    assert line["kind"] == "skipped" and line["steps"] < 5
    assert "induction 3x1: skipped, equal flops leave" in capsys.readouterr().out


class _Clock:
    """Seconds that pass only while a step of this many seconds runs, at a speed of the machine."""

    def __init__(self, *seconds):
        self.now, self.speed, self.calls = 0.0, 1.0, []
        self.steps = [self._step(place, each) for place, each in enumerate(seconds)]

    def _step(self, place, seconds):
        def step():
            self.calls.append(place)
            self.now += seconds * self.speed

        return step


def test_models_are_timed_by_turns():
    clock = _Clock(2.0, 1.0, 6.0)
    times = by_turns(clock.steps, rounds=3, each=2, clock=lambda: clock.now)
    warm, forth = [0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 2, 2]
    assert clock.calls == [*warm, *forth, *forth[::-1], *forth]
    assert times == [[2.0] * 3, [1.0] * 3, [6.0] * 3]
    assert ratios(times) == [1.0, 0.5, 3.0]
    # A machine that slows down from round to round has the same ratios.
    assert ratios([[2.0, 4.0, 9.0], [1.0, 2.0, 4.5]]) == [1.0, 0.5]


def timed(monkeypatch, *seconds):
    """Seconds per step of the reference and of others, in place of those of a clock."""
    monkeypatch.setattr(
        "nsimplex.lab.pays.paired_training.by_turns", lambda steps: [[each] * 3 for each in seconds]
    )


def test_equal_seconds_are_steps_by_measured_ratios(tmp_path, monkeypatch, capsys):
    out = tmp_path / "pays.jsonl"
    call = ["bag-of-tokens", "--quick", "--equal", "seconds", "--width", "8", "--out", str(out)]
    timed(monkeypatch, 0.02, 0.01, 0.1)
    assert main([*call, "--models", "1x1,2x1,1x2"]) == 0
    lines = read_lines(out)
    speeds = {line["model"]: line for line in lines if line["kind"] == "speed"}
    assert {name: line["step_ratio"] for name, line in speeds.items()} == {
        "1x1": 0.5, "2x1": 1.0, "1x2": 5.0
    }  # fmt: skip
    assert speeds["1x1"]["step_seconds"] == 0.01
    assert all(line["reference_seconds"] == 0.02 for line in speeds.values())
    runs = {line["model"]: line for line in lines if line["kind"] == "run"}
    assert {name: line["steps"] for name, line in runs.items()} == {"1x1": 40, "2x1": 20}
    assert runs["1x1"]["step_ratio"] == 0.5 and runs["1x1"]["step_seconds"] == 0.01
    assert all(line["machine"] == machine() and line["equal"] == "seconds" for line in lines)
    assert "1x2: skipped, equal seconds leave 4 of 20 steps" in capsys.readouterr().out
    (skipped,) = [line for line in lines if line["kind"] == "skipped"]
    assert skipped["model"] == "1x2" and skipped["steps"] == 4
    # The widths are those of equal flops.
    assert main([*call[:2], *call[4:], "--models", "1x1"]) == 0
    same = ("dim", "hidden", "flops", "parameters")
    assert [read_lines(out)[-1][name] for name in same] == [runs["1x1"][name] for name in same]


def test_equal_seconds_continue_with_the_steps_they_began_with(tmp_path, monkeypatch, capsys):
    out = tmp_path / "pays.jsonl"
    call = ["bag-of-tokens", "--equal", "seconds", "--width", "8", "--out", str(out)]
    call += ["--steps", "20", "--rates", "0.01"]
    timed(monkeypatch, 0.02, 0.01)
    assert main([*call, "--models", "1x1", "--seeds", "1"]) == 0
    timed(monkeypatch, 0.02, 0.016)  # of the new model; the other one is not measured again
    assert main([*call, "--models", "1x1,1x2", "--seeds", "2"]) == 0
    lines = read_lines(out)
    runs = [(x["model"], x["seed"], x["steps"]) for x in lines if x["kind"] == "run"]
    assert runs == [("1x1", 1, 40), ("1x1", 2, 40), ("1x2", 1, 25), ("1x2", 2, 25)]
    assert [x["model"] for x in lines if x["kind"] == "speed"] == ["1x1", "1x2"]
    out.write_text("".join(json.dumps(line | {"machine": "another"}) + "\n" for line in lines))
    capsys.readouterr()
    assert main([*call, "--models", "1x1"]) == 2
    assert capsys.readouterr().err == (
        "nsimplex: --equal seconds: --out has seconds of machine 'another', expected "
        f"{machine()!r}; name another --out\n"
    )


def test_full_compares_at_every_equal_cost(tmp_path, monkeypatch, capsys):
    out = tmp_path / "pays.jsonl"
    call = ["bag-of-tokens", "--quick", "--models", "1x1,2x1", "--width", "8", "--out", str(out)]
    timed(monkeypatch, 0.02, 0.01)
    assert main([*call, "--full"]) == 0
    runs = [line for line in read_lines(out) if line["kind"] == "run"]
    costs = ["flops", "flops", "parameters", "parameters", "seconds", "seconds"]
    assert [line["equal"] for line in runs] == costs
    capsys.readouterr()
    assert main(["--table", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert all(f"### Equal {equal}\n" in shown for equal in ("flops", "parameters", "seconds"))


def test_a_layer_of_a_user_runs(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(
        "import torch\n"
        "class Mean(torch.nn.Module):\n"
        "    def __init__(self, dim, heads, causal, rotary):\n"
        "        super().__init__()\n"
        "        self.value = torch.nn.Linear(dim, dim)\n"
        "    def forward(self, x):\n"
        "        return self.value(x.mean(1, keepdim=True)).expand_as(x)\n"
        "class Narrow(Mean):\n"
        "    def forward(self, x):\n"
        "        return x[..., :3]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    out = tmp_path / "pays.jsonl"
    call = ["bag-of-tokens", "--quick", "--models", "1x1", "--depth", "1", "--out", str(out)]
    assert main([*call, "--layer", "mine:Mean"]) == 0
    assert [line["model"] for line in read_lines(out)] == ["1x1", "Meanx1"]
    capsys.readouterr()
    assert main([*call, "--layer", "mine:Narrow"]) == 2
    assert capsys.readouterr().err == (
        "nsimplex: --layer: expected an output of [2, 5, 32], got [2, 5, 3]\n"
    )
    assert main([*call, "--layer", "mine:Absent"]) == 2
    assert "expected MODULE:NAME, got 'mine:Absent'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "call, said",
    [
        ([], "TASK: expected the name of a task or --all"),
        (["match9"], "TASK: expected one of joint-recall, "),
        (["copy", "--models", "5x1"], "--models: expected ORDERxDEPTH"),
        (["copy", "--models", "1+2x1:topk4"], "--models: expected one order beside topk4"),
        (["copy", "--rates", "0"], "--rates: expected numbers above 0, got '0'"),
        (["copy", "--rates", "nan"], "--rates: expected numbers above 0"),
        (["copy", "--seeds", "0"], "--seeds: expected numbers above 0"),
        (["copy", "--steps", "-1"], "--steps: expected 0 or more, got -1"),
        (["copy", "--full", "--equal", "seconds"], "--equal: expected nothing beside --full"),
        (["copy", "--equal", "time"], "argument --equal: invalid choice: 'time'"),
        (["copy", "--width", "12"], "--width: expected a multiple of 8, got 12"),
        (["copy", "--layer", "torch"], "--layer: expected MODULE:NAME"),
        (["copy", "--seeds", "x"], "argument --seeds: invalid int value"),
        (["copy", "--quick", "--out", "absent/pays.jsonl"], "there is no folder absent"),
        (["copy", "--quick", "--out", "."], "cannot write .: it is a folder"),
        (["--table", "--out", "absent.jsonl"], "--out: expected results, found none"),
    ],
)
def test_bad_input_is_one_line(call, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(call) == 2
    trained, message = capsys.readouterr()
    assert (
        trained == ""
        and message.startswith("nsimplex: ")
        and said in message
        and message.count("\n") == 1
    )


def test_a_file_of_something_else_is_refused(tmp_path, capsys):
    out = tmp_path / "pays.jsonl"
    out.write_text('{"kind": "run"}\n7\n')
    assert main(["copy", "--quick", "--out", str(out)]) == 2
    assert "line 2: expected a JSON object" in capsys.readouterr().err
    append_line(out, {"a": 1})
    assert out.read_text().splitlines()[-1] == '{"a": 1}'


def test_molecules_without_their_file_are_skipped(monkeypatch, capsys, tmp_path):
    monkeypatch.delenv("NSIMPLEX_DATA", raising=False)
    assert main(["molecules", "--quick", "--out", str(tmp_path / "pays.jsonl")]) == 0
    assert capsys.readouterr().out == (
        "molecules: skipped, NSIMPLEX_DATA has no molecules/delaney.csv\n"
    )
