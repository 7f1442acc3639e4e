"""The report of complete, partial, broken and hostile run directories."""

import os
import re
import subprocess
import sys

import pytest
from report_page import Page, charts_of, read, write_lines

import nsimplex
from nsimplex.report import write_report


def match3_rows(results=True):
    rows = [
        {
            "order": order,
            "seed": 1,
            "step": step,
            "loss": 0.5,
            "accuracy": 0.6 + 0.1 * order * step / 100,
        }
        for order in (1, 2)
        for step in (0, 50, 100)
    ]
    if results:
        rows += [
            {
                "order": o,
                "seed": 1,
                "accuracy": a,
                "majority": 0.63,
                "seconds": 4.0,
                "parameters": 9,
            }
            for o, a in ((1, 0.7), (2, 0.8))
        ]
    return rows


def language_rows():
    return [
        {
            "step": step,
            "train_loss": 4 - step / 100,
            "val_loss": 3.5 if step % 20 == 0 else None,
            "tokens_per_second": 1000.0,
        }
        for step in range(10, 60, 10)
    ]


@pytest.fixture
def full(tmp_path):
    write_lines(tmp_path / "match3/metrics.jsonl", match3_rows())
    write_lines(tmp_path / "language/metrics.jsonl", language_rows())
    write_lines(
        tmp_path / "samples.jsonl", [{"prompt": "def ", "text": "def f(): pass", "tokens": 9}]
    )
    write_lines(
        tmp_path / "bench.jsonl",
        [
            {
                "operator": "attention",
                "order": 2,
                "pass": "forward",
                "heads": 4,
                "threads": 1,
                "milliseconds": 12.5,
                "gflops": 80.0,
                "sgemm_gflops": 100.0,
                "ratio": 0.8,
                "workspace_bytes": 5,
                "window": [32, 512],
                "seq": 2048,
            }
        ],
    )
    write_lines(
        tmp_path / "compare.jsonl",
        [
            {
                "order": 2,
                "pass": "forward",
                "heads": 1,
                "threads": 1,
                "window": [32, 512],
                "seq": 2048,
                "peer": "composite",
                "milliseconds": 1.0,
                "peer_milliseconds": 6.5,
                "speedup": 6.5,
                "peak_bytes": 1,
                "peer_peak_bytes": 2,
            }
        ],
    )
    (tmp_path / "command.txt").write_text("make demo\n")
    return tmp_path


def test_a_full_run_shows_everything(full):
    text, page = read(full)
    assert page.tags.count("svg") == 2
    for words in (
        "Match3",
        "Language model",
        "Samples",
        "Speed",
        "Machine",
        "make demo",
        "6.5×",
        "0.80",
    ):
        assert words in page.text
    assert "80.0 %" in page.text and "63.0 %" in page.text
    assert "<h1>Match task, language model, speed</h1>" in text
    # No label stands for two measurements, and no colour for two meanings.
    labels = [f"order 2, windows 32 × 512, T = 2048, {heads}, 1 thread, forward" for heads in (
        "4 heads", "1 head")]  # fmt: skip
    assert all(label in page.text for label in labels)
    assert "two matrices with 1024 rows and columns" in page.text
    match, loss = charts_of(text)
    assert "--series-1" in match and "--series-1" not in loss and "--series-2" not in loss


def test_only_a_speed_up_is_green(full):
    rows = [
        {"pass": "forward", "peer": "sdpa", "milliseconds": 1.0, "speedup": speedup}
        for speedup in (2.5, 1.0, 0.8)
    ]
    write_lines(full / "compare.jsonl", rows)
    text, _ = read(full)
    assert re.findall('class="strong">([^<]*)', text) == ["2.5×"]


def test_nothing_is_loaded_from_elsewhere(full):
    text, page = read(full)
    assert all(reference.startswith("#") for reference in page.references)
    assert "script" not in page.tags and "url(http" not in text and "@import" not in text


