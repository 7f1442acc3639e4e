"""Commands that run Python: ``analyze model --page``, ``analyze attention`` and ``lab pays``."""

import json
import os
import signal
import subprocess
import time
import xml.etree.ElementTree as xml

import pytest
import torch

from nsimplex import analysis, nn, viz
from nsimplex.lab.pays.__main__ import _parser
from nsimplex.model_command import layer_page as program

SAID = "to be or not to be"


def run(executable, *words):
    command = [executable, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def lines_of(executable, *words):
    done = run(executable, *words, "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def refused(executable, *words):
    done = run(executable, *words)
    assert done.returncode == 2 and done.stdout == "", done.stderr
    assert done.stderr.startswith("nsimplex: ") and done.stderr.count("\n") == 1
    return done.stderr


@pytest.fixture(scope="module")
def trained(executable, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    (folder / "text").write_text(f"{SAID}, that is the question\n" * 100)
    words = "--layers 2 --every 2 --heads 2 --width 16 --context 32 --batch 2 --steps 3 --threads 1"
    done = run(
        executable, "lm", "train", "--text", folder / "text", *words.split(), "--out",
        folder / "run",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "run"


def test_the_page_of_a_model_is_the_report_of_its_windows(executable, trained, tmp_path):
    page = tmp_path / "layers.html"
    words = ["analyze", "model", trained, "--windows", 2, "--context", 12, "--threads", 1]
    own = ["--page", page, "--steps", 2, "--queries", 3]
    lines = lines_of(executable, *words, *own, "--out", tmp_path / "kept")
    assert page.read_text().endswith("</html>\n") and "Derivatives" in page.read_text()
    assert [line["kind"] for line in lines] == ["attention_layer"] * 2
    assert [line["order"] for line in lines] == [1, 2]
    kept = (tmp_path / "kept" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in kept] == lines
    # The windows: evenly over the last tenth of the text, as without --page.
    tokens = torch.tensor(list((trained.parent / "text").read_bytes()))
    begin = len(tokens) - len(tokens) // 10
    room = len(tokens) - begin - 12 - 1
    batch = torch.stack([tokens[begin + i * room // 2 :][:12] for i in range(2)])
    torch.set_num_threads(1)
    wanted = analysis.report(nn.LanguageModel.from_run(trained), batch, queries=3, steps=2)
    for line, layer in zip(lines, wanted.rows(), strict=True):
        for name, value in layer.items():
            if isinstance(value, float):
                assert line[name] == pytest.approx(value, rel=1e-3), name
            elif name not in ("name", "kind"):
                assert line[name] == value, name
        assert line["module"] == layer["name"] and line["step"] == 3
    shown = run(executable, *words, "--page", page, "--skip-derivatives")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[0].split()[:3] == ["layer", "order", "heads"]
    assert shown.stdout.endswith(f"{page}\n") and "Derivatives" not in page.read_text()


def test_a_long_report_says_its_time_beforehand(monkeypatch, trained):
    model = nn.LanguageModel.from_run(trained)
    clock = iter((0.0, 9.0, 10.0, 10.5) * 2)  # two passes; the second takes half a second
    monkeypatch.setattr(program.time, "perf_counter", lambda: next(clock))
    windows = torch.zeros(1, 4, dtype=torch.int64)
    short, long = (program._estimate(model, windows, steps) for steps in (None, 6))
    assert short < program._LONG < long
    assert program._duration(34) == "30 seconds"
    assert program._duration(150) == "2 minutes; --skip-derivatives takes much less"


def test_a_page_that_cannot_be_written_is_refused_before_the_work(executable, trained, tmp_path):
    words = ["analyze", "model", trained, "--page", tmp_path / "absent" / "page.html"]
    assert "--page: cannot write" in refused(executable, *words)
    words = ["analyze", "attention", trained, "text", "--svg", tmp_path]
    assert "--svg: " in refused(executable, *words)


def test_attention_is_that_of_the_viewer(executable, trained, tmp_path):
    words = ["analyze", "attention", trained, SAID, "--threads", 1, "--count", 4]
    page, svg = tmp_path / "page.html", tmp_path / "view.svg"
    shown = run(executable, *words, "--page", page, "--svg", svg)
    assert shown.returncode == 0, shown.stderr
    torch.set_num_threads(1)
    batch = torch.tensor([list(SAID.encode())])
    model = nn.LanguageModel.from_run(trained)
    views = viz.views(model, batch, labels=list(SAID), count=4)
    text = views[1].text()
    assert shown.stdout.splitlines()[: len(text.splitlines())] == text.splitlines()
    assert shown.stdout.endswith(f"\n\n{page}\n{svg}\n")
    assert 'const begins = {"layer": 1, "head": ' in page.read_text()
    assert xml.parse(svg).getroot().tag.endswith("svg")
    assert page.read_text().endswith("</html>\n") and "blocks.0.attention" in page.read_text()
    lines = lines_of(executable, *words, "--layer", 0, "--head", 1, "--query", 9)
    wanted = viz.views(model, batch, labels=list(SAID), count=4, queries=[9])[0]
    rows = wanted.rows(head=1, query=9)
    assert [tuple(line["keys"]) for line in lines] == [keys for keys, _ in rows]
    for line, (keys, weight) in zip(lines, rows, strict=True):
        assert line["kind"] == "attention_tuple" and line["weight"] == pytest.approx(weight)
        assert line["texts"] == [SAID[key] for key in keys]


def test_a_text_of_standard_input_that_is_too_long_ends_in_the_view(executable, trained):
    long = "a" * 40 + SAID
    done = subprocess.run(
        [executable, "analyze", "attention", trained, "-"],
        input=long,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "the text has 58 tokens; the last 32 are shown (--context)" in done.stderr
    assert "query 31 'e'" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([""], "TEXT: expected at least one token, got none"),
        (["ab", "--query", "2"], "--query: expected 0 to 1, got 2"),
        (["ab", "--head", "2"], "--head: expected 0 to 1, got 2"),
        (["ab", "--layer", "2"], "--layer: expected one of 0, 1, whose tuples have weights"),
        (["ab", "--count", "0"], "--count"),
    ],
)
def test_what_does_not_fit_the_text_is_refused(executable, trained, words, said):
    assert said in refused(executable, "analyze", "attention", trained, *words)


@pytest.fixture(scope="session")
def pays(executable):
    laboratory = executable.with_name("nsimplex-lab")
    if not os.access(laboratory, os.X_OK):
        pytest.skip("the laboratory is not built")
    return [executable, "lab", "pays"]


def test_defaults_of_the_benchmark_are_those_of_its_program(pays):
    help_text = run(*pays, "--help").stdout
    for action in _parser()._actions:
        if action.option_strings and action.dest != "help":
            (row,) = [
                line for line in help_text.splitlines()
                if line.split()[:1] == action.option_strings
            ]  # fmt: skip
            if action.default not in ("", False):
                assert f"[{action.default}]" in help_text.partition(row)[2][:200] or row.endswith(
                    f"[{action.default}]"
                ), action.dest


def test_the_benchmark_runs_and_continues(pays, tmp_path):
    assert "joint-recall" in run(*pays, "--list").stdout
    out = tmp_path / "pays.jsonl"
    words = ["bag-of-tokens", "--quick", "--models", "1x1", "--width", "8", "--out", out]
    (line,) = lines_of(*pays, *words)
    assert line["kind"] == "run" and line["model"] == "1x1"
    assert {**json.loads(out.read_text())} == line
    assert lines_of(*pays, *words) == []  # the file has the run
    words[3] = "1x1,2x1"
    done = run(*pays, *words)
    assert done.returncode == 0 and "bag-of-tokens 2x1 rate" in done.stdout
    assert out.read_text().count("\n") == 2
    table = run(*pays, "--table", "--out", out)
    assert table.returncode == 0 and "bag-of-tokens" in table.stdout
    assert "TASK: expected one of" in refused(*pays, "match9")


def test_a_layer_in_the_current_folder_runs(pays, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import torch\n"
        "def layer(dim, heads, causal, rotary):\n"
        "    return torch.nn.Linear(dim, dim)\n"
    )
    words = ["bag-of-tokens", "--quick", "--models", "1x1", "--width", "8", "--out", "own.jsonl"]
    done = subprocess.run(
        [*pays, *words, "--layer", "mine:layer", "--depth", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "layerx1" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["INT", "TERM"])
def test_an_interrupted_benchmark_keeps_its_runs(pays, tmp_path, number):
    out = tmp_path / "pays.jsonl"
    words = "copy --models 1x1 --width 8 --steps 30 --seeds 500 --minutes 0 --rates 0.01".split()
    process = subprocess.Popen(
        [*pays, *words, "--out", out], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while not (out.exists() and out.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in said
    assert all(json.loads(line)["kind"] == "run" for line in out.read_text().splitlines())
