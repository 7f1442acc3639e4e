"""Sections of the report about statements of CAPE's paper."""

from report_page import read, write_lines


def claim(task, source, statement, violations):
    return {
        "task": task,
        "source": source,
        "statement": statement,
        "draws": 2000,
        "violations": violations,
        "holds": violations == 0,
        "median_slack": 0.1,
        "share": 1 - violations / 2000,
    }


def attenuation_rows():
    """Lines as `nsimplex lab attenuation` writes them."""
    point = {"task": "attenuation", "second": 0.5, "equal_score": 0.9}
    surface = [
        {
            **point,
            "row": "surface",
            "first": norm,
            "distance": distance,
            "gap": 0.1,
            "bound": 1 - 0.01 * distance,
        }
        for norm in (0.5, 0.9)
        for distance in (1.0, 2.0)
    ]
    path = [
        {**point, "row": "path", "first": 0.9 - 0.3 * k, "distance": 3, "gap": 1, "bound": 1}
        for k in range(3)
    ]
    return [
        *surface,
        *path,
        claim("attenuation", "Prop. 4.1", "the farther pair has the smaller A+", 412),
    ]


def test_attenuation_shows_what_holds_and_what_does_not(tmp_path):
    write_lines(tmp_path / "metrics.jsonl", attenuation_rows())
    _, page = read(tmp_path)
    assert page.tags.count("svg") == 2
    for words in ("Prop. 4.1", "the farther pair has the smaller A+", "412", "At distance 3"):
        assert words in page.text, words


def robustness_rows():
    bias = {
        "task": "robustness",
        "row": "bias",
        "sigma": 0.3,
        "key": "query",
        "score": 120.0,
        "deviation": 1.0,
        "limit": -6.5,
    }
    rows = [{**bias, "noises": noises, "mean": -6.0} for noises in (1, 100)]
    rows += [
        {
            "task": "robustness",
            "row": "accuracy",
            "first": s,
            "second": s,
            "exact": 1 - s,
            "drawn": 1 - s,
        }
        for s in (0.0, 0.0662)
    ]
    rows.append(claim("robustness", "Prop. A.9, sigma = 0.3", "the mean disturbed score is A", 20))
    return rows


def test_robustness_shows_where_averages_go(tmp_path):
    write_lines(tmp_path / "metrics.jsonl", robustness_rows())
    _, page = read(tmp_path)
    assert page.tags.count("svg") == 1
    for words in ("93.38 %", "Prop. A.9, sigma = 0.3", "exp(−c²σ²)"):
        assert words in page.text, words


def placement_rows():
    """Lines as `nsimplex lab synthetic` writes them."""
    rows = [{"task": "synthetic", "seed": seed, "edges": 16, "shd": seed} for seed in (1, 2)]
    for graph in ("true", "learned"):
        for generality, relative in ((1, True), (3, True), (0.1, False)):
            figures = {}
            for figure in (
                "edge_area",
                "generality_correlation",
                "own_edge_area",
                "own_generality_correlation",
                "mean_radius",
            ):
                figures |= {figure: 0.8125, f"{figure}_deviation": 0.01}
            rows.append(
                {
                    "task": "synthetic",
                    "graphs": 2,
                    "graph": graph,
                    "hops": 1,
                    "generality": generality,
                    "relative": relative,
                    **figures,
                    "passes": True,
                    "judged": generality == 3,
                }
            )
    return rows


def test_the_trade_off_of_generality_is_shown(tmp_path):
    write_lines(tmp_path / "metrics.jsonl", placement_rows())
    _, page = read(tmp_path)
    assert page.tags.count("svg") == 1
    for words in (
        "true, k = 1, λ = 3, judged",
        "learned, k = 1, λ = 0.1 π as printed",
        "0.812 ± 0.010",
        "SHD of 1.50",
    ):
        assert words in page.text, words


def test_runs_that_broke_off_are_no_error(tmp_path):
    rows = [
        placement_rows()[0],
        {"task": "attenuation", "row": "surface"},
        {"task": "robustness", "row": "bias"},
    ]
    write_lines(tmp_path / "metrics.jsonl", rows)
    _, page = read(tmp_path)
    assert "Attention over causal distance" in page.text


def complexity_rows():
    size = {
        "task": "complexity",
        "over": "rows",
        "columns": 100,
        "batches": 79,
        "timed": 79,
        "runs": 3,
        "step_two": 0.001,
        "order": 0.02,
    }
    rows = [{**size, "rows": n, "step_one": n / 1e4} for n in (1000, 10000)]
    rows.append(
        {
            "task": "complexity",
            "over": "rows",
            "figure": "step_one",
            "exponent": 1.04,
            "r_squared": 0.99,
            "paper": 1,
        }
    )
    return rows


def test_what_steps_cost_is_shown_with_exponents(tmp_path):
    write_lines(tmp_path / "metrics.jsonl", complexity_rows())
    _, page = read(tmp_path)
    assert page.tags.count("svg") == 1
    for words in ("step I, an epoch, with rows", "1.04", "79 of 79"):
        assert words in page.text, words
