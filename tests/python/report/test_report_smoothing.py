"""The report of `nsimplex lab smoothing`: plots, an order a panel, beside the statements."""

import pytest

pytest.importorskip("matplotlib")

from report_page import read, write_lines


def smoothing_rows():
    """Lines as the command writes them."""
    rows = [
        {
            "curve": name,
            "order": order,
            "masked": masked,
            "norm": norm,
            "radius": 3,
            "dtype": dtype,
            "rate": 0.6931,
            "ratio": [1.0, 0.5, 0.25],
            "log10_residual": [1.0, -2.0, -5.0],
        }
        for name, masked, norm in (("plain", False, "none"), ("window 4 + rms norm", True, "rms"))
        for order in (1, 2)
        for dtype in ("float64", "bfloat16")
    ]
    rows += [
        {
            "squash": "window 4 + rms norm",
            "order": 1,
            "radius": 2,
            "lambda_2": 0.25,
            "distance": [None, 2, 1, 0],
            "influence": [0.0, 0.25, 0.5, 1.0],
        },
        {
            "flow": "plain, W_V = 1",
            "order": 1,
            "method": "RK4",
            "seed": 0,
            "time": [0, 1],
            "relative_distance": [1.0, 0.1],
        },
        {"entry_bound": 0.5, "order": 1, "contraction": 0.01, "separable_error": 0.2},
        {"draw": "theorem", "order": 1, "bound": 1.0},
    ]
    statement = {
        "statement": "Theorem 3.1, N = 1",
        "draws": 241,
        "holds": True,
        "violations": 0,
        "median_slack": 4380.0,
    }
    return [{"analysis": "smoothing", **row} for row in rows] + [statement]


def test_plots_stand_beside_the_statements(tmp_path):
    write_lines(tmp_path / "metrics.jsonl", smoothing_rows())
    _, page = read(tmp_path)
    assert page.tags.count("svg") == 7
    for words in (
        "Over-smoothing",
        "Theorem 3.1, N = 1",
        "4,380",
        "Large entries of queries",
        "continuous time",
        "Influence lost",
        "0.250",
        "0.693",
        "-0.693",
    ):
        assert words in page.text, words


def test_a_run_that_broke_off_has_what_it_reached(tmp_path):
    write_lines(tmp_path / "metrics.jsonl", smoothing_rows()[:1])
    _, page = read(tmp_path)
    assert page.tags.count("svg") == 2
    write_lines(
        tmp_path / "metrics.jsonl",
        smoothing_rows()[-1:] + [{"analysis": "smoothing", "draw": "mask"}],
    )
    _, page = read(tmp_path)
    assert "svg" not in page.tags
    write_lines(
        tmp_path / "metrics.jsonl",
        [{"analysis": "smoothing", "curve": "plain", "order": 1, "ratio": "odd"}],
    )
    read(tmp_path)
