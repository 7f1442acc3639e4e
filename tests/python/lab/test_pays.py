"""The benchmark of orders: generators against definitions, equal costs, files of results."""

from __future__ import annotations

import itertools
import json

import pytest
import torch

from nsimplex.lab.pays import TASKS, ModelSpec, Network, fit_size
from nsimplex.lab.pays.__main__ import main
from nsimplex.lab.pays.figure import gain_text
from nsimplex.lab.pays.models import cost
from nsimplex.lab.pays.speed import by_turns, ratios
from nsimplex.lab.pays.summary import compare, interval, summarize
from nsimplex.lab.pays.tables import table
from nsimplex.lab.pays.training import append_line, loss_of, machine, read_lines

HERE = [name for name, task in TASKS.items() if not task.missing()]


def drawn(name, count=8, seed=3, split="train"):
    return TASKS[name].draw(count, torch.Generator().manual_seed(seed), split)


@pytest.mark.parametrize("name", HERE)
def test_a_generator_is_what_its_task_says(name):
    task = TASKS[name]
    for split in ("train", "valid", "test", *(["long"] if task.longer else [])):
        batch = drawn(name, split=split)
        assert batch.fields.shape[:2] == batch.targets.shape
        assert batch.fields.shape[2] == len(task.fields)
        for field, size in enumerate(task.fields):
            codes = batch.fields[..., field]
            assert codes.min() >= 0 and codes.max() < size
        assert (batch.numbers is None) == (task.numbers == 0)
        if task.classes:
            assert batch.targets.dtype == torch.int64
            assert batch.targets.min() >= -1 and 0 <= batch.targets.max() < task.classes
        again = drawn(name, split=split)
        assert torch.equal(batch.fields, again.fields)
        assert torch.equal(batch.targets.nan_to_num(-7), again.targets.nan_to_num(-7))
    assert len(task.reason) > 60 and "\n" not in task.reason


@pytest.mark.parametrize("name", [name for name in HERE if TASKS[name].longer])
def test_longer_inputs_are_longer_or_chains_are(name):
    longer = drawn(name, split="long").fields.shape[1] > drawn(name).fields.shape[1]
    assert longer != (name == "composition")


def test_joint_recall_asks_for_the_value_of_two_keys():
    batch = drawn("joint-recall", 40)
    ambiguous = 0
    for tokens, targets in zip(batch.fields.tolist(), batch.targets.tolist()):
        first = {token[3]: token[1] for token in tokens if token[0] == 0}
        stored = [(first[t[3]], t[2], t[4] - 1) for t in tokens if t[0] == 1]
        for token, target in zip(tokens, targets):
            assert (target >= 0) == (token[0] == 2)
            if token[0] == 2:
                assert [v for a, b, v in stored if (a, b) == (token[1], token[2])] == [target]
                ambiguous += len({v for a, b, v in stored if b == token[2]}) > 1
    assert ambiguous > 60


def test_recall_of_one_key_has_unique_keys():
    batch = drawn("single-key-recall")
    for tokens, targets in zip(batch.fields.tolist(), batch.targets.tolist()):
        stored = {token[1]: token[2] - 1 for token in tokens if token[0] == 0}
        assert len(stored) == sum(token[0] == 0 for token in tokens)
        for token, target in zip(tokens, targets):
            assert target == (stored[token[1]] if token[0] == 1 else -1)


@pytest.mark.parametrize("split", ["train", "long"])
def test_composition_multiplies_permutations_along_the_chain(split):
    group = list(itertools.permutations(range(3)))
    spans = set()
    batch = drawn("composition", 40, split=split)
    for tokens, targets in zip(batch.fields.tolist(), batch.targets.tolist()):
        after = {token[1]: (token[2], group[token[3] - 1]) for token in tokens if token[0] == 0}
        for token, target in zip(tokens, targets):
            if token[0] == 0:
                assert target == -1
                continue
            at, product, span = token[1], (0, 1, 2), 0
            while at != token[2]:
                at, relation = after[at]
                product = tuple(relation[place] for place in product)
                span += 1
            assert group[target] == product
            spans.add(span)
    assert spans == ({4, 5, 6} if split == "long" else {1, 2, 3})