def test_samples_and_names_are_escaped(full):
    attack = "<script>alert(1)</script><img src=x onerror=alert(2)>&amp;"
    write_lines(full / "samples.jsonl", [{"prompt": attack, "text": attack + "</pre>" + attack}])
    (full / "command.txt").write_text(attack)
    _, page = read(full)
    assert "script" not in page.tags and "img" not in page.tags
    assert attack in page.text


def test_figures_take_the_pages_colours(full):
    text, _ = read(full)
    svg = text[text.index("<svg") : text.rindex("</svg>")]
    assert "var(--ink)" in svg or "var(--muted)" in svg
    assert "var(--series-1)" in svg and "#0404" not in svg
    assert "prefers-color-scheme: dark" in text


def test_letters_of_pictures_have_at_least_11_pixels_on_a_phone(full):
    text, _ = read(full)
    pictures = re.findall(r'<div style="min-width: (\d+)px"><svg(.*?)</svg>', text, re.DOTALL)
    with_letters = [svg for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL) if "px" in svg]
    assert len(pictures) == len(with_letters) > 0
    for width, svg in pictures:
        units = float(re.search(r'viewBox="\S+ \S+ ([\d.]+)', svg)[1])
        letters = min(float(size) for size in re.findall(r"font(?:-size)?: .*?([\d.]+)px", svg))
        assert letters * int(width) / units >= 11


def test_a_chart_for_phones_is_narrow_and_shown_instead_of_the_wide_one(full):
    text, page = read(full)
    kinds = re.findall(r'<div class="scroll (wide|narrow)"><div style="min-width: (\d+)px"', text)
    assert [kind for kind, _ in kinds] == ["wide", "narrow"] * 2 and page.tags.count("svg") == 2
    assert all(int(width) <= 330 for kind, width in kinds if kind == "narrow")
    phone = text.partition("@media (max-width: 600px)")[2]
    assert ".narrow { display: none; }" in text and ".narrow { display: block; }" in phone
    assert ".wide { display: none; }" in phone
    named = set(re.findall(r"(?:url\(|href=\")#([\w-]+)", text))
    assert named and all(text.count(f'id="{name}"') == 1 for name in named)


def test_the_machine_has_date_seed_version_and_command(tmp_path):
    write_lines(tmp_path / "metrics.jsonl", language_rows())
    os.utime(tmp_path / "metrics.jsonl", (1_700_000_000, 1_700_000_000))
    (tmp_path / "config.toml").write_text("# nsimplex lm train --seed 7\nsteps=3\nseed=7\n")
    _, page = read(tmp_path)
    made_by = f"nsimplex {nsimplex.__version__}, torch {nsimplex._build_info.TORCH_VERSION}"
    for words in (
        "Last line 2023-11-14 22:13 UTC",
        "Seed 7",
        f"Page written with {made_by}",
        "nsimplex lm train --seed 7",
    ):
        assert words in page.text, words


def test_the_build_and_the_machine_are_those_of_the_run(tmp_path):
    """A run may come from another machine than the page."""
    write_lines(tmp_path / "metrics.jsonl", language_rows())
    line = {
        "kind": "info",
        "version": "0.2.9",
        "commit": "12ab34cd",
        "compiler": "GNU 12.2.0",
        "torch": "2.14.0",
        "processor": "Processor of elsewhere",
        "simd": "AVX3_ZEN4",
        "threads": 96,
    }
    write_lines(tmp_path / "info.json", [line])
    _, page = read(tmp_path)
    for words in (
        "Processor Processor of elsewhere",
        "SIMD level AVX3_ZEN4",
        "Threads 96",
        "nsimplex 0.2.9",
        "Commit 12ab34cd",
        "Compiler GNU 12.2.0",
        "torch 2.14.0",
    ):
        assert words in page.text, words
    assert "Memory" not in page.text and "Cores" not in page.text


