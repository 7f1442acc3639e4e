"""``nsimplex graph train --models --seeds``: several trainings on the same data."""

import json
import statistics
from types import SimpleNamespace

import pytest
from graph_sets import Channel, rings, trained

from nsimplex.nn import MessagePassing
from nsimplex.nn.graph_training import Stopped


@pytest.fixture
def own(tmp_path):
    edges, nodes, graphs = rings(tmp_path)
    return dict(data=edges, nodes=nodes, graphs=graphs, task="graph", target="size", epochs=3)


def test_each_training_is_one_of_its_own_and_the_best_is_kept(own, tmp_path):
    for name in ("all", "one"):
        (tmp_path / name).mkdir()
    said = trained(**own, models=["gcn", "gin"], seeds=2, folder=tmp_path / "all")
    results = said.of_kind("graph_result")
    assert [(row["model"], row["seed"]) for row in results] == [
        ("gcn", 1),
        ("gin", 1),
        ("gcn", 2),
        ("gin", 2),
    ]
    for row in results:
        alone = trained(**own, model=row["model"], seed=row["seed"], folder=tmp_path / "one")
        (fit,), (about,) = alone.of_kind("graph_fit"), alone.of_kind("graph_data")
        assert {f"test_{name}": row[name] for name in ("mae", "rmse")} | {
            name: row[f"validation_{name}"] for name in ("mae", "rmse")
        } | {"epoch": row["best_epoch"], "epochs": row["epochs"], "kind": "graph_fit"} == fit
        assert row["parameters"] == about["parameters"]
        row["file"] = (tmp_path / "one" / "model.safetensors").read_bytes()
    best = min(results, key=lambda row: row["validation_mae"])
    assert (tmp_path / "all" / "model.safetensors").read_bytes() == best["file"]
    assert isinstance(MessagePassing.from_run(tmp_path / "all"), MessagePassing)
    for mean in said.of_kind("graph_mean"):
        values = [row["mae"] for row in results if row["model"] == mean["model"]]
        assert mean["seeds"] == 2 and mean["mae_mean"] == statistics.fmean(values)
        assert mean["mae_deviation"] == statistics.stdev(values)
    means, kept = said.tables[-2:]
    assert means[0] == ["model", "mae", "rmse", "seeds"] and len(means) == 3
    assert kept[1] == ["model.safetensors", f"{best['model']} of seed {best['seed']}"]
    assert not [*(tmp_path / "all").glob("checkpoint*")]


def test_without_a_test_the_validation_is_compared(own):
    said = trained(**own, models=["gcn", "gin"], test=0.0)
    assert all("validation_mae_mean" in mean for mean in said.of_kind("graph_mean"))
    assert not any("mae" in row for row in said.of_kind("graph_result"))


class Kept(Channel):
    """Keeps the lines of a run in its folder, each once, as the command does."""

    def __init__(self, folder, most=10**9):
        super().__init__(most)
        self.file = folder / "metrics.jsonl"

    def line(self, kind, /, **fields):
        super().line(kind, **fields)
        text = json.dumps(self.lines[-1])
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        if text not in lines:
            self.file.write_text("".join(f"{line}\n" for line in [*lines, text]))


@pytest.mark.parametrize("most", [1, 3, 5, 8])
def test_a_comparison_that_stops_goes_on_with_the_same_bits(own, tmp_path, monkeypatch, most):
    monkeypatch.setattr("nsimplex.nn.graph_training._SAVE_SECONDS", 0.0)
    own |= dict(models=["gcn", "gin"], seeds=2, dropout=0.3)
    for name in ("whole", "broken"):
        (tmp_path / name).mkdir()
    trained(Kept(tmp_path / "whole"), **own, folder=tmp_path / "whole")
    with pytest.raises(Stopped):
        trained(Kept(tmp_path / "broken", most), **own, folder=tmp_path / "broken")
    second = Kept(tmp_path / "broken")
    trained(second, **own, folder=tmp_path / "broken", resume=True)
    assert len(second.of_kind("graph_point")) <= 12 - most + 1
    for name in ("metrics.jsonl", "model.safetensors"):
        files = [(tmp_path / run / name).read_bytes() for run in ("whole", "broken")]
        assert files[0] == files[1], name
    third = Kept(tmp_path / "broken")
    trained(third, **own, folder=tmp_path / "broken", resume=True)
    assert not third.of_kind("graph_point") and len(third.of_kind("graph_mean")) == 2


def test_what_cannot_be_compared_is_refused_in_one_line(own, monkeypatch):
    with pytest.raises(ValueError, match="^--models: expected different models, got 'gin' twice$"):
        trained(**own, models=["gin", "gcn", "gin"])
    with pytest.raises(ValueError, match="^--form: expected --model transformer, got gin$"):
        trained(**own, models=["transformer", "gin"], form="kernel")
    two = SimpleNamespace(size=2)
    monkeypatch.setattr("nsimplex.graph_command.comparing.GraphRanks", lambda: two)
    expected = "^--models, --seeds: expected one training for 2 ranks, got 3$"
    with pytest.raises(ValueError, match=expected):
        trained(**own, seeds=3)
