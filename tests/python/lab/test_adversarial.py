"""The experiment about adversarial inputs: its task, its attack, its table."""

import json
import math

import pytest
import torch

from nsimplex.lab import adversarial
from nsimplex.lab.adversarial import attack, distances, draw, main, table


def test_the_class_is_that_of_the_marked_token():
    tokens, classes = draw(200, torch.Generator().manual_seed(1))
    torch.testing.assert_close(tokens.norm(dim=-1), torch.ones(200, 8))
    marked = tokens[..., 4].argmax(-1)
    kinds = tokens[torch.arange(200), marked, :4].argmax(-1)
    assert torch.equal(kinds, classes) and classes.unique().tolist() == [0, 1, 2, 3]


class Linear(torch.nn.Module):
    """Two classes, whose boundary has a known distance from every sequence."""

    def __init__(self):
        super().__init__()
        self.direction = torch.nn.functional.normalize(torch.arange(1.0, 129).double().sin(), dim=0)

    def forward(self, tokens):
        side = tokens.flatten(1) @ self.direction - 0.1
        return torch.stack([side, -side, side - 9, side - 9], -1)


def test_the_attack_finds_the_nearest_boundary_and_nothing_nearer():
    network = Linear()
    tokens = draw(64, torch.Generator().manual_seed(2))[0].double()
    logits = network(tokens)
    classes, exact = logits.argmax(-1), logits[:, 0].abs()
    assert not attack(network, tokens, classes, 0.999 * exact, 20).any()
    assert attack(network, tokens, classes, 1.001 * exact, 20).all()
    found = distances(network, tokens, classes, 20)
    far = exact > 2.0**-8 * math.sqrt(8) * 1.02
    assert far.sum() > 50
    assert bool((found >= exact)[far].all() and (found <= 1.012 * exact)[far].all())
    assert not distances(network, tokens, 1 - classes, 20).any()


def test_a_network_that_cannot_be_fooled_is_at_no_distance():
    network = lambda tokens: torch.tensor([1.0, 0, 0, 0]).expand(len(tokens), 4) + 0 * tokens.sum()
    tokens, classes = draw(5, torch.Generator().manual_seed(3))
    assert distances(network, tokens, 0 * classes, 3).isinf().all()


@pytest.mark.parametrize("order", [1, 2])
def test_a_run_measures_constants_that_bound_the_attack(order):
    settings = adversarial.Settings(steps=400, attacked=24, attack_steps=5)
    line = adversarial.measure(order, 1.0, 1, settings)
    assert line["accuracy"] > 0.9 and line["valid"] > 0.9
    assert 0 < line["layer_jacobian"] <= line["layer_bound"]
    assert line["network_jacobian"] <= line["layer_bound"] * line["last"]
    assert 0 < line["certified"] < line["distance"] and line["too_near"] == 0
    assert line["robust"]["0.2"] <= line["robust"]["0.1"] <= 1
    json.dumps(line)


def test_the_command_continues_a_file_and_prints_its_table(tmp_path, capsys, monkeypatch):
    made = []

    def measure(order, radius, seed, settings):
        made.append(order)
        return dict(
            kind="run", order=order, radius=radius, seed=seed, steps=50, accuracy=1.0,
            layer_bound=3.0, layer_jacobian=2.0, network_jacobian=1.0, margin=1.0, certified=0.1,
            distance=0.2, robust={"0.1": 1.0, "0.2": 0.5}, attacked=16, too_near=0,
        )  # fmt: skip

    monkeypatch.setattr(adversarial, "measure", measure)
    out = str(tmp_path / "results.jsonl")
    assert main(["--quick", "--out", out]) == 0 and made == [1, 2]
    assert main(["--quick", "--out", out]) == 0 and made == [1, 2]
    capsys.readouterr()
    assert main(["--table", "--out", out]) == 0
    shown = capsys.readouterr().out
    assert "| 2 | 2 | 1 | 50 | 1.000 | 3 | 2 | 1 | 1 | 0.1 | 0.200 | 1.000 | 0.500 |" in shown
    assert "certified distance: 0 of 32." in shown
    assert main(["--table", "--out", str(tmp_path / "none")]) == 2
    assert "--out: expected results" in capsys.readouterr().err
    assert main(["--quick", "--out", str(tmp_path / "none" / "x")]) == 2 and made == [1, 2]
    assert f"x: there is no folder {tmp_path / 'none'}\n" in capsys.readouterr().err


def test_rank_correlations_have_the_sign_of_the_order():
    run = dict(
        kind="run", order=1, radius=1.0, seed=1, steps=50, accuracy=1.0, layer_jacobian=2.0,
        network_jacobian=1.0, margin=1.0, robust={"0.1": 1.0, "0.2": 0.5}, attacked=1, too_near=0,
    )  # fmt: skip
    runs = [
        run | dict(layer_bound=3.0 - n, certified=[0.1, 0.3, 0.2][n], distance=[0.1, 0.2, 0.3][n])
        for n in range(3)
    ]
    shown = table(runs)
    assert "| bound of the layer | -1.00 | -1.00 | - |" in shown
    assert "| certified distance | +0.50 | +0.50 | - |" in shown
    assert "| measured constant of the layer | - | - | - |" in shown


def test_the_page_has_the_table_of_the_results(root):
    room = root / "lab" / "adversarial"
    lines = [json.loads(line) for line in (room / "results.jsonl").read_text().splitlines()]
    assert table(lines) in (room / "RESULTS.md").read_text()