def test_a_run_that_broke_off_shows_what_is_there(tmp_path):
    write_lines(tmp_path / "match3/metrics.jsonl", match3_rows(results=False)[:4])
    (tmp_path / "language").mkdir()
    (tmp_path / "language/metrics.jsonl").write_text(
        '{"step": 1, "train_loss": 5.0, "val_loss": null}\n{"ste'
    )
    _, page = read(tmp_path)
    assert page.tags.count("svg") == 2
    assert "run not finished" in page.text


def arm_rows(arms, task="match3", equal="parameters"):
    """Results as `nsimplex task` writes them: (order, depth, sparse, topk, accuracy) each, two
    seeds."""
    return [
        {
            "order": order,
            "seed": seed,
            "accuracy": accuracy,
            "majority": 0.5,
            "seconds": 4.0,
            "parameters": 900,
            "task": task,
            "depth": depth,
            "sparse": sparse,
            "topk": topk,
            "equal": equal,
            "dim": 8,
            "hidden": 32,
            "flops": 1.25e6,
            "step_seconds": 0.031 * depth,
        }
        for order, depth, sparse, topk, accuracy in arms
        for seed in (1, 2)
    ]


def test_sparse_arms_are_drawn_against_k(tmp_path):
    rows = arm_rows(
        [
            (1, 1, "dense", None, 0.81),
            (2, 1, "topk", 2, 0.7),
            (2, 1, "topk", 4, 0.9),
            (2, 1, "path", 2, 0.6),
            (2, 1, "path", 4, 0.8),
        ],
        task="match2",
    )
    write_lines(tmp_path / "metrics.jsonl", rows)
    text, page = read(tmp_path)
    assert page.tags.count("svg") == 1
    for words in (
        "Match2: a task of two-way matches",
        "order 2 topk",
        "order 2 path",
        "order 1, all tuples",
        "order 2, path 4, seed 2",
        "1.250",
        "31.0 ms",
        "k, keys chosen",
    ):
        assert words in page.text, words
    assert "#0404" not in text


def test_depths_are_drawn_beside_the_time_of_a_step(tmp_path):
    rows = arm_rows(
        [(1, 1, "dense", None, 0.8), (1, 3, "dense", None, 0.9), (2, 1, "dense", None, 0.99)],
        equal="flops",
    )
    write_lines(tmp_path / "metrics.jsonl", rows)
    _, page = read(tmp_path)
    assert page.tags.count("svg") == 1
    for words in (
        "milliseconds a training step, median",
        "layers",
        "order 1, 3 layers, seed 1",
        "training flops",
        "93.0 ms",
    ):
        assert words in page.text, words


def test_arms_are_not_mixed(tmp_path):
    points = [
        {
            "order": 1,
            "depth": depth,
            "sparse": "dense",
            "topk": None,
            "seed": 1,
            "step": step,
            "loss": 1.0,
            "accuracy": 0.5 + depth * step / 1000,
        }
        for depth in (1, 2)
        for step in (50, 100)
    ]
    write_lines(tmp_path / "metrics.jsonl", points)
    _, page = read(tmp_path)
    assert page.tags.count("svg") == 1
    assert "order 1, 2 layers" in page.text and "60.0 %" in page.text


def test_numbers_that_are_none_are_left_out(tmp_path):
    rows = language_rows() + [{"step": 60, "train_loss": float("nan"), "val_loss": None}]
    write_lines(tmp_path / "metrics.jsonl", rows)
    _, page = read(tmp_path)
    assert "Language model" in page.text and "nan" not in page.text


def test_the_same_run_gives_the_same_page(full):
    assert write_report(full).read_bytes() == write_report(full).read_bytes()


def test_a_directory_without_a_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match="nothing to report"):
        write_report(tmp_path)
    with pytest.raises(NotADirectoryError):
        write_report(tmp_path / "nobody")
    assert list(tmp_path.iterdir()) == []