def test_triangles_and_paths():
    batch = drawn("triangles")
    for tokens, targets in zip(batch.fields.tolist(), batch.targets.tolist()):
        edges = {tuple(token) for token in tokens}
        assert len(edges) == len(tokens) and all((v, u) in edges for u, v in edges)
        for (u, v), target in zip(tokens, targets):
            assert target == any((u, w) in edges and (w, v) in edges for w in range(12))
    batch = drawn("closure", 40)
    answers = []
    for tokens, targets in zip(batch.fields.tolist(), batch.targets.tolist()):
        edges = {(u, v) for kind, u, v in tokens if kind == 0}
        for (kind, u, v), target in zip(tokens, targets):
            reached = {u}
            for _ in range(3):
                reached |= {b for a, b in edges if a in reached}
            assert target == (int(v in reached) if kind else -1)
            answers += [target] if kind else []
    assert 0.35 < sum(answers) / len(answers) < 0.65


def test_sums():
    batch = drawn("three-sums")
    for x, targets in zip(batch.fields[..., 0].tolist(), batch.targets.tolist()):
        for place, target in enumerate(targets):
            others = [x[i] for i in range(len(x)) if i != place]
            pairs = itertools.combinations(others, 2)
            assert target == any((x[place] + a + b) % 17 == 0 for a, b in pairs)
    batch = drawn("two-sums")
    for x, targets in zip(batch.fields[..., 0].tolist(), batch.targets.tolist()):
        for place, target in enumerate(targets):
            others = [x[i] for i in range(len(x)) if i != place]
            triples = itertools.permutations(others, 3)
            assert target == any((x[place] + a - b - c) % 31 == 0 for a, b, c in triples)


def test_induction_repeats_what_followed_the_same_two_symbols():
    batch = drawn("induction")
    for x, targets in zip(batch.fields[..., 0].tolist(), batch.targets.tolist()):
        for place, target in enumerate(targets):
            if target < 0:
                continue
            seen = [j for j in range(1, place) if x[j - 1 : j + 1] == x[place - 1 : place + 1]]
            assert target == x[place + 1] == x[seen[-1] + 1]


def test_brackets_ask_for_the_innermost_open_one():
    batch = drawn("brackets")
    for x, targets in zip(batch.fields[..., 0].tolist(), batch.targets.tolist()):
        stack = []
        for code, target in zip(x, targets):
            if code < 3:
                stack.append(code)
            else:
                assert stack.pop() == code - 3
            assert target == (stack[-1] + 1 if stack else 0)


def test_formulas_and_words_of_the_grammar_have_their_values():
    from nsimplex.lab.pays.sequences import _FUNCTIONS as functions

    batch = drawn("formulas")
    for tokens, targets in zip(batch.fields.tolist(), batch.targets.tolist()):
        nodes = {token[0] + 1: token for token in tokens}

        def value(name, nodes=nodes):
            _, left, right, function, leaf = nodes[name]
            if leaf:
                return leaf - 1
            return int(functions[function - 1, value(left), value(right)])

        for token, target in zip(tokens, targets):
            assert target == (-1 if token[4] else value(token[0] + 1))
    batch = drawn("grammar")
    for x, targets in zip(batch.fields[..., 0].tolist(), batch.targets.tolist()):

        def part(at, x=x):
            if x[at] >= 4:
                return at + 1, x[at] - 4
            middle, a = part(at + 1)
            end, b = part(middle)
            return end, int(functions[x[at], a, b])

        for place, target in enumerate(targets):
            assert target == (-1 if x[place] >= 4 else part(place)[1])
        assert part(0)[0] == len(x)


