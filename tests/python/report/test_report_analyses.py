"""The report of statements: tables of what held, and figures of what was measured for them."""

import pytest

pytest.importorskip("matplotlib")

from report_page import read, write_lines

HELD = {
    "statement": "constant <= bound printed, order 1",
    "draws": 96,
    "holds": True,
    "violations": 0,
    "median_slack": 4.5,
}
FAILED = {
    "statement": "d2A as printed & more, order 2",
    "draws": 20,
    "holds": False,
    "violations": 20,
    "median_slack": 0.68,
}


def page_of(folder, *rows):
    write_lines(folder / "metrics.jsonl", rows)
    return read(folder)[1]


def test_statements_of_any_command_are_a_table(tmp_path):
    page = page_of(tmp_path, HELD, FAILED)
    assert "Statements" in page.text and "d2A as printed & more, order 2" in page.text
    assert "holds" in page.text and "violated" in page.text
    html = (tmp_path / "report.html").read_text()
    assert 'class="strong">holds' in html and 'class="failed">violated' in html
    assert "svg" not in page.tags


def lipschitz_rows():
    return [
        {
            "analysis": "lipschitz",
            "order": order,
            "tokens": n,
            "dim": 2,
            "radius": r,
            "constant": n**0.5 * r**order,
            "printed": 9.0,
        }
        for order in (1, 2)
        for n in (2, 4)
        for r in (0.1, 1)
    ]


def test_lipschitz_constants_stand_beside_their_bound(tmp_path):
    page = page_of(tmp_path, *lipschitz_rows(), HELD)
    assert page.tags.count("svg") == 1
    for text in ("Lipschitz constants of attention", "N = 2", "4.500"):
        assert text in page.text, text


def test_sensitivity_lines_are_statements_and_figures(tmp_path):
    row = {
        "order": 2,
        "dim": 16,
        "scales": "unit",
        "bound": 1,
        "largest": 0.9876,
        "from_gaussian": 0.5,
        "at_gaussian": 0.31,
    }
    page = page_of(
        tmp_path,
        {**FAILED},
        {**HELD, **row, "analysis": "sensitivity"},
        {**HELD, **row, "analysis": "sharpness"},
    )
    assert "Sensitivity and sharpness of attention" in page.text
    assert page.text.count("0.9876") == 2 and "violated" in page.text


def layer_rows():
    keys = (
        "ratio",
        "mean_cosine",
        "relative_entropy",
        "logit_range",
        "block_jacobian",
        "sensitivity",
        "effective_rank",
    )
    rows = [
        {
            "analysis": "model",
            "layer": 0,
            "kind": "embedding",
            "order": 0,
            "ratio": 0.9,
            "mean_cosine": 0.1,
            "step": 3,
        }
    ]
    rows += [
        {
            "analysis": "model",
            "layer": i,
            "kind": f"order {i}",
            "order": i,
            **dict.fromkeys(keys, 0.25 * i),
        }
        for i in (1, 2)
    ]
    return rows


def test_layers_of_a_model(tmp_path):
    page = page_of(tmp_path, *layer_rows(), HELD)
    assert page.tags.count("svg") == 3
    assert "embedding" in page.text and "order 2" in page.text


def rate_rows():
    cells = [("base", 2, 16), ("head-dim", 2, 32), ("heads", 4, 16)]
    rows = [
        {
            "analysis": "transfer",
            "scale": "unit",
            "axis": axis,
            "heads": h,
            "head_dim": d,
            "rate": rate,
            "val_loss": 2 + rate * d,
            "diverged": False,
            "spikes": 3,
            "sensitivity": 0.4321,
        }
        for axis, h, d in cells
        for rate in (0.001, 0.01)
    ]
    rows.append({**rows[0], "rate": 0.1, "val_loss": None, "diverged": True})
    rows += [
        {
            "analysis": "transfer",
            "scale": "unit",
            "axis": axis,
            "heads": h,
            "head_dim": d,
            "best_rate": 0.001,
            "best_loss": 2.016,
            "largest_stable_rate": 0.01,
            "moved": 0,
            "bracketed": axis != "base",
        }
        for axis, h, d in cells
    ]
    return rows


def test_learning_rates_of_models_that_grow(tmp_path):
    page = page_of(tmp_path, *rate_rows(), HELD)
    assert page.tags.count("svg") == 1
    for text in (
        "Learning rates as models grow",
        "2 x 32",
        "0.0010 (end of the ladder)",
        "0.432",
        "more heads",
    ):
        assert text in page.text, text


def test_odd_lines_do_no_harm(tmp_path):
    odd = [{"analysis": kind} for kind in ("lipschitz", "model", "transfer", "sharpness", "other")]
    for i, row in enumerate(
        [
            *odd,
            {"statement": "alone"},
            {"analysis": "transfer", "rate": 1, "best_rate": None, "val_loss": 2},
        ]
    ):
        folder = tmp_path / str(i)
        folder.mkdir()
        page_of(folder, row)
