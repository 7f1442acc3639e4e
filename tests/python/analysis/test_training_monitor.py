"""The log of attention layers during a training."""

import json
import sys
import types

import pytest
import torch

from nsimplex import analysis
from nsimplex.nn import SimplicialAttention


def model():
    torch.manual_seed(1)
    return torch.nn.Sequential(*[SimplicialAttention(8, 2, order=n) for n in (1, 2)])


def lines(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture
def scalars(monkeypatch):
    """A stand-in for TensorBoard's writer: what was written."""
    written = []

    class SummaryWriter:
        def __init__(self, folder):
            self.folder = folder

        def add_scalar(self, tag, value, step):
            written.append((tag, value, step))

        def close(self):
            written.append("closed")

    module = types.ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = SummaryWriter
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    return written


def test_lines_are_added_to_those_of_the_run(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"kind": "training", "step": 1}\n')
    layers, x = model(), torch.randn(1, 5, 8)
    with analysis.TrainingMonitor(layers, x, tmp_path, every=2, steps=1, tensorboard=False) as own:
        made = [own.step(step) for step in range(1, 5)]
    assert [each is not None for each in made] == [False, True, False, True]
    first, *rest = lines(tmp_path)
    assert first["kind"] == "training" and len(rest) == 4
    assert [(line["step"], line["module"], line["order"]) for line in rest] == [
        (2, "0", 1), (2, "1", 2), (4, "0", 1), (4, "1", 2)
    ]  # fmt: skip
    for line, layer in zip(rest[2:], made[3].layers, strict=True):
        for name in ("rank_after", "ratio_after", "entropy", "sharpness", "jacobian"):
            assert line[name] == getattr(layer, name) is not None
    assert rest[0]["rank_after"] == rest[2]["rank_after"]  # the model did not change


def test_tensorboard_gets_the_same_numbers(tmp_path, scalars):
    with analysis.TrainingMonitor(
        model(), torch.randn(1, 5, 8), tmp_path / "new", every=1, derivatives=False
    ) as monitor:
        monitor.step(3)
    assert scalars[-1] == "closed"
    ranks = {tag: value for tag, value, step in scalars[:-1] if tag.endswith("rank_after")}
    logged = lines(tmp_path / "new")
    assert ranks == {
        "attention/0 0/rank_after": logged[0]["rank_after"],
        "attention/1 1/rank_after": logged[1]["rank_after"],
    }
    assert not any("sharpness" in tag for tag, *_ in scalars[:-1])


def test_training_goes_on_as_without_a_monitor(tmp_path):
    weights = []
    for every in (1, 1000):
        layers, x = model(), torch.linspace(-1, 1, 40).view(1, 5, 8)
        optimizer = torch.optim.SGD(layers.parameters(), 0.1)
        with analysis.TrainingMonitor(layers, x, tmp_path, every=every, steps=1) as monitor:
            for step in range(1, 3):
                layers(x + 0.1 * torch.randn(x.shape)).square().mean().backward()
                monitor.step(step)
                optimizer.step()
                optimizer.zero_grad()
        weights.append(layers[0].qkv.weight.detach())
    assert torch.equal(*weights)


def test_a_missing_tensorboard_is_named_when_it_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    analysis.TrainingMonitor(model(), torch.ones(1, 2, 8), tmp_path).close()
    with pytest.raises(ImportError, match=r"\[TrainingMonitor\] tensorboard: expected"):
        analysis.TrainingMonitor(model(), torch.ones(1, 2, 8), tmp_path, tensorboard=True)


@pytest.mark.parametrize("name", ["every", "queries", "steps"])
def test_counts_are_positive(tmp_path, name):
    says = rf"\[TrainingMonitor\] {name}: expected 1 or more, got 0"
    with pytest.raises(ValueError, match=says):
        analysis.TrainingMonitor(model(), torch.ones(1, 2, 8), tmp_path, **{name: 0})


def test_the_report_of_a_run_draws_the_layers(tmp_path):
    pytest.importorskip("matplotlib")
    from nsimplex.report import write_report

    with analysis.TrainingMonitor(
        model(), torch.randn(1, 5, 8), tmp_path, every=1, derivatives=False, tensorboard=False
    ) as monitor:
        monitor.step(1)
        monitor.step(2)
    page = write_report(tmp_path).read_text()
    assert "Attention layers" in page and page.count('class="see"') == 3