def test_energies_are_sums_over_pairs_of_neighbours():
    batch = drawn("three-body", 2)
    for places, energies in zip(batch.numbers.double(), batch.targets):
        for i, energy in enumerate(energies.tolist()):
            total = 0.0
            for j, k in itertools.combinations([j for j in range(len(places)) if j != i], 2):
                a, b = places[j] - places[i], places[k] - places[i]
                cosine = (a @ b) / (a.norm() * b.norm())
                total += torch.exp(-2 * (a @ a + b @ b)) * cosine**2
            assert energy == pytest.approx(4 * float(total), rel=1e-3, abs=1e-5)


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
    call = ["induction", "--quick", "--models", "3x1", "--dim", "8"]
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
        "nsimplex.lab.pays.training.by_turns", lambda steps: [[each] * 3 for each in seconds]
    )


def test_equal_seconds_are_steps_by_measured_ratios(tmp_path, monkeypatch, capsys):
    out = tmp_path / "pays.jsonl"
    call = ["bag-of-tokens", "--quick", "--equal", "seconds", "--dim", "8", "--out", str(out)]
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
    call = ["bag-of-tokens", "--equal", "seconds", "--dim", "8", "--out", str(out)]
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
    call = ["bag-of-tokens", "--quick", "--models", "1x1,2x1", "--dim", "8", "--out", str(out)]
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
        (["copy", "--dim", "12"], "--dim: expected a multiple of 8, got 12"),
        (["copy", "--layer", "torch"], "--layer: expected MODULE:NAME"),
        (["copy", "--seeds", "x"], "argument --seeds: invalid int value"),
        (["copy", "--quick", "--out", "absent/pays.jsonl"], "No such file"),
        (["--table", "--out", "absent.jsonl"], "--out: expected results, found none"),
    ],
)
def test_bad_input_is_one_line(call, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(call) == 2
    message = capsys.readouterr().err
    assert message.startswith("nsimplex: ") and said in message and message.count("\n") == 1


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


def made_line(model, seed, value, rate=0.01, valid=None, **others):
    return dict(
        kind="run", task="copy", metric="accuracy", model=model, depth=1, seed=seed,
        rate=rate, score=value, valid=value if valid is None else valid, long=None, dim=8,
        hidden=16, parameters=1, steps=2, level_step=None, level_seconds=None, norm="none",
        equal="flops",
    ) | others  # fmt: skip


def test_intervals_and_paired_gains():
    mean, half = interval([0.5, 0.6, 0.7])
    assert mean == pytest.approx(0.6)
    assert half == pytest.approx(4.303 * 0.1 / 3**0.5)
    line = made_line
    lines = [line("1x1", 1, 0.5), line("1x1", 2, 0.6), line("1x2", 1, 0.7), line("1x2", 2, 0.9)]
    lines += [line("2x1", 1, 0.8), line("2x1", 2, 0.8), line("2x1", 1, 0.9, 0.1, valid=0.1)]
    rows = {row.model: row for row in summarize(lines)}
    assert rows["2x1"].scores == [0.8, 0.8]
    assert rows["2x1"].gain == pytest.approx([0.1, -0.1])
    assert rows["1x1"].gain == pytest.approx([-0.2, -0.3])
    assert "| 2x1 | 8 x 16 | 1 | 2 | 0.01 | 2 | 0.800 ± 0.000 |" in table(lines)
    assert json.dumps(lines[0])


def test_a_comparison_has_the_best_model_of_each_order():
    line = made_line
    lines = [line("1x1", 1, 0.5), line("1x2", 1, 0.7), line("2x1", 1, 0.8), line("2x2", 1, 0.6)]
    lines += [line("2x1", 1, 0.9, task="bag-of-tokens")]
    both, alone = compare(lines)
    assert (both.first.model, both.second.model) == ("1x2", "2x1")
    assert both.gain == pytest.approx([0.1])
    assert alone.first is None and alone.gain == []
    shown = table(lines).splitlines()[2:]
    assert shown[0] == "| task | 1x1 | 1x2 | 2x1 | 2x2 | order 2 against order 1 |"
    assert shown[2] == "| copy (accuracy) | 0.500 | 0.700 | 0.800 | 0.600 | +0.100 |"
    assert shown[3] == "| bag-of-tokens (accuracy) |  |  | 0.900 |  |  |"


def test_runs_of_different_settings_are_not_mixed():
    line = made_line
    lines = [line("1x1", 1, 0.5), line("1x1", 2, 0.5), line("1x1", 1, 0.9, norm="qk")]
    lines += [line("1x1", 1, 0.6, steps=4), line("1x1", 1, 0.3, equal="parameters")]
    rows = {row.model: row for row in summarize(lines)}
    assert set(rows) == {"1x1", "1x1 (QK norm)", "1x1 (equal parameters)"}
    assert rows["1x1"].scores == [0.6]
    assert rows["1x1 (QK norm)"].scores == [0.9]


def test_models_are_compared_at_equal_cost():
    """A wider model of order 1, of equal parameters, is no peer of models of equal flops."""
    line = made_line
    lines = [line("1x1", 1, 0.5), line("2x1", 1, 0.6)]
    lines += [
        line(name, 1, value, equal="parameters") for name, value in (("1x1", 0.9), ("2x1", 0.7))
    ]
    rows = {row.model: row for row in summarize(lines)}
    assert rows["2x1"].gain == pytest.approx([0.1])
    assert rows["2x1 (equal parameters)"].gain == pytest.approx([-0.2])
    (both,) = compare(lines)
    assert (both.first.model, both.second.model) == ("1x1", "2x1")
    assert both.gain == pytest.approx([0.1])
    (only,) = compare(lines[2:])
    assert only.gain == pytest.approx([-0.2])


def test_the_table_says_how_many_layers_an_order_needs():
    line = made_line
    reached = dict(level_step=60, level_seconds=2.0)
    lines = []
    for seed in (1, 2):
        lines += [line("1x1", seed, 0.5), line("1x4", seed, 0.95, depth=4, **reached)]
        lines += [line("1x2", seed, 0.7, depth=2, **(reached if seed == 1 else {}))]
        lines += [line("2x1", seed, 0.7, task="two-sums"), line("1x1", seed, 0.6, task="two-sums")]
        lines += [line("2x1", seed, 0.6), line("1x6 (QK norm)", seed, 0.9, depth=6, **reached)]
    shown = table(lines)
    start = shown.index("### Layers that an order needs")
    rows = shown[start:].splitlines()[4:6]
    assert rows == [
        "| copy (accuracy) | 0.9 | 4 layers: 60, 2 s | not with 1 |  | 2 layers |",
        "| two-sums (accuracy) | 0.9 | not with 1 | not with 1 |  | not with 1 |",
    ]
    some = table([each for each in lines if each["depth"] != 4])
    assert "| copy (accuracy) | 0.9 | 2 layers: 60, 2 s (1 of 2) |" in some


def test_the_table_says_what_selected_tuples_keep_of_a_gain():
    line = made_line
    lines = []
    for seed, noise in ((1, 0.0), (2, 0.01), (3, 0.02)):
        for task, gain in (("three-sums", 0.2), ("copy", 0.0)):
            scores = {"1x1": 0.5, "2x1": 0.5 + gain, "2x1:topk4": 0.5 + gain / 4}
            for model, value in scores.items():
                noisy = value + (noise if model != "1x1" else 0)
                lines.append(line(model, seed, noisy, task=task, reference=32))
    lines.append(dict(kind="speed", task="three-sums", model="2x1:topk4", step_ratio=1.5))
    shown = table(lines)
    rows = shown[shown.index("### What selected tuples keep") :].splitlines()[4:]
    task, reference = (
        TASKS["three-sums"],
        cost(TASKS["three-sums"], ModelSpec.parse("2x1"), 32, 128),
    )
    price = cost(task, ModelSpec.parse("2x1:topk4"), 32, 128).flops / reference.flops
    assert rows[0] == (
        f"| three-sums | 2x1:topk4 | +0.210 ± 0.025 | +0.060 ± 0.025 | 29 % | {price:.2f} | 1.50 |"
    )
    assert rows[1] == ""  # order 2 gains nothing in the other task


def test_the_rows_of_the_figure_are_sorted_by_what_order_two_gains(tmp_path):
    pytest.importorskip("matplotlib")
    out, picture = tmp_path / "pays.jsonl", tmp_path / "pays.svg"
    gains = {"text": -0.2, "copy": 0.3, "code": 0.0, "three-sums": 0.1, "joint-recall": 0.2}
    for task, gain in gains.items():
        for seed in (1, 2):
            append_line(out, made_line("1x1", seed, 0.5, task=task))
            append_line(out, made_line("2x1", seed, 0.5 + gain, task=task))
    for seed, gain in ((1, 0.0), (2, 0.6)):  # the interval has 0 in it
        append_line(out, made_line("1x1", seed, 0.2, task="grammar"))
        append_line(out, made_line("2x1", seed, 0.2 + gain, task="grammar"))
    assert main(["--figure", str(picture), "--out", str(out)]) == 0
    drawn = picture.read_text()
    rows = ["joint-recall", "three-sums", "grammar", "code", "text", "copy"]
    assert sorted(rows, key=lambda task: drawn.index(f">{task}<")) == rows


def test_the_figure_shows_what_has_equal_flops(tmp_path):
    pytest.importorskip("matplotlib")
    out, picture = tmp_path / "pays.jsonl", tmp_path / "pays.svg"
    for model, equal in (("1x1", "flops"), ("2x1", "flops"), ("2x1", "seconds")):
        append_line(out, made_line(model, 1, 0.5, equal=equal))
    assert main(["--figure", str(picture), "--out", str(out)]) == 0
    drawn = picture.read_text()
    assert ">order 2, 1 layer<" in drawn and "equal seconds" not in drawn


def test_the_figure_shows_every_model(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    out, picture = tmp_path / "pays.jsonl", tmp_path / "pays.svg"
    for task, first, second in (("copy", 0.9, 0.9), ("three-sums", 0.6, 0.8)):
        for seed in (1, 2, 3):
            append_line(out, made_line("1x1", seed, first, task=task))
            append_line(out, made_line("2x1", seed, second, task=task))
            append_line(out, made_line("1x2", seed, -3.0, task=task, norm="qk", depth=2))
    assert main(["--figure", str(picture), "--out", str(out)]) == 0
    drawn = picture.read_text()
    words = ["three-sums", "copy", "controls: no tuple is needed", "+0.20 ± 0.00", "0.00 ± 0.00"]
    words += ["order 1, 1 layer", "order 2, 1 layer", "order 1, 2 layers (QK norm)"]
    for text in words:
        assert f">{text}<" in drawn
    assert drawn.index(">three-sums<") < drawn.index(">copy<")
    assert "var(" not in drawn and drawn.startswith("<svg ")
    assert main(["--figure", str(picture), "--out", str(out)]) == 0
    assert picture.read_text() == drawn


def test_a_figure_of_an_unknown_task_or_of_one_seed_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    out, picture = tmp_path / "pays.jsonl", tmp_path / "pays.svg"
    append_line(out, made_line("1x1", 1, 0.5, task="mine"))
    append_line(out, made_line("2x1", 1, 0.7, task="mine"))
    append_line(out, made_line("2x1:topk4", 1, 0.6, task="mine"))
    append_line(out, made_line("Layerx2", 1, 0.6, task="mine", depth=2))
    append_line(out, made_line("1+1+2x2", 1, 0.6, task="mine", depth=2))
    assert main(["--figure", str(picture), "--out", str(out)]) == 0
    drawn = picture.read_text()
    for text in ("mine", "+0.20", "Layerx2", "heads of 1, 1, 2; 2 layers"):
        assert f">{text}<" in drawn
    assert "topk" not in drawn  # selected tuples are only in the table


def test_the_page_of_results_and_its_figure_are_those_of_the_committed_lines(root):
    lines = read_lines(root / "lab" / "pays" / "results.jsonl")
    page = (root / "lab" / "pays" / "RESULTS.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in table(lines).splitlines() if line.startswith("|")] == [
        line for line in page if line.startswith("|")
    ]
    drawn = (root / "docs" / "images" / "pays.svg").read_text(encoding="utf-8")
    for each in compare(lines):
        assert f">{each.task}<" in drawn
        assert not each.gain or f">{gain_text(each)[0]}<" in drawn
