"""Sections of the report about encodings of features."""

from report_page import read, write_lines


def encoding_rows():
    """Lines as `nsimplex causal task classify` writes them."""
    rows = [
        {
            "task": "classify",
            "encoding": name,
            "trial": f"1/{seed}",
            "accuracy": 70.0 + seed,
            "f1": 60.0,
            "edges": -1,
        }
        for seed in (1, 2)
        for name in ("none", "cape")
    ]
    return rows + [
        {
            "task": "classify",
            "encoding": name,
            "trials": 2,
            "accuracy": 71.5,
            "accuracy_deviation": 0.7071,
            "f1": 60.0,
            "f1_deviation": 0.0,
            **gain,
        }
        for name, gain in (("none", {"cape_better_by_accuracy": [1.25, -0.5, 3.0]}), ("cape", {}))
    ]


def test_encodings_are_shown_with_what_cape_is_better_by(tmp_path):
    write_lines(tmp_path / "metrics.jsonl", encoding_rows())
    _, page = read(tmp_path)
    assert page.tags.count("svg") == 2
    for words in ("Classes of observations", "71.5000 ± 0.7071", "+1.250 [-0.500, +3.000]"):
        assert words in page.text, words


def test_encodings_of_a_run_that_went_on_are_shown_once(tmp_path):
    rows = encoding_rows()
    write_lines(tmp_path / "metrics.jsonl", rows)
    _, page = read(tmp_path)
    write_lines(tmp_path / "metrics.jsonl", rows[:2] + [{**rows[4], "accuracy": 12.5}] + rows[2:])
    assert read(tmp_path)[1].text == page.text


def test_encodings_of_a_run_that_broke_off(tmp_path):
    write_lines(tmp_path / "metrics.jsonl", encoding_rows()[:3])
    _, page = read(tmp_path)
    assert page.tags.count("svg") == 1
