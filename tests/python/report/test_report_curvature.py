"""The section of `nsimplex analyze curvature`."""

import re
import subprocess

import pytest
import torch

pytest.importorskip("matplotlib")

from report_page import read, write_lines

from nsimplex._safetensors import write_safetensors
from nsimplex.report.curvature_section import read_curvatures

NAN = float("nan")


def curvature_rows():
    return [
        {
            "kind": "curvature",
            "graphs": 1200,
            "compared": 1150,
            "nodes": 9000,
            "edges": 8000,
            "line_edges": 12000,
            "density": 0.1257,
            "tokens_ratio": 0.8889,
        },
        {
            "kind": "statement",
            "statement": "mean plain curvature: line graph > graph",
            "draws": 1150,
            "violations": 3,
            "share": 0.997,
            "holds": False,
            "median_slack": 0.5,
        },
    ]


def write_run(folder, values):
    write_lines(folder / "metrics.jsonl", curvature_rows())
    write_safetensors(folder / "curvatures.safetensors", values, {})


def some(count=5, **changed):
    values = torch.linspace(-4, 1, 4 * count, dtype=torch.float64).view(count, 2, 2)
    return {name: values.clone() for name in ("plain", "augmented", "balanced")} | changed


def test_each_curvature_has_two_histograms_whose_shares_add_up(tmp_path):
    write_run(tmp_path, some())
    text, page = read(tmp_path)
    for name in ("plain", "augmented", "balanced"):
        assert f"Histograms of the {name} curvature of 5 graphs" in text
    for words in ("1,200", "0.126", "line graph", "share of graphs", "0.889"):
        assert words in page.text or words in text, words
    values = some()["plain"]
    means = [f"{float(values[:, side, 0].mean()):.3g}" for side in (0, 1)]
    assert f"over the edges is {means[0]} and {means[1]} on average" in text
    assert "mean plain curvature" in page.text  # the statements follow


def test_graphs_without_a_curvature_are_left_out(tmp_path):
    values = some()
    values["plain"][1, 1] = NAN
    values["balanced"][:] = NAN
    write_run(tmp_path, values)
    found = read_curvatures(tmp_path / "curvatures.safetensors")
    assert {name: len(own) for name, own in found.items()} == {"plain": 4, "augmented": 5}
    text, _ = read(tmp_path)
    assert "plain curvature of 4 graphs" in text and "balanced curvature of" not in text


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"plain": torch.zeros(3)},
        {"plain": torch.zeros(0, 2, 2)},
        {"plain": torch.full((3, 2, 2), float("inf"))},
        {"other": torch.zeros(3, 2, 2)},
        None,
    ],
)
def test_a_file_without_curvatures_leaves_the_table(tmp_path, values):
    write_lines(tmp_path / "metrics.jsonl", curvature_rows())
    path = tmp_path / "curvatures.safetensors"
    if values is None:
        path.write_bytes(b"no tensors")
    else:
        write_safetensors(path, values, {})
    text, page = read(tmp_path)
    assert "Histograms" not in text and "svg" not in page.tags and "1,200" in page.text


def test_equal_curvatures_are_one_bar(tmp_path):
    write_run(tmp_path, {"plain": torch.full((3, 2, 2), -2.0)})
    assert "plain curvature of 3 graphs" in read(tmp_path)[0]


def test_the_report_reads_what_the_command_writes(tmp_path, executable):
    edges = tmp_path / "edges.csv"
    edges.write_text("".join(f"{i},{j}\n" for i in range(6) for j in range(i) if (i + j) % 3))
    run = tmp_path / "run"
    command = [executable, "analyze", "curvature", edges, "--out", run]
    subprocess.run(command, check=True, capture_output=True)
    text, page = read(run)
    assert re.search("Histograms of the augmented curvature of 1 graphs", text)
    assert "Statements" in page.text