def test_the_module_runs_and_says_errors_in_one_line(full, tmp_path_factory, subprocess_env):
    def run(directory):
        return subprocess.run(
            [sys.executable, "-m", "nsimplex.report", directory],
            capture_output=True,
            text=True,
            env=subprocess_env,
        )

    assert run(full).returncode == 0
    refused = run(tmp_path_factory.mktemp("empty"))
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1


def comparison_rows(seeds=(1, 2)):
    rows = []
    for equal in ("tokens", "time"):
        for seed in seeds:
            for arm, gain in (("ordinary", 0.0), ("topk", 0.125)):
                rows += [
                    {
                        "arm": arm,
                        "seed": seed,
                        "equal": equal,
                        "step": step,
                        "train_loss": 3.0,
                        "seconds": step / 9,
                        "val_loss": 4 - step / 100 - gain,
                    }
                    for step in (10, 20, 30)
                ]
                rows.append(
                    {
                        "arm": arm,
                        "seed": seed,
                        "equal": equal,
                        "steps": 30,
                        "parameters": 1234,
                        "val_loss": 3.7 - gain,
                        "seconds_per_step": 0.1,
                        "tokens_per_second": 5678.0,
                        "retained_mass": 0.875,
                    }
                )
        rows.append(
            {
                "arm": "topk",
                "over": "ordinary",
                "equal": equal,
                "seeds": len(seeds),
                "difference": -0.125,
                "low": -0.25,
                "high": None if len(seeds) == 1 else 0.5,
                "batch_speed_up": 0.0625,
                "batch_low": 0.03125,
                "batch_high": 0.125,
                "wall_clock_speed_up": -0.5,
            }
        )
    rows += [
        {"arm": "topk", "over": "ordinary", "seed": s, "step": t, "speed_up": 0.1}
        for s in seeds
        for t in (10, 20)
    ]
    return rows


def test_a_comparison_has_curves_differences_and_runs(tmp_path):
    write_lines(tmp_path / "metrics.jsonl", comparison_rows())
    page = Page(write_report(tmp_path).read_text())
    assert page.tags.count("svg") == 3  # equal tokens, equal time, speed-up
    for text in (
        "topk over ordinary",
        "-0.1250 [-0.2500, +0.5000]",
        "+6.25% [+3.12%, +12.50%]",
        "-50.00%",
        "0.875",
    ):
        assert text in page.text
    assert "Validation is text" not in page.text and "Match3" not in page.text


def test_a_single_seed_has_no_interval(tmp_path):
    write_lines(tmp_path / "metrics.jsonl", comparison_rows(seeds=(1,)))
    text = Page(write_report(tmp_path).read_text()).text
    assert "-0.1250" in text and "-0.1250 [" not in text


def scaling_rows():
    fit = {"beta": -1.5, "r_squared": 0.99}
    rows = [
        {
            "source": "published",
            "task": "MMLU",
            "arm": "transformer",
            "alpha": 0.125,
            "printed_alpha": 0.25,
        }
        | fit
    ]
    for arm in ("ordinary", "window"):
        rows += [
            {"arm": arm, "width": n, "seed": 1, "parameters": n**2, "val_loss": 3 / n}
            for n in (8, 16, 32)
        ]
        rows.append({"source": "sweep", "arm": arm, "alpha": 0.5} | fit)
    return rows


def test_a_sweep_has_its_lines_and_the_published_ones(tmp_path):
    rows = scaling_rows()
    write_lines(tmp_path / "metrics.jsonl", rows)
    page = Page(write_report(tmp_path).read_text())
    assert page.tags.count("svg") == 1
    for text in ("Loss against size", "MMLU", "this sweep", "0.5000", "0.1250"):
        assert text in page.text
    write_lines(tmp_path / "metrics.jsonl", rows[:1])
    assert Page(write_report(tmp_path).read_text()).tags.count("svg") == 0
